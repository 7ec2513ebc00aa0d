"""Verdicts: a rule and the numbers of a cell, held against each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from tidegate.errors import did_you_mean
from tidegate.query import Condition, Series
from tidegate.results.stats import Interval
from tidegate.suite import numbers
from tidegate.suite.model import RuleTable


@dataclass(frozen=True)
class Check:
    """One rule in one cell."""

    rule: RuleTable
    """The rule."""
    value: Interval
    """The number's mean over seeds with its 95 % interval."""
    missing: tuple[int, ...] = ()
    """Seeds whose run has no such number."""

    @cached_property
    def limits(self) -> tuple[Condition, ...]:
        """The limits of the rule."""
        return limits(self.rule)

    @property
    def passed(self) -> bool:
        """Whether every seed has the number, and their mean is within the limits."""
        return self.slack >= 0

    @property
    def close(self) -> bool:
        """Whether a limit lies within the interval: with other seeds the rule could come out otherwise."""
        half = self.value.half or 0.0
        return any(abs(self.value.mean - limit.bound) < half for limit in self.limits)

    @property
    def slack(self) -> float:
        """Distance of the number from its nearer limit, as a part of that limit; negative where it is broken.

        It is minus infinity for a missing number.
        """
        if self.missing or not self.value.count:
            return -math.inf
        return min(limit.room(self.value.mean) for limit in self.limits)

    @property
    def beyond(self) -> str:
        """By how much a limit is broken, in words; nothing where it is not."""
        if self.passed:
            return ""
        if self.slack == -math.inf:
            return "the number is missing"
        value = self.value.mean
        broken = min(self.limits, key=lambda limit: limit.room(value))
        if broken.bound <= 0 or value < 0:
            return f"{_show(self.rule, abs(value - broken.bound))} {'too much' if broken.below else 'too little'}"
        times = value / broken.bound
        if not broken.below:
            return f"{100 * value / broken.bound:.0f} % of the limit"
        return f"{times:.1f} times the limit" if times > 2 else f"{100 * (times - 1):.0f} % over the limit"  # noqa: PLR2004

    @property
    def text(self) -> str:
        """The number beside its limit: `delay, 95th percentile 812 ms, at most 400 ms`."""
        label = numbers.metric_of(self.rule.metric).label
        label += f" relative to {self.rule.relative_to}" if self.rule.relative_to else ""
        if self.missing:
            return f"{label}: no value with seed {', '.join(str(seed) for seed in self.missing)}"
        return f"{label} {self.marked}, {self.limit}"

    @property
    def shown(self) -> str:
        """The number with its unit."""
        return _show(self.rule, self.value.mean)

    @property
    def shown_interval(self) -> str:
        """The number with its 95 % interval and its unit: `2.23 ± 0.31 %`."""
        half = self.value.half
        return self.shown if half is None else _show(self.rule, self.value.mean, half=half)

    @property
    def marked(self) -> str:
        """The number with its interval, and with `≈` where it is close to a limit: `2.23 ± 0.31 % ≈`."""
        return f"{self.shown_interval} ≈" if self.close else self.shown_interval

    @property
    def interval(self) -> str:
        """Half of its 95 % interval, with the unit; nothing with one seed."""
        return "" if self.value.half is None else _show(self.rule, self.value.half)

    @property
    def limit(self) -> str:
        """The limits in words."""
        return limit(self.rule)


def limits(rule: RuleTable) -> tuple[Condition, ...]:
    """Returns the limits of a rule as conditions: `loss_fraction <= 2%`."""
    series = Series(numbers.metric_of(rule.metric), rule.of)
    relative = rule.relative_to is not None
    return tuple(
        Condition(series, sense, bound, relative=relative)
        for sense, bound in ((">=", rule.at_least), ("<=", rule.at_most))
        if bound is not None
    )


def limit(rule: RuleTable) -> str:
    """Returns the limits of a rule in words: `at least 0.5 Mbit/s and at most 2 Mbit/s`."""
    words = ("at least", "at most")
    return " and ".join(f"{words[condition.below]} {_show(rule, condition.bound, '.6g')}" for condition in limits(rule))


def _show(rule: RuleTable, value: float, form: str | None = None, *, half: float | None = None) -> str:
    about = numbers.metric_of(rule.metric)
    scale, digits, unit = (1.0, 2, "times") if rule.relative_to else (about.scale, about.digits, about.unit)
    form = form or f".{digits}f"
    interval = "" if half is None else f" ± {half * scale:{form}}"
    return f"{value * scale:{form}}{interval} {unit}".strip()


def is_for_case(rule: RuleTable, case: str) -> bool:
    """Whether a rule is for a case, with some controller."""
    return any(fnmatchcase(case, glob) for glob in rule.cases)


def applies(rule: RuleTable, case: str, controller: str) -> bool:
    """Whether a rule is for a cell."""
    return is_for_case(rule, case) and any(fnmatchcase(controller, glob) for glob in rule.controllers)


def check(rule: RuleTable, rows: Mapping[int, numbers.Row], beside: Mapping[int, numbers.Row] | None) -> Check:
    """Compares the runs of a cell with a rule.

    Args:
        rule: The rule.
        rows: The runs by seed.
        beside: Those of the case that the rule is relative to.
    """
    values = {seed: value(rule, row, None if beside is None else beside.get(seed)) for seed, row in rows.items()}
    missing = tuple(seed for seed, number in values.items() if number is None)
    return Check(rule, Interval.of(values.values()), missing)


def value(rule: RuleTable, row: numbers.Row, beside: numbers.Row | None) -> float | None:
    """The number that a rule is about in one run."""
    number = numbers.number(row, rule.metric, rule.of)
    if rule.relative_to is None:
        return number
    reference = None if beside is None else numbers.number(beside, rule.metric, rule.of)
    return number / reference if number is not None and reference else None


def problems(rule: RuleTable, flows: set[str] | None = None) -> Iterator[tuple[str, str]]:
    """Returns the problems of a rule: the key, and a sentence.

    Args:
        rule: The rule.
        flows: Names of the flows of the suite's scenarios, if they are known.
    """
    names = numbers.names()
    if rule.metric not in names:
        hint = did_you_mean(rule.metric, names) or "; tidegate suite metrics lists them"
        yield "metric", f"found {rule.metric}; expected a metric{hint}"
        return
    if rule.at_least is None and rule.at_most is None:
        yield "at_least", "is missing, and so is at_most; expected at least one of them"
    elif rule.at_least is not None and rule.at_most is not None and rule.at_least > rule.at_most:
        yield "at_least", f"found {rule.at_least:g}, which is above at_most ({rule.at_most:g})"
    if flows is not None and rule.of not in {None, *numbers.WORDS} and not str(rule.of).startswith(tuple(flows)):
        hint = did_you_mean(str(rule.of), (*numbers.WORDS, *sorted(flows)))
        yield "of", f"found {rule.of}{hint}; expected worst, mean, sum, or the name of a flow"
    if rule.of in (None, "worst") and numbers.metric_of(rule.metric).better == "neither":
        yield (
            "of",
            f"is missing: neither a high nor a low {rule.metric} is better; expected mean, sum, or the name of a flow",
        )
