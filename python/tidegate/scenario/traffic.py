"""Traffic that competes with media: UDP by a pattern, TCP with a workload, and datagrams that your own code feeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Rate, Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


class Udp(Model):
    """UDP cross traffic."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    pattern: Literal["cbr", "poisson", "on_off"] = "cbr"
    """Pattern of the packets: equal intervals (cbr), exponential intervals (poisson), or equal intervals within on
    periods (on_off)."""
    rate: Rate
    """Mean rate; with on_off, the rate within on periods."""
    packet_size: Annotated[Size, rules.Bounds(Size(1), Size(rules.IP_PACKET))] = Size(1500)
    """Size of a packet on the wire (RFC 8868 section 5.3)."""
    on: Duration | None = None
    """Mean length of an on period, for on_off."""
    off: Duration | None = None
    """Mean length of an off period, for on_off."""
    schedule: rules.SendingSchedule = Field(default_factory=list)
    """Pairs of a time since the start of the flow and the rate from this time on, for cbr; replaces `rate`."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        if self.rate or not any(rate for _, rate in self.schedule):
            yield from rules.SENDING_RATE.problems((*path, "rate"), self.rate)
        yield from super().problems(path, duration)
        for key, value in (("on", self.on), ("off", self.off)):
            if self.pattern == "on_off" and not value:
                yield Problem((*path, key), 'pattern "on_off" needs a time above zero')
            elif self.pattern != "on_off" and value is not None:
                yield Problem(
                    (*path, key), f'found "{value}"; it needs pattern = "on_off", and pattern is "{self.pattern}"'
                )

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: the mean times are part of the pattern."""
        ir = super().to_ir(reading)
        on, off = ir.pop("on"), ir.pop("off")
        return ir if self.pattern != "on_off" else {**ir, "pattern": {"on_off": {"on": on, "off": off}}}


class FileTransfer(Model):
    """Transfer of a single file."""

    file: Annotated[Size, rules.POSITIVE]
    """Size of the file."""


