"""Figures of one run."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tidegate.output.palette import MUTED, looks
from tidegate.show import _session, view
from tidegate.show.plot.session import draw_queues
from tidegate.show.plot.style import (
    ABOVE,
    STYLE,
    TARGET,
    delay_axis,
    draw_capacity,
    draw_loss,
    finished,
    headline,
    new_figure,
    rate_legend,
)
from tidegate.show.view import RunLike


def time_series(run: RunLike, *, flow: str | None = None, link: str | None = None) -> Figure:
    """Draws one flow of one run over time: rate against capacity, delay, loss and the queues.

    Args:
        run: The run.
        flow: The flow; by default the subject.
        link: The link whose capacity is drawn; by default that with the highest utilisation.

    Raises:
        ValueError: If there is no such flow, or the run was recorded without series.
    """
    run = view.keep(run)
    flow = flow or view.subject_of(run)
    link = link or view.bottleneck([run])
    series = view.flow_series(run, flow)
    label = view.label_of(run, flow)
    colour = looks([label])[label].colour
    end = view.end_of(series.t)
    with mpl.rc_context(STYLE):
        figure = new_figure(11, 8.4)
        rate, delay, loss, queue = figure.subplots(4, 1, sharex=True, height_ratios=[1.6, 1.2, 0.7, 0.8])
        has_capacity = draw_capacity(rate, run, link, end)
        others = [e["flow"] for e in run.summary["flows"] if e["flow"] != flow]
        for name in others:
            cross = view.flow_series(run, name)
            rate.plot(cross.t, cross.receive_bps / 1e6, color=MUTED, linewidth=1.0)
        rate.plot(series.t, series.receive_bps / 1e6, color=colour)
        has_target = bool(np.isfinite(series.target_bps).any())
        if has_target:
            rate.plot(series.t, series.target_bps / 1e6, **TARGET)
        rate.set_ylabel("Rate (Mbit/s)")
        rate.set_ylim(bottom=0)
        rate_legend(rate, colour, link=link if has_capacity else None, cross=bool(others), target=has_target)
        delay.plot(series.t, series.delay_max_ms, color=colour, linewidth=0.8, alpha=0.5)
        delay.plot(series.t, series.delay_ms, color=colour)
        delay.set_ylabel("One-way delay (ms)")
        delay_axis(delay, [series.delay_ms, series.delay_max_ms])
        mean = Line2D([], [], color=colour, label="mean of the bin")
        maximum = Line2D([], [], color=colour, alpha=0.5, linewidth=0.8, label="largest")
        delay.legend(handles=[mean, maximum], ncols=2, borderaxespad=0.2, **ABOVE)
        draw_loss(loss, series, colour)
        draw_queues(queue, _session.queues(run))
        queue.set_xlabel("Time (s)")
        queue.set_xlim(0, end)
        figure.align_ylabels()
        headline(figure, view.headline(run, flow))
    return finished(figure)


def internals(run: RunLike, flow: str | None = None, names: Sequence[str] | None = None) -> Figure:
    """Draws the inner state that a controller noted: a panel for each named series, with its unit where it is known.

    A value that is compared with a threshold shares an axis with the threshold.

    Args:
        run: The run.
        flow: The flow whose controller is drawn; by default the subject.
        names: The series from top to bottom; by default all that were noted.

    Raises:
        ValueError: If the run has no such flow or series.
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
    with mpl.rc_context(STYLE):
        figure = new_figure(11, 1.2 + 1.7 * len(panels))
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, series in zip(axes, panels, strict=True):
            for name, style in zip(series, _STYLES, strict=False):
                mask = got["name"] == name
                unit, scale = _axis_unit(name)
                times, value = got["t_s"][mask], np.asarray(got["value"][mask], float) * scale
                ink = colour if style == "-" else "#222222"
                ax.step(times, value, where="post", color=ink, linewidth=1.2, linestyle=style, label=name)
                if name == "threshold" and len(series) > 1:
                    ax.step(times, -value, where="post", color=ink, linewidth=1.2, linestyle=style)
                    # values far beyond the threshold would make its crossings too small to see
                    top = _FAR * float(value.max())
                    low, high = ax.get_ylim()
                    ax.set_ylim(max(low, -top), min(high, top))
            title, code = " and ".join(series), _CODES.get(series[0])
            ax.set_title(f"{title} ({code})" if code else title, fontsize=11)
            ax.set_ylabel(unit)
            if len(series) > 1:
                ax.legend(loc="lower right", bbox_to_anchor=(1, 1.0), ncols=len(series), borderaxespad=0.2, fontsize=9)
        axes[-1].set_xlabel("Time (s)")
        axes[-1].set_xlim(0, float(run.summary.get("duration_s") or got["t_s"].max()))
        figure.align_ylabels()
        headline(figure, f"Inside {label}: flow {flow}")
    return finished(figure)


_STYLES = ("-", "--")
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
