"""The style of all figures, and the axes that several of them share."""

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
"""The style of all figures of tidegate, for ``matplotlib.rc_context``."""

TARGET: dict[str, Any] = {"color": "#222222", "linewidth": 1.0, "linestyle": (0, (3, 2))}
"""The line of a controller's target."""
ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0)}
"""A legend above its axes."""

# Above this ratio between the slowest and the quickest packet the axis is logarithmic: a linear one would show only one
# of the two.
_LOG_RATIO = 30.0


_CELL_DPI = 100
"""The resolution of figures in a notebook: as wide as its cells, and small enough for its file."""


class ShownFigure(Figure):
    """A figure that pyplot does not know, and that a notebook shows where it is the last line of a cell.

    Since pyplot does not know it, it is never shown twice: neither `%matplotlib inline` nor a window shows it.
    """

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=_CELL_DPI)
        return data.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """Makes a figure; width and height are in inches."""
    return ShownFigure(figsize=(width, height), dpi=150, layout="constrained")


def finished(figure: Figure) -> Figure:
    """Makes all texts of a figure safe to draw, and returns the figure.

    Names may contain anything. A dollar sign must not begin a formula, and a character that the font lacks would give a
    box and a warning: such characters are replaced by their number in Unicode.
    """
    font = font_manager.get_font(font_manager.findfont(FontProperties(family=["sans-serif"])))
    for text in figure.findobj(Text):
        content = text.get_text()
        text.set_parse_math(False)
        if not content.isascii():
            writable = [char.isspace() or font.get_char_index(ord(char)) for char in content]
            text.set_text(
                "".join(char if ok else f"[{ord(char):X}]" for char, ok in zip(content, writable, strict=True))
            )
    return figure


def largest(values: Sequence[Floats], quantile: float = 1.0) -> float:
    """The largest value of series, or a quantile of all their values: a limit for an axis."""
    finite = [v[np.isfinite(v)] for v in values]
    joined = np.concatenate(finite) if finite else np.empty(0)
    return float(np.quantile(joined, quantile)) if len(joined) else 0.0


def draw_capacity(ax: Axes, run: RunLike, link: str | None, end: float) -> bool:
    """Draws the true capacity (Mbit/s) of a link as a filled step behind the lines, and says whether there is one."""
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
    return Patch(facecolor=CAPACITY_FILL, edgecolor=CAPACITY_EDGE, label=f"true capacity of {link}")


def rate_legend(ax: Axes, colour: str, *, link: str | None, cross: bool, target: bool) -> None:
    """Adds a legend of the lines above a rate axis."""
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
    """Writes the headline of a figure."""
    figure.suptitle(words, x=0.01, ha="left", fontsize=15, fontweight="bold")


def delay_axis(ax: Axes, values: Sequence[Floats]) -> None:
    """Makes a delay axis: logarithmic where the values need it, else from 0."""
    positive = np.concatenate([v[np.isfinite(v) & (v > 0)] for v in values])
    if len(positive) and positive.max() / positive.min() > _LOG_RATIO:
        ax.set_yscale("log")
        plain_log(ax.yaxis)
    else:
        ax.set_ylim(bottom=0)


def plain_log(axis: Axis) -> None:
    """Writes plain numbers, not powers, on a logarithmic axis: decades with 2 and 5."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_loss(ax: Axes, series: FlowSeries, colour: str) -> None:
    """Draws the loss of a flow in each bin."""
    ax.bar(series.t, np.nan_to_num(series.loss) * 100, width=series.width, color=colour)
    ax.set_ylabel("Loss (%)")
    loss_axis(ax, [series.loss])


def loss_axis(ax: Axes, fractions: Sequence[view.Floats]) -> None:
    """Makes a loss axis of at least 1 %, so that a single loss looks small, with a remark if no packet was lost."""
    top = largest(fractions)
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
