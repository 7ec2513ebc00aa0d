"""A change over time: rate and delay of the same calls before and now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.output.document import capitalised
from tidegate.output.palette import MUTED, looks
from tidegate.show.plot.style import ABOVE, STYLE, delay_axis, finished, headline, new_figure
from tidegate.show.view import Floats


@dataclass(frozen=True)
class Side:
    """One of the two sides, before or now."""

    name: str
    """Its name in the legend."""
    step_s: int
    """Length of a bin, in seconds."""
    rate_mbps: Floats
    """Receive rate, of shape (seeds, bins); NaN where there is none."""
    delay_ms: Floats
    """One-way delay, of the same shape."""


def before_after(title: str, sides: Sequence[Side], remark: str) -> Figure:
    """Draws rate and delay over time: medians over the seeds, and bands from the least to the most.

    Args:
        title: The headline.
        sides: Before and now; or now alone. The last one has the colour.
        remark: A sentence below, after that on the seeds.
    """
    colours = [MUTED] * (len(sides) - 1) + [looks([sides[-1].name])[sides[-1].name].colour]
    with mpl.rc_context(STYLE):
        figure = new_figure(11, 6.4)
        rate, delay = figure.subplots(2, 1, sharex=True)
        for side, colour in zip(sides, colours, strict=True):
            _draw(rate, side, side.rate_mbps, colour)
            _draw(delay, side, side.delay_ms, colour)
        rate.set_ylabel("Receive rate (Mbit/s)")
        rate.set_ylim(bottom=0)
        rate.legend(ncols=len(sides), borderaxespad=0.2, **ABOVE)
        delay.set_ylabel("One-way delay (ms)")
        delay_axis(delay, [side.delay_ms for side in sides])
        delay.set_xlabel("Time (s)")
        delay.set_xlim(0, max(side.rate_mbps.shape[1] * side.step_s for side in sides))
        seeds = max(len(side.rate_mbps) for side in sides)
        note = f"lines: median of {seeds} seeds; bands: from the least to the most" if seeds > 1 else "one seed"
        figure.supxlabel(f"{note}. {capitalised(remark)}", x=0.99, ha="right", fontsize=10, color=MUTED)
        figure.align_ylabels()
        headline(figure, title)
    return finished(figure)


def _draw(ax: Axes, side: Side, values: Floats, colour: str) -> None:
    columns = np.isfinite(values).any(axis=0)
    middle, low, high = (np.full(values.shape[1], np.nan) for _ in range(3))
    if columns.any():
        part = values[:, columns]
        middle[columns], low[columns], high[columns] = np.nanmedian(part, 0), np.nanmin(part, 0), np.nanmax(part, 0)
    times = (np.arange(values.shape[1]) + 0.5) * side.step_s
    ax.fill_between(times, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(times, middle, color=colour, label=side.name)
