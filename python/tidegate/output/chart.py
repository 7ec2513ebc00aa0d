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
    """An axis of a chart, from its low value to its high one."""

    name: str
    """The quantity with its unit, written beside the axis."""
    low: float
    high: float
    log: bool = False
    """Whether equal distances are equal ratios."""
    falls: bool = False
    """Whether values grow from right to left."""
    marks: Sequence[tuple[float, str]] | None = None
    """Values with the texts written at them, instead of round numbers."""

    def part(self, value: float) -> float:
        """The position of a value along the axis: 0 at the left or lower end, 1 at the other end."""
        low, high, value = (
            math.log(max(number, 1e-12)) if self.log else number for number in (self.low, self.high, value)
        )
        part = (value - low) / (high - low)
        return 1 - part if self.falls else part

    def ticks(self, count: int) -> Sequence[tuple[float, str]]:
        """About `count` values and the texts written at them."""
        if self.marks is not None:
            return self.marks
        return [(value, f"{value:g}") for value in self._round(count)]

    def _round(self, count: int) -> list[float]:
        if not self.log:
            return between(self.low, self.high, count)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [value for d in decades for m in (1, 2, 5) if self.low <= (value := m * 10.0**d) <= self.high]


def between(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers between two values.

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
    """A text beside the point, where there is room."""
    size: Literal["small", "plain", "large"] = "plain"
    half: float = 0.0
    """Half-width of the interval of `y`, drawn upwards and downwards."""


@dataclass(frozen=True)
class Trail:
    """Dots that belong together."""

    look: Look
    dots: Sequence[Dot]
    name: str = ""
    """The name of the contender, for the legend."""
    joined: bool = False
    """Whether a line leads from each dot to the next."""
    bare: bool = False
    """Whether only the line is drawn, without dots."""
    spread: bool = False
    """Whether an ellipse shows the spread of the dots."""
    beside: str = ""
    """A remark beside the name in the legend."""

    @property
    def drawn(self) -> list[Dot]:
        """The dots whose coordinates are finite."""
        return [dot for dot in self.dots if math.isfinite(dot.x + dot.y)]


@dataclass(frozen=True)
class Chart:
    """A chart: two axes and the trails between them."""

    x: Axis
    y: Axis
    trails: Sequence[Trail]
    description: str
    """The chart in words, for readers who cannot see it."""
    size: Literal["small", "big", "wide"] = "big"
    level: float | None = None
    """A value of the vertical axis that a dashed line marks."""
    legend: bool = False
    """Whether a legend stands beside it, with a button for each trail that highlights it."""


def rate_delay(trails: Sequence[Trail], size: Literal["small", "big", "wide"] = "big", *, legend: bool = False,
               beside: Sequence[Trail] = ()) -> Chart:  # fmt: skip
    """A chart of rate (Mbit/s) against delay (ms), where delay falls from left to right: up and right is better.

    The delay axis is logarithmic where the largest delay is more than five times the smallest.

    Args:
        trails: Dots with a delay and a rate.
        size: The size of the drawing.
        legend: Whether a legend stands beside the chart.
        beside: Trails of other charts that share these axes.
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
    """The explanation of a dot of rate against delay: name, rate and delay."""
    return f"{name}: {rate:.2f} Mbit/s, {delay:.0f} ms"


def mean_dot(name: str, dots: Sequence[Dot]) -> Dot:
    """The mean of dots of rate against delay: large, with its name."""
    x, y = (math.fsum(axis) / len(dots) for axis in zip(*((dot.x, dot.y) for dot in dots), strict=True))
    return Dot(x, y, rate_title(name, x, y), name, "large")


@dataclass(frozen=True)
class Ellipse:
    """An ellipse of one standard deviation in every direction: about two fifths of normally distributed points.

    It comes from the covariance of the points as they are drawn, like Pantheon's (Yan et al., USENIX ATC 2018).
    """

    x: float
    y: float
    long: float
    """Half of its longer axis."""
    short: float
    angle: float
    """The angle of the longer axis, in degrees from the first coordinate to the second."""

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> Ellipse | None:
        """The ellipse from the covariance of points; `None` for fewer than three.

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
