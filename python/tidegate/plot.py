"""Figures for papers and talks, made with matplotlib and without its global state.

Every function returns a :class:`matplotlib.figure.Figure` that is not known to ``pyplot``: save it
with ``figure.savefig("sheet.png")``, or leave it as the last line of a notebook cell. A controller
has the same colour on every figure.

Where several runs (seeds) of one controller are given, lines are medians over the seeds at each
moment and bands reach from the smallest to the largest of them. Seeds that saw different links (a
generated capacity) have no common moment, so that then the first seed is drawn alone and the figure
says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tidegate import _view
from tidegate._palette import CAPACITY_EDGE, CAPACITY_FILL, MUTED, colours
from tidegate._view import Floats, RunLike, Runs

__all__ = ["comparison", "delay_cdf", "internals", "rate_delay_scatter", "time_series"]

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "font.family": "sans-serif",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
"""How all figures of tidegate look, for ``matplotlib.rc_context``."""

# Past this ratio between the slowest and the quickest packet a linear axis shows only one of the
# two.
_LOG_RATIO = 30.0
# The same for the points of the scatter, where a little distance on a linear axis still tells.
_LOG_DELAY_RATIO = 5.0
_NOTHING = "\N{EN DASH}"
_MEGA = 1e6


@dataclass(frozen=True)
class _Band:
    """A series over seeds: its median and its range."""

    middle: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, members: Sequence[Floats]) -> _Band:
        stack = np.vstack(members)
        known = np.isfinite(stack).any(axis=0)
        middle, low, high = (np.full(stack.shape[1], np.nan) for _ in range(3))
        if known.any():
            part = stack[:, known]
            middle[known] = np.nanmedian(part, axis=0)
            low[known] = np.nanmin(part, axis=0)
            high[known] = np.nanmax(part, axis=0)
        return cls(middle, low, high)


@dataclass(frozen=True)
class _Panel:
    """One controller's runs, laid on one time grid."""

    label: str
    t: Floats
    receive: _Band
    target: _Band
    cross: _Band
    delay: _Band
    loss: _Band
    drawn: int
    """How many seeds are in the bands."""


def _panel(label: str, runs: Sequence[RunLike], link: str | None) -> _Panel:
    drawn = list(runs) if _view.same_truth(runs, link) else [runs[0]]
    flow = _view.subject_of(drawn[0])
    subject = [_view.flow_series(run, flow) for run in drawn]
    grid = max((s.t for s in subject), key=len)
    cross = []
    for run in drawn:
        total = np.zeros(len(grid))
        for entry in run.summary["flows"]:
            if entry["flow"] != flow:
                other = _view.flow_series(run, entry["flow"])
                total += np.nan_to_num(_view.on_grid(other.t, other.receive_bps, grid))
        cross.append(total)
    return _Panel(
        label=label,
        t=grid,
        receive=_Band.of([_view.on_grid(s.t, s.receive_bps, grid) for s in subject]),
        target=_Band.of([_view.on_grid(s.t, s.target_bps, grid) for s in subject]),
        cross=_Band.of(cross),
        delay=_Band.of([_view.on_grid(s.t, s.delay_ms, grid) for s in subject]),
        loss=_Band.of([_view.on_grid(s.t, s.loss, grid) for s in subject]),
        drawn=len(drawn),
    )


def _mean(runs: Sequence[RunLike], metric: str) -> float:
    values = [_view.metric(run, _view.subject_of(run), metric) for run in runs]
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else math.nan


def _megabits(value: float) -> str:
    if not math.isfinite(value):
        return _NOTHING
    return f"{value / 1e6:.2f} Mbit/s" if value >= _MEGA else f"{value / 1e3:.0f} kbit/s"


def _milliseconds(value: float) -> str:
    return _NOTHING if not math.isfinite(value) else f"{value:.0f} ms"


