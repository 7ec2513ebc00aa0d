"""A document as one self-contained page: it opens offline and loads nothing from the network.

Charts over time are drawn by `uPlot <https://github.com/leeoniya/uPlot>`_ (MIT, Leon Sorokin). ``assets/uplot`` keeps
it as it was published; the page contains it, with its licence.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any, Literal

from tidegate.output import svg
from tidegate.output.document import (
    NOTHING,
    Beside,
    Block,
    Cell,
    Cells,
    Code,
    Column,
    Details,
    Distribution,
    Document,
    Drawing,
    Items,
    Judged,
    Number,
    Pairs,
    Paragraph,
    Phrase,
    Picture,
    Row,
    Section,
    Sentence,
    Share,
    Table,
    Timeline,
    Words,
    capitalised,
    plain_text,
)
from tidegate.output.markup import Content, Markup, join, tag, text
from tidegate.results.metrics import Metric

POLICY = "default-src 'none'; {}style-src 'unsafe-inline'; img-src data:"
"""The page's content security policy: nothing may be fetched, since the page contains all that it needs."""
_SCRIPTS = "script-src 'unsafe-inline'; "

_WIDE = 7
"""The largest number of columns of a scorecard that are not narrowed."""

SIZE = 4_500_000
"""The approximate limit of a page's size (bytes): issues and mails take 5 MB."""


def page(document: Document) -> str:
    """Formats a document as a whole page."""
    return _Page().render(document)


def is_page(head: bytes) -> bool:
    """Whether a file with these first bytes is a page that tidegate wrote."""
    return head.startswith(b"<!doctype html>") and b'name="generator" content="tidegate"' in head


def quantity(
    metric: Metric, value: float | None, *, unit: bool = True, signed: bool = False, digits: int | None = None
) -> str:
    """Formats a value with its unit, and other digits than the metric's if given; a missing one is a dash."""
    digits = metric.digits if digits is None else digits
    number = metric.show(value, signed=signed, digits=digits)
    if number == "-":
        return NOTHING
    # a value that is not zero but too small for these digits must not look like zero
    if value and float(number) == 0 and not signed:
        number = f"< {10.0**-digits:g}"
    return f"{number} {metric.unit}" if unit and metric.unit else number


def words(sentence: Sentence) -> Markup:
    """Formats words as HTML."""
    if isinstance(sentence, str):
        return text(sentence)
    if not isinstance(sentence, Phrase):
        return join([words(part) for part in sentence])
    content = Markup(re.sub(r"([,:/])", r"\1<wbr>", text(sentence.text))) if sentence.tone == "label" else sentence.text
    drawn = [svg.swatch(sentence.look)] if sentence.look else []
    title = sentence.title or None
    match sentence.tone:
        case "":
            styled = tag("span", content, title=title, class_="tip", tabindex=0) if title else text(content)
        case "strong" | "code":
            styled = tag("b" if sentence.tone == "strong" else "code", content, title=title)
        case "small":
            styled = tag("small", content, title=title)
        case tone:
            styled = tag("span", content, class_=tone, title=title or (sentence.text if tone == "label" else None))
    return join([*drawn, styled])


def short(table: Table, limit: int) -> Markup:
    """Formats a table without details and drawings, with at most `limit` rows and an explanation of its marks."""
    brief = table.brief
    heads = [replace(column, head=_undrawn(column.head)) for column in brief.columns]
    rows = [replace(row, cells=[_briefly(cell) for cell in row.cells]) for row in brief.rows]
    chosen = replace(brief, columns=heads, rows=rows, most=limit, kind="")
    return join([_Page().one_table(chosen), _marks(chosen)])


def _briefly(cell: Cell) -> Cell:
    if isinstance(cell, Judged):
        return replace(cell, words=[cell.brief] if cell.brief else cell.words, opens=None)
    if isinstance(cell, int | Number | Items | Share):
        return cell
    if isinstance(cell, str | Phrase):
        return _undrawn(cell)
    return [_undrawn(part) for part in cell if not (isinstance(part, Phrase) and part.tone == "small")]


def _undrawn(part: Words) -> Words:
    """Words without their contender's line: notebooks have no charts with such lines."""
    return part if isinstance(part, str) else replace(part, look=None)


def _marks(table: Table) -> Markup:
    if not table.marks:
        return Markup("")
    return tag(
        "p", f"★ best{', ☆ the best mean, perhaps by chance' if 'unsure' in table.marks else ''}.", class_="soft"
    )


