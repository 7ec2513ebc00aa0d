"""Figures of sweeps: delay against rate along one setting, or maps over two."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from tidegate.output.palette import Look, shade
from tidegate.results.metrics import Metric, metric
from tidegate.show import sweeps
from tidegate.show.plot.points import reversed_delay_axis
from tidegate.show.plot.style import STYLE, finished, headline, new_figure
from tidegate.show.sweeps import DELAY, RATE, Combination, Panel, SweepLike, Swept

_MAX_COLUMNS = 4  # of panels
_MAX_PANELS = 12  # of one figure
_LETTERS = 7  # of a headline, per inch
_CELLS = 14  # the largest number of values along an axis of a map with numbers in its cells


def sweep(done: SweepLike) -> Figure:
    """Draws the results of a sweep, as means over seeds.

    One setting: the 95th percentile of the one-way delay against the mean receive rate, as a line through the values of
    the setting, which are written at the points; if controllers are varied as well, a line for each. Two settings: a
    map of delay and one of rate, for each controller. More settings: the first two are the axes, and each combination
    of the others is a panel.

    Raises:
        ValueError: If there are no two combinations with a rate and a delay.
    """
    swept = Swept.of(done)
    if not swept.drawn:
        raise ValueError(
            "nothing to draw: a figure of a sweep needs at least two combinations of settings with rate and delay"
        )
    panels = swept.panels[:_MAX_PANELS]
    draw = _maps if swept.is_map else _paths
    with mpl.rc_context(STYLE):
        figure = draw(swept, panels)
        headline(figure, _headline(done.name, swept, len(panels), figure.get_figwidth()))
    return finished(figure)


def _headline(name: str, swept: Swept, panels: int, inches: float) -> str:
    notes = [swept.how] if [*swept.beside] not in ([], [swept.controllers]) else []
    if panels < len(swept.panels):
        notes.append(f"The first {panels} of {len(swept.panels)} panels.")
    along = f", along {swept.axes[0]}" if swept.axes and not swept.is_map else ""
    return "\n".join([f"{name}{along}", *textwrap.wrap(" ".join(notes), int(inches * _LETTERS))])


# --- one setting ----------------------------------------------------------------------------------


def _paths(swept: Swept, panels: Sequence[Panel]) -> Figure:
    columns = min(len(panels), _MAX_COLUMNS)
    rows = -(-len(panels) // columns)
    figure = new_figure(9 if columns == 1 else 4.6 * columns, 0.8 + (5.2 if columns == 1 else 4.2 * rows))
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    looks = swept.looks
    points = [combination.point for panel in panels for combination in panel.combinations]
    points = [point for point in points if all(map(math.isfinite, point))]
    reversed_delay_axis(axes[0], [delay for delay, _ in points])
    axes[0].set_ylim(0, max((rate for _, rate in points), default=1.0) * 1.15)
    for ax, panel in zip(axes, panels, strict=False):
        for label, line in panel.lines.items():
            _path(ax, swept, line, looks[label])
        ax.set_title(panel.title, fontsize=11)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[max(0, len(panels) - columns) : len(panels)]:
        ax.set_xlabel(_axis_label(metric(DELAY)))
        ax.tick_params(axis="x", labelbottom=True)
    figure.supylabel(_axis_label(metric(RATE)), fontsize=11)
    labels = dict.fromkeys(label for panel in panels for label in panel.lines)
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.linestyle, label=label)
        for label, look in ((label, looks[label]) for label in labels)
    ]
    columns = int((figure.get_figwidth() - 0.3) / (0.85 + 0.085 * max(map(len, labels))))
    figure.legend(handles=handles, loc="outside lower left", ncols=max(columns, 1), handlelength=3)
    # labels need the final layout, in which they look for room
    figure.draw_without_rendering()
    for ax, panel in zip(axes, panels, strict=False):
        _write_values(ax, swept, panel, looks)
    return figure


def _path(ax: Axes, swept: Swept, line: Sequence[Combination], look: Look) -> None:
    points = [combination.point for combination in line]
    x, y = np.array(points).T
    ax.plot(x, y, linestyle=look.linestyle if swept.axes else "none", color=look.colour, alpha=0.7)
    if max(len(combination.rows) for combination in line) > 1:
        across = np.array([combination.mean(DELAY).half or 0.0 for combination in line])
        up = np.array([(combination.mean(RATE).half or 0.0) * metric(RATE).scale for combination in line])
        # an interval may reach below zero, where a logarithmic axis ends
        downwards = np.minimum(across, 0.95 * x)
        ax.errorbar(
            x, y, xerr=[downwards, across], yerr=up, fmt="none", color=look.colour, alpha=0.35, linewidth=1.0, capsize=0
        )
    ax.scatter(x, y, s=46, marker=look.marker, color=look.colour, edgecolors="white", linewidths=0.8, zorder=3)


def _write_values(ax: Axes, swept: Swept, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Writes the values beside their points, the ends of a line first; values without room are left out."""
    if not swept.axes:
        return
    occupied: list[Bbox] = []
    for label, line in panel.lines.items():
        order = [0, len(line) - 1, *range(1, len(line) - 1)] if len(line) > 1 else [0]
        for combination in (line[index] for index in order):
            point = combination.point
            if not all(map(math.isfinite, point)):
                continue
            x, y = ax.transData.transform(point)
            text = combination.settings[swept.axes[0]]
            for shift, anchor in ((8, "left"), (-8, "right")):
                box = _box(x, y, shift, text, ax.figure.dpi)
                inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1
                if inside and not any(box.overlaps(obstacle) for obstacle in occupied):
                    occupied.append(box)
                    ax.annotate(
                        text, point, xytext=(shift * 0.8, 4), textcoords="offset points", ha=anchor, fontsize=9,
                        color=looks[label].colour, zorder=4,
                    )  # fmt: skip
                    break


