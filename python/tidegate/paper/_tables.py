"""Tables as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from tidegate.paper.measures import CellValue, Measure, Table
from tidegate.results.stats import Interval
from tidegate.show.table import pipes


def words(cell: CellValue) -> str:
    """A cell for people.

    >>> words(Interval(2.0, 0.25, 5)), words(1234567), words(0.98765), words(None)
    ('2.00 ± 0.25', '1234567', '0.988', '')
    """
    match cell:
        case None:
            return ""
        case str():
            return cell
        case Measure():
            return cell.number()
        case Interval():
            return Measure(cell).number()
        case bool():
            return "yes" if cell else "no"
    return Measure.exact(float(cell)).number()


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; what is markup in a cell is shown as it is."""
    lines = [pipes(map(plain, heads)), pipes(["---"] * len(heads))]
    lines += [pipes(map(plain, row)) for row in rows]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text in Markdown as it is, in one line."""
    for mark, shown in (("\\", "\\\\"), ("&", "&amp;"), ("<", "&lt;"), ("*", "\\*"), ("`", "\\`")):
        text = text.replace(mark, shown)
    return " ".join(text.split())


def to_markdown(table: Table) -> str:
    """The table under its title."""
    return f"# {plain(table.title)}\n\n" + markdown(
        table.columns, [[words(cell) for cell in row] for row in table.rows]
    )


def to_csv(table: Table) -> str:
    """The table with all digits; a column of intervals has a second one with half their width."""
    wide = [any(isinstance(row[at], Interval | Measure) for row in table.rows) for at in range(len(table.columns))]
    heads: list[str] = []
    for head, two in zip(table.columns, wide, strict=True):
        heads += [head, f"{head}: half_interval_95"] if two else [head]
    rows: list[list[str]] = []
    for row in table.rows:
        cells: list[str] = []
        for cell, two in zip(row, wide, strict=True):
            value = cell.value if isinstance(cell, Measure) else cell
            if isinstance(value, Interval):
                cells += [repr(value.mean) if value.count else "", "" if value.half is None else repr(value.half)]
            else:
                text = "" if value is None else value if isinstance(value, str) else str(value)
                cells += [text, ""] if two else [text]
        rows.append(cells)
    return plain_csv(heads, rows)


def plain_csv(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines of CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return out.getvalue()