def _percent(value: float) -> str:
    if not math.isfinite(value):
        return _NOTHING
    percent = value * 100
    small, large = (
        0.01,
        10.0,
    )  # below it nothing would be left in two digits; above it they are enough
    if 0 < percent < small:
        return f"< {small:g} %"
    return f"{percent:.2g} %" if 0 < percent < large else f"{percent:.0f} %"


def _new(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def _top(values: Sequence[Floats], quantile: float = 1.0) -> float:
    """An axis limit that holds the given series."""
    known = [v[np.isfinite(v)] for v in values]
    joined = np.concatenate(known) if known else np.empty(0)
    return float(np.quantile(joined, quantile)) if len(joined) else 0.0


def _capacity(ax: Axes, run: RunLike, link: str | None, end: float) -> bool:
    """The truth behind the lines, as a filled step in Mbit/s."""
    if link is None:
        return False
    t, capacity = _view.truth(run, link)
    if not len(t) or not np.isfinite(capacity).any():
        return False
    t, capacity = np.append(t, max(end, t[-1])), np.append(capacity, capacity[-1]) / 1e6
    ax.fill_between(t, capacity, step="post", color=CAPACITY_FILL, linewidth=0, zorder=0)
    ax.step(t, capacity, where="post", color=CAPACITY_EDGE, linewidth=1.0, zorder=1)
    return True


def _band(ax: Axes, t: Floats, band: _Band, colour: str, scale: float = 1.0, **line: object) -> None:
    ax.plot(t, band.middle * scale, color=colour, **line)  # type: ignore[arg-type]
    if not np.array_equal(band.low, band.high, equal_nan=True):
        ax.fill_between(t, band.low * scale, band.high * scale, color=colour, alpha=0.18, linewidth=0)


def _rate_panel(ax: Axes, panel: _Panel, runs: Sequence[RunLike], link: str | None, colour: str) -> None:
    _capacity(ax, runs[0], link, _end(panel))
    if (panel.cross.high > 0).any():
        ax.plot(panel.t, panel.cross.middle / 1e6, color=MUTED, linewidth=1.1)
    _band(ax, panel.t, panel.receive, colour, 1e-6)
    if np.isfinite(panel.target.middle).any():
        ax.plot(
            panel.t,
            panel.target.middle / 1e6,
            color="#222222",
            linewidth=1.0,
            linestyle=(0, (3, 2)),
        )
    ax.set_ylabel("Rate (Mbit/s)")


def _end(panel: _Panel) -> float:
    return float(panel.t[-1] + _view.bin_width(panel.t) / 2)


def _delay_axis(ax: Axes, values: Sequence[Floats]) -> None:
    known = np.concatenate([v[np.isfinite(v) & (v > 0)] for v in values])
    if len(known) and known.max() / known.min() > _LOG_RATIO:
        ax.set_yscale("log")
        _plain_log(ax)
    else:
        ax.set_ylim(bottom=0)


def _plain_log(ax: Axes) -> None:
    """Decades with 2 and 5, written as numbers and not as powers."""
    ax.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _aside(ax: Axes, label: str, colour: str, facts: Sequence[tuple[str, str]]) -> None:
    """A controller's name and figures to the right of its panel, clear of the data."""
    ax.text(
        1.02,
        0.98,
        label,
        transform=ax.transAxes,
        va="top",
        color=colour,
        fontsize=13,
        fontweight="bold",
    )
    for i, (value, what) in enumerate(facts):
        y = 0.76 - 0.19 * i
        ax.text(
            1.105,
            y,
            value,
            transform=ax.transAxes,
            va="top",
            ha="right",
            fontsize=11,
            fontweight="bold",
            color="#222222",
        )
        ax.text(1.115, y, what, transform=ax.transAxes, va="top", fontsize=10, color="#555555")


def _rate_legend(ax: Axes, colour: str, *, link: str | None, cross: bool, target: bool) -> None:
    handles: list[Line2D | Patch] = []
    if link is not None:
        handles.append(
            Patch(
                facecolor=CAPACITY_FILL,
                edgecolor=CAPACITY_EDGE,
                label=f"capacity of {link} (truth)",
            )
        )
    if target:
        handles.append(Line2D([], [], color="#222222", linewidth=1.0, linestyle=(0, (3, 2)), label="target"))
    handles.append(Line2D([], [], color=colour, label="receive rate"))
    if cross:
        handles.append(Line2D([], [], color=MUTED, linewidth=1.1, label="other flows, received"))
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=len(handles),
        borderaxespad=0.2,
        columnspacing=1.6,
        handlelength=1.8,
    )


