"""Numbers of one run of a suite: what its row keeps of it, and how a number is read from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

from tidegate.results.metrics import FLOWS, METRICS, Metric, finite
from tidegate.suite.measures import CATALOGUE

Row = Mapping[str, Any]
"""What is kept of a run: `contenders`, the summary's `flows`, `links` and `warnings`, and `measures`."""

MEASURES: Mapping[str, Metric] = {one.name: one for one in CATALOGUE}
"""The measures of suites by name."""

WORDS = ("worst", "mean", "sum")
"""How several contenders' numbers become one."""


def known() -> list[str]:
    """Names of all that a rule can speak of."""
    return [*FLOWS, *MEASURES]


def about(name: str) -> Metric:
    """What a number is.

    Raises:
        KeyError: when there is none of that name.
    """
    return MEASURES[name] if name in MEASURES else METRICS[name]


def number(row: Row, name: str, of: str | None = None) -> float | None:
    """A number of a run; `None` where it has none.

    Args:
        row: What is kept of the run.
        name: A metric of a flow, or a measure of a flow or of the run.
        of: Of several contenders the `worst` (also by default), the `mean` or the `sum`; or the name of a flow.
    """
    whole = row["measures"]["run"]
    if name in whole:
        return finite(whole[name])
    if of is not None and of not in WORDS:
        return finite(_of_flow(row, name, of))
    values = [finite(_of_flow(row, name, flow)) for flow in row["contenders"]]
    present = [value for value in values if value is not None]
    # a contender without the number is no reason to speak of the others only
    if not present or len(present) < len(values):
        return None
    return _JOINED[of or "worst"](present, about(name).better)


def _of_flow(row: Row, name: str, flow: str) -> Any:
    further = row["measures"]["flows"].get(flow, {})
    if name in further:
        return further[name]
    return next((one.get(name) for one in row["flows"] if one["flow"] == flow), None)


_JOINED: Mapping[str, Callable[[Sequence[float], str], float]] = {
    "worst": lambda values, better: (min if better == "higher" else max)(values),
    "mean": lambda values, _: fsum(values) / len(values),
    "sum": lambda values, _: fsum(values),
}
