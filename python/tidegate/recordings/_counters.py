"""What getStats counted over a call, as a run's tables: counters become rates, and what nobody counted is absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidegate.recordings._ends import Side, Way, in_use, remote, reported
from tidegate.recordings._getstats import Floats, Stat

Rows = dict[str, Any]
"""Columns of a table by name."""


def series(way: Way, edges: Floats) -> Rows:
    """The table of a way in bins; what is not known is not a number."""
    nothing = np.full(len(edges), np.nan)
    spans = np.diff(edges)

    def per_bin(counted: Floats | None) -> Floats:
        return np.diff(nothing if counted is None else counted)

    def rate(side: Side | None, what: str) -> Floats:
        return per_bin(None if side is None else side.wire(edges, what)) * 8 / spans

    sent = None if way.sender is None else way.sender.counter(edges, "packetsSent")
    lost, arrived = _fates(way, edges, sent)
    unknown = nothing[:-1]
    return {
        "t_s": edges[:-1],
        "flow": [way.name] * len(spans),
        "sending_rate_bps": np.maximum(rate(way.sender, "Sent"), 0.0),
        "receive_rate_bps": np.maximum(rate(way.receiver, "Received"), 0.0),
        "goodput_bps": unknown,
        "one_way_delay_ms_mean": unknown,
        "one_way_delay_ms_max": unknown,
        "queueing_delay_ms_mean": unknown,
        "packets_sent": per_bin(None if sent is None else np.round(sent)),
        "packets_arrived": np.maximum(per_bin(arrived), 0.0),
        "packets_lost": np.maximum(per_bin(lost), 0.0),
    }


def _fates(way: Way, edges: Floats, sent: Floats | None) -> tuple[Floats | None, Floats | None]:
    """Packets lost and packets that arrived, up to given times: by the receiver, else by its reports."""
    by = way.receiver or reported(way)
    lost = None if by is None else by.counter(edges, "packetsLost")
    if by is None or lost is None:
        return None, None
    if by is not way.receiver:
        # reports stop when the sender's own counters go on: what was last said holds
        known = np.flatnonzero(np.isfinite(lost))
        lost = np.interp(np.arange(len(lost)), known, lost[known]) if len(known) else lost
    lost = np.round(lost)
    arrived = by.counter(edges, "packetsReceived") if by is way.receiver else None
    if arrived is None:
        return lost, None if sent is None else np.round(sent) - lost
    return lost, np.round(arrived)


Reading = Callable[[Way], Sequence[tuple[Side, Stat]]]


def _streams(side: str) -> Reading:
    def read(way: Way) -> list[tuple[Side, Stat]]:
        found: Side | None = getattr(way, side)
        return [] if found is None else [(found, one) for one in found.streams]

    return read


VALUES: tuple[tuple[str, Reading, str, float], ...] = (
    ("round_trip_ms", remote, "roundTripTime", 1e3),
    ("round_trip_ms_ice", in_use, "currentRoundTripTime", 1e3),
    ("encoder_target", _streams("sender"), "targetBitrate", 1.0),
    ("frame_height", _streams("sender"), "frameHeight", 1.0),
    ("frames_encoded", _streams("sender"), "framesEncoded", 1.0),
    ("jitter_ms_reported", remote, "jitter", 1e3),
    ("jitter_ms", _streams("receiver"), "jitter", 1e3),
    ("frames_decoded", _streams("receiver"), "framesDecoded", 1.0),
    ("frames_dropped", _streams("receiver"), "framesDropped", 1.0),
    ("freezes", _streams("receiver"), "freezeCount", 1.0),
    ("frame_height_received", _streams("receiver"), "frameHeight", 1.0),
)
"""Named values over time: whence, and what makes the unit of the name out of W3C's."""

SUMMED = {"encoder_target"}
"""Those that are one value of all streams; others are of each video stream, or else of each."""


def internals(way: Way, length: float) -> Rows:
    """Named values over time."""
    rows: list[tuple[float, str, float]] = []
    for name, read, member, scale in VALUES:
        some = [(side.at(stat, member), stat) for side, stat in read(way)]
        some = [one for one in some if len(one[0][0])]
        if name in SUMMED and some:
            times = np.unique(np.concatenate([at for (at, _), _ in some]))
            total = sum(np.interp(times, at, values, left=0.0, right=0.0) for (at, values), _ in some)
            rows += [(float(at), name, float(value) * scale) for at, value in zip(times, total, strict=True)]
            continue
        for (times, values), stat in some:
            kind = stat.last("kind")
            # two streams of one name would be one line; video goes by the plain name
            own = name if kind != "audio" or len(some) == 1 else f"{name}_audio"
            rows += [(float(at), own, float(value) * scale) for at, value in zip(times, values, strict=True)]
    rows = sorted((at, name, value) for at, name, value in rows if 0 <= at <= length)
    return {
        "t_s": np.array([at for at, *_ in rows], float),
        "flow": [way.name] * len(rows),
        "name": [name for _, name, _ in rows],
        "value": np.array([value for *_, value in rows], float),
    }


def decisions(way: Way, length: float) -> Rows:
    """What the sender's controller allowed: availableOutgoingBitrate of the pair in use, else the encoders' targets."""
    found = next((side.at(stat, "availableOutgoingBitrate") for side, stat in in_use(way)), (np.empty(0), np.empty(0)))
    times, values = found
    if not len(times):
        noted = internals(way, length)
        mine = [place for place, name in enumerate(noted["name"]) if name == "encoder_target"]
        times, values = noted["t_s"][mine], noted["value"][mine]
    kept = (times >= 0) & (times <= length)
    times, values = times[kept], values[kept]
    changed = np.append(True, np.diff(values) != 0)[: len(values)]
    times, values = times[changed], values[changed]
    unknown = np.full(len(times), np.nan)
    return {
        "t_s": times,
        "flow": [way.name] * len(times),
        "target_bps": values,
        "pacing_bps": unknown,
        "window_bytes": unknown,
    }


def freezes(way: Way, length: float) -> Rows:
    """Freezes by the report that first told of them: their exact times are not counted."""
    rows: list[tuple[float, float]] = []
    for side, stat in _streams("receiver")(way):
        times, counts = side.at(stat, "freezeCount")
        at, lengths = side.at(stat, "totalFreezesDuration")
        if not len(times) or not len(at):
            continue
        total = np.interp(times, at, lengths)
        for place in np.flatnonzero(np.diff(counts, prepend=0.0) > 0):
            before = total[place - 1] if place else 0.0
            if total[place] > before and 0 <= times[place] <= length:
                rows.append((float(times[place]), float(total[place] - before)))
    rows.sort()
    return {
        "t_s": np.array([at for at, _ in rows], float),
        "flow": [way.name] * len(rows),
        "length_s": np.array([length for _, length in rows], float),
    }
