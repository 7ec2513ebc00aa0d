"""The compiled core of tidegate, as type checkers see it: `make stubs` writes this file, from `crates/python`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

__all__ = [
    "COMMIT",
    "ENCODERS",
    "FEATURES",
    "METRICS",
    "STEP_NUMBERS",
    "AgentController",
    "App",
    "Arrived",
    "Bye",
    "Ccfb",
    "ControllerHost",
    "Decision",
    "EcnCounts",
    "EcnFeedback",
    "Episode",
    "ExtendedReport",
    "Fir",
    "ImportedCall",
    "InternalError",
    "Limits",
    "LossReport",
    "Nack",
    "Needs",
    "NewFrame",
    "Outgoing",
    "Packet",
    "PacketResult",
    "Pli",
    "Probe",
    "ReceiverHost",
    "ReceiverReport",
    "Recording",
    "Refused",
    "Remb",
    "Report",
    "ReportBlock",
    "Routes",
    "Rtp",
    "RunError",
    "Schedule",
    "Sdes",
    "SenderReport",
    "Sent",
    "Shell",
    "Sli",
    "StepThreads",
    "Stream",
    "Table",
    "Terms",
    "Trace",
    "Twcc",
    "TwccBuilder",
    "Unknown",
    "World",
    "_Panics",
    "__version__",
    "check_controller",
    "controller",
    "controller_defaults",
    "controller_needs",
    "controllers_json",
    "decode",
    "decode_rtp",
    "drop_rights",
    "encode",
    "encode_rtp",
    "enter_network",
    "import_captures",
    "import_event_logs",
    "live_receive",
    "live_send",
    "lte_survey",
    "make_network",
    "mos",
    "nada_congestion_signal",
    "nada_equivalent_delay",
    "nada_gamma",
    "nada_gradual_update",
    "nada_shaped_rates",
    "r_factor",
    "read_parquet",
    "receiver",
    "recording_format",
    "replay_session",
    "run",
    "sprout_forecasts",
    "table_of",
    "tfrc_discount_factor",
    "tfrc_initial_window",
    "tfrc_loss_event_rate",
    "tfrc_mean_interval",
    "tfrc_small_packet_interval",
    "tfrc_small_packet_rate",
    "tfrc_throughput",
]
__version__: str
COMMIT: str
ENCODERS: list[str]
METRICS: list[tuple[str, list[tuple[str, str, str, Literal["higher", "lower", "neither"], str, float, int, int]]]]
FEATURES: list[tuple[str, str, float, float, str]]
"The numbers of an agent's observation: name, unit, least and largest scaled value, what it is."
STEP_NUMBERS: list[str]
"What a step of an episode tells, by name."
_Objects: TypeAlias = Mapping[str, Callable[[], Any]]
_Feedback: TypeAlias = Literal["per-packet", "receiver-reports", "own", "none"]
_Ecn: TypeAlias = Literal["off", "ect0", "ect1"]
_Counts: TypeAlias = Literal["rtp", "ip"]
_Interval: TypeAlias = Literal["usual", "frame"]
_Urgency: TypeAlias = Literal["none", "regular", "early", "now"]
_Whole: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]
_TwccStatus: TypeAlias = int | Literal["untimed"] | None
_Packet: TypeAlias = (
    App
    | Bye
    | Ccfb
    | EcnFeedback
    | ExtendedReport
    | Fir
    | Nack
    | Pli
    | ReceiverReport
    | Remb
    | Sdes
    | SenderReport
    | Sli
    | Twcc
    | Unknown
)

class Refused(ValueError):
    """A scenario that cannot be run.

    `place` is its dotted key, `found` what is there (a sentence where `expected` is empty), `expected` what would be right.
    """

    place: str
    found: str
    expected: str

class InternalError(RuntimeError):
    """A bug in tidegate: the message names the place in its source."""

class RunError(RuntimeError):
    """A run stopped before its end: the message names the component, the simulated time and the reason."""

@final
class AgentController:
    """A controller that a function decides for, once an interval: `decide` gets the observation and answers with an
    action.

    A factory of Python controllers may return one.
    """

    def __new__(cls, decide: Callable[[npt.NDArray[Any]], float], terms: Terms, start_bps: int) -> Self: ...

@final
class App:
    """An application-defined packet (RFC 3550 section 6.7)."""

    def __new__(cls, subtype: int, ssrc: int, name: bytes, data: bytes) -> Self: ...
    @property
    def data(self) -> bytes:
        """A multiple of four bytes."""

    @property
    def name(self) -> bytes:
        """Four bytes."""

    @property
    def ssrc(self) -> int:
        """The sender."""

    @property
    def subtype(self) -> int:
        """Five bits."""

@final
class Arrived:
    """A data packet that has arrived at the receiver."""

    def __new__(
        cls,
        sequence: int | None,
        size: int,
        abs_send_time: int | None,
        *,
        ssrc: int = 0,
        rtp_sequence: int | None = None,
        timestamp: int = 0,
        marker: bool = False,
        ecn: int = 0,
        extension: tuple[int, bytes] | None = None,
        true_delay_ns: int | None = None,
        header: int = 12,
        padding: int = 0,
        payload_type: int = 96,
    ) -> Self: ...
    @property
    def abs_send_time(self) -> int | None:
        """Abs-send-time in 2^-18 s, 24 bits (wraps every 64 s); None where no header extension carries it."""

    @property
    def ecn(self) -> int:
        """The ECN field as it arrived."""

    @property
    def extension(self) -> tuple[int, bytes] | None:
        """Header extension that the sending half stamped on it: (id, bytes)."""

    @property
    def header(self) -> int:
        """Bytes of the RTP header with extensions."""

    @property
    def marker(self) -> bool:
        """The marker bit: of video, the last packet of its frame."""

    @property
    def padding(self) -> int:
        """Bytes of padding at its end."""

    @property
    def payload_type(self) -> int:
        """Payload type, 7 bits."""

    @property
    def rtp_sequence(self) -> int:
        """RTP sequence number, unwrapped."""

    @property
    def sequence(self) -> int | None:
        """Transport-wide sequence number, unwrapped; None where no header extension carries it."""

    @property
    def size(self) -> int:
        """Bytes: payload and RTP header with extensions, without IP and UDP."""

    @property
    def ssrc(self) -> int:
        """SSRC of its stream."""

    @property
    def timestamp(self) -> int:
        """RTP timestamp."""

    @property
    def true_delay_ns(self) -> int | None:
        """True one-way delay in nanoseconds, which no receiver can measure: only for a half that `needs_true_delay`, and
        only if the driver knows it.
        """

@final
class Bye:
    """A goodbye (RFC 3550 section 6.6)."""

    def __new__(cls, ssrcs: list[int], reason: bytes | None) -> Self: ...
    @property
    def reason(self) -> bytes | None:
        """Reason for leaving."""

    @property
    def ssrcs(self) -> list[int]:
        """SSRCs of the sources that leave."""

@final
class Ccfb:
    """RFC 8888 congestion control feedback."""

    def __new__(
        cls, sender_ssrc: int, streams: list[tuple[int, int, list[tuple[int, int] | None]]], report_timestamp: int
    ) -> Self: ...
    @property
    def report_timestamp(self) -> int:
        """Middle 32 bits of the NTP time of the report."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the reporter."""

    @property
    def streams(self) -> list[tuple[int, int, list[tuple[int, int] | None]]]:
        """(SSRC, first sequence number, for each packet None or (ECN bits, arrival offset in 1/1024 s))."""

