"""Tables as CSV: numbers with all digits, in the units of the summary; missing values are empty cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidegate.results.metrics import finite

_IDENTITY = {"flow", "kind", "controller"}


def lines(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Formats heads and rows as the text of a CSV file.

    >>> print(lines(["rate", "loss"], [[2.5e6, None], ["a, b", 0.1]]), end="")
    rate,loss
    2500000.0,
    "a, b",0.1
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return out.getvalue()


def flows(keys: Sequence[str], runs: Iterable[tuple[Sequence[str], Mapping[str, Any]]]) -> str:
    """Formats one line for each flow of each run: the run's keys, seed and digest, the flow, and its metrics.

    A metric is a column if at least one flow has it.

    Args:
        keys: Heads of the columns that tell runs of the same seed apart.
        runs: The values of these columns and the summary, for each run.
    """
    rows = [(values, summary, flow) for values, summary in runs for flow in summary["flows"]]
    names = dict.fromkeys(name for _, _, flow in rows for name in flow if name not in _IDENTITY)
    metrics = [name for name in names if any(_csv_cell(flow.get(name)) is not None for _, _, flow in rows)]
    return lines(
        [*keys, "seed", "digest", "flow", "kind", "flow_controller", *metrics],
        (
            [*values, summary["seed"], summary.get("digest"), flow["flow"], flow["kind"], flow.get("controller"),
             *(_csv_cell(flow.get(name)) for name in metrics)]
            for values, summary, flow in rows
        ),
    )  # fmt: skip


def _csv_cell(value: Any) -> str | float | None:
    """A metric as a cell of the file; `None` for an empty one."""
    return (value or None) if isinstance(value, str) else finite(value)
