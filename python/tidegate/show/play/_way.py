"""The links on the path of a flow, and the tightest of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidegate._core import Trace
from tidegate.scenario.lower import Ir
from tidegate.scenario.ways import Ways


def is_movable(link: Ir) -> bool:
    """Whether the capacity of a link can be changed while it runs."""
    capacity = link["capacity"]
    return capacity != "external" and not (isinstance(capacity, dict) and "statuses" in capacity)


def tightest(ir: Ir, traces: Sequence[Trace], begin: str, end: str) -> str | None:
    """The link with the smallest mean capacity on the path, of those whose capacity is finite and can be changed."""
    path = [link for link in Ways(ir).between(begin, end) if is_movable(link) and link["capacity"] != "infinite"]
    return min(path, key=lambda link: _mean(link, traces, ir["duration"]))["name"] if path else None


def _mean(link: Ir, traces: Sequence[Trace], duration: int) -> float:
    """The mean capacity (bit/s), as far as it is known without a run."""
    match link["capacity"]:
        case {"constant": rate}:
            return float(rate)
        case {"schedule": {"steps": steps, "period": period}}:
            end = period or max(duration, steps[-1][0])
            ends = [*(time for time, _ in steps[1:]), end]
            return float(sum(rate * (until - time) for (time, rate), until in zip(steps, ends, strict=True)) / end)
        case {"trace": {"index": index, "scale": scale}}:
            return float(traces[index].mean_rate * scale)
        case {"brownian": {"start": rate}} | {"leo": {"median": rate}}:
            return float(rate)
    return math.inf