@final
class ControllerHost:
    """One of tidegate's controllers, to be driven by hand: in a loop of your own, in a test, on a socket.

    Time is an integer of nanoseconds and may begin anywhere, but never goes back.
    """

    def coupled_rate(self) -> int | None:
        """The rate that it has calculated, in bit/s, if it can be coupled with others."""

    @property
    def decision(self) -> Decision:
        """The last decision."""

    def in_flight(self) -> int | None:
        """Bytes in flight, if the controller counts them itself."""

    @property
    def internals(self) -> dict[str, float]:
        """Named values of the last call; for a name with several values, the last one."""

    @property
    def needs(self) -> Needs:
        """Needs of the controller."""

    @property
    def needs_frames(self) -> bool:
        """Whether it needs calls of `on_frame`."""

    @property
    def needs_sent(self) -> bool:
        """Whether it needs calls of `on_sent`."""

    def on_alarm(self, now_ns: int) -> Decision:
        """The alarm of the last decision."""

    def on_coupled(self, now_ns: int, rate_bps: int) -> Decision:
        """Sets the rate that coupling assigns to it, in bit/s."""

    def on_frame(self, now_ns: int, frame: NewFrame) -> Decision:
        """A frame of media has come into the pacer."""

    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        """New bounds, a new wanted rate, or a new route."""

    def on_report(self, now_ns: int, report: Report) -> Decision:
        """A feedback report."""

    def on_sent(self, now_ns: int, packet: Sent) -> Decision:
        """One packet has left."""

    def stamp(self, now_ns: int, packet: Outgoing) -> tuple[int, bytes] | None:
        """Header extension of a packet that is about to leave: (id, bytes) or None."""

@final
class Decision:
    """The complete present policy of a controller."""

    def __new__(
        cls,
        target_bps: float,
        pacing_bps: float | None = None,
        padding_bps: float | None = None,
        min_gap_ns: int | None = None,
        window: int | None = None,
        alarm_ns: int | None = None,
        probes: Sequence[Probe] | None = None,
        pace_audio: bool = False,
        heartbeat_ns: int | None = None,
        drain_queue: bool = False,
        pushback_bps: float | None = None,
        burst_ns: int | None = None,
    ) -> Self: ...
    @property
    def alarm_ns(self) -> int | None:
        """When to be called next, in nanoseconds; not in the past, and once at each instant the present one."""

    @property
    def burst_ns(self) -> int | None:
        """Burst that the pacer may send at once whenever media comes to an empty queue, in nanoseconds; None: groups of 5
        ms.
        """

    @property
    def drain_queue(self) -> bool:
        """Whether the pacer sends faster than `pacing_bps` to have what waits out within the session's queue limit;
        otherwise frames are left out while more waits.
        """

    @property
    def heartbeat_ns(self) -> int | None:
        """The longest silence, in nanoseconds: then a small packet of padding goes, window or not."""

    @property
    def min_gap_ns(self) -> int | None:
        """At least this much time between two packets, in nanoseconds."""

    @property
    def pace_audio(self) -> bool:
        """Whether audio, too, waits for the pacing rate; otherwise it goes at once."""

    @property
    def pacing_bps(self) -> int | None:
        """Rate that the pacer may send, in bit/s. If it is left out, the target where the decision has a window, a gap or a
        burst; else None: the call paces as that of gcc, with bursts of 40 ms at 1.1 times the target (a screen: 1.0;
        before the first feedback on packets: 2.5), and faster where what waits would not leave within the queue limit.
        """

    @property
    def padding_bps(self) -> int:
        """Keep at least this much on the wire, in bit/s."""

    @property
    def probes(self) -> list[Probe]:
        """Bursts to be sent after those requested before."""

    @property
    def pushback_bps(self) -> int | None:
        """The target after congestion-window pushback, in bit/s: video comes down to it by leaving frames out."""

    @property
    def target_bps(self) -> int:
        """Rate that the encoder may use, in bit/s."""

    @property
    def window(self) -> int | None:
        """Largest number of bytes in flight."""

@final
class EcnCounts:
    """Packets received, by the ECN field that they had on arrival (the counters of RFC 6679 section 5.1)."""

    def __new__(cls, not_ect: int = 0, ect0: int = 0, ect1: int = 0, ce: int = 0) -> Self: ...
    @property
    def ce(self) -> int:
        """Congestion experienced."""

    @property
    def ect0(self) -> int:
        """ECT(0)."""

    @property
    def ect1(self) -> int:
        """ECT(1)."""

    @property
    def not_ect(self) -> int:
        """Not ECN-capable: sent so, or cleared on the way."""

@final
class EcnFeedback:
    """RFC 6679 ECN feedback: what was received of a stream since it began. The last four counters wrap after 16 bits."""

    def __new__(
        cls,
        sender_ssrc: int,
        media_ssrc: int,
        highest_sequence: int,
        ect0: int,
        ect1: int,
        ce: int,
        not_ect: int,
        lost: int,
        duplicated: int,
    ) -> Self: ...
    @property
    def ce(self) -> int:
        """Packets with congestion experienced."""

    @property
    def duplicated(self) -> int:
        """Duplicates of packets."""

    @property
    def ect0(self) -> int:
        """Packets with ECT(0)."""

    @property
    def ect1(self) -> int:
        """Packets with ECT(1)."""

    @property
    def highest_sequence(self) -> int:
        """Extended highest sequence number received."""

    @property
    def lost(self) -> int:
        """Packets that did not arrive."""

    @property
    def media_ssrc(self) -> int:
        """SSRC of the stream reported on."""

    @property
    def not_ect(self) -> int:
        """Packets that were not ECN-capable on arrival."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the reporter."""

@final
class Episode:
    """One episode of an agent: a world in steps, in which it sets the rate of one flow."""

    def __new__(
        cls,
        scenario_json: str,
        flow: str,
        terms: Terms,
        start_bps: int,
        traces: Sequence[Trace] = ...,
        objects: _Objects = ...,
    ) -> Self:
        """Builds the world, and runs it up to where the flow begins. The first arguments are those of `run`; the flow's
        controller is called "agent" in the scenario. One with another controller is only watched: its observations are
        zeros.
        """

    def finish(self) -> Recording:
        """Ends the run now, and returns its recording."""

    @property
    def knows_capacity(self) -> bool:
        """Whether the capacity of a link on the flow's path is known."""

    def observation(self) -> npt.NDArray[Any]:
        """The present observation: an array of shape (history, features), with the newest interval last."""

    def step(self, action: float) -> tuple[npt.NDArray[Any], float | None, bool, bool, dict[str, float]]:
        """One step by an action: (observation, default reward or None, whether the flow's time is over, whether its sender
        had stopped before, values of the step by name).
        """

@final
class ExtendedReport:
    """An extended report (RFC 3611 section 2): its blocks as they are in bytes. Type 13 is RFC 6679's ECN summary."""

    def __new__(cls, ssrc: int, blocks: list[tuple[int, int, bytes]]) -> Self: ...
    @property
    def blocks(self) -> list[tuple[int, int, bytes]]:
        """(block type, the byte that is specific to it, a multiple of four bytes)."""

    @property
    def ssrc(self) -> int:
        """SSRC of the reporter."""

@final
class Fir:
    """A full intra request (RFC 5104 section 4.3.1)."""

    def __new__(cls, sender_ssrc: int, entries: list[tuple[int, int]]) -> Self: ...
    @property
    def entries(self) -> list[tuple[int, int]]:
        """(SSRC, command sequence number)."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the requester."""

@final
class ImportedCall:
    """A call that was imported from recordings."""

    @property
    def begun_ms(self) -> int | None:
        """Unix time at which the call begins, in ms, if a file has it."""

    @property
    def doubts(self) -> list[str]:
        """Reasons to doubt the call's numbers, as sentences."""

    @property
    def problems(self) -> list[tuple[list[str], int]]:
        """The first problems of each file, and the count of all its problems."""

    @property
    def remarks(self) -> list[str]:
        """Assumptions and omissions in putting the call together, as sentences."""

    def summary_json(self) -> str:
        """The metrics that the recording determines, as JSON."""

    def table(self, name: str) -> Table:
        """One table by name."""

    def table_names(self) -> list[str]:
        """The names of the available tables."""

