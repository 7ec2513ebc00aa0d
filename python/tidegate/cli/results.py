"""The command results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli.options import AsJson
from tidegate.cli.terminal import print_json
from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate._core import Table
    from tidegate.results.metrics import Metric


def add_to(app: typer.Typer) -> None:
    """Puts the command on the command line."""
    app.command()(results)


def results(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `sweep` or `suite run` wrote.")],
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Only these runs: 'controller == \"gcc\" and loss > 2%'.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="These columns; what runs are of, and headline metrics, by default."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Runs that are printed at most.")] = 20,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all of them as CSV, and nothing else.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the runs of a sweep or a suite, those that a condition holds for.

    A condition compares columns with values: == != < <= > >=, in ["a", "b"], and, or, not. Metrics go by their names,
    or without the unit (delay_p95, rate, loss), with amounts as elsewhere (100ms, 2%). Settings go by their keys.

    The folder's runs.parquet is a Parquet data set, which polars, duckdb, pandas and pyarrow read without tidegate.

    Example: tidegate results out/sweep --where 'controller == "gcc" and delay_p95 > 100ms'
    """
    from tidegate.query import Where, column_of
    from tidegate.results import dataset

    if as_csv and as_json:
        raise InputError("--csv and --json: give one of them")
    every = dataset.tables(folder)
    controller, first = next(every)
    kinds: dict[str, str] = {
        dataset.CONTROLLER: "U",
        **{name: first[:1].to_numpy(name).dtype.kind for name in first.columns},
    }
    about = _catalogue()
    condition = None if where is None else Where(where, kinds, about)
    if columns is not None:
        shown = [column_of(one.strip(), kinds, about) for one in columns.split(",")]
    else:
        shown = _default(kinds, first)
    if columns is None and condition is not None:
        shown = list(dict.fromkeys([*shown, *condition.names]))
    found = _Found(shown, condition, as_csv, None if as_csv else limit)
    found.take(controller, first)
    for name, table in every:
        needed = {*shown, *(condition.names if condition is not None else ())} - {"controller"}
        if missing := sorted(needed - {*table.columns}):
            raise InputError(
                f"{folder}: a file of it has no {missing[0]}, as others have; the same sweep again writes it anew"
            )
        found.take(name, table)
    if as_csv:
        return
    if as_json:
        print_json({"runs": found.total, "found": found.count, "rows": found.rows})
        return
    _print(found, about, limit)


def _catalogue() -> dict[str, Metric]:
    from tidegate.results.metrics import METRICS
    from tidegate.suite import numbers

    return {**METRICS, **{name: numbers.about(name) for name in numbers.known()}}


def _default(kinds: dict[str, str], first: Table) -> list[str]:
    """What a run is of, and what comparisons show of it."""
    from tidegate.results.metrics import HEADLINE

    metrics = _catalogue()
    settings = [name for name in first.columns if name not in metrics and name not in {"key", "digest", "seed"}]
    return ["controller", *settings, "seed", *(name for name in HEADLINE if name in kinds)]


class _Found:
    """The rows that are wanted: counted, and as many kept as are printed."""

    def __init__(self, shown: Sequence[str], where: Any, as_csv: bool, limit: int | None) -> None:
        self.shown, self._where, self._limit = list(shown), where, limit
        self.rows: list[dict[str, Any]] = []
        self.count = self.total = 0
        self._writer = None
        if as_csv:
            import csv
            import sys

            self._writer = csv.writer(sys.stdout, lineterminator="\n")
            self._writer.writerow(self.shown)

    def take(self, controller: str, table: Table) -> None:
        """Looks through some rows."""
        import numpy as np

        self.total += len(table)
        names = {*self.shown, *(self._where.names if self._where else ())}
        columns = {name: table.to_numpy(name) for name in names if name != "controller"}
        if "controller" in names:
            columns["controller"] = np.full(len(table), controller)
        mask = np.ones(len(table), bool) if self._where is None else self._where(columns)
        self.count += int(mask.sum())
        for row in self._rows(columns, np.flatnonzero(mask)):
            if self._writer is not None:
                self._writer.writerow("" if value is None else value for value in row.values())
            else:
                self.rows.append(row)

    def _rows(self, columns: dict[str, Any], places: Any) -> Iterator[dict[str, Any]]:
        if self._limit is not None:
            places = places[: self._limit - len(self.rows)]
        for at in places:
            row = {name: columns[name][at].item() for name in self.shown}
            yield {name: None if value != value else value for name, value in row.items()}  # noqa: PLR0124


def _print(found: _Found, about: dict[str, Metric], limit: int) -> None:
    from tidegate.output.terminal import broken, console, plain_table, print_table

    heads = [f"{about[one].label} ({about[one].unit})" if one in about else one for one in found.shown]
    first = sum(one not in about for one in found.shown)
    table = plain_table(*map(broken, heads))
    for row in found.rows:
        table.add_row(*(_cell(value, about.get(name)) for name, value in row.items()))
    if found.rows:
        print_table(table, first)
    more = f", {limit} of them printed (--limit, --csv)" if found.count > limit else ""
    console().print(f"\n{found.count} of {found.total} runs{more}")


def _cell(value: Any, about: Metric | None) -> str:
    if value is None:
        return "-"
    return str(value) if about is None else f"{value * about.scale:.{about.digits}f}"
