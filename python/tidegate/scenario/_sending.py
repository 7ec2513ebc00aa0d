"""Upper bounds for the packets that a run's flows send, and for the rows of other tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from tidegate._core import Trace
from tidegate.scenario.ways import SECOND, Capacities, Ir, Steps, Ways, over

# measured in runs
_MEDIA_ROWS = 485  # per second and flow with media, apart from reports: internals, frames, feedback, decisions
_TCP_ROWS = 0.7  # per packet: internals of each acknowledgment
_REPORT_BITS = 360_000  # session bandwidth times interval, between two reports of an end (RFC 3550 section 6.2)
_AUDIO_REPORT_S = 5  # between two reports of an end on audio alone, by libwebrtc's rule (rtp_rtcp_impl2.cc)
_RTCP_SHARE = 0.05  # of a session's bandwidth, for RTCP of all members (RFC 3550 section 6.2)
_RTCP_BYTES = 76  # of an RTCP packet in a session
_RTP_BYTES = 20  # of a packet, on top of the overhead that its flow states
_FILLED = 1.05  # bytes of a file with the headers of its segments, over its size


def flows_of(ir: Ir) -> Iterator[tuple[str, Ir]]:
    """Yields each flow with its kind."""
    for flow in ir["flows"]:
        kind = flow["kind"]
        yield kind if isinstance(kind, str) else next(iter(kind)), flow


@dataclass(frozen=True)
class _Sender:
    """A flow whose bits the links on its route bound: a call or a connection."""

    settings: Ir
    begin: int
    end: int
    out: Sequence[str]
    """Names of the links that its packets cross."""
    back: Sequence[str]
    """Names of the links that the answers cross."""


class Sending:
    """Upper bounds for the packets that the flows of a run send.

    UDP and senders of a fixed rate send at their rate, however much is dropped. Other calls share the capacity of their
    bottleneck. So do connections, and none of these exceeds its receive window. A connection without any limit is not
    counted.
    """

    def __init__(self, ir: Ir, traces: Sequence[Trace]) -> None:
        self._ir, self._end = ir, int(ir["duration"])
        self._ways, self._capacities = Ways(ir), Capacities(ir, traces)
        self._names: dict[tuple[str, str], list[str]] = {}
        self._delays = {link["name"]: _least_delay(link["settings"]) for link in ir["links"]}
        self._jittery = {link["name"] for link in ir["links"] if _is_jittery(link["settings"])}
        self._running: dict[tuple[str, bool], int] = {}
        self._most: dict[str, int] = {}
        for move in ir.get("moves", ()):
            change = move.get("change", {})
            if "delay" in change or "netem" in change:
                self._delays[move["link"]] = min(self._delays.get(move["link"], 0), int(change.get("delay", 0)))
            if _is_jittery(change):
                self._jittery.add(move["link"])
            if most := move.get("limits", {}).get("max_rate"):
                self._most[move["flow"]] = max(most, self._most.get(move["flow"], 0))
            if "running" in move:
                self._running[move["flow"], move["running"]] = int(move["time"])
        self._paths = _moved_paths(ir)

    def counts(self) -> Iterator[tuple[float, float]]:
        """Yields packets and rows, flow by flow and session by session."""
        calls: list[_Sender] = []
        connections: list[_Sender] = []
        for kind, flow in flows_of(self._ir):
            begin, end = self._span(flow)
            if begin >= end or isinstance(flow["kind"], str):
                continue
            settings, ends = flow["kind"][kind], (flow["from"], flow["to"])
            if flow["name"] in self._most:
                settings = {**settings, "max_rate": max(settings["max_rate"], self._most[flow["name"]])}
            if kind == "udp":
                yield _udp_packets(settings, end - begin), 0.0
            elif kind == "media" and settings["controller"]["name"] == "fixed":
                yield _media_counts(settings, end - begin, math.inf)
            elif kind in ("media", "tcp"):
                ways = self._names_between(*ends), self._names_between(*ends[::-1])
                senders = calls if kind == "media" else connections
                senders += self._by_path(_Sender(settings, begin, end, *ways), flow["name"])
        yield from (_session_counts(session, self._end) for session in self._ir.get("sessions", ()))
        # calls and connections are counted apart: how they share a link is not known
        for sender, bits in self._share(calls, self._call_bits):
            yield _media_counts(sender.settings, sender.end - sender.begin, bits)
        for sender, bits in self._share(connections, self._connection_bits):
            # a segment and its acknowledgment
            packets = over(bits / 8, sender.settings["packet_size"]) * (1.5 if sender.settings["delayed_ack"] else 2)
            yield packets, _TCP_ROWS * packets if self._is_spread_out(sender) else 0.0

    def _span(self, flow: Ir) -> tuple[int, int]:
        """Start and end of a flow in ns; moves override its `start` and `stop`."""
        begin, stop = int(flow["start"]), int(flow["stop"] or self._end)
        begin, stop = self._running.get((flow["name"], True), begin), self._running.get((flow["name"], False), stop)
        return begin, min(stop, self._end)

    def _by_path(self, sender: _Sender, flow: str) -> Iterator[_Sender]:
        """The sender in each of the times in which it has one path."""
        for time, out, back in self._paths.get(flow, ()):
            if sender.begin < time < sender.end:
                yield replace(sender, end=time)
            if time < sender.end:
                sender = replace(sender, begin=max(time, sender.begin), out=out, back=back)
        yield sender

    def _names_between(self, begin: str, end: str) -> list[str]:
        """Names of the links and radio channels from one point to another."""
        if (begin, end) not in self._names:
            links = [link["name"] for link in self._ways.between(begin, end)]
            up, down = self._capacities.air(begin, "up"), self._capacities.air(end, "down")
            self._names[begin, end] = [*up, *links, *down]
        return self._names[begin, end]

    def _bottleneck_bits(self, names: Sequence[str], begin: int, end: int) -> float:
        """Bits that the bottleneck among the named links carries."""
        return min((self._capacities.amount(name, begin, end) for name in names), default=math.inf)

    def _share(
        self, senders: Sequence[_Sender], bits_alone: Callable[[_Sender], float]
    ) -> Iterator[tuple[_Sender, float]]:
        """Yields each sender's bits; senders that share a link together send no more than it carries."""
        crossing = Counter(chain.from_iterable(sender.out for sender in senders))
        sharing: dict[str, list[_Sender]] = {}
        for sender in senders:
            if not sender.out:
                yield sender, bits_alone(sender)  # the engine says what is wrong with its ends
                continue
            shares = {
                name: self._capacities.amount(name, sender.begin, sender.end) / crossing[name] for name in sender.out
            }
            # each link on the route is a bound; the tightest is the one with the smallest share
            sharing.setdefault(min(shares, key=lambda name: shares[name]), []).append(sender)
        for name, sharers in sharing.items():
            bits = [bits_alone(sender) for sender in sharers]
            first, last = min(sender.begin for sender in sharers), max(sender.end for sender in sharers)
            ratio = min(1.0, self._capacities.amount(name, first, last) / max(sum(bits), 1.0))
            yield from zip(sharers, (ratio * sender_bits for sender_bits in bits), strict=True)

    def _call_bits(self, sender: _Sender) -> float:
        """Bits that a call sends when it is alone."""
        limit = float(sender.settings["max_rate"]) * (sender.end - sender.begin) / SECOND
        return min(limit, self._bottleneck_bits(sender.out, sender.begin, sender.end))

    def _connection_bits(self, sender: _Sender) -> float:
        """Bits that a connection sends when it is alone."""
        tcp, seconds = sender.settings, (sender.end - sender.begin) / SECOND
        round_trip = sum(self._delays.get(name, 0) for name in (*sender.out, *sender.back)) / SECOND
        window = 8.0 * tcp["receive_window"] * seconds / round_trip if round_trip else math.inf
        bits = min(
            self._bottleneck_bits(sender.out, sender.begin, sender.end),
            window,
            _workload_bits(tcp["workload"], seconds),
        )
        return bits if bits < math.inf else 0.0

    def _is_spread_out(self, sender: _Sender) -> bool:
        """Whether acknowledgments arrive at different times; several of one instant (unlimited links) make one row."""
        names = (*sender.out, *sender.back)
        return not self._jittery.isdisjoint(names) or self._bottleneck_bits(names, sender.begin, sender.end) < math.inf


