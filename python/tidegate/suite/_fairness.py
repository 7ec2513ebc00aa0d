"""Fairness: the division of capacity among the flows of a run."""

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
    """Periods without an event for any of these flows, each from 10 s after the last event on."""
    if not flows or not all(flow.can_converge for flow in flows):
        return []
    times = {float(shares.edges_s[-1])}
    for flow in flows:
        times |= {time for time, _, _ in flow.events} | {time for life in flow.lives for time in life}
    return rating.static(pairwise(sorted(times)))


def min_ratio(shares: Shares, flows: Sequence[Rates], length: float) -> float | None:
    """The minimum ratio of two flows' rates, each divided by the flow's weight (its priority in a coupling).

    Rates are means over time windows of `length` seconds in static periods. Two flows are compared if they have a link
    in common and equal shares per weight. The ratio is 0 where neither flow received anything.
    """
    ratios = []
    for begin, end in static_periods(shares, flows):
        for first, second in combinations(flows, 2):
            if not _alike(shares, first.name, second.name, begin):
                continue
            starts, ends = _windows(begin, end, length)
            both = [flow.received(starts, ends) / shares.demands[flow.name].weight for flow in (first, second)]
            low, high = np.minimum(*both), np.maximum(*both)
            ratios.append(np.divide(low, high, out=np.zeros_like(low), where=high > 0))
    return rating.least(ratios)


def _alike(shares: Shares, first: str, second: str, time: float) -> bool:
    demands = [shares.demands[name] for name in (first, second)]
    low, high = sorted(shares.at(demand.flow, time) / demand.weight for demand in demands)
    return low > 0 and high <= low * (1 + _SAME) and bool(set(demands[0].way) & set(demands[1].way))


def _windows(begin: float, end: float, length: float) -> tuple[Floats, Floats]:
    """Begins and ends of time windows, which begin a second apart, or `length` apart if `length` is less."""
    step = min(1.0, length)
    count = int((end - begin - length) / step + 1e-6) + 1 if end - begin >= length else 0
    starts = grid(begin, step, count)
    return starts, starts + length


def min_jain(shares: Shares, flows: Sequence[Rates]) -> float | None:
    """The minimum of Jain's index of the flows' received fractions of their shares, in time windows of 20 s."""
    indices = []
    for begin, end in static_periods(shares, flows):
        active = [flow for flow in flows if 0 < shares.at(flow.name, begin) < np.inf]
        starts, ends = _windows(begin, end, LONG)
        if len(active) > 1 and len(starts):
            parts = np.array([flow.received(starts, ends) / shares.bits(flow.name, starts, ends) for flow in active])
            squares = len(active) * (parts**2).sum(axis=0)
            indices.append(np.divide(parts.sum(axis=0) ** 2, squares, out=np.zeros(len(starts)), where=squares > 0))
    return rating.least(indices)


def over_cross_traffic(shares: Shares, contenders: Sequence[Rates], cross_traffic: Sequence[Rates]) -> float | None:
    """Ratio of the mean rates of contenders and elastic cross traffic, in whole time windows of 20 s."""
    elastic = [flow for flow in cross_traffic if any(most == np.inf for _, most in shares.demands[flow.name].most)]
    ways = {link for flow in contenders for link in shares.demands[flow.name].way}
    elastic = [flow for flow in elastic if ways & set(shares.demands[flow.name].way)]
    means = []
    for flows in (contenders, elastic):
        bits = seconds = 0.0
        for begin, end in static_periods(shares, [*contenders, *elastic]):
            length = LONG * int((end - begin) / LONG)
            if not all(any(shares.at(flow.name, begin) > 0 for flow in side) for side in (contenders, elastic)):
                continue
            active = [flow for flow in flows if shares.at(flow.name, begin) > 0]
            bits += sum(float(flow.received(begin, begin + length)) for flow in active)
            seconds += length * len(active)
        means.append(bits / seconds if seconds else None)
    contender_rate, elastic_rate = means
    if contender_rate is None or elastic_rate is None:
        return None
    return rating.ratio(contender_rate, elastic_rate)


def delivered(shares: Shares, flows: Sequence[Rates], begin: float) -> float | None:
    """Bits received by all flows from `begin` on, as a fraction of the bits of their shares."""
    end = float(shares.edges_s[-1])
    received = sum(float(flow.received(begin, end)) for flow in flows)
    return rating.ratio(received, sum(float(shares.bits(flow.name, begin, end)) for flow in flows))
