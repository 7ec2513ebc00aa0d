"""Rules of a check, which say when a metric is worse: `delay_p95 > +5% and > +10ms`."""

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
    "without_picture > +25% and > +1s",
)
"""Rules of a check for which none are given.

The limits are ours. The relative ones: people who tune controllers talk about changes of 5 % of delay or rate. The
absolute ones leave out changes that are small beside what a call can bear (`tidegate.results.quality`: 150 ms one way,
1 % of loss): 10 ms is a fifteenth of the first, half a point is half of the second.
"""

_FORMS = "'delay_p95 > +5% and > +10ms', 'utilisation < -5%', 'tcp rate < -20% in 5.6*'"


@dataclass(frozen=True)
class Rule:
    """A metric that must not become worse than the baseline by more than *all* of its limits."""

    text: str
    """The rule as it was written."""
    metric: Metric
    """The metric that is compared."""
    sign: int
    """1 if a larger number is worse, -1 if a smaller number is worse."""
    limits: tuple[Condition, ...]
    """Limits of the change; the metric is worse where all of them are exceeded."""
    scope: str = "worst"
    """Scope of the number: the `worst`, `mean` or `sum` of a run's contenders, or the name of a flow."""
    cases: tuple[str, ...] = ("*",)
    """Patterns of the names of cases that the rule is about."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric] = METRICS) -> Self:
        """Reads a rule.

        Args:
            text: `[worst | mean | sum | FLOW] METRIC > +LIMIT [and > +LIMIT] [in CASE,...]`; with `<` and `-` for a
                metric that must not fall. A limit in per cent is relative to the baseline; a limit with a unit is a
                difference (`pp`, percentage points, for shares). `change(METRIC) > LIMIT` says the same without the
                sign.
            catalogue: Metrics by name.

        Raises:
            InputError: when the text is not a rule; says what was found and what would be right.

        >>> rule = Rule.parse("delay_p95 > +5% and > +10ms")
        >>> rule.metric.name, [(limit.size, limit.relative) for limit in rule.limits]
        ('one_way_delay_ms_p95', [(0.05, True), (10.0, False)])
        >>> rule.limits == Rule.parse("change(delay_p95) > 5% and change(delay_p95) > 10ms").limits
        True
        """
        syntax_error = f"--fail-if: found {text!r}; expected a rule such as {_FORMS}"
        normalised = " ".join(text.split())
        condition, _, cases = normalised.partition(" in ")
        if {"<", ">"} & {*cases}:
            raise InputError(syntax_error)
        tree = parse(condition, syntax_error)
        with located(f"--fail-if {text!r}"):
            parts = tree.parts if tree.kind == "and" else (tree,)
            limits = tuple(Condition.worsening(part, catalogue) for part in parts)
            series, sign = _series_and_sign(limits)
        patterns = tuple(name.strip() for name in (cases or "*").split(","))
        return cls(normalised, series.metric, sign, limits, series.scope or "worst", patterns)

    @property
    def series(self) -> str:
        """Name of the rule's series in a baseline: `worst one_way_delay_ms_p95`."""
        return f"{self.scope} {self.metric.name}"

    def is_about(self, case: str) -> bool:
        """Whether the rule is about a case of this name."""
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in self.cases)

    def excess(self, baseline: float, now: float) -> tuple[float, ...]:
        """Excess of one pair of runs over each limit, in the summary's units; negative within the limit."""
        worse = self.sign * (now - baseline)
        return tuple(worse - limit.size * (abs(baseline) if limit.relative else 1.0) for limit in self.limits)


def _series_and_sign(limits: tuple[Condition, ...]) -> tuple[Series, int]:
    """The series (a metric with its scope) of all limits, and the sign of a change for the worse: 1 or -1.

    A limit is the condition under which the rule fails: with `<`, smaller numbers are worse, so that the sign is -1.

    Raises:
        InputError: when limits are of several series or in two directions, or would fail for an improvement.
    """
    (series, *others), senses = {limit.series for limit in limits}, {limit.sense for limit in limits}
    if others:
        raise InputError("the rule has limits for several metrics or scopes; expected a rule for each")
    if len(senses) > 1:
        raise InputError("the rule has limits in both directions; expected a rule for each direction")
    metric, sign = series.metric, -1 if "<" in senses else 1
    if metric.better == ("higher" if sign > 0 else "lower"):
        raise InputError(f"{metric.label}: {metric.better} is better, so this rule would fail for an improvement")
    return series, sign
