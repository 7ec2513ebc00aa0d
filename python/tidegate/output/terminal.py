"""Documents, tables and progress on the terminal, drawn by rich."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tidegate.output.document import (
    Block,
    Cell,
    Code,
    Document,
    Items,
    Judged,
    Number,
    Pairs,
    Paragraph,
    Row,
    Share,
    Table,
    brief,
    plain_text,
)
from tidegate.output.progress import Progress, progress_bar
from tidegate.wording import one_line, printable

_PIPE_WIDTH = 200  # columns, where the output is no terminal
_WIDEST = 10_000  # columns, more than any table has


def console() -> Console:
    """A console for results, on standard output."""
    return _console(None if sys.stdout.isatty() else _PIPE_WIDTH)


class _Terminal(Console):
    """A console that shows control characters as escapes: names in a result are a stranger's text."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Text as rich draws it."""
        return super().render_str(printable(text), **options)


def _console(width: int | None) -> Console:
    return _Terminal(width=width, highlight=False, markup=False, emoji=False)


def print_rows(
    headers: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    text_columns: Collection[int] = (),
    folded: Collection[int] = (),
    key_columns: int = 1,
) -> None:
    """Prints a table without dropping columns; on a narrow terminal it is split into several tables.

    Args:
        headers: Column headers.
        rows: The cells of each row; a row may have fewer cells than there are headers.
        text_columns: Indices of left-aligned columns, in addition to the first column.
        folded: Indices of columns that may wrap; if there are any, the table is never split.
        key_columns: The number of columns that identify a row and are repeated in each part.
    """
    listed = list(rows)

    def drawn(columns: Iterable[int]) -> RichTable:
        table = RichTable(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        for column in columns:
            justify: Literal["left", "right"] = "left" if not column or column in text_columns else "right"
            overflow: Literal["fold", "ellipsis"] = "fold" if column in folded else "ellipsis"
            table.add_column(headers[column], justify=justify, no_wrap=column not in folded, overflow=overflow)
        for row in listed:
            table.add_row(*(row[column] for column in columns if column < len(row)))
        return table

    target, stub = console(), [*range(key_columns)]
    parts = [[*range(len(headers))]]
    if sys.stdout.isatty() and not folded:
        parts = [[*stub]]
        for column in range(key_columns, len(headers)):
            if parts[-1] != stub and _width(drawn([*parts[-1], column])) > target.width:
                parts.append([*stub])
            parts[-1].append(column)
    tables = [drawn(part) for part in parts]
    if not folded:
        target = _console(max(target.width, *map(_width, tables)))
    for number, table in enumerate(tables):
        if number:
            target.print()
        target.print(table)


def _width(table: RichTable) -> int:
    return _console(_WIDEST).measure(table).maximum


def progress(label: str, *, visible: bool) -> AbstractContextManager[Progress | None]:
    """A bar with the time left, for work of more than a second on a terminal."""
    return progress_bar(visible, label)


def broken(head: str) -> str:
    """A head of a column, broken into lines so that the column is no wider than its numbers."""
    return head.replace(", ", ",\n").replace(" (", "\n(")


# --- documents ------------------------------------------------------------------------------------

_WORDS = 24
"""The longest verdict (letters) that is not broken into lines, such as `no: delay at the sender`."""
_BEST = {"best": " *", "unsure": " *?"}


def show(document: Document, *, detail: bool = False, hint: str = "") -> None:
    """Prints the answer of a document, without its title.

    Args:
        document: The document.
        detail: Whether tables have all rows and columns.
        hint: A hint on how to see what is left out, such as `--all shows more`.
    """
    for index, block in enumerate(brief(document.answer, detail=detail)):
        if index:
            console().print()
        _print(block, detail=detail, hint=hint)


def marks(document: Document) -> str:
    """The explanation of the marks of numbers; empty where no number has one."""
    found_marks = {mark for block in brief(document.answer) if isinstance(block, Table) for mark in block.marks}
    if not found_marks:
        return ""
    return "* best" + (", *? best mean, perhaps by chance" if "unsure" in found_marks else "")


def _print(block: Block, *, detail: bool, hint: str) -> None:
    to = console()
    match block:
        case Table():
            _print_table(replace(block, most=0) if detail else block.brief)
        case Paragraph():
            to.print(f"{plain_text(block.words)}{f'; {hint}' if block.rest and hint else ''}", soft_wrap=True)
        case Items():
            to.print("\n".join(one_line(plain_text(item)) for item in block.items), soft_wrap=True)
        case Pairs():
            to.print(
                "\n".join(f"{one_line(plain_text(name))}: {plain_text(says)}" for name, says in block.pairs),
                soft_wrap=True,
            )
        case Code():
            to.print(block.text, soft_wrap=True)


def _print_table(table: Table) -> None:
    headers = [f"{one_line(plain_text(column.head))}{column.unit}" for column in table.columns]
    headers += ["unit"] if table.has_units else []
    kept_rows = table.rows[: table.most or None]
    lines: list[list[str | Text]] = []
    for row in kept_rows:
        unit = [row.metric.unit if row.metric else ""] if table.has_units else []
        lines.append([*(_cell(cell, row) for cell in row.cells), *unit])
    if len(kept_rows) < len(table.rows):
        lines.append([f"and {len(table.rows) - len(kept_rows)} more"])
    if table.turned and len(table.rows) <= table.turned:
        # a few rows become columns, like the controllers of a comparison; many stay a line each
        turned, *lines = [list(line) for line in zip(*[headers, *lines], strict=True)]
        print_rows([*map(str, turned)], lines, key_columns=table.stub)
        return
    texts = {index for index, column in enumerate(table.columns) if column.left}
    headers = [*map(broken, headers)] if table.kind == "numbers" else headers
    print_rows(
        headers, lines, text_columns=texts, folded=texts if table.kind == "prose" else (), key_columns=table.stub
    )


def _cell(cell: Cell, row: Row) -> str | Text:
    match cell:
        case Number():
            text = cell.replacement or cell.metric.show_interval(cell.value, signed=cell.signed)
            if row.metric is None:
                return Text(printable(text), "bold") if cell.mark == "sure" else text
            # every cell has room for a mark, so that numbers are aligned
            style = "bold green" if cell.mark == "best" else "dim" if cell.mark == "out" else ""
            return Text(f"{printable(text)}{_BEST.get(cell.mark, ''):<3}", style)
        case Judged():
            return one_line(cell.brief or " ".join(map(plain_text, cell.words)))
        case Items():
            return one_line("; ".join(map(plain_text, cell.items)))
        case int() | Share():
            return str(cell)
    text = one_line(plain_text(cell))
    if row.kind != "words" or row.metric is None:
        return text
    if len(text) > _WORDS:
        text = text.replace("; ", ";\n").replace(", else ", ",\nelse ")
    return "\n".join(f"{line}   " for line in text.splitlines())