def _seeds(groups: dict[str, list[RunLike]], panels: Sequence[_Panel]) -> str:
    count = max(len(runs) for runs in groups.values())
    if count == 1:
        return ""
    if max(panel.drawn for panel in panels) == 1:
        seed = _view.seed_of(next(iter(groups.values()))[0])
        return f"lines: seed {seed}; figures at the right: means of {count} seeds, each its own link"
    return f"lines: median of {count} seeds; bands: from least to most; figures at the right: means"


def comparison(runs: Runs, *, title: str | None = None, link: str | None = None) -> Figure:
    """One sheet that compares controllers on the same network.

    For each controller its receive rate and target against the capacity that there was, with the
    other flows muted; below, on shared axes, the one-way delay and the loss of all of them.

    Args:
        runs: Runs by controller, or a sequence of runs (grouped by their subject's controller).
        title: Heading; by default made of the scenario's name.
        link: Whose capacity is the truth; by default the link with the highest utilisation.

    Raises:
        ValueError: If there is no run, or one was recorded without series.
    """
    groups = _view.grouped(runs)
    everything = [run for members in groups.values() for run in members]
    link = link or _view.bottleneck(everything)
    hue = colours(groups)
    panels = [_panel(label, members, link) for label, members in groups.items()]
    k = len(panels)
    with mpl.rc_context(STYLE):
        figure = _new(12.5, 1.75 * k + 4.6)
        grid = figure.subplots(k + 2, 1, sharex=True, height_ratios=[1.0] * k + [1.1, 0.7])
        end = max(_end(panel) for panel in panels)
        for ax, panel in zip(grid[:k], panels, strict=True):
            members = groups[panel.label]
            _rate_panel(ax, panel, members, link, hue[panel.label])
            facts = [
                (_megabits(_mean(members, "goodput_bps")), "goodput"),
                (_milliseconds(_mean(members, "one_way_delay_ms_p95")), "delay, 95th pct."),
                (_percent(_mean(members, "loss_fraction")), "packets lost"),
                (_percent(_mean(members, "utilisation")), "of capacity"),
            ]
            _aside(ax, panel.label, hue[panel.label], facts)
        _share_rate_axis(grid[:k], panels, groups, link)
        has_target = any(np.isfinite(panel.target.middle).any() for panel in panels)
        has_cross = any((panel.cross.high > 0).any() for panel in panels)
        _rate_legend(grid[0], "#444444", link=link, cross=has_cross, target=has_target)
        _shared(grid[k], panels, hue, "delay", 1.0)
        grid[k].set_ylabel("One-way delay (ms)")
        _delay_axis(grid[k], [panel.delay.high for panel in panels] + [panel.delay.low for panel in panels])
        _shared(grid[k + 1], panels, hue, "loss", 100.0, legend=False)
        grid[k + 1].set_ylabel("Loss (%)")
        _loss_axis(grid[k + 1], [panel.loss.high for panel in panels])
        grid[k + 1].set_xlabel("Time (s)")
        grid[k + 1].set_xlim(0, end)
        figure.align_ylabels(grid)
        note = _seeds(groups, panels)
        head = title or _headline(groups, everything[0])
        figure.suptitle(head, x=0.01, ha="left", fontsize=15, fontweight="bold")
        if note:
            figure.supxlabel(note, x=0.01, ha="left", fontsize=9.5, color="#555555")
    return figure