@final
class Limits:
    """Limits and wishes of the session."""

    def __new__(
        cls,
        min_bps: int = 30000,
        max_bps: int = 10000000,
        start_bps: int = 300000,
        wanted_bps: int | None = None,
        app_limited: bool = False,
        route_changed: bool = False,
    ) -> Self: ...
    @property
    def app_limited(self) -> bool:
        """Whether the sources use less than the target lately."""

    @property
    def max_bps(self) -> int:
        """Never more than this, in bit/s."""

    @property
    def min_bps(self) -> int:
        """Never less than this, in bit/s."""

    @property
    def route_changed(self) -> bool:
        """The network route changed."""

    @property
    def start_bps(self) -> int:
        """Begin with this, in bit/s."""

    @property
    def wanted_bps(self) -> int | None:
        """Rate that the sources would use if they could, in bit/s; None: as much as there is."""

@final
class LossReport:
    """Statistics of a receiver report (RFC 3550 section 6.4.1)."""

    def __new__(
        cls,
        fraction_lost: int,
        cumulative_lost: int = 0,
        highest_sequence: int = 0,
        jitter_ns: int = 0,
        expected: int = 0,
    ) -> Self: ...
    @property
    def cumulative_lost(self) -> int:
        """Packets lost since the session began."""

    @property
    def expected(self) -> int:
        """Packets expected since the last report."""

    @property
    def fraction_lost(self) -> int:
        """Fraction lost since the last report, in 1/256."""

    @property
    def highest_sequence(self) -> int:
        """Extended highest sequence number received."""

    @property
    def jitter_ns(self) -> int:
        """Interarrival jitter in nanoseconds."""

@final
class Nack:
    """A generic NACK (RFC 4585 section 6.2.1)."""

    def __new__(cls, sender_ssrc: int, media_ssrc: int, pairs: list[tuple[int, int]]) -> Self: ...
    @property
    def media_ssrc(self) -> int:
        """SSRC of the requested stream."""

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(PID, BLP)."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the requester."""

@final
class Needs:
    """Needs of a controller: its kind of feedback, and how its packets are sent."""

    def __new__(
        cls,
        feedback: _Feedback = "per-packet",
        ecn: _Ecn = "off",
        counts: _Counts = "rtp",
        interval: _Interval = "usual",
    ) -> Self: ...
    @property
    def counts(self) -> _Counts:
        """Bytes that its rates and sizes count: "rtp" (RTP packets) or "ip" (with IP and UDP)."""

    @property
    def ecn(self) -> _Ecn:
        """The ECN codepoint of its packets: "off", "ect0" or "ect1"."""

    @property
    def feedback(self) -> _Feedback:
        """One of "per-packet", "receiver-reports", "own" (messages of its receiver half) and "none"."""

    @property
    def interval(self) -> _Interval:
        """Interval of reports: "usual" (libwebrtc's intervals) or "frame" (with frames, after 16 packets, 40 ms apart at
        most).
        """

@final
class NewFrame:
    """A frame of media has come into the pacer."""

    def __new__(cls, size: int, video: bool = True, backlog: int | None = None, pacer_delay_ns: int = 0) -> Self: ...
    @property
    def backlog(self) -> int:
        """Bytes that wait in the pacer, this frame included; by default its size."""

    @property
    def pacer_delay_ns(self) -> int:
        """Time that the oldest packet of media in the pacer has waited, in nanoseconds."""

    @property
    def size(self) -> int:
        """Bytes of its packets: payload and RTP header with extensions, without IP and UDP, but for a stamp."""

    @property
    def video(self) -> bool:
        """Whether it is of video."""

@final
class Outgoing:
    """One packet is about to leave."""

    def __new__(cls, sequence: int, size: int, backlog: int = 0) -> Self: ...
    @property
    def backlog(self) -> int:
        """Bytes that wait in the pacer after it."""

    @property
    def sequence(self) -> int:
        """Transport-wide sequence number, unwrapped."""

    @property
    def size(self) -> int:
        """Bytes: payload and RTP header with extensions, without IP and UDP, before the stamp."""

@final
class Packet:
    """A packet that a world has handed to its driver.

    Times are nanoseconds of its world; sizes are bytes on the wire, IP and UDP headers included.
    """

    def drop(self, cause: str = "loss") -> None:
        """Lets it die, now, of "loss", "queue", "corrupt", "outage" or "too-big": its holder does."""

    @property
    def flow(self) -> str:
        """Name of its flow."""

    def forward(self) -> None:
        """Sends it on, now: its holder does."""

    @property
    def holder(self) -> Any:
        """Object whose `forward` and `drop` are called for it."""

    @property
    def kind(self) -> str:
        """One of "video", "audio", "padding", "retransmission", "repair", "rtcp", "data", "ack" or "datagram"."""

    @property
    def link(self) -> str | None:
        """The external link that it waits at; None for one that has arrived."""

    @property
    def marker(self) -> bool | None:
        """Whether it is the last packet of its frame; None if it is no RTP."""

    @property
    def payload_type(self) -> int | None:
        """RTP payload type; None if it is no RTP."""

    @property
    def rtcp(self) -> bytes | None:
        """The bytes of an RTCP packet above UDP; None for other kinds."""

    @property
    def rtp_sequence(self) -> int | None:
        """RTP sequence number; None if it is no RTP."""

    @property
    def sent_ns(self) -> int:
        """When its sender put it on the wire."""

    @property
    def sequence(self) -> int:
        """Running number of its sender's packets of this flow, as in the table of packets."""

    @property
    def size(self) -> int:
        """Bytes on the wire."""

    @property
    def tag(self) -> int | None:
        """The number that it was fed with; None for packets that were not fed."""

    @property
    def timestamp(self) -> int | None:
        """RTP timestamp; None if it is no RTP."""

    @property
    def transport_sequence(self) -> int | None:
        """Transport-wide sequence number; None where no header extension carries it."""

@final
class PacketResult:
    """Feedback on one packet, joined with the packet sent."""

    def __new__(
        cls,
        sequence: int,
        size: int,
        sent_ns: int,
        arrival_ns: int | None = None,
        ecn: int = 0,
        probe: int | None = None,
    ) -> Self: ...
    @property
    def arrival_ns(self) -> int | None:
        """When it arrived, by the far clock, in nanoseconds; None: reported as not received."""

    @property
    def ecn(self) -> int:
        """The ECN field as it arrived: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE."""

    @property
    def probe(self) -> int | None:
        """The probe it was part of."""

    @property
    def sent_ns(self) -> int:
        """When it was sent, by our clock, in nanoseconds."""

    @property
    def sequence(self) -> int:
        """Transport-wide sequence number, unwrapped."""

    @property
    def size(self) -> int:
        """Bytes: payload and RTP header with extensions, without IP and UDP."""

@final
class Pli:
    """A picture loss indication (RFC 4585 section 6.3.1)."""

    def __new__(cls, sender_ssrc: int, media_ssrc: int) -> Self: ...
    @property
    def media_ssrc(self) -> int:
        """SSRC of the requested stream."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the requester."""

@final
class Probe:
    """A burst of packets sent faster than the media, to learn the capacity."""

    def __new__(
        cls, id: int, rate_bps: float, length_ns: int, min_packets: int = 1, spacing_ns: int | None = None
    ) -> Self: ...
    @property
    def id(self) -> int:
        """Comes back in the results of its packets."""

    @property
    def length_ns(self) -> int:
        """At least as many bytes as the rate carries in this time, in nanoseconds."""

    @property
    def min_packets(self) -> int:
        """At least this many packets."""

    @property
    def rate_bps(self) -> int:
        """At which rate, in bit/s; more than zero."""

    @property
    def spacing_ns(self) -> int:
        """At least this much time between one departure and the next, in nanoseconds: what the rate carries in it leaves
        at once.
        """

