"""Goals and limits of a search: `utilisation`, `delay_p95 < 150ms`."""

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
"""A number by case and seed; a scenario has one case, with an empty name."""


@dataclass(frozen=True)
class Goal:
    """The number to maximise or minimise: a mean over seeds, and over the cases of a suite."""

    text: str
    """As it was typed."""
    series: Series
    """The number."""
    best: str
    """The direction of the search: `highest` or `lowest`."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric]) -> Self:
        """Parses `[highest | lowest] [FLOW | worst | mean | sum] METRIC`.

        Raises:
            InputError: when the text is not a goal; says what was found and what would be right.
        """
        error_text = f"--for: found {text!r}; expected a metric, such as utilisation, or 'lowest delay_p95'"
        tree = parse(text, error_text)
        name = tree.parts[0] if tree.kind == "best" else tree
        if name.kind != "name":
            raise InputError(error_text)
        with located("--for"):
            series = Series.parse(name, catalogue)
        usual = {"higher": "highest", "lower": "lowest"}.get(series.metric.better)
        best = tree.words[0] if tree.kind == "best" else usual
        if best is None:
            choice = f"expected 'highest {name.words[0]}' or 'lowest {name.words[0]}'"
            raise InputError(f"--for {text!r}: neither a high nor a low value is better in general; {choice}")
        return cls(" ".join(text.split()), series, best)

    def value(self, numbers: Numbers) -> float | None:
        """Value of the goal for a try; `None` where a case or a run has none."""
        return _mean_of_all([_mean_of_all(of_case) for of_case in numbers.values()])

    def interval(self, numbers: Numbers) -> Interval:
        """Mean over cases with its interval over seeds."""
        return Interval.of([_mean_of_all(column) for column in zip(*numbers.values(), strict=True)])

    def better(self, value: float, rival: float) -> bool:
        """Whether a value is better than a rival."""
        return value > rival if self.best == "highest" else value < rival


@dataclass(frozen=True)
class Limit:
    """A limit on the mean over seeds, in every case of a suite."""

    text: str
    """As it was typed."""
    condition: Condition
    """The condition that has to hold."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric]) -> Self:
        """Parses `[FLOW | worst | mean | sum] METRIC < AMOUNT`, also with `<=`, `>` or `>=`.

        Raises:
            InputError: when the text is not a limit; says what was found and what would be right.
        """
        error_text = f"--subject-to: found {text!r}; expected a limit such as 'delay_p95 < 150ms', 'loss < 2%'"
        tree = parse(text, error_text)
        pairs = list(tree.pairs)
        if len(pairs) != 1 or pairs[0][0].kind != "name" or not {"<", "<=", ">", ">="}.issuperset(tree.words):
            raise InputError(error_text)
        with located(f"--subject-to {text!r}"):
            return cls(" ".join(text.split()), Condition.level(*pairs[0], catalogue))

    @property
    def series(self) -> Series:
        """The number."""
        return self.condition.series

    def worst(self, numbers: Numbers) -> Interval:
        """Mean over seeds in the case that is furthest beyond the limit."""
        cases = [Interval.of(of_case) for of_case in numbers.values()]
        if not all(case.count for case in cases):
            return Interval.of([])
        return (max if self.condition.below else min)(cases, key=lambda case: case.mean)

    def excess(self, numbers: Numbers) -> float:
        """Excess over the limit as a fraction of the bound; zero or less where the limit holds.

        A missing number (the delay where no packet arrives) counts as an excess of 1.
        """
        worst = self.worst(numbers)
        return 0.0 - self.condition.room(worst.mean) if worst.count else 1.0


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return fsum(present) / len(present) if present and len(present) == len(values) else None
