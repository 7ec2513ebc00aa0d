"""Figures of any size: fonts and lines in proportion to a style, legends and labels that stay inside."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import TextPath

from tidegate.show.plot.style import ABOVE, PAPER, STYLE, finished, new_figure, points

Size: TypeAlias = tuple[float, float]
"""Width and height of a figure in inches."""
Style: TypeAlias = str | Mapping[str, Any]
"""The name of a style (`paper`), or parameters of matplotlib on top of the usual ones."""

STYLES: Mapping[str, Mapping[str, Any]] = {"paper": PAPER, "screen": {}}
"""Changes to `STYLE` by the name of a style."""
_SMALL = 5.0
"""Figures narrower than this (inches) have the style `paper` if none is given: it is that of a column of a paper."""
_LEAST, _LARGEST = 0.5, 100.0
_PER_INCH = 72.0
_MARGIN = 8.0
"""Room beside a panel for its axis, in heights of a letter."""
_SLACK = 1.0
"""Points by which a text may reach over the edge: outlines of letters are rounded to dots."""


@contextmanager
def drawing(width: float, height: float, size: Size | None, style: Style | None) -> Iterator[Figure]:
    """Makes a figure in its style; at the end all of its texts are safe to draw, and inside.

    Args:
        width: The usual width in inches.
        height: The usual height in inches.
        size: Width and height in its place.
        style: The style.

    Raises:
        ValueError: If the style has no meaning, or the size is too small for the contents.
    """
    parameters = _parameters(size, style)
    with mpl.rc_context(parameters):
        figure = new_figure(*(size or (width, height)))
        figure.parameters = parameters
        yield figure
        finished(figure)
        if size is not None or style is not None:
            _fit(figure)


def _parameters(size: Size | None, style: Style | None) -> dict[Any, Any]:
    if size is not None and not all(_LEAST <= side <= _LARGEST for side in size):
        raise ValueError(f"size: found {size}; expected width and height in inches, as (3.3, 2.4), 0.5 to 100 each")
    if style is None:
        style = "paper" if size is not None and size[0] < _SMALL else "screen"
    if isinstance(style, str) and style not in STYLES:
        raise ValueError(f"style: found {style!r}; expected {' or '.join(STYLES)}, or parameters of matplotlib")
    changes = STYLES[style] if isinstance(style, str) else style
    unknown = [name for name in changes if name not in mpl.rcParams]
    if unknown:
        raise ValueError(f"style: matplotlib has no parameter {unknown[0]!r}; expected such as 'font.size'")
    return {**STYLE, **changes}


def letters(figure: Figure) -> float:
    """The width of a figure in heights of a letter."""
    return figure.get_figwidth() * _PER_INCH / float(mpl.rcParams["font.size"])


def width_of(text: str, size: float) -> float:
    """The width of a text in points, drawn with letters of a size."""
    lines = (line for line in text.split("\n") if line.strip())
    return max(
        (TextPath((0, 0), line, size=size, prop=FontProperties()).get_extents().width for line in lines), default=0.0
    )


def columns_of(
    figure: Figure, names: Sequence[str], size: float, settings: Mapping[str, Any], margin: float = _MARGIN
) -> int:
    """The largest number of columns of a legend that is as wide as a figure.

    Args:
        figure: The figure.
        names: The texts of the legend.
        size: The size of its letters in points.
        settings: Its settings, where they are not those of the style.
        margin: Room that it leaves free, in heights of a letter.
    """
    handle, pad, between = (
        float(settings.get(name, mpl.rcParams[f"legend.{name}"]))  # type: ignore[index]
        for name in ("handlelength", "handletextpad", "columnspacing")
    )
    room = (letters(figure) - margin) * float(mpl.rcParams["font.size"])
    widths = [width_of(name, size) + (handle + pad) * size for name in names]
    for columns in range(len(widths), 1, -1):
        filled = [float(column.max()) for column in np.array_split(widths, columns)]
        if sum(filled) + between * size * (columns - 1) <= room:
            return columns
    return 1


def legend_above(ax: Axes, handles: Sequence[Artist] | None = None, size: float | None = None, **more: Any) -> None:
    """Adds a legend above axes, if there is something to explain, in as few lines as their width allows."""
    if handles is None:
        handles, _ = ax.get_legend_handles_labels()
    if not handles:
        return
    size = float(mpl.rcParams["legend.fontsize"]) if size is None else points(size)
    columns = columns_of(_root(ax), [str(handle.get_label()) for handle in handles], size, more)
    ax.legend(handles=handles, ncols=columns, borderaxespad=0.2, fontsize=size, **ABOVE, **more)


def legend_below(figure: Figure, handles: Sequence[Artist], length: float = 1.8) -> None:
    """Adds a legend at the lower edge of a figure, in as few lines as its width allows.

    Args:
        figure: The figure.
        handles: The lines, with their labels.
        length: The length of a line in it, in heights of a letter.
    """
    if handles:
        size = float(mpl.rcParams["legend.fontsize"])
        settings = {"columnspacing": 1.2, "handletextpad": 0.8, "handlelength": length}
        columns = columns_of(figure, [str(handle.get_label()) for handle in handles], size, settings, margin=1.5)
        figure.legend(handles=handles, loc="outside lower left", ncols=columns, **settings)


def _root(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None  # noqa: S101
    return figure


def _fit(figure: Figure) -> None:
    """Wraps texts that are wider than their place, and refuses a figure whose contents do not fit."""
    # labels that are longer than their panels take the room of other panels, so that there may be none left before they
    # are wrapped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.draw_without_rendering()
    edges = figure.bbox
    for part in (figure, *figure.subfigs):
        words = part.get_suptitle(), part.get_supxlabel(), part.get_supylabel()
        for text in part.findobj(Text, include_self=False):
            if text.get_text() in words and text.get_text():
                _wrap(text, part.get_window_extent().height if text.get_text() == words[2] else edges.width * 0.98)
    for ax in figure.axes:
        if ax.get_visible():
            _wrap(ax.yaxis.label, ax.bbox.height, upright=True)
            _wrap(ax.xaxis.label, ax.bbox.width)
            for title in (ax.title, ax._left_title, ax._right_title):  # type: ignore[attr-defined]  # noqa: SLF001
                _wrap(title, edges.x1 - ax.bbox.x0)
    layout(figure)
    width, height = figure.get_size_inches()
    asks = f"{width:g} by {height:g} inches"
    if any(ax.bbox.height < points(11) or ax.bbox.width < points(22) for ax in figure.axes if ax.get_visible()):
        raise ValueError(f"size: {asks} are too small for this figure's panels; expected more, or a smaller font.size")
    slack = _SLACK * figure.dpi / _PER_INCH
    for text in _texts(figure):
        box = text.get_window_extent()
        too_wide = box.x0 < edges.x0 - slack or box.x1 > edges.x1 + slack
        if too_wide or box.y0 < edges.y0 - slack or box.y1 > edges.y1 + slack:
            raise ValueError(
                f"size: {asks} are not {'wide' if too_wide else 'high'} enough for the text {text.get_text()!r}; "
                "expected a larger size, shorter labels, or a smaller font.size in style"
            )


def _texts(figure: Figure) -> Iterator[Text]:
    """The texts that are drawn, without those of ticks beyond the ends of an axis."""
    outside = {
        id(label)
        for ax in figure.axes
        for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim())))
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        if not (ax.get_visible() and low <= tick.get_loc() <= high)
        for label in (tick.label1, tick.label2)
    }
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in outside:
            yield text


def layout(figure: Figure) -> None:
    """Gives all parts of a figure their place.

    Raises:
        ValueError: If there is no room for them.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.draw_without_rendering()
    for warning in caught:
        if "constrained_layout" in str(warning.message):
            width, height = figure.get_size_inches()
            raise ValueError(
                f"size: {width:g} by {height:g} inches are too small for this figure's {len(figure.axes)} panels and "
                "their texts; expected a larger size, or a smaller font.size in style"
            )
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _wrap(text: Text, room: float, *, upright: bool = False) -> None:
    """Breaks a text into lines that fit in a room (dots), if it is longer."""
    content = text.get_text()
    box = text.get_window_extent()
    length = box.height if upright else box.width
    if content.strip() and length > room > 0:
        longest = max(map(len, content.split("\n")))
        # letters differ in width, so a line of mean letters may be too long
        count = max(1, int(longest * room / length * 0.97))
        wrapper = textwrap.TextWrapper(count, break_long_words=False, break_on_hyphens=False)
        text.set_text("\n".join(part for line in content.split("\n") for part in wrapper.wrap(line)))
