"""How all figures look, and axes that several of them have."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tidegate.output.palette import CAPACITY_EDGE, CAPACITY_FILL, MUTED
from tidegate.show import view
from tidegate.show.view import Floats, FlowSeries, RunLike

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

TARGET: dict[str, Any] = {"color": "#222222", "linewidth": 1.0, "linestyle": (0, (3, 2))}
"""The line of a controller's target."""
ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0)}
"""A legend above its axes."""

# Past this ratio between the slowest and the quickest packet a linear axis shows only one of the
# two.
_LOG_RATIO = 30.0


_CELL_DPI = 100
"""Of figures in a notebook: as wide as its cells, and small enough to be kept in its file."""


class ShownFigure(Figure):
    """A figure that pyplot does not know, and that shows itself where it is the last line of a notebook's cell.

    What pyplot does not know nobody else shows: neither `%matplotlib inline` at the end of a cell, nor a window.
    """

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=_CELL_DPI)
        return data.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """A figure of its own; width and height in inches."""
    return ShownFigure(figsize=(width, height), dpi=150, layout="constrained")


def finished(figure: Figure) -> Figure:
    """The figure with nothing in it that its font cannot write, and with names as they are.

    A name is anybody's: one with a dollar is no formula, and letters that the font lacks would be boxes, and a warning
    each. They are told by their number in Unicode.
    """
    font = font_manager.get_font(font_manager.findfont(FontProperties(family=["sans-serif"])))
    for text in figure.findobj(Text):
        said = text.get_text()
        text.set_parse_math(False)
        if not said.isascii():
            known = [one.isspace() or font.get_char_index(ord(one)) for one in said]
            text.set_text("".join(one if ok else f"[{ord(one):X}]" for one, ok in zip(said, known, strict=True)))
    return figure


def largest(values: Sequence[Floats], quantile: float = 1.0) -> float:
    """An axis limit that holds the given series."""
    known = [v[np.isfinite(v)] for v in values]
    joined = np.concatenate(known) if known else np.empty(0)
    return float(np.quantile(joined, quantile)) if len(joined) else 0.0


def draw_capacity(ax: Axes, run: RunLike, link: str | None, end: float) -> bool:
    """The truth behind the lines, as a filled step in Mbit/s."""
    if link is None:
        return False
    t, capacity = view.truth(run, link)
    if not len(t) or not np.isfinite(capacity).any():
        return False
    t, capacity = np.append(t, max(end, t[-1])), np.append(capacity, capacity[-1]) / 1e6
    ax.fill_between(t, capacity, step="post", color=CAPACITY_FILL, linewidth=0, zorder=0)
    ax.step(t, capacity, where="post", color=CAPACITY_EDGE, linewidth=1.0, zorder=1)
    return True


def capacity_patch(link: str) -> Patch:
    """The patch of a link's capacity in a legend."""
    return Patch(facecolor=CAPACITY_FILL, edgecolor=CAPACITY_EDGE, label=f"capacity of {link} (truth)")


def rate_legend(ax: Axes, colour: str, *, link: str | None, cross: bool, target: bool) -> None:
    """A legend of the lines of a rate axis, above it."""
    handles: list[Line2D | Patch] = []
    if link is not None:
        handles.append(capacity_patch(link))
    if target:
        handles.append(Line2D([], [], label="target", **TARGET))
    handles.append(Line2D([], [], color=colour, label="receive rate"))
    if cross:
        handles.append(Line2D([], [], color=MUTED, linewidth=1.1, label="other flows, received"))
    ax.legend(handles=handles, ncols=len(handles), borderaxespad=0.2, columnspacing=1.6, handlelength=1.8, **ABOVE)


def headline(figure: Figure, words: str) -> None:
    """The headline of a figure."""
    figure.suptitle(words, x=0.01, ha="left", fontsize=15, fontweight="bold")


def delay_axis(ax: Axes, values: Sequence[Floats]) -> None:
    """Logarithmic where the values need it, else from 0."""
    known = np.concatenate([v[np.isfinite(v) & (v > 0)] for v in values])
    if len(known) and known.max() / known.min() > _LOG_RATIO:
        ax.set_yscale("log")
        plain_log(ax.yaxis)
    else:
        ax.set_ylim(bottom=0)


def plain_log(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis: decades with 2 and 5, not written as powers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_loss(ax: Axes, series: FlowSeries, colour: str) -> None:
    """The loss of a flow in each bin."""
    ax.bar(series.t, np.nan_to_num(series.loss) * 100, width=series.width, color=colour)
    ax.set_ylabel("Loss (%)")
    loss_axis(ax, [series.loss])


def loss_axis(ax: Axes, fractions: Sequence[view.Floats]) -> None:
    """A loss axis, at least one percent high so that a single loss looks small; says so where none was lost."""
    top = largest(fractions)
    ax.set_ylim(0, max(1.0, top * 105))
    if not top:
        ax.text(
            0.5, 0.5, "no packet was lost", transform=ax.transAxes, ha="center", va="center", color="#777777",
            bbox={"facecolor": "white", "edgecolor": "none"},
        )  # fmt: skip
