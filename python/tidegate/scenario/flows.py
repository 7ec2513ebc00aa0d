"""Flows: media under a congestion controller, and what competes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, PlainSerializer, PlainValidator, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from tidegate.scenario.model import Model, Name, one_of, shape
from tidegate.scenario.repair import Repair
from tidegate.units import Duration, Rate, Size, show

Scalar = bool | int | float | str
"""What a controller's setting may be."""


class Controller(Model):
    """A controller with settings of its own: every further key is one of them."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    model_config = ConfigDict(extra="allow")

    name: str
    """Its name, or `python:module:Class`, or `python:file.py:Class`."""
    preset: str = ""
    """Which set of values it starts from; its default if empty."""

    @property
    def settings(self) -> dict[str, Scalar]:
        """The settings that differ from the preset."""
        return dict(self.model_extra or {})


def _is_class(value: object) -> type[Any]:
    if isinstance(value, type):
        return value
    raise PydanticCustomError("tidegate", "{why}", {"why": f"found {show(value)}; expected text"})


def _controller_shape(value: object) -> str:
    if isinstance(value, type):
        return "~class"
    return "~table" if isinstance(value, dict | Controller) else "~name"


def _class_name(value: type[Any]) -> str:
    return f"python:{value.__module__}:{value.__qualname__}"


AnyController = Annotated[
    Annotated[str, Tag("~name")]
    | Annotated[Controller, Tag("~table")]
    | Annotated[
        type,
        PlainValidator(_is_class),
        PlainSerializer(_class_name),
        WithJsonSchema({"not": {}}),
        Tag("~class"),
    ],
    shape(_controller_shape, 'a name such as "gcc", or a table with name'),
]


class Video(Model):
    """What video sources have in common."""

    min: Rate = Rate(150_000)
    """The encoder's least rate (RFC 8867 section 4)."""
    max: Rate = Rate(2_500_000)
    """The encoder's largest rate."""
    fps: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)] = 30.0
    """Frames a second."""


class StatisticalVideo(Video):
    """An encoder's statistics (RFC 8593 section 4)."""

    source: Literal["statistical"] = "statistical"
    """The kind of source."""
    tau_v: Duration = Duration(200_000_000)
    """How long after a change of rate the next one is ignored."""
    transient_frames: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Length of a transient in frames (K_d)."""
    burst: Size = Size(13_500)
    """Size of the first frame of a transient (K_B)."""
    scale_t: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.15
    """Laplace scale of the normalised frame interval."""
    scale_b: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.15
    """Laplace scale of the normalised frame size."""


class IdealVideo(Video):
    """An encoder that hits its target with every frame."""

    source: Literal["ideal"]
    """The kind of source."""


class GreedyVideo(Video):
    """Always something to send: what the controller allows is what is sent."""

    source: Literal["greedy"]
    """The kind of source."""


class FramesVideo(Video):
    """Recorded frame sizes at several rates (RFC 8593 section 5)."""

    source: Literal["frames"]
    """The kind of source."""
    ladder: str
    """Folder, or pattern such as `chat_360p_*.txt`; the rate in kbit/s ends each file's name."""
    skip: Annotated[int, Field(ge=0, le=10**6)] = 20
    """Frames left out at the beginning when the recording starts again (SkipFrames)."""
    group: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Frames from one key frame to the next: then each frame is sent as it was recorded, from the highest rate at or
    below the target, which changes at key frames only, so that it can be decoded. Without it sizes are interpolated."""

    @property
    def left_out(self) -> int:
        """Frames left out when the recording starts again: with groups none, unless somebody said so."""
        return self.skip if self.group is None or "skip" in self.model_fields_set else 0


class EncoderVideo(Model):
    """A clip that an encoder in the loop encodes, frame by frame at the target of the moment.

    Needs a build with the cargo feature codec-openh264.
    """

    source: Literal["encoder"]
    """The kind of source."""
    clip: str
    """The clip and how it is encoded, as --media takes it; frames come at its own rate."""
    min: Rate = Rate(150_000)
    """The encoder's least rate."""
    max: Rate = Rate(2_500_000)
    """The encoder's largest rate."""


