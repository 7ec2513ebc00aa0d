"""One flow of one run as a browser's webrtc-internals would show it: what both of its ends knew, over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tidegate.show import view
from tidegate.show.view import Floats, FlowSeries, RunLike

MOST_QUEUES = 6
"""Links whose queues are shown: those with the longest."""


@dataclass(frozen=True)
class Session:
    """A flow's rates on the recording's bins, and what has times of its own. Missing values are NaN."""

    series: FlowSeries
    """Rates, delay and loss on the wire."""
    goodput_bps: Floats
    """Useful bytes at the receiver."""
    acked_bps: Floats
    """What reports said had arrived; all NaN where the feedback does not tell of packets."""
    encoder_bps: Floats
    """Frames of video and audio as they were captured; all NaN for flows without."""
    round_trip: tuple[Floats, Floats]
    """(s, ms): what each report says of the round trip."""
    pacer: tuple[Floats, Floats]
    """(s, bytes): media that waited at the sender."""
    frames: tuple[Floats, Floats]
    """(s, ms): frames of video by the time of capture, and how long until each was shown; NaN if it never was."""
    freezes: tuple[Floats, Floats]
    """(s, s): from when to when the picture stood still."""


def session(run: RunLike, flow: str) -> Session:
    """Reads that of a flow; a :class:`ValueError` where the run was recorded without series."""
    series = view.flow_series(run, flow)
    return Session(
        series=series,
        goodput_bps=view.on_grid(*_goodput(run, flow, series.width), series.t),
        acked_bps=_binned(*_noted(run, flow, "acked_bytes"), series),
        encoder_bps=_binned(*view.curve(run, "frames", "flow", flow, "size", "captured_s"), series),
        round_trip=_first_of(run, flow, "round_trip_ms", "rtt_ms"),
        pacer=_noted(run, flow, "pacer_backlog"),
        frames=_frames(run, flow),
        freezes=_freezes(run, flow),
    )


def queues(run: RunLike) -> Mapping[str, tuple[Floats, Floats]]:
    """(s, bytes) of the links in which anything ever waited, in their order; of many those with the longest queues."""
    found = {str(link["link"]): view.queue(run, str(link["link"])) for link in run.summary.get("links", ())}
    longest = {name: float(size.max()) for name, (_, size) in found.items() if len(size) and size.max() > 0}
    kept = set(sorted(longest, key=lambda name: -longest[name])[:MOST_QUEUES])
    return {name: of for name, of in found.items() if name in kept}


def _goodput(run: RunLike, flow: str, width: float) -> tuple[Floats, Floats]:
    if "goodput_bps" not in view.keep(run).table("series"):
        return np.empty(0), np.empty(0)
    begin, goodput = view.curve(run, "series", "flow", flow, "goodput_bps")
    return begin + width / 2, goodput


def _noted(run: RunLike, flow: str, name: str) -> tuple[Floats, Floats]:
    if not view.has(run, "internals"):
        return np.empty(0), np.empty(0)
    mine = view.rows(run, "internals", "flow", flow, ("name",))["name"] == name
    at, value = view.curve(run, "internals", "flow", flow, "value")
    return at[mine], value[mine]


def _first_of(run: RunLike, flow: str, *names: str) -> tuple[Floats, Floats]:
    found = (_noted(run, flow, name) for name in names)
    return next((one for one in found if len(one[0])), (np.empty(0), np.empty(0)))


def _frames(run: RunLike, flow: str) -> tuple[Floats, Floats]:
    if not view.has(run, "frames"):
        return np.empty(0), np.empty(0)
    captured, rendered = view.curve(run, "frames", "flow", flow, "rendered_s", "captured_s")
    video = np.asarray(view.rows(run, "frames", "flow", flow, ("video",))["video"], bool)
    return captured[video], (rendered - captured)[video] * 1e3


def _freezes(run: RunLike, flow: str) -> tuple[Floats, Floats]:
    ends, length = view.curve(run, "freezes", "flow", flow, "length_s")
    return ends - length, ends


def _binned(t: Floats, size: Floats, series: FlowSeries) -> Floats:
    """Bytes that came at times, as a rate in each bin."""
    if not len(t) or not len(series.t) or not series.width > 0:
        return np.full(len(series.t), np.nan)
    edges = np.append(series.t - series.width / 2, series.t[-1] + series.width / 2)
    return np.asarray(np.histogram(t, edges, weights=size)[0] * 8 / series.width, float)
