"""A sheet that compares controllers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from tidegate.output.document import NOTHING
from tidegate.output.palette import MUTED, Look
from tidegate.show import view
from tidegate.show.plot.style import (
    STYLE,
    TARGET,
    delay_axis,
    draw_capacity,
    finished,
    headline,
    largest,
    loss_axis,
    new_figure,
    rate_legend,
)
from tidegate.show.view import Floats, RunLike, Runs
from tidegate.wording import listed

_MEGA = 1e6
_ONE_COLUMN = 6  # the largest number of controllers in one column of a legend


@dataclass(frozen=True)
class _Band:
    """A series over seeds: its median and its range."""

    middle: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, members: Sequence[Floats]) -> _Band:
        stack = np.vstack(members)
        has_value = np.isfinite(stack).any(axis=0)
        middle, low, high = (np.full(stack.shape[1], np.nan) for _ in range(3))
        if has_value.any():
            part = stack[:, has_value]
            middle[has_value] = np.nanmedian(part, axis=0)
            low[has_value] = np.nanmin(part, axis=0)
            high[has_value] = np.nanmax(part, axis=0)
        return cls(middle, low, high)


@dataclass(frozen=True)
class _Panel:
    """One controller's runs on a common time grid."""

    label: str
    t: Floats
    receive: _Band
    target: _Band
    cross: _Band
    delay: _Band
    loss: _Band
    drawn: int
    """The number of seeds in the bands."""


def _panel(label: str, runs: Sequence[RunLike], link: str | None) -> _Panel:
    drawn = list(runs) if view.same_truth(runs, link) else [runs[0]]
    flow = view.subject_of(drawn[0])
    subject = [view.flow_series(run, flow) for run in drawn]
    grid = max((s.t for s in subject), key=len)
    cross = []
    for run in drawn:
        total = np.zeros(len(grid))
        for entry in run.summary["flows"]:
            if entry["flow"] != flow:
                flow_series = view.flow_series(run, entry["flow"])
                total += np.nan_to_num(view.on_grid(flow_series.t, flow_series.receive_bps, grid))
        cross.append(total)

    def band(name: str) -> _Band:
        return _Band.of([view.on_grid(series.t, getattr(series, name), grid) for series in subject])

    bands = band("receive_bps"), band("target_bps"), _Band.of(cross), band("delay_ms"), band("loss")
    return _Panel(label, grid, *bands, drawn=len(drawn))


def _megabits(value: float) -> str:
    return f"{value / 1e6:.2f} Mbit/s" if value >= _MEGA else f"{value / 1e3:.0f} kbit/s"


def _percent(value: float) -> str:
    # two significant digits: smaller values would be rounded to nothing, larger ones need no decimals
    percent, small, large = value * 100, 0.01, 10.0
    if 0 < percent < small:
        return f"< {small:g} %"
    return f"{percent:.2g} %" if 0 < percent < large else f"{percent:.0f} %"


_FACTS = (
    ("goodput_bps", _megabits, "goodput"),
    ("one_way_delay_ms_p95", "{:.0f} ms".format, "delay, 95th pct."),
    ("loss_fraction", _percent, "packets lost"),
    ("utilisation", _percent, "of capacity"),
)
"""The means beside a controller's panel: metric, format and label."""


def _band(ax: Axes, t: Floats, band: _Band, colour: str, scale: float = 1.0, **line: object) -> None:
    ax.plot(t, band.middle * scale, color=colour, **line)  # type: ignore[arg-type]
    if not np.array_equal(band.low, band.high, equal_nan=True):
        ax.fill_between(t, band.low * scale, band.high * scale, color=colour, alpha=0.18, linewidth=0)


def _rate_panel(ax: Axes, panel: _Panel, runs: Sequence[RunLike], link: str | None, colour: str) -> None:
    draw_capacity(ax, runs[0], link, view.end_of(panel.t))
    if (panel.cross.high > 0).any():
        ax.plot(panel.t, panel.cross.middle / 1e6, color=MUTED, linewidth=1.1)
    _band(ax, panel.t, panel.receive, colour, 1e-6)
    if np.isfinite(panel.target.middle).any():
        ax.plot(panel.t, panel.target.middle / 1e6, **TARGET)
    ax.set_ylabel("Rate (Mbit/s)")


def _aside(ax: Axes, label: str, colour: str, runs: Sequence[RunLike]) -> None:
    """Writes a controller's name and means to the right of its panel, clear of the data."""
    write = partial(ax.text, transform=ax.transAxes, va="top")
    write(1.02, 0.98, label, color=colour, fontsize=13, fontweight="bold")
    for number, (name, show, says) in enumerate(_FACTS):
        y, mean = 0.76 - 0.19 * number, view.mean(runs, name)
        if name == "utilisation" and not math.isfinite(mean):
            continue  # the capacity of a recorded call's link is not known
        text = show(mean) if math.isfinite(mean) else NOTHING
        write(1.105, y, text, ha="right", fontsize=11, fontweight="bold", color="#222222")
        write(1.115, y, says, fontsize=10, color="#555555")