@final
class ReceiverHost:
    """The receiving half of one of tidegate's controllers, to be driven by hand."""

    @property
    def alarm_ns(self) -> int | None:
        """Time of its alarm in nanoseconds."""

    @property
    def internals(self) -> dict[str, float]:
        """Named values of the last call."""

    def message(self, now_ns: int) -> list[_Packet]:
        """Its feedback as RTCP packets (see ``tidegate.wire``)."""

    @property
    def needs_true_delay(self) -> bool:
        """Whether it needs the true one-way delays of packets, which no receiver can measure."""

    def on_alarm(self, now_ns: int) -> tuple[_Urgency, int | None]:
        """Its alarm is due."""

    def on_packet(self, now_ns: int, packet: Arrived) -> tuple[_Urgency, int | None]:
        """A data packet has arrived; answers how soon the half wants to speak: ("none" | "regular" |
        "early" | "now", for "early" the nanoseconds within which).
        """

@final
class ReceiverReport:
    """A receiver report (RFC 3550 section 6.4.2)."""

    def __new__(cls, ssrc: int, blocks: list[ReportBlock], extension: bytes) -> Self: ...
    @property
    def blocks(self) -> list[ReportBlock]:
        """Reports on what it receives."""

    @property
    def extension(self) -> bytes:
        """Profile-specific extension."""

    @property
    def ssrc(self) -> int:
        """The receiver."""

@final
class Recording:
    """The results of a run: metrics, tables, hashes."""

    @property
    def digest(self) -> str:
        """Hash of all that was recorded, in hex: the same scenario and seed give the same digest on every machine."""

    def draws_json(self) -> str:
        """The draws of each random substream, as JSON: {name: {count, checkpoints: [[draws, hash]]}}."""

    def encoded(self, flow: str) -> bytes:
        """The byte stream of a flow's encoder in the loop: parameter sets and slices."""

    @property
    def events(self) -> int:
        """Events that the engine handled."""

    @property
    def hops(self) -> int:
        """Packets that left a link, counted at every link."""

    def pcapng(self, side: str) -> bytes:
        """The capture file (pcapng) of what one side sees of all flows: "sender" or "receiver"."""

    @property
    def run_seconds(self) -> float:
        """Wall seconds that the run took, without building the world and writing results."""

    def summary_json(self) -> str:
        """All metrics, as JSON."""

    def table(self, name: str) -> Table:
        """One table."""

    def table_names(self) -> list[str]:
        """The names of the tables there are."""

@final
class Remb:
    """A receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb)."""

    def __new__(cls, sender_ssrc: int, bitrate_bps: int, ssrcs: list[int]) -> Self: ...
    @property
    def bitrate_bps(self) -> int:
        """The rate; on the wire it has 18 significant bits and is cut, not rounded."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the estimating receiver."""

    @property
    def ssrcs(self) -> list[int]:
        """SSRCs of the streams that it limits."""

@final
class Report:
    """One feedback report, joined with the packets sent."""

    def __new__(
        cls,
        packets: Sequence[PacketResult] = ...,
        *,
        in_flight: int = 0,
        backlog: int = 0,
        pacer_delay_ns: int = 0,
        report_rtt_ns: int | None = None,
        packet_rtt_ns: int | None = None,
        ecn: EcnCounts | None = None,
        loss: LossReport | None = None,
        remb_bps: int | None = None,
        messages: Sequence[tuple[str, bytes]] = ...,
        reporter: int = 0,
    ) -> Self: ...
    @property
    def arrival_ns(self) -> npt.NDArray[np.float64]:
        """Their arrival times in nanoseconds of the far clock as floats; NaN: not received."""

    @property
    def backlog(self) -> int:
        """Bytes that wait in the pacer, as rates count them."""

    @property
    def ecn(self) -> EcnCounts | None:
        """The packets of which this report is the first to say that they were received, by ECN field; None: the
        feedback does not tell.
        """

    @property
    def in_flight(self) -> int:
        """Bytes sent and not yet reported on."""

    @property
    def loss(self) -> LossReport | None:
        """Receiver-report statistics."""

    @property
    def messages(self) -> list[tuple[str, bytes]]:
        """The scheme's own messages as (name, bytes)."""

    @property
    def pacer_delay_ns(self) -> int:
        """Time that the oldest packet of media in the pacer has waited, in nanoseconds."""

    @property
    def packet_rtt_ns(self) -> int | None:
        """The round trip of the newest packet reported as received, in nanoseconds."""

    @property
    def packets(self) -> list[PacketResult]:
        """Per-packet results in order of sequence."""

    @property
    def remb_bps(self) -> int | None:
        """A REMB rate in bit/s."""

    @property
    def report_rtt_ns(self) -> int | None:
        """The round trip by a receiver report's LSR and DLSR, in nanoseconds."""

    @property
    def reporter(self) -> int:
        """SSRC of the reporter."""

    @property
    def rtt_ns(self) -> int | None:
        """A fresh round-trip sample in nanoseconds: that of a receiver report, or else that of the newest packet."""

    @property
    def sent_ns(self) -> npt.NDArray[np.int64]:
        """Their sending times in nanoseconds as an array."""

    @property
    def sequence(self) -> npt.NDArray[np.uint64]:
        """Their sequence numbers as an array."""

    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Their sizes in bytes as an array."""

@final
class ReportBlock:
    """A report block (RFC 3550 section 6.4.1)."""

    def __new__(
        cls,
        ssrc: int,
        fraction_lost: int,
        cumulative_lost: int,
        highest_sequence: int,
        jitter: int,
        last_sr: int,
        delay_since_last_sr: int,
    ) -> Self: ...
    @property
    def cumulative_lost(self) -> int:
        """Packets lost since the beginning; in bytes signed 24 bits, to which it is clamped (RFC 3550 A.3)."""

    @property
    def delay_since_last_sr(self) -> int:
        """Delay since then, in 1/65536 s."""

    @property
    def fraction_lost(self) -> int:
        """Fraction lost since the last report, in 1/256."""

    @property
    def highest_sequence(self) -> int:
        """Extended highest sequence number received."""

    @property
    def jitter(self) -> int:
        """Interarrival jitter in timestamp units."""

    @property
    def last_sr(self) -> int:
        """Middle 32 bits of the NTP timestamp of the last SR."""

    @property
    def ssrc(self) -> int:
        """The stream reported on."""

@final
class Routes:
    """The routes that the engine takes over links."""

    def __new__(cls, ends: Sequence[tuple[str, str]]) -> Self:
        """Over links between these points, in this order."""

    def between(self, begin: str, end: str) -> list[int] | None:
        """The numbers of the links from one point to another; none between a point and itself, and nothing where no route
        leads there.
        """

@final
class Rtp:
    """An RTP packet (RFC 3550 section 5.1, header extensions of RFC 8285)."""

    def __new__(
        cls,
        payload_type: int,
        sequence: int,
        timestamp: int,
        ssrc: int,
        marker: bool,
        csrcs: list[int],
        extensions: list[tuple[int, bytes]],
        payload: bytes,
        padding: int,
    ) -> Self: ...
    @property
    def csrcs(self) -> list[int]:
        """SSRCs of the contributing sources (CSRC list)."""

    @property
    def extensions(self) -> list[tuple[int, bytes]]:
        """(identifier, bytes)."""

    @property
    def marker(self) -> bool:
        """For video the last packet of a frame."""

    @property
    def padding(self) -> int:
        """Bytes of padding after the payload."""

    @property
    def payload(self) -> bytes:
        """The payload."""

    @property
    def payload_type(self) -> int:
        """Seven bits."""

    @property
    def sequence(self) -> int:
        """The sequence number."""

    @property
    def ssrc(self) -> int:
        """The stream."""

    @property
    def timestamp(self) -> int:
        """In units of the payload type's clock."""

