"""A document as text on the terminal, and tables and progress there, drawn by rich."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal

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
    plain,
)
from tidegate.output.progress import Progress
from tidegate.output.progress import shown as bar

_PIPE_WIDTH = 200  # columns where the output is no terminal
_WIDEST = 10_000  # columns that no table has


def console() -> Console:
    """For results."""
    return _console(None if sys.stdout.isatty() else _PIPE_WIDTH)


def _console(width: int | None) -> Console:
    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_rows(
    heads: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    words: Collection[int] = (),
    folded: Collection[int] = (),
    first: int = 1,
) -> None:
    """Prints a table with all its numbers: on a terminal that is too narrow, its columns are told in several parts.

    Args:
        heads: The heads of its columns.
        rows: Its cells; a row with fewer of them than there are heads ends early.
        words: Which columns stand at the left, as the first one does.
        folded: Which columns are broken into lines where there is no room; with such there is one part.
        first: How many columns say what a row is, and are in each part.
    """
    every = list(rows)

    def drawn(columns: Iterable[int]) -> RichTable:
        table = RichTable(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        for at in columns:
            justify: Literal["left", "right"] = "left" if not at or at in words else "right"
            overflow: Literal["fold", "ellipsis"] = "fold" if at in folded else "ellipsis"
            table.add_column(heads[at], justify=justify, no_wrap=at not in folded, overflow=overflow)
        for row in every:
            table.add_row(*(row[at] for at in columns if at < len(row)))
        return table

    to, stub = console(), [*range(first)]
    parts = [[*range(len(heads))]]
    if sys.stdout.isatty() and not folded:
        parts = [[*stub]]
        for at in range(first, len(heads)):
            if parts[-1] != stub and _width(drawn([*parts[-1], at])) > to.width:
                parts.append([*stub])
            parts[-1].append(at)
    tables = [drawn(part) for part in parts]
    if not folded:
        to = _console(max(to.width, *map(_width, tables)))
    for number, table in enumerate(tables):
        if number:
            to.print()
        to.print(table)


def _width(table: RichTable) -> int:
    return _console(_WIDEST).measure(table).maximum


def progress(what: str, *, shown: bool) -> AbstractContextManager[Progress | None]:
    """A bar with the time left, for work of more than a second on a terminal."""
    return bar(shown, what)


def broken(head: str) -> str:
    """A head of a column on several lines: a column is no wider than its numbers then."""
    return head.replace(", ", ",\n").replace(" (", "\n(")


# --- documents ------------------------------------------------------------------------------------

_WORDS = 24
"""Letters of a verdict that is not broken into lines: such as `no: delay at the sender`."""
_BEST = {"best": " *", "unsure": " *?"}


def show(document: Document, *, detail: bool = False, hint: str = "") -> None:
    """Prints the answer of a document, without its title.

    Args:
        document: The document.
        detail: Whether tables have all rows and columns.
        hint: How a person gets to see what is left out, such as `--all shows more`.
    """
    for at, block in enumerate(brief(document.answer, detail=detail)):
        if at:
            console().print()
        _print(block, detail=detail, hint=hint)


def marks(document: Document) -> str:
    """What the marks of numbers mean, where there are any."""
    given = {mark for block in brief(document.answer) if isinstance(block, Table) for mark in block.marks}
    if not given:
        return ""
    return "* best" + (", *? best mean, perhaps by luck" if "unsure" in given else "")


def _print(block: Block, *, detail: bool, hint: str) -> None:
    to = console()
    match block:
        case Table():
            _print_table(replace(block, most=0) if detail else block.brief)
        case Paragraph():
            to.print(f"{plain(block.words)}{f'; {hint}' if block.rest and hint else ''}", soft_wrap=True)
        case Items():
            to.print("\n".join(map(plain, block.items)), soft_wrap=True)
        case Pairs():
            to.print("\n".join(f"{plain(name)}: {plain(says)}" for name, says in block.pairs), soft_wrap=True)
        case Code():
            to.print(block.text, soft_wrap=True)


def _print_table(table: Table) -> None:
    heads = [f"{plain(column.head)}{column.unit}" for column in table.columns]
    heads += ["unit"] if table.has_units else []
    shown = table.rows[: table.most or None]
    lines: list[list[str | Text]] = []
    for row in shown:
        unit = [row.metric.unit if row.metric else ""] if table.has_units else []
        lines.append([*(_cell(cell, row) for cell in row.cells), *unit])
    if len(shown) < len(table.rows):
        lines.append([f"and {len(table.rows) - len(shown)} more"])
    if table.turned and len(table.rows) <= table.turned:
        # a few stand side by side, as controllers do in a comparison; many are a line each
        turned, *lines = [list(line) for line in zip(*[heads, *lines], strict=True)]
        print_rows([*map(str, turned)], lines, first=table.stub)
        return
    words = {at for at, column in enumerate(table.columns) if column.left}
    heads = [*map(broken, heads)] if table.kind == "numbers" else heads
    print_rows(heads, lines, words=words, folded=words if table.kind == "prose" else (), first=table.stub)


def _cell(cell: Cell, row: Row) -> str | Text:
    match cell:
        case Number():
            text = cell.instead or cell.metric.show_interval(cell.value, signed=cell.signed)
            if row.metric is None:
                return Text(text, "bold") if cell.mark == "sure" else text
            # room for the mark in every cell, so that numbers stand below each other
            style = "bold green" if cell.mark == "best" else "dim" if cell.mark == "out" else ""
            return Text(f"{text}{_BEST.get(cell.mark, ''):<3}", style)
        case Judged():
            return cell.brief or " ".join(map(plain, cell.words))
        case Items():
            return "; ".join(map(plain, cell.items))
        case int() | Share():
            return str(cell)
    text = plain(cell)
    if row.kind != "words" or row.metric is None:
        return text
    if len(text) > _WORDS:
        text = text.replace("; ", ";\n").replace(", else ", ",\nelse ")
    return "\n".join(f"{line}   " for line in text.splitlines())
