"""The networks and flows of the document's tables: its Figure 1, and the settings that its text leaves out.

Each function makes the scenario of a row. Its defaults give the printed table; they were found with ns-2.35, the
successor of the document's ns-2.34. Its arguments are settings that the document does not state, or states otherwise,
so that the stated settings and others near the found ones can be run as well. Constants of TCP are those of ns-2's
tcl/lib/ns-default.tcl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate import Flow, Link, Media, Scenario, Tcp, Udp
from tidegate.units import Duration, Rate, Size

END = "100s"
"""End of all runs except shorter ones of tables 3 and 4 (table 1: 24975 packets at 2 Mb/s from 0.1 s on)."""

TCP_PACKET = "1040B"
"""1000 bytes (section 4.1) and ns-2's 40 bytes of headers."""
UDP_PACKET = "1000B"
"""ns-2 adds no headers to a UDP agent's packets."""
TFRC_PACKET = 1032
"""1000 bytes and ns-2's 32 bytes of headers of a TFRC packet (tfrc.h)."""


@dataclass(frozen=True)
class Dumbbell:
    """Figure 1: N0 and N1 on the left send through R1 and R2 to N3 and N2 on the right."""

    bottleneck: str
    """Capacity between R1 and R2."""
    access: str
    """Capacity of the other links."""
    delays: tuple[str, str, str]
    """One-way propagation delays before, on and after the bottleneck."""
    queue: int = 50
    """Packets in each queue; ns-2's default limit."""

    def links(self) -> list[Link]:
        """The five links."""
        first, middle, last = self.delays
        queue = {"packets": self.queue}
        return [
            Link(name=f"{begin}-{end}", from_=begin, to=end, capacity=capacity, delay=delay, queue=queue)
            for begin, end, capacity, delay in (
                ("N0", "R1", self.access, first),
                ("N1", "R1", self.access, first),
                ("R1", "R2", self.bottleneck, middle),
                ("R2", "N2", self.access, last),
                ("R2", "N3", self.access, last),
            )
        ]

    def run_of(self, name: str, flows: list[Flow], **keys: Any) -> Scenario:
        """Scenario on this network; by default it runs until `END` without sending jitter."""
        return Scenario(
            name=name,
            source="Vardhan, Reddy: Congestion Control in Real Time Applications",
            links=self.links(),
            flows=flows,
            **{"duration": END, "sending_jitter": "off", "record": "summary", **keys},
        )


TABLE_1 = Dumbbell("2Mbps", "5Mbps", ("1ms", "10ms", "1ms"))
TABLE_2 = Dumbbell("1Mbps", "5Mbps", ("2ms", "10ms", "2ms"))
TABLE_3 = Dumbbell("150kbps", "1Mbps", ("1ms", "5ms", "1ms"))
TABLE_4 = Dumbbell("1Mbps", "5Mbps", ("1ms", "1ms", "1ms"))

STATED_2 = Dumbbell("2Mbps", "5Mbps", TABLE_2.delays)
"""Section 4.4 keeps section 4.1's bottleneck."""
STATED_3 = Dumbbell("100kbps", "1Mbps", TABLE_3.delays)
"""The network that section 4.5 states."""

NS2_TFRC: Mapping[str, Any] = {
    "rules": "rfc3448",
    "initial_window": "rfc3390",
    "first_interval": "present",
    "rtt_weight": 0.05,
    "sqmean_weight": 0.05,
    "rto_rtts": 2.0,
    "reordering": 1,
    "discount_threshold": 0.5,
    "drain_time": "0s",
}
"""Settings of our TFRC with which it differs from RFC 5348 as ns-2's does.

They were taken from tfrc.cc and tfrc-sink.cc of ns-2.35, which prints them as defaults:

* at most twice the last receive rate (`maxrate_`), as in RFC 3448, but 4 packets in the first round trip
  (`rate_init_option_` 2);
* the interval before the first loss comes from the present receive rate (`adjust_history`);
* the old round-trip time has a weight of 0.95 (`df_`), in both of its means;
* the equation's timeout is that of a TCP with a clock of 0.1 s (`tcp_tick_`): its mean deviation is never less
  than 3/4 of a tick, so that the timeout is R + 0.3 s or more; about 2R with the 0.33 s of table 2, while
  RFC 5348 has 4R;
* the first packet after a gap makes the gap a loss (`numPkts_` 1);
* old intervals are discounted to a half at most (`minDiscountRatio_`);
* the application's queue has no limit, and its encoder does not know the queue.
"""

