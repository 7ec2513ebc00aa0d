"""RTP media under a congestion controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from tidegate.control import registry as controllers
from tidegate.control.classes import name_of
from tidegate.control.contenders import Scalar
from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model, StatedDefaults, lowered
from tidegate.scenario.repair import Repair
from tidegate.scenario.shapes import OneOf
from tidegate.scenario.sources import AnyVideo, Audio, CbrVideo, GreedyVideo, StatisticalVideo
from tidegate.units import Duration, Quantity, Rate, Size, show

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading

_RTP_HEADER = 24  # bytes of RTP header with abs-send-time and transport-wide sequence number
_MARKS = 12  # bytes that the longest dependency descriptor adds to the header
_UDP_HEADERS = 28  # bytes of IPv4 and UDP in a capture file, independent of `overhead`

# max_paced_queue_time of kDefaultProbingScreenshareBweSettings in libwebrtc's alr_experiment.cc, 1.0,2875,80,40,-60,3
_SCREEN_LIMIT = Duration(2_875_000_000)


class Controller(Model):
    """A controller with its own settings: each further key is a setting."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    model_config = ConfigDict(extra="allow")

    name: str
    """Name of the controller, or `python:module:Class`, `python:file.py:Class`, `onnx:file`, `alphartc:file.py`."""
    preset: str = ""
    """Preset that the settings of the controller start from; empty: the default preset."""

    @model_validator(mode="before")
    @classmethod
    def _with_units(cls, values: Any) -> Any:
        """Writes quantities as files do: with a unit for the engine, and as numbers for a class, which has no units."""
        if not isinstance(values, dict):
            return values
        name = values.get("name")
        form = int if isinstance(name, str) and name.startswith("python:") else str
        return {key: form(value) if isinstance(value, Quantity) else value for key, value in values.items()}

    @property
    def settings(self) -> dict[str, Scalar]:
        """The settings that differ from the preset."""
        return dict(self.model_extra or {})


AnyController = Annotated[
    str | Controller,
    OneOf('a name such as "gcc", or a table with name'),
    # a class is replaced by its name, so that the scenario can be written and sent to another process
    BeforeValidator(lambda value: name_of(value) if isinstance(value, type) else value),
]


