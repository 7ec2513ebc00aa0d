"""A document as text on the terminal, and tables and progress there, drawn by rich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tidegate.output.document import (
    Beside,
    Block,
    Cell,
    Cells,
    Code,
    Document,
    Items,
    Judged,
    Number,
    Pairs,
    Paragraph,
    Row,
    Section,
    Share,
    Table,
    is_empty,
    plain,
)
from tidegate.output.progress import shown as bar

_PIPE_WIDTH = 200  # columns where the output is no terminal
_WIDEST = 10_000  # columns that no table has


def console() -> Console:
    """For results."""
    return _console(None if sys.stdout.isatty() else _PIPE_WIDTH)


def _console(width: int | None) -> Console:
    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_table(table: RichTable, first: int = 1) -> None:
    """A table with all its numbers: on a terminal that is too narrow, its columns are told in several parts.

    Args:
        table: The table.
        first: How many of its columns say what a line is, and are in each part.
    """
    to = console()
    if all(column.no_wrap for column in table.columns):
        parts = _split(table, to.width, first) if sys.stdout.isatty() else [table]
        to = _console(max(to.width, *(_width(part) for part in parts)))
        for number, part in enumerate(parts):
            if number:
                to.print()
            to.print(part)
        return
    to.print(table)


def _width(table: RichTable) -> int:
    return _console(_WIDEST).measure(table).maximum


def _split(table: RichTable, width: int, first: int) -> list[RichTable]:
    """A table's columns in parts that fit, the first ones in each of them."""
    parts: list[RichTable] = []
    said, chosen = [*range(first)], list[int]()
    for number in range(first, len(table.columns)):
        if chosen and _width(_part(table, [*said, *chosen, number])) > width:
            parts.append(_part(table, [*said, *chosen]))
            chosen = []
        chosen.append(number)
    return [*parts, _part(table, [*said, *chosen])]


def _part(table: RichTable, columns: Sequence[int]) -> RichTable:
    cells = [list(column.cells) for column in table.columns]
    part = plain_table(*(str(table.columns[number].header) for number in columns))
    for place, number in enumerate(columns):
        part.columns[place].justify = table.columns[number].justify
    for row in range(table.row_count):
        part.add_row(*(cells[number][row] for number in columns))
    return part


@contextmanager
def progress(what: str, *, shown: bool) -> Iterator[Any]:
    """A bar with the time left, for work of more than a second on a terminal."""
    with bar(shown, what) as tell:
        yield tell


def plain_table(*heads: str) -> RichTable:
    """A table without frills: the first column left, the others right."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", no_wrap=True)
    return table


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
    for at, block in enumerate(_flat(document.answer, detail=detail)):
        if at:
            console().print()
        _print(block, detail=detail, hint=hint)


def marks(document: Document) -> str:
    """What the marks of numbers mean, where there are any."""
    given = {mark for block in _flat(document.answer) if isinstance(block, Table) for mark in block.marks}
    if not given:
        return ""
    return "* best" + (", *? best mean, perhaps by luck" if "unsure" in given else "")


def _flat(blocks: Iterable[Block], *, detail: bool = False) -> Iterator[Block]:
    """Blocks that a terminal shows, one after the other."""
    for block in blocks:
        match block:
            case Section() if not block.detail or detail:
                yield from _flat(block.blocks, detail=detail)
            case Beside():
                yield from _flat(block.blocks, detail=detail)
            case Cells():
                yield block.table
            case Table() if detail or not is_empty(block):
                yield block
            case Paragraph() if not (block.rest if detail else block.detail):
                yield block
            case Items() | Pairs() | Code():
                yield block


def _print(block: Block, *, detail: bool, hint: str) -> None:
    to = console()
    match block:
        case Table():
            print_table(_table(replace(block, most=0) if detail else block.brief), block.stub)
        case Paragraph():
            to.print(f"{plain(block.words)}{f'; {hint}' if block.rest and hint else ''}", soft_wrap=True)
        case Items():
            to.print("\n".join(map(plain, block.items)), soft_wrap=True)
        case Pairs():
            to.print("\n".join(f"{plain(name)}: {plain(says)}" for name, says in block.pairs), soft_wrap=True)
        case Code():
            to.print(block.text, soft_wrap=True)


def _table(table: Table) -> RichTable:
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
        heads, *lines = [list(line) for line in zip(*[heads, *lines], strict=True)]
        made = plain_table(*map(str, heads))
    else:
        made = plain_table(*map(broken if table.kind == "numbers" else str, heads))
        for column, drawn in zip(table.columns, made.columns, strict=False):
            if column.left:
                drawn.justify = "left"
                if table.kind == "prose":
                    drawn.no_wrap, drawn.overflow = False, "fold"
    for line in lines:
        made.add_row(*line)
    return made


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
