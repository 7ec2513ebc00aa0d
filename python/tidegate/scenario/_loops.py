"""Finds round trips that take no time: a TCP flow on one could send for ever at one instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.scenario.explain import Problem
from tidegate.scenario.routes import Routes, directions

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario


def timeless(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each TCP flow whose packets and acknowledgements cross no link that takes time."""
    routes = Routes((begin, end, _is_timeless(keys)) for begin, end, _, keys in directions(scenario.links))

    def takes_no_time(begin: str, end: str) -> bool:
        route = routes.between(begin, end)
        return route is not None and all(route)

    for position, flow in enumerate(scenario.flows):
        if flow.tcp is not None and takes_no_time(flow.from_, flow.to) and takes_no_time(flow.to, flow.from_):
            message = "the round trip takes no time; give a link of the route a capacity or a delay"
            yield Problem(("flows", position, "tcp"), message)


def _is_timeless(keys: Mapping[str, Any]) -> bool:
    """Whether packets leave a link at the instant at which they come."""
    return bool(keys["capacity"] == "infinite" and not keys["delay"] and keys["jitter"] == "none")