def _least_delay(settings: Ir) -> int:
    """The shortest delay of a link in ns: its own, and that of an emulator less what its tables take off at most."""
    netem = settings.get("netem") or {}
    return int(settings["delay"]) + max(0, int(netem.get("delay", 0)) - 4 * int(netem.get("jitter", 0)))


def _is_jittery(settings: Ir) -> bool:
    """Whether packets that are served together arrive at different times."""
    return settings.get("jitter", "none") != "none" or bool((settings.get("netem") or {}).get("jitter"))


def _moved_paths(ir: Ir) -> dict[str, list[tuple[int, list[str], list[str]]]]:
    """For each flow the times at which its path changes, in order, with the links of its packets and of the answers."""
    pairs = {flow["name"]: flow["kind"]["media"]["pair"] for kind, flow in flows_of(ir) if kind == "media"}
    paths: dict[str, list[tuple[int, list[str], list[str]]]] = {}
    for move in sorted((move for move in ir.get("moves", ()) if "path" in move), key=lambda move: int(move["time"])):
        ways = move["path"], move["back"]
        paths.setdefault(move["flow"], []).append((int(move["time"]), *ways))
        if pair := pairs.get(move["flow"]):
            paths.setdefault(pair, []).append((int(move["time"]), *ways[::-1]))
    return paths