def _seeds(groups: dict[str, list[RunLike]], panels: Sequence[_Panel]) -> str:
    count = max(len(runs) for runs in groups.values())
    if count == 1:
        return ""
    if max(panel.drawn for panel in panels) == 1:
        seed = view.seed_of(next(iter(groups.values()))[0])
        return f"lines: seed {seed}; numbers at the right: means of {count} seeds with different links"
    return f"lines: median of {count} seeds; bands: minimum to maximum; numbers at the right: means"


def _headline(groups: dict[str, list[RunLike]], run: RunLike) -> str:
    names = listed(list(groups)) if len(groups) <= _ONE_COLUMN else f"{len(groups)} controllers"
    return f"{names} on “{run.summary.get('name', 'one network')}”"


def _share_rate_axis(
    axes: Sequence[Axes], panels: Sequence[_Panel], groups: dict[str, list[RunLike]], link: str | None
) -> None:
    """Sets the same rate axis for all panels: it holds the flows, and the capacity where that is near them."""
    flows = largest([panel.receive.high for panel in panels] + [panel.cross.middle for panel in panels])
    targets = largest([panel.target.middle for panel in panels], 0.99)
    top = max(flows, targets)
    if link is not None:
        capacity = view.truth(next(iter(groups.values()))[0], link)[1]
        # the capacity of a link far wider than its flows must not flatten them
        top = max(top, min(largest([capacity]), 2.0 * top))
    for ax in axes:
        ax.set_ylim(0, top / 1e6 * 1.06 or 1.0)
        ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


def _shared(ax: Axes, panels: Sequence[_Panel], looks: dict[str, Look], field: str, scale: float) -> None:
    for panel in panels:
        look = looks[panel.label]
        _band(ax, panel.t, getattr(panel, field), look.colour, scale, linewidth=1.3, linestyle=look.linestyle)


def _legend(ax: Axes, looks: dict[str, Look]) -> None:
    """Adds the legend of the shared panels, beside them."""
    handles = [
        Line2D([], [], color=look.colour, linestyle=look.linestyle, label=label) for label, look in looks.items()
    ]
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0,
        handlelength=3.2,
        ncols=1 + (len(looks) > _ONE_COLUMN),
        fontsize=10 if len(looks) <= _ONE_COLUMN else 8.5,
    )


def comparison(runs: Runs, *, title: str | None = None, link: str | None = None) -> Figure:
    """Draws a sheet that compares controllers on the same network.

    For each controller it shows the receive rate and the target against the capacity, with the other
    flows muted; below, on shared axes, the one-way delay and the loss of all controllers.

    Args:
        runs: Runs by controller, or a sequence of runs (grouped by their subject's controller).
        title: The heading; by default made from the scenario's name.
        link: The link whose capacity is drawn; by default that with the highest utilisation.

    Raises:
        ValueError: If there is no run, or one was recorded without series.
    """
    groups = view.grouped(runs)
    everything = [run for members in groups.values() for run in members]
    link = link or view.bottleneck(everything)
    looks = view.looks_of(groups)
    colours = {label: look.colour for label, look in looks.items()}
    panels = [_panel(label, members, link) for label, members in groups.items()]
    k = len(panels)
    with mpl.rc_context(STYLE):
        figure = new_figure(12.5, 1.75 * k + 4.6)
        grid = figure.subplots(k + 2, 1, sharex=True, height_ratios=[1.0] * k + [1.1, 0.7])
        end = max(view.end_of(panel.t) for panel in panels)
        for ax, panel in zip(grid[:k], panels, strict=True):
            members = groups[panel.label]
            _rate_panel(ax, panel, members, link, colours[panel.label])
            _aside(ax, panel.label, colours[panel.label], members)
        _share_rate_axis(grid[:k], panels, groups, link)
        has_target = any(np.isfinite(panel.target.middle).any() for panel in panels)
        has_cross = any((panel.cross.high > 0).any() for panel in panels)
        rate_legend(grid[0], "#444444", link=link, cross=has_cross, target=has_target)
        _shared(grid[k], panels, looks, "delay", 1.0)
        _legend(grid[k], looks)
        grid[k].set_ylabel("One-way delay (ms)")
        delay_axis(grid[k], [panel.delay.high for panel in panels] + [panel.delay.low for panel in panels])
        _shared(grid[k + 1], panels, looks, "loss", 100.0)
        grid[k + 1].set_ylabel("Loss (%)")
        loss_axis(grid[k + 1], [panel.loss.high for panel in panels])
        grid[k + 1].set_xlabel("Time (s)")
        grid[k + 1].set_xlim(0, end)
        figure.align_ylabels(grid)
        headline(figure, title or _headline(groups, everything[0]))
        if note := _seeds(groups, panels):
            figure.supxlabel(note, x=0.01, ha="left", fontsize=9.5, color="#555555")
    return finished(figure)