IP_HEADERS = 12
"""Bytes of overhead of our RTP packets; with them, feedback has 40 bytes as in ns-2 (`packetSize_` of its sink)."""

UPPER = ("N0", "N3")
"""Ends of the first flow (section 4.1: TCP)."""
LOWER = ("N1", "N2")
"""Ends of the second flow (section 4.1: UDP)."""


def _flow(name: str, ends: tuple[str, str], start: str, **kind: Any) -> Flow:
    return Flow(name=name, from_=ends[0], to=ends[1], start=start, stop=END, **kind)


def ns2_tcp(algorithm: str, window: int, min_rto: str = "200ms") -> Tcp:
    """ns-2's TCP agent: window in packets, two packets at first, an ACK for each, minimum timeout of 0.2 s, a SYN.

    Its CUBIC, too, finds losses by the number of duplicates.
    """
    keys: dict[str, Any] = {"initial_window": 2, "options": False, "hystart": False, "packet_size": TCP_PACKET}
    recovery = "rfc6675" if algorithm == "cubic" else None
    window_bytes = f"{1000 * window}B"
    return Tcp(algorithm=algorithm, recovery=recovery, receive_window=window_bytes, min_rto=min_rto, **keys)


def tcp_beside_udp(
    rate: str,
    *,
    network: Dumbbell = TABLE_1,
    algorithm: str = "tahoe",
    window: int = 20,
    min_rto: str = "200ms",
    tcp_start: str = "80ms",
    sending_jitter: str = "off",
) -> Scenario:
    """Scenario of a row of table 1: FTP over TCP, and CBR over UDP at `rate`, for 100 s."""
    tcp = _flow("tcp", UPPER, tcp_start, tcp=ns2_tcp(algorithm, window, min_rto))
    udp = _flow("udp", LOWER, "100ms", udp=Udp(rate=rate, packet_size=UDP_PACKET))
    return network.run_of("vardhan-table1", [tcp, udp], sending_jitter=sending_jitter)


def tcp_beside(
    second: dict[str, Any],
    window: int,
    *,
    network: Dumbbell = TABLE_2,
    start: str = "0s",
    **keys: Any,
) -> Scenario:
    """Scenario of a row of table 2: NewReno with a window in packets, and a second flow, called `other`.

    `second` has the keys of the second flow. TCP starts at 0, the second flow at `start`.
    """
    tcp = _flow("tcp", UPPER, "0s", tcp=ns2_tcp("newreno", window))
    return network.run_of("vardhan-table2", [tcp, _flow("other", LOWER, start, **second)], **keys)