class _Page:
    """A page in the making, which collects the data of its script while blocks are added."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.cells: Cells | None = None
        self.buttons = False
        self.card = 0  # parts of the page up to the cells, after which their note is inserted

    def render(self, document: Document) -> str:
        """Formats the whole page."""
        remarks = document.remarks.brief
        body = [_header(document, remarks.warnings)]
        notes = [Paragraph(f"Note: {note}", "soft") for note in remarks.notes]
        for block in (*document.opening, *document.answer, *notes, *document.more):
            body.append(self.block(block))
            self.card = self.card or (len(body) if self.cells is not None else 0)
        styles = [tag("style", Markup(_asset("page.css")))]
        if "timeline" in self.data:
            styles.insert(0, tag("style", Markup(_asset("uplot/uPlot.min.css"))))
        program = tag("script", Markup(_asset("page.js")))
        if self.cells is not None:
            # details of cells get what the visible page leaves of the size
            size = sum(len(str(part).encode()) for part in (*body, *styles, program))
            self.data["cells"] = data = self.cells.data(SIZE - size)
            if data["note"]:
                body.insert(self.card, tag("p", data["note"], class_="soft"))
            body.append(tag("dialog", id="cell", aria_label="A case and a controller"))
        scripts = [*self._scripts(), program] if self.data or self.buttons else []
        policy = POLICY.format(_SCRIPTS if scripts else "")
        head = [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="generator", content="tidegate"),
            tag("title", document.title),
            tag("link", rel="icon", href="data:,"),
            *styles,
        ]
        content = tag("body", tag("main", *body), *scripts)
        return f"<!doctype html>\n{tag('html', tag('head', *head), content, lang='en')}\n"

    def _scripts(self) -> Iterator[Markup]:
        # a name may hold "</script>": no "<" may reach the parser of HTML
        data = json.dumps(self.data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        yield tag("script", Markup(data), type="application/json", id="data")
        if "timeline" in self.data:
            # its licence asks to go with every copy, and the page is one
            yield tag("script", Markup(f"/*\n{_asset('uplot/LICENSE')}\n*/\n{_asset('uplot/uPlot.iife.min.js')}"))

    def block(self, block: Block) -> Markup:
        """Formats a block as HTML."""
        match block:
            case Table():
                return self.table(block)
            case Cells():
                return self._cells(block)
            case Drawing():
                return self._drawing(block)
            case Timeline():
                return self._timeline(block)
            case Details():
                blocks = map(self.block, block.blocks)
                return tag("details", tag("summary", block.title), *blocks, open=block.open)
            case Beside():
                return tag("div", *map(self.block, block.blocks), class_=block.kind)
            case Section():
                head = [tag(f"h{block.level}", block.title)] if block.title else []
                return tag("section", *head, *map(self.block, block.blocks), id=block.id or None)
        return _leaf(block)

    # --- tables -----------------------------------------------------------------------------------

    def table(self, table: Table) -> Markup:
        """Formats a table; one with many columns is split into several, so that a printed page has all of it."""
        beside = len(table.columns) - table.stub
        parts = math.ceil(beside / table.abreast) if table.abreast else 1
        width = math.ceil(beside / parts) if beside else 1
        tables = []
        for start in range(table.stub, table.stub + parts * width, width):
            part = table.only([*range(table.stub), *range(start, min(start + width, len(table.columns)))])
            if parts > 1:
                part = replace(part, rows=[row for row in part.rows if not _is_empty(row, table.stub)])
            tables.append(tag("div", self.one_table(part), class_="scroll"))
        return join([*tables, _marks(table)])

    def one_table(self, table: Table) -> Markup:
        heads = [tag("th", *_head(column), scope="col", class_="text" if column.left else None,
                     title=column.title or (column.metric.definition if column.metric else None))
                 for column in table.columns]  # fmt: skip
        rows = table.rows[: table.most or None]
        lines = [line for row in rows for line in self._row(table, row)]
        if len(rows) < len(table.rows):
            lines.append(tag("tr", tag("td", f"and {len(table.rows) - len(rows)} more", colspan=len(heads))))
        head = [tag("thead", tag("tr", *heads))] if any(column.head for column in table.columns) else []
        # a single column needs no other place in a narrow window
        alone = " alone" if table.kind == "headline" and len(table.columns) == 2 else ""  # noqa: PLR2004 - with names
        return tag("table", *head, tag("tbody", *lines), class_=f"{table.kind}{alone}" or None)

    def _row(self, table: Table, row: Row) -> Iterator[Markup]:
        if row.kind == "group":
            yield tag("tr", tag("th", self.cell(row.cells[0], None), colspan=len(table.columns), scope="rowgroup"))
            return
        first: Content = self.cell(row.cells[0], None)
        if row.metric is not None:
            name = row.cells[0]
            first = self.cell(capitalised(name) if isinstance(name, str) else name, None)
            first = tag("span", first, class_="tip", title=row.metric.definition, tabindex=0)
        cells = [tag("th", first, scope="row", title=_title(row.cells[0]))]
        for column, cell in zip(table.columns[1:], row.cells[1:], strict=False):
            # on narrow screens the cells of such tables are stacked and repeat their column's head
            head = plain_text(column.head) or None if table.kind in {"prose", "headline"} else None
            look = column.head.look if isinstance(column.head, Phrase) and head else None
            cells.append(
                tag("th" if row.kind == "sum" else "td", self.cell(cell, column), class_=_class(cell, column),
                    title=_title(cell), style=_style(cell) or svg.hues(look) if look else _style(cell), data_head=head)
            )  # fmt: skip
        missing = len(table.columns) - len(row.cells)
        if missing:
            cells[-1] = tag("td", self.cell(row.cells[-1], None), colspan=missing + 1, class_="words")
        yield tag("tr", *cells, class_=row.kind or None)
        if row.below:
            yield tag("tr", tag("td", row.below, colspan=len(table.columns), class_="why"))

    def cell(self, cell: Cell, column: Column | None) -> Markup:
        """Formats the content of a cell."""
        match cell:
            case Number():
                return _number(cell, units=column is None or column.metric is None)
            case Judged():
                lines = join([tag("span", words(line)) for line in cell.words])
                return lines if cell.opens is None else tag("button", lines, data_at=",".join(map(str, cell.opens)))
            case Items():
                return self.block(cell)
            case Share():
                bar = tag("div", style=f"width:{100 * cell.part:.1f}%", class_="bar-of")
                return tag("div", tag("span", str(cell)), tag("div", bar, class_="track"), class_="share")
            case int():
                return text(cell)
            case str() | Phrase() | _:
                return words(cell)

    def _cells(self, block: Cells) -> Markup:
        """Formats a table twice: for the screen, where cells open, and for paper, split if it is wide."""
        self.cells = block
        table = block.table
        closed = [
            replace(row, cells=[replace(c, opens=None) if isinstance(c, Judged) else c for c in row.cells])
            for row in table.rows
        ]
        kind: Literal["many", ""] = "many" if len(table.columns) > _WIDE else ""
        screen = tag("div", self.one_table(replace(table, kind=kind)), class_="scroll card screen", tabindex=0,
                     role="region", aria_label="Scorecard")  # fmt: skip
        paper = tag("div", self.table(replace(table, rows=closed)), class_="card paper")
        otherwise = tag("noscript", tag("p", block.closed))
        return join([tag("p", block.how, class_="screen"), screen, paper, otherwise])

    # --- charts -----------------------------------------------------------------------------------

    def _drawing(self, block: Drawing) -> Markup:
        chart = block.chart
        title = [tag("h3", block.title)] if block.title else []
        caption = [tag("figcaption", block.caption)] if block.caption else []
        drawn = svg.drawing(chart)
        if chart.legend:
            self.buttons = True
            names = {trail.name: words(Phrase(trail.name, "label", look=trail.look)) for trail in chart.trails}
            drawn = tag("div", drawn, svg.legend(chart.trails, names), class_="beside")
        return tag("figure", *title, drawn, *caption)

    def _timeline(self, block: Timeline) -> Markup:
        self.data["timeline"] = block.data
        bar: list[Content] = []
        if len(block.seeds) > 1:
            options = [tag("option", str(seed), value=i) for i, seed in enumerate(block.seeds)]
            bar.append(tag("label", "Seed ", tag("select", *options, id="seed")))
        bar.append(tag("label", tag("input", type="checkbox", id="log"), " logarithmic delay"))
        bar.append(tag("button", "Whole run", id="reset", type="button", disabled=True))
        bar.append(tag("span", "Drag over a chart to zoom; all follow. Double-click for the whole run.", class_="soft"))
        rows: list[Content] = []
        for key, title, caption in block.quantities:
            figures = []
            for i, (label, look) in enumerate(block.columns):
                chart = tag("div", class_="chart", data_chart=key, data_column=i, role="img",
                            aria_label=f"{title}, {label}")  # fmt: skip
                name = [tag("p", label, class_="name", style=svg.hues(look))] if look else []
                figures.append(tag("figure", *name, chart))
            rows.append(tag("section", tag("h3", title, title=caption), tag("div", *figures, class_="columns")))
        noscript = "The charts need JavaScript (all of it is inside this file); the tables do not."
        return join([tag("noscript", tag("p", noscript)), tag("div", *bar, class_="bar"), tag("div", *rows)])


def _leaf(block: Block) -> Markup:
    """Formats a block without blocks inside and without data for the page's script."""
    match block:
        case Paragraph():
            return Markup("") if block.rest else tag("p", words(block.words), class_=block.tone or None)
        case Items():
            return tag("ul", *(tag("li", words(item)) for item in block.items))
        case Pairs():
            return _pairs(block.pairs)
        case Code():
            return tag("pre", tag("code", block.text))
        case Picture():
            return _picture(block)
        case Distribution():
            chart = tag("div", class_="chart", id="cdf")
            return tag("figure", tag("h3", block.title), chart, tag("figcaption", block.caption))
    raise TypeError(type(block).__name__)


