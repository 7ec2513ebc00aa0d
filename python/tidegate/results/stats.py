"""Means over seeds with 95 % Student-t intervals, paired differences, and the contenders that are best by them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal, TypeAlias, TypeVar

Label = TypeVar("Label", bound=Hashable)

BySeed: TypeAlias = Mapping[int, float | None]
"""A number of several runs by seed; `None` where a run has no value."""

LEVEL = 0.05
"""Probability, at most, that a row of a table shows a difference between contenders that are the same: 1 in 20."""

_CARRIED = 0.5
"""Part of the possible rate that a contender needs, so that its delay, loss and time without a picture can be compared:
an idle sender has none of them. The value is ours: below half, a low rate is no longer a price that is paid for low
delay."""

_LOST = 0.1
"""Loss above which a contender's rate says nothing of the possible rate, because it sent too much
(draft-ietf-rmcat-gcc-02 section 6: a sender has to decrease above 10 %)."""


def could_carry(
    carried: Mapping[str, float], losses: Mapping[str, float], bound: float = math.inf
) -> tuple[float, float]:
    """Returns the possible rate, and the rate from which on delay, loss and time without a picture are compared.

    The possible rate is the highest one among the contenders that did not lose too much, or among all if all did.

    Args:
        carried: Rate (or share) of each contender, all in one unit.
        losses: Part of the packets that each contender lost; NaN where it is unknown.
        bound: Upper bound of the possible rate.

    >>> could_carry({"gcc": 2.0, "flood": 3.0, "idle": 0.1}, {"gcc": 0.01, "flood": 0.4, "idle": 0.0})
    (2.0, 1.0)
    """
    sound = [value for name, value in carried.items() if not losses[name] > _LOST]
    capacity = min(max(sound or carried.values(), default=0.0), bound)
    return capacity, _CARRIED * capacity


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
    """Half-width of the 95 % interval (`mean` ± `half`); `None` with fewer than two runs."""
    count: int
    """Number of runs that have a value."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Interval:
        """Computes the mean and its interval; leaves out None, NaN and infinite values.

        >>> Interval.of([1.0, 2.0, 3.0, None])
        Interval(mean=2.0, half=2.484..., count=3)
        """
        present = [float(value) for value in values if value is not None and math.isfinite(value)]
        count = len(present)
        if not present:
            return cls(math.nan, None, 0)
        mean = math.fsum(present) / count
        if count == 1:
            return cls(mean, None, 1)
        variance = math.fsum((value - mean) ** 2 for value in present) / (count - 1)
        return cls(mean, t_quantile(count - 1) * math.sqrt(variance / count), count)


def differences(a: BySeed, b: BySeed) -> list[float]:
    """Differences `a - b` for each seed at which both have a finite value, in order of seeds.

    The same seed is the same luck, so the part that both owe to luck cancels in the difference.

    >>> differences({1: 5.0, 2: 7.0, 3: None}, {1: 4.0, 2: 5.0, 3: 9.0, 4: 1.0})
    [1.0, 2.0]
    """
    pairs = ((a[seed], b[seed]) for seed in sorted(a.keys() & b.keys()))
    return [x - y for x, y in pairs if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)]


def paired(a: BySeed, b: BySeed) -> Interval:
    """Mean of `a - b` over the seeds that both have, with its 95 % interval.

    >>> paired({1: 10.0, 2: 31.0, 3: 22.0}, {1: 9.0, 2: 29.0, 3: 19.0})
    Interval(mean=2.0, half=2.484..., count=3)
    """
    return Interval.of(differences(a, b))


def chance_above(values: Sequence[float], limit: float = 0.0) -> float:
    """Probability of a mean at least as far above `limit` if the true mean is `limit`: Student's t, one-sided.

    It is 1 for fewer than two values, which say nothing. If all values are the same, luck is excluded: 0 above the
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
    """Probability of a mean at least as far from 0 on either side if the true mean is 0: Student's t, two-sided.

    >>> round(chance_apart([1.0, 2.0, 3.0]), 3), chance_apart([0.0, 0.0])
    (0.074, 1.0)
    """
    return min(1.0, 2 * min(chance_above(values), chance_above([-value for value in values])))


def holm(chances: Mapping[Label, float]) -> dict[Label, float]:
    """Adjusts the p-values of several tests: rejecting all below a level errs with at most that probability.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979):
    the smallest of n is multiplied by n, the next one by n - 1, and none becomes less than the one before it.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted, minimum = {}, 0.0
    for index, label in enumerate(sorted(chances, key=lambda label: chances[label])):
        minimum = max(minimum, min(1.0, chances[label] * (len(chances) - index)))
        adjusted[label] = minimum
    return adjusted


@dataclass(frozen=True)
class Best:
    """The contenders that are best by a number."""

    labels: frozenset[str] = frozenset()
    """Keys of the best contenders; empty where no contender stands out."""
    sure: bool = False
    """Whether the paired differences tell all other contenders apart from the best mean."""


def best(
    values: Mapping[str, BySeed],
    better: Literal["higher", "lower", "neither"],
    *,
    margin: float = 0.0,
    least: float = 0.0,
) -> Best:
    """Finds the contenders that tie for best: no other is better by more than the margin, or significantly better.

    The list goes from the best mean to the worst, and ends before the first contender

    * whose mean is worse than the best mean by more than the margin, or
    * that another contender beats significantly: paired differences of all pairs, two-sided t, Holm's method over the
      pairs, 5 % for all pairs together.

    No contender is listed after that one, so a noisy contender gains nothing by its wide interval. The list is empty
    for a number without a better direction, for a single contender, and where no contender falls out.

    Args:
        values: Numbers by seed of each contender.
        better: The better direction.
        margin: Tolerated distance from the best mean, as a fraction of it.
        least: Minimum difference of means that counts at all; also the minimum margin.

    >>> a, b, c = {1: 1.0, 2: 2.0, 3: 3.0}, {1: 1.01, 2: 1.98, 3: 3.02}, {1: 5.1, 2: 6.0, 3: 6.9}
    >>> leaders = best({"a": a, "b": b, "c": c}, "lower", margin=0.05)
    >>> sorted(leaders.labels), leaders.sure
    (['a', 'b'], True)
    """
    means = {label: Interval.of(by_seed.values()).mean for label, by_seed in values.items()}
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
        if worse[label] > allowed or any((rival, label) in apart for rival in order):
            break
        starred.append(label)
    others = order[len(starred) :]
    if not others:
        return Best()
    return Best(frozenset(starred), all((first, label) in apart for label in others))
