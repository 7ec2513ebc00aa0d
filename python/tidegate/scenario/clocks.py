"""Clocks: those of the ends at a point, where they do not run true."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tidegate.errors import did_you_mean
from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model
from tidegate.units import Duration

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading
    from tidegate.scenario.scenario import Scenario

_LONGEST = rules.Bounds(maximum=Duration(1_000_000_000 * 10**9), positive=True)
"""Bounds of a time by which a clock is set."""


class ClockStep(Model):
    """A time at which a clock is set."""

    time: Duration
    """Time in the run at which the clock is set."""
    ahead: Annotated[Duration | None, _LONGEST] = None
    """Time by which it is set forward."""
    behind: Annotated[Duration | None, _LONGEST] = None
    """Time by which it is set back."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if (self.ahead is None) == (self.behind is None):
            count = "neither" if self.ahead is None else "both"
            yield Problem(path, f"found {count} of `ahead` and `behind`; expected one of them")
        if self.time > duration:
            yield Problem((*path, "time"), f'found "{self.time}"; the run ends at {duration}')

    def to_ir(self, _: Reading) -> Any:
        """As the engine takes it: a time, and by how much the clock then goes forward."""
        return [int(self.time), int(self.ahead or 0) - int(self.behind or 0)]


class Clock(Model):
    """A clock that runs fast or slow, or is set while the run goes on.

    >>> Clock(ppm=50, steps=[{"time": "20s", "ahead": "250ms"}]).ppm
    50.0
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    ppm: Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)] = 0.0
    """Parts per million by which it runs fast; negative: slow. RTP timestamps, playout, and all times in RTCP and
    header extensions go by it; timers and rates do not."""
    steps: Annotated[list[ClockStep], Field(max_length=10_000)] = Field(default_factory=list)
    """Times at which its date is set, in order. Times in RTCP and header extensions go by the date; RTP timestamps and
    playout do not."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        for position, step in enumerate(self.steps):
            yield from step.problems((*path, "steps", position), duration)
        for position, (earlier, later) in enumerate(pairwise(self.steps), 1):
            if later.time <= earlier.time:
                message = f'the step at "{later.time}" follows "{earlier.time}"; expected steps in order of time'
                yield Problem((*path, "steps", position), message)
                return

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: parts per billion."""
        return {"drift": round(self.ppm * 1000), "steps": [step.to_ir(reading) for step in self.steps]}


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each clock at a point without a call, and those of the clocks themselves."""
    media = [flow for flow in scenario.flows if flow.media is not None]
    members = [member for session in scenario.sessions for member in session.members]
    points = {point for flow in media for point in (flow.from_, flow.to)}
    points |= {member.node or member.name for member in members}
    several = {user.name for radio in scenario.radios.values() for user in radio.users if user.several}
    for name, clock in scenario.clocks.items():
        if name in several:
            yield Problem(("clocks", name), f'"{name}" stands for several users; expected a point with one clock')
        elif name not in points:
            hint = did_you_mean(name, points) or f"; available: {', '.join(sorted(points)[:12]) or 'none'}"
            yield Problem(("clocks", name), f'no call begins or ends at "{name}"{hint}')
        yield from clock.problems(("clocks", name), scenario.duration)