def _loss_axis(ax: Axes, fractions: Sequence[_view.Floats]) -> None:
    """At least one percent high, so that one lost packet is no mountain; says so where none was lost."""
    top = _top(fractions)
    ax.set_ylim(0, max(1.0, top * 105))
    if not top:
        ax.text(
            0.5,
            0.5,
            "no packet was lost",
            transform=ax.transAxes,
            ha="center",
            va="center",
            color="#777777",
            bbox={"facecolor": "white", "edgecolor": "none"},
        )


def _headline(groups: dict[str, list[RunLike]], run: RunLike) -> str:
    names = list(groups)
    joined = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{joined} on “{run.summary.get('name', 'one network')}”"


def _share_rate_axis(
    axes: Sequence[Axes],
    panels: Sequence[_Panel],
    groups: dict[str, list[RunLike]],
    link: str | None,
) -> None:
    """The same rate axis for all: it holds the flows, and the capacity where that is near."""
    flows = _top([panel.receive.high for panel in panels] + [panel.cross.middle for panel in panels])
    targets = _top([panel.target.middle for panel in panels], 0.99)
    top = max(flows, targets)
    if link is not None:
        capacity = _view.truth(next(iter(groups.values()))[0], link)[1]
        # a link far wider than its flows would press them to the floor
        top = max(top, min(_top([capacity]), 2.0 * top))
    for ax in axes:
        ax.set_ylim(0, top / 1e6 * 1.06 or 1.0)
        ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


def _shared(
    ax: Axes,
    panels: Sequence[_Panel],
    hue: dict[str, str],
    what: str,
    scale: float,
    *,
    legend: bool = True,
) -> None:
    for panel in panels:
        _band(ax, panel.t, getattr(panel, what), hue[panel.label], scale, linewidth=1.3)
    if legend:
        handles = [Line2D([], [], color=hue[panel.label], label=panel.label) for panel in panels]
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)


def time_series(run: RunLike, *, flow: str | None = None, link: str | None = None) -> Figure:
    """One flow of one run over time: rate against capacity, delay, loss and the bottleneck's queue.

    Args:
        run: The run.
        flow: Which flow; by default the subject.
        link: Whose capacity and queue; by default the link with the highest utilisation.

    Raises:
        ValueError: If there is no such flow, or the run was recorded without series.
    """
    run = _view.keep(run)
    flow = flow or _view.subject_of(run)
    link = link or _view.bottleneck([run])
    entry = _view.flow_summary(run, flow)
    series = _view.flow_series(run, flow)
    label = str(entry.get("controller") or entry["kind"])
    colour = colours([label])[label]
    end = float(series.t[-1] + _view.bin_width(series.t) / 2) if len(series.t) else 1.0
    with mpl.rc_context(STYLE):
        figure = _new(11, 8.4)
        rate, delay, loss, queue = figure.subplots(4, 1, sharex=True, height_ratios=[1.6, 1.2, 0.7, 0.8])
        seen = _capacity(rate, run, link, end)
        others = [e["flow"] for e in run.summary["flows"] if e["flow"] != flow]
        for name in others:
            other = _view.flow_series(run, name)
            rate.plot(other.t, other.receive_bps / 1e6, color=MUTED, linewidth=1.0)
        rate.plot(series.t, series.receive_bps / 1e6, color=colour)
        has_target = bool(np.isfinite(series.target_bps).any())
        if has_target:
            rate.plot(
                series.t,
                series.target_bps / 1e6,
                color="#222222",
                linewidth=1.0,
                linestyle=(0, (3, 2)),
            )
        rate.set_ylabel("Rate (Mbit/s)")
        rate.set_ylim(bottom=0)
        _rate_legend(rate, colour, link=link if seen else None, cross=bool(others), target=has_target)
        delay.plot(series.t, series.delay_max_ms, color=colour, linewidth=0.8, alpha=0.5)
        delay.plot(series.t, series.delay_ms, color=colour)
        delay.set_ylabel("One-way delay (ms)")
        _delay_axis(delay, [series.delay_ms, series.delay_max_ms])
        delay.legend(
            handles=[
                Line2D([], [], color=colour, label="mean of the bin"),
                Line2D([], [], color=colour, alpha=0.5, linewidth=0.8, label="largest"),
            ],
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.2,
        )  # fmt: skip
        width = _view.bin_width(series.t)
        loss.bar(series.t, np.nan_to_num(series.loss) * 100, width=width, color=colour)
        loss.set_ylabel("Loss (%)")
        _loss_axis(loss, [series.loss])
        if link is not None:
            t, size = _view.queue(run, link)
            queue.fill_between(t, size / 1e3, step="post", color=MUTED, alpha=0.45, linewidth=0)
        queue.set_ylabel("Queue (kB)")
        queue.set_ylim(bottom=0)
        queue.set_xlabel("Time (s)")
        queue.set_xlim(0, end)
        figure.align_ylabels()
        figure.suptitle(
            f"{flow} under {label} on “{run.summary.get('name', '?')}”, seed {_view.seed_of(run)}",
            x=0.01, ha="left", fontsize=15, fontweight="bold",
        )  # fmt: skip
    return figure