class CbrVideo(Model):
    """Packets of one size at a given rate, whatever the controller allows; as `udp` sends them with pattern "cbr".

    What comes faster than the controller lets it leave waits at the sender, up to `queue_limit`.
    """

    source: Literal["cbr"]
    """The kind of source."""
    rate: Rate | None = None
    """Its rate, headers included; this or a schedule."""
    schedule: list[Annotated[tuple[Duration, Rate], Field(strict=False)]] = Field(default_factory=list)
    """Pairs of a time since the flow's start and the rate from then on."""
    packet_size: Size
    """Bytes on the wire of a packet, headers included."""

    @property
    def steps(self) -> list[tuple[Duration, Rate]]:
        """The rates and from when on they hold."""
        return self.schedule or [(Duration(0), self.rate or Rate(0))]

    @property
    def max(self) -> Rate:
        """The largest rate."""
        return max(rate for _, rate in self.steps)


def _video_shape(value: object) -> str | None:
    if isinstance(value, bool):
        return "~off"
    source = value.get("source", "statistical") if isinstance(value, dict) else None
    source = getattr(value, "source", source)
    return f"~{source}" if source in {"statistical", "ideal", "greedy", "frames", "encoder", "cbr"} else None


class Spurts(Model):
    """Talk spurts and pauses of exponential lengths; the means are those of ITU-T P.59, table 1."""

    talk: Duration = Duration(1_004_000_000)
    """Mean length of a talk spurt."""
    pause: Duration = Duration(1_587_000_000)
    """Mean length of a pause."""


class Audio(Model):
    """Audio at a constant rate; G.711 is `{ rate = "64kbps", interval = "20ms" }`, packets of 160 bytes."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    rate: Rate = Rate(20_000)
    """The encoder's rate (RFC 8867 section 4)."""
    interval: Duration = Duration(20_000_000)
    """Time in one packet."""
    spurts: Annotated[
        Annotated[bool, Tag("~both")] | Annotated[Spurts, Tag("~spurts")],
        one_of(
            "true, false, or a table with talk and pause",
            table="~spurts",
            other="~both",
        ),
    ] = False
    """Whether somebody talks in spurts, and nothing is sent in between: as in ITU-T P.59 (true), or other means."""

    @property
    def means(self) -> Spurts | None:
        """The talk spurts, if there are any."""
        if isinstance(self.spurts, Spurts):
            return self.spurts
        return Spurts() if self.spurts else None


class Feedback(Model):
    """Reports from the receiver."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    format: Literal["auto", "twcc", "ccfb", "none"] = "auto"
    """Transport-wide (twcc), RFC 8888 (ccfb), receiver reports only (none), or what the controller needs (auto).

    A controller that lives on receiver reports, or on messages of its own receiving half, gets none; others twcc.
    """
    interval: Duration = Duration(50_000_000)
    """Time between two of them, counted from the first packet."""
    reports: Duration | None = None
    """Least time between two RTCP reports of either end before its randomisation, by 0.5 to 1.5 (RFC 3550
    section 6.3.1); by default 360 s over the session bandwidth in kbit/s (section 6.2). Not under avpf."""
    profile: Literal["free", "avp", "avpf"] = "free"
    """When RTCP may be sent: feedback whenever there is some and reports by RFC 3550, as WebRTC does in effect (free);
    all by RFC 3550 section 6.3, with the reports (avp); feedback early where RFC 4585 section 3.5 lets it (avpf)."""
    bandwidth: Rate | None = None
    """The session bandwidth, of which RTCP of both ends gets 5 % (RFC 3550 section 6.2); by default max_rate."""
    reduced_size: bool = False
    """Under avpf, whether early packets are feedback alone (RFC 5506), without a report and its sender's name."""
    rr_interval: Duration = Duration(0)
    """Under avpf, least time between full reports before its randomisation, by 0.5 to 1.5 (T_rr_interval, RFC 4585
    section 3.5.3): it leaves more of the bandwidth to feedback."""


