"""What getStats counted over a call, as a run's metrics; what nobody counted is absent."""

from __future__ import annotations

import math

import numpy as np

from tidegate.recordings._ends import Side, Way, remote
from tidegate.recordings._getstats import Floats

Metrics = dict[str, float | int | str]

COUNTS = frozenset((
    "packets_sent", "packets_received", "bytes_sent", "bytes_received", "retransmissions", "nacks", "plis", "freezes",
    "key_frames", "frames_sent", "frames_encoded", "frames_decoded", "frames_dropped", "frames_rendered",
))  # fmt: skip
"""Metrics that are whole numbers."""


def metrics(way: Way, length: float) -> Metrics:
    """The numbers of a way: counters as they stood at the end, rates by what was counted between first and last."""
    found: dict[str, float | None] = {}
    sender, receiver = way.sender, way.receiver
    ends = np.array([0.0, length])
    if sender is not None:
        wire = _within(sender, ends, "Sent")
        found |= {
            "sending_rate_bps": wire,
            "packets_sent": sender.total("packetsSent"),
            "bytes_sent": _bytes(sender, "Sent"),
            "retransmissions": sender.total("retransmittedPacketsSent"),
            "key_frames": sender.total("keyFramesEncoded"),
            "frames_encoded": sender.total("framesEncoded"),
            "nacks": sender.total("nackCount"),
            "plis": sender.total("pliCount"),
        }
        sources = Side(sender.of, sender.of.of_type("media-source"), sender.later_s)
        found["frames_sent"] = sources.total("frames")
        trips = [values for _, stat in remote(way) for _, values in [sender.at(stat, "roundTripTime")] if len(values)]
        if trips:
            found["round_trip_ms_mean"] = float(np.mean(np.concatenate(trips))) * 1e3
            found["round_trip_ms_max"] = float(np.max(np.concatenate(trips))) * 1e3
    if receiver is not None:
        found |= {
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
    found["loss_fraction"] = _loss(way)
    known = {name: value for name, value in found.items() if value is not None and math.isfinite(value)}
    return {
        "flow": way.name,
        "kind": "media",
        "controller": "recorded",
        "start_s": 0.0,
        "stop_s": length,
        **{name: max(int(value), 0) if name in COUNTS else float(value) for name, value in known.items()},
    }


def _bytes(side: Side, way: str) -> float | None:
    last = side.begins()[-1:]
    found = side.wire(last, way)
    return None if found is None else float(found[0])


def _within(side: Side, ends: Floats, way: str) -> float | None:
    """The rate over the time in which the side was read."""
    times = side.begins()
    first, last = max(float(times[0]), ends[0]), min(float(times[-1]), ends[1])
    counted = side.wire(np.array([first, last]), way) if last > first else None
    return None if counted is None else max(float(np.diff(counted)[0]) * 8 / (last - first), 0.0)


def _loss(way: Way) -> float | None:
    """Packets lost over those whose fate is known: by the receiver, else by its last reports and what was sent then."""
    lost = known = 0.0
    if way.receiver is not None:
        for stat in way.receiver.streams:
            gone, came = (way.receiver.at(stat, name)[1] for name in ("packetsLost", "packetsReceived"))
            if len(gone) and len(came):
                lost, known = lost + gone[-1], known + gone[-1] + came[-1]
    elif way.sender is not None:
        by_ssrc = {stat.last("ssrc"): stat for stat in way.sender.streams}
        for side, stat in remote(way):
            times, gone = side.at(stat, "packetsLost")
            own = by_ssrc.get(stat.last("ssrc"))
            sent = (np.empty(0), np.empty(0)) if own is None else way.sender.at(own, "packetsSent")
            if len(gone) and len(sent[0]):
                lost, known = lost + gone[-1], known + float(np.interp(times[-1], *sent))
    # RFC 3550 section 6.4.1: packets that came twice can make the count negative
    return max(lost, 0.0) / known if known > 0 else None
