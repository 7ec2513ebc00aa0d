"""Figures of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tidegate.output.palette import looks
from tidegate.show import _session, view
from tidegate.show.plot.fitting import Size, Style, drawing, legend_above
from tidegate.show.plot.session import draw_queues
from tidegate.show.plot.style import (
    delay_axis,
    draw_capacity,
    draw_loss,
    draw_marks,
    headline,
    other_line,
    points,
    rate_handles,
    stroke,
    target_line,
)
from tidegate.show.view import RunLike


def time_series(
    run: RunLike,
    *,
    flow: str | None = None,
    link: str | None = None,
    size: Size | None = None,
    style: Style | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws one flow of one run over time: rate against capacity, delay, loss, marks if there are any, and the queues.

    Each other flow of the run is a grey line.

    Args:
        run: The run.
        flow: The flow; by default the subject.
        link: The link whose capacity is drawn; by default that with the highest utilisation.
        size: Width and height in inches.
        style: `paper`, `screen`, or parameters of matplotlib; see [plot][tidegate.plot].
        title: The heading; by default made from the run, and none if empty.
        labels: Other names for flows, controllers and links.

    Raises:
        ValueError: If there is no such flow, the run was recorded without series, or the size is too small.
    """
    run = view.keep(run)
    flow = flow or view.subject_of(run)
    link = link or view.bottleneck([run])
    series = view.flow_series(run, flow)
    label = view.label_of(run, flow)
    colour = looks([label])[label].colour
    end = view.end_of(series.t)
    marked = view.has_marks(series)
    heights = [1.6, 1.2, 0.7, *([0.7] if marked else []), 0.8]
    with drawing(11, 8.4 + 1.4 * marked, size, style) as figure:
        rate, delay, loss, *marks, queue = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
        has_capacity = draw_capacity(rate, run, link, end)
        others = view.others(run, [flow], series.t)
        for number, values in enumerate(others.values()):
            rate.plot(series.t, values / 1e6, **other_line(number))
        rate.plot(series.t, series.receive_bps / 1e6, color=colour)
        has_target = bool(np.isfinite(series.target_bps).any())
        if has_target:
            rate.plot(series.t, series.target_bps / 1e6, **target_line())
        rate.set_ylabel("Rate (Mbit/s)")
        rate.set_ylim(bottom=0)
        names = [view.renamed(labels, name) for name in others]
        named_link = view.renamed(labels, link) if link is not None and has_capacity else None
        legend_above(
            rate, rate_handles(colour, names, link=named_link, target=has_target), columnspacing=1.6, handlelength=1.8
        )
        delay.plot(series.t, series.delay_max_ms, color=colour, linewidth=stroke(0.8), alpha=0.5)
        delay.plot(series.t, series.delay_ms, color=colour)
        delay.set_ylabel("One-way delay (ms)")
        delay_axis(delay, [series.delay_ms, series.delay_max_ms])
        mean = Line2D([], [], color=colour, label="mean of the bin")
        maximum = Line2D([], [], color=colour, alpha=0.5, linewidth=stroke(0.8), label="largest")
        legend_above(delay, [mean, maximum])
        draw_loss(loss, series, colour)
        for ax in marks:
            draw_marks(ax, series, colour)
        draw_queues(queue, _session.queues(run), labels)
        queue.set_xlabel("Time (s)")
        queue.set_xlim(0, end)
        figure.align_ylabels()
        headline(figure, view.headline(run, flow, labels) if title is None else title)
    return figure


