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
"""Who is next to whom (figure 1), seen from A1: every node is an agent."""


@dataclass(frozen=True)
class Cable:
    """A link, in both directions."""

    capacity: str
    delay: str
    byte_error: float = 0.0
    """Probability that a byte is hit."""
    queue: int | None = None
    """Its limit in packets, where it is not tidegate's 300 ms."""


CENTRE = Cable("10Mbps", "5ms")
"""A1 to A2, A3 and A4: "high bandwidth and low delay" (section 6.2); numbers are ours."""
BRANCHES: Mapping[str, Cable] = {
    "A2": Cable("1Mbps", "80ms"),
    "A3": Cable("150kbps", "20ms"),
    "A4": Cable("10Mbps", "5ms"),
}
"""Behind A2 mobile users ("the delays are quite high"), behind A3 low bandwidth, behind A4 "quite high bandwidth and
quite low delay" (section 6.2); numbers are ours."""


def agents(topology: str) -> list[str]:
    """A1, A2 and so on.

    >>> agents("T-4")
    ['A1', 'A2', 'A3', 'A4']
    """
    return [f"A{number}" for number in range(1, int(topology.removeprefix("T-")) + 1)]


def edges(topology: str) -> Iterator[tuple[str, str]]:
    """The links, from A1 outwards.

    >>> list(edges("T-8"))[2:5]
    [('A1', 'A4'), ('A2', 'A5'), ('A2', 'A6')]
    """
    for parent, children in TREES[topology].items():
        for child in children:
            yield parent, child


def cables(topology: str, **changed: Cable) -> dict[str, Cable]:
    """The cable to each agent, as section 6.2 has it but for those `changed`.

    >>> cables("T-8", A5=Cable("64kbps", "20ms"))["A5"].delay
    '20ms'
    """
    found = {child: CENTRE if parent == "A1" else BRANCHES[parent] for parent, child in edges(topology)}
    return {**found, **changed}


def links(topology: str, cable: Mapping[str, Cable] | Cable) -> list[Link]:
    """The links of a scenario: one cable for all, or the cable to each agent.

    >>> [link.name for link in links("T-4", Cable("1Mbps", "10ms"))]
    ['A1-A2', 'A1-A3', 'A1-A4']
    """
    made = []
    for parent, child in edges(topology):
        one = cable if isinstance(cable, Cable) else cable[child]
        keys: dict[str, Any] = {} if one.queue is None else {"queue": {"packets": one.queue}}
        keys |= {"capacity": one.capacity, "delay": one.delay, "byte_error": one.byte_error}
        made.append(Link(name=f"{parent}-{child}", from_=parent, to=child, **keys))
    return made
