"""What the two ends of a call counted by getStats: its ways, and their counters over time.

Names of members are those of W3C's Identifiers for WebRTC's Statistics API.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.errors import InputError
from tidegate.recordings._getstats import LONGEST_S, Connection, Floats, Stat

UDP_IPV4, UDP_IPV6 = 28, 48
"""Bytes that UDP (RFC 768) and IP (RFC 791, RFC 8200) add to a packet."""

RTP_HEADER = 12
"""Bytes of an RTP header without extensions (RFC 3550 section 5.1)."""

LEAST_BIN_S, MOST_BINS = 0.2, 90_000

WAYS = ("outgoing", "incoming")


@dataclass(frozen=True)
class Side:
    """The streams of one kind of a connection."""

    of: Connection
    streams: Sequence[Stat]
    later_s: float
    """What is added to the file's times, so that they are the run's."""

    def at(self, stat: Stat, *names: str) -> tuple[Floats, Floats]:
        """A member that is a number, by the run's times: the first of these that there is."""
        for name in names:
            times, values = stat.numbers(name)
            if len(times):
                return times + self.later_s, values
        return np.empty(0), np.empty(0)

    def total(self, *names: str) -> float | None:
        """The sum of a counter over all streams, at the end; None where none has it."""
        ends = [values[-1] for stat in self.streams for _, values in [self.at(stat, *names)] if len(values)]
        return float(sum(ends)) if ends else None

    def begins(self) -> Floats:
        """When anything was read of its streams."""
        longest = (max((series for series, _ in stat.members.values()), key=len, default=[]) for stat in self.streams)
        times = {at for series in longest for at in series}
        return np.array(sorted(times)) + self.later_s

    def counter(self, edges: Floats, *names: str) -> Floats | None:
        """The sum of a counter over all streams at given times, evenly between reports; None where none has it."""
        begins, summed, found = self.begins(), np.zeros(len(edges)), False
        for stat in self.streams:
            times, values = self.at(stat, *names)
            if not len(times):
                continue
            found = True
            before = begins[begins < times[0]]
            if len(before):
                # a stream that came later has counted since the report before
                times, values = np.insert(times, 0, before[-1]), np.insert(values, 0, 0.0)
            summed += np.interp(edges, times, values)
        known = (
            (edges >= begins[0] - 1e-9) & (edges <= begins[-1] + 1e-9) if len(begins) else np.zeros(len(edges), bool)
        )
        return np.where(known, summed, np.nan) if found else None

    def overhead(self) -> int:
        """Bytes that UDP and IP add, by the address of the pair in use."""
        pair = selected(self.of)
        local = None if pair is None else self.of.stats.get(str(pair.last("localCandidateId")))
        address = None if local is None else local.last("address") or local.last("ip")
        return UDP_IPV6 if isinstance(address, str) and ":" in address else UDP_IPV4

    def wire(self, edges: Floats, way: str) -> Floats | None:
        """Bytes of IP packets up to given times; `way` is Sent or Received."""
        counted = [self.counter(edges, f"{name}{way}") for name in ("bytes", "headerBytes", "packets")]
        payload, headers, packets = counted
        if payload is None or packets is None:
            return None
        return payload + (packets * RTP_HEADER if headers is None else headers) + packets * self.overhead()


@dataclass(frozen=True)
class Way:
    """One way of a call: what its sender counted, and its receiver, where they are known."""

    name: str
    sender: Side | None
    receiver: Side | None

    @property
    def sides(self) -> list[Side]:
        """Those that are known."""
        return [one for one in (self.sender, self.receiver) if one is not None]


def selected(of: Connection) -> Stat | None:
    """The candidate pair that packets take."""
    pairs = of.of_type("candidate-pair")
    named = {one.last("selectedCandidatePairId") for one in of.of_type("transport")}

    def rank(one: Stat) -> tuple[bool, bool, float]:
        carried = sum(
            values[-1] for name in ("bytesSent", "bytesReceived") for _, values in [one.numbers(name)] if len(values)
        )
        return one.id in named, one.last("nominated") is True, carried

    return max(pairs, key=rank, default=None)


def ways(near: Connection, far: Connection | None) -> tuple[list[Way], float]:
    """The ways of a call that there are, and how long it was recorded, in seconds.

    The run begins with the first report of the near end; the far one's times are brought to it by Unix time.

    Raises:
        InputError: when there are too few reports.
    """
    begin = begins(near)
    if not math.isfinite(begin):
        raise InputError("found no packet that was counted; expected getStats of a call with media")
    own = _sides(near, -begin)
    other: dict[str, Side] = {}
    if far is not None:
        if near.unix_s is None or far.unix_s is None:
            raise InputError(
                "nothing tells how the clocks of the two files stand to each other; expected timestamp in each"
            )
        other = _sides(far, far.unix_s - near.unix_s - begin)
    found = [
        Way(WAYS[0], own.get("outbound-rtp"), other.get("inbound-rtp")),
        Way(WAYS[1], other.get("outbound-rtp"), own.get("inbound-rtp")),
    ]
    kept = [way for way in found if way.sides]
    length = max((float(side.begins()[-1]) for way in kept for side in way.sides), default=0.0)
    if length > LONGEST_S:
        raise InputError(f"the two ends' times lie {length / 86_400:.0f} days apart; expected at most 7")
    if not length > 0:
        raise InputError("found one report; expected at least two, from whose counters rates come")
    return kept, length


def begins(of: Connection) -> float:
    """When the first report of a connection was made, by its file's time."""
    return min((float(times[0]) for one in _sides(of, 0.0).values() if len(times := one.begins())), default=math.inf)


def guesses(way: Way) -> list[str]:
    """What sizes rest on that was not counted: sentences."""
    lacking = [
        side
        for side, told in ((way.sender, "headerBytesSent"), (way.receiver, "headerBytesReceived"))
        if side is not None and side.total(told) is None
    ]
    return [f"headers were not counted; {RTP_HEADER} bytes a packet are taken"] if lacking else []


def _sides(of: Connection, later: float) -> dict[str, Side]:
    found = {kind: of.of_type(kind) for kind in ("outbound-rtp", "inbound-rtp")}
    sides = {kind: Side(of, streams, later) for kind, streams in found.items()}
    # a stream that is announced and carries nothing, of a track that only goes the other way, is none
    return {kind: one for kind, one in sides.items() if one.total("packetsSent", "packetsReceived")}


def bins(all_ways: Sequence[Way], length: float) -> Floats:
    """Edges of the bins of the series: as wide as reports usually are apart."""
    times = [side.begins() for way in all_ways for side in way.sides]
    apart = min((float(np.median(np.diff(one))) for one in times if len(one) > 1), default=length)
    width = max(LEAST_BIN_S, round(apart, 1), length / MOST_BINS)
    # the last one takes in what is left, so that none is too short to have a rate
    return np.append(np.arange(max(1, round(length / width))) * width, length)


def reported(way: Way) -> Side | None:
    """What the far end's receiver reports told the sender."""
    if way.sender is None:
        return None
    about = way.sender.of.of_type("remote-inbound-rtp")
    return Side(way.sender.of, about, way.sender.later_s) if about else None


def in_use(way: Way) -> list[tuple[Side, Stat]]:
    pair = None if way.sender is None else selected(way.sender.of)
    return [] if way.sender is None or pair is None else [(way.sender, pair)]


def remote(way: Way) -> list[tuple[Side, Stat]]:
    found = reported(way)
    return [] if found is None else [(found, one) for one in found.streams]
