"""Means over seeds with 95 % Student-t intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal


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


def best(cells: Mapping[str, Interval], better: Literal["higher", "lower", "neither"]) -> frozenset[str]:
    """The labels with the best mean, and all whose interval overlaps with that of the best.

    Nobody is best at what has no better direction, alone, or where nobody can be told apart.

    >>> near, far = Interval(1.0, 0.2, 5), Interval(3.0, 0.2, 5)
    >>> sorted(best({"a": near, "b": Interval(1.1, 0.2, 5), "c": far}, "lower"))
    ['a', 'b']
    >>> best({"a": near, "c": far}, "higher")
    frozenset({'c'})
    """
    known = {label: one for label, one in cells.items() if one.count}
    if better == "neither" or len(known) < 2:  # noqa: PLR2004
        return frozenset()
    pick = max if better == "higher" else min
    first = known[pick(known, key=lambda label: known[label].mean)]
    labels = frozenset(
        label for label, one in known.items() if abs(one.mean - first.mean) <= (one.half or 0.0) + (first.half or 0.0)
    )
    return labels if len(labels) < len(known) else frozenset()
