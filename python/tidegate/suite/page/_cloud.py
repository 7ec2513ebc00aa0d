"""Rate against delay over all cases: a point for each case, and an ellipse for each controller."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.show.palette import Look
from tidegate.show.report import scatter
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.suite.page import words
from tidegate.suite.scores import SHOWN, Score

if TYPE_CHECKING:
    from tidegate.suite.result import SuiteResult

_WIDTH, _HEIGHT = 820, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 18, 16, 48
_LOG_RATIO = 5.0
"""Past this ratio of delays a linear axis shows only the largest (as in `plot.rate_delay_scatter`)."""
_NAMED = 22
"""Characters of a name that are written in the drawing."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Ellipse:
    """Where about two fifths of normally distributed points lie: one standard deviation in every direction."""

    x: float
    y: float
    long: float
    """Half of its longer axis."""
    short: float
    angle: float
    """Of the longer axis, in degrees from the first coordinate to the second."""

    @classmethod
    def of(cls, points: Sequence[Point]) -> Ellipse | None:
        """From the covariance of points; `None` of fewer than three.

        >>> one = Ellipse.of([(0.0, 0.0), (2.0, 0.0), (4.0, 0.0), (2.0, 1.0), (2.0, -1.0)])
        >>> [round(value, 3) for value in (one.x, one.y, one.long, one.short, abs(one.angle))]
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


def points(result: SuiteResult, controller: str) -> dict[str, Point]:
    """Delay in ms and rate in Mbit/s of a controller by case, as means over seeds, where it has both."""
    joined = dict(SHOWN)
    found = {}
    for case in result.suite.cases:
        delay, rate = (
            result.interval(case.name, controller, name, joined[name])
            for name in ("one_way_delay_ms_p95", "receive_rate_bps")
        )
        if delay.count and rate.count and delay.mean > 0:
            found[case.name] = (delay.mean, rate.mean / 1e6)
    return found


def section(result: SuiteResult, every: Sequence[Score], own: Mapping[str, Look]) -> Markup:
    """The drawing, and who is who."""
    found = {one.controller: points(result, one.controller) for one in every}
    drawn = [one for some in found.values() for one in some.values()]
    if not drawn:
        return tag("section")
    axes = _Axes.of(drawn)
    parts: list[Content] = [tag("defs", tag("clipPath", _frame(), id="inside")), *axes.parts()]
    clouds: list[Content] = []
    middles: list[tuple[str, Point]] = []
    for one in every:
        places = {case: axes.at(*point) for case, point in found[one.controller].items()}
        if places:
            mean, cloud = _cloud(places, one, own[one.controller], found[one.controller])
            clouds.append(cloud)
            middles.append((one.controller, mean))
    labels = [
        tag("text", _short(name), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_="who",
            style=words.hues(own[name]), data_of=result.controllers.index(name))
        for name, x, y, anchor in _placed(middles)
    ]  # fmt: skip
    drawing = tag(
        "svg", *parts, tag("g", *clouds, clip_path="url(#inside)"), *labels, viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        class_="plot cloud", role="img", aria_label="Rate against delay, a point for each case",
    )  # fmt: skip
    legend = tag("ul", *(_entry(result, one, own) for one in every), class_="legend")
    note = (
        "Each small mark is a case (means over seeds: receive rate of the calls on average, and the 95th percentile of "
        "one-way delay of the worst of them), each large one the mean of a controller's cases. The ellipse is one "
        "standard deviation of its cases in every direction, from their covariance as drawn, as Pantheon draws it (Yan "
        "et al., USENIX ATC 2018). Delay runs from right to left: up and right is better."
    )
    return tag(
        "section",
        tag("h2", "Rate against delay, over all cases"),
        tag("div", tag("figure", drawing), legend, class_="beside"),
        tag("p", note, class_="soft"),
    )


def _frame() -> Markup:
    return tag("rect", x=_LEFT, y=_TOP, width=_WIDTH - _LEFT - _RIGHT, height=_HEIGHT - _TOP - _BOTTOM)


def _short(name: str) -> str:
    return name if len(name) <= _NAMED else f"{name[: _NAMED // 2 - 1]}…{name[-_NAMED // 2 :]}"


def _entry(result: SuiteResult, one: Score, own: Mapping[str, Look]) -> Markup:
    told = f"rank {one.rank}" if one.rank is not None else "no rank"
    button = tag(
        "button", words.named(one.controller, own), tag("small", told),
        data_of=result.controllers.index(one.controller), aria_pressed="false",
    )  # fmt: skip
    return tag("li", button)


def _cloud(places: Mapping[str, Point], one: Score, look: Look, values: Mapping[str, Point]) -> tuple[Point, Markup]:
    """A controller's marks and ellipse, and where the middle of them is."""
    x, y = (math.fsum(axis) / len(places) for axis in zip(*places.values(), strict=True))
    parts: list[Content] = []
    ellipse = Ellipse.of(list(places.values()))
    if ellipse is not None:
        around = f"rotate({ellipse.angle:.1f} {ellipse.x:.1f} {ellipse.y:.1f})"
        dashes = " ".join(f"{1.6 * length:g}" for length in look.dashes) or None
        parts.append(
            tag("ellipse", cx=f"{ellipse.x:.1f}", cy=f"{ellipse.y:.1f}", rx=f"{ellipse.long:.1f}",
                ry=f"{ellipse.short:.1f}", transform=around, stroke_dasharray=dashes)
        )  # fmt: skip
    for case, (a, b) in places.items():
        delay, rate = values[case]
        told = tag("title", f"{one.controller}, {case}: {rate:.2f} Mbit/s, {delay:.0f} ms")
        parts.append(tag("g", told, words.marker(look, a, b, 3.2), class_="dot"))
    parts.append(tag("g", words.marker(look, x, y, 6.5), class_="mean"))
    name = tag("title", one.controller)
    index = tag("g", name, *parts, class_="of", style=words.hues(look), data_name=one.controller)
    return (x, y), index


