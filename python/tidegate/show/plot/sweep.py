"""Figures of sweeps: delay against rate along one setting, or maps over two."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tidegate.output.palette import Look, shade
from tidegate.results.metrics import Metric, metric
from tidegate.show import sweeps
from tidegate.show.plot.fitting import Size, Style, drawing, layout, legend_below, letters, width_of
from tidegate.show.plot.naming import PLACES, annotate, around, beside
from tidegate.show.plot.points import reversed_delay_axis
from tidegate.show.plot.style import headline, points, stroke
from tidegate.show.sweeps import DELAY, RATE, Combination, Panel, SweepLike, Swept

_MAX_COLUMNS = 4  # of panels
_MAX_PANELS = 12  # of one figure
_LETTERS = 1.07  # of a headline, per height of a letter of the axes
_CELLS = 14  # the largest number of values along an axis of a map with numbers in its cells


def sweep(
    done: SweepLike,
    *,
    size: Size | None = None,
    style: Style | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws the results of a sweep, as means over seeds.

    One setting: the 95th percentile of the one-way delay against the mean receive rate, as a line through the values of
    the setting, which are written at the points; values that are names have no line, for they have no order. If
    controllers are varied as well, a line for each. Two settings: a map of delay and one of rate, for each controller.
    More settings: the first two are the axes, and each combination of the others is a panel.

    Args:
        done: The sweep.
        size: Width and height in inches.
        style: `paper`, `screen`, or parameters of matplotlib; see [plot][tidegate.plot].
        title: The heading; by default made from the scenario and the setting, and none if empty.
        labels: Other names for controllers, values and settings.

    Raises:
        ValueError: If there are no two combinations with a rate and a delay, or the size is too small.
    """
    swept = Swept.of(done)
    if not swept.drawn:
        raise ValueError(
            "nothing to draw: a figure of a sweep needs at least two combinations of settings with rate and delay"
        )
    panels = swept.panels[:_MAX_PANELS]
    names = labels or {}
    draw, usual = (_maps, _size_of_maps) if swept.is_map else (_paths, _size_of_paths)
    with drawing(*usual(swept, panels), size, style) as figure:
        usual_title = _headline(done.name, swept, len(panels), letters(figure))
        headline(figure, usual_title if title is None else title)
        draw(figure, swept, panels, names)
    return figure


def _headline(name: str, swept: Swept, panels: int, room: float) -> str:
    notes = [swept.how] if [*swept.beside] not in ([], [swept.controllers]) else []
    if panels < len(swept.panels):
        notes.append(f"The first {panels} of {len(swept.panels)} panels.")
    along = f", along {swept.axes[0]}" if swept.axes and not swept.is_map else ""
    return "\n".join([f"{name}{along}", *textwrap.wrap(" ".join(notes), int(room * _LETTERS))])


# --- one setting ----------------------------------------------------------------------------------


def _size_of_paths(_: Swept, panels: Sequence[Panel]) -> Size:
    columns, rows = _grid(panels)
    return 9 if columns == 1 else 4.6 * columns, 0.8 + (5.2 if columns == 1 else 4.2 * rows)


