"""Delays as a distribution, and delay against rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tidegate import _view
from tidegate._palette import colours
from tidegate._view import Runs
from tidegate.plot.style import STYLE, finished, new_figure, plain_log

# Past this ratio between points a linear delay axis shows only the largest; a little distance still tells.
_LOG_DELAY_RATIO = 5.0


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
        figure = new_figure(8.2, 5.0)
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
    return finished(figure)


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
        figure = new_figure(7.6, 5.4)
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
    return finished(figure)


def _reversed_delay_axis(ax: Axes, values: Sequence[float]) -> None:
    known = [value for value in values if value > 0]
    if not known:
        ax.invert_xaxis()
        return
    low, high = min(known), max(known)
    if high / low > _LOG_DELAY_RATIO:
        ax.set_xscale("log")
        ax.set_xlim(high * 1.4, low / 1.6)
        plain_log(ax.xaxis)
    else:
        span = max(high - low, 0.1 * high)
        ax.set_xlim(high + 0.35 * span, max(low - 0.45 * span, 0))
