"""Figures of delay: its distribution, and delay against rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tidegate.show import view
from tidegate.show.plot.fitting import Size, Style, drawing, layout, legend_below, letters
from tidegate.show.plot.naming import write_names
from tidegate.show.plot.style import plain_log, points, stroke
from tidegate.show.view import Runs

# Above this ratio between points the delay axis is logarithmic: a linear one would show only the largest.
_LOG_DELAY_RATIO = 5.0
_NARROW = 48  # heights of a letter: a narrower figure has its legend below
_AT_95 = list(view.SHARES).index(0.95)


def delay_cdf(
    runs: Runs,
    *,
    size: Size | None = None,
    style: Style | None = None,
    title: str = "One-way delay of the subject's packets",
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws the distribution of the one-way delay of the subject's packets, a line for each controller.

    With several seeds each point is the mean of that quantile over the seeds, so that the dot at 95 % is the 95th
    percentile of tables and of :func:`rate_delay_scatter`. The percentile of all packets pooled would differ: the seeds
    with the most late packets would dominate it.

    Args:
        runs: Runs by controller, or a sequence of runs (grouped by their subject's controller).
        size: Width and height in inches.
        style: `paper`, `screen`, or parameters of matplotlib; see [plot][tidegate.plot].
        title: The heading; none if empty.
        labels: Other names for the controllers; the keys of `runs` are names already.

    Raises:
        ValueError: If there is no run, one was recorded without series, or the size is too small.
    """
    groups = view.grouped(runs)
    look = view.looks_of(groups)
    axis_label = ["One-way delay"]
    if not all(view.knows_packets(run) for members in groups.values() for run in members):
        axis_label.append("mean of each bin")
    if max(len(members) for members in groups.values()) > 1:
        axis_label.append("quantiles as means over seeds")
    with drawing(8.2, 5.0, size, style) as figure:
        narrow = letters(figure) < _NARROW
        ax = figure.subplots()
        positive: list[float] = []
        for label, members in groups.items():
            delay = view.mean_quantiles(members, view.subject_of(members[0]))
            if not len(delay):
                continue
            colour, dash = look[label].colour, look[label].linestyle
            name = view.renamed(labels, label)
            ax.step(delay, view.SHARES, where="post", color=colour, label=name, linewidth=stroke(2), linestyle=dash)
            ax.plot(float(delay[_AT_95]), 0.95, look[label].marker, color=colour, markersize=stroke(6))
            positive += [float(value) for value in delay if value > 0]
        ax.axhline(0.95, color="#999999", linewidth=stroke(0.8), linestyle=":")
        beside = ax.get_yaxis_transform()
        x, level = (0.01, "top") if narrow else (1.01, "center")
        ax.text(x, 0.95, "95th pct.", transform=beside, va=level, fontsize=points(9), color="#666666")
        ax.set_ylim(0, 1.01)
        if positive:
            ax.set_xscale("log")
            ax.set_xlim(min(positive) * 0.9, max(positive) * 1.1)
            plain_log(ax.xaxis)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
        ax.set_ylabel("Share of packets up to this delay")
        ax.set_xlabel(f"{', '.join(axis_label)} (ms)")
        if positive and narrow:
            legend_below(figure, ax.get_legend_handles_labels()[0], 3.2)
        elif positive:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 0.9), borderaxespad=0, handlelength=3.2)
        ax.set_title(title)
    return figure


def rate_delay_scatter(
    runs: Runs,
    *,
    size: Size | None = None,
    style: Style | None = None,
    title: str = "Rate against delay",
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws the mean receive rate against the 95th percentile of the one-way delay; better is up and right.

    Small dots are seeds, large ones their means. The delay axis runs from large to small, as in
    Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low
    Delay over Cellular Networks" (NSDI 2013), figure 7.

    Args:
        runs: Runs by controller, or a sequence of runs (grouped by their subject's controller).
        size: Width and height in inches.
        style: `paper`, `screen`, or parameters of matplotlib; see [plot][tidegate.plot].
        title: The heading; none if empty.
        labels: Other names for the controllers; the keys of `runs` are names already.

    Raises:
        ValueError: If there is no run, or the size is too small.
    """
    groups = view.grouped(runs)
    look = view.looks_of(groups)
    with drawing(7.6, 5.4, size, style) as figure:
        ax = figure.subplots()
        all_points: list[tuple[float, float]] = []
        names: list[tuple[str, tuple[float, float], str]] = []
        for label, members in groups.items():
            by_seed = view.delay_and_rate(members)
            if not by_seed:
                continue
            colour, marker = look[label].colour, look[label].marker
            x, y = (np.array(axis) for axis in zip(*by_seed, strict=True))
            if len(by_seed) > 1:
                ax.scatter(x, y, s=stroke(4.7) ** 2, color=colour, marker=marker, alpha=0.5, linewidths=0)
            mean = float(x.mean()), float(y.mean())
            edge: dict[str, Any] = {"edgecolors": "white", "linewidths": stroke(1.2)}
            ax.scatter(*mean, s=stroke(11.4) ** 2, color=colour, marker=marker, zorder=3, **edge)
            names.append((view.renamed(labels, label), mean, colour))
            all_points.extend(by_seed)
        reversed_delay_axis(ax, [point[0] for point in all_points])
        ax.set_ylim(0, max((point[1] for point in all_points), default=1.0) * 1.18)
        ax.set_ylabel("Mean receive rate (Mbit/s)")
        ax.set_xlabel("One-way delay, 95th percentile (ms)")
        ax.set_title(title)
        layout(figure)
        write_names(ax, names, points(12), stroke(11.4), points(11))
        ax.text(
            0.985, 0.975, "better ↗", transform=ax.transAxes, ha="right", va="top", color="#777777", fontsize=points(12)
        )
    return figure


def reversed_delay_axis(ax: Axes, values: Sequence[float]) -> None:
    """Makes a delay axis from large to small, logarithmic where the values need it."""
    positive = [value for value in values if value > 0]
    if not positive:
        ax.invert_xaxis()
        return
    low, high = min(positive), max(positive)
    if high / low > _LOG_DELAY_RATIO:
        ax.set_xscale("log")
        ax.set_xlim(high * 1.4, low / 1.6)
        plain_log(ax.xaxis)
    else:
        span = max(high - low, 0.1 * high)
        ax.set_xlim(high + 0.35 * span, max(low - 0.45 * span, 0))
