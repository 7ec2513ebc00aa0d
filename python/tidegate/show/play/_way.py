"""The links on the path of a flow, and the tightest of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from tidegate._core import Trace
from tidegate.scenario.lower import Ir
from tidegate.scenario.moves import other_direction
from tidegate.scenario.ways import Ways


def is_movable(link: Ir) -> bool:
    """Whether the capacity of a link can be changed while it runs."""
    capacity = link["capacity"]
    return capacity != "external" and not (isinstance(capacity, dict) and "statuses" in capacity)


def tightest(ir: Ir, traces: Sequence[Trace], begin: str, end: str) -> str | None:
    """The link with the smallest mean capacity on the path, of those whose capacity is finite and can be changed."""
    path = [link for link in Ways(ir).between(begin, end) if is_movable(link) and link["capacity"] != "infinite"]
    return min(path, key=lambda link: _mean(link, traces, ir["duration"]))["name"] if path else None


_MOST_PATHS, _LONGEST, _MOST_LINKS = 4, 6, 40
"""Paths that the page offers, links of each, and links of a network in which it looks for them."""


def paths(ir: Ir, begin: str, end: str) -> list[list[str]]:
    """Paths from a point to another whose links have another direction: the flow's own one comes first."""
    names = {link["name"] for link in ir["links"]}
    own = [link["name"] for link in Ways(ir).between(begin, end)]
    there_and_back = [link for link in ir["links"] if other_direction(link["name"]) in names]

    def further(point: str, path: list[str], seen: set[str]) -> Iterator[list[str]]:
        if point == end:
            yield path
        elif len(path) < _LONGEST:
            for link in there_and_back:
                if link["from"] == point and link["to"] not in seen:
                    yield from further(link["to"], [*path, link["name"]], seen | {link["to"]})

    if len(ir["links"]) > _MOST_LINKS:
        return [own]
    others = (path for path in further(begin, [], {begin}) if path != own)
    return [own, *islice(others, _MOST_PATHS - 1)]


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
