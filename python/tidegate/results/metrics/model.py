"""A number of a summary, and how it is shown."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tidegate.results.stats import Best, BySeed, Interval, best

Better = Literal["higher", "lower", "neither"]

MARGIN = 0.05
"""Who is worse by less than this part of the best mean is as good in practice: of two networks that are a twentieth
apart nobody would say which is which. Ours."""

_LEAST = {"ms": 1.0, "s": 0.2, "%": 0.1}
"""The least difference that matters in practice, by the unit in which a metric is shown: the queueing delay that a
low-latency queue aims at (RFC 9332 appendix A), about the shortest freeze that is counted (150 ms over a mean gap), a
tenth of the loss that a call bears (`quality`)."""


@dataclass(frozen=True)
class Metric:
    """One number of a run's summary."""

    name: str
    """Its key in the summary, with the unit as suffix."""
    label: str
    """Its name for people."""
    unit: str
    """The unit in which it is shown."""
    better: Better
    """Which direction is better."""
    definition: str
    """How it is computed, with the source of the definition."""
    scale: float = 1.0
    """What a value of the summary is multiplied by to be in `unit`."""
    digits: int = 1
    """Digits after the point."""
    headline: bool = False
    """Whether comparisons show it."""

    def best(self, values: Mapping[str, BySeed]) -> Best:
        """Who is best at it, of contenders with numbers by seed: see [best][tidegate.results.stats.best].

        The margin is a twentieth of the best mean, at least 1 ms, 0.2 s or 0.1 % where it is shown in that unit,
        and the last digit that is shown.

        >>> from tidegate.results.metrics import METRICS
        >>> far = {"a": {1: 0.020, 2: 0.021}, "b": {1: 0.0, 2: 0.0}, "c": {1: 0.0003, 2: 0.0004}}
        >>> sorted(METRICS["loss_fraction"].best(far).labels)
        ['b', 'c']
        """
        return best(values, self.better, margin=MARGIN, least=self.least)

    @property
    def least(self) -> float:
        """The least difference that matters in practice, in the summary's unit."""
        return max(_LEAST.get(self.unit, 0.0), 10.0**-self.digits) / self.scale

    def show(self, value: float | None, *, signed: bool = False) -> str:
        """A value with the metric's digits, without unit; a dash where there is none.

        Args:
            value: In the summary's own unit.
            signed: Whether it is a difference, which has its sign also where that is a plus.

        >>> from tidegate.results.metrics import METRICS
        >>> METRICS["receive_rate_bps"].show(2_500_000), METRICS["loss_fraction"].show(None)
        ('2.50', '-')
        """
        if value is None or not math.isfinite(value):
            return "-"
        return f"{value * self.scale:{'+' if signed else ''}.{self.digits}f}"

    def show_interval(self, interval: Interval, *, signed: bool = False) -> str:
        """`mean ± half` in the metric's unit; see [show][tidegate.results.metrics.Metric.show].

        >>> from tidegate.results.metrics import METRICS
        >>> METRICS["receive_rate_bps"].show_interval(Interval(2.5e6, 1e5, 5))
        '2.50 ± 0.10'
        """
        text = self.show(interval.mean, signed=signed)
        return text if interval.half is None else f"{text} ± {self.show(interval.half)}"


def catalogue(file: Path) -> dict[str, tuple[Metric, ...]]:
    """The metrics that a TOML file defines, by the table that they are in."""
    groups = tomllib.loads(file.read_text("utf-8"))
    return {
        group: tuple(Metric(name, **{"unit": "", **keys}) for name, keys in metrics.items())
        for group, metrics in groups.items()
    }


def finite(value: Any) -> float | None:
    """A metric's value where it has one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
