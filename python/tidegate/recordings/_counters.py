"""Tables of a run from the counters of getStats: counters become rates, and values without a counter are absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidegate.recordings._ends import Direction, Side, in_use, remote, reported
from tidegate.recordings._stats import Floats, Stat

Rows = dict[str, Any]
"""Columns of a table by name."""


def series(direction: Direction, edges: Floats) -> Rows:
    """Returns the series of a direction in bins; unknown values are NaN."""
    nothing = np.full(len(edges), np.nan)
    spans = np.diff(edges)

    def per_bin(counted: Floats | None) -> Floats:
        return np.diff(nothing if counted is None else counted)

    def rate(side: Side | None, suffix: str) -> Floats:
        return per_bin(None if side is None else side.wire(edges, suffix)) * 8 / spans

    sent = None if direction.sender is None else direction.sender.counter(edges, "packetsSent")
    lost, arrived = _fates(direction, edges, sent)
    unknown = nothing[:-1]
    return {
        "t_s": edges[:-1],
        "flow": [direction.name] * len(spans),
        "sending_rate_bps": np.maximum(rate(direction.sender, "Sent"), 0.0),
        "receive_rate_bps": np.maximum(rate(direction.receiver, "Received"), 0.0),
        "goodput_bps": unknown,
        "one_way_delay_ms_mean": unknown,
        "one_way_delay_ms_max": unknown,
        "queueing_delay_ms_mean": unknown,
        "packets_sent": per_bin(None if sent is None else np.round(sent)),
        "packets_arrived": np.maximum(per_bin(arrived), 0.0),
        "packets_lost": np.maximum(per_bin(lost), 0.0),
    }


def _fates(direction: Direction, edges: Floats, sent: Floats | None) -> tuple[Floats | None, Floats | None]:
    """Returns packets lost and arrived up to given times: by the receiver, or else by its reports."""
    counter = direction.receiver or reported(direction)
    lost = None if counter is None else counter.counter(edges, "packetsLost")
    if counter is None or lost is None:
        return None, None
    if counter is not direction.receiver:
        # reports may stop before the sender's counters: the last report holds
        known_at = np.flatnonzero(np.isfinite(lost))
        lost = np.interp(np.arange(len(lost)), known_at, lost[known_at]) if len(known_at) else lost
    lost = np.round(lost)
    arrived = counter.counter(edges, "packetsReceived") if counter is direction.receiver else None
    if arrived is None:
        return lost, None if sent is None else np.round(sent) - lost
    return lost, np.round(arrived)


Reading = Callable[[Direction], Sequence[tuple[Side, Stat]]]


def _streams(side: str) -> Reading:
    def read(direction: Direction) -> list[tuple[Side, Stat]]:
        selected_side: Side | None = getattr(direction, side)
        return [] if selected_side is None else [(selected_side, stat) for stat in selected_side.streams]

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
"""Named values over time: their streams and member, and the factor from W3C's unit to that of the name."""

MEANS = (
    ("processing_ms", "totalProcessingDelay", "framesDecoded"),
    ("jitter_buffer_ms", "jitterBufferDelay", "jitterBufferEmittedCount"),
)
"""Mean times of what was decoded, or left the jitter buffer, between two reports: a sum in seconds and its count. The
first one is from a frame's first packet until it was decoded (W3C webrtc-stats)."""

SUMMED = {"encoder_target"}
"""Values that are summed over all streams; others are of each video stream, or else of each stream."""


def internals(direction: Direction, length: float) -> Rows:
    """Returns named values over time."""
    rows: list[tuple[float, str, float]] = []
    for name, members_of, member, scale in VALUES:
        series = [(side.at(stat, member), stat) for side, stat in members_of(direction)]
        series = [entry for entry in series if len(entry[0][0])]
        if name in SUMMED and series:
            times = np.unique(np.concatenate([times_of for (times_of, _), _ in series]))
            total = sum(np.interp(times, times_of, values, left=0.0, right=0.0) for (times_of, values), _ in series)
            rows += [(float(time), name, float(value) * scale) for time, value in zip(times, total, strict=True)]
            continue
        rows += _labelled(name, series, scale)
    for name, total, count in MEANS:
        means = [(_mean(side, stat, total, count), stat) for side, stat in _streams("receiver")(direction)]
        rows += _labelled(name, [entry for entry in means if len(entry[0][0])], 1e3)
    rows = sorted((time, name, value) for time, name, value in rows if 0 <= time <= length)
    return {
        "t_s": np.array([time for time, *_ in rows], float),
        "flow": [direction.name] * len(rows),
        "name": [name for _, name, _ in rows],
        "value": np.array([value for *_, value in rows], float),
    }


def _labelled(
    name: str, series: Sequence[tuple[tuple[Floats, Floats], Stat]], scale: float
) -> list[tuple[float, str, float]]:
    rows: list[tuple[float, str, float]] = []
    for (times, values), stat in series:
        # two streams of one name would be one line; video has the plain name
        label = name if stat.kind != "audio" or len(series) == 1 else f"{name}_audio"
        rows += [(float(time), label, float(value) * scale) for time, value in zip(times, values, strict=True)]
    return rows


def _mean(side: Side, stat: Stat, total: str, count: str) -> tuple[Floats, Floats]:
    """Returns the growth of a sum over that of its count, at the end of each report in which the count grew."""
    times, sums = side.at(stat, total)
    count_times, counts = side.at(stat, count)
    if not len(times) or not len(count_times):
        return np.empty(0), np.empty(0)
    counted, grown = np.diff(np.interp(times, count_times, counts)), np.diff(sums)
    grew = (counted > 0) & (grown >= 0)
    return times[1:][grew], grown[grew] / counted[grew]


def decisions(direction: Direction, length: float) -> Rows:
    """Returns the controller's rates: availableOutgoingBitrate of the pair in use, or the encoders' targets."""
    allowance = next(
        (side.at(stat, "availableOutgoingBitrate") for side, stat in in_use(direction)), (np.empty(0), np.empty(0))
    )
    times, values = allowance
    if not len(times):
        noted = internals(direction, length)
        mine = [row for row, name in enumerate(noted["name"]) if name == "encoder_target"]
        times, values = noted["t_s"][mine], noted["value"][mine]
    inside = (times >= 0) & (times <= length)
    times, values = times[inside], values[inside]
    changed = np.append(True, np.diff(values) != 0)[: len(values)]
    times, values = times[changed], values[changed]
    unknown = np.full(len(times), np.nan)
    return {
        "t_s": times,
        "flow": [direction.name] * len(times),
        "target_bps": values,
        "pacing_bps": unknown,
        "window_bytes": unknown,
    }


def freezes(direction: Direction, length: float) -> Rows:
    """Returns freezes at the time of the report that first counted them; their exact times are unknown."""
    rows: list[tuple[float, float]] = []
    for side, stat in _streams("receiver")(direction):
        times, counts = side.at(stat, "freezeCount")
        times_of_lengths, lengths = side.at(stat, "totalFreezesDuration")
        if not len(times) or not len(times_of_lengths):
            continue
        total = np.interp(times, times_of_lengths, lengths)
        for row in np.flatnonzero(np.diff(counts, prepend=0.0) > 0):
            before = total[row - 1] if row else 0.0
            if total[row] > before and 0 <= times[row] <= length:
                rows.append((float(times[row]), float(total[row] - before)))
    rows.sort()
    return {
        "t_s": np.array([time for time, _ in rows], float),
        "flow": [direction.name] * len(rows),
        "length_s": np.array([length for _, length in rows], float),
    }
