"""Small pieces of the page: words, names of controllers, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidegate.show.palette import Look
from tidegate.show.report.markup import Content, Markup, join, tag, text
from tidegate.show.report.numbers import dash
from tidegate.show.report.tables import NOTHING

SIGNS = {"pass": "✓", "fail": "✗", "error": "!", "not run": NOTHING}
"""The sign of each verdict, beside its word: colour alone says nothing to many, and nothing on paper."""


def begun(told: str) -> str:
    """Text as the beginning of a sentence."""
    return told[:1].upper() + told[1:]


def hues(own: Look) -> str:
    """Its colours for light and dark pages, as a style."""
    return f"--light:{own.colour};--dark:{own.on_dark}"


def breakable(name: str) -> Markup:
    """A name that may be broken behind its commas and colons.

    >>> breakable("5.1,delay=50ms")
    '5.1,<wbr>delay=50ms'
    """
    return Markup(re.sub(r"([,:/])", r"\1<wbr>", text(name)))


def swatch(own: Look) -> Markup:
    """A piece of a controller's line with its marker."""
    dashes = " ".join(f"{length:g}" for length in dash(own)) or None
    line = tag("line", x1=0, y1=5, x2=34, y2=5, stroke_dasharray=dashes)
    return tag("svg", line, marker(own, 17, 5, 4), class_="swatch", viewBox="0 0 34 10", aria_hidden="true",
               style=hues(own))  # fmt: skip


def named(controller: str, own: Mapping[str, Look]) -> Markup:
    """A controller's name beside its line; a long one breaks, and its whole is shown under the pointer."""
    return join([swatch(own[controller]), tag("span", breakable(controller), class_="label", title=controller)])


def marker(own: Look, x: float, y: float, r: float) -> Markup:
    """The marker of a controller, as matplotlib's of the same name."""
    points: tuple[tuple[float, float], ...]
    match own.marker:
        case "s":
            return tag("rect", x=f"{x - r:.1f}", y=f"{y - r:.1f}", width=2 * r, height=2 * r)
        case "^":
            points = ((0, -1.2), (1.1, 0.8), (-1.1, 0.8))
        case "v":
            points = ((0, 1.2), (1.1, -0.8), (-1.1, -0.8))
        case "D":
            points = ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0))
        case _:
            return tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=r)
    return tag("polygon", points=" ".join(f"{x + a * r:.1f},{y + b * r:.1f}" for a, b in points))


def table(heads: Iterable[Content], rows: Iterable[Iterable[Content]], class_: str) -> Markup:
    """A table whose first column names its rows, in a frame that scrolls where it is too narrow."""
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    body = [
        tag("tr", *(tag("td" if at else "th", one, scope=None if at else "row") for at, one in enumerate(row)))
        for row in rows
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_=class_), class_="scroll")


def emphasised(told: str) -> Markup:
    """Text of the Markdown tables, where two stars on either side make it bold."""
    bold = told.startswith("**") and told.endswith("**")
    return tag("b", told[2:-2]) if bold else text(told)
