"""A number of a summary, and how it is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from tidegate.results.stats import Interval

Better = Literal["higher", "lower", "neither"]


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

    def show(self, value: float | None) -> str:
        """A value with the metric's digits, without unit; a dash where there is none.

        >>> from tidegate.metrics import METRICS
        >>> METRICS["receive_rate_bps"].show(2_500_000), METRICS["loss_fraction"].show(None)
        ('2.50', '-')
        """
        if value is None or not math.isfinite(value):
            return "-"
        return f"{value * self.scale:.{self.digits}f}"

    def show_interval(self, interval: Interval) -> str:
        """`mean ± half` in the metric's unit.

        >>> from tidegate.metrics import METRICS
        >>> METRICS["receive_rate_bps"].show_interval(Interval(2.5e6, 1e5, 5))
        '2.50 ± 0.10'
        """
        text = self.show(interval.mean)
        return text if interval.half is None else f"{text} ± {self.show(interval.half)}"


def finite(value: Any) -> float | None:
    """A metric's value where it has one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
