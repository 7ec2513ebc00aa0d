"""Round trips that take no time, in which a TCP could send for ever at one instant."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate.scenario._explain import Problem
from tidegate.scenario.links import Back, Link

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario


def timeless(scenario: Scenario) -> Iterator[Problem]:
    """A problem for each TCP flow whose packets and acknowledgements cross nothing that takes time."""
    hops: dict[str, list[tuple[str, bool]]] = {}
    for link in scenario.links:
        hops.setdefault(link.from_, []).append((link.to, _is_timeless(link, None)))
        if link.back is not False:
            back = link.back if isinstance(link.back, Back) else None
            hops.setdefault(link.to, []).append((link.from_, _is_timeless(link, back)))
    for position, flow in enumerate(scenario.flows):
        if flow.tcp is not None and all(_at_once(hops, *ends) for ends in _ways(flow.from_, flow.to)):
            what = "has a round trip that takes no time; give a link on its way a capacity or a delay"
            yield Problem(("flows", position, "tcp"), what)


def _ways(one: str, other: str) -> list[tuple[str, str]]:
    return [(one, other), (other, one)]


def _is_timeless(link: Link, back: Back | None) -> bool:
    """Whether packets leave at the instant at which they come: this way, or with what differs on the way back."""

    def setting(name: str) -> object:
        own = getattr(back, name, None)
        return getattr(link, name) if own is None else own

    return setting("capacity") == "infinite" and not setting("delay") and setting("jitter") == "none"


def _at_once(hops: dict[str, list[tuple[str, bool]]], begin: str, end: str) -> bool:
    """Whether all of the way with the fewest hops is timeless; among equals the engine takes the first."""
    reached = {begin: True}
    waiting = deque([begin])
    while waiting:
        here = waiting.popleft()
        for there, at_once in hops.get(here, ()):
            if there not in reached:
                reached[there] = reached[here] and at_once
                waiting.append(there)
    return reached.get(end, False)