def delay_cdf(runs: Runs) -> Figure:
    """How the one-way delay of the subject's packets is distributed, a line for each controller.

    Built from single packets where the runs have them, else from the mean of each bin weighted by
    its packets; the axis says which. Seeds are pooled.

    Raises:
        ValueError: If there is no run, or one was recorded without series.
    """
    groups = _view.grouped(runs)
    hue = colours(groups)
    single = True
    with mpl.rc_context(STYLE):
        figure = _new(8.2, 5.0)
        ax = figure.subplots()
        ends: list[float] = []
        for label, members in groups.items():
            parts = [_view.delays(run, _view.subject_of(run)) for run in members]
            single = single and all(part[2] for part in parts)
            delay = np.concatenate([part[0] for part in parts])
            weight = np.concatenate([part[1] for part in parts])
            if not len(delay):
                continue
            order = np.argsort(delay)
            share = np.cumsum(weight[order]) / weight.sum()
            ax.step(delay[order], share, where="post", color=hue[label], label=label, linewidth=2)
            at95 = float(delay[order][np.searchsorted(share, 0.95)])
            ax.plot(at95, 0.95, "o", color=hue[label], markersize=6)
            ends.append(float(delay[order][np.searchsorted(share, 0.999)]))
        ax.axhline(0.95, color="#999999", linewidth=0.8, linestyle=":")
        ax.text(
            1.01,
            0.95,
            "95th pct.",
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize=9,
            color="#666666",
        )
        ax.set_ylim(0, 1.01)
        ax.set_xlim(0, max(ends) * 1.05 if ends else 1)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
        ax.set_ylabel("Share of packets at most as late")
        ax.set_xlabel("One-way delay (ms)" if single else "One-way delay, mean of each bin (ms)")
        if ends:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 0.9), borderaxespad=0)
        ax.set_title("One-way delay of the subject's packets")
    return figure