class AdaptivePlayout(Model):
    """Bounds of a playout delay that follows the network."""

    min: Duration = Duration(0)
    """Never less."""
    max: Duration = Duration(1_000_000_000)
    """Never more."""


class Adaptive(Model):
    """A playout delay that grows when a frame is late and shrinks slowly."""

    adaptive: AdaptivePlayout
    """Its bounds."""


class Fixed(Model):
    """A fixed playout delay."""

    fixed: Duration
    """The delay after the first frame."""


Playout = Annotated[
    Annotated[Adaptive, Tag("~adaptive")] | Annotated[Fixed, Tag("~fixed")],
    one_of(
        "a table with adaptive or fixed",
        [("adaptive", "~adaptive"), ("fixed", "~fixed")],
    ),
]

Pause = Annotated[tuple[Duration, Duration], Field(strict=False)]


class Media(Model):
    """RTP media under a congestion controller.

    >>> Media(controller="gcc", video={"source": "ideal"}).largest_rate
    Rate('2.5Mbps')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    controller: AnyController = "gcc"
    """The congestion controller."""
    start_rate: Rate = Rate(300_000)
    """Where it begins (libwebrtc's default)."""
    min_rate: Rate = Rate(30_000)
    """It never asks for less (libwebrtc has 5 kbit/s; WebRTC applications set 30)."""
    max_rate: Rate | None = None
    """It never asks for more; by default what the sources can fill."""
    video: Annotated[
        Annotated[Literal[False], Tag("~off")]
        | Annotated[StatisticalVideo, Tag("~statistical")]
        | Annotated[IdealVideo, Tag("~ideal")]
        | Annotated[GreedyVideo, Tag("~greedy")]
        | Annotated[FramesVideo, Tag("~frames")]
        | Annotated[EncoderVideo, Tag("~encoder")]
        | Annotated[CbrVideo, Tag("~cbr")],
        shape(
            _video_shape,
            "false, or a table whose source is statistical, ideal, greedy, frames, encoder or cbr",
        ),
    ] = StatisticalVideo()
    """The video stream."""
    audio: Annotated[
        Annotated[Literal[False], Tag("~off")] | Annotated[Audio, Tag("~on")],
        one_of(
            "false, or a table with rate and interval",
            table="~on",
            other="~off",
        ),
    ] = False
    """The audio stream."""
    feedback: Feedback = Feedback()
    """Reports from the receiver."""
    playout: Playout = Adaptive(adaptive=AdaptivePlayout())
    """Playout at the receiver."""
    repair: Repair = Repair()
    """How losses of video are repaired: requests and retransmission (nack), requests of key frames (pli), parity (fec);
    by default not at all."""
    payload: Size = Size(1200)
    """RTP payload of a full packet; headers come on top."""
    overhead: Size = Size(28)
    """Headers of IPv4 and UDP."""
    queue_limit: Duration = Duration(2_000_000_000)
    """How much may wait at the sender, as time at the target rate; what comes beyond that is not sent."""
    both_ways: bool = False
    """Whether the receiver sends the same back, in the same call."""
    packets: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """After so many RTP packets of media the flow ends with a BYE, if it has not before; no limit by default."""
    pauses: list[Pause] = Field(default_factory=list)
    """Pairs of times between which the sources are off."""

    @property
    def largest_rate(self) -> Rate:
        """The controller's upper bound: `max_rate`, or what the sources can fill."""
        if self.max_rate is not None:
            return self.max_rate
        video = 0 if self.video is False else self.video.max
        audio = 0 if self.audio is False else self.audio.rate
        return Rate(video + audio)

    @property
    def least_rate(self) -> Rate:
        """The controller's lower bound: `min_rate`, which yields to sources that need less if nobody set it."""
        if "min_rate" in self.model_fields_set:
            return self.min_rate
        return Rate(min(self.min_rate, self.largest_rate))

    @property
    def first_rate(self) -> Rate:
        """Where the controller begins, within its bounds."""
        return Rate(min(max(self.start_rate, self.least_rate), self.largest_rate))


class Udp(Model):
    """UDP cross traffic."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    pattern: Literal["cbr", "poisson", "on_off"] = "cbr"
    """At equal distances, at exponential ones, or at equal ones while on."""
    rate: Rate
    """Mean rate while on."""
    packet_size: Size = Size(1500)
    """Bytes on the wire of a packet (RFC 8868 section 5.3)."""
    on: Duration | None = None
    """Mean time on, for on_off."""
    off: Duration | None = None
    """Mean time off, for on_off."""
    schedule: list[Annotated[tuple[Duration, Rate], Field(strict=False)]] = Field(default_factory=list)
    """Pairs of a time and the rate from then on."""


class FileTransfer(Model):
    """One file."""

    file: Size
    """How long it is."""


class WebSettings(Model):
    """Downloads of uniform size with exponential idle times between (RFC 8868 section 5.1)."""

    min: Size = Size(30_000)
    """Least size."""
    max: Size = Size(50_000)
    """Largest size."""
    idle: Duration = Duration(10_000_000_000)
    """Mean idle time."""


class Web(Model):
    """Short downloads."""

    web: WebSettings
    """Their sizes and pauses."""


Workload = Annotated[
    Annotated[Literal["long"], Tag("~long")] | Annotated[FileTransfer, Tag("~file")] | Annotated[Web, Tag("~web")],
    one_of(
        '"long", or a table with file or web',
        [("file", "~file"), ("web", "~web")],
        words=["long"],
    ),
]


class Tcp(Model):
    """A TCP connection."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    algorithm: Literal["tahoe", "reno", "newreno", "sack", "cubic"] = "cubic"
    """Congestion control (RFC 8868 section 5.1 encourages CUBIC)."""
    workload: Workload = "long"
    """What it carries."""
    initial_window: Annotated[int, Field(ge=1, le=1000)] = 10
    """Initial window in segments (RFC 6928)."""
    min_rto: Duration = Duration(1_000_000_000)
    """Least retransmission time-out (RFC 6298)."""
    delayed_ack: bool = False
    """Whether only every second segment is acknowledged, at most 200 ms late (RFC 5681 section 4.2).
    Off by default, as in ns-2 and in most published figures."""
    handshake: bool = False
    """Whether it begins with a SYN of 40 bytes and waits for the answer (RFC 9293 section 3.5), which makes the first
    round-trip sample as well. ns-2 does, and counts the SYN as a packet sent."""
    receive_window: Size = Size(6_291_456)
    """Receive window (the largest in Linux's default tcp_rmem)."""
    packet_size: Size = Size(1500)
    """Bytes on the wire of a full segment."""


class External(Model):
    """Datagrams that whoever drives the run feeds and hears (see tidegate.simpy)."""


KINDS = ("media", "udp", "tcp", "external")
"""What a flow can be."""


class Flow(Model):
    """One flow, or several alike: exactly one of media, udp, tcp and external.

    >>> Flow(name="call", media=Media(controller="gcc"), stop="60s").stop
    Duration('60s')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name = "flow"
    """Its name; unique."""
    from_: Annotated[Name, Field(alias="from")] = "left"
    """Where its sender is."""
    to: Name = "right"
    """Where its receiver is."""
    start: Duration = Duration(0)
    """When it begins."""
    stop: Duration | None = None
    """When it ends; the run's end by default."""
    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    """How many alike: they are called NAME-1, NAME-2 and so on."""
    start_step: Duration = Duration(0)
    """Time between the starts of two of them."""
    media: Media | None = None
    """RTP media under a congestion controller."""
    udp: Udp | None = None
    """UDP cross traffic."""
    tcp: Tcp | None = None
    """A TCP connection."""
    external: External | None = None
    """Datagrams that whoever drives the run feeds: an empty table."""

    @property
    def kind(self) -> str:
        """Which of them it is."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "none")
