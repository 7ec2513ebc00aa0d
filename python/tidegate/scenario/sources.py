"""Sources of a call: video and audio."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.scenario import _frames as frames
from tidegate.scenario import _rules as rules
from tidegate.scenario.adaptation import Adaptation
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model, StatedDefaults, lowered
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Frequency, Rate, Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


class EncodedVideo(Model):
    """Base of the video sources with frames."""

    below_min: Literal["wait", "send", "suspend"] = "send"
    """Behaviour while the target is less than audio and `min` need with their headers. Frames of `min` wait at the
    sender, whose pacer keeps to the target, up to `queue_limit` (wait). Frames of `min` are sent, and pacing is lifted
    to them, as in libwebrtc (send). Or no video is sent until the target is enough for `min` and a tenth of it more, or
    20 kbit/s more (suspend; libwebrtc's suspend_below_min_bitrate): padding then keeps up to the target on the wire,
    and video comes back with a key frame."""

    key_interval: Annotated[Duration | None, rules.TIMER] = None
    """Longest time between two key frames; by default there are only the first one, those after pauses, and those on
    request."""
    requests: Annotated[Frequency | None, rules.Bounds(maximum=Frequency("1000/s"), positive=True)] = None
    """Mean frequency of requests of key frames from outside the flow, such as those of other receivers of an SFU; by
    default there are none. Requests are a Poisson process, whose times depend on the seed only. Like requests of the
    receiver, they are ignored for 300 ms after a request that was heeded (libwebrtc, kMinKeyframeSendIntervalMs), or
    for `repair.pli.interval`."""

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {**super().to_ir(reading), **self.encoded_ir(reading)}

    def encoded_ir(self, reading: Reading) -> dict[str, Any]:
        """The keys that differ from the engine's defaults, as the engine takes them."""
        keys: dict[str, Any] = {} if self.below_min == "wait" else {"below_min": self.below_min}
        if self.key_interval is not None:
            keys["key_interval"] = lowered(self.key_interval, reading)
        if self.requests is not None:
            keys["requests"] = self.requests.per_second
        return keys


class Video(Model):
    """Base of the video sources whose encoder follows a target rate."""

    min: Rate = Rate(150_000)
    """The encoder's lowest rate (RFC 8867 section 4)."""
    max: Annotated[Rate, rules.SENDING_RATE] = Rate(2_500_000)
    """The encoder's highest rate."""
    fps: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)] = 30.0
    """Number of frames per second."""
    schedule: rules.SendingSchedule = Field(default_factory=list)
    """Rate that the application needs: pairs of a time since the start of the flow and the highest encoded rate from
    this time on, at most `max`; by default always `max`."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from rules.order(("min", self.min), ("max", self.max), path)
        yield from super().problems(path, duration)
        for position, (_, rate) in enumerate(self.schedule):
            if rate < self.min:
                message = f'found "{rate}"; expected at least min ({self.min})'
                yield Problem((*path, "schedule", position), message)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        bounds: dict[str, Any] = {"min": int(self.min), "max": int(self.max), "fps": self.fps}
        if self.schedule:
            bounds["schedule"] = lowered(self.schedule, reading)
        return {"source": self.source_ir(reading), **bounds}

    def source_ir(self, reading: Reading) -> Any:
        """The keys of this kind of source, as the engine takes them: by default all but those of its bases."""
        source: str = getattr(self, "source")  # noqa: B009
        general = {"source", *Video.model_fields, *EncodedVideo.model_fields, *ModelledVideo.model_fields}
        settings = [name for name in type(self).model_fields if name not in general]
        return {source: {name: lowered(getattr(self, name), reading) for name in settings}} if settings else source


class ModelledVideo(EncodedVideo, Video):
    """Base of the models of encoders, whose resolution and frame rate may follow their rate."""

    adaptation: Annotated[
        bool | Adaptation, OneOf("true, false, or a table with steps, hysteresis, up_after and down_after")
    ] = False
    """Whether resolution and frame rate follow the encoder's rate: in the steps of libwebrtc (true), in other steps, or
    not at all."""

    @property
    def effective_adaptation(self) -> Adaptation | None:
        """The steps, if there are any."""
        if isinstance(self.adaptation, Adaptation):
            return self.adaptation
        return Adaptation() if self.adaptation else None

    def encoded_ir(self, reading: Reading) -> dict[str, Any]:
        """The keys that differ from the engine's defaults, as the engine takes them."""
        keys = super().encoded_ir(reading)
        if (steps := self.effective_adaptation) is not None:
            keys["adaptation"] = steps.for_video(self.fps, reading)
        return keys


