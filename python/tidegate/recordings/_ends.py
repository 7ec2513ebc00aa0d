"""Counters of getStats at the two ends of a call: its directions, and their counters over time.

Names of members are those of W3C's Identifiers for WebRTC's Statistics API.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.errors import InputError
from tidegate.recordings._getstats import LONGEST_S
from tidegate.recordings._stats import Connection, Floats, Stat
from tidegate.wording import counted

UDP_IPV4, UDP_IPV6 = 28, 48
"""Bytes that UDP (RFC 768) and IP (RFC 791, RFC 8200) add to a packet."""

RTP_HEADER = 12
"""Bytes of an RTP header without extensions (RFC 3550 section 5.1)."""

LEAST_BIN_S, MOST_BINS = 0.2, 90_000

WAYS = ("outgoing", "incoming")


@dataclass(frozen=True)
class Side:
    """The streams of one kind of a connection."""

    connection: Connection
    streams: Sequence[Stat]
    later_s: float
    """Seconds from the file's times to the run's."""

    def at(self, stat: Stat, *names: str) -> tuple[Floats, Floats]:
        """Returns the first of these members that has numbers, with the run's times."""
        for name in names:
            times, values = stat.numbers(name)
            if len(times):
                return times + self.later_s, values
        return np.empty(0), np.empty(0)

    def total(self, *names: str) -> float | None:
        """Returns the sum of a counter over all streams at the end; None where no stream has it."""
        firsts = (
            next((last for name in names if (last := stat.last_number(name)) is not None), None)
            for stat in self.streams
        )
        ends = [last for last in firsts if last is not None]
        return float(sum(ends)) if ends else None

    def begins(self) -> Floats:
        """Returns the times of reports on its streams."""
        times = [stat.times() for stat in self.streams]
        return np.unique(np.concatenate([*times, np.empty(0)])) + self.later_s

    def counter(self, edges: Floats, *names: str) -> Floats | None:
        """Returns a counter's sum over all streams at given times, linear between reports; None where none has it."""
        begins, summed, is_counted = self.begins(), np.zeros(len(edges)), False
        for stat in self.streams:
            times, values = self.at(stat, *names)
            if not len(times):
                continue
            is_counted = True
            before = begins[begins < times[0]]
            if len(before):
                # a stream that came later has counted since the report before
                times, values = np.insert(times, 0, before[-1]), np.insert(values, 0, 0.0)
            summed += np.interp(edges, times, values)
        inside = (
            (edges >= begins[0] - 1e-9) & (edges <= begins[-1] + 1e-9) if len(begins) else np.zeros(len(edges), bool)
        )
        return np.where(inside, summed, np.nan) if is_counted else None

    def overhead(self) -> int:
        """Bytes that UDP and IP add, by the address of the pair in use."""
        pair = selected(self.connection)
        local = None if pair is None else self.connection.stats.get(str(pair.last("localCandidateId")))
        address = None if local is None else local.last("address") or local.last("ip")
        return UDP_IPV6 if isinstance(address, str) and ":" in address else UDP_IPV4

    def wire(self, edges: Floats, suffix: str) -> Floats | None:
        """Bytes of IP packets up to given times; `suffix` is Sent or Received."""
        counters = [self.counter(edges, f"{name}{suffix}") for name in ("bytes", "headerBytes", "packets")]
        payload, headers, packets = counters
        if payload is None or packets is None:
            return None
        return payload + (packets * RTP_HEADER if headers is None else headers) + packets * self.overhead()


@dataclass(frozen=True)
class Direction:
    """One direction of a call: the counters of its sender and of its receiver, where they are known."""

    name: str
    sender: Side | None
    receiver: Side | None

    @property
    def sides(self) -> list[Side]:
        """The known ends."""
        return [side for side in (self.sender, self.receiver) if side is not None]


def selected(connection: Connection) -> Stat | None:
    """Returns the candidate pair in use."""
    pairs = connection.of_type("candidate-pair")
    named = {pair.last("selectedCandidatePairId") for pair in connection.of_type("transport")}

    def rank(pair: Stat) -> tuple[bool, bool, float]:
        carried = sum(pair.last_number(name) or 0.0 for name in ("bytesSent", "bytesReceived"))
        return pair.id in named, pair.last("nominated") is True, carried

    return max(pairs, key=rank, default=None)


