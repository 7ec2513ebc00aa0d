"""The command results."""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli.options import AsJson
from tidegate.cli.terminal import print_json
from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate._core import Table
    from tidegate.query import Where
    from tidegate.results.metrics import Metric


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
    from tidegate.output.terminal import console
    from tidegate.query import Where, column_of
    from tidegate.results import dataset

    if as_csv and as_json:
        raise InputError("--csv and --json: give one of them")
    every = dataset.tables(folder)
    controller, first = next(every)
    kinds = {dataset.CONTROLLER: "U", **{name: first[:1].to_numpy(name).dtype.kind for name in first.columns}}
    about = _catalogue()
    condition = None if where is None else Where(where, kinds, about)
    asked = () if condition is None else condition.names
    if columns is not None:
        selected = [column_of(name.strip(), kinds, about) for name in columns.split(",")]
    else:
        selected = list(dict.fromkeys([*_default(kinds, first), *asked]))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if as_csv:
        writer.writerow(selected)
    count = total = 0
    rows: list[dict[str, Any]] = []
    for name, table in itertools.chain([(controller, first)], every):
        if missing := sorted({*selected, *asked} - {dataset.CONTROLLER, *table.columns}):
            raise InputError(
                f"{folder}: a file of it has no {missing[0]}, as others have; the same sweep again writes it anew"
            )
        values, places = _matching(name, table, [*selected, *asked], condition)
        total, count = total + len(table), count + len(places)
        if as_csv:
            writer.writerows(_row(values, selected, at).values() for at in places)
        else:
            rows += [_row(values, selected, at) for at in places[: limit - len(rows)]]
    if as_json:
        print_json({"runs": total, "found": count, "rows": rows})
    elif not as_csv:
        _print(selected, rows, about)
        more = f", {limit} of them printed (--limit, --csv)" if count > limit else ""
        console().print(f"\n{count} of {total} runs{more}")


def _catalogue() -> dict[str, Metric]:
    from tidegate.results.metrics import METRICS
    from tidegate.suite import numbers

    return {**METRICS, **{name: numbers.about(name) for name in numbers.known()}}


def _default(kinds: Mapping[str, str], first: Table) -> list[str]:
    """What a run is of, and what comparisons show of it."""
    from tidegate.results.metrics import HEADLINE

    metrics = _catalogue()
    settings = [name for name in first.columns if name not in metrics and name not in {"key", "digest", "seed"}]
    return ["controller", *settings, "seed", *(name for name in HEADLINE if name in kinds)]


def _matching(controller: str, table: Table, names: Iterable[str], where: Where | None) -> tuple[dict[str, Any], Any]:
    """Columns of a table, and the places of the rows that are wanted."""
    import numpy as np

    columns = {name: table.to_numpy(name) for name in names if name != "controller"}
    columns["controller"] = np.full(len(table), controller)
    return columns, np.arange(len(table)) if where is None else np.flatnonzero(where(columns))


def _row(columns: dict[str, Any], names: Sequence[str], at: int) -> dict[str, Any]:
    row = {name: columns[name][at].item() for name in names}
    return {name: None if value != value else value for name, value in row.items()}  # noqa: PLR0124


def _print(names: Sequence[str], rows: list[dict[str, Any]], about: dict[str, Metric]) -> None:
    from tidegate.output.terminal import broken, print_rows

    heads = [f"{about[name].label} ({about[name].unit})" if name in about else name for name in names]
    cells = ([_cell(value, about.get(name)) for name, value in row.items()] for row in rows)
    if rows:
        print_rows([*map(broken, heads)], cells, first=sum(name not in about for name in names))


def _cell(value: Any, about: Metric | None) -> str:
    if value is None:
        return "-"
    return str(value) if about is None else f"{value * about.scale:.{about.digits}f}"
