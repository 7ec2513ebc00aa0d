"""One flow of one run as a browser's webrtc-internals would show it: the knowledge of both ends over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tidegate.show import view
from tidegate.show.view import Floats, FlowSeries, RunLike

MOST_QUEUES = 6
"""The largest number of links whose queues are shown: those with the longest queues."""


@dataclass(frozen=True)
class Session:
    """A flow's rates on the recording's bins, and series with times of their own. Missing values are NaN."""

    series: FlowSeries
    """Rates, delay and loss on the wire."""
    goodput_bps: Floats
    """Useful bytes at the receiver."""
    acked_bps: Floats
    """Bytes that reports acknowledged; all NaN where the feedback does not name packets."""
    encoder_bps: Floats
    """Frames of video and audio as they were captured; all NaN for flows without."""
    round_trip: tuple[Floats, Floats]
    """(s, ms): the round-trip time of each report."""
    pacer: tuple[Floats, Floats]
    """(s, bytes): media that waited at the sender."""
    frames: tuple[Floats, Floats]
    """(s, ms): the capture times of video frames, and their delays to the screen; NaN for frames never shown. Empty for
    a call that was recorded elsewhere."""
    lateness: tuple[Floats, Floats]
    """(s, ms): the capture times of the video frames of a recorded call, and how much later than the quickest of them
    they were complete; NaN for frames that were not."""
    without_picture: tuple[Floats, Floats]
    """(s, s): the beginnings and ends of times without a new picture; of an imported call, of freezes."""


def session(run: RunLike, flow: str) -> Session:
    """Reads the session of a flow; raises :class:`ValueError` if the run was recorded without series."""
    series = view.flow_series(run, flow)
    return Session(
        series=series,
        goodput_bps=view.on_grid(*_goodput(run, flow, series.width), series.t),
        acked_bps=_binned(*_internals(run, flow, "acked_bytes"), series),
        encoder_bps=_binned(*view.curve(run, "frames", "flow", flow, "size", "captured_s"), series),
        round_trip=_first_of(run, flow, "round_trip_ms", "rtt_ms"),
        pacer=_internals(run, flow, "pacer_backlog"),
        frames=(np.empty(0), np.empty(0)) if _is_recorded(run, flow) else _frames(run, flow, "rendered_s"),
        lateness=lateness(run, flow),
        without_picture=_without_picture(run, flow),
    )


def queues(run: RunLike) -> Mapping[str, tuple[Floats, Floats]]:
    """The queues (s, bytes) in which anything ever waited, by link; at most the longest `MOST_QUEUES`.

    A link whose queue consists of several, as with DualPI2, has a line for each: `up, l4s` and `up, classic`.
    """
    by_name: dict[str, tuple[Floats, Floats]] = {}
    for link in (str(entry["link"]) for entry in run.summary.get("links", ())):
        by_name |= _parts(run, link) or {link: view.queue(run, link)}
    maxima = {name: float(size.max()) for name, (_, size) in by_name.items() if len(size) and size.max() > 0}
    longest = set(sorted(maxima, key=lambda name: -maxima[name])[:MOST_QUEUES])
    return {name: queue for name, queue in by_name.items() if name in longest}


def _parts(run: RunLike, link: str) -> dict[str, tuple[Floats, Floats]]:
    """The queues (s, bytes) of which a link's queue consists, by name; empty where it is a single one."""
    if not view.has(run, "queue_parts"):
        return {}
    got = view.rows(run, "queue_parts", "link", link, ("t_s", "part", "bytes"))
    masks = {str(part): got["part"] == part for part in sorted(set(got["part"]), reverse=True)}
    return {
        f"{link}, {part}": (np.asarray(got["t_s"][mask], float), np.asarray(got["bytes"][mask], float))
        for part, mask in masks.items()
    }


def _goodput(run: RunLike, flow: str, width: float) -> tuple[Floats, Floats]:
    if "goodput_bps" not in view.keep(run).table("series"):
        return np.empty(0), np.empty(0)
    begin, goodput = view.curve(run, "series", "flow", flow, "goodput_bps")
    return begin + width / 2, goodput


def _internals(run: RunLike, flow: str, name: str) -> tuple[Floats, Floats]:
    """A series of the controller's inner state: times (s) and values; empty where it has none of that name."""
    if not view.has(run, "internals"):
        return np.empty(0), np.empty(0)
    of_name = view.rows(run, "internals", "flow", flow, ("name",))["name"] == name
    times, values = view.curve(run, "internals", "flow", flow, "value")
    return times[of_name], values[of_name]


def _first_of(run: RunLike, flow: str, *names: str) -> tuple[Floats, Floats]:
    curves = (_internals(run, flow, name) for name in names)
    return next((curve for curve in curves if len(curve[0])), (np.empty(0), np.empty(0)))


def _frames(run: RunLike, flow: str, until: str) -> tuple[Floats, Floats]:
    if not view.has(run, "frames"):
        return np.empty(0), np.empty(0)
    captured, ends = view.curve(run, "frames", "flow", flow, until, "captured_s")
    video = np.asarray(view.rows(run, "frames", "flow", flow, ("video",))["video"], bool)
    return captured[video], (ends - captured)[video] * 1e3


def _is_recorded(run: RunLike, flow: str) -> bool:
    # only a recording does not know which frames were shown, and says how late they were
    return "frame_lateness_ms_max" in view.flow_summary(run, flow)


def lateness(run: RunLike, flow: str) -> tuple[Floats, Floats]:
    """Reads how late the video frames of a recorded call were; see [Session][tidegate.show._session.Session]."""
    if not _is_recorded(run, flow):
        return np.empty(0), np.empty(0)
    captured, delay = _frames(run, flow, "complete_s")
    return captured, delay - np.nanmin(delay)


def processing(run: RunLike, flow: str) -> tuple[Floats, Floats]:
    """Reads how long frames took from their first packet until they were decoded (s, ms), as getStats has it."""
    return _internals(run, flow, "processing_ms")


def freezes(run: RunLike, flow: str) -> tuple[Floats, Floats]:
    """Reads the freezes (s, s) of a flow: when each ended, and its length."""
    return view.curve(run, "freezes", "flow", flow, "length_s")


def _without_picture(run: RunLike, flow: str) -> tuple[Floats, Floats]:
    if view.has(run, "without_picture"):
        ends, begins = view.curve(run, "without_picture", "flow", flow, "begin_s")
        return begins, ends
    ends, length = freezes(run, flow)
    return ends - length, ends


def _binned(t: Floats, size: Floats, series: FlowSeries) -> Floats:
    """The rate (bit/s) in each bin of a series, from sizes (bytes) at times."""
    if not len(t) or not len(series.t) or not series.width > 0:
        return np.full(len(series.t), np.nan)
    edges = np.append(series.t - series.width / 2, series.t[-1] + series.width / 2)
    return np.asarray(np.histogram(t, edges, weights=size)[0] * 8 / series.width, float)
