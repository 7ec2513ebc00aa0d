"""One run by itself."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tidegate import _view
from tidegate._palette import MUTED, colours
from tidegate._view import RunLike
from tidegate.plot.style import STYLE, delay_axis, draw_capacity, finished, loss_axis, new_figure, rate_legend


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
        figure = new_figure(11, 8.4)
        rate, delay, loss, queue = figure.subplots(4, 1, sharex=True, height_ratios=[1.6, 1.2, 0.7, 0.8])
        seen = draw_capacity(rate, run, link, end)
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
        rate_legend(rate, colour, link=link if seen else None, cross=bool(others), target=has_target)
        delay.plot(series.t, series.delay_max_ms, color=colour, linewidth=0.8, alpha=0.5)
        delay.plot(series.t, series.delay_ms, color=colour)
        delay.set_ylabel("One-way delay (ms)")
        delay_axis(delay, [series.delay_ms, series.delay_max_ms])
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
        loss_axis(loss, [series.loss])
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
    return finished(figure)


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
        figure = new_figure(11, 1.2 + 1.7 * len(chosen))
        axes = figure.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, chosen, strict=True):
            mask = got["name"] == name
            ax.step(got["t_s"][mask], got["value"][mask], where="post", color=colour, linewidth=1.2)
            ax.set_title(name, fontsize=11)
        axes[-1].set_xlabel("Time (s)")
        axes[-1].set_xlim(0, float(run.summary.get("duration_s") or got["t_s"].max()))
        figure.suptitle(f"Inside {label}: flow {flow}", x=0.01, ha="left", fontsize=15, fontweight="bold")
    return finished(figure)
