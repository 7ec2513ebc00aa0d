"""Means over seeds with 95 % Student-t intervals, paired differences, and who is best by them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal, TypeAlias, TypeVar

Label = TypeVar("Label", bound=Hashable)

BySeed: TypeAlias = Mapping[int, float | None]
"""A number of several runs by their seeds; None where a run does not define it."""

LEVEL = 0.05
"""How often those that are the same may be told apart: in one row of a table of twenty."""

_CARRIED = 0.5
"""Of what could be carried, what a contender must have carried for its delay, loss and freezes to be compared: an idle
sender has none of them. Ours; with less than half of it a rate is another one, and not a price for delay."""

_LOST = 0.1
"""Who lost more shows that it sent too much, and not what could be carried (draft-ietf-rmcat-gcc-02 section 6: above
10 % a sender has to decrease)."""


def could_carry(
    carried: Mapping[str, float], losses: Mapping[str, float], bound: float = math.inf
) -> tuple[float, float]:
    """What each contender could have carried, and how much of it is enough to be compared in delay, loss and freezes.

    What could be carried is what the best contender carried, of those that did not lose too much, if there are any.

    Args:
        carried: What each contender carried, all in one unit.
        losses: The part that each lost; NaN where nobody knows.
        bound: No more than this could be carried.

    >>> could_carry({"gcc": 2.0, "flood": 3.0, "idle": 0.1}, {"gcc": 0.01, "flood": 0.4, "idle": 0.0})
    (2.0, 1.0)
    """
    sound = [value for name, value in carried.items() if not losses[name] > _LOST]
    most = min(max(sound or carried.values(), default=0.0), bound)
    return most, _CARRIED * most


def t_probability(t: float, freedom: int) -> float:
    """P(|T| <= t) of Student's distribution (Abramowitz and Stegun 26.7.3 and 26.7.4).

    >>> round(t_probability(12.706, 1), 4), round(t_probability(2.228, 10), 4)
    (0.95, 0.95)
    """
    theta = math.atan2(t, math.sqrt(freedom))
    cos2 = math.cos(theta) ** 2
    odd = freedom % 2
    term, total = math.cos(theta) if odd else 1.0, 0.0
    # the series has (n - 1) / 2 terms for odd and n / 2 for even degrees of freedom
    for k in range(freedom // 2):
        total += term
        term *= cos2 * ((2 * k + 2) / (2 * k + 3) if odd else (2 * k + 1) / (2 * k + 2))
    area = math.sin(theta) * total
    return 2 / math.pi * (theta + area) if odd else area


@cache
def t_quantile(freedom: int, level: float = 0.95) -> float:
    """The t with P(|T| <= t) = `level`, to 1e-9 by bisection.

    >>> round(t_quantile(1), 3), round(t_quantile(4), 3), round(t_quantile(29), 3)
    (12.706, 2.776, 2.045)
    """
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom; expected at least one")
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < level:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if t_probability(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    """The mean; NaN where no run has a value."""
    half: float | None
    """Half the interval's width; `None` with fewer than two runs."""
    count: int
    """How many runs have a value."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Interval:
        """The mean and its interval of those `values` that are finite; None and NaN are left out.

        >>> Interval.of([1.0, 2.0, 3.0, None])
        Interval(mean=2.0, half=2.484..., count=3)
        """
        known = [float(value) for value in values if value is not None and math.isfinite(value)]
        count = len(known)
        if not known:
            return cls(math.nan, None, 0)
        mean = math.fsum(known) / count
        if count == 1:
            return cls(mean, None, 1)
        variance = math.fsum((value - mean) ** 2 for value in known) / (count - 1)
        return cls(mean, t_quantile(count - 1) * math.sqrt(variance / count), count)


def differences(a: BySeed, b: BySeed) -> list[float]:
    """`a` less `b` for each seed at which both have a finite value, in order of seeds.

    The same seed is the same luck, so that what both owe to it goes out of the difference.

    >>> differences({1: 5.0, 2: 7.0, 3: None}, {1: 4.0, 2: 5.0, 3: 9.0, 4: 1.0})
    [1.0, 2.0]
    """
    pairs = ((a[seed], b[seed]) for seed in sorted(a.keys() & b.keys()))
    return [x - y for x, y in pairs if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)]


def paired(a: BySeed, b: BySeed) -> Interval:
    """The mean of `a` less `b` over the seeds that both have, with its 95 % interval.

    >>> paired({1: 10.0, 2: 31.0, 3: 22.0}, {1: 9.0, 2: 29.0, 3: 19.0})
    Interval(mean=2.0, half=2.484..., count=3)
    """
    return Interval.of(differences(a, b))


def chance_above(values: Sequence[float], limit: float = 0.0) -> float:
    """How likely a mean at least as far above `limit` is, if the true mean is `limit`: Student's t, one-sided.

    Fewer than two values say nothing, and that is 1. Values that are all the same leave no room for luck: 0 above the
    limit, else 1.

    >>> round(chance_above([1.0, 2.0, 3.0]), 3), chance_above([1.0]), chance_above([2.0, 2.0], limit=1.0)
    (0.037, 1.0, 0.0)
    """
    if len(values) < 2:  # noqa: PLR2004
        return 1.0
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    if variance == 0.0:
        return 0.0 if mean > limit else 1.0
    t = (mean - limit) / math.sqrt(variance / len(values))
    return (1.0 - t_probability(t, len(values) - 1)) / 2


def chance_apart(values: Sequence[float]) -> float:
    """The same for a mean that is as far from 0 on either side: two-sided.

    >>> round(chance_apart([1.0, 2.0, 3.0]), 3), chance_apart([0.0, 0.0])
    (0.074, 1.0)
    """
    return min(1.0, 2 * min(chance_above(values), chance_above([-value for value in values])))


def holm(chances: Mapping[Label, float]) -> dict[Label, float]:
    """Chances of several tests, such that rejecting all below a level errs at all with at most that probability.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979):
    the smallest of n counts n times, the next one n - 1 times, and none less than one before it.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted, least = {}, 0.0
    for done, label in enumerate(sorted(chances, key=lambda label: chances[label])):
        least = max(least, min(1.0, chances[label] * (len(chances) - done)))
        adjusted[label] = least
    return adjusted


