"""A document as Markdown, for repositories, issues and mails, which show no page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tidegate.output.document import (
    AGAIN,
    Beside,
    Block,
    Cell,
    Cells,
    Code,
    Details,
    Document,
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
    is_empty,
)
from tidegate.wording import printable


def markdown(document: Document, *, whole: bool = True, detail: bool = False, again: bool = True) -> str:
    """Formats a document as Markdown.

    Args:
        document: The document.
        whole: Whether to include all texts and tables; else only the answer and the warnings, without a title.
        detail: Whether tables have all rows and columns where `whole` is false.
        again: Whether a whole document says how to reproduce the result.
    """
    if not whole:
        parts = [*_blocks(document.answer, whole=detail, titles=False)]
        return (
            "\n\n".join([*parts, *(f"{kind}: {escape(text)}" for kind, text in document.remarks.brief.labelled)]) + "\n"
        )
    parts = [f"# {escape(document.title)}", escape(document.about), escape(" · ".join(document.facts))]
    parts += [f"**{escape(name)}**: {escape(why)}" for name, why in document.failures]
    remarks = document.remarks.brief
    parts += [f"**Warning**: {escape(warning)}" for warning in remarks.warnings]
    if document.settings:
        parts.append("\n".join(f"- {escape(name)}: {escape(value)}" for name, value in document.settings))
    more = [block for block in document.more if again or not (isinstance(block, Section) and block.id == AGAIN)]
    parts += _blocks((*document.opening, *document.answer), whole=True)
    parts += [f"**Note**: {escape(note)}" for note in remarks.notes]
    parts += _blocks(more, whole=True)
    return "\n\n".join(part for part in parts if part) + "\n"


def _blocks(blocks: Iterable[Block], *, whole: bool, titles: bool = True) -> Iterator[str]:
    for block in blocks:
        match block:
            case Section(detail=True) | Details() if not whole:
                pass
            case Details(bulk=True):
                pass
            case Section() | Details():
                inside = list(_blocks(block.blocks, whole=whole, titles=titles))
                if inside and block.title and titles:
                    yield f"{'#' * (block.level if isinstance(block, Section) else 3)} {escape(block.title)}"
                yield from inside
            case Beside():
                yield from _blocks(block.blocks, whole=whole, titles=titles)
            case _:
                yield from _leaf(block, whole=whole)


def _leaf(block: Block, *, whole: bool) -> Iterator[str]:
    match block:
        case Cells():
            yield table(block.table, whole=whole)
        case Table() if whole or not is_empty(block):
            yield table(block, whole=whole)
        case Paragraph() if not (block.rest if whole else block.detail):
            yield sentence(block.words)
        case Items():
            yield "\n".join(f"- {sentence(item)}" for item in block.items)
        case Pairs():
            yield "\n".join(f"- {sentence(name)}: {sentence(says)}" for name, says in block.pairs)
        case Code():
            yield f"```\n{block.text.strip()}\n```"
        case Picture() if block.file:
            yield f"![{escape(block.says)}]({block.file})"
            yield sentence(block.caption)


def table(table: Table, *, whole: bool = True) -> str:
    """Formats a table; one whose rows have units gets a column of them."""
    table = table if whole else table.brief
    heads = [f"{sentence(column.head)}{column.unit}" for column in table.columns]
    signs = ["---" if not index or column.left else "---:" for index, column in enumerate(table.columns)]
    if table.has_units:
        heads.insert(1, "unit")
        signs.insert(1, "---")
    below = any(row.below for row in table.rows)
    if below:
        heads.append(escape(table.below))
        signs.append("---")
    lines = [pipes(heads), pipes(signs)]
    for row in table.rows:
        cells = [_cell(cell, row) for cell in row.cells] + [""] * (len(table.columns) - len(row.cells))
        if table.has_units:
            cells.insert(1, row.metric.unit if row.metric else "")
        if below:
            cells.append(escape(row.below))
        lines.append(pipes(cells))
    if table.marks:
        lines += ["", f"Bold: best{', with ? the best mean, perhaps by chance' if 'unsure' in table.marks else ''}."]
    return "\n".join(lines)


def _cell(cell: Cell, row: Row) -> str:
    match cell:
        case Number():
            text = escape(cell.replacement) or cell.metric.show_interval(cell.value, signed=cell.signed)
            bold = cell.mark in {"best", "unsure", "sure"}
            return f"**{text}**{' ?' if cell.mark == 'unsure' else ''}" if bold else text
        case Judged():
            return " ".join(map(sentence, cell.words))
        case Items():
            return "; ".join(map(sentence, cell.items))
        case int() | Share():
            return str(cell)
    text = sentence(cell)
    return f"**{text}**" if row.kind in {"group", "first", "sum"} and text else text


def sentence(words: Sentence) -> str:
    """Formats words as Markdown, escaped so that characters of markup stay visible."""
    if isinstance(words, str):
        return escape(words)
    if not isinstance(words, Phrase):
        return "".join(map(sentence, words))
    match words.tone:
        case "code":
            return f"`{words.text}`"
        case "strong" | "bad":
            return f"**{escape(words.text)}**"
        case "small":
            return ""
    return escape(words.text)


def escape(text: str) -> str:
    """Escapes text for Markdown, in one line; control characters are shown, since terminals print Markdown, too."""
    text = printable(text)
    for mark, escaped in (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), ("*", "\\*"), ("`", "\\`")):
        text = text.replace(mark, escaped)
    return re.sub(r"\s+", " ", text)


def pipes(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
