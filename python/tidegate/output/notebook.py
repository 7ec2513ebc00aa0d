"""A document as HTML for the cell of a notebook: its title, the answer's tables, and a line for each note.

It fits dark and light pages: lines and fills are translucent, and text has the page's colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tidegate.output import html
from tidegate.output.document import Block, Column, Document, Items, Paragraph, Row, Table, brief
from tidegate.output.markdown import markdown
from tidegate.output.markup import Markup, tag

if TYPE_CHECKING:
    from tidegate._core import Table as Recorded

_ROWS = 20
"""Lines of a long table that are shown."""
_HEAD = 10
"""Rows of a recorded table that are shown."""
_STYLE = Markup(
    ".tidegate-cell{overflow-x:auto}"
    ".tidegate-cell p{margin:.25em 0}"
    ".tidegate-cell .soft{opacity:.72;font-size:.9em}"
    ".tidegate-cell table{border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums}"
    ".tidegate-cell th,.tidegate-cell td{text-align:right;white-space:nowrap;padding:.3em .9em;color:inherit;"
    "border:0;border-bottom:1px solid rgba(128,136,150,.4)}"
    ".tidegate-cell th:first-child,.tidegate-cell td:first-child,.tidegate-cell .text{text-align:left}"
    ".tidegate-cell tbody th{font-weight:500}"
    ".tidegate-cell td.best{font-weight:650;background:rgba(15,140,80,.16)}"
    ".tidegate-cell td.best::after{content:' ★'}"
    ".tidegate-cell td.unsure{font-weight:inherit;background:none}"
    ".tidegate-cell td.unsure::after{content:' ☆'}"
    ".tidegate-cell td.out{opacity:.72}"
    ".tidegate-cell td.bad{background:rgba(200,50,40,.14)}"
    ".tidegate-cell td.odd{background:rgba(200,140,20,.16)}"
)


class Displayable:
    """The base of results that notebooks show by their documents."""

    def document(self) -> Document:
        """The result as data."""
        raise NotImplementedError

    def to_markdown(self, *, detail: bool = False) -> str:
        """The answer as Markdown.

        Args:
            detail: Whether tables have all rows and columns.
        """
        return markdown(self.document(), whole=False, detail=detail)

    def _repr_html_(self) -> str:
        """The result as HTML, for IPython."""
        return cell(self.document())


def cell(document: Document) -> str:
    """Formats a document as a piece of HTML."""
    parts = [tag("p", tag("b", document.title), *([" · ", " · ".join(document.facts)] if document.facts else []))]
    parts += _blocks(document.answer)
    remarks = [*document.failures, *document.remarks.brief.labelled]
    parts += [tag("p", f"{name}: {text}", class_="soft") for name, text in remarks]
    return tag("div", tag("style", _STYLE), *parts, class_="tidegate-cell")


def _blocks(blocks: Iterable[Block]) -> Iterator[Markup]:
    for block in brief(blocks):
        match block:
            case Table():
                yield html.short(block, _ROWS)
            case Paragraph():
                yield tag("p", html.words(block.words), class_="soft")
            case Items():
                yield from (tag("p", html.words(item), class_="soft") for item in block.items)


def of_table(table: Recorded) -> str:
    """Formats the first rows of a recorded table; the engine's tables call it from Rust."""
    head = table[:_HEAD]
    columns = [head[name].tolist() for name in table.columns]
    rows = [Row([str(index), *map(_value, row)]) for index, row in enumerate(zip(*columns, strict=True))]
    more = f", of which the first {_HEAD} are shown" if len(table) > _HEAD else ""
    title = f"{len(table)} rows, {len(table.columns)} columns{more}"
    return cell(Document(title, [Table([Column("row"), *map(Column, table.columns)], rows)]))


def _value(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.7g}" if math.isfinite(value) else "-"
