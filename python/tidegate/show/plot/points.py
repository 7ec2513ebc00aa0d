"""Figures of delay: its distribution, and delay against rate."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tidegate.show import view
from tidegate.show.plot.style import STYLE, finished, new_figure, plain_log
from tidegate.show.view import Runs

# Above this ratio between points the delay axis is logarithmic: a linear one would show only the largest.
_LOG_DELAY_RATIO = 5.0
_AT_95 = list(view.SHARES).index(0.95)


def delay_cdf(runs: Runs) -> Figure:
    """Draws the distribution of the one-way delay of the subject's packets, a line for each controller.

    With several seeds each point is the mean of that quantile over the seeds, so that the dot at 95 % is the 95th
    percentile of tables and of :func:`rate_delay_scatter`. The percentile of all packets pooled would differ: the seeds
    with the most late packets would dominate it.

    Raises:
        ValueError: If there is no run, or one was recorded without series.
    """
    groups = view.grouped(runs)
    look = view.looks_of(groups)
    axis_label = ["One-way delay"]
    if not all(view.knows_packets(run) for members in groups.values() for run in members):
        axis_label.append("mean of each bin")
    if max(len(members) for members in groups.values()) > 1:
        axis_label.append("quantiles as means over seeds")
    with mpl.rc_context(STYLE):
        figure = new_figure(8.2, 5.0)
        ax = figure.subplots()
        positive: list[float] = []
        for label, members in groups.items():
            delay = view.mean_quantiles(members, view.subject_of(members[0]))
            if not len(delay):
                continue
            colour, style = look[label].colour, look[label].linestyle
            ax.step(delay, view.SHARES, where="post", color=colour, label=label, linewidth=2, linestyle=style)
            ax.plot(float(delay[_AT_95]), 0.95, look[label].marker, color=colour, markersize=6)
            positive += [float(value) for value in delay if value > 0]
        ax.axhline(0.95, color="#999999", linewidth=0.8, linestyle=":")
        beside = ax.get_yaxis_transform()
        ax.text(1.01, 0.95, "95th pct.", transform=beside, va="center", fontsize=9, color="#666666")
        ax.set_ylim(0, 1.01)
        if positive:
            ax.set_xscale("log")
            ax.set_xlim(min(positive) * 0.9, max(positive) * 1.1)
            plain_log(ax.xaxis)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
        ax.set_ylabel("Share of packets up to this delay")
        ax.set_xlabel(f"{', '.join(axis_label)} (ms)")
        if positive:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 0.9), borderaxespad=0, handlelength=3.2)
        ax.set_title("One-way delay of the subject's packets")
    return finished(figure)


def rate_delay_scatter(runs: Runs) -> Figure:
    """Draws the mean receive rate against the 95th percentile of the one-way delay; better is up and right.

    Small dots are seeds, large ones their means. The delay axis runs from large to small, as in
    Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low
    Delay over Cellular Networks" (NSDI 2013), figure 7.

    Raises:
        ValueError: If there is no run.
    """
    groups = view.grouped(runs)
    look = view.looks_of(groups)
    with mpl.rc_context(STYLE):
        figure = new_figure(7.6, 5.4)
        ax = figure.subplots()
        all_points: list[tuple[float, float]] = []
        for label, members in groups.items():
            points = view.delay_and_rate(members)
            if not points:
                continue
            colour, marker = look[label].colour, look[label].marker
            x, y = (np.array(axis) for axis in zip(*points, strict=True))
            if len(points) > 1:
                ax.scatter(x, y, s=22, color=colour, marker=marker, alpha=0.5, linewidths=0)
            mean = x.mean(), y.mean()
            ax.scatter(*mean, s=130, color=colour, marker=marker, edgecolors="white", linewidths=1.2, zorder=3)
            ax.annotate(
                label,
                mean,
                xytext=(0, 11),
                textcoords="offset points",
                color=colour,
                ha="center",
                fontsize=12,
                fontweight="bold",
                zorder=4,
            )
            all_points.extend(points)
        reversed_delay_axis(ax, [point[0] for point in all_points])
        ax.set_ylim(0, max((point[1] for point in all_points), default=1.0) * 1.18)
        ax.set_ylabel("Mean receive rate (Mbit/s)")
        ax.set_xlabel("One-way delay, 95th percentile (ms)")
        ax.text(0.985, 0.975, "better ↗", transform=ax.transAxes, ha="right", va="top", color="#777777", fontsize=12)
        ax.set_title("Rate against delay")
    return finished(figure)


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
