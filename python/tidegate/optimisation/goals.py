"""What is sought, and what has to hold: `utilisation`, `delay_p95 < 150ms`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, Self

from tidegate.errors import InputError
from tidegate.results.metrics import Metric
from tidegate.results.metrics.asked import amount, find
from tidegate.results.stats import Interval

_WHAT = r"(?:(?P<of>[A-Za-z][\w.-]*)\s+)?(?P<metric>[A-Za-z]\w*)"
_GOAL = re.compile(rf"\s*(?:(?P<best>highest|lowest)\s+)?{_WHAT}\s*")
_LIMIT = re.compile(rf"\s*{_WHAT}\s*(?P<sense><=?|>=?)\s*(?P<amount>[^\s<>].*?)\s*")

Numbers = Mapping[str, Sequence[float | None]]
"""A number of each case (of a scenario there is one, without a name), seed by seed."""


@dataclass(frozen=True)
class Series:
    """A number of a run."""

    metric: Metric
    """What it is."""
    of: str | None
    """Of which flow, or how several contenders of a suite count; the subject, or the worst, by default."""

    @property
    def name(self) -> str:
        """How it is kept: `call one_way_delay_ms_p95`."""
        return f"{self.of} {self.metric.name}" if self.of else self.metric.name

    @property
    def label(self) -> str:
        """For people."""
        label = f"{self.of}: {self.metric.label}" if self.of else self.metric.label
        return label[:1].upper() + label[1:]

    @property
    def head(self) -> str:
        """With its unit."""
        return f"{self.label} ({self.metric.unit})" if self.metric.unit else self.label


@dataclass(frozen=True)
class Goal:
    """What is to be as high or as low as can be: the mean over seeds, and over the cases of a suite."""

    text: str
    """As it was typed."""
    series: Series
    """The number."""
    best: Literal["highest", "lowest"]
    """Which direction is sought."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric]) -> Self:
        """Reads `[highest | lowest] [OF] METRIC`.

        Raises:
            InputError: says what was found and what would be right.
        """
        match = _GOAL.fullmatch(text)
        if match is None:
            raise InputError(f"--for: found {text!r}; expected a metric, such as utilisation, or 'lowest delay_p95'")
        series = _series("--for", match["metric"], match["of"], catalogue)
        usual = {"higher": "highest", "lower": "lowest"}.get(series.metric.better)
        best = match["best"] or usual
        if best is None:
            name = match["metric"]
            raise InputError(
                f"--for {text!r}: neither direction of it is better; say 'highest {name}' or 'lowest {name}'"
            )
        return cls(" ".join(text.split()), series, "highest" if best == "highest" else "lowest")

    def value(self, numbers: Numbers) -> float | None:
        """The value of a try; none where a case or a run has none."""
        cases = [_mean(some) for some in numbers.values()]
        known = [one for one in cases if one is not None]
        return fsum(known) / len(known) if known and len(known) == len(cases) else None

    def interval(self, numbers: Numbers) -> Interval:
        """The mean with its interval over seeds."""
        every = [_mean(column) for column in zip(*numbers.values(), strict=True)]
        return Interval.of(every)

    def better(self, one: float, other: float) -> bool:
        """Whether one value is better than another."""
        return one > other if self.best == "highest" else one < other


@dataclass(frozen=True)
class Limit:
    """What has to hold: of the mean over seeds, in every case of a suite."""

    text: str
    """As it was typed."""
    series: Series
    """The number."""
    below: bool
    """Whether it has to be below, and not above."""
    bound: float
    """The bound, in the summary's units."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric]) -> Self:
        """Reads `[OF] METRIC < AMOUNT` or `[OF] METRIC > AMOUNT`.

        Raises:
            InputError: says what was found and what would be right.
        """
        match = _LIMIT.fullmatch(text)
        if match is None:
            raise InputError(f"--subject-to: found {text!r}; expected something like 'delay_p95 < 150ms', 'loss < 2%'")
        series = _series("--subject-to", match["metric"], match["of"], catalogue)
        try:
            bound = amount(match["amount"], series.metric)
        except InputError as error:
            raise InputError(f"--subject-to {text!r}: {error}") from None
        return cls(" ".join(text.split()), series, match["sense"].startswith("<"), bound)

    def worst(self, numbers: Numbers) -> Interval:
        """The mean over seeds in the case in which it is furthest beyond."""
        cases = [Interval.of(some) for some in numbers.values()]
        if not all(one.count for one in cases):
            return Interval.of([])
        return (max if self.below else min)(cases, key=lambda one: one.mean)

    def over(self, numbers: Numbers) -> float:
        """By how much of the bound it is not held; not above zero where it is.

        A number that is not there (the delay where nothing arrives) is not held by as much as the bound.
        """
        worst = self.worst(numbers)
        if not worst.count:
            return 1.0
        beyond = worst.mean - self.bound if self.below else self.bound - worst.mean
        return beyond / (abs(self.bound) or 1.0)


def _series(option: str, name: str, of: str | None, catalogue: Mapping[str, Metric]) -> Series:
    try:
        return Series(find(name, catalogue), of)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known and len(known) == len(values) else None