def _media_counts(media: Ir, length: int, bits: float) -> tuple[float, float]:
    """Packets and rows of a call that sends `bits`, or at its largest rate where `bits` is infinite."""
    seconds, feedback, most = length / SECOND, media["feedback"], float(media["max_rate"])
    if media["controller"]["name"] == "fixed":
        most = min(most, float(media["controller"]["settings"].get("rate", media["start_rate"])))
    match feedback["reports"]:
        case "rfc3550":
            reports = 2 * seconds * (feedback["bandwidth"] or media["max_rate"]) / _REPORT_BITS
        case "libwebrtc":
            reports = _libwebrtc_reports(media, seconds, min(most, bits / seconds))
        case interval:
            reports = over(2 * length, interval)
    packets = min(most * seconds, bits) / 8 / (media["payload"] + media["overhead"] + _RTP_BYTES)
    return packets + reports, _MEDIA_ROWS * seconds + reports


def _libwebrtc_reports(media: Ir, seconds: float, rate: float) -> float:
    """Reports of both ends of a call by libwebrtc's rule: with video each second, and of its sender by its rate."""
    video, audio = media["video"], media["audio"]
    if video is None:
        return 2 * seconds / _AUDIO_REPORT_S
    most = float(video["max"]) + (float(audio["rate"]) if audio else 0.0)
    return seconds * (1 + max(1.0, min(rate, most) / _REPORT_BITS))


def _udp_packets(udp: Ir, length: int) -> float:
    """Packets that a UDP flow sends in `length` ns."""
    bits = float(udp["rate"]) * length / SECOND
    if udp["schedule"] and udp["pattern"] == "cbr":
        bits = Steps(udp["schedule"]).amount(0, length)
    return over(bits / 8, udp["packet_size"])


def _session_counts(session: Ir, end: int) -> tuple[float, float]:
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


def _workload_bits(workload: Any, seconds: float) -> float:
    """Bits that a connection has to send in `seconds`, headers included."""
    match workload:
        case {"file": size}:
            return 8 * _FILLED * float(size)
        case {"web": {"max": size, "idle": idle}}:
            downloads = over(seconds * SECOND, idle)
            return 8 * _FILLED * float(size) * (1 + downloads + 3 * math.sqrt(downloads))
    return math.inf
