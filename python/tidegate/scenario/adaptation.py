"""Steps of a video's resolution and frame rate, which follow the encoder's rate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model
from tidegate.units import Duration, Rate

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


class VideoStep(Model):
    """A resolution and a frame rate."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    rate: Annotated[Rate, rules.Bounds(maximum=rules.MAX_RATE)] = Rate(0)
    """Lowest rate of the encoder at which the step is used; 0 for the first step."""
    height: Annotated[int, Field(ge=1, le=16_384)]
    """Height of the pictures in pixels."""
    fps: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)] | None = None
    """Number of frames per second; by default that of the video."""


_LIBWEBRTC = ((0, 180), (200_000, 270), (300_000, 360), (500_000, 540), (900_000, 720))
"""Least start rate and height of a single stream, without codecs that have a table of their own
(`EncoderInfoSettings::GetDefaultSinglecastBitrateLimits`, rtc_base/experiments/encoder_info_settings.cc)."""


def _steps() -> list[VideoStep]:
    return [VideoStep(rate=Rate(rate), height=height) for rate, height in _LIBWEBRTC]


class Adaptation(Model):
    """Steps of resolution and frame rate that follow the encoder's rate, with a hysteresis.

    Up to the first frame each target chooses the highest step whose rate it reaches. Afterwards the steps are taken one
    by one upwards, and downwards to the one that the rate is enough for. Another height makes a key frame, another
    frame rate alone makes none.
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    steps: Annotated[list[VideoStep], Field(min_length=1, max_length=100)] = Field(default_factory=_steps)
    """The steps, in ascending order of rate; by default libwebrtc's for a single stream: 180 lines, 270 from
    200 kbit/s, 360 from 300, 540 from 500, and 720 from 900 kbit/s, all with the frame rate of the video."""
    hysteresis: Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)] = 1.2
    """Ratio of the rate that is needed to go up to a step and the step's own rate (libwebrtc's `video_hysteresis` of
    simulcast, rate_control_settings.cc)."""
    up_after: Duration = Duration(5_000_000_000)
    """Time for which the rate has to be enough for the next step before it is taken (libwebrtc's `QualityScaler`
    decides each `kMeasureMs` times `kSamplePeriodScaleFactor`, 5 s)."""
    down_after: Duration = Duration(2_000_000_000)
    """Time for which the rate has to be below that of a step before it is left; 0 for the next frame (`kMeasureMs`,
    2 s, is the time up to the first such decision of libwebrtc's `QualityScaler`)."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        path = (*path, "steps")
        for position, step in enumerate(self.steps):
            yield from step.problems((*path, position), duration)
        if (first := self.steps[0].rate) > 0:
            yield Problem((*path, 0, "rate"), f'found "{first}"; expected "0bps" for the first step')
        for position, (lower, upper) in enumerate(pairwise(self.steps), 1):
            if upper.rate <= lower.rate:
                message = f'found "{upper.rate}" after "{lower.rate}"; expected steps in ascending order of rate'
                yield Problem((*path, position, "rate"), message)
            if (upper.height, upper.fps) == (lower.height, lower.fps):
                message = f"found the height ({upper.height}) and the fps of the step before; expected others"
                yield Problem((*path, position), message)

    def for_video(self, fps: float, reading: Reading) -> dict[str, Any]:
        """As the engine takes it, for a video of this frame rate."""
        ir: dict[str, Any] = self.to_ir(reading)
        for step in ir["steps"]:
            step["fps"] = step["fps"] or fps
        return ir
