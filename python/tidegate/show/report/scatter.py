"""Rate against delay, and other lines and points, as small drawings in SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tidegate.show.report.markup import Content, Markup, tag

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 14, 44


def ticks(top: float, count: int = 5) -> list[float]:
    """About ``count`` round numbers from zero to at most ``top``.

    >>> ticks(3.4)
    [0.0, 1.0, 2.0, 3.0]
    """
    if not top > 0:
        return [0.0]
    raw = top / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * (1 - 1e-9))
    return [round(i * step, 12) for i in range(int(top / step + 1e-9) + 1)]


def axes(
    at: Callable[[float, float], tuple[float, float]], across: tuple[float, str], up: tuple[float, str]
) -> list[Content]:
    """A grid and what it says; `at` gives the place of a point, `across` and `up` the largest values and names."""
    (widest, x_name), (highest, y_name) = across, up
    (x_zero, base), (x_most, top) = at(0, 0), at(widest, highest)
    left, right = min(x_zero, x_most), max(x_zero, x_most)
    parts: list[Content] = []
    for tick in ticks(widest):
        x, _ = at(tick, 0)
        parts.append(tag("line", x1=x, y1=top, x2=x, y2=base, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=x, y=base + 17, text_anchor="middle"))
    for tick in ticks(highest):
        _, y = at(0, tick)
        parts.append(tag("line", x1=left, y1=y, x2=right, y2=y, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=left - 7, y=y + 4, text_anchor="end"))
    parts.append(tag("line", x1=left, y1=base, x2=right, y2=base, class_="axis"))
    parts.append(tag("line", x1=left, y1=top, x2=left, y2=base, class_="axis"))
    parts.append(tag("text", x_name, x=(left + right) / 2, y=_HEIGHT - 8, text_anchor="middle"))
    turned = f"translate(13 {(top + base) / 2}) rotate(-90)"
    parts.append(tag("text", y_name, transform=turned, text_anchor="middle"))
    return parts


def drawing(parts: Sequence[Content], label: str) -> Markup:
    """The whole of it."""
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="plot", role="img", aria_label=label)


def svg(points: Mapping[str, Sequence[tuple[float, float]]], hues: Mapping[str, tuple[str, str]]) -> Markup:
    """Each label's points (95th percentile of delay in ms, rate in Mbit/s), delay to the left."""
    known = {label: [p for p in members if all(map(math.isfinite, p))] for label, members in points.items()}
    every = [point for members in known.values() for point in members]
    slowest = max((x for x, _ in every), default=1.0) * 1.1 or 1.0
    fastest = max((y for _, y in every), default=1.0) * 1.15 or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across = _WIDTH - _RIGHT - x / slowest * (_WIDTH - _LEFT - _RIGHT)
        return round(across, 1), round(_HEIGHT - _BOTTOM - y / fastest * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = axes(at, (slowest, "One-way delay, 95th percentile (ms)"), (fastest, "Mean receive rate (Mbit/s)"))
    labels: list[Content] = []
    for label, members in known.items():
        if not members:
            continue
        hue = " ".join(hues[label])
        if len(members) > 1:
            for x, y in (at(*point) for point in members):
                parts.append(tag("circle", cx=x, cy=y, r=3, data_hue=hue, opacity=0.5))
        x, y = at(*(sum(axis) / len(members) for axis in zip(*members, strict=True)))
        parts.append(tag("circle", cx=x, cy=y, r=7, data_hue=hue))
        # keep the name inside the drawing
        anchor = "end" if x > _WIDTH - 90 else "start" if x < _LEFT + 90 else "middle"
        labels.append(
            tag(
                "text",
                label,
                x=x,
                y=max(y - 12, 12),
                text_anchor=anchor,
                class_="who",
                data_hue=hue,
            )
        )
    return drawing([*parts, *labels], "Mean receive rate against the 95th percentile of the one-way delay")


def lines(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    hues: Mapping[str, tuple[str, str]],
    *,
    x: str,
    y: str,
    limit: float | None = None,
) -> Markup:
    """A line for each label, from left to right; `limit` is a level to be seen beside them."""
    every = [point for curve in curves.values() for point in curve]
    widest = max((a for a, _ in every), default=1.0) or 1.0
    highest = max((*(b for _, b in every), limit or 0.0), default=1.0) * 1.1 or 1.0

    def at(a: float, b: float) -> tuple[float, float]:
        across = _LEFT + a / widest * (_WIDTH - _LEFT - _RIGHT)
        return round(across, 1), round(_HEIGHT - _BOTTOM - b / highest * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = axes(at, (widest, x), (highest, y))
    if limit is not None:
        (left, level), (right, _) = at(0, limit), at(widest, limit)
        parts.append(tag("line", x1=left, y1=level, x2=right, y2=level, class_="axis", stroke_dasharray="5 4"))
    for place, (label, curve) in enumerate(curves.items()):
        hue = " ".join(hues[label])
        path = " ".join(f"{a},{b}" for a, b in (at(*point) for point in curve))
        parts.append(tag("polyline", points=path, class_="line", data_hue=hue))
        parts.append(
            tag("text", label, x=_WIDTH - _RIGHT - 6, y=_TOP + 16 + 17 * place, text_anchor="end", class_="who",
                data_hue=hue)
        )  # fmt: skip
    return drawing(parts, f"{y} against {x}")
