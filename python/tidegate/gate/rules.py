"""When a metric is worse: `delay_p95 > +5% and > +10ms`."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tidegate.errors import InputError, located
from tidegate.query import Condition, Series, parse
from tidegate.results.metrics import METRICS, Metric

DEFAULT = (
    "delay_p95 > +5% and > +10ms",
    "mean utilisation < -5% and < -1pp",
    "loss > +10% and > +0.5pp",
    "freeze_time > +25% and > +1s",
)
"""What is asked where nobody says what to ask.

The limits are ours. The relative ones: who tunes a controller talks about a change of 5 % of delay or rate. The
absolute ones keep what nobody notices out of it, beside what a call can live with (`tidegate.results.quality`: 150 ms
one way, 1 % of loss): 10 ms is a fifteenth of the first, half a point is half of the second.
"""

_FORMS = "'delay_p95 > +5% and > +10ms', 'utilisation < -5%', 'tcp rate < -20% in 5.6*'"


@dataclass(frozen=True)
class Rule:
    """A metric that must not become worse than the baseline by more than *all* of its limits."""

    text: str
    """As it was written."""
    metric: Metric
    """What is looked at."""
    sign: int
    """1 where larger is worse, -1 where smaller is."""
    limits: tuple[Condition, ...]
    """Changes; it is worse where each of them is exceeded."""
    of: str = "worst"
    """How the contenders of one run count: the `worst` of them, their `mean`, their `sum`; or the name of a flow."""
    cases: tuple[str, ...] = ("*",)
    """Patterns of the names of cases that it is about."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric] = METRICS) -> Self:
        """Reads a rule.

        Args:
            text: `[worst | mean | sum | FLOW] METRIC > +LIMIT [and > +LIMIT] [in CASE,...]`; with `<` and `-` for what
                must not fall. A limit in per cent is relative to the baseline, one with a unit is a difference (of
                shares `pp`, points of per cent). `change(METRIC) > LIMIT` says the same without the sign.
            catalogue: The metrics that there are.

        Raises:
            InputError: says what was found and what would be right.

        >>> rule = Rule.parse("delay_p95 > +5% and > +10ms")
        >>> rule.metric.name, [(limit.size, limit.relative) for limit in rule.limits]
        ('one_way_delay_ms_p95', [(0.05, True), (10.0, False)])
        >>> rule.limits == Rule.parse("change(delay_p95) > 5% and change(delay_p95) > 10ms").limits
        True
        """
        wrong = f"--fail-if: found {text!r}; expected something like {_FORMS}"
        plain = " ".join(text.split())
        asked, _, cases = plain.partition(" in ")
        if {"<", ">"} & {*cases}:
            raise InputError(wrong)
        tree = parse(asked, wrong)
        with located(f"--fail-if {text!r}"):
            parts = tree.parts if tree.kind == "and" else (tree,)
            limits = tuple(Condition.worsening(part, catalogue) for part in parts)
            series, sign = _about(limits)
        patterns = tuple(name.strip() for name in (cases or "*").split(","))
        return cls(plain, series.metric, sign, limits, series.of or "worst", patterns)

    @property
    def series(self) -> str:
        """What of a run it looks at, as baselines name it: `worst one_way_delay_ms_p95`."""
        return f"{self.of} {self.metric.name}"

    def is_about(self, case: str) -> bool:
        """Whether it is about a case."""
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in self.cases)

    def excess(self, baseline: float, now: float) -> tuple[float, ...]:
        """By how much one pair of runs exceeds each limit, in the summary's units; negative where it does not."""
        worse = self.sign * (now - baseline)
        return tuple(worse - limit.size * (abs(baseline) if limit.relative else 1.0) for limit in self.limits)


def _about(limits: tuple[Condition, ...]) -> tuple[Series, int]:
    """What limits are about, and in which direction it becomes worse.

    Raises:
        InputError: when they are of several numbers or in two directions, or of what becomes better.
    """
    (series, *others), senses = {limit.series for limit in limits}, {limit.sense for limit in limits}
    if others:
        raise InputError("is about several numbers; expected one, and a rule for each")
    if len(senses) > 1:
        raise InputError("has limits in both directions; expected one direction, and two rules for two")
    metric, sign = series.metric, -1 if "<" in senses else 1
    if metric.better == ("higher" if sign > 0 else "lower"):
        raise InputError(f"{metric.label}: {metric.better} is better, so this would fail for what became better")
    return series, sign
