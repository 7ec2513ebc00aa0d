"""A sweep: delay against rate along one setting, or maps over two."""

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

_ACROSS = 4  # panels
_MOST = 12  # panels of one figure
_LETTERS = 7  # of a headline, an inch
_CELLS = 14  # values along an axis of a map that has numbers in its cells


def sweep(done: SweepLike) -> Figure:
    """What a sweep found, as a figure.

    One setting: the 95th percentile of the one-way delay against the mean receive rate, a line through its values with
    the values at the points; a line for each controller where controllers are varied, too. Two: a map of either, and a
    panel for each controller. Further settings: the first two are the axes, and each combination of the others is a
    panel. Means over seeds.

    Raises:
        ValueError: If there are no two combinations with a rate and a delay.
    """
    swept = Swept.of(done)
    if not swept.drawn:
        raise ValueError("nothing to draw: a figure of a sweep needs two combinations of settings with rate and delay")
    panels = swept.panels[:_MOST]
    draw = _maps if swept.is_map else _paths
    with mpl.rc_context(STYLE):
        figure = draw(swept, panels)
        headline(figure, _said(done.name, swept, len(panels), figure.get_figwidth()))
    return finished(figure)


def _said(name: str, swept: Swept, shown: int, inches: float) -> str:
    notes = [swept.how] if [*swept.beside] not in ([], [swept.controllers]) else []
    if shown < len(swept.panels):
        notes.append(f"The first {shown} of {len(swept.panels)} panels.")
    along = f", along {swept.axes[0]}" if swept.axes and not swept.is_map else ""
    return "\n".join([f"{name}{along}", *textwrap.wrap(" ".join(notes), int(inches * _LETTERS))])


# --- one setting ----------------------------------------------------------------------------------


