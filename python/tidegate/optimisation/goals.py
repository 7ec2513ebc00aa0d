"""What is sought, and what has to hold: `utilisation`, `delay_p95 < 150ms`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Self

from tidegate.errors import InputError, located
from tidegate.query import Condition, Series, parse
from tidegate.results.metrics import Metric
from tidegate.results.stats import Interval

Numbers = Mapping[str, Sequence[float | None]]
"""A number of each case (of a scenario there is one, without a name), seed by seed."""


@dataclass(frozen=True)
class Goal:
    """What is to be as high or as low as can be: the mean over seeds, and over the cases of a suite."""

    text: str
    """As it was typed."""
    series: Series
    """The number."""
    best: str
    """Which direction is sought, `highest` or `lowest`."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric]) -> Self:
        """Reads `[highest | lowest] [OF] METRIC`.

        Raises:
            InputError: says what was found and what would be right.
        """
        wrong = f"--for: found {text!r}; expected a metric, such as utilisation, or 'lowest delay_p95'"
        tree = parse(text, wrong)
        name = tree.parts[0] if tree.kind == "best" else tree
        if name.kind != "name":
            raise InputError(wrong)
        with located("--for"):
            series = Series.named(name, catalogue)
        usual = {"higher": "highest", "lower": "lowest"}.get(series.metric.better)
        best = tree.words[0] if tree.kind == "best" else usual
        if best is None:
            choice = f"say 'highest {name.words[0]}' or 'lowest {name.words[0]}'"
            raise InputError(f"--for {text!r}: neither direction of it is better; {choice}")
        return cls(" ".join(text.split()), series, best)

    def value(self, numbers: Numbers) -> float | None:
        """The value of a try; none where a case or a run has none."""
        return _mean([_mean(some) for some in numbers.values()])

    def interval(self, numbers: Numbers) -> Interval:
        """The mean with its interval over seeds."""
        return Interval.of([_mean(column) for column in zip(*numbers.values(), strict=True)])

    def better(self, one: float, other: float) -> bool:
        """Whether one value is better than another."""
        return one > other if self.best == "highest" else one < other


@dataclass(frozen=True)
class Limit:
    """What has to hold: of the mean over seeds, in every case of a suite."""

    text: str
    """As it was typed."""
    condition: Condition
    """What it asks."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric]) -> Self:
        """Reads `[OF] METRIC < AMOUNT` or `[OF] METRIC > AMOUNT`.

        Raises:
            InputError: says what was found and what would be right.
        """
        wrong = f"--subject-to: found {text!r}; expected something like 'delay_p95 < 150ms', 'loss < 2%'"
        tree = parse(text, wrong)
        pairs = list(tree.pairs)
        if len(pairs) != 1 or pairs[0][0].kind != "name" or not {"<", "<=", ">", ">="}.issuperset(tree.words):
            raise InputError(wrong)
        with located(f"--subject-to {text!r}"):
            return cls(" ".join(text.split()), Condition.level(*pairs[0], catalogue))

    @property
    def series(self) -> Series:
        """The number."""
        return self.condition.series

    def worst(self, numbers: Numbers) -> Interval:
        """The mean over seeds in the case in which it is furthest beyond."""
        cases = [Interval.of(some) for some in numbers.values()]
        if not all(case.count for case in cases):
            return Interval.of([])
        return (max if self.condition.below else min)(cases, key=lambda case: case.mean)

    def over(self, numbers: Numbers) -> float:
        """By how much of the bound it is not held; not above zero where it is.

        A number that is not there (the delay where nothing arrives) is not held by as much as the bound.
        """
        worst = self.worst(numbers)
        return 0.0 - self.condition.room(worst.mean) if worst.count else 1.0


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known and len(known) == len(values) else None