class StatisticalVideo(ModelledVideo):
    """An encoder's statistics (RFC 8593 section 5).

    Its key frames are the first frame, the first after a pause, and those on request. The large frame after a change of
    rate is no key frame.
    """

    source: Literal["statistical"] = "statistical"
    """Kind of the source."""
    min: Rate = Rate(30_000)
    """The encoder's lowest rate (libwebrtc, kDefaultMinVideoBitrateBps; RFC 8867 section 4 has 150 kbit/s)."""
    tau_v: Duration = Duration(200_000_000)
    """Time after a change of rate in which further changes are ignored."""
    transient_frames: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Length of a transient in frames (K_d)."""
    burst: Annotated[Size, rules.Bounds(maximum=Size(frames.LARGEST), positive=True)] = Size(13_500)
    """Size of the first frame of a transient (K_B)."""
    key_factor: Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)] = 3.0
    """Size of a key frame as a multiple of the mean frame, at least the size of the first frame of a transient.
    libwebrtc's encoders allow at most 9 at 30 frames per second and 3 at 10 (VP8, VP9), or 3 (AV1). The frames
    after a key frame are smaller, by half at most, until the mean rate is the target."""
    scale_t: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.15
    """Laplace scale of the normalised frame interval."""
    scale_b: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.15
    """Laplace scale of the normalised frame size."""


class IdealVideo(ModelledVideo):
    """An encoder that hits its target with every frame."""

    source: Literal["ideal"]
    """Kind of the source."""
    min: Rate = Rate(30_000)
    """The encoder's lowest rate (libwebrtc, kDefaultMinVideoBitrateBps; RFC 8867 section 4 has 150 kbit/s)."""


class GreedyVideo(StatedDefaults, Video):
    """A source that always has data: it sends as much as the controller allows.

    If the flow has a `max_rate`, this is the default of `max`.
    """

    _kept_if_stated = frozenset({"max"})

    source: Literal["greedy"]
    """Kind of the source."""

    def most(self, max_rate: Rate | None) -> Rate:
        """Its highest rate in a flow with this `max_rate`."""
        if max_rate is None or "max" in self.model_fields_set:
            return self.max
        return Rate(max(self.min, max_rate))


class FramesVideo(StatedDefaults, EncodedVideo, Video):
    """Recorded frame sizes at several rates (RFC 8593 section 6)."""

    _kept_if_stated = frozenset({"skip"})

    source: Literal["frames"]
    """Kind of the source."""
    ladder: str
    """Folder of the files, or a pattern such as `chat_360p_*.txt`; the name of each file ends in its rate in
    kbit/s. With `group`, no other frame refers to those of type `B`."""
    skip: Annotated[int, Field(ge=0, le=10**6)] = 20
    """Number of frames at the beginning that are skipped when the recording starts again (SkipFrames)."""
    group: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Number of frames from one key frame to the next. With it each frame is sent as it was recorded, from the
    recording with the highest rate at or below the target. The rate changes at key frames only, so that the result can
    be decoded. Without it frame sizes are interpolated."""

    @property
    def left_out(self) -> int:
        """Frames that are skipped when the recording starts again; by default none if `group` is set."""
        return self.skip if self.group is None or "skip" in self.model_fields_set else 0

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        for key in ("key_interval", "requests"):
            if self.group is not None and getattr(self, key) is not None:
                message = (
                    f'found "{getattr(self, key)}"; a recording with group ({self.group}) has key frames of its own'
                )
                yield Problem((*path, key), message)

    def source_ir(self, reading: Reading) -> Any:
        """As the engine takes it: the sizes of the frames at each rate."""
        rungs = reading.files.once((reading.base, self.ladder), lambda: frames.ladder(reading.base, self.ladder))
        reading.inputs.files.update({rung.path.name: rung.sha256 for rung in rungs})
        recorded = {"rungs": [[int(rung.rate), rung.sizes] for rung in rungs], "skip": self.left_out}
        if self.group is not None:
            recorded["group"] = self.group
            if unreferenced := _unreferenced(rungs):
                recorded["unreferenced"] = unreferenced
        return {"frames": recorded}


_MOST_B_FRAMES = 4
"""Frames in a row to which no other refers (`Frame::BETWEEN_MAX` of the engine)."""


def _unreferenced(rungs: list[frames.Rung]) -> list[int]:
    """Numbers of the frames that are B frames at each rate, in runs of so few that marks can say so."""
    every = sorted(set.intersection(*(set(rung.unreferenced) for rung in rungs)))
    runs = [[number for _, number in run] for _, run in groupby(enumerate(every), lambda pair: pair[1] - pair[0])]
    return [number for run in runs if len(run) <= _MOST_B_FRAMES for number in run]


class EncoderVideo(EncodedVideo, Model):
    """A clip that an encoder in the loop encodes, frame by frame at the current target rate.

    Needs a build with the cargo feature codec-openh264.
    """

    source: Literal["encoder"]
    """Kind of the source."""
    clip: str
    """The clip and its encoder settings, in the form of --media; the clip sets the frame rate."""
    min: Rate = Rate(150_000)
    """The encoder's lowest rate."""
    max: Annotated[Rate, rules.SENDING_RATE] = Rate(2_500_000)
    """The encoder's highest rate."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from rules.order(("min", self.min), ("max", self.max), path)
        yield from super().problems(path, duration)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it; the pictures are among the inputs of the run."""
        # imported late: only real video needs it
        from tidegate.video import openh264, settings

        chosen = settings.Settings.parse(self.clip)
        openh264.check(chosen)
        clip = chosen.open(reading.base)
        # named by contents, so that the scenario's hash depends on the pictures, not on a path
        name = f"clip {hashlib.sha256(clip.identity.encode()).hexdigest()[:20]}"
        count = math.ceil(reading.scenario.duration / 1e9 * clip.fps) + 1
        reading.inputs.python[name] = lambda: clip.pictures(count)
        size = {"width": clip.width, "height": clip.height}
        source = {"encoder": {"codec": openh264.NAME, "clip": name, **size, "group": chosen.group}}
        bounds = {"min": int(self.min), "max": int(self.max), "fps": round(float(clip.fps), 3)}
        return {"source": source, **bounds, **self.encoded_ir(reading)}