def _grid(panels: Sequence[Panel]) -> tuple[int, int]:
    columns = min(len(panels), _MAX_COLUMNS)
    return columns, -(-len(panels) // columns)


def _paths(figure: Figure, swept: Swept, panels: Sequence[Panel], names: Mapping[str, str]) -> None:
    columns, rows = _grid(panels)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    looks = swept.looks
    dots = [combination.point for panel in panels for combination in panel.combinations]
    dots = [dot for dot in dots if all(map(math.isfinite, dot))]
    reversed_delay_axis(axes[0], [delay for delay, _ in dots])
    axes[0].set_ylim(0, max((rate for _, rate in dots), default=1.0) * 1.15)
    for ax, panel in zip(axes, panels, strict=False):
        for label, line in panel.lines.items():
            _path(ax, swept, line, looks[label])
        ax.set_title(names.get(panel.title, panel.title), fontsize=points(11))
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[max(0, len(panels) - columns) : len(panels)]:
        ax.set_xlabel(_axis_label(metric(DELAY)))
        ax.tick_params(axis="x", labelbottom=True)
    figure.supylabel(_axis_label(metric(RATE)), fontsize=points(11))
    handles = [
        Line2D(
            [],
            [],
            color=looks[label].colour,
            marker=looks[label].marker,
            markersize=stroke(6),
            linestyle=looks[label].linestyle if swept.is_line else "none",
            label=names.get(label, label),
        )
        for label in dict.fromkeys(label for panel in panels for label in panel.lines)
    ]
    legend_below(figure, handles, 3 if swept.is_line else 1.8)
    # labels need the final layout, in which they look for room
    layout(figure)
    for ax, panel in zip(axes, panels, strict=False):
        _write_values(ax, swept, panel, looks, names)


def _path(ax: Axes, swept: Swept, line: Sequence[Combination], look: Look) -> None:
    x, y = np.array([combination.point for combination in line]).T
    ax.plot(x, y, linestyle=look.linestyle if swept.is_line else "none", color=look.colour, alpha=0.7)
    if max(len(combination.rows) for combination in line) > 1:
        across = np.array([combination.mean(DELAY).half or 0.0 for combination in line])
        up = np.array([(combination.mean(RATE).half or 0.0) * metric(RATE).scale for combination in line])
        # an interval may reach below zero, where a logarithmic axis ends
        downwards = np.minimum(across, 0.95 * x)
        ax.errorbar(
            x,
            y,
            xerr=[downwards, across],
            yerr=up,
            fmt="none",
            color=look.colour,
            alpha=0.35,
            linewidth=stroke(1.0),
            capsize=0,
        )
    edge: dict[str, Any] = {"edgecolors": "white", "linewidths": stroke(0.8)}
    ax.scatter(x, y, s=stroke(6.8) ** 2, marker=look.marker, color=look.colour, zorder=3, **edge)


def _write_values(ax: Axes, swept: Swept, panel: Panel, looks: Mapping[str, Look], names: Mapping[str, str]) -> None:
    """Writes the values beside their points, the ends of a line first.

    A number without room is left out, since the others tell its place on the line. A name is written in the nearest
    room, with a thin line to its point.
    """
    if not swept.axes:
        return
    size, dpi = points(9), ax.figure.dpi / 72
    dots = [combination.point for combination in panel.combinations if all(map(math.isfinite, combination.point))]
    # names must not hide points
    occupied = [] if swept.is_line else [around(ax.transData.transform(dot), stroke(4) * dpi) for dot in dots]
    for label, line in panel.lines.items():
        order = [0, len(line) - 1, *range(1, len(line) - 1)] if len(line) > 1 else [0]
        for combination in (line[index] for index in order):
            point = combination.point
            if not all(map(math.isfinite, point)):
                continue
            value = combination.settings[swept.axes[0]]
            text = names.get(value, value)
            x, y = ax.transData.transform(point)
            width, height = 1.02 * width_of(text, size) * dpi, 1.1 * size * dpi
            for across, up in PLACES[:2] if swept.is_line else PLACES:
                box = beside(x, y, (across * size * dpi, up * size * dpi), width, height)
                inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1
                if not swept.is_line:
                    inside = inside and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
                if inside and not any(box.overlaps(obstacle) for obstacle in occupied):
                    occupied.append(box)
                    annotate(ax, text, point, (across * size, up * size), size, color=looks[label].colour)
                    break


# --- two settings ---------------------------------------------------------------------------------


def _size_of_maps(swept: Swept, panels: Sequence[Panel]) -> Size:
    across, up = (swept.values[key] for key in swept.axes)
    columns, rows = _grid(panels)
    wide = min(max(2.6, 0.62 * len(across) + 0.6), 7.0)
    high = min(max(1.5, 0.36 * len(up) + 0.9), 6.0)
    return max(7.0, wide * columns + 1.8), 2 * high * rows + 1.2


def _maps(figure: Figure, swept: Swept, panels: Sequence[Panel], names: Mapping[str, str]) -> None:
    columns, rows = _grid(panels)
    parts = figure.subfigures(2, 1, squeeze=False).ravel()
    for part, name in zip(parts, (RATE, DELAY), strict=True):
        quantity = metric(name)
        axes = part.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        means = {id(cell): cell.mean(name).mean * quantity.scale for panel in panels for cell in panel.combinations}
        finite = [value for value in means.values() if math.isfinite(value)]
        low, top = (min(finite), max(finite)) if finite else (0.0, 1.0)
        for ax, panel in zip(axes.ravel(), panels, strict=False):
            ax.set_title(names.get(panel.title, panel.title), fontsize=points(11))
            _map(ax, swept, panel, means, (low, top, quantity))
        for ax in axes.ravel()[len(panels) :]:
            ax.set_visible(False)
        part.suptitle(_axis_label(quantity), x=0.01, ha="left", fontsize=points(12), fontweight="normal")
        part.supylabel(names.get(swept.axes[1], swept.axes[1]), fontsize=points(10))
    parts[1].supxlabel(names.get(swept.axes[0], swept.axes[0]), fontsize=points(10))
    layout(figure)
    for ax in figure.axes:
        _leave_out_numbers(ax)


def _leave_out_numbers(ax: Axes) -> None:
    """Leaves out the numbers of a map whose cells are too narrow for them."""
    cells = ax.get_xlim()[1] - ax.get_xlim()[0]
    widest = max((width_of(text.get_text(), points(8.5)) for text in ax.texts), default=0.0)
    if widest * ax.figure.dpi / 72 > 0.95 * ax.bbox.width / cells:
        for text in list(ax.texts):
            text.remove()


def _map(ax: Axes, swept: Swept, panel: Panel, means: Mapping[int, float], scale: tuple[float, float, Metric]) -> None:
    across, up = (list(swept.values[key]) for key in swept.axes)
    low, top, quantity = scale
    ax.set(xlim=(-0.5, len(across) - 0.5), ylim=(-0.5, len(up) - 0.5))
    ax.grid(visible=False)
    has_numbers = max(len(across), len(up)) <= _CELLS
    for cell in panel.combinations:
        x, y = (values.index(cell.settings[key]) for key, values in zip(swept.axes, (across, up), strict=True))
        mean = means[id(cell)]
        fill, ink = shade(mean, low, top, quantity.better)
        ax.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, edgecolor="white", linewidth=1))
        if has_numbers:
            ax.text(x, y, sweeps.plainly(mean), ha="center", va="center", fontsize=points(8.5), color=ink)
    for axis, values in ((ax.xaxis, across), (ax.yaxis, up)):
        step = -(-len(values) // _CELLS)
        axis.set_ticks(range(0, len(values), step), values[::step])
    ax.tick_params(axis="x", rotation=45 if sum(map(len, across)) > 6 * len(across) else 0, labelsize=points(9))
    ax.tick_params(axis="y", labelsize=points(9))


def _axis_label(metric: Metric) -> str:
    return f"{metric.label[:1].upper()}{metric.label[1:]} ({metric.unit})"