class Feedback(Model):
    """Reports from the receiver."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    format: Literal["auto", "twcc", "ccfb", "none"] = "auto"
    """Format of the feedback: transport-wide (twcc), RFC 8888 (ccfb), receiver reports only (none), or as the
    controller needs (auto).

    With auto, a controller that works with receiver reports or with messages of its own receiving half gets none. Other
    controllers get twcc, or ccfb where packets carry an ECN codepoint (`media.ecn`), which twcc does not report.
    """
    interval: Annotated[Literal["auto", "frame"] | Duration, OneOf('"auto", "frame", or a time'), rules.TIMER] = "auto"
    """Time between two reports, counted from the first packet. The default for twcc is that of libwebrtc's receiver:
    reports of 68 bytes take 5 % of the rate that the receiver's end may send, with at least 50 and at most 250 ms
    between two reports; 50 ms if this end sends no media. The default for ccfb is 50 ms. With "frame" a report comes
    with the last packet of each frame, after 16 packets, and 40 ms after the previous report, which is the rule of
    SCReAM's receiver; this is the default under controllers that need it (`scream`, `scream-v1`)."""
    reports: Annotated[
        Literal["auto", "rfc3550", "libwebrtc"] | Duration,
        OneOf('"auto", "rfc3550", "libwebrtc", or a time'),
        rules.TIMER,
    ] = "auto"
    """Time between two RTCP reports of an end, before randomisation by a factor of 0.5 to 1.5.

    A time is the shortest one by the rules of RFC 3550 section 6.3.1, and with "rfc3550" the shortest one is 360 s
    divided by the session bandwidth in kbit/s (section 6.2), for either end. "libwebrtc" is the rule of its
    `RTCPSender`, with the profile free: an end reports on video that it sends each 360 s divided by the rate in
    kbit/s, but at least each second, on video that it receives each second, and on audio without video each 5 s.
    With "auto" it is "libwebrtc" with the profile free, and "rfc3550" with the others. With the profile avpf there is
    rr_interval instead of a time."""
    profile: Literal["free", "avp", "avpf"] = "free"
    """Times at which RTCP may be sent: feedback at any time and reports by RFC 3550, as WebRTC does in effect (free);
    feedback only with the reports of RFC 3550 section 6.3 (avp); feedback early where RFC 4585 section 3.5 allows it
    (avpf)."""
    bandwidth: Annotated[Rate | None, rules.SENDING_RATE] = None
    """Session bandwidth, of which the RTCP of both ends gets 5 % (RFC 3550 section 6.2); by default max_rate."""
    reduced_size: bool = False
    """Whether early packets hold only feedback (RFC 5506), without a report and the sender's name; with the profile
    avpf only."""
    rr_interval: Duration = Duration(0)
    """Shortest time between full reports with the profile avpf, before randomisation by a factor of 0.5 to 1.5
    (T_rr_interval, RFC 4585 section 3.5.3); a longer time leaves more bandwidth to feedback."""

    ecn_reports: Literal["auto", "on", "off"] = "auto"
    """Whether the receiver reports its ECN counters (RFC 6679 section 5): a summary with each report (XR), and
    feedback on marks between reports. By default (auto) it does if packets carry an ECN codepoint and marks are
    reported neither by the feedback format nor by the controller's own receiving half."""

    @property
    def report_times(self) -> Literal["rfc3550", "libwebrtc"] | Duration:
        """Rule for the times of RTCP reports, or the shortest time between two of them."""
        if self.reports == "auto":
            return "libwebrtc" if self.profile == "free" else "rfc3550"
        return self.reports

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if self.profile == "avpf":
            if self.reports not in ("auto", "rfc3550"):
                yield Problem(
                    (*path, "reports"), f'found "{self.reports}"; with profile = "avpf" use rr_interval instead'
                )
            return
        if self.profile == "avp" and self.reports == "libwebrtc":
            yield Problem((*path, "reports"), 'found "libwebrtc"; it needs profile = "free", and profile is "avp"')
        for key in ("reduced_size", "rr_interval"):
            if getattr(self, key):
                shown_value = show(getattr(self, key))
                yield Problem(
                    (*path, key), f'found {shown_value}; it needs profile = "avpf", and profile is "{self.profile}"'
                )

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        ir = super().to_ir(reading)
        if self.interval == "auto":
            ir["interval"] = None
        ir["reports"] = self.report_times if isinstance(self.report_times, str) else int(self.report_times)
        return ir


class AdaptivePlayout(Model):
    """Bounds of a playout delay that follows the network."""

    min: Duration = Duration(0)
    """Shortest playout delay."""
    max: Duration = Duration(1_000_000_000)
    """Longest playout delay. Video that needs longer is shown as soon as it can be decoded; audio is not played."""

    def problems(self, path: Path, _: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from rules.order(("min", self.min), ("max", self.max), path)


class Adaptive(Model):
    """A playout delay that grows when a frame is late and shrinks slowly."""

    adaptive: AdaptivePlayout
    """Bounds of the delay."""


class Fixed(Model):
    """A fixed playout delay."""

    fixed: Duration
    """Playout delay after the first frame is complete; later frames follow at the intervals of their capture."""

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"fixed": {"delay": lowered(self.fixed, reading)}}


Playout = Annotated[Adaptive | Fixed, OneOf("a table with adaptive or fixed")]

Pause = Annotated[tuple[Duration, Duration], Field(strict=False)]


