"""How the flows of a run divide what there is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from tidegate.suite import _rates as rating
from tidegate.suite._rates import Rates, Stretch
from tidegate.suite.shares import Floats, Shares, grid

_SAME = 0.01
"""Relative difference up to which two shares are the same."""
LONG = 20.0
"""Seconds of the longest interval for ratios (RFC 8868 section 3, metric 7)."""


def static_periods(shares: Shares, flows: Sequence[Rates]) -> list[Stretch]:
    """When nothing happens to any of these flows, from a while after the last event on."""
    if not flows or not all(one.can_converge for one in flows):
        return []
    times = {float(shares.edges_s[-1])}
    for one in flows:
        times |= {time for time, _, _ in one.events} | {time for life in one.lives for time in life}
    return rating.static(pairwise(sorted(times)))


def least_ratio(shares: Shares, flows: Sequence[Rates], length: float) -> float | None:
    """The least ratio of two flows' rates, over windows of a length in static periods.

    It is of flows that have a link in common and by their shares the same rate, both over their priorities. Where
    neither has received anything it is 0: who brings nobody anything has not divided it well.
    """
    found = []
    for begin, end in static_periods(shares, flows):
        for one, other in combinations(flows, 2):
            if not _alike(shares, one.name, other.name, begin):
                continue
            starts, ends = _windows(begin, end, length)
            both = [flow.received(starts, ends) / shares.demands[flow.name].weight for flow in (one, other)]
            low, high = np.minimum(*both), np.maximum(*both)
            found.append(np.divide(low, high, out=np.zeros_like(low), where=high > 0))
    return rating.least(found)


def _alike(shares: Shares, one: str, other: str, time: float) -> bool:
    demands = [shares.demands[name] for name in (one, other)]
    low, high = sorted(shares.at(demand.flow, time) / demand.weight for demand in demands)
    return low > 0 and high <= low * (1 + _SAME) and bool(set(demands[0].way) & set(demands[1].way))


def _windows(begin: float, end: float, length: float) -> tuple[Floats, Floats]:
    """Windows that begin a second apart, or a length if that is less."""
    step = min(1.0, length)
    count = int((end - begin - length) / step + 1e-6) + 1 if end - begin >= length else 0
    starts = grid(begin, step, count)
    return starts, starts + length


def least_jain(shares: Shares, flows: Sequence[Rates]) -> float | None:
    """The least of Jain's index of what each flow received of its share, over windows of 20 s in static periods."""
    found = []
    for begin, end in static_periods(shares, flows):
        there = [one for one in flows if 0 < shares.at(one.name, begin) < np.inf]
        starts, ends = _windows(begin, end, LONG)
        if len(there) > 1 and len(starts):
            parts = np.array([one.received(starts, ends) / shares.bits(one.name, starts, ends) for one in there])
            squares = len(there) * (parts**2).sum(axis=0)
            found.append(np.divide(parts.sum(axis=0) ** 2, squares, out=np.zeros(len(starts)), where=squares > 0))
    return rating.least(found)


def over_cross_traffic(shares: Shares, contenders: Sequence[Rates], others: Sequence[Rates]) -> float | None:
    """The contenders' mean rate over that of elastic cross traffic, in whole windows of 20 s in static periods."""
    elastic = [one for one in others if any(most == np.inf for _, most in shares.demands[one.name].most)]
    ways = {link for one in contenders for link in shares.demands[one.name].way}
    elastic = [one for one in elastic if ways & set(shares.demands[one.name].way)]
    means = []
    for some in (contenders, elastic):
        bits = seconds = 0.0
        for begin, end in static_periods(shares, [*contenders, *elastic]):
            length = LONG * int((end - begin) / LONG)
            if not all(any(shares.at(one.name, begin) > 0 for one in side) for side in (contenders, elastic)):
                continue
            there = [one for one in some if shares.at(one.name, begin) > 0]
            bits += sum(float(one.received(begin, begin + length)) for one in there)
            seconds += length * len(there)
        means.append(bits / seconds if seconds else None)
    ours, theirs = means
    return None if ours is None or theirs is None else rating.ratio(ours, theirs)


def delivered(shares: Shares, flows: Sequence[Rates], begin: float) -> float | None:
    """All that flows received from a time on over all that they could have."""
    end = float(shares.edges_s[-1])
    got = sum(float(one.received(begin, end)) for one in flows)
    return rating.ratio(got, sum(float(shares.bits(one.name, begin, end)) for one in flows))
