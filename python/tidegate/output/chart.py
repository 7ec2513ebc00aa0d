"""Charts as data: dots, lines and spreads of contenders between two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tidegate.output.palette import Look

_LOG_RATIO = 5.0
"""Past this ratio of delays a linear axis shows only the largest (as in `plot.rate_delay_scatter`)."""
DELAY_AXIS, RATE_AXIS = "One-way delay, 95th percentile (ms)", "Mean receive rate (Mbit/s)"


@dataclass(frozen=True)
class Axis:
    """From which value to which a chart goes."""

    name: str
    """What stands beside it, with the unit."""
    low: float
    high: float
    log: bool = False
    """Whether equal distances are equal ratios."""
    falls: bool = False
    """Whether it goes from right to left."""
    marks: Sequence[tuple[float, str]] | None = None
    """What is written at which values, instead of round numbers."""

    def part(self, value: float) -> float:
        """How far along the axis a value is: 0 at its low end, 1 at its high one."""
        low, high, value = (
            math.log(max(number, 1e-12)) if self.log else number for number in (self.low, self.high, value)
        )
        part = (value - low) / (high - low)
        return 1 - part if self.falls else part

    def ticks(self, count: int) -> Sequence[tuple[float, str]]:
        """About so many values and what is written at them."""
        if self.marks is not None:
            return self.marks
        return [(value, f"{value:g}") for value in self._round(count)]

    def _round(self, count: int) -> list[float]:
        if not self.log:
            return between(self.low, self.high, count)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [value for d in decades for m in (1, 2, 5) if self.low <= (value := m * 10.0**d) <= self.high]


def between(low: float, high: float, count: int = 5) -> list[float]:
    """About so many round numbers between two values.

    >>> between(0, 3.4), between(21, 24, 3)
    ([0.0, 1.0, 2.0, 3.0], [21.0, 22.0, 23.0, 24.0])
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


@dataclass(frozen=True)
class Dot:
    """A point of a chart."""

    x: float
    y: float
    title: str = ""
    """An explanation, for a reader who points at it."""
    label: str = ""
    """What is written beside it, where there is room."""
    size: Literal["small", "plain", "large"] = "plain"
    half: float = 0.0
    """Half of its interval, upwards and downwards."""


@dataclass(frozen=True)
class Trail:
    """Dots that belong together."""

    look: Look
    dots: Sequence[Dot]
    name: str = ""
    """Whose they are, for the legend."""
    joined: bool = False
    """Whether a line leads from each to the next."""
    bare: bool = False
    """Whether the line alone is drawn."""
    spread: bool = False
    """Whether an ellipse says how far apart they are."""
    beside: str = ""
    """What the legend says of it beside its name."""

    @property
    def drawn(self) -> list[Dot]:
        """The dots that have a place."""
        return [dot for dot in self.dots if math.isfinite(dot.x + dot.y)]


@dataclass(frozen=True)
class Chart:
    """A chart."""

    x: Axis
    y: Axis
    trails: Sequence[Trail]
    description: str
    """What it shows, for readers who do not see it."""
    size: Literal["small", "big", "wide"] = "big"
    level: float | None = None
    """A value of the vertical axis to be seen beside the dots."""
    legend: bool = False
    """Whether names of trails stand beside it, as buttons that bring out one of them."""


def rate_delay(trails: Sequence[Trail], size: Literal["small", "big", "wide"] = "big", *, legend: bool = False,
               beside: Sequence[Trail] = ()) -> Chart:  # fmt: skip
    """Rate (Mbit/s) against delay (ms), delay from right to left: up and right is better.

    The axis of delay is logarithmic where a linear one would hide most of it.

    Args:
        trails: Dots with a delay and a rate.
        size: How large.
        legend: Whether names stand beside it.
        beside: Trails of other charts that are to have the same axes.
    """
    dots = [dot for trail in (*trails, *beside) for dot in trail.drawn]
    delays = [dot.x for dot in dots if dot.x > 0] or [1.0]
    fastest = max((dot.y for dot in dots), default=1.0) * 1.15 or 1.0
    log = max(delays) > _LOG_RATIO * min(delays)
    low, high = (min(delays) / 1.3, max(delays) * 1.3) if log else (0.0, max(delays) * 1.1)
    return Chart(
        Axis(DELAY_AXIS, low, high, log, falls=True),
        Axis(RATE_AXIS, 0.0, fastest),
        trails,
        "Mean receive rate against the 95th percentile of the one-way delay",
        size,
        legend=legend,
    )


def rate_title(name: str, delay: float, rate: float) -> str:
    """What a dot of rate against delay says of itself."""
    return f"{name}: {rate:.2f} Mbit/s, {delay:.0f} ms"


def mean_dot(name: str, dots: Sequence[Dot]) -> Dot:
    """The mean of dots of rate against delay: large, with its name."""
    x, y = (math.fsum(axis) / len(dots) for axis in zip(*((dot.x, dot.y) for dot in dots), strict=True))
    return Dot(x, y, rate_title(name, x, y), name, "large")


@dataclass(frozen=True)
class Ellipse:
    """Where about two fifths of normally distributed points lie: one standard deviation in every direction.

    From the covariance of points as they are drawn, as Pantheon draws it (Yan et al., USENIX ATC 2018).
    """

    x: float
    y: float
    long: float
    """Half of its longer axis."""
    short: float
    angle: float
    """Of the longer axis, in degrees from the first coordinate to the second."""

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> Ellipse | None:
        """From the covariance of points; `None` of fewer than three.

        >>> ellipse = Ellipse.of([(0.0, 0.0), (2.0, 0.0), (4.0, 0.0), (2.0, 1.0), (2.0, -1.0)])
        >>> [round(value, 3) for value in (ellipse.x, ellipse.y, ellipse.long, ellipse.short, abs(ellipse.angle))]
        [2.0, 0.0, 1.414, 0.707, 0.0]
        """
        count = len(points)
        if count < 3:  # noqa: PLR2004
            return None
        x, y = (math.fsum(axis) / count for axis in zip(*points, strict=True))
        xx = math.fsum((a - x) ** 2 for a, _ in points) / (count - 1)
        yy = math.fsum((b - y) ** 2 for _, b in points) / (count - 1)
        xy = math.fsum((a - x) * (b - y) for a, b in points) / (count - 1)
        middle, apart = (xx + yy) / 2, math.hypot((xx - yy) / 2, xy)
        angle = math.degrees(math.atan2(2 * xy, xx - yy) / 2)
        return cls(x, y, math.sqrt(middle + apart), math.sqrt(max(middle - apart, 0.0)), angle)