@dataclass(frozen=True)
class Best:
    """Who is best at something."""

    labels: frozenset[str] = frozenset()
    """Those who are; nobody where nobody stands out."""
    sure: bool = False
    """Whether the paired differences tell everybody else apart from the best mean."""


def best(
    values: Mapping[str, BySeed],
    better: Literal["higher", "lower", "neither"],
    *,
    margin: float = 0.0,
    least: float = 0.0,
) -> Best:
    """Who is best: those from the best mean on whom nobody is significantly better than, within a margin.

    Going from the best mean to the worst, the first one ends the list

    * whose mean is worse than the best one's by more than the margin, or
    * than whom another is significantly better: the paired differences of all pairs, two-sided t, Holm's method over
      the pairs, 5 % for all together.

    Nobody stands after one that is out, so that noise is no merit. Nobody is best at what has no better direction,
    alone, or where all are within the margin and cannot be told apart.

    Args:
        values: Of each contender the numbers by seed.
        better: Which direction is.
        margin: How much worse a mean may be, as a part of the best one.
        least: The least difference of means that counts at all; also the least margin.

    >>> a, b, c = {1: 1.0, 2: 2.0, 3: 3.0}, {1: 1.01, 2: 1.98, 3: 3.02}, {1: 5.1, 2: 6.0, 3: 6.9}
    >>> found = best({"a": a, "b": b, "c": c}, "lower", margin=0.05)
    >>> sorted(found.labels), found.sure
    (['a', 'b'], True)
    """
    means = {label: Interval.of(of.values()).mean for label, of in values.items()}
    means = {label: mean for label, mean in means.items() if not math.isnan(mean)}
    if better == "neither" or len(means) < 2:  # noqa: PLR2004
        return Best()
    order = sorted(means, key=lambda label: means[label], reverse=better == "higher")
    first = order[0]
    worse = {label: abs(means[label] - means[first]) for label in order}
    tested = holm(
        {pair: chance_apart(differences(values[pair[0]], values[pair[1]])) for pair in combinations(order, 2)}
    )
    apart = {pair for pair, chance in tested.items() if chance < LEVEL and worse[pair[1]] - worse[pair[0]] >= least}
    allowed = max(margin * abs(means[first]), least)
    starred = [first]
    for label in order[1:]:
        if worse[label] > allowed or any((other, label) in apart for other in order):
            break
        starred.append(label)
    others = order[len(starred) :]
    if not others:
        return Best()
    return Best(frozenset(starred), all((first, label) in apart for label in others))