def _placed(middles: Sequence[tuple[str, Point]]) -> Iterator[tuple[str, float, float, str]]:
    """Names beside their marks where they cover neither another name nor a mark; those without room are left out.

    Who is who stands in the legend, too.
    """
    taken = [(x - 8, y - 8, x + 8, y + 8) for _, (x, y) in middles]
    for name, (x, y) in middles:
        width = 7.4 * len(_short(name))
        for a, b, anchor in _around(x, y):
            left = a - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
            box = (left, b - 11, left + width, b + 3)
            inside = box[0] > _LEFT and box[2] < _WIDTH - _RIGHT and box[1] > _TOP and box[3] < _HEIGHT - _BOTTOM
            if inside and not any(_meet(box, other) for other in taken):
                taken.append(box)
                yield name, a, b, anchor
                break


def _around(x: float, y: float) -> Iterator[tuple[float, float, str]]:
    for far in (0.0, 7.0, 14.0):
        yield x, y - 11 - far, "middle"
        yield x, y + 20 + far, "middle"
        yield x + 11 + far, y + 4, "start"
        yield x - 11 - far, y + 4, "end"


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@dataclass(frozen=True)
class _Axes:
    """Delay from right to left, by decades where it is far apart, and rate upwards."""

    place: Callable[[float], float]
    """Where a delay is, from 0 (right) to 1 (left)."""
    delays: Sequence[float]
    """The ticks."""
    fastest: float

    @classmethod
    def of(cls, drawn: Sequence[Point]) -> _Axes:
        low, high = min(x for x, _ in drawn), max(x for x, _ in drawn)
        fastest = max(y for _, y in drawn) * 1.1 or 1.0
        if high / low <= _LOG_RATIO:
            top = high * 1.1
            return cls(lambda delay: delay / top, scatter.ticks(top, 8), fastest)
        first, last = math.log10(low / 1.3), math.log10(high * 1.3)
        decades = range(math.floor(first), math.ceil(last) + 1)
        every = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
        ticks = [tick for tick in every if first <= math.log10(tick) <= last]
        return cls(lambda delay: (math.log10(delay) - first) / (last - first), ticks, fastest)

    def at(self, delay: float, rate: float) -> Point:
        """The place of a point."""
        across = _WIDTH - _RIGHT - self.place(delay) * (_WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - rate / self.fastest * (_HEIGHT - _TOP - _BOTTOM)

    def parts(self) -> Iterator[Content]:
        """Grid and names."""
        base, left, right = _HEIGHT - _BOTTOM, _LEFT, _WIDTH - _RIGHT
        for tick in self.delays:
            x = round(_WIDTH - _RIGHT - self.place(tick) * (right - left), 1)
            yield tag("line", x1=x, y1=_TOP, x2=x, y2=base, class_="grid")
            yield tag("text", f"{tick:g}", x=x, y=base + 17, text_anchor="middle")
        for tick in scatter.ticks(self.fastest):
            y = round(base - tick / self.fastest * (base - _TOP), 1)
            yield tag("line", x1=left, y1=y, x2=right, y2=y, class_="grid")
            yield tag("text", f"{tick:g}", x=left - 7, y=y + 4, text_anchor="end")
        yield tag("line", x1=left, y1=base, x2=right, y2=base, class_="axis")
        yield tag("line", x1=left, y1=_TOP, x2=left, y2=base, class_="axis")
        named = "One-way delay, 95th percentile (ms)"
        yield tag("text", named, x=(left + right) / 2, y=_HEIGHT - 10, text_anchor="middle")
        turned = f"translate(14 {(_TOP + base) / 2}) rotate(-90)"
        yield tag("text", "Mean receive rate (Mbit/s)", transform=turned, text_anchor="middle")
        yield tag("text", "better ↗", x=right - 8, y=_TOP + 16, text_anchor="end")
