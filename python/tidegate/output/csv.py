"""Tables as CSV: numbers with all their digits in the summary's own units, and nothing where there is none."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidegate.results.metrics import finite

_ABOUT_FLOWS = {"flow", "kind", "controller"}


def lines(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Heads and rows as the text of a file.

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
    """A line for each run and flow: what the run is one of, its seed, the flow, and all metrics that one has.

    Args:
        keys: The names of what tells runs of the same seed apart.
        runs: For each run the values of these, and its summary.
    """
    rows = [(values, summary, flow) for values, summary in runs for flow in summary["flows"]]
    names = dict.fromkeys(name for _, _, flow in rows for name in flow if name not in _ABOUT_FLOWS)
    metrics = [name for name in names if any(_plain(flow.get(name)) is not None for _, _, flow in rows)]
    return lines(
        [*keys, "seed", "digest", "flow", "kind", "flow_controller", *metrics],
        (
            [*values, summary["seed"], summary.get("digest"), flow["flow"], flow["kind"], flow.get("controller"),
             *(_plain(flow.get(name)) for name in metrics)]
            for values, summary, flow in rows
        ),
    )  # fmt: skip


def _plain(value: Any) -> str | float | None:
    """A metric as it stands in a file."""
    return (value or None) if isinstance(value, str) else finite(value)
