"""Figures with the document's own axes: our series with 95 % bands, the document's values as markers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeAlias

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tidegate.output.palette import colours
from tidegate.paper.measures import Measure
from tidegate.results.stats import Interval, t_quantile
from tidegate.show.plot.style import STYLE, finished, plain_log

Floats: TypeAlias = npt.NDArray[np.float64]
Limits: TypeAlias = tuple[float | None, float | None]

_MARKS = "Ds^v"  # shapes of the markers of published values, one a series
_QUANTILES = np.linspace(0.0, 1.0, 401)


@dataclass(frozen=True)
class Drawing:
    """A finished figure, ready to be written to a file."""

    name: str
    """The name of its files."""
    where: str
    """The document's figure that it reproduces, such as `Figure 18`."""
    title: str
    caption: str
    figure: Figure

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG."""
        return self.file("svg")

    def file(self, kind: str) -> bytes:
        """The bytes of a `png` or `svg` file; the same figure gives the same bytes."""
        buffer = io.BytesIO()
        reproducible: dict[Any, Any] = {"svg.hashsalt": self.name, "svg.fonttype": "path"}
        with mpl.rc_context(STYLE | reproducible):
            self.figure.savefig(buffer, format=kind, metadata={"Date" if kind == "svg" else "Software": None})
        return buffer.getvalue()


@dataclass
class Sheet:
    """Builder of a figure: axes as the document has them, then series, bars and markers.

    >>> sheet = Sheet("Figure 18", "Average loss ratio", x="Configuration", y="Loss ratio", ylim=(0, 0.6))
    >>> sheet = sheet.bars("gcc", {"1": Measure.of([0.2, 0.3]), "2": Measure.of([0.1, 0.2])})
    >>> sheet.published("thesis", ["1", "2"], [0.22, 0.17]).drawing("loss").where
    'Figure 18'
    """

    where: str
    """The document's figure."""
    title: str
    x: str
    """Label of the x axis, with the unit."""
    y: str
    """Label of the y axis, with the unit."""
    xlim: Limits = (None, None)
    ylim: Limits = (None, None)
    xlog: bool = False
    ylog: bool = False
    size: tuple[float, float] = (9.0, 5.0)
    """In inches."""
    _lines: list[tuple[str, Floats, Floats, bool, str | None]] = field(default_factory=list)
    _points: list[tuple[str, Floats, Floats]] = field(default_factory=list)
    _bars: dict[str, Mapping[str, Interval]] = field(default_factory=dict)
    _marks: list[tuple[str, Sequence[Any], Floats]] = field(default_factory=list)

    def series(
        self,
        label: str,
        x: npt.ArrayLike,
        values: npt.ArrayLike,
        *,
        step: bool = False,
        colour: str | None = None,
    ) -> Self:
        """Adds a line.

        Args:
            label: Name in the legend.
            x: Positions of the values, shape (n,).
            values: Values of shape (n,), or of each seed with shape (seeds, n): these are drawn as their mean with
                the band of its 95 % interval. NaN where a value is missing.
            step: Whether a value holds until the next one.
            colour: Colour of the line; the next free one by default.

        Raises:
            ValueError: when the shapes do not fit.
        """
        positions, all_values = np.asarray(x, dtype=float), np.atleast_2d(np.asarray(values, dtype=float))
        if positions.ndim != 1 or all_values.ndim != 2 or all_values.shape[1] != len(positions):  # noqa: PLR2004
            raise ValueError(f"{label}: found values of shape {all_values.shape}; expected (seeds, {len(positions)})")
        self._lines.append((label, positions, all_values, step, colour))
        return self

    def cdf(self, label: str, samples: Sequence[npt.ArrayLike]) -> Self:
        """Adds the distribution of samples (a list for each seed): at x, the share of samples up to x."""
        by_seed = [np.asarray(array, dtype=float).ravel() for array in samples]
        by_seed = [array[np.isfinite(array)] for array in by_seed]
        by_seed = [array for array in by_seed if len(array)]
        if not by_seed:
            raise ValueError(f"{label}: found no samples")
        low, high = min(float(array.min()) for array in by_seed), max(float(array.max()) for array in by_seed)
        # samples at quantiles of all seeds together: dense where the curve is steep; of few samples, all of them
        grid = np.unique(
            np.concatenate([[low], np.quantile(np.concatenate(by_seed), _QUANTILES, method="inverted_cdf"), [high]])
        )
        shares = [np.searchsorted(np.sort(array), grid, side="right") / len(array) for array in by_seed]
        return self.series(label, grid, np.vstack(shares), step=True)

    def points(self, label: str, x: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Adds points without a line; x and y have shape (n,)."""
        self._points.append((label, np.asarray(x, dtype=float), np.asarray(y, dtype=float)))
        return self

    def bars(self, label: str, values: Mapping[str, Interval | Measure]) -> Self:
        """Adds a bar in each category, with its 95 % interval."""
        self._bars[label] = {
            category: value.value if isinstance(value, Measure) else value for category, value in values.items()
        }
        return self

    def published(self, label: str, x: Sequence[Any], y: npt.ArrayLike) -> Self:
        """Adds values of the document as markers; on bars, `x` names the categories.

        Markers with the label of bars or a line have their colour; with that of bars, they stand on them, too.
        """
        self._marks.append((label, list(x), np.asarray(y, dtype=float)))
        return self

    def drawing(self, name: str, caption: str = "") -> Drawing:
        """The finished figure; its files are called `name`."""
        hue = colours([*self._bars, *(line[0] for line in self._lines), *(label for label, _, _ in self._points)])
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=self.size, dpi=150, layout="constrained")
            ax = figure.subplots()
            self._draw_bars(ax, hue)
            for label, x, values, step, colour in self._lines:
                _band(ax, label, x, values, step=step, colour=colour or hue[label])
            for label, x, y in self._points:
                ax.plot(x, y, "o", color=hue[label], label=label, alpha=0.8)
            self._draw_marks(ax, hue)
            self._frame(ax)
            finished(figure)
        return Drawing(name, self.where, self.title, caption, figure)

    @property
    def _categories(self) -> list[str]:
        return list(dict.fromkeys(key for values in self._bars.values() for key in values))

    def _offset(self, label: str) -> float:
        """Position of a bar from the centre of its category; the categories are 1 apart."""
        if label not in self._bars:
            return 0.0
        return (list(self._bars).index(label) - (len(self._bars) - 1) / 2) * self._width

    @property
    def _width(self) -> float:
        return 0.8 / len(self._bars)

    def _draw_bars(self, ax: Axes, hue: Mapping[str, str]) -> None:
        categories = self._categories
        for label, values in self._bars.items():
            centres = np.array([categories.index(key) for key in values], dtype=float) + self._offset(label)
            means = [interval.mean for interval in values.values()]
            halves = [interval.half or 0.0 for interval in values.values()]
            width, colour = self._width * 0.92, hue[label]
            ax.bar(centres, means, width, yerr=halves, color=colour, label=label, capsize=3, ecolor="#444444")
        if categories:
            ax.set_xticks(range(len(categories)), categories)
            ax.grid(visible=False, axis="x")

    def _draw_marks(self, ax: Axes, hue: Mapping[str, str]) -> None:
        categories = self._categories
        for number, (label, x, y) in enumerate(self._marks):
            positions = [
                categories.index(category) + self._offset(label) if category in categories else category
                for category in x
            ]
            ax.plot(
                positions, y, _MARKS[number % len(_MARKS)], color=hue.get(label, "#222222"), markerfacecolor="white",
                markeredgewidth=1.8, markersize=8, label=f"{label}, published", zorder=5,
            )  # fmt: skip

    def _frame(self, ax: Axes) -> None:
        if self.xlog:
            ax.set_xscale("log")
            plain_log(ax.xaxis)
        if self.ylog:
            ax.set_yscale("log")
            plain_log(ax.yaxis)
        ax.set(xlim=self.xlim, ylim=self.ylim, xlabel=self.x, ylabel=self.y, title=self.title)
        if not self._bars and not self.xlog:
            ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)


def _band(ax: Axes, label: str, x: Floats, values: Floats, *, step: bool, colour: str) -> None:
    count = np.isfinite(values).sum(axis=0)
    finite = np.where(np.isfinite(values), values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(count > 0, finite.sum(axis=0) / count, np.nan)
        spread = np.where(np.isfinite(values), (values - mean) ** 2, 0.0).sum(axis=0)
        error = np.sqrt(spread / (count - 1) / count)
    drawstyle = "steps-post" if step else "default"
    ax.plot(x, mean, color=colour, label=label, drawstyle=drawstyle)
    if len(values) > 1:
        half = np.array([t_quantile(int(n) - 1) if n > 1 else np.nan for n in count]) * error
        ax.fill_between(
            x, mean - half, mean + half, color=colour, alpha=0.18, linewidth=0, step="post" if step else None
        )
