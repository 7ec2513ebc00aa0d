"""Observations of bandwidth estimators in the challenge of MMSys 2024: 15 features over ten monitor intervals (MI).

Khairy et al., "ACM MMSys 2024 Bandwidth Estimation in Real Time Communications Challenge", MMSys 2024; the definitions
are those of the page of its data set
(www.microsoft.com/en-us/research/academic-program/bandwidth-estimation-challenge/data), names of inputs and outputs
those of `torch_policy.py` in github.com/microsoft/RL4BandwidthEstimationChallenge. `docs/learned.md` says what these
leave open.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from tidegate.control import Arrived
from tidegate.control.learned._receiving import SendTimes

INTERVAL_NS = 60_000_000
"""A short MI, and the time from one observation to the next: 60 ms."""
SHORT_IN_LONG = 10
"""Short MIs in a long one of 600 ms."""
SLOTS = 5
"""MIs of each kind, the most recent first."""
BASE_DELAY_MS = 200
"""The delay that the first packet is taken to have, and that the delay feature is relative to: clocks of sender and
receiver are not synchronised (the page has "a fixed base delay of 200ms"; OpenNetLab gym `packet_record.py`
`base_delay_ms`)."""

FEATURES: tuple[tuple[str, str, str], ...] = (
    ("receiving rate", "bit/s", "rate at which data arrives"),
    ("received packets", "packets", "number of packets that arrive"),
    ("received bytes", "bytes", "number of bytes that arrive"),
    ("queuing delay", "ms", "mean delay minus the smallest delay so far"),
    ("delay", "ms", "mean delay minus 200 ms"),
    ("minimum seen delay", "ms", "smallest delay so far"),
    ("delay ratio", "", "mean delay divided by the smallest delay in the same MI"),
    ("delay average minimum difference", "ms", "mean delay minus the smallest delay in the same MI"),
    ("interarrival time", "ms", "mean time from one arrival to the next"),
    ("jitter", "ms", "standard deviation of the time from one arrival to the next"),
    ("packet loss ratio", "", "share of packets lost, of packets lost and received"),
    ("average number of lost packets", "packets", "mean length of a gap in the sequence numbers"),
    ("video packets probability", "", "share of video in the packets received"),
    ("audio packets probability", "", "share of audio in the packets received"),
    ("probing packets probability", "", "share of probes in the packets received"),
)
"""Name, unit and meaning of each feature, in their order. In an MI without packets all are zero but the minimum seen
delay."""

COUNT = len(FEATURES) * 2 * SLOTS
"""Numbers in an observation: 150. Feature f of MI k is at 10 f + k, short MIs before long ones."""

_AUDIO, _PADDING = 111, 127  # payload types of our calls (`crates/endpoint/src/settings/mod.rs`)
_MS = 1e6  # nanoseconds
_BASE = BASE_DELAY_MS * 10**6


@dataclass(slots=True)
class _Interval:
    """Arrivals in a short MI, in whole nanoseconds and bytes, so that sums over MIs are exact."""

    packets: int = 0
    size: int = 0
    delay: int = 0
    """Sum over packets."""
    least: int = 0
    """Least delay, if there are packets."""
    gap: int = 0
    """Time from the packet before to the first one of this MI, if there is a packet before."""
    gaps: int = 0
    """Sum of the times between two arrivals."""
    squares: int = 0
    """Sum of their squares."""
    lost: int = 0
    losses: int = 0
    """Gaps in the sequence numbers."""
    audio: int = 0
    probing: int = 0
    least_so_far: int = 0
    """Least delay of all packets until its end; zero before the first packet."""


class Observer:
    """Makes observations from arriving packets.

    >>> observer = Observer()
    >>> for number in range(3):
    ...     stamp = number * 2621  # every 10 ms, in 2^-18 s
    ...     observer.hear((20 + 10 * number) * 10**6, Arrived(number, 1000, stamp))
    >>> observation = observer.close()
    >>> observation.shape, [float(observation[feature * 10]) for feature in (0, 1, 2, 8)]
    ((150,), [400000.0, 3.0, 3000.0, 10.0])
    """

    def __init__(self) -> None:
        self._closed: deque[_Interval] = deque([_Interval()] * (SLOTS * SHORT_IN_LONG), maxlen=SLOTS * SHORT_IN_LONG)
        """The newest first."""
        self._open = _Interval()
        self._times = SendTimes()
        self._first: int | None = None
        """Difference of the two clocks at the first packet, less its assumed delay of 200 ms."""
        self._last: int | None = None
        """When the last packet arrived."""
        self._highest: dict[int, int] = {}
        """The highest sequence number of each stream."""

    def hear(self, now_ns: int, packet: Arrived) -> None:
        """A packet has arrived that says when it was sent."""
        mi = self._open
        difference = now_ns - SendTimes.ns(self._times.ticks(packet.abs_send_time or 0))
        if self._first is None:
            self._first = difference - _BASE
            mi.least_so_far = _BASE
        delay = difference - self._first
        if self._last is not None:
            gap = now_ns - self._last
            if mi.packets:
                mi.gaps += gap
                mi.squares += gap * gap
            else:
                mi.gap = gap
        self._last = now_ns
        mi.least = min(mi.least, delay) if mi.packets else delay
        mi.least_so_far = min(mi.least_so_far, delay)
        mi.packets += 1
        mi.size += packet.size
        mi.delay += delay
        mi.audio += packet.payload_type == _AUDIO
        mi.probing += packet.payload_type == _PADDING
        highest = self._highest.setdefault(packet.ssrc, packet.rtp_sequence)
        missing = packet.rtp_sequence - highest - 1
        if missing > 0:
            mi.lost += missing
            mi.losses += 1
        self._highest[packet.ssrc] = max(highest, packet.rtp_sequence)

    def close(self) -> npt.NDArray[np.float32]:
        """Ends the present short MI.

        Returns:
            The observation at its end: 150 numbers.
        """
        self._closed.appendleft(self._open)
        self._open = _Interval(least_so_far=self._open.least_so_far)
        columns = [_features([mi], 1) for mi in islice(self._closed, SLOTS)]
        for slot in range(SLOTS):
            intervals = islice(self._closed, slot * SHORT_IN_LONG, (slot + 1) * SHORT_IN_LONG)
            columns.append(_features(list(intervals), SHORT_IN_LONG))
        return np.array(columns, np.float64).T.reshape(-1).astype(np.float32)


def _features(newest_first: Iterable[_Interval], length: int) -> list[float]:
    """The features of an MI that is made of short ones."""
    intervals = list(newest_first)
    busy = [mi for mi in reversed(intervals) if mi.packets]
    least_so_far = intervals[0].least_so_far
    if not busy:
        return [0.0] * 5 + [least_so_far / _MS] + [0.0] * 9
    packets = sum(mi.packets for mi in busy)
    size = sum(mi.size for mi in busy)
    delay = sum(mi.delay for mi in busy) / packets
    least = min(mi.least for mi in busy)
    # the time before the first packet of all is of no two packets of this MI
    between = [mi.gap for mi in busy[1:]]
    gaps = packets - 1
    total = sum(mi.gaps for mi in busy) + sum(between)
    squares = sum(mi.squares for mi in busy) + sum(gap * gap for gap in between)
    deviation = math.sqrt(gaps * squares - total * total) / gaps if gaps else 0.0
    lost, losses = sum(mi.lost for mi in busy), sum(mi.losses for mi in busy)
    audio, probing = sum(mi.audio for mi in busy), sum(mi.probing for mi in busy)
    return [
        size * 8 * 1e9 / (length * INTERVAL_NS),
        float(packets),
        float(size),
        (delay - least_so_far) / _MS,
        (delay - _BASE) / _MS,
        least_so_far / _MS,
        delay / least if least > 0 else 0.0,
        (delay - least) / _MS,
        total / gaps / _MS if gaps else 0.0,
        deviation / _MS,
        lost / (lost + packets),
        lost / losses if losses else 0.0,
        (packets - audio - probing) / packets,
        audio / packets,
        probing / packets,
    ]