def internals(
    run: RunLike,
    flow: str | None = None,
    names: Sequence[str] | None = None,
    *,
    size: Size | None = None,
    style: Style | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws the inner state that a controller noted: a panel for each named series, with its unit where it is known.

    A value that is compared with a threshold shares an axis with the threshold.

    Args:
        run: The run.
        flow: The flow whose controller is drawn; by default the subject.
        names: The series from top to bottom; by default all that were noted.
        size: Width and height in inches.
        style: `paper`, `screen`, or parameters of matplotlib; see [plot][tidegate.plot].
        title: The heading; by default made from the run, and none if empty.
        labels: Other names for the flow, the controller and the series.

    Raises:
        ValueError: If the run has no such flow or series, or the size is too small.
    """
    run = view.keep(run)
    flow = flow or view.subject_of(run)
    label = view.label_of(run, flow)
    if not view.has(run, "internals"):
        raise ValueError(
            f"run {run.summary.get('name', '?')!r} has no internals; run it again with record 'series' or 'packets'"
        )
    got = view.rows(run, "internals", "flow", flow, ("t_s", "name", "value"))
    noted = list(dict.fromkeys(str(name) for name in got["name"]))
    chosen = list(names) if names is not None else noted
    for name in chosen:
        if name not in noted:
            raise ValueError(
                f"the controller of flow {flow!r} has no internal {name!r}; available: {', '.join(noted) or 'none'}"
            )
    if not chosen:
        raise ValueError(f"the controller of flow {flow!r} has no internals")
    panels = _panels(chosen)
    colour = looks([label])[label].colour
    with drawing(11, 1.2 + 1.7 * len(panels), size, style) as figure:
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, series in zip(axes, panels, strict=True):
            for name, dash in zip(series, _DASHES, strict=False):
                mask = got["name"] == name
                unit, scale = _axis_unit(name)
                times, value = got["t_s"][mask], np.asarray(got["value"][mask], float) * scale
                ink = colour if dash == "-" else "#222222"
                line: dict[str, Any] = {"where": "post", "color": ink, "linewidth": stroke(1.2), "linestyle": dash}
                ax.step(times, value, label=view.renamed(labels, name), **line)
                if name == "threshold" and len(series) > 1:
                    ax.step(times, -value, **line)
                    # values far beyond the threshold would make its crossings too small to see
                    top = _FAR * float(value.max())
                    low, high = ax.get_ylim()
                    ax.set_ylim(max(low, -top), min(high, top))
            heading, code = " and ".join(view.renamed(labels, name) for name in series), _CODES.get(series[0])
            ax.set_title(f"{heading} ({code})" if code else heading, fontsize=points(11))
            ax.set_ylabel(unit)
            if len(series) > 1:
                ax.legend(
                    loc="lower right", bbox_to_anchor=(1, 1.0), ncols=len(series), borderaxespad=0.2, fontsize=points(9)
                )
        axes[-1].set_xlabel("Time (s)")
        axes[-1].set_xlim(0, float(run.summary.get("duration_s") or got["t_s"].max()))
        figure.align_ylabels()
        inside = f"Inside {view.renamed(labels, label)}: flow {view.renamed(labels, flow)}"
        headline(figure, inside if title is None else title)
    return figure


_DASHES = ("-", "--")
_FAR = 4.0  # thresholds
# Series that are compared share an axis, so that crossings are visible.
_TOGETHER = {"compared": ("compared", "threshold")}
_UNITS = {
    "offset": "ms a group", "slope": "ms/B", "var_noise": "ms²", "trend": "ms/ms", "num_deltas": "groups",
    "compared": "ms", "threshold": "ms", "loss_fraction": "of packets",
    "delay_based": "bit/s", "loss_based": "bit/s", "received_rate": "bit/s",
    "probe_rate": "bit/s", "stable_target": "bit/s",
    "remb": "bit/s", "remb_sent": "bit/s", "p": "of loss events", "receiver_p": "of loss events",
    "receiver_rate": "packets/s", "pacer_backlog": "bytes", "frames_skipped": "frames", "frames_left_out": "frames",
    "video_height": "pixels", "video_fps": "frames/s",
    "fraction_lost": "of packets", "table_size": "entries", "rounds": "round trips",
}  # fmt: skip
# The meanings of numbers that are codes.
_CODES = {
    "state": "0 normal, 1 over-use, 2 under-use", "rate_state": "0 hold, 1 increase, 2 decrease",
    "loss_state": "0 increasing, 1 with padding, 2 decreasing, 3 delay-based",
    "app_limited": "0 no, 1 yes", "data_limited": "0 no, 1 yes", "looked_up": "0 no, 1 yes",
}  # fmt: skip
_SUFFIXES = {"ms": "ms", "us": "µs", "s": "s", "bps": "bit/s", "bytes": "bytes", "kbps": "kbit/s", "hz": "1/s"}


def unit_of(name: str) -> str:
    """The unit of a noted series: that of tidegate's own controllers, or from the end of its name (`_ms`, `_bps`)."""
    return _UNITS.get(name) or _SUFFIXES.get(name.rpartition("_")[2], "")


def _axis_unit(name: str) -> tuple[str, float]:
    """The unit on the axis, and the factor from the noted values to it: rates are in Mbit/s on every figure."""
    unit = unit_of(name)
    return ("Mbit/s", 1e-6) if unit == "bit/s" else (unit, 1.0)


def _panels(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The series of each panel, from top to bottom."""
    joined = {second: first for first, pair in _TOGETHER.items() for second in pair[1:] if {*pair} <= {*names}}
    panels = (_TOGETHER[name] if name in joined.values() else (name,) for name in names if name not in joined)
    return list(panels)
