"""A figure of one run as a browser's webrtc-internals would show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.output.palette import DASHES, HUES, MUTED, Look, looks
from tidegate.show import _session, view
from tidegate.show._session import Session
from tidegate.show.plot.fitting import Size, Style, drawing, legend_above
from tidegate.show.plot.style import (
    capacity_patch,
    delay_axis,
    draw_capacity,
    draw_loss,
    draw_marks,
    headline,
    stroke,
    target_line,
)
from tidegate.show.view import Floats, RunLike

_FREEZE = "#d03030"
# the dashes of controllers, and a sixth, since networks may have many links
_DASHES = (*(Look(0, dash).linestyle for dash in range(len(DASHES))), (0, (3, 3)))


def session(
    run: RunLike,
    *,
    flow: str | None = None,
    link: str | None = None,
    size: Size | None = None,
    style: Style | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draws the knowledge of the two ends of a flow, and the queues of the run, over one time axis.

    From top to bottom: rates (encoded, target, sent, received, acknowledged, goodput) against the capacity; round trip
    and one-way delay; media waiting at the sender; the delay of frames, with time without a new picture shaded; loss;
    marks by queues; the queues of all links. Panels without data are left out.

    Args:
        run: The run, also one that was saved.
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
    ends = _session.session(run, flow)
    queues = _session.queues(run)
    label = view.label_of(run, flow)
    colour = looks([label])[label].colour
    rows: list[tuple[str, float]] = [("rate", 1.7), ("delay", 1.2)]
    rows += [("pacer", 0.7)] if len(ends.pacer[0]) else []
    rows += [("frame", 1.0)] if len(ends.frames[0]) or len(ends.lateness[0]) else []
    rows += [("loss", 0.6)]
    rows += [("marks", 0.6)] if view.has_marks(ends.series) else []
    rows += [("queue", 0.9)] if queues else []
    end = view.end_of(ends.series.t)
    with drawing(11, 1.5 + 1.75 * sum(height for _, height in rows), size, style) as figure:
        panels = figure.subplots(len(rows), 1, sharex=True, height_ratios=[height for _, height in rows], squeeze=False)
        axes = dict(zip((name for name, _ in rows), panels[:, 0], strict=True))
        capacity = draw_capacity(axes["rate"], run, link, end)
        if "frame" not in axes:
            _shade(axes["rate"], ends)
        _rates(axes["rate"], ends, colour, view.renamed(labels, link) if link is not None and capacity else None)
        _delays(axes["delay"], ends, colour)
        if "pacer" in axes:
            times, waiting = ends.pacer
            axes["pacer"].step(times, waiting / 1e3, where="post", color=colour, linewidth=stroke(1.0))
            axes["pacer"].set_ylabel("Pacer (kB)")
            axes["pacer"].set_ylim(bottom=0)
        if "frame" in axes:
            _frames(axes["frame"], ends, colour)
        draw_loss(axes["loss"], ends.series, colour)
        if "marks" in axes:
            draw_marks(axes["marks"], ends.series, colour)
        if "queue" in axes:
            draw_queues(axes["queue"], queues, labels)
        panels[-1, 0].set_xlabel("Time (s)")
        panels[-1, 0].set_xlim(0, end)
        figure.align_ylabels()
        headline(figure, view.headline(run, flow, labels) if title is None else title)
    return figure


def draw_queues(ax: Axes, queues: Mapping[str, tuple[Floats, Floats]], labels: Mapping[str, str] | None = None) -> None:
    """Draws the bytes that wait at each link, with other names for links if there are."""
    for number, (link, (t, size)) in enumerate(queues.items()):
        if len(queues) == 1:
            ax.fill_between(t, size / 1e3, step="post", color=MUTED, alpha=0.45, linewidth=0)
        style = _DASHES[number % len(_DASHES)]
        hue = HUES[(number + 5) % len(HUES)] if len(queues) > 1 else MUTED
        name = view.renamed(labels, link)
        ax.step(t, size / 1e3, where="post", color=hue, linewidth=stroke(1.0), linestyle=style, label=name)
    ax.set_ylabel("Queues (kB)")
    ax.set_ylim(bottom=0)
    legend_above(ax, size=9)


def _rates(ax: Axes, ends: Session, colour: str, link: str | None) -> None:
    t = ends.series.t
    lines: list[tuple[str, Floats, dict[str, Any]]] = [
        ("encoders", ends.encoder_bps, {"color": HUES[4], "linewidth": stroke(0.9)}),
        ("sent", ends.series.sending_bps, {"color": MUTED, "linewidth": stroke(0.9)}),
        ("received", ends.series.receive_bps, {"color": colour, "linewidth": stroke(1.6)}),
        ("acknowledged", ends.acked_bps, {"color": HUES[2], "linewidth": stroke(0.9), "linestyle": _DASHES[3]}),
        ("goodput", ends.goodput_bps, {"color": HUES[3], "linewidth": stroke(0.9), "linestyle": _DASHES[1]}),
        ("target", ends.series.target_bps, target_line(1.1)),
    ]
    for label, values, style in lines:
        if np.isfinite(values).any():
            ax.plot(t, values / 1e6, label=label, **style)
    ax.set_ylabel("Rate (Mbit/s)")
    finite = [values[np.isfinite(values)] for _, values, _ in lines]
    top = max((float(np.quantile(values, 0.995)) for values in finite if len(values)), default=1.0)
    # the capacity of a link far wider than the flow must not flatten the flow
    ax.set_ylim(0, min(ax.get_ylim()[1], 2.2e-6 * top) or 1.0)
    handles = [*ax.get_legend_handles_labels()[0], *([] if link is None else [capacity_patch(link)])]
    legend_above(ax, handles, size=9, columnspacing=1.2, handlelength=1.8)


def _delays(ax: Axes, ends: Session, colour: str) -> None:
    t, series = ends.series.t, ends.series
    times, trip = ends.round_trip
    if len(times):
        ax.plot(times, trip, color=HUES[6], linewidth=stroke(0.9), label="round trip, from reports")
    if np.isfinite(series.delay_ms).any():
        ax.plot(t, series.delay_ms, color=colour, label="one-way delay, mean of the bin")
        ax.plot(t, series.delay_max_ms, color=colour, linewidth=stroke(0.7), alpha=0.5, label="largest")
    ax.set_ylabel("Delay (ms)")
    delay_axis(ax, [series.delay_ms, series.delay_max_ms, trip])
    legend_above(ax, size=9)


def _shade(ax: Axes, ends: Session) -> None:
    for number, (begin, stop) in enumerate(zip(*ends.without_picture, strict=True)):
        ax.axvspan(begin, stop, color=_FREEZE, alpha=0.18, linewidth=0, label="" if number else "no new picture")


def _frames(ax: Axes, ends: Session, colour: str) -> None:
    is_recorded = not len(ends.frames[0])
    times, delay = ends.lateness if is_recorded else ends.frames
    if len(times):
        label = "complete, later than the quickest" if is_recorded else "capture to screen"
        ax.plot(times, delay, ".", color=colour, markersize=stroke(2.5), label=label)
    never = ~np.isfinite(delay)
    if never.any():
        ground = np.zeros(int(never.sum()))
        label = "not complete" if is_recorded else "never shown"
        ax.plot(times[never], ground, "|", color=_FREEZE, markersize=stroke(7), clip_on=False, label=label)
    _shade(ax, ends)
    ax.set_ylabel("Frame lateness (ms)" if is_recorded else "Frame delay (ms)")
    ax.set_ylim(bottom=0)
    legend_above(ax, size=9)