class WebSettings(Model):
    """Downloads of uniform size with exponential idle times between (RFC 8868 section 5.1)."""

    min: Annotated[Size, rules.POSITIVE] = Size(30_000)
    """Smallest size of a download."""
    max: Size = Size(50_000)
    """Largest size of a download."""
    idle: Annotated[Duration, rules.POSITIVE] = Duration(10_000_000_000)
    """Mean idle time between downloads."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from rules.order(("min", self.min), ("max", self.max), path)
        yield from super().problems(path, duration)


class Web(Model):
    """Short downloads."""

    web: WebSettings
    """Sizes of the downloads, and idle times between them."""


Workload = Annotated[Literal["long"] | FileTransfer | Web, OneOf('"long", or a table with file or web')]


_TCP_HEADERS = 40  # bytes of IPv4 and TCP without options
_STAMPED = 12  # bytes of the option of timestamps
_WIDEST_WINDOW = Size(65_535 << 14)  # bytes, RFC 7323 section 2.3
_LONGEST_RTO = Duration(60 * 10**9)  # RFC 6298 (2.5) allows a bound of 60 s or more, the engine has 60
_WITHOUT_ECN = {
    "bbr": "whose version 1 does not react to marks",
    "bbr3": "whose draft specifies no reaction to marks",
}


class Tcp(Model):
    """A TCP connection."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    algorithm: Literal["tahoe", "reno", "newreno", "sack", "cubic", "bbr", "bbr3", "dctcp", "prague"] = "cubic"
    """Congestion control (RFC 8868 section 5.1 encourages CUBIC). bbr is version 1, with pacing, and bbr3 is version 3
    (draft-ietf-ccwg-bbr), which reacts to losses, too. dctcp (RFC 8257) and prague (for L4S, RFC 9331) react to the
    share of marked packets, and their data are always ECN-capable."""
    recovery: Literal["rack", "rfc6675"] | None = None
    """Way in which an algorithm with selective acknowledgements repairs losses. rack is RACK-TLP with proportional
    rate reduction (RFC 8985, RFC 6937), as in Linux: by the times at which segments left, with a probe where
    acknowledgements stay away; the default of cubic, bbr, bbr3, dctcp and prague. rfc6675, the default of sack, counts
    the segments that arrived after a hole, as ns-2 and ns-3 do."""
    workload: Workload = "long"
    """Data that the connection carries."""
    initial_window: Annotated[int, Field(ge=1, le=1000)] = 10
    """Initial window in segments (RFC 6928)."""
    min_rto: Annotated[Duration, rules.POSITIVE] | None = None
    """Shortest retransmission time-out; by default 1 s (RFC 6298 section 2.4). With recovery rack it is what the
    time-out is above the smoothed round trip at least, by default 200 ms, as in Linux."""
    delayed_ack: bool = False
    """Whether only every second segment is acknowledged, at most 200 ms late (RFC 5681 section 4.2).
    Off by default, as in ns-2 and in most published figures."""
    handshake: bool = True
    """Whether the connection begins with a SYN, which counts as a packet sent, and waits for the answer (RFC 9293
    section 3.5), which gives the first round-trip sample. Without a handshake the connection is established from the
    start, with a time-out of 1 s (RFC 6298 section 2.1) until data have been acknowledged: if the round trip is longer,
    the first window is sent twice."""
    options: bool = True
    """Whether SYNs carry options: segment size, window scale, and SACK where it is used, 8 or 12 bytes. SYNs of ns-2
    have 40 bytes and no options; without options both ends know these values beforehand, as without a handshake."""
    hystart: bool = True
    """Whether CUBIC leaves slow start when round trips grow or acknowledgements come in a long train, before the queue
    overflows (HyStart, as Linux's CUBIC has it). Other algorithms ignore it."""
    ecn: bool = False
    """Whether data packets are ECN-capable: a queue that can mark marks them instead of dropping them, and the sender
    reacts to a mark as to a loss (RFC 3168). Off by default, as in connections that Linux opens."""
    timestamps: bool = False
    """Whether segments carry timestamps (RFC 7323), 12 bytes each: segments that were sent again measure round trips,
    too. packet_size includes them. Off by default, as in ns-2; Linux and ns-3 have them on."""
    offload: bool = False
    """Whether segments leave in bursts, as a host with segmentation offload (GSO) hands them to its network interface:
    as many as take about 1 ms at the flow's rate, at least two, at most 64 kB (Linux's rules). Paced algorithms pace
    whole bursts. Off by default, as in ns-2 and ns-3."""
    receive_window: Annotated[Size, rules.Bounds(maximum=_WIDEST_WINDOW)] = Size(6_291_456)
    """Receive window (the largest in Linux's default tcp_rmem)."""
    packet_size: Annotated[Size, rules.Bounds(Size(_TCP_HEADERS + 1), Size(rules.IP_PACKET))] = Size(1500)
    """Size of a full segment on the wire."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if self.receive_window < self.packet_size:
            message = f'found "{self.receive_window}"; expected at least packet_size ({self.packet_size})'
            yield Problem((*path, "receive_window"), message)
        if self.recovery and self.algorithm in ("tahoe", "reno", "newreno"):
            wanted = (
                "an algorithm with selective acknowledgements (sack, cubic, bbr, bbr3, dctcp, prague), or no recovery"
            )
            message = f'found "{self.recovery}" with {self.algorithm}; expected {wanted}'
            yield Problem((*path, "recovery"), message)
        if self.ecn and self.algorithm in _WITHOUT_ECN:
            message = f"found true with {self.algorithm}, {_WITHOUT_ECN[self.algorithm]}; expected false"
            yield Problem((*path, "ecn"), message)
        least = Size(_TCP_HEADERS + _STAMPED + 1)
        if self.timestamps and self.packet_size < least:
            message = f'found "{self.packet_size}"; expected at least "{least}", as with timestamps'
            yield Problem((*path, "packet_size"), message)
        if self.min_rto is not None:
            yield from rules.order(("min_rto", self.min_rto), ("the largest time-out", _LONGEST_RTO), path)


class External(Model):
    """Datagrams that your own code sends and receives (see tidegate.simpy)."""

    program: bool = False
    """Whether the datagrams are the call of a real program: like media, the flow then has a share of the links."""
