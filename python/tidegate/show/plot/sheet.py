"""A sheet that compares controllers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from tidegate.output.document import NOTHING
from tidegate.output.palette import Look
from tidegate.show import view
from tidegate.show.plot.fitting import Size, Style, drawing, legend_above, legend_below, letters, width_of
from tidegate.show.plot.style import (
    delay_axis,
    draw_capacity,
    headline,
    largest,
    loss_axis,
    marks_axis,
    other_line,
    points,
    rate_handles,
    stroke,
    target_line,
)
from tidegate.show.view import Floats, RunLike, Runs
from tidegate.wording import listed

_MEGA = 1e6
_ONE_COLUMN = 6  # the largest number of controllers in one column of a legend
_NARROW = 62  # heights of a letter: a narrower sheet has no room beside its panels


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
    others: Mapping[str, Floats]
    """The median receive rate of each other flow by its name."""
    delay: _Band
    loss: _Band
    marked: _Band
    drawn: int
    """The number of seeds in the bands."""


def _panel(label: str, runs: Sequence[RunLike], link: str | None) -> _Panel:
    drawn = list(runs) if view.same_truth(runs, link) else [runs[0]]
    flow = view.subject_of(drawn[0])
    subject = [view.flow_series(run, flow) for run in drawn]
    grid = max((s.t for s in subject), key=len)
    rates: dict[str, list[Floats]] = {}
    for run in drawn:
        for name, rate in view.others(run, [flow], grid).items():
            if np.nanmax(rate, initial=0.0) > 0:
                rates.setdefault(name, []).append(np.nan_to_num(rate))

    def band(name: str) -> _Band:
        return _Band.of([view.on_grid(series.t, getattr(series, name), grid) for series in subject])

    others = {name: _Band.of(members).middle for name, members in rates.items()}
    return _Panel(
        label,
        grid,
        receive=band("receive_bps"),
        target=band("target_bps"),
        others=others,
        delay=band("delay_ms"),
        loss=band("loss"),
        marked=band("marked"),
        drawn=len(drawn),
    )


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


def _rate_panel(
    ax: Axes, panel: _Panel, runs: Sequence[RunLike], link: str | None, colour: str, others: Sequence[str]
) -> None:
    draw_capacity(ax, runs[0], link, view.end_of(panel.t))
    for number, name in enumerate(others):
        if name in panel.others:
            ax.plot(panel.t, panel.others[name] / 1e6, **other_line(number))
    _band(ax, panel.t, panel.receive, colour, 1e-6)
    if np.isfinite(panel.target.middle).any():
        ax.plot(panel.t, panel.target.middle / 1e6, **target_line())
    ax.set_ylabel("Rate (Mbit/s)")


def _above(ax: Axes, label: str, colour: str, runs: Sequence[RunLike], room: float) -> None:
    """Writes a controller's name above its panel, and as many of its means as the width (points) has room for."""
    ax.set_title(label, color=colour, fontsize=points(12), pad=points(4))
    means = ((show, says, view.mean(runs, name)) for name, show, says in _FACTS if name != "utilisation")
    facts = [f"{show(mean)} {says}" for show, says, mean in means if math.isfinite(mean)]
    small = points(9.5)
    # the name is bold, so a tenth wider
    free = room - 1.1 * width_of(label, points(12))
    texts = (", ".join(facts[:count]) for count in range(len(facts), 0, -1))
    if text := next((text for text in texts if width_of(f"   {text}", small) < free), ""):
        ax.set_title(text, loc="right", fontsize=small, fontweight="normal", color="#555555", pad=points(4))


def _aside(ax: Axes, label: str, colour: str, runs: Sequence[RunLike]) -> None:
    """Writes a controller's name and means to the right of its panel, clear of the data."""
    write = partial(ax.text, transform=ax.transAxes, va="top")
    write(1.02, 0.98, label, color=colour, fontsize=points(13), fontweight="bold")
    for number, (name, show, says) in enumerate(_FACTS):
        y, mean = 0.76 - 0.19 * number, view.mean(runs, name)
        if name == "utilisation" and not math.isfinite(mean):
            continue  # the capacity of a recorded call's link is not known
        text = show(mean) if math.isfinite(mean) else NOTHING
        write(1.105, y, text, ha="right", fontsize=points(11), fontweight="bold", color="#222222")
        write(1.115, y, says, fontsize=points(10), color="#555555")


def _seeds(groups: dict[str, list[RunLike]], panels: Sequence[_Panel]) -> str:
    count = max(len(runs) for runs in groups.values())
    if count == 1:
        return ""
    if max(panel.drawn for panel in panels) == 1:
        seed = view.seed_of(next(iter(groups.values()))[0])
        return f"lines: seed {seed}; numbers at the right: means of {count} seeds with different links"
    return f"lines: median of {count} seeds; bands: minimum to maximum; numbers at the right: means"


