"""How much the flows of a run send at most: in packets, and in rows of tables beside those."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tidegate._core import Trace
from tidegate.scenario.ways import SECOND, Capacities, Ir, Steps, Ways, over

# seen in runs
_MEDIA_ROWS = 485  # a second and flow with media, beside reports: internals, frames, feedback, decisions
_TCP_ROWS = 0.7  # a packet: internals of each acknowledgment
_REPORT_BITS = 360_000  # of the session bandwidth, between two reports of an end (RFC 3550 section 6.2)
_RTCP_SHARE = 0.05  # of a session's bandwidth, for RTCP of all members (RFC 3550 section 6.2)
_RTCP_BYTES = 76  # of a packet of RTCP in a session
_RTP_BYTES = 20  # of a packet, beside what its flow says of headers
_FILLED = 1.05  # a file with the headers of its segments, by its size


def flows_of(ir: Ir) -> Iterator[tuple[str, Ir]]:
    """The flows, each with its kind."""
    for flow in ir["flows"]:
        kind = flow["kind"]
        yield kind if isinstance(kind, str) else next(iter(kind)), flow


@dataclass(frozen=True)
class _Sender:
    """One that takes no more than there is."""

    settings: Ir
    begin: int
    end: int
    there: Sequence[str]
    """What its packets cross."""
    back: Sequence[str]
    """What the answers cross."""


class Sending:
    """What the flows of a run send at most.

    UDP and senders of a fixed rate send what they are told to, whatever is dropped. Other calls share what their
    bottleneck carries, and so do connections, of which none exceeds its receive window. A connection that nothing
    limits is not counted.
    """

    def __init__(self, ir: Ir, traces: Sequence[Trace]) -> None:
        self._ir, self._end = ir, int(ir["duration"])
        self._ways, self._capacities = Ways(ir), Capacities(ir, traces)
        self._names: dict[tuple[str, str], list[str]] = {}
        self._delays = {link["name"]: int(link["settings"]["delay"]) for link in ir["links"]}
        self._jittery = {link["name"] for link in ir["links"] if link["settings"]["jitter"] != "none"}
        self._running: dict[tuple[str, bool], int] = {}
        for move in ir.get("moves", ()):
            if "delay" in move:
                self._delays[move["link"]] = min(self._delays.get(move["link"], 0), int(move["delay"]))
            elif "running" in move:
                self._running[move["flow"], move["running"]] = int(move["time"])

    def counts(self) -> Iterator[tuple[float, float]]:
        """Packets and rows, flow by flow and session by session."""
        calls: list[_Sender] = []
        connections: list[_Sender] = []
        for kind, flow in flows_of(self._ir):
            begin, end = self._stretch(flow)
            if begin >= end or isinstance(flow["kind"], str):
                continue
            settings, ends = flow["kind"][kind], (flow["from"], flow["to"])
            if kind == "udp":
                yield _of_udp(settings, end - begin), 0.0
            elif kind == "media" and settings["controller"]["name"] == "fixed":
                yield _of_media(settings, end - begin, math.inf)
            elif kind in ("media", "tcp"):
                one = _Sender(settings, begin, end, self._on_way(*ends), self._on_way(*ends[::-1]))
                (calls if kind == "media" else connections).append(one)
        yield from (_of_session(session, self._end) for session in self._ir.get("sessions", ()))
        # whether connections leave something to calls is not known
        for one, bits in self._shared(calls, self._of_call):
            yield _of_media(one.settings, one.end - one.begin, bits)
        for one, bits in self._shared(connections, self._of_connection):
            # a segment and its acknowledgment
            packets = over(bits / 8, one.settings["packet_size"]) * (1.5 if one.settings["delayed_ack"] else 2)
            yield packets, _TCP_ROWS * packets if self._spreads(one) else 0.0

    def _stretch(self, flow: Ir) -> tuple[int, int]:
        """From when to when a flow sends; moves stand for its start and stop."""
        begin, stop = int(flow["start"]), int(flow["stop"] or self._end)
        begin, stop = self._running.get((flow["name"], True), begin), self._running.get((flow["name"], False), stop)
        return begin, min(stop, self._end)

    def _on_way(self, begin: str, end: str) -> list[str]:
        """The names of what carries packets from one point to another."""
        if (begin, end) not in self._names:
            links = [link["name"] for link in self._ways.between(begin, end)]
            up, down = self._capacities.air(begin, "up"), self._capacities.air(end, "down")
            self._names[begin, end] = [*up, *links, *down]
        return self._names[begin, end]

    def _carried(self, way: Sequence[str], begin: int, end: int) -> float:
        """Bits that a way carries: those of its bottleneck."""
        return min((self._capacities.amount(name, begin, end) for name in way), default=math.inf)

    def _shared(self, senders: Sequence[_Sender], alone: Callable[[_Sender], float]) -> Iterator[tuple[_Sender, float]]:
        """Of each sender the bits, where those that share a link send together what that carries."""
        crossing = Counter(chain.from_iterable(one.there for one in senders))
        sharing: dict[str, list[_Sender]] = {}
        for one in senders:
            if not one.there:
                yield one, alone(one)  # the engine says what is wrong with its ends
                continue
            shares = {name: self._capacities.amount(name, one.begin, one.end) / crossing[name] for name in one.there}
            # any link on its way is a bound; the one with the least for each is the closest
            sharing.setdefault(min(shares, key=lambda name: shares[name]), []).append(one)
        for name, those in sharing.items():
            bits = [alone(one) for one in those]
            first, last = min(one.begin for one in those), max(one.end for one in those)
            part = min(1.0, self._capacities.amount(name, first, last) / max(sum(bits), 1.0))
            yield from zip(those, (part * some for some in bits), strict=True)

    def _of_call(self, one: _Sender) -> float:
        """Bits that a call sends with no other beside it."""
        most = float(one.settings["max_rate"]) * (one.end - one.begin) / SECOND
        return min(most, self._carried(one.there, one.begin, one.end))

    def _of_connection(self, one: _Sender) -> float:
        """Bits that a connection sends with no other beside it."""
        tcp, seconds = one.settings, (one.end - one.begin) / SECOND
        round_trip = sum(self._delays.get(name, 0) for name in (*one.there, *one.back)) / SECOND
        window = 8.0 * tcp["receive_window"] * seconds / round_trip if round_trip else math.inf
        bits = min(self._carried(one.there, one.begin, one.end), window, _work(tcp["workload"], seconds))
        return bits if bits < math.inf else 0.0

    def _spreads(self, one: _Sender) -> bool:
        """Whether acknowledgments come one by one: those of one instant, off links without limit, are noted once."""
        way = (*one.there, *one.back)
        return not self._jittery.isdisjoint(way) or self._carried(way, one.begin, one.end) < math.inf


def _of_media(media: Ir, length: int, bits: float) -> tuple[float, float]:
    """Packets and rows of a call that sends so many bits, or without an end of them what it may."""
    seconds, feedback, most = length / SECOND, media["feedback"], float(media["max_rate"])
    if media["controller"]["name"] == "fixed":
        most = min(most, float(media["controller"]["settings"].get("rate", media["start_rate"])))
    reports = 2 * seconds * (feedback["bandwidth"] or media["max_rate"]) / _REPORT_BITS
    if feedback["reports"] is not None:
        reports = over(2 * length, feedback["reports"])
    packets = min(most * seconds, bits) / 8 / (media["payload"] + media["overhead"] + _RTP_BYTES)
    return packets + reports, _MEDIA_ROWS * seconds + reports


def _of_udp(udp: Ir, length: int) -> float:
    """Packets of UDP."""
    bits = float(udp["rate"]) * length / SECOND
    if udp["schedule"] and udp["pattern"] == "cbr":
        bits = Steps(udp["schedule"]).amount(0, length)
    return over(bits / 8, udp["packet_size"])


def _of_session(session: Ir, end: int) -> tuple[float, float]:
    """Packets and rows of a session: a packet goes to each of the other members."""
    reports = _RTCP_SHARE * session["bandwidth"] * end / SECOND / 8 / _RTCP_BYTES
    packets = reports
    for member in session["members"]:
        seconds = max(min(member["leave"] or end, end) - member["join"], 0) / SECOND
        match member["media"]:
            case {"packets": {"rate": rate, "packet_size": size}}:
                packets += over(rate / 8, size) * seconds
            case {"segments": {"fps": fps, "segments": segments}}:
                packets += fps * segments * seconds
    return packets * (len(session["members"]) - 1), reports


def _work(workload: Any, seconds: float) -> float:
    """Bits that a connection has to send."""
    match workload:
        case {"file": size}:
            return 8 * _FILLED * float(size)
        case {"web": {"max": size, "idle": idle}}:
            downloads = over(seconds * SECOND, idle)
            return 8 * _FILLED * float(size) * (1 + downloads + 3 * math.sqrt(downloads))
    return math.inf
