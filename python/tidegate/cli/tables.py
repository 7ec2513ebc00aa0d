"""Tables and progress on the terminal, drawn by rich."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

from tidegate.runs.progress import shown as bar

_PIPE_WIDTH = 200  # columns where the output is no terminal
_WIDEST = 10_000  # columns that no table has


def console() -> Console:
    """For results."""
    return _console(None if sys.stdout.isatty() else _PIPE_WIDTH)


def _console(width: int | None) -> Console:
    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_table(table: Table, first: int = 1) -> None:
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


def _width(table: Table) -> int:
    return _console(_WIDEST).measure(table).maximum


def _split(table: Table, width: int, first: int) -> list[Table]:
    """A table's columns in parts that fit, the first ones in each of them."""
    parts: list[Table] = []
    said, chosen = [*range(first)], list[int]()
    for number in range(first, len(table.columns)):
        if chosen and _width(_part(table, [*said, *chosen, number])) > width:
            parts.append(_part(table, [*said, *chosen]))
            chosen = []
        chosen.append(number)
    return [*parts, _part(table, [*said, *chosen])]


def _part(table: Table, columns: Sequence[int]) -> Table:
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


def plain_table(*heads: str) -> Table:
    """A table without frills: the first column left, the others right."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", no_wrap=True)
    return table


def broken(head: str) -> str:
    """A head of a column on several lines: a column is no wider than its numbers then."""
    return head.replace(", ", ",\n").replace(" (", "\n(")