def _pairs(pairs: Sequence[tuple[Sentence, Sentence]]) -> Markup:
    parts = (part for name, says in pairs for part in (tag("dt", words(name)), tag("dd", words(says))))
    return tag("dl", *parts)


def _header(document: Document, warnings: Sequence[str]) -> Markup:
    parts = [tag("h1", document.title)]
    parts += [tag("p", document.about)] if document.about else []
    parts += [tag("p", " · ".join(document.facts), class_="soft")] if document.facts else []
    parts += [tag("p", tag("strong", name), f": {why}") for name, why in document.failures]
    parts += [tag("p", tag("strong", "Warning"), f": {warning}") for warning in warnings]
    if document.settings:
        parts.append(_pairs(document.settings))
    return tag("header", *parts)


def _picture(block: Picture) -> Markup:
    source = f"data:image/{block.kind};base64,{base64.b64encode(block.data).decode()}"
    caption = [tag("figcaption", words(block.caption))] if block.caption else []
    return tag("figure", tag("img", src=source, alt=block.says), *caption, class_="picture")


def _head(column: Column) -> Sequence[Content]:
    # keys of settings are written as they are typed
    head = capitalised(column.head) if isinstance(column.head, str) and "." not in column.head else column.head
    return words(head), column.unit


def _number(number: Number, *, units: bool) -> Markup:
    metric, value = number.metric, number.value
    if number.replacement:
        return text(number.replacement)
    digits = metric.digits_of(value)
    mean = value.mean if value.count else None
    parts: list[Content] = [quantity(metric, mean, unit=units, signed=number.signed, digits=digits)]
    if value.half is not None:
        parts.append(tag("span", f" ± {metric.show(value.half, digits=digits)}", class_="interval"))
    return join([text(part) for part in parts])


def _class(cell: Cell, column: Column) -> str | None:
    names = ["text"] if column.left else []
    if isinstance(cell, Number) and cell.mark:
        names.append("best unsure" if cell.mark == "unsure" else cell.mark)
    if isinstance(cell, Phrase) and cell.tone == "words":
        names.append("words")
    if isinstance(cell, Judged):
        names += [cell.tone] if cell.tone else []
    return " ".join(names) or None


def _is_empty(row: Row, stub: int) -> bool:
    """Whether a row has nothing but missing numbers."""
    cells = row.cells[stub:]
    return bool(cells) and all(
        isinstance(cell, Number) and not cell.value.count and not cell.replacement for cell in cells
    )


def _title(cell: Cell) -> str | None:
    return cell.title or None if isinstance(cell, Number | Judged) else None


def _style(cell: Cell) -> str | None:
    if not isinstance(cell, Number) or cell.shade is None:
        return None
    return f"background:{cell.shade[0]};color:{cell.shade[1]}"


def _asset(name: str) -> str:
    return resources.files("tidegate.output").joinpath("assets", name).read_text(encoding="utf-8")
