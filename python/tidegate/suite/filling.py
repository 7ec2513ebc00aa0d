"""Max-min fair rates: water filling over the links of a network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CLOSE = 1e-12
"""Relative: levels that differ by less are one."""


@dataclass(frozen=True)
class Wish:
    """What one flow asks of the links on its way."""

    way: tuple[str, ...]
    """The links that it crosses, each in its direction."""
    most: float
    """The most that it can send, in bit/s; infinite for a transfer that always has data."""
    weight: float = 1.0
    """Its priority: of two flows at one bottleneck the one of twice the weight has twice the rate."""


def fill(capacity: Mapping[str, float], wishes: Sequence[Wish]) -> list[float]:
    """The weighted max-min fair rate of each flow, in bit/s (Bertsekas and Gallager, Data Networks, section 6.5.2).

    All rates rise together, each as fast as its weight says. A flow stops at the most that it can send, and all flows
    of a link stop when the link is full. Nobody's rate can then grow but at the cost of somebody who has less.

    Args:
        capacity: Of each link, in bit/s. One that is not named here carries everything.
        wishes: The flows. One that nothing bounds has an infinite rate.

    >>> fill({"a": 2e6, "b": 1.5e6}, [Wish(("a", "b"), 9e9), Wish(("a",), 9e9), Wish(("b",), 9e9)])
    [750000.0, 1250000.0, 750000.0]
    """
    rates = [0.0] * len(wishes)
    left = {link: max(rate, 0.0) for link, rate in capacity.items() if math.isfinite(rate)}
    rising = {at for at, wish in enumerate(wishes) if wish.most > 0}
    while rising:
        weights: dict[str, float] = {}
        for at in rising:
            for link in wishes[at].way:
                if link in left:
                    weights[link] = weights.get(link, 0.0) + wishes[at].weight
        full = {link: left[link] / weight for link, weight in weights.items()}
        own = {at: wishes[at].most / wishes[at].weight for at in rising}
        level = min([*full.values(), *own.values()])
        if not math.isfinite(level):
            for at in rising:
                rates[at] = math.inf
            break
        reached = level * (1 + _CLOSE)
        stopped = {at for at in rising if own[at] <= reached}
        stopped |= {at for at in rising if any(full.get(link, math.inf) <= reached for link in wishes[at].way)}
        for at in stopped:
            rates[at] = min(level * wishes[at].weight, wishes[at].most)
            for link in wishes[at].way:
                if link in left:
                    left[link] = max(left[link] - rates[at], 0.0)
        rising -= stopped
    return rates
