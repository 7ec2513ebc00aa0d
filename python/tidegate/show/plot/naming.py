"""Texts beside the points of a figure, where they hide neither points nor each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from tidegate.show.plot.fitting import width_of
from tidegate.show.plot.style import stroke
from tidegate.show.view import Floats

_NEAR = ((0.7, 0.45), (0.7, -1.3), (0.7, 1.6), (0.7, -2.5), (1.6, 2.8), (1.6, -3.7), (2.5, 4.0), (2.5, -5.0))
PLACES = [(side * across, up) for across, up in _NEAR for side in (1, -1)]
"""Places of a text beside its point, in heights of its letters: the distance to a side, and the lower edge."""


def beside(x: float, y: float, shift: Sequence[float], width: float, height: float) -> Bbox:
    """The box of a text beside a point, in pixels; it is centred above the point where its shift is to no side."""
    start = x + shift[0] - (width if shift[0] < 0 else 0 if shift[0] else width / 2)
    return Bbox.from_extents(start, y + shift[1], start + width, y + shift[1] + height)


def around(dot: Floats, half: float) -> Bbox:
    """The box of a marker."""
    x, y = dot
    return Bbox.from_extents(x - half, y - half, x + half, y + half)


def annotate(
    ax: Axes, text: str, point: tuple[float, float], shift: tuple[float, float], size: float, *, color: str, **font: Any
) -> None:
    """Writes a text beside its point, with a thin line where it is far from it."""
    side = "left" if shift[0] > 0 else "right" if shift[0] else "center"
    leader = {"arrowstyle": "-", "color": color, "linewidth": stroke(0.6), "shrinkA": 0, "shrinkB": 2}
    far = abs(shift[1]) > 1.5 * size
    ax.annotate(
        text, point, xytext=shift, textcoords="offset points", fontsize=size, color=color, zorder=4,
        ha=side, va="baseline", arrowprops=leader if far else None, **font,
    )  # fmt: skip


def write_names(
    ax: Axes, names: Sequence[tuple[str, tuple[float, float], str]], size: float, marker: float, above: float
) -> None:
    """Writes a name at each point: above it if there is room, else in the nearest room.

    Args:
        ax: The axes, with their limits.
        names: Text, point and colour of each.
        size: Height of the letters, in points.
        marker: Diameter of the markers, in points.
        above: Distance of a name above its point, in points.
    """
    dpi = ax.figure.dpi / 72
    dots = [ax.transData.transform(point) for _, point, _ in names]
    occupied = [around(dot, marker / 2 * dpi) for dot in dots]
    for (text, point, colour), (x, y) in zip(names, dots, strict=True):
        # bold letters are a tenth wider
        width, height = 1.1 * width_of(text, size) * dpi, 1.1 * size * dpi
        shifts = [(0.0, above), *((across * size, up * size) for across, up in PLACES)]
        boxes = [(shift, beside(x, y, (shift[0] * dpi, shift[1] * dpi), width, height)) for shift in shifts]
        free = [
            (shift, box)
            for shift, box in boxes
            if ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
            if not any(box.overlaps(obstacle) for obstacle in occupied)
        ]
        shift, box = free[0] if free else boxes[0]
        occupied.append(box)
        annotate(ax, text, point, shift, size, color=colour, fontweight="bold")