class Media(StatedDefaults, Model):
    """RTP media under a congestion controller.

    >>> Media(controller="gcc", video={"source": "ideal"}).largest_rate
    Rate('2.5Mbps')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    _kept_if_stated = frozenset({"min_rate", "queue_limit"})

    controller: AnyController = "gcc"
    """The congestion controller."""
    start_rate: Rate = Rate(300_000)
    """Rate at which the controller starts (libwebrtc's default)."""
    min_rate: Rate = Rate(30_000)
    """Lowest rate that the controller may ask for (libwebrtc has 5 kbit/s; WebRTC applications set 30 kbit/s)."""
    max_rate: Rate | None = None
    """Highest rate that the controller may ask for; by default the sum of the sources' largest rates."""
    video: AnyVideo = StatisticalVideo()
    """The video stream."""
    content: Literal["camera", "screen"] = "camera"
    """Content of the video. For a shared screen `gcc:libwebrtc` is configured differently: it paces at the target
    itself, not at 1.1 times the target, and probes every 5 s while it has little to send. With any controller, a
    shared screen has 2.875 s as the default of queue_limit."""
    audio: Annotated[Literal[False] | Audio, OneOf("false, or a table with rate and interval")] = False
    """The audio stream."""
    feedback: Feedback = Feedback()
    """Reports from the receiver."""
    playout: Playout = Adaptive(adaptive=AdaptivePlayout())
    """Playout at the receiver."""
    repair: Annotated[Literal["auto", "none"] | Repair, OneOf('"auto", "none", or a table with nack, pli and fec')] = (
        "auto"
    )
    """Repair of video losses: requests and retransmission (nack), requests of key frames (pli), parity (fec), as a
    table says; or none. With "auto" video is repaired as in a WebRTC call, by requests of packets and of key frames,
    whatever the controller is."""
    ecn: Literal["auto", "off", "ect0", "ect1"] = "auto"
    """ECN codepoint of the RTP packets: none (off), ECT(0) (ect0; RFC 3168, RFC 6679), ECT(1) (ect1; RFC 9331), or as
    the controller needs (auto)."""
    ecn_initiation: Literal["none", "rtp"] = "none"
    """Whether the sender first tests that the path carries ECN, with a small part of its packets and the receiver's ECN
    reports (rtp; RFC 6679 section 7.2.1). If the path does not carry ECN, or stops to, packets have no
    codepoint (section 7.4)."""
    circuit_breaker: Literal["watch", "act", "off"] = "watch"
    """RTP circuit breakers (RFC 8083): the run reports when its sender should have stopped (watch), the sender stops
    for good (act), or neither (off). Circuit breakers use only RTCP, independently of the controller."""
    payload: Size = Size(1200)
    """Size of the RTP payload of a full packet, without headers."""
    overhead: Size = Size(28)
    """Size of the headers of IPv4 and UDP."""
    marks: bool = True
    """Whether video packets name their frame in a header extension of 4 bytes (AV1's dependency descriptor; 12 on the
    first packet of a key frame). Without the extension the receiver learns the frame from the simulator, for
    experiments that prescribe packet sizes."""
    queue_limit: Duration = Duration(2_000_000_000)
    """Longest waiting time of media at the sender. While more media waits than the target rate carries in this time,
    new media is not sent. A controller that drains the queue (`gcc:libwebrtc`) lets its pacer send so fast that no
    packet waits longer, except behind a probe, which has its own rate."""
    both_ways: bool = False
    """Whether the receiver sends the same media back, in the same call."""
    packets: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Number of RTP packets of media after which the flow ends with a BYE, unless it ended before; no limit by
    default."""
    pauses: list[Pause] = Field(default_factory=list)
    """Pauses of the sources: pairs of times, begin and end."""

    @property
    def largest_rate(self) -> Rate:
        """The controller's upper bound: `max_rate`, or the sum of the sources' largest rates."""
        if self.max_rate is not None:
            return self.max_rate
        video = 0 if self.video is False else self.video.max
        audio = 0 if self.audio is False else self.audio.rate
        return Rate(video + audio)

    @property
    def least_rate(self) -> Rate:
        """The controller's lower bound: `min_rate`; its default is lowered to the upper bound."""
        if "min_rate" in self.model_fields_set:
            return self.min_rate
        return Rate(min(self.min_rate, self.largest_rate))

    @property
    def longest_wait(self) -> Duration:
        """Longest wait of media at the sender: `queue_limit`, or for a screen libwebrtc's limit as the default."""
        if self.content == "camera" or "queue_limit" in self.model_fields_set:
            return self.queue_limit
        return _SCREEN_LIMIT

    @property
    def repair_methods(self) -> Repair:
        """Methods of repair that are on: of video by default those of WebRTC, requests of packets and of key frames."""
        if isinstance(self.repair, Repair):
            return self.repair
        return Repair() if self.repair == "none" or self.video is False else Repair(nack=True, pli=True)

    @property
    def first_rate(self) -> Rate:
        """Rate at which the controller starts, within its bounds."""
        return Rate(min(max(self.start_rate, self.least_rate), self.largest_rate))

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        if self.video is False and self.audio is False:
            yield Problem(path, "found neither video nor audio; expected at least one of them")
        yield from self._bounds(path)
        yield from super().problems(path, duration)
        if self.video is False and self.content == "screen":
            yield Problem((*path, "content"), 'found "screen"; the flow has no video; expected "camera"')
        if self.ecn_initiation == "rtp" and self.feedback.ecn_reports == "off":
            yield Problem((*path, "ecn_initiation"), 'found "rtp"; it needs feedback.ecn_reports, which is "off"')
        if self.video is False and self.repair_methods.repairs:
            yield Problem((*path, "repair"), "the flow has no video to repair; remove repair, or add video")
        yield from self._packets(path)
        for position, (begin, end) in enumerate(self.pauses):
            earliest = self.pauses[position - 1][1] if position else 0
            if not earliest <= begin < end:
                message = (
                    f'found "{begin}" to "{end}"; expected pauses in order of time, each from begin to a later end'
                )
                yield Problem((*path, "pauses", position), message)

    def _bounds(self, path: Path) -> Iterator[Problem]:
        low, high = self.least_rate, self.largest_rate
        if self.max_rate is not None:
            yield from rules.SENDING_RATE.problems((*path, "max_rate"), self.max_rate)
        if not high:
            return  # reported for max_rate, or by the sources
        yield from rules.POSITIVE.problems((*path, "min_rate"), low)
        yield from rules.order(("min_rate", low), ("max_rate", high), path)
        if "start_rate" in self.model_fields_set and not low <= self.start_rate <= high:
            message = f'found "{self.start_rate}"; expected between {low} and {high}'
            yield Problem((*path, "start_rate"), message)

    def _packets(self, path: Path) -> Iterator[Problem]:
        if isinstance(self.video, CbrVideo):
            # at least a byte of payload; at most an IP packet with the headers that a capture file has
            minimum = Size(self.overhead + _RTP_HEADER + 1)
            maximum = Size(rules.IP_PACKET - max(_UDP_HEADERS - self.overhead, 0))
            if not minimum <= self.video.packet_size <= maximum:
                message = (
                    f'found "{self.video.packet_size}"; expected from {minimum} (headers and one byte) to {maximum}'
                )
                yield Problem((*path, "video", "packet_size"), message)
        if self.overhead > rules.MAX_OVERHEAD:
            yield Problem((*path, "overhead"), f'found "{self.overhead}"; expected at most {rules.MAX_OVERHEAD}')
            return
        frames = self.video is not False and self.video.source not in ("greedy", "cbr")
        if self.repair_methods.fec and frames and not self.marks:
            message = "found false; expected true with fec, which needs the marks to assign restored packets to frames"
            yield Problem((*path, "marks"), message)
        marks = _MARKS if self.marks and frames else 0
        # parity protects the header extensions, too
        marks *= 2 if self.repair_methods.fec else 1
        headers = max(self.overhead, _UDP_HEADERS) + _RTP_HEADER + marks + self.repair_methods.added
        bounds = rules.Bounds(Size(64), Size(rules.IP_PACKET - headers))
        yield from bounds.problems((*path, "payload"), self.payload)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        chosen = controllers.choose(self.controller, reading.base, run_code=reading.run_code)
        reading.controller(chosen)
        ir = super().to_ir(reading)
        ir["controller"] = chosen.to_ir()
        if ir.pop("content") == "screen":
            ir["controller"]["content"] = "screen"
        ir["queue_limit"] = int(self.longest_wait)
        ir.update(min_rate=int(self.least_rate), max_rate=int(self.largest_rate), start_rate=int(self.first_rate))
        ir["feedback"]["format"], ir["ecn"] = chosen.session(self.feedback.format, self.ecn)
        if (reports := ir["feedback"]["ecn_reports"]) == "auto":
            reports_marks = ir["feedback"]["format"] == "ccfb" or chosen.needs.feedback == "own"
            wanted = self.ecn_initiation == "rtp" or not reports_marks
            reports = "on" if wanted and ir["ecn"] != "off" else "off"
        ir["feedback"]["ecn_reports"] = reports == "on"
        ir["ecn_initiation"] = self.ecn_initiation == "rtp"
        if self.feedback.interval == "auto" and chosen.needs.interval == "frame":
            ir["feedback"]["interval"] = "frame"
        for key in ("video", "audio"):
            ir[key] = ir[key] or None
        if isinstance(self.video, GreedyVideo):
            ir["video"]["max"] = int(self.video.most(self.max_rate))
        if repair := self.repair_methods.to_ir(reading):
            ir["repair"] = repair
        else:
            del ir["repair"]
        del ir["both_ways"]  # it becomes two flows
        return ir