def _box(x: float, y: float, shift: float, text: str, dpi: float) -> Bbox:
    """The approximate box of a label of nine points, in dots."""
    point = dpi / 72
    width, height = 5.4 * len(text) * point, 10 * point
    start = x + shift * 0.8 * point - (width if shift < 0 else 0)
    return Bbox.from_extents(start, y + 2 * point, start + width, y + 2 * point + height)


# --- two settings ---------------------------------------------------------------------------------


def _maps(swept: Swept, panels: Sequence[Panel]) -> Figure:
    across, up = (swept.values[key] for key in swept.axes)
    columns = min(len(panels), _MAX_COLUMNS)
    rows = -(-len(panels) // columns)
    wide = min(max(2.6, 0.62 * len(across) + 0.6), 7.0)
    high = min(max(1.5, 0.36 * len(up) + 0.9), 6.0)
    figure = new_figure(max(7.0, wide * columns + 1.8), 2 * high * rows + 1.2)
    parts = figure.subfigures(2, 1, squeeze=False).ravel()
    for part, name in zip(parts, (RATE, DELAY), strict=True):
        quantity = metric(name)
        axes = part.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        means = {id(cell): cell.mean(name).mean * quantity.scale for panel in panels for cell in panel.combinations}
        finite = [value for value in means.values() if math.isfinite(value)]
        low, top = (min(finite), max(finite)) if finite else (0.0, 1.0)
        for ax, panel in zip(axes.ravel(), panels, strict=False):
            ax.set_title(panel.title, fontsize=11)
            _map(ax, swept, panel, means, (low, top, quantity))
        for ax in axes.ravel()[len(panels) :]:
            ax.set_visible(False)
        part.suptitle(_axis_label(quantity), x=0.01, ha="left", fontsize=12)
        part.supylabel(swept.axes[1], fontsize=10)
    parts[1].supxlabel(swept.axes[0], fontsize=10)
    return figure


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
            ax.text(x, y, sweeps.plainly(mean), ha="center", va="center", fontsize=8.5, color=ink)
    for axis, values in ((ax.xaxis, across), (ax.yaxis, up)):
        step = -(-len(values) // _CELLS)
        axis.set_ticks(range(0, len(values), step), values[::step])
    ax.tick_params(axis="x", rotation=45 if sum(map(len, across)) > 6 * len(across) else 0, labelsize=9)
    ax.tick_params(axis="y", labelsize=9)


def _axis_label(metric: Metric) -> str:
    return f"{metric.label[:1].upper()}{metric.label[1:]} ({metric.unit})"