def rate_delay_scatter(runs: Runs) -> Figure:
    """Mean receive rate against the 95th percentile of the one-way delay; best is up and right.

    Small dots are seeds, large ones their means. The delay axis runs from large to small, as in
    Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low
    Delay over Cellular Networks" (NSDI 2013), figure 7.

    Raises:
        ValueError: If there is no run.
    """
    groups = _view.grouped(runs)
    hue = colours(groups)
    with mpl.rc_context(STYLE):
        figure = _new(7.6, 5.4)
        ax = figure.subplots()
        every: list[tuple[float, float]] = []
        for label, members in groups.items():
            points = [
                (
                    _view.metric(run, _view.subject_of(run), "one_way_delay_ms_p95"),
                    _view.metric(run, _view.subject_of(run), "receive_rate_bps") / 1e6,
                )
                for run in members
            ]
            points = [point for point in points if all(math.isfinite(value) for value in point)]
            if not points:
                continue
            x, y = (np.array(axis) for axis in zip(*points, strict=True))
            if len(points) > 1:
                ax.scatter(x, y, s=22, color=hue[label], alpha=0.5, linewidths=0)
            ax.scatter(
                x.mean(),
                y.mean(),
                s=130,
                color=hue[label],
                edgecolors="white",
                linewidths=1.2,
                zorder=3,
            )
            ax.annotate(
                label,
                (x.mean(), y.mean()),
                xytext=(0, 11),
                textcoords="offset points",
                color=hue[label],
                ha="center",
                fontsize=12,
                fontweight="bold",
                zorder=4,
            )
            every.extend(points)
        _reversed_delay_axis(ax, [point[0] for point in every])
        ax.set_ylim(0, max((point[1] for point in every), default=1.0) * 1.18)
        ax.set_ylabel("Mean receive rate (Mbit/s)")
        ax.set_xlabel("One-way delay, 95th percentile (ms)")
        ax.text(
            0.985,
            0.975,
            "better ↗",
            transform=ax.transAxes,
            ha="right",
            va="top",
            color="#777777",
            fontsize=12,
        )
        ax.set_title("Rate against delay")
    return figure


def _reversed_delay_axis(ax: Axes, values: Sequence[float]) -> None:
    known = [value for value in values if value > 0]
    if not known:
        ax.invert_xaxis()
        return
    low, high = min(known), max(known)
    if high / low > _LOG_DELAY_RATIO:
        ax.set_xscale("log")
        ax.set_xlim(high * 1.4, low / 1.6)
        ax.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        span = max(high - low, 0.1 * high)
        ax.set_xlim(high + 0.35 * span, max(low - 0.45 * span, 0))


def internals(run: RunLike, flow: str | None = None, names: Sequence[str] | None = None) -> Figure:
    """What a controller noted of its inner state, one panel for each named series.

    Args:
        run: The run.
        flow: Whose controller; by default the subject's.
        names: Which series, from top to bottom; by default all that were noted.

    Raises:
        ValueError: If the run has no such flow or series.
    """
    run = _view.keep(run)
    flow = flow or _view.subject_of(run)
    entry = _view.flow_summary(run, flow)
    label = str(entry.get("controller") or entry["kind"])
    if not _view.has(run, "internals"):
        raise ValueError(
            f"run {run.summary.get('name', '?')!r} has no internals: record it at level 'series' or 'packets'"
        )
    got = _view.rows(run, "internals", "flow", flow, ("t_s", "name", "value"))
    noted = list(dict.fromkeys(str(name) for name in got["name"]))
    chosen = list(names) if names is not None else noted
    for name in chosen:
        if name not in noted:
            raise ValueError(f"flow {flow!r} noted no {name!r}; it noted {', '.join(noted) or 'nothing'}")
    if not chosen:
        raise ValueError(f"the controller of flow {flow!r} noted nothing")
    colour = colours([label])[label]
    with mpl.rc_context(STYLE):
        figure = _new(11, 1.2 + 1.7 * len(chosen))
        axes = figure.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, chosen, strict=True):
            mask = got["name"] == name
            ax.step(got["t_s"][mask], got["value"][mask], where="post", color=colour, linewidth=1.2)
            ax.set_title(name, fontsize=11)
        axes[-1].set_xlabel("Time (s)")
        axes[-1].set_xlim(0, float(run.summary.get("duration_s") or got["t_s"].max()))
        figure.suptitle(f"Inside {label}: flow {flow}", x=0.01, ha="left", fontsize=15, fontweight="bold")
    return figure