def ways(near: Connection, far: Connection | None) -> tuple[list[Direction], float]:
    """Returns the directions of a call with media, and the length of the recording in seconds.

    The run begins with the first report of the near end; the far one's times are brought to it by Unix time.

    Raises:
        InputError: when there are too few reports.
    """
    begin = begins(near)
    if not math.isfinite(begin):
        raise InputError("found no packet in the counters; expected getStats of a call with media")
    near_sides = _sides(near, -begin)
    far_sides: dict[str, Side] = {}
    if far is not None:
        if near.unix_s is None or far.unix_s is None:
            raise InputError("the clocks of the two files cannot be aligned; expected the key timestamp in both files")
        far_sides = _sides(far, far.unix_s - near.unix_s - begin)
    both = [
        Direction(WAYS[0], near_sides.get("outbound-rtp"), far_sides.get("inbound-rtp")),
        Direction(WAYS[1], far_sides.get("outbound-rtp"), near_sides.get("inbound-rtp")),
    ]
    directions = [direction for direction in both if direction.sides]
    length = max((float(side.begins()[-1]) for direction in directions for side in direction.sides), default=0.0)
    if length > LONGEST_S:
        raise InputError(f"the times of the two ends lie {length / 86_400:.0f} days apart; expected at most 7")
    if not length > 0:
        raise InputError("found one report; rates need the counters of at least two")
    return directions, length


def begins(connection: Connection) -> float:
    """Returns the time of the first report of a connection, by its file's clock."""
    return min(
        (float(times[0]) for side in _sides(connection, 0.0).values() if len(times := side.begins())), default=math.inf
    )


def guesses(direction: Direction) -> list[str]:
    """Returns sentences on assumed sizes that were not counted, and on counters that began anew."""
    lacking = [
        side
        for side, member in ((direction.sender, "headerBytesSent"), (direction.receiver, "headerBytesReceived"))
        if side is not None and side.total(member) is None
    ]
    sentences = [f"headers were not counted; {RTP_HEADER} bytes per packet are assumed"] if lacking else []
    anew = sum(stat.resets() > 0 for side in direction.sides for stat in side.streams)
    if anew:
        sentences.append(f"the counters of {counted(anew, 'stream')} began anew and are added up")
    return sentences


def _sides(connection: Connection, later: float) -> dict[str, Side]:
    streams_of = {kind: connection.of_type(kind) for kind in ("outbound-rtp", "inbound-rtp")}
    sides = {kind: Side(connection, streams, later) for kind, streams in streams_of.items()}
    # a stream that is announced and carries nothing, of a track that only goes the other way, is none
    return {kind: side for kind, side in sides.items() if side.total("packetsSent", "packetsReceived")}


def bins(directions: Sequence[Direction], length: float) -> Floats:
    """Returns the edges of the bins of the series, as wide as the median distance of reports."""
    times = [side.begins() for direction in directions for side in direction.sides]
    apart = min((float(np.median(np.diff(series))) for series in times if len(series) > 1), default=length)
    width = max(LEAST_BIN_S, round(apart, 1), length / MOST_BINS)
    # the last bin includes the rest, so that no bin is too short to have a rate
    return np.append(np.arange(max(1, round(length / width))) * width, length)


def reported(direction: Direction) -> Side | None:
    """Returns the far end's receiver reports at the sender."""
    if direction.sender is None:
        return None
    about = direction.sender.connection.of_type("remote-inbound-rtp")
    return Side(direction.sender.connection, about, direction.sender.later_s) if about else None


def in_use(direction: Direction) -> list[tuple[Side, Stat]]:
    pair = None if direction.sender is None else selected(direction.sender.connection)
    return [] if direction.sender is None or pair is None else [(direction.sender, pair)]


def remote(direction: Direction) -> list[tuple[Side, Stat]]:
    reports = reported(direction)
    return [] if reports is None else [(reports, stat) for stat in reports.streams]
