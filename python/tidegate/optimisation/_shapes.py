"""Shapes of the files in the folder of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from tidegate.errors import InputError, located
from tidegate.optimisation.goals import Goal, Limit
from tidegate.optimisation.space import Setting
from tidegate.results.metrics import Metric
from tidegate.results.shapes import Finite, Seed, Shape, Unbounded


class Question(Shape):
    """The question of a search."""

    settings: list[str]
    goal: str
    limits: list[str]
    seeds: list[Seed]
    scenario: str | None = None
    suite: str | None = None


class SearchShape(Shape):
    """`optimise.json`."""

    name: str
    question: Question
    command: str
    versions: dict[str, str]


class TryShape(Shape):
    """A try of `tries.json`."""

    values: dict[str, str]
    numbers: dict[str, Annotated[dict[str, list[Finite | None]], Field(min_length=1)]]
    goal: Finite | None
    over: list[Unbounded]
    why: str

    def check(
        self, settings: Sequence[Setting], goal: Goal, limits: Sequence[Limit], catalogue: Mapping[str, Metric]
    ) -> None:
        """Checks that the try is one of a search.

        Raises:
            InputError: names what does not fit.
        """
        for setting in settings:
            with located(f"values.{setting.key}"):
                if setting.key not in self.values:
                    raise InputError("is missing")
                if setting.ends:
                    setting.number(self.values[setting.key])
        requested = [goal.series, *(limit.series for limit in limits)]
        for name in self.numbers:
            if name not in catalogue and name not in {series.name for series in requested}:
                raise InputError(f"numbers: found {name}; expected a metric")
        for name, by_case in self.numbers.items():
            if len({len(values) for values in by_case.values()}) > 1:
                raise InputError(f"numbers.{name}: found cases with different numbers of seeds")
        if self.goal is not None and len(self.over) != len(limits):
            raise InputError(f"over: found {len(self.over)} numbers; expected one of each of {len(limits)} limits")


class TriesShape(Shape):
    """`tries.json`."""

    tries: list[TryShape]
    unchanged: TryShape | None
    checked: TryShape | None
    importances: dict[str, Finite]
    again: str
