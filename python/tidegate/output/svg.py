"""Charts as SVG drawings of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.output.chart import Chart, Dot, Ellipse, Trail
from tidegate.output.markup import Content, Markup, tag
from tidegate.output.palette import Look

_LETTER, _LINE = 7.0, 13.0
"""The approximate width and height of a letter."""
_LONGEST = 22
"""The largest number of characters of a label; longer names are shortened."""
_RADIUS = {"small": 3.2, "plain": 4.5, "large": 6.5}

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class _Frame:
    """The size of a drawing, and the position of its axes."""

    width: float
    height: float
    left: float
    bottom: float
    top: float = 16

    @property
    def right(self) -> float:
        return self.width - 18

    @property
    def base(self) -> float:
        return self.height - self.bottom

    def position(self, x: float, y: float) -> Point:
        """The coordinates of a point that is given in fractions of both axes."""
        across, up = self.left + x * (self.right - self.left), self.base - y * (self.base - self.top)
        return round(across, 1), round(up, 1)


_FRAMES = {"small": _Frame(340, 210, 46, 38), "big": _Frame(640, 360, 58, 46), "wide": _Frame(820, 470, 58, 48)}


def drawing(chart: Chart) -> Markup:
    """Draws a chart as SVG."""
    frame = _frame(chart)
    places = [
        [(dot, frame.position(chart.x.part(dot.x), chart.y.part(dot.y))) for dot in trail.drawn]
        for trail in chart.trails
    ]
    over = _RADIUS["large"]  # so that dots at the end of an axis are not cut off
    inside = tag("rect", x=frame.left - over, y=frame.top - over, width=frame.right - frame.left + 2 * over,
                 height=frame.base - frame.top + 2 * over)  # fmt: skip
    name = f"inside-{chart.size}-{frame.left:g}"
    clouds = [_trail(chart, frame, trail, dots) for trail, dots in zip(chart.trails, places, strict=True)]
    parts: list[Content] = [tag("defs", tag("clipPath", inside, id=name)), *_axes(chart, frame)]
    if chart.level is not None:
        (start, level), (end, _) = (frame.position(part, chart.y.part(chart.level)) for part in (0.0, 1.0))
        parts.append(tag("line", x1=start, y1=level, x2=end, y2=level, class_="axis", stroke_dasharray="5 4"))
    parts.append(tag("g", *clouds, clip_path=f"url(#{name})"))
    parts += _labels(frame, chart.trails, places)
    return tag(
        "svg", *parts, viewBox=f"0 0 {frame.width:g} {frame.height:g}", class_=f"plot {chart.size}", role="img",
        aria_label=chart.description,
    )  # fmt: skip


def _frame(chart: Chart) -> _Frame:
    """The frame with room for the texts at the vertical axis; letters of large drawings grow on narrow screens."""
    frame = _FRAMES[chart.size]
    letters = max((len(text) for _, text in chart.y.ticks(_y_tick_count(chart))), default=0)
    usual, letter = (5, _LETTER) if chart.size == "small" else (3, 2.5 * _LETTER)
    return replace(frame, left=frame.left + letter * max(0, letters - usual))


def _y_tick_count(chart: Chart) -> int:
    """The approximate number of ticks of the vertical axis."""
    return 4 if chart.size == "small" else 5


def hues(look: Look) -> str:
    """The colours for light and dark pages, as a style attribute."""
    return f"--light:{look.colour};--dark:{look.on_dark}"


def swatch(look: Look) -> Markup:
    """Draws a piece of a contender's line with its marker."""
    line = tag("line", x1=0, y1=5, x2=34, y2=5, stroke_dasharray=_dashes(look))
    return tag("svg", line, _marker(look, 17, 5, 4), class_="swatch", viewBox="0 0 34 10", aria_hidden="true",
               style=hues(look))  # fmt: skip


def _dashes(look: Look) -> str | None:
    return " ".join(f"{2 * length:g}" for length in look.dashes) or None


def _marker(look: Look, x: float, y: float, r: float) -> Markup:
    """Draws the marker of a contender, in the shape of matplotlib's marker of the same name."""
    points: tuple[Point, ...]
    match look.marker:
        case "s":
            return tag("rect", x=f"{x - r:.1f}", y=f"{y - r:.1f}", width=2 * r, height=2 * r)
        case "^":
            points = ((0, -1.2), (1.1, 0.8), (-1.1, 0.8))
        case "v":
            points = ((0, 1.2), (1.1, -0.8), (-1.1, -0.8))
        case "D":
            points = ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0))
        case _:
            return tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=r)
    return tag("polygon", points=" ".join(f"{x + a * r:.1f},{y + b * r:.1f}" for a, b in points))


