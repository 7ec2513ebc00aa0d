"""The style of all figures, and the axes that several of them share."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
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

from tidegate.output.palette import CAPACITY_EDGE, CAPACITY_FILL, DASHES, MUTED, Look
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
    "figure.titlesize": 15,
    "figure.titleweight": "bold",
    "figure.dpi": 150,
    "savefig.facecolor": "white",
}
"""The style of all figures of tidegate, for ``matplotlib.rc_context``."""

PAPER: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "legend.fontsize": 7,
    "figure.titlesize": 9,
    "figure.dpi": 300,
    # letters as TrueType and not as pictures of themselves: journals ask for it
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}
"""Changes to `STYLE` for a column of a paper, which is about 3.3 inches wide."""
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

    parameters: Mapping[Any, Any] = MappingProxyType({})
    """Parameters of matplotlib with which it was made, which hold while it is saved."""

    def savefig(self, fname: Any, **settings: Any) -> None:
        """Saves the figure; see matplotlib."""
        with mpl.rc_context(dict(self.parameters)):
            super().savefig(fname, **settings)

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=_CELL_DPI)
        return data.getvalue()


def new_figure(width: float, height: float) -> ShownFigure:
    """Makes a figure; width and height are in inches."""
    return ShownFigure(figsize=(width, height), dpi=mpl.rcParams["figure.dpi"], layout="constrained")


def points(size: float) -> float:
    """A size of letters in the style's proportion: `size` where it is that of `STYLE`."""
    return float(size * mpl.rcParams["font.size"] / STYLE["font.size"])


def stroke(width: float) -> float:
    """A width of a line, or a size of a marker, in the style's proportion: `width` where it is that of `STYLE`."""
    return float(width * mpl.rcParams["lines.linewidth"] / STYLE["lines.linewidth"])


def target_line(width: float = 1.0) -> dict[str, Any]:
    """The look of a controller's target."""
    return {"color": "#222222", "linewidth": stroke(width), "linestyle": (0, (3, 2))}


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
    ax.step(t, capacity, where="post", color=CAPACITY_EDGE, linewidth=stroke(1.0), zorder=1)
    return True


def capacity_patch(link: str) -> Patch:
    """The patch of a link's capacity in a legend."""
    return Patch(facecolor=CAPACITY_FILL, edgecolor=CAPACITY_EDGE, label=f"true capacity of {link}")


def rate_handles(colour: str, others: Sequence[str], *, link: str | None, target: bool) -> list[Line2D | Patch]:
    """The explanations of the lines of a rate axis.

    Args:
        colour: The colour of the line of the subject.
        others: The names of the other flows, in the order of their lines.
        link: The name of the link whose capacity is drawn; `None` for no capacity.
        target: Whether a target is drawn.
    """
    handles: list[Line2D | Patch] = []
    if link is not None:
        handles.append(capacity_patch(link))
    if target:
        handles.append(Line2D([], [], label="target", **target_line()))
    handles.append(Line2D([], [], color=colour, label="receive rate"))
    return handles + [Line2D([], [], label=name, **other_line(number)) for number, name in enumerate(others)]


def other_line(number: int) -> dict[str, Any]:
    """The look of a flow that a figure is not about: grey, and each with a dash of its own."""
    shades = (MUTED, "#4d5560", "#b3a58f")
    return {
        "color": shades[number // len(DASHES) % len(shades)],
        "linewidth": stroke(1.1),
        "linestyle": Look(0, number % len(DASHES)).linestyle,
    }


def headline(figure: Figure, words: str) -> None:
    """Writes the headline of a figure, if there is one."""
    if words:
        figure.suptitle(words, x=0.01, ha="left")


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


def draw_marks(ax: Axes, series: FlowSeries, colour: str) -> None:
    """Draws the share of a flow's packets that queues marked, in each bin."""
    ax.bar(series.t, np.nan_to_num(series.marked) * 100, width=series.width, color=colour)
    marks_axis(ax, [series.marked])


def marks_axis(ax: Axes, fractions: Sequence[view.Floats]) -> None:
    """Makes an axis of the share of packets that queues marked."""
    ax.set_ylabel("Marked (%)")
    ax.set_ylim(0, max(1.0, largest(fractions) * 105))


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
