"""Drawings of a sweep along one setting: delay against rate, and any number over its values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.results.metrics import HEADLINE, metric
from tidegate.show import sweeps
from tidegate.show.palette import Look
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.show.report.scatter import ticks
from tidegate.show.sweeps import DELAY, RATE, Combination

_LOG_RATIO = 8.0  # between the largest and the smallest delay
_LETTER, _LINE = 6.6, 13.0  # about as wide and as high as a letter is
_MOST_TICKS = 6

Lines = Mapping[str, Sequence[Combination]]


@dataclass(frozen=True)
class Frame:
    """A drawing and the places of its axes."""

    width: float
    height: float
    left: float = 58
    bottom: float = 46

    @property
    def right(self) -> float:
        """Where its axes end."""
        return self.width - 18

    @property
    def top(self) -> float:
        """Where its axes end, above."""
        return 14

    @property
    def base(self) -> float:
        """Where the horizontal axis is."""
        return self.height - self.bottom


BIG, SMALL = Frame(640, 360), Frame(340, 210, left=44, bottom=36)


@dataclass(frozen=True)
class Scale:
    """Where a value is between two places of a drawing."""

    low: float
    top: float
    log: bool
    begin: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value."""
        low, top, value = (math.log(max(one, 1e-12)) if self.log else one for one in (self.low, self.top, value))
        return round(self.begin + (value - low) / (top - low) * (self.end - self.begin), 1)

    def ticks(self, count: int = 5) -> list[float]:
        """About so many round numbers along it."""
        if not self.log:
            return [one for one in ticks(self.top, count) if one >= self.low]
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.top)) + 1)
        return [one for d in decades for m in (1, 2, 5) if self.low <= (one := m * 10.0**d) <= self.top]


def point(one: Combination) -> tuple[float, float]:
    """Delay (ms) and rate (Mbit/s), means over seeds."""
    return one.mean(DELAY).mean * metric(DELAY).scale, one.mean(RATE).mean * metric(RATE).scale


def scales(points: Sequence[tuple[float, float]]) -> tuple[Scale, Scale]:
    """For delays from right to left, logarithmic where they need it, and for rates, which hold all points."""
    known = [one for one in points if all(map(math.isfinite, one))]
    delays = [delay for delay, _ in known if delay > 0] or [1.0]
    log = max(delays) > _LOG_RATIO * min(delays)
    low, top = (min(delays) / 1.4, max(delays) * 1.25) if log else (0.0, max(delays) * 1.12)
    across = Scale(low, top, log, BIG.right, BIG.left)
    up = Scale(0.0, max((rate for _, rate in known), default=1.0) * 1.15 or 1.0, False, BIG.base, BIG.top)
    return across, up


def svg(lines: Lines, own: Mapping[str, Look], of: tuple[Scale, Scale], key: str | None) -> Markup:
    """Delay against rate, the values of the setting written at points."""
    across, up = of
    parts = [*_grid(across, up), *_names("One-way delay, 95th percentile (ms)", "Mean receive rate (Mbit/s)")]
    labels: list[Content] = []
    taken: list[tuple[float, float, float, float]] = []
    for label, some in lines.items():
        places = [(one, across.at(x), up.at(y)) for one in some for x, y in [point(one)] if math.isfinite(x + y)]
        parts += _line([(x, y) for _, x, y in places], own[label], joined=key is not None)
        for one, x, y in places:
            parts.append(_dot(x, y, own[label], told(one, one.settings)))
        if key is None:
            continue
        # the ends first: they say which way the line goes
        for one, x, y in (places[:1] + places[:0:-1])[:2] + places[1:-1]:
            said = one.settings[key]
            if (box := _room(x, y, said, taken)) is not None:
                taken.append(box)
                labels.append(tag("text", said, x=round(box[0], 1), y=round(box[3] - 3, 1), data_hue=_hue(own[label])))
    return drawing(BIG, [*parts, *labels], "Mean receive rate against the 95th percentile of the one-way delay")