@final
class Schedule:
    """The transmission state of one participant of an RTP session (RFC 3550 section 6.3, RFC 4585 section 3)."""

    def __new__(
        cls,
        profile: Literal["avp", "avpf"] = "avp",
        *,
        session_bandwidth: int,
        uniform: Callable[[], float] | Iterable[float],
        minimum: int = 5000000000,
        first_size: int = 100,
        l: float = 0.5,
        k: float | None = None,
        max_feedback_delay: int = 1000000000,
        rr_interval: int = 0,
    ) -> Self: ...
    @property
    def allow_early(self) -> bool:
        """Whether the next feedback may go early."""

    @property
    def average_size(self) -> float:
        """avg_rtcp_size in bytes."""

    def cancel_early(self) -> None:
        """Cancels the waiting feedback, which other participants have sent (RFC 4585 section 3.5.2, step 5a)."""

    @property
    def deterministic(self) -> int:
        """Td, the interval without randomisation (RFC 3550 section 6.3.1)."""

    @property
    def due(self) -> int | None:
        """When the timer goes off: te or tn; None for never."""

    def expire(
        self, now_ns: int, waiting: bool = False
    ) -> Literal["nothing", "regular", "minimal", "early", "goodbye"]:
        """The timer has gone off (RFC 3550 section 6.3.6, RFC 4585 section 3.5.3): what to do now."""

    def feedback(
        self, now_ns: int, rtt_ns: int | None = None
    ) -> tuple[Literal["early", "regular", "discard"], int | None]:
        """Requests to send feedback on an event of this instant: how and when it is sent (RFC 4585 section 3.5.2)."""

    def goodbye(self, now_ns: int, size: int) -> bool:
        """Requests to send a goodbye of `size` bytes; returns whether it may be sent at once (RFC 3550 section 6.3.7)."""

    def heard_goodbye(self, size: int) -> None:
        """A goodbye of `size` bytes was received while the own goodbye waits (RFC 3550 section 6.3.7)."""

    def join(self, now_ns: int, members: int) -> None:
        """Joins the session, which then has `members` members (RFC 3550 section 6.3.2)."""

    def leave(self) -> None:
        """Leaves the session: nothing is sent any more."""

    @property
    def member_timeout(self) -> int:
        """Silence after which a member has left (RFC 3550 section 6.3.5, RFC 8108 section 7.1.4)."""

    def received(self, size: int) -> None:
        """A packet of `size` bytes was received, IP and UDP headers included (RFC 3550 section 6.3.3)."""

    @property
    def sender_timeout(self) -> int:
        """Time without RTP after which a sender counts as a receiver (RFC 3550 section 6.3.5)."""

    def sent(self, now_ns: int, size: int) -> None:
        """A regular or minimal packet of `size` bytes was sent: a new interval begins."""

    def sent_early(self, size: int) -> None:
        """An early packet of `size` bytes was sent: a regular one is left out (RFC 4585 section 3.5.2, step 6)."""

    def set_members(self, now_ns: int, members: int) -> None:
        """The number of members has changed; with fewer, the timer comes forward (RFC 3550 section 6.3.4)."""

    def set_senders(self, senders: int, we_sent: bool) -> None:
        """Sets the number of senders, and whether this participant is one (RFC 3550 section 6.3.8)."""

    @property
    def t_rr(self) -> int:
        """T_rr, the last interval computed."""

    @property
    def tn(self) -> int | None:
        """tn, when the next regular packet is scheduled; None for never."""

    @property
    def tp(self) -> int:
        """tp, when the last packet was sent or should have been."""

@final
class Sdes:
    """A source description (RFC 3550 section 6.5): for each source its items as (type, text)."""

    def __new__(cls, chunks: list[tuple[int, list[tuple[int, bytes]]]]) -> Self: ...
    @property
    def chunks(self) -> list[tuple[int, list[tuple[int, bytes]]]]:
        """(SSRC, [(item type, text as bytes)])."""

@final
class SenderReport:
    """A sender report (RFC 3550 section 6.4.1)."""

    def __new__(
        cls,
        ssrc: int,
        ntp: int,
        rtp_timestamp: int,
        packet_count: int,
        octet_count: int,
        blocks: list[ReportBlock],
        extension: bytes,
    ) -> Self: ...
    @property
    def blocks(self) -> list[ReportBlock]:
        """Reports on what it receives."""

    @property
    def extension(self) -> bytes:
        """Profile-specific extension."""

    @property
    def ntp(self) -> int:
        """NTP timestamp, 32.32 bits."""

    @property
    def octet_count(self) -> int:
        """Payload bytes sent."""

    @property
    def packet_count(self) -> int:
        """Packets sent."""

    @property
    def rtp_timestamp(self) -> int:
        """The same instant in RTP timestamp units."""

    @property
    def ssrc(self) -> int:
        """The sender."""

@final
class Sent:
    """One packet has left."""

    def __new__(cls, sequence: int, size: int, in_flight: int = 0, backlog: int = 0) -> Self: ...
    @property
    def backlog(self) -> int:
        """Bytes that wait in the pacer."""

    @property
    def in_flight(self) -> int:
        """Bytes in flight, this packet included."""

    @property
    def sequence(self) -> int:
        """Transport-wide sequence number, unwrapped."""

    @property
    def size(self) -> int:
        """Bytes: payload and RTP header with extensions, without IP and UDP."""

