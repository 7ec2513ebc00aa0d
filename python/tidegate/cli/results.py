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
from tidegate.wording import one_line, printable

if TYPE_CHECKING:
    from tidegate._core import Table
    from tidegate.query import RowFilter
    from tidegate.results.metrics import Metric


def results(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a `sweep` or `suite run`.")],
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION", help="Condition on runs: 'controller == \"gcc\" and loss > 2%'; default all."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Columns to print; by default controller, settings, seed and headline metrics."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of runs to print.")] = 20,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print only CSV, with all the runs.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the runs of a sweep or a suite for which a condition holds.

    A condition compares columns with values: == != < <= > >=, in ["a", "b"], and, or, not. Metrics have their full
    names, or short ones without the unit (delay_p95, rate, loss), and amounts with units (100ms, 2%). Settings have
    their keys.

    The folder's runs.parquet is a Parquet data set, which polars, duckdb, pandas and pyarrow read without tidegate.

    Example: tidegate results out/sweep --where 'controller == "gcc" and delay_p95 > 100ms'
    """
    from tidegate.output.terminal import console
    from tidegate.query import RowFilter, column_of
    from tidegate.results import dataset

    if as_csv and as_json:
        raise InputError("--csv and --json: give one of them")
    parts = dataset.tables(folder)
    controller, first = next(parts)
    kinds = {dataset.CONTROLLER: "U", **{name: first[:1].to_numpy(name).dtype.kind for name in first.columns}}
    metrics = _catalogue()
    condition = None if where is None else RowFilter(where, kinds, metrics)
    filter_columns = () if condition is None else condition.names
    if columns is not None:
        selected = [column_of(name.strip(), kinds, metrics) for name in columns.split(",")]
    else:
        selected = list(dict.fromkeys([*_default_columns(kinds, first), *filter_columns]))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if as_csv:
        writer.writerow(map(printable, selected))
    count = total = 0
    rows: list[dict[str, Any]] = []
    for name, table in itertools.chain([(controller, first)], parts):
        if missing := sorted({*selected, *filter_columns} - {dataset.CONTROLLER, *table.columns}):
            raise InputError(
                f"{folder}: one of the files lacks the column {missing[0]}; run the same sweep again to rewrite it"
            )
        values, matches = _matching(name, table, [*selected, *filter_columns], condition)
        total, count = total + len(table), count + len(matches)
        if as_csv:
            writer.writerows(map(_csv_cell, _row_values(values, selected, index).values()) for index in matches)
        else:
            rows += [_row_values(values, selected, index) for index in matches[: limit - len(rows)]]
    if as_json:
        print_json({"runs": total, "found": count, "rows": rows})
    elif not as_csv:
        _print_rows(selected, rows, metrics)
        shown_note = f", {limit} of them printed (--limit, --csv)" if count > limit else ""
        console().print(f"\n{count} of {total} runs{shown_note}")


def _catalogue() -> dict[str, Metric]:
    from tidegate.results.metrics import METRICS
    from tidegate.suite import numbers

    return {**METRICS, **{name: numbers.metric_of(name) for name in numbers.names()}}


def _default_columns(kinds: Mapping[str, str], first: Table) -> list[str]:
    """Columns that are printed by default: controller, settings, seed and headline metrics."""
    from tidegate.results.metrics import HEADLINE

    metrics = _catalogue()
    settings = [name for name in first.columns if name not in metrics and name not in {"key", "digest", "seed"}]
    return ["controller", *settings, "seed", *(name for name in HEADLINE if name in kinds)]


def _matching(
    controller: str, table: Table, names: Iterable[str], condition: RowFilter | None
) -> tuple[dict[str, Any], Any]:
    """Columns of a table by name, and the indices of the rows for which the condition holds."""
    import numpy as np

    columns = {name: table.to_numpy(name) for name in names if name != "controller"}
    columns["controller"] = np.full(len(table), controller)
    return columns, np.arange(len(table)) if condition is None else np.flatnonzero(condition(columns))


def _row_values(columns: dict[str, Any], names: Sequence[str], index: int) -> dict[str, Any]:
    row = {name: columns[name][index].item() for name in names}
    return {name: None if value != value else value for name, value in row.items()}  # noqa: PLR0124


def _csv_cell(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def _print_rows(names: Sequence[str], rows: list[dict[str, Any]], metrics: dict[str, Metric]) -> None:
    from tidegate.output.terminal import broken, print_rows

    headers = [f"{metrics[name].label} ({metrics[name].unit})" if name in metrics else one_line(name) for name in names]
    cells = ([_cell(value, metrics.get(name)) for name, value in row.items()] for row in rows)
    if rows:
        print_rows([*map(broken, headers)], cells, key_columns=sum(name not in metrics for name in names))


def _cell(value: Any, metric: Metric | None) -> str:
    if value is None:
        return "-"
    return one_line(str(value)) if metric is None else f"{value * metric.scale:.{metric.digits}f}"