def _axes(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    """Draws grid, ticks and names."""
    for value, text in chart.x.ticks(5 if chart.size == "small" else 7):
        x, _ = frame.position(chart.x.part(value), 0)
        if chart.x.marks is None:
            yield tag("line", x1=x, y1=frame.top, x2=x, y2=frame.base, class_="grid")
        anchor = "end" if x > frame.right - _LETTER * len(text) / 2 else "middle"
        yield tag("text", text, x=x, y=frame.base + 16, text_anchor=anchor)
    for value, text in chart.y.ticks(_y_tick_count(chart)):
        _, y = frame.position(0, chart.y.part(value))
        yield tag("line", x1=frame.left, y1=y, x2=frame.right, y2=y, class_="grid")
        yield tag("text", text, x=frame.left - 7, y=y + 4, text_anchor="end")
    yield tag("line", x1=frame.left, y1=frame.base, x2=frame.right, y2=frame.base, class_="axis")
    yield tag("line", x1=frame.left, y1=frame.top, x2=frame.left, y2=frame.base, class_="axis")
    middle = (frame.left + frame.right) / 2
    yield tag("text", chart.x.name, x=middle, y=frame.height - 6, text_anchor="middle")
    turned = f"translate(13 {(frame.top + frame.base) / 2}) rotate(-90)"
    yield tag("text", chart.y.name, transform=turned, text_anchor="middle", class_="up")
    if chart.x.falls:
        yield tag("text", "better ↗", x=frame.right - 8, y=frame.top + 14, text_anchor="end")


def _trail(chart: Chart, frame: _Frame, trail: Trail, places: Sequence[tuple[Dot, Point]]) -> Markup:
    """Draws line, ellipse, interval bars and dots of one contender."""
    parts: list[Content] = []
    points = [point for dot, point in places if dot.size != "large"]
    if trail.joined and len(places) > 1:
        line = " ".join(f"{x},{y}" for _, (x, y) in places)
        parts.append(tag("polyline", points=line, class_="line", stroke_dasharray=_dashes(trail.look)))
    if trail.spread and (ellipse := Ellipse.of(points)) is not None:
        around = f"rotate({ellipse.angle:.1f} {ellipse.x:.1f} {ellipse.y:.1f})"
        parts.append(
            tag("ellipse", cx=f"{ellipse.x:.1f}", cy=f"{ellipse.y:.1f}", rx=f"{ellipse.long:.1f}",
                ry=f"{ellipse.short:.1f}", transform=around, stroke_dasharray=_dashes(trail.look))
        )  # fmt: skip
    for dot, (x, y) in places if not trail.bare else ():
        if dot.half:
            ends = [frame.position(0, chart.y.part(max(chart.y.low, dot.y + sign * dot.half)))[1] for sign in (1, -1)]
            parts.append(tag("line", x1=x, y1=ends[0], x2=x, y2=ends[1], class_="line interval-bar"))
        title = [tag("title", dot.title)] if dot.title else []
        parts.append(tag("g", *title, _marker(trail.look, x, y, _RADIUS[dot.size]), class_=f"dot {dot.size}"))
    return tag("g", *parts, class_="of", style=hues(trail.look), data_name=trail.name or None)


def _labels(frame: _Frame, trails: Sequence[Trail], places: Sequence[Sequence[tuple[Dot, Point]]]) -> Iterator[Markup]:
    """Draws labels where they cover neither each other nor a large dot; labels without room are left out.

    The ends of a line come first, since they show its direction. The legend has all names.
    """
    occupied: list[Box] = [
        (x - 8, y - 8, x + 8, y + 8) for dots in places for dot, (x, y) in dots if dot.size == "large"
    ]
    for trail, dots in zip(trails, places, strict=True):
        labelled = [(dot, point) for dot, point in dots if dot.label]
        ends = (labelled[:1] + labelled[:0:-1])[:2]
        for dot, (x, y) in ends + labelled[1:-1]:
            text = _shortened(dot.label)
            width = _LETTER * len(text)
            for a, b, anchor in _around(x, y):
                start = a - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
                box = (start, b - _LINE + 2, start + width, b + 3)
                inside = box[0] > frame.left and box[2] < frame.right + 10 and box[1] > 0 and box[3] < frame.base
                if inside and not any(_overlap(box, obstacle) for obstacle in occupied):
                    occupied.append(box)
                    yield tag("text", text, x=round(a, 1), y=round(b, 1), text_anchor=anchor, class_="who",
                              style=hues(trail.look), data_name=trail.name or None)  # fmt: skip
                    break


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2 - 1]}…{name[-_LONGEST // 2 :]}"


def _around(x: float, y: float) -> Iterator[tuple[float, float, str]]:
    """Yields positions and anchors of a label beside a dot, the nearest ones first."""
    for far in (0.0, 7.0, 14.0):
        yield from ((x, y - 10 - far, anchor) for anchor in ("middle", "end", "start"))
        yield x + 9 + far, y + 4, "start"
        yield x - 9 - far, y + 4, "end"
        yield x, y + 19 + far, "middle"


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def legend(trails: Sequence[Trail], names: Mapping[str, Markup]) -> Markup:
    """Draws names as buttons that highlight their trail.

    Args:
        trails: The trails of the chart.
        names: The name of each trail as HTML.
    """
    items = [
        tag("li", tag("button", names[trail.name], tag("small", trail.beside), data_name=trail.name,
                      aria_pressed="false"))
        for trail in trails
    ]  # fmt: skip
    return tag("ul", *items, class_="legend")
