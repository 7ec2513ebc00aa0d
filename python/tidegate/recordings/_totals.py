"""Metrics of a run from the counters of getStats; metrics without a counter are absent."""

from __future__ import annotations

import numpy as np

from tidegate.recordings._ends import Direction, Side, remote
from tidegate.recordings._stats import Floats

Metrics = dict[str, float | int | str]

COUNTS = frozenset((
    "packets_sent", "packets_received", "bytes_sent", "bytes_received", "retransmissions", "nacks", "plis", "freezes",
    "key_frames", "frames_sent", "frames_encoded", "frames_decoded", "frames_dropped", "frames_rendered",
))  # fmt: skip
"""Metrics that are whole numbers."""

_BEYOND = 2.0**64
"""What no counter reaches: getStats counts in 64 bits (W3C webrtc-stats), and a saved run has no larger number."""


def metrics(direction: Direction, length: float) -> Metrics:
    """Returns the metrics of a direction: counters at the end, and rates between the first and the last report."""
    numbers: dict[str, float | None] = {}
    sender, receiver = direction.sender, direction.receiver
    ends = np.array([0.0, length])
    if sender is not None:
        wire = _within(sender, ends, "Sent")
        numbers |= {
            "sending_rate_bps": wire,
            "packets_sent": sender.total("packetsSent"),
            "bytes_sent": _bytes(sender, "Sent"),
            "retransmissions": sender.total("retransmittedPacketsSent"),
            "key_frames": sender.total("keyFramesEncoded"),
            "frames_encoded": sender.total("framesEncoded"),
            "nacks": sender.total("nackCount"),
            "plis": sender.total("pliCount"),
        }
        sources = Side(sender.connection, sender.connection.of_type("media-source"), sender.later_s)
        numbers["frames_sent"] = sources.total("frames")
        trips = [
            values for _, stat in remote(direction) for _, values in [sender.at(stat, "roundTripTime")] if len(values)
        ]
        if trips:
            numbers["round_trip_ms_mean"] = float(np.mean(np.concatenate(trips))) * 1e3
            numbers["round_trip_ms_max"] = float(np.max(np.concatenate(trips))) * 1e3
    if receiver is not None:
        numbers |= {
            "receive_rate_bps": _within(receiver, ends, "Received"),
            "packets_received": receiver.total("packetsReceived"),
            "bytes_received": _bytes(receiver, "Received"),
            "frames_decoded": receiver.total("framesDecoded"),
            "frames_dropped": receiver.total("framesDropped"),
            "frames_rendered": receiver.total("framesRendered"),
            "freezes": receiver.total("freezeCount"),
            "freeze_time_s": receiver.total("totalFreezesDuration"),
            "nacks": receiver.total("nackCount"),
            "plis": receiver.total("pliCount"),
        }
    numbers["loss_fraction"] = _loss(direction)
    counted = {name: value for name, value in numbers.items() if value is not None and abs(value) < _BEYOND}
    return {
        "flow": direction.name,
        "kind": "media",
        "controller": "recorded",
        "start_s": 0.0,
        "stop_s": length,
        **{name: max(int(value), 0) if name in COUNTS else float(value) for name, value in counted.items()},
    }


def _bytes(side: Side, suffix: str) -> float | None:
    last = side.begins()[-1:]
    wire = side.wire(last, suffix)
    return None if wire is None else float(wire[0])


def _within(side: Side, ends: Floats, suffix: str) -> float | None:
    """Returns the rate between the first and the last report of a side."""
    times = side.begins()
    first, last = max(float(times[0]), ends[0]), min(float(times[-1]), ends[1])
    counted = side.wire(np.array([first, last]), suffix) if last > first else None
    return None if counted is None else max(float(np.diff(counted)[0]) * 8 / (last - first), 0.0)


def _loss(direction: Direction) -> float | None:
    """Returns lost over decided packets: by the receiver, or by its last reports and the packets sent until then."""
    lost = decided = 0.0
    if direction.receiver is not None:
        for stat in direction.receiver.streams:
            gone, came = (direction.receiver.at(stat, name)[1] for name in ("packetsLost", "packetsReceived"))
            if len(gone) and len(came):
                lost, decided = lost + gone[-1], decided + gone[-1] + came[-1]
    elif direction.sender is not None:
        by_ssrc = {stat.last("ssrc"): stat for stat in direction.sender.streams}
        for side, stat in remote(direction):
            times, gone = side.at(stat, "packetsLost")
            sent_stream = by_ssrc.get(stat.last("ssrc"))
            sent = (
                (np.empty(0), np.empty(0)) if sent_stream is None else direction.sender.at(sent_stream, "packetsSent")
            )
            if len(gone) and len(sent[0]):
                lost, decided = lost + gone[-1], decided + float(np.interp(times[-1], *sent))
    # RFC 3550 section 6.4.1: packets that came twice can make the count negative
    return max(lost, 0.0) / decided if decided > 0 else None