class CbrVideo(Model):
    """Packets of equal size at a fixed rate, independent of the controller; like `udp` with pattern "cbr".

    Packets that come faster than the controller allows wait at the sender, up to `queue_limit`.
    """

    source: Literal["cbr"]
    """Kind of the source."""
    rate: Annotated[Rate | None, rules.SENDING_RATE] = None
    """Sending rate, headers included; either this rate or a schedule."""
    schedule: rules.SendingSchedule = Field(default_factory=list)
    """Pairs of a time since the start of the flow and the rate from this time on."""
    packet_size: Size
    """Size of a packet on the wire, headers included."""

    @property
    def steps(self) -> list[tuple[Duration, Rate]]:
        """Pairs of a time and the rate from then on."""
        return self.schedule or [(Duration(0), self.rate or Rate(0))]

    @property
    def max(self) -> Rate:
        """Highest rate of the schedule."""
        return max(rate for _, rate in self.steps)

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields the problems of its rates; the flow checks the packet size, which depends on its headers."""
        if (self.rate is None) == (not self.schedule):
            which, conjunction = ("neither", "nor") if self.rate is None else ("both", "and")
            yield Problem(path, f"found {which} rate {conjunction} schedule; expected exactly one of them")
            return
        yield from super().problems(path, duration)
        if self.schedule and not self.max:
            yield Problem((*path, "schedule"), "every rate is zero; the source would never send a packet")

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        source = {"packet_size": int(self.packet_size), "schedule": lowered(self.steps, reading)}
        # it has no frames, and its packets depend on its schedule alone
        return {"source": {"cbr": source}, "min": int(self.max), "max": int(self.max), "fps": 0.0}


AnyVideo = Annotated[
    Literal[False] | StatisticalVideo | IdealVideo | GreedyVideo | FramesVideo | EncoderVideo | CbrVideo,
    OneOf("false, or a table whose source is statistical, ideal, greedy, frames, encoder or cbr", by="source"),
]


# long enough that their ends can be counted, and within a day
_Spurt = Annotated[Duration, rules.Bounds(Duration(1_000_000), Duration(86_400 * 10**9))]


class Spurts(Model):
    """Talk spurts and pauses of exponential lengths; the default means are those of ITU-T P.59, table 1."""

    talk: _Spurt = Duration(1_004_000_000)
    """Mean length of a talk spurt."""
    pause: _Spurt = Duration(1_587_000_000)
    """Mean length of a pause."""


class Audio(Model):
    """Audio at a constant rate; G.711 is `{ rate = "64kbps", interval = "20ms" }`, packets of 160 bytes."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    rate: Annotated[Rate, rules.SENDING_RATE] = Rate(20_000)
    """The encoder's rate (RFC 8867 section 4)."""
    interval: Annotated[Duration, rules.TIMER] = Duration(20_000_000)
    """Duration of the audio in a packet."""
    spurts: Annotated[bool | Spurts, OneOf("true, false, or a table with talk and pause")] = False
    """Whether talk alternates with pauses, in which no packets are sent: with the means of ITU-T P.59 (true), or with
    other means."""
    dtx: Annotated[Duration | None, rules.TIMER] = None
    """Time from one packet to the next in silence (DTX; Opus has 400 ms), which begins with a packet, too. They have a
    byte of payload. Audio that a move mutes goes on as silence. By default nothing is sent in silence."""

    @property
    def means(self) -> Spurts | None:
        """The talk spurts, if there are any."""
        if isinstance(self.spurts, Spurts):
            return self.spurts
        return Spurts() if self.spurts else None

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if self.rate * self.interval > frames.LARGEST * 8 * 10**9:
            message = f'found "{self.interval}"; expected a shorter one: packets would exceed {Size(frames.LARGEST)}'
            yield Problem((*path, "interval"), message)
        if self.dtx is not None and 0 < self.dtx < self.interval:
            yield Problem((*path, "dtx"), f'found "{self.dtx}"; expected at least interval ({self.interval})')

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        ir: dict[str, Any] = {"rate": int(self.rate), "interval": int(self.interval)}
        if self.means is not None:
            ir["spurts"] = self.means.to_ir(reading)
        return ir if self.dtx is None else {**ir, "dtx": int(self.dtx)}