def _headline(groups: dict[str, list[RunLike]], run: RunLike) -> str:
    # of what-ifs the columns may have one controller, and a recorded call has none that is known
    ran = {view.flow_summary(runs[0], view.subject_of(runs[0])).get("controller") for runs in groups.values()}
    noun = "controllers" if len(ran - {None}) == len(groups) else "calls"
    names = listed(list(groups)) if len(groups) <= _ONE_COLUMN else f"{len(groups)} {noun}"
    return f"{names} on “{run.summary.get('name', 'one network')}”"


def _share_rate_axis(
    axes: Sequence[Axes], panels: Sequence[_Panel], groups: dict[str, list[RunLike]], link: str | None
) -> None:
    """Sets the same rate axis for all panels: it holds the flows, and the capacity where that is near them."""
    flows = largest([panel.receive.high for panel in panels] + [r for panel in panels for r in panel.others.values()])
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
        _band(ax, panel.t, getattr(panel, field), look.colour, scale, linewidth=stroke(1.3), linestyle=look.linestyle)


def _legend(ax: Axes, looks: dict[str, Look]) -> None:
    """Adds the legend of the shared panels, beside them."""
    ax.legend(
        handles=_handles(looks),
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0,
        handlelength=3.2,
        ncols=1 + (len(looks) > _ONE_COLUMN),
        fontsize=points(10 if len(looks) <= _ONE_COLUMN else 8.5),
    )


def _handles(looks: dict[str, Look]) -> list[Line2D]:
    return [Line2D([], [], color=look.colour, linestyle=look.linestyle, label=label) for label, look in looks.items()]


def comparison(
    runs: Runs,
    *,
    title: str | None = None,
    link: str | None = None,
    size: Size | None = None,
    style: Style | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws a sheet that compares controllers on the same network.

    For each controller it shows the receive rate and the target against the capacity, with a grey line for each other
    flow; below, on shared axes, the one-way delay and the loss of all controllers, and the share of packets that queues
    marked, if any.

    Args:
        runs: Runs by controller, or a sequence of runs (grouped by their subject's controller).
        title: The heading; by default made from the scenario's name, and none if empty.
        link: The link whose capacity is drawn; by default that with the highest utilisation.
        size: Width and height in inches. A narrow figure has the names above the panels.
        style: `paper`, `screen`, or parameters of matplotlib; see [plot][tidegate.plot].
        labels: Other names for controllers, links and flows.

    Raises:
        ValueError: If there is no run, one was recorded without series, or the size is too small.
    """
    groups = view.grouped(runs)
    everything = [run for members in groups.values() for run in members]
    link = link or view.bottleneck(everything)
    looks = {view.renamed(labels, label): look for label, look in view.looks_of(groups).items()}
    groups = {view.renamed(labels, label): members for label, members in groups.items()}
    panels = [_panel(label, members, link) for label, members in groups.items()]
    others = list(dict.fromkeys(name for panel in panels for name in panel.others))
    k = len(panels)
    has_marks = any((np.nan_to_num(panel.marked.high) > 0).any() for panel in panels)
    shared = [1.1, 0.7, *([0.7] if has_marks else [])]
    with drawing(12.5, 1.75 * k + 4.6 + 1.2 * has_marks, size, style) as figure:
        narrow = letters(figure) < _NARROW
        grid = figure.subplots(k + len(shared), 1, sharex=True, height_ratios=[1.0] * k + shared)
        end = max(view.end_of(panel.t) for panel in panels)
        for ax, panel in zip(grid[:k], panels, strict=True):
            members, colour = groups[panel.label], looks[panel.label].colour
            _rate_panel(ax, panel, members, link, colour, others)
            if narrow:
                _above(ax, panel.label, colour, members, (figure.get_figwidth() - 0.5) * 72)
            else:
                _aside(ax, panel.label, colour, members)
        _share_rate_axis(grid[:k], panels, groups, link)
        has_target = any(np.isfinite(panel.target.middle).any() for panel in panels)
        handles = rate_handles(
            "#444444",
            [view.renamed(labels, name) for name in others],
            link=link and view.renamed(labels, link),
            target=has_target,
        )
        if narrow:
            legend_below(figure, [*handles, *_handles(looks)], 2.4)
        else:
            legend_above(grid[0], handles, columnspacing=1.6, handlelength=1.8)
            _legend(grid[k], looks)
        _shared(grid[k], panels, looks, "delay", 1.0)
        grid[k].set_ylabel("One-way delay (ms)")
        delay_axis(grid[k], [panel.delay.high for panel in panels] + [panel.delay.low for panel in panels])
        _shared(grid[k + 1], panels, looks, "loss", 100.0)
        grid[k + 1].set_ylabel("Loss (%)")
        loss_axis(grid[k + 1], [panel.loss.high for panel in panels])
        if has_marks:
            _shared(grid[k + 2], panels, looks, "marked", 100.0)
            marks_axis(grid[k + 2], [panel.marked.high for panel in panels])
        grid[-1].set_xlabel("Time (s)")
        grid[-1].set_xlim(0, end)
        figure.align_ylabels(grid)
        headline(figure, _headline(groups, everything[0]) if title is None else title)
        if (note := _seeds(groups, panels)) and not narrow:
            figure.supxlabel(note, x=0.01, ha="left", fontsize=points(9.5), color="#555555")
    return figure