def tfrc(rate: str | Sequence[tuple[Duration, str]], size: int, *, like_ns2: bool = True) -> dict[str, Any]:
    """Keys of a TFRC flow whose application makes packets of `size` bytes at `rate`, whatever TFRC allows.

    `rate` may be pairs of a time since the flow's start and the rate from then on. On the wire a packet has 32 bytes
    more, as in ns-2. With `like_ns2` the settings are those of ns-2's TFRC, else those of RFC 5348. RTCP reports are
    rare, because ns-2 has none.
    """
    steps = [(Duration(0), rate)] if isinstance(rate, str) else rate
    wire = size + TFRC_PACKET - 1000
    schedule = [(time, Rate(Rate.parse(step_rate) * wire // size)) for time, step_rate in steps]
    packet = Size(size)
    settings = {"segment": packet, "mss": packet, **(NS2_TFRC if like_ns2 else {})}
    return {
        "media": Media(
            controller={"name": "tfrc", **settings},
            video={"source": "cbr", "schedule": schedule, "packet_size": Size(wire)},
            overhead=Size(IP_HEADERS),
            marks=False,
            max_rate=max(rate for _, rate in schedule),
            feedback={"format": "none", "reports": "1000s"},
            repair="none",
            queue_limit="1000s",
        )
    }


def unresponsive(rate: str) -> dict[str, Any]:
    """Keys of the TFRC flow of table 2 without its control: its packets, at the rate of its application."""
    return {"udp": Udp(rate=Rate(Rate.parse(rate) * TFRC_PACKET // 1000), packet_size=f"{TFRC_PACKET}B")}


def voice(until: str, *, network: Dumbbell = TABLE_3, rates: Sequence[str] = ("64kbps", "100kbps")) -> Scenario:
    """Scenario of UDP of table 3 until a time: G.711 packets of 160 bytes (section 4.5)."""
    starts = ("80ms", "100ms")
    flows = [
        _flow(f"udp-{number}", ends, start, udp=Udp(rate=rate, packet_size="160B"))
        for number, (rate, ends, start) in enumerate(zip(rates, (UPPER, LOWER), starts, strict=False), 1)
    ]
    return network.run_of("vardhan-table3", flows, duration=until)


TFRC_VOICE = Dumbbell("150kbps", "1Mbps", ("1ms", "10ms", "1ms"))
"""Network that gives TFRC of table 3 in ns-2 to within ten packets, with UDP of 70 kb/s beside it."""


def voice_tfrc(
    until: str, *, network: Dumbbell = TFRC_VOICE, beside: str | None = "70kbps", like_ns2: bool = True
) -> Scenario:
    """Scenario of TFRC of table 3 until a time, beside UDP at a rate (or alone), with packets recorded."""
    flows = [_flow("tfrc", UPPER, "100ms", **tfrc("64kbps", 160, like_ns2=like_ns2))]
    if beside is not None:
        flows.append(_flow("udp", LOWER, "100ms", udp=Udp(rate=beside, packet_size="160B")))
    return network.run_of("vardhan-table3", flows, duration=until, record="packets")


VIDEO = (("100ms", "448kbps"), ("20s", "20kbps"), ("50s", "1Mbps"), ("80s", "448kbps"))
"""Section 4.6: the video conference's rate from each time on."""


def video(until: str, *, flows: int = 2, sending_jitter: str = "off") -> Scenario:
    """Scenario of UDP of table 4 until a time: 1 or 2 video conferences with packets of 1000 bytes (section 4.6)."""
    udp = Udp(rate=VIDEO[0][1], packet_size=UDP_PACKET, schedule=[("0s", "0bps"), *VIDEO])
    both = [_flow(f"udp-{number}", ends, "0s", udp=udp) for number, ends in enumerate((UPPER, LOWER)[:flows], 1)]
    return TABLE_4.run_of("vardhan-table4", both, duration=until, sending_jitter=sending_jitter)


def video_tfrc(until: str, *, like_ns2: bool = True, conferences: int = 2) -> Scenario:
    """Scenario of TFRC of table 4 until a time: the video conferences of `video` under its control, one or both."""
    first = Duration.parse(VIDEO[0][0])
    schedule = [(Duration(Duration.parse(time) - first), rate) for time, rate in VIDEO]
    kind = tfrc(schedule, 1000, like_ns2=like_ns2)
    both = [_flow(f"tfrc-{number}", ends, "100ms", **kind) for number, ends in enumerate((UPPER, LOWER), 1)]
    return TABLE_4.run_of("vardhan-table4", both[:conferences], duration=until)


def unequal_round_trips(sending_jitter: str, starts: tuple[str, str]) -> Scenario:
    """Scenario of two TCP flows with round trips of 40 and 120 ms over 10 Mb/s; seconds 20 to 600 count."""
    tcp = Tcp(algorithm="cubic", recovery="rfc6675", handshake=False, hystart=False)
    return Scenario(
        name="vardhan-phases",
        duration="600s",
        warmup="20s",
        sending_jitter=sending_jitter,
        record="summary",
        links=[
            Link(name="near", from_="a", to="router"),
            Link(name="far", from_="b", to="router", delay="40ms"),
            Link(name="link", from_="router", to="end", capacity="10Mbps", delay="20ms", queue={"packets": 33}),
        ],
        flows=[
            Flow(name="short", from_="a", to="end", start=starts[0], tcp=tcp),
            Flow(name="long", from_="b", to="end", start=starts[1], tcp=tcp),
        ],
    )