def _paths(swept: Swept, panels: Sequence[Panel]) -> Figure:
    columns = min(len(panels), _ACROSS)
    rows = -(-len(panels) // columns)
    figure = new_figure(9 if columns == 1 else 4.6 * columns, 0.8 + (5.2 if columns == 1 else 4.2 * rows))
    every = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    own = swept.looks
    points = [each.point for panel in panels for each in panel.combinations]
    points = [point for point in points if all(map(math.isfinite, point))]
    reversed_delay_axis(every[0], [delay for delay, _ in points])
    every[0].set_ylim(0, max((rate for _, rate in points), default=1.0) * 1.15)
    for ax, panel in zip(every, panels, strict=False):
        for label, some in panel.lines.items():
            _path(ax, swept, some, own[label])
        ax.set_title(panel.title, fontsize=11)
    for ax in every[len(panels) :]:
        ax.set_visible(False)
    for ax in every[max(0, len(panels) - columns) : len(panels)]:
        ax.set_xlabel(_named(metric(DELAY)))
        ax.tick_params(axis="x", labelbottom=True)
    figure.supylabel(_named(metric(RATE)), fontsize=11)
    labels = dict.fromkeys(label for panel in panels for label in panel.lines)
    handles = [
        Line2D([], [], color=own[label].colour, marker=own[label].marker, linestyle=own[label].linestyle, label=label)
        for label in labels
    ]
    columns = int((figure.get_figwidth() - 0.3) / (0.85 + 0.085 * max(map(len, labels))))
    figure.legend(handles=handles, loc="outside lower left", ncols=max(columns, 1), handlelength=3)
    # where labels go is known when everything else has its place
    figure.draw_without_rendering()
    for ax, panel in zip(every, panels, strict=False):
        _write_values(ax, swept, panel, own)
    return figure


def _path(ax: Axes, swept: Swept, some: Sequence[Combination], own: Look) -> None:
    points = [each.point for each in some]
    x, y = np.array(points).T
    ax.plot(x, y, linestyle=own.linestyle if swept.axes else "none", color=own.colour, alpha=0.7)
    if max(len(one.rows) for one in some) > 1:
        across = np.array([one.mean(DELAY).half or 0.0 for one in some])
        up = np.array([(one.mean(RATE).half or 0.0) * metric(RATE).scale for one in some])
        # an interval may reach beyond nothing, and a logarithmic axis may not
        left = np.minimum(across, 0.95 * x)
        ax.errorbar(
            x, y, xerr=[left, across], yerr=up, fmt="none", color=own.colour, alpha=0.35, linewidth=1.0, capsize=0
        )
    ax.scatter(x, y, s=46, marker=own.marker, color=own.colour, edgecolors="white", linewidths=0.8, zorder=3)


def _write_values(ax: Axes, swept: Swept, panel: Panel, own: Mapping[str, Look]) -> None:
    """Each point's value beside it; where many would cover each other, those that find room, the ends first."""
    if not swept.axes:
        return
    taken: list[Bbox] = []
    for label, some in panel.lines.items():
        order = [0, len(some) - 1, *range(1, len(some) - 1)] if len(some) > 1 else [0]
        for one in (some[at] for at in order):
            point = one.point
            if not all(map(math.isfinite, point)):
                continue
            x, y = ax.transData.transform(point)
            said = one.settings[swept.axes[0]]
            for shift, anchor in ((8, "left"), (-8, "right")):
                box = _box(x, y, shift, said, ax.figure.dpi)
                inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1
                if inside and not any(box.overlaps(other) for other in taken):
                    taken.append(box)
                    ax.annotate(
                        said, point, xytext=(shift * 0.8, 4), textcoords="offset points", ha=anchor, fontsize=9,
                        color=own[label].colour, zorder=4,
                    )  # fmt: skip
                    break


def _box(x: float, y: float, shift: float, said: str, dpi: float) -> Bbox:
    """About where a label of nine points would be, in dots."""
    point = dpi / 72
    width, height = 5.4 * len(said) * point, 10 * point
    left = x + shift * 0.8 * point - (width if shift < 0 else 0)
    return Bbox.from_extents(left, y + 2 * point, left + width, y + 2 * point + height)


# --- two settings ---------------------------------------------------------------------------------


def _maps(swept: Swept, panels: Sequence[Panel]) -> Figure:
    across, up = (swept.values[key] for key in swept.axes)
    columns = min(len(panels), _ACROSS)
    rows = -(-len(panels) // columns)
    wide = min(max(2.6, 0.62 * len(across) + 0.6), 7.0)
    high = min(max(1.5, 0.36 * len(up) + 0.9), 6.0)
    figure = new_figure(max(7.0, wide * columns + 1.8), 2 * high * rows + 1.2)
    parts = figure.subfigures(2, 1, squeeze=False).ravel()
    for part, name in zip(parts, (RATE, DELAY), strict=True):
        one = metric(name)
        every = part.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        means = {id(cell): cell.mean(name).mean * one.scale for panel in panels for cell in panel.combinations}
        known = [value for value in means.values() if math.isfinite(value)]
        low, top = (min(known), max(known)) if known else (0.0, 1.0)
        for ax, panel in zip(every.ravel(), panels, strict=False):
            ax.set_title(panel.title, fontsize=11)
            _map(ax, swept, panel, means, (low, top, one))
        for ax in every.ravel()[len(panels) :]:
            ax.set_visible(False)
        part.suptitle(_named(one), x=0.01, ha="left", fontsize=12)
        part.supylabel(swept.axes[1], fontsize=10)
    parts[1].supxlabel(swept.axes[0], fontsize=10)
    return figure


def _map(ax: Axes, swept: Swept, panel: Panel, means: Mapping[int, float], scale: tuple[float, float, Metric]) -> None:
    across, up = (list(swept.values[key]) for key in swept.axes)
    low, top, one = scale
    ax.set(xlim=(-0.5, len(across) - 0.5), ylim=(-0.5, len(up) - 0.5))
    ax.grid(visible=False)
    written = max(len(across), len(up)) <= _CELLS
    for cell in panel.combinations:
        x, y = (values.index(cell.settings[key]) for key, values in zip(swept.axes, (across, up), strict=True))
        mean = means[id(cell)]
        fill, ink = shade(mean, low, top, one.better)
        ax.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, edgecolor="white", linewidth=1))
        if written:
            ax.text(x, y, sweeps.plainly(mean), ha="center", va="center", fontsize=8.5, color=ink)
    for axis, values in ((ax.xaxis, across), (ax.yaxis, up)):
        step = -(-len(values) // _CELLS)
        axis.set_ticks(range(0, len(values), step), values[::step])
    ax.tick_params(axis="x", rotation=45 if sum(map(len, across)) > 6 * len(across) else 0, labelsize=9)
    ax.tick_params(axis="y", labelsize=9)


def _named(one: Metric) -> str:
    return f"{one.label[:1].upper()}{one.label[1:]} ({one.unit})"
