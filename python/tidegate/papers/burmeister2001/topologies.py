"""The trees of figure 1 and section 6.2, as links of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.scenario import Link

TREES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "T-2": {"A1": ("A2",)},
    "T-4": {"A1": ("A2", "A3", "A4")},
    "T-8": {"A1": ("A2", "A3", "A4"), "A2": ("A5", "A6"), "A3": ("A7",), "A4": ("A8",)},
    "T-16": {
        "A1": ("A2", "A3", "A4"),
        "A2": ("A5", "A6", "A7", "A8"),
        "A3": ("A9", "A10", "A11", "A12"),
        "A4": ("A13", "A14", "A15", "A16"),
    },
}
"""Children of each agent (figure 1), seen from A1; every node is an agent."""


@dataclass(frozen=True)
class Cable:
    """A link, the same in both directions."""

    capacity: str
    delay: str
    byte_error: float = 0.0
    """Error probability of a byte."""
    queue: int | None = None
    """Queue limit in packets; tidegate's 300 ms by default."""


CENTRE = Cable("10Mbps", "5ms")
"""Cable from A1 to A2, A3 and A4: "high bandwidth and low delay" (section 6.2); the numbers are ours."""
BRANCHES: Mapping[str, Cable] = {
    "A2": Cable("1Mbps", "80ms"),
    "A3": Cable("150kbps", "20ms"),
    "A4": Cable("10Mbps", "5ms"),
}
"""Cables behind A2, with mobile users ("the delays are quite high"), behind A3, with low bandwidth, and behind A4, with
"quite high bandwidth and quite low delay" (section 6.2); the numbers are ours."""


def agents(topology: str) -> list[str]:
    """Names of the agents: A1, A2 and so on.

    >>> agents("T-4")
    ['A1', 'A2', 'A3', 'A4']
    """
    return [f"A{number}" for number in range(1, int(topology.removeprefix("T-")) + 1)]


def edges(topology: str) -> Iterator[tuple[str, str]]:
    """Links of a tree as pairs of agents, from A1 outwards.

    >>> list(edges("T-8"))[2:5]
    [('A1', 'A4'), ('A2', 'A5'), ('A2', 'A6')]
    """
    for parent, children in TREES[topology].items():
        for child in children:
            yield parent, child


def cables(topology: str, **changed: Cable) -> dict[str, Cable]:
    """Cable to each agent, as in section 6.2 except for those `changed`.

    >>> cables("T-8", A5=Cable("64kbps", "20ms"))["A5"].delay
    '20ms'
    """
    cable_to = {child: CENTRE if parent == "A1" else BRANCHES[parent] for parent, child in edges(topology)}
    return {**cable_to, **changed}


def links(topology: str, cable: Mapping[str, Cable] | Cable) -> list[Link]:
    """The links of a scenario: one cable for all, or the cable to each agent.

    >>> [link.name for link in links("T-4", Cable("1Mbps", "10ms"))]
    ['A1-A2', 'A1-A3', 'A1-A4']
    """
    scenario_links = []
    for parent, child in edges(topology):
        link_cable = cable if isinstance(cable, Cable) else cable[child]
        keys: dict[str, Any] = {} if link_cable.queue is None else {"queue": {"packets": link_cable.queue}}
        keys |= {"capacity": link_cable.capacity, "delay": link_cable.delay, "byte_error": link_cable.byte_error}
        scenario_links.append(Link(name=f"{parent}-{child}", from_=parent, to=child, **keys))
    return scenario_links
