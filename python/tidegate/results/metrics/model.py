"""Metrics: the numbers of a summary and their format."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tidegate.results.stats import Best, BySeed, Interval, best

_MORE_DIGITS = 3
"""Largest number of digits beyond those of a metric that a small interval adds."""

Better = Literal["higher", "lower", "neither"]

MARGIN = 0.05
"""Difference from the best mean, as a fraction of it, that does not matter in practice: people cannot tell apart two
networks that differ by a twentieth. The value is ours."""

_SMALLEST_DIFFERENCES = {"ms": 1.0, "s": 0.2, "%": 0.1}
"""Smallest difference that matters in practice, by the unit in which a metric is shown: the queueing delay that a
low-latency queue aims at (RFC 9332 appendix A), about the shortest time without a picture that counts (150 ms more than
an interval), a tenth of the loss that a call bears (`quality`)."""


@dataclass(frozen=True)
class Metric:
    """One number of a run's summary."""

    name: str
    """Key in the summary, with the unit as suffix."""
    label: str
    """Label in tables and charts."""
    unit: str
    """Unit in which it is shown."""
    better: Better
    """The better direction."""
    definition: str
    """Computation of the metric, with the source of the definition."""
    scale: float = 1.0
    """Factor that converts a value of the summary to `unit`."""
    digits: int = 1
    """Digits after the point."""
    headline: bool = False
    """Whether comparisons show it."""

    def best(self, values: Mapping[str, BySeed]) -> Best:
        """Finds the contenders that tie for best by this metric: see [best][tidegate.results.stats.best].

        The margin is a twentieth of the best mean, but at least one unit of the last digit that is shown, and at least
        1 ms, 0.2 s or 0.1 % for metrics in these units.

        >>> from tidegate.results.metrics import METRICS
        >>> far = {"a": {1: 0.020, 2: 0.021}, "b": {1: 0.0, 2: 0.0}, "c": {1: 0.0003, 2: 0.0004}}
        >>> sorted(METRICS["loss_fraction"].best(far).labels)
        ['b', 'c']
        """
        return best(values, self.better, margin=MARGIN, least=self.least)

    @property
    def least(self) -> float:
        """Smallest difference that matters in practice, in the summary's unit."""
        return max(_SMALLEST_DIFFERENCES.get(self.unit, 0.0), 10.0**-self.digits) / self.scale

    def show(self, value: float | None, *, signed: bool = False, digits: int | None = None) -> str:
        """Formats a value with the metric's digits, without unit; a dash for a missing value.

        Args:
            value: The value in the summary's unit.
            signed: Whether to write a plus sign, as for differences.
            digits: Digits after the point, in place of the metric's.

        >>> from tidegate.results.metrics import METRICS
        >>> METRICS["receive_rate_bps"].show(2_500_000), METRICS["loss_fraction"].show(None)
        ('2.50', '-')
        """
        if value is None or not math.isfinite(value):
            return "-"
        digits = self.digits if digits is None else digits
        return f"{value * self.scale:{'+' if signed else ''}.{digits}f}"

    def digits_of(self, interval: Interval) -> int:
        """Digits after the point of a mean and its interval.

        They are the metric's, and more where the half-width would round to zero: as many as show its first digit, at
        most three more. A half-width of zero needs none.

        >>> from tidegate.results.metrics import METRICS
        >>> [METRICS["one_way_delay_ms_p95"].digits_of(Interval(22.81, half, 5)) for half in (0.2, 0.03, 0.0, None)]
        [1, 2, 1, 1]
        """
        half = (interval.half or 0.0) * self.scale
        digits = range(self.digits, self.digits + _MORE_DIGITS + 1)
        return next((count for count in digits if float(f"{half:.{count}f}") > 0), self.digits)

    def show_interval(self, interval: Interval, *, signed: bool = False) -> str:
        """Formats `mean ± half` in the metric's unit; see [show][tidegate.results.metrics.Metric.show].

        >>> from tidegate.results.metrics import METRICS
        >>> METRICS["receive_rate_bps"].show_interval(Interval(2.5e6, 1e5, 5))
        '2.50 ± 0.10'
        >>> METRICS["one_way_delay_ms_p95"].show_interval(Interval(22.81, 0.03, 5))
        '22.81 ± 0.03'
        """
        digits = self.digits_of(interval)
        text = self.show(interval.mean, signed=signed, digits=digits)
        return text if interval.half is None else f"{text} ± {self.show(interval.half, digits=digits)}"


def catalogue(file: Path) -> dict[str, tuple[Metric, ...]]:
    """Loads the metrics that a TOML file defines, by their table."""
    groups = tomllib.loads(file.read_text("utf-8"))
    return {
        group: tuple(Metric(name, **{"unit": "", **keys}) for name, keys in metrics.items())
        for group, metrics in groups.items()
    }


def finite(value: Any) -> float | None:
    """Value of a metric as a float; `None` where it has no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