@final
class Shell:
    """A scenario's links between two devices in real time; only on Linux."""

    def __new__(
        cls,
        folder: str,
        scenario_json: str,
        traces: Sequence[Trace] = ...,
        objects: _Objects = ...,
        pcap: bool = False,
        sides: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> Self:
        """A session, which begins now. It writes `arrivals.csv` and `fates.csv` in `folder`, and with `pcap` a capture
        file for each side. `sides` has the names of each side's external flows. The other arguments are those of `run`.
        """

    def finish(self) -> int:
        """Ends the session now and completes its files. Returns the session's time in nanoseconds."""

    def forward(self, a: int, b: int, stop: int) -> str:
        """Forwards between two packet sockets until the scenario's end ("over"), until the descriptor `stop` can be read
        ("stopped"), until a signal arrives ("interrupted"), or until the model lags by a second ("behind").
        """

    def summary_json(self) -> str:
        """Flows, counts and lateness so far, as JSON."""

@final
class Sli:
    """A slice loss indication (RFC 4585 section 6.3.2)."""

    def __new__(cls, sender_ssrc: int, media_ssrc: int, entries: list[tuple[int, int, int]]) -> Self: ...
    @property
    def entries(self) -> list[tuple[int, int, int]]:
        """(first macroblock, number, picture id)."""

    @property
    def media_ssrc(self) -> int:
        """SSRC of the requested stream."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the requester."""

@final
class StepThreads:
    """Threads that step many episodes. They wait between steps, since starting them takes longer than a step of a short
    world.
    """

    def __new__(cls, count: int) -> Self: ...
    def step(
        self,
        episodes: Sequence[Episode],
        actions: npt.NDArray[Any],
        observations: npt.NDArray[Any],
        values: npt.NDArray[Any],
    ) -> list[tuple[float, bool, bool]]:
        """Steps many episodes: fills `observations` (episode, history, feature) and `values` (episode, name), and gives of
        each its default reward (not a number without one), whether it is over, and whether its sender had stopped.
        """

@final
class Stream:
    """A random substream, named by seed, component and purpose: the one that the engine draws from."""

    def __new__(cls, seed: int, component: str, purpose: str) -> Self: ...
    def below(self, bound: int) -> int:
        """Uniform whole number in [0, bound); 0 for a bound of 0."""

    def chance(self, probability: float) -> bool:
        """True with the given probability; draws one number whatever it is."""

    def exponential(self, mean: float) -> float:
        """Exponential with the given mean."""

    def next_u64(self) -> int:
        """64 random bits."""

    def normal(self) -> float:
        """Standard normal."""

    def uniform(self) -> float:
        """Uniform in [0, 1)."""

@final
class Table:
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    "Columns of equal length with names.\n\n    Speaks the Arrow C stream interface, so that ``polars.DataFrame(table)``, ``pyarrow.table(table)``,\n    ``pandas.DataFrame.from_arrow(table)`` and duckdb take it as it is."

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow C stream of the table (one batch)."""

    def __copy__(self) -> Table:
        """Itself: nothing in it can be changed."""

    def __deepcopy__(self, memo: Any) -> Table:
        """Itself: nothing in it can be changed."""

    @overload
    def __getitem__(self, key: str, /) -> npt.NDArray[Any]:
        """A column by its name, as `to_numpy` gives it; KeyError names those that there are."""

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> dict[str, Any]:
        """A row by its number, from the end where that is negative."""

    @overload
    def __getitem__(self, key: slice, /) -> Table:
        """Neighbouring rows."""

    def __len__(self) -> int: ...
    def _repr_html_(self) -> str:
        """Its first rows, for a notebook."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    def labelled(self, controller: str, seed: int) -> Table:
        """The table with two more columns, `controller` and `seed`, the same in all rows. They replace columns of these
        names.
        """

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @staticmethod
    def of(columns: Sequence[tuple[str, npt.NDArray[np.float64 | np.uint64 | np.uint32] | list[str]]]) -> Table:
        """A table of columns of equal length: arrays of float64, uint64 or uint32, or lists of words."""

    def to_numpy(self, column: str) -> npt.NDArray[Any]:
        """One column as a NumPy array; words become an array of strings."""

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`; ImportError says what to install."""

    def to_polars(self) -> Any:
        """The table as a `polars.DataFrame`; ImportError says what to install."""

    def write_parquet(self, path: str) -> None:
        """Writes the table as a Parquet file (zstd)."""

@final
class Terms:
    """The terms on which an agent acts: nanoseconds, bit/s; `change`: the factor of an action of 1, or None for actions
    that are rates.
    """

    def __new__(cls, interval_ns: int, change: float | None, min_bps: int, max_bps: int, history: int) -> Self: ...
    def action(self, rate_bps: int) -> float:
        """The action that asks for a rate in bit/s, where actions are rates."""

    def rate(self, action: float, last_bps: int = 0) -> int:
        """The rate in bit/s that an action asks for after another one."""

@final
class Trace:
    """A recorded or generated capacity over time."""

    @property
    def duration_ns(self) -> int:
        """Duration in nanoseconds, after which it repeats."""

    @property
    def format(self) -> str:
        """Its file format."""

    @staticmethod
    def generate(
        kind: Literal["brownian"],
        seed: int,
        duration_ns: int,
        *,
        start: float | None = None,
        max: float | None = None,
        sigma: float | None = None,
        outage_escape: float | None = None,
    ) -> Trace:
        """A cellular link by the process of Winstein et al. (NSDI 2013, the Sprout paper): kind "brownian".

        Rates are in bit/s; sigma is the standard deviation that the rate gains in one second.
        """

    @staticmethod
    def generate_lte(spec_json: str, seed: int, begin_ns: int, end_ns: int) -> Trace:
        """The capacity of the first user of a radio network with a full buffer between two times in nanoseconds. The
        network is JSON as in the crate's `scenario::RadioSpec`.
        """

    @property
    def kind(self) -> str:
        """Either "opportunities" of delivery, or "rates": a schedule of them."""

    @property
    def mean_rate(self) -> int:
        """Mean capacity in bit/s."""

    @property
    def name(self) -> str:
        """Name of its file or generator."""

    @property
    def outlying(self) -> int | None:
        """The median capacity by time in bit/s, if the mean is more than ten times as large."""

    @staticmethod
    def parse(
        name: str,
        data: bytes,
        format: str | None = None,
        frequency_hz: float | None = None,
        direction: Literal["down", "up"] | None = None,
        reference_rate: int | None = None,
    ) -> Trace:
        """Reads the bytes of a trace file. Raises ValueError with file, line, what was found and what
        would be right.
        """

    @property
    def remarks(self) -> list[str]:
        """Choices of its parser that the file leaves open or contradicts, as sentences."""

    def series(self, bin_ns: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean capacity in bins: (times in s, rates in bit/s)."""

    @property
    def tells(self) -> tuple[bool, bool]:
        """Whether the file has losses, and whether it has delays."""

    def to_csv(self, bin_ns: int = 100000000) -> bytes:
        """As CSV with time_s and rate_bps, in bins where the trace is one of opportunities."""

    def to_json(self) -> str:
        """As JSON, all of it: what the engine for browsers takes."""

    def to_mahimahi(self) -> bytes:
        """As a mahimahi file: one opportunity of 1504 bytes a line, in milliseconds."""

@final
class Twcc:
    """Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01)."""

    def __new__(
        cls,
        sender_ssrc: int,
        media_ssrc: int,
        base_sequence: int,
        reference_time: int,
        feedback_count: int,
        packets: list[_TwccStatus],
    ) -> Self: ...
    @property
    def base_sequence(self) -> int:
        """Sequence number of the first packet."""

    @property
    def feedback_count(self) -> int:
        """Running number of the feedback packets."""

    @property
    def media_ssrc(self) -> int:
        """SSRC of the stream reported on, or 0."""

    @property
    def packets(self) -> list[_TwccStatus]:
        """For each packet None (not received), a number (received so many times 250 us after the one
        before, the first after the reference time), or "untimed" (received, no time told).
        """

    @property
    def reference_time(self) -> int:
        """In 64 ms, 24 bits."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the reporter."""

@final
class TwccBuilder:
    """Makes transport-wide feedback from arrivals. Each receiver needs a builder of its own, which counts its packets."""

    def __new__(cls, sender_ssrc: int, media_ssrc: int, feedback_count: int | None = None) -> Self: ...
    def build(self, begin: int, arrivals: Iterable[tuple[int, int]]) -> list[Twcc]:
        """Feedback on all packets from `begin` to the last of `arrivals`.

        An arrival is (transport-wide sequence number without wraps, time in nanoseconds of the receiver's clock).
        Arrivals ascend by number; packets between them were not received. Times are rounded to 250 us. Arrivals that do
        not fit one feedback packet (a step of more than 8.19 s, 65535 packets) begin another one.
        """

    @property
    def feedback_count(self) -> int:
        """Running number of the next feedback packet."""

    @property
    def media_ssrc(self) -> int:
        """SSRC of the stream reported on, or 0."""

    @property
    def sender_ssrc(self) -> int:
        """SSRC of the reporter."""

@final
class Unknown:
    """An RTCP packet of another type, with its bytes."""

    def __new__(cls, padding: bool, count: int, packet_type: int, body: bytes) -> Self: ...
    @property
    def body(self) -> bytes:
        """Bytes after the first four."""

    @property
    def count(self) -> int:
        """The five bits that are a count, a subtype or a format."""

    @property
    def packet_type(self) -> int:
        """The packet type."""

    @property
    def padding(self) -> bool:
        """The padding bit."""

@final
class World:
    """A scenario that is run in steps; external links and flows are for its driver.

    Times are nanoseconds from its beginning; those that are passed must not go back.
    """

    def __new__(cls, scenario_json: str, traces: Sequence[Trace] = ..., objects: _Objects = ...) -> Self:
        """Builds the world of a scenario; the arguments are those of `run`."""

    def change(self, link: str, at_ns: int, changes: str) -> None:
        """Makes changes of a managed link at `at_ns`, one after the other: a JSON list of tables with new properties."""

    def change_call(self, flow: str, at_ns: int, change: str) -> None:
        """Changes a flow of a call at `at_ns`: a JSON table with another path, or limits of its rates."""

    def drop(self, packet: Packet, cause: str, at_ns: int) -> None:
        """Lets a packet die at `at_ns`, of "queue", "loss", "corrupt", "outage" or "too-big"."""

    @property
    def duration_ns(self) -> int:
        """Duration of the scenario."""

    def feed(self, flow: str, size: int, tag: int, at_ns: int) -> None:
        """Sends a datagram of `size` bytes on the wire on an external flow at `at_ns`; `tag` is for its receiver."""

    def finish(self, at_ns: int | None = None) -> Recording:
        """Ends the run after `at_ns`, or at its end if that is earlier."""

    @property
    def flows(self) -> list[str]:
        """Names of the external flows."""

    def forward(self, packet: Packet, at_ns: int) -> None:
        """Sends a packet on along its route, at `at_ns`."""

    @property
    def links(self) -> list[str]:
        """Names of the external links."""

    @property
    def now_ns(self) -> int:
        """The time of its last event."""

    def peek(self) -> int | None:
        """Time of the next event, as far as it is known; None if there is none before the end."""

    def plan(self, link: str, at_ns: int, changes: str) -> None:
        """Plans changes of a managed link, as moves of the scenario: they are made before all other events at `at_ns`."""

    def plan_call(self, flow: str, at_ns: int, change: str) -> None:
        """Plans a change of a flow of a call, as a move of the scenario: it is made before all other events at `at_ns`."""

    @property
    def reached_ns(self) -> int:
        """The time before which all events have been run."""

    def run_until(self, until_ns: int, holder: object = None) -> list[Packet]:
        """Runs up to and including `until_ns`, but stops after an event in which packets were handed over: those that wait
        at external links, and those that arrived on external flows. Returns these packets; an empty list says that
        `until_ns` was reached. `holder` is the object that their `forward` and `drop` call.
        """

    def step(self, until_ns: int) -> None:
        """Runs all events before `until_ns`, or before the end; for a world without external links and flows. Ctrl-C stops
        it between two events.
        """

    def summary_json(self) -> str:
        """The metrics so far, as JSON: those of a run that ends now, without those that are known only at the end."""

    def table(self, name: str) -> Table:
        """One table, as it is so far."""

    def table_names(self) -> list[str]:
        """The names of the tables there are."""

@final
class _Panics:
    """Every operation on it panics with the operation's name; the constructor and the destructor only if asked to."""

    def __bool__(self) -> bool: ...
    def __iter__(self) -> Self: ...
    def __len__(self) -> int: ...
    def __new__(cls, at_once: bool = False, at_end: bool = False) -> Self: ...
    def __next__(self) -> int: ...
    def argument(self, value: Any) -> None: ...
    @property
    def attribute(self) -> int: ...
    @attribute.setter
    def attribute(self, value: int) -> None: ...
    def method(self, said: str) -> None: ...
    def result(self) -> Any: ...
    @staticmethod
    def speechless() -> None:
        """Panics with a payload that is no text."""

def check_controller(name: str, preset: str = "", settings_json: str = "{}") -> None:
    """Raises ValueError if the settings would not make a controller."""

def controller(
    name: str, preset: str = "", settings_json: str = "{}", seed: int = 0, now_ns: int = 0, limits: Limits | None = None
) -> ControllerHost:
    """Makes a controller to be driven by hand; its first call is ``on_limits(now_ns, limits)``."""

def controller_defaults(name: str, preset: str) -> str:
    """All settings of a preset, as JSON."""

def controller_needs(name: str, preset: str = "", settings_json: str = "{}") -> Needs:
    """Needs of a controller with these settings."""

def controllers_json() -> str:
    """Every controller with its presets and settings, as JSON: `settings` are those of the default preset, and
    `own_settings` those of the presets that have others; `in_call` has what a call sets of a preset, by what its video
    shows.
    """

def decode(data: Buffer) -> list[_Packet]:
    """Decodes the RTCP packets of a compound or reduced-size packet (RFC 3550, RFC 5506).

    `data` may be any object with the buffer protocol: bytes, bytearray, memoryview, array. A ValueError has the problem
    and its place.
    """

def decode_rtp(data: Buffer) -> Rtp:
    """Decodes an RTP packet from any buffer. A ValueError has the problem and its place."""

def drop_rights() -> None:
    """Removes the rights in the namespaces from the calling thread, and from programs that it starts from now on; only on
    Linux.
    """

def encode(packets: Sequence[_Packet]) -> bytes:
    """Encodes RTCP packets, one after the other. Only the last packet is padded with the padding bit (RFC 3550
    section 6.4.1). A value that does not fit its field is a ValueError.
    """

def encode_rtp(packet: Rtp) -> bytes:
    """Encodes an RTP packet, padding included."""

def enter_network(namespace: int) -> None:
    """Moves the calling thread, and the threads and programs that it starts from now on, into a network namespace; only on
    Linux.
    """

def import_captures(
    near: Sequence[bytes],
    far: Sequence[bytes],
    same_clock: bool,
    at: str | None = None,
    rtp: str | None = None,
    replay: ControllerHost | None = None,
) -> ImportedCall:
    """Imports the captures of one or two capture points. `same_clock`: whether both points had one clock. `at`: "sender",
    "receiver" or "middle", where the first one was made. `rtp`: an address and port from or to which all that may be RTP is
    RTP.

    ValueError for a file that cannot be imported: its index among all files, and its problem.
    """

def import_event_logs(files: Sequence[bytes], same_clock: bool, replay: ControllerHost | None = None) -> ImportedCall:
    """Imports the event log of one end, or those of both. `same_clock`: whether both ends had one clock.

    ValueError for a file that cannot be imported: its index, and its problem.
    """

def live_receive(
    bind: str,
    key: bytes,
    max_rate_bps: int,
    about: str = "",
    progress: Callable[[str, float], bool] | None = None,
    capture: str | None = None,
) -> tuple[Recording, str]:
    """Waits for a call on `bind`, answers it, and returns when it is over; see `live_send`."""

def live_send(
    scenario_json: str,
    peer: str,
    key: bytes,
    max_rate_bps: int,
    about: str = "",
    bind: str | None = None,
    objects: _Objects = ...,
    progress: Callable[[str, float], bool] | None = None,
    capture: str | None = None,
) -> tuple[Recording, str]:
    """Sends the only flow of a scenario over UDP to another machine, and returns when the call is over; only on Linux.
    Returns the recording, and the facts of the call as JSON.

    `objects` are as in `run`; `about` is a text for the other side. `progress` is called every 50 ms with a phase
    (waiting, media, exchange) and the share of it that is over, and returns whether to go on. `capture` is a file for a
    capture of this side's datagrams.
    """

def lte_survey(
    spec_json: str, seed: int, begin_ns: int, end_ns: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64], npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    """A radio network without packets, as JSON in the form of the crate's `scenario::RadioSpec`: for each user the cell
    that serves it at the beginning, its geometry in dB, the bytes that its full buffer got between two times in
    nanoseconds, and for each user and cell the gain in dB, users one after the other.
    """

def make_network() -> int:
    """Makes a network namespace and returns its file descriptor; only on Linux."""

def mos(rating: float) -> float:
    """The mean opinion score, 1 to 4.5, of a rating R (G.107 annex B).

    Raises:
        ValueError: When the rating is not a number.
    """

def nada_congestion_signal(
    delay_ms: float, *, p_mark: float = 0.0, p_loss: float = 0.0, preset: str = "rfc8698", **settings: float
) -> float:
    """The aggregate congestion signal x_curr in ms (equation (2)).

    Args:
        delay_ms: What `equivalent_delay` says.
        p_mark: Smoothed marking ratio, 0 to 1.
        p_loss: Smoothed loss ratio, 0 to 1.
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def nada_equivalent_delay(
    queueing_ms: float,
    *,
    loss_int: float | None = None,
    since_loss: float = 0.0,
    preset: str = "rfc8698",
    **settings: float,
) -> float:
    """The queueing delay as it counts, in ms: warped by equation (1) if there were losses lately.

    Args:
        queueing_ms: Queueing delay d_queue in ms.
        loss_int: Mean loss interval in packets; None if there was no loss.
        since_loss: Packets since the last loss. From `multiloss` intervals on, within one more, the warped delay
            goes back linearly to what it is (RFC 8698 section 4.2).
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def nada_gamma(rtt_ms: float, *, preset: str = "rfc8698", **settings: float) -> float:
    """By which part above the receive rate accelerated ramp-up goes, at a round trip of `rtt_ms` (equation (3)).

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def nada_gradual_update(
    r_ref_bps: float,
    signal_ms: float,
    before_ms: float,
    delta_ms: float,
    *,
    rmax_bps: float,
    preset: str = "rfc8698",
    **settings: float,
) -> float:
    """The reference rate after a gradual update, in bit/s, before it is clipped (equations (5) to (7)).

    Args:
        r_ref_bps: The rate before it.
        signal_ms: The congestion signal x_curr.
        before_ms: That of the update before, x_prev.
        delta_ms: Time since then.
        rmax_bps: The largest rate of the flow, RMAX.
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def nada_shaped_rates(
    r_ref_bps: float,
    buffer_bytes: float,
    *,
    rmin_bps: float = 0.0,
    rmax_bps: float,
    preset: str = "rfc8698",
    **settings: float,
) -> tuple[float, float]:
    """Rates of the encoder and of the pacer in bit/s, r_vin and r_send (equations (11) to (14)).

    Args:
        r_ref_bps: The reference rate.
        buffer_bytes: What waits in the rate shaping buffer.
        rmin_bps: The least rate of the flow, RMIN.
        rmax_bps: Its largest rate, RMAX.
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def r_factor(delay_ms: float, loss_fraction: float, *, ie: float = 0.0, bpl: float = 25.1) -> float:
    """The rating R of speech by the E-model, everything but delay, loss and codec at its default.

    Args:
        delay_ms: From mouth to ear, in milliseconds, at least 0.
        loss_fraction: What is missing at the ear, at random, 0 to 1.
        ie: Equipment impairment of the codec, 0 to 95; 0 for G.711.
        bpl: Robustness of the codec to loss, above 0; that of G.711 with its concealment by default.

    Returns:
        R: 93.2 with neither delay nor loss; may be negative.

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def read_parquet(path: str) -> Table:
    """Reads a Parquet file that `Table.write_parquet` wrote; whatever is in it, a wrong one is an error."""

def receiver(name: str, preset: str = "", settings_json: str = "{}", seed: int = 0) -> ReceiverHost:
    """Makes the receiving half of a controller to be driven by hand."""

def recording_format(data: bytes) -> str:
    """Detects the format of a recording: "event log" or "capture"; ValueError for a file that cannot be imported."""

def replay_session(
    arrivals_csv: str,
    fates_csv: str,
    end_ns: int,
    scenario_json: str,
    traces: Sequence[Trace] = ...,
    objects: _Objects = ...,
    sides: tuple[Sequence[str], Sequence[str]] | None = None,
) -> tuple[Recording, str | None]:
    """Replays a session in virtual time from the texts of its `arrivals.csv` and `fates.csv`. Returns the recording, and
    the first difference from the session, if any. `sides` is that of the session; the other arguments are those of
    `run`. Only on Linux.
    """

def run(
    scenario_json: str,
    traces: Sequence[Trace] = ...,
    objects: _Objects = ...,
    progress: Callable[[float], object] | None = None,
) -> Recording:
    """Runs a scenario to its end.

    `scenario_json` is as in the crate's `scenario` module, with `traces` by index. `objects` are the factories of
    controllers in Python by key (called once a flow, they give the controller or a pair of controller and receiver
    half), and of what iterates over pictures for encoders in the loop. `progress`, if any, is called with the share of
    simulated time that is done.
    """

def sprout_forecasts(
    bytes_per_tick: _Whole,
    *,
    time_to_next_ms: int | _Whole = 20,
    controller: Literal["sprout", "sprout-ewma"] = "sprout",
    **settings: float,
) -> npt.NDArray[np.uint32]:
    """Packets that the link will have delivered 20, 40, ... 160 ms after the end of each tick.

    The receiver begins without knowledge at the first tick, as keithw/sprout does.

    Args:
        bytes_per_tick: Bytes received in each tick of 20 ms, shape (ticks,).
        time_to_next_ms: How long the sender says that it will be silent at most, with what came in a tick: one number,
            or one for each tick, from 0 to 65535 (the original's field has 16 bits). An empty tick that begins before
            that says nothing of the link.
        controller: Which of the two.
        settings: Settings of the controller other than its preset's: `confidence`, `packet`, `average_weight`.

    Returns:
        Cumulative packets, shape (ticks, 8).

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def table_of(file: bytes) -> Table:
    """The table in the bytes of a Parquet file of tidegate; ValueError where they are none."""

def tfrc_discount_factor(
    intervals: Iterable[float], *, discounts: Iterable[float] | None = None, threshold: float = 0.25
) -> float:
    """The general discount factor DF: 2 I_mean / I_0 once that is below 1, and at least `threshold`.

    RFC 5348 section 5.5; I_mean is that of the closed intervals. Arguments as of `mean_interval`.
    """

def tfrc_initial_window(mss_bytes: float = 1460.0) -> float:
    """Bytes in the first round trip: min(4 MSS, max(2 MSS, 4380)) (RFC 5348 section 4.2, RFC 3390)."""

def tfrc_loss_event_rate(
    segment_bytes: float, rtt_s: float, rate: float, *, b: float = 1.0, t_rto_s: float | None = None
) -> float:
    """The loss event rate under which `throughput` is `rate` bytes/s: its inverse, for RFC 5348 section 6.3.1.

    Args:
        segment_bytes: Segment size s, above 0.
        rtt_s: Round-trip time R in seconds, above 0.
        rate: Bytes/s, above 0.
        b: Packets acknowledged by one ACK.
        t_rto_s: Retransmission timeout in seconds; 4 R by default.

    Returns:
        p from 1e-18 to 1: one of these ends where the equation does not give such a rate.

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def tfrc_mean_interval(
    intervals: Iterable[float],
    *,
    discounts: Iterable[float] | None = None,
    discounting: bool = False,
    threshold: float = 0.25,
) -> float:
    """The average loss interval in packets; the loss event rate is one over it (RFC 5348 sections 5.4 and 5.5).

    Args:
        intervals: I_0 (open), I_1, I_2 and so on: those beyond I_8 do not count.
        discounts: DF_1, DF_2 and so on, above 0 and at most 1: what earlier discounting left of each closed
            interval's weight; 1 by default.
        discounting: Whether a long I_0 discounts the closed intervals now.
        threshold: By this factor at most.

    Returns:
        Infinite if there is no closed interval.

    Raises:
        ValueError: With what is wrong and what would be right.
    """

def tfrc_small_packet_interval(packets: float, lost: float, lasted_s: float, rtt_s: float) -> float:
    """The length of a closed loss interval for small packets, in packets (RFC 4828 section 3).

    `packets` over `lost` where the interval lasted for at most two round trips, else all `packets`.
    """

def tfrc_small_packet_rate(rate: float, size_bytes: float, *, header_bytes: float = 40.0) -> float:
    """The share of `rate` in bytes/s that small packets may use, each charged with a header (RFC 4828 section 3)."""

def tfrc_throughput(
    segment_bytes: float, rtt_s: float, p: float, *, b: float = 1.0, t_rto_s: float | None = None
) -> float:
    """The rate of a TCP under loss, in bytes/s (RFC 5348 section 3.1).

    Args:
        segment_bytes: Segment size s, above 0.
        rtt_s: Round-trip time R in seconds, above 0.
        p: Loss event rate, 0 to 1; with 0 there is no limit and the answer is infinite.
        b: Packets acknowledged by one ACK.
        t_rto_s: Retransmission timeout in seconds; 4 R by default.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
