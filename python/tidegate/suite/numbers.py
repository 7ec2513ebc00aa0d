"""Numbers of one run of a suite: the kept row, and lookups in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

from tidegate.results.metrics import FLOWS, METRICS, Metric, finite
from tidegate.suite.measures import CATALOGUE

Row = Mapping[str, Any]
"""The kept part of a run: `contenders`, the summary's `flows`, `links` and `warnings`, and `measures`."""

MEASURES: Mapping[str, Metric] = {metric.name: metric for metric in CATALOGUE}
"""The measures of suites by name."""

WORDS = ("worst", "mean", "sum")
"""Ways to join the numbers of several contenders."""


def names() -> list[str]:
    """Names of all numbers that a rule can limit."""
    return [*FLOWS, *MEASURES]


def metric_of(name: str) -> Metric:
    """Returns the definition of a number.

    Raises:
        KeyError: when no number has that name.
    """
    return MEASURES[name] if name in MEASURES else METRICS[name]


def number(row: Row, name: str, of: str | None = None) -> float | None:
    """A number of a run; `None` where it has none.

    Args:
        row: What is kept of the run.
        name: A metric of a flow, or a measure of a flow or of the run.
        of: Of several contenders the `worst` (also by default), the `mean` or the `sum`; or the name of a flow.
    """
    of_run = row["measures"]["run"]
    if name in of_run:
        return finite(of_run[name])
    if of is not None and of not in WORDS:
        return finite(_of_flow(row, name, of))
    values = [finite(_of_flow(row, name, flow)) for flow in row["contenders"]]
    present = [value for value in values if value is not None]
    # if a contender lacks the number, the other contenders do not stand for it
    if not present or len(present) < len(values):
        return None
    return _JOINED[of or "worst"](present, metric_of(name).better)


def _of_flow(row: Row, name: str, flow: str) -> Any:
    measured = row["measures"]["flows"].get(flow, {})
    if name in measured:
        return measured[name]
    return next((entry.get(name) for entry in row["flows"] if entry["flow"] == flow), None)


_JOINED: Mapping[str, Callable[[Sequence[float], str], float]] = {
    "worst": lambda values, better: (min if better == "higher" else max)(values),
    "mean": lambda values, _: fsum(values) / len(values),
    "sum": lambda values, _: fsum(values),
}
