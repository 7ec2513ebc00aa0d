"""Max-min fair rates: water filling over the links of a network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CLOSE = 1e-12
"""Relative: levels that differ by less are one."""


@dataclass(frozen=True)
class Wish:
    """Demand of one flow on the links of its path."""

    way: tuple[str, ...]
    """The links that it crosses, each in its direction."""
    most: float
    """Largest rate that it can send, in bit/s; infinite for a transfer that always has data."""
    weight: float = 1.0
    """Its priority: of two flows at one bottleneck the one of twice the weight has twice the rate."""


def fill(capacity: Mapping[str, float], wishes: Sequence[Wish]) -> list[float]:
    """The weighted max-min fair rate of each flow, in bit/s (Bertsekas and Gallager, Data Networks, section 6.5.2).

    All rates rise together, each in proportion to its weight. A flow stops at its largest rate, and all flows
    of a link stop when the link is full. A rate can then only grow at the cost of a flow that has less.

    Args:
        capacity: Of each link, in bit/s. One that is not named here carries everything.
        wishes: The flows. One that nothing bounds has an infinite rate.

    >>> fill({"a": 2e6, "b": 1.5e6}, [Wish(("a", "b"), 9e9), Wish(("a",), 9e9), Wish(("b",), 9e9)])
    [750000.0, 1250000.0, 750000.0]
    """
    rates = [0.0] * len(wishes)
    remaining = {link: max(rate, 0.0) for link, rate in capacity.items() if math.isfinite(rate)}
    rising = {number for number, wish in enumerate(wishes) if wish.most > 0}
    while rising:
        weights: dict[str, float] = {}
        for number in rising:
            for link in wishes[number].way:
                if link in remaining:
                    weights[link] = weights.get(link, 0.0) + wishes[number].weight
        full = {link: remaining[link] / weight for link, weight in weights.items()}
        own_level = {number: wishes[number].most / wishes[number].weight for number in rising}
        level = min([*full.values(), *own_level.values()])
        if not math.isfinite(level):
            for number in rising:
                rates[number] = math.inf
            break
        reached = level * (1 + _CLOSE)
        stopped = {number for number in rising if own_level[number] <= reached}
        stopped |= {
            number for number in rising if any(full.get(link, math.inf) <= reached for link in wishes[number].way)
        }
        for number in stopped:
            rates[number] = min(level * wishes[number].weight, wishes[number].most)
            for link in wishes[number].way:
                if link in remaining:
                    remaining[link] = max(remaining[link] - rates[number], 0.0)
        rising -= stopped
    return rates