def along(lines: Lines, own: Mapping[str, Look], key: str, values: Sequence[str], name: str) -> Markup:
    """A number over the values of a setting, at equal distances in their order; bars are 95 % intervals."""
    about = sweeps.about(name)
    means = {
        label: [(values.index(one.settings[key]), one, one.mean(name)) for one in some] for label, some in lines.items()
    }
    every = [mean for some in means.values() for _, _, mean in some if math.isfinite(mean.mean)]
    top = max((about.scale * (one.mean + (one.half or 0.0)) for one in every), default=1.0)
    low = min((about.scale * (one.mean - (one.half or 0.0)) for one in every), default=0.0)
    # of shares and rates below nothing there is nothing: only the interval reaches there
    low = min(low, 0.0) if any(one.mean < 0 for one in every) else 0.0
    across = Scale(-0.3, len(values) - 0.7, False, SMALL.left, SMALL.right)
    up = Scale(low, (top * 1.1) or 1.0, False, SMALL.base, SMALL.top)
    parts: list[Content] = []
    for tick in up.ticks(4):
        y = up.at(tick)
        parts.append(tag("line", x1=SMALL.left, y1=y, x2=SMALL.right, y2=y, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=SMALL.left - 7, y=y + 4, text_anchor="end"))
    parts.append(tag("line", x1=SMALL.left, y1=up.at(low), x2=SMALL.right, y2=up.at(low), class_="axis"))
    step = -(-len(values) // _MOST_TICKS)
    for at, value in list(enumerate(values))[::step]:
        parts.append(tag("text", value, x=across.at(at), y=SMALL.base + 15, text_anchor="middle"))
    parts.append(tag("text", key, x=(SMALL.left + SMALL.right) / 2, y=SMALL.height - 4, text_anchor="middle"))
    for label, some in means.items():
        places = [(at, one, mean) for at, one, mean in some if math.isfinite(mean.mean)]
        drawn = [(across.at(at), up.at(mean.mean * about.scale)) for at, _, mean in places]
        parts += _line(drawn, own[label], joined=True)
        for (x, y), (_, one, mean) in zip(drawn, places, strict=True):
            if mean.half:
                ends = (up.at(max(low, (mean.mean + sign * mean.half) * about.scale)) for sign in (1, -1))
                y1, y2 = ends
                parts.append(
                    tag("line", x1=x, y1=y1, x2=x, y2=y2, class_="line", opacity=0.5, data_hue=_hue(own[label]))
                )
            parts.append(_dot(x, y, own[label], told(one, one.settings)))
    return drawing(SMALL, parts, f"{sweeps.head(name)} over {key}")


def told(one: Combination, keys: Sequence[str] | Mapping[str, str]) -> str:
    """A combination and its numbers, for whoever points at it."""
    settings = [f"{key} = {one.settings[key]}" for key in keys]
    numbers = []
    for name in HEADLINE:
        mean, about = one.mean(name), metric(name)
        if mean.count:
            numbers.append(f"{about.label}: {about.show_interval(mean)} {about.unit}".rstrip())
    return "\n".join([*settings, *numbers])


def _grid(across: Scale, up: Scale) -> list[Content]:
    parts: list[Content] = []
    left, right, top, bottom = BIG.left, BIG.right, BIG.top, BIG.base
    for tick in across.ticks():
        x = across.at(tick)
        parts.append(tag("line", x1=x, y1=top, x2=x, y2=bottom, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=x, y=bottom + 17, text_anchor="middle"))
    for tick in up.ticks():
        y = up.at(tick)
        parts.append(tag("line", x1=left, y1=y, x2=right, y2=y, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=left - 7, y=y + 4, text_anchor="end"))
    parts.append(tag("line", x1=left, y1=bottom, x2=right, y2=bottom, class_="axis"))
    parts.append(tag("line", x1=left, y1=top, x2=left, y2=bottom, class_="axis"))
    return parts


def _names(across: str, up: str) -> list[Content]:
    turned = f"translate(13 {(BIG.top + BIG.base) / 2}) rotate(-90)"
    return [
        tag("text", across, x=(BIG.left + BIG.right) / 2, y=BIG.height - 8, text_anchor="middle"),
        tag("text", up, transform=turned, text_anchor="middle"),
    ]


def _line(places: Sequence[tuple[float, float]], own: Look, *, joined: bool) -> list[Content]:
    if not joined or len(places) < 2:  # noqa: PLR2004
        return []
    dashes = " ".join(f"{2 * length:g}" for length in own.dashes)
    points = " ".join(f"{x},{y}" for x, y in places)
    return [tag("polyline", points=points, class_="line", data_hue=_hue(own), stroke_dasharray=dashes or None)]


def _dot(x: float, y: float, own: Look, said: str) -> Markup:
    return tag("circle", tag("title", said), cx=x, cy=y, r=5, data_hue=_hue(own))


def _hue(own: Look) -> str:
    return f"{own.colour} {own.on_dark}"


def _room(
    x: float, y: float, said: str, taken: Sequence[tuple[float, float, float, float]]
) -> tuple[float, float, float, float] | None:
    """A box beside a point that covers no other label and stays inside: left, top, right, bottom."""
    width = _LETTER * len(said)
    for left in (x + 8, x - 8 - width):
        for top in (y - _LINE - 2, y + 2):
            box = (left, top, left + width, top + _LINE)
            inside = box[0] >= BIG.left and box[2] <= BIG.width - 2 and box[1] >= 0 and box[3] <= BIG.base
            if inside and not any(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in taken
            ):
                return box
    return None


def drawing(frame: Frame, parts: Sequence[Content], label: str) -> Markup:
    """The whole of it."""
    return tag(
        "svg", *parts, viewBox=f"0 0 {frame.width:g} {frame.height:g}", class_="plot", role="img", aria_label=label
    )
