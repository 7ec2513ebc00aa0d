"""Results of a search: its tries, the best of them, and the contents of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tidegate.errors import InputError, located
from tidegate.optimisation._shapes import SearchShape, TriesShape
from tidegate.optimisation.goals import Goal, Limit, Numbers
from tidegate.optimisation.space import Setting, Values
from tidegate.output import csv
from tidegate.output.document import Document
from tidegate.output.notebook import Displayable
from tidegate.query import Series
from tidegate.results.metrics import METRICS
from tidegate.results.saved import Contents, read_json
from tidegate.results.shapes import checked
from tidegate.suite import numbers

OPTIMISE_FILE = "optimise.json"
TRIES_FILE = "tries.json"


@dataclass(frozen=True)
class Try:
    """One try of a search: a combination of settings with the numbers of its runs."""

    values: Values
    """Values of the settings, by key."""
    numbers: Mapping[str, Numbers]
    """Saved numbers by name; each by case and seed."""
    goal: float | None
    """The value of the goal; `None` where the try failed."""
    over: tuple[float, ...] = ()
    """Excess over each limit as a fraction of its bound; zero or less where the limit holds."""
    why: str = ""
    """Reason of a failure."""

    @property
    def held(self) -> bool:
        """Whether all limits hold."""
        return self.goal is not None and all(excess <= 0 for excess in self.over)

    def to_data(self) -> dict[str, Any]:
        """The try as JSON data."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Self:
        """Makes a try from JSON data."""
        fields = {name: data[name] for name in ("values", "numbers", "goal", "over", "why")}
        return cls(**{**fields, "over": tuple(data["over"])})


@dataclass(frozen=True, repr=False)
class SearchResult(Displayable):
    """The results of a search so far."""

    name: str
    """Name of the scenario or suite."""
    settings: tuple[Setting, ...]
    """Settings whose values are searched."""
    goal: Goal
    """The number to maximise or minimise."""
    limits: tuple[Limit, ...]
    """Limits that a valid try has to hold."""
    seeds: tuple[int, ...]
    """The seeds of each try."""
    tries: tuple[Try, ...]
    """All tries, in order."""
    unchanged: Try | None
    """A try without any change of settings."""
    checked: Try | None
    """The best try, run again on seeds by which it was not chosen."""
    importances: Mapping[str, float]
    """Importance of each setting for the goal, by Optuna (PED-ANOVA); they sum to 1."""
    again: str
    """Command that runs the best try."""
    scenario: str
    """The scenario or suite, as TOML."""
    command: str
    """Command of the search, as it was typed."""
    versions: Mapping[str, str]
    """Versions of tidegate and Optuna."""

    def __repr__(self) -> str:
        values = "none that keeps all limits"
        if self.best is not None:
            values = ", ".join(f"{key}={value}" for key, value in self.best.values.items())
        return f"<tidegate SearchResult of {self.name}: {len(self.tries)} tries, the best {values}>"

    def document(self) -> Document:
        """The search as a document, from which all output formats are made."""
        from tidegate.optimisation import document

        return document.document(self)

    @property
    def best(self) -> Try | None:
        """The best try for which all limits hold; the first of equals."""
        return min((tried for tried in self.tries if tried.held), key=self._rank, default=None)

    @property
    def columns(self) -> list[Series]:
        """Series of the tables' columns: the goal, the limits, then other saved numbers."""
        requested = [self.goal.series, *(limit.series for limit in self.limits)]
        names = dict.fromkeys(name for tried in self.tries for name in tried.numbers)
        by_name = {series.name: series for series in requested}
        return [*by_name.values(), *(Series(numbers.metric_of(name), None) for name in names if name not in by_name)]

    @property
    def ranked(self) -> list[Try]:
        """Tries that did not fail, from best to worst; tries for which a limit does not hold come last."""
        return sorted((tried for tried in self.tries if tried.goal is not None), key=self._rank)

    def _rank(self, tried: Try) -> tuple[float, float]:
        """Sort key of a try, the better the lower: the excess over limits, then the goal."""
        goal = tried.goal or 0.0
        return sum(max(0.0, over) for over in tried.over), -goal if self.goal.best == "highest" else goal

    def to_data(self) -> dict[str, Any]:
        """The search as JSON data; numbers are in the summary's units."""
        singled_out = {"best": self.best, "checked": self.checked, "unchanged": self.unchanged}
        return {
            **{name: tried.to_data() if tried else None for name, tried in singled_out.items()},
            "importances": dict(self.importances),
            "tries": [tried.to_data() for tried in self.tries],
        }

    def to_csv(self) -> str:
        """Writes a line for each try: its settings, and the mean of each number over seeds and cases."""
        names = list(dict.fromkeys(name for tried in self.tries for name in tried.numbers))
        rows = []
        for number, tried in enumerate(self.tries, 1):
            means = [_mean_over_cases(tried.numbers.get(name, {})) for name in names]
            values = [tried.values.get(setting.key, "") for setting in self.settings]
            rows.append([number, *values, tried.goal, str(tried.held).lower(), *means, tried.why])
        heads = ["try", *(setting.key for setting in self.settings), "goal", "limits_held", *names, "why"]
        return csv.lines(heads, rows)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Loads the results of a search from its folder, also those of a search that was stopped.

        Raises:
            InputError: when there is no search, it has no try, or it is damaged.
        """
        path = Path(folder)
        contents = Contents(path)
        about = read_json(contents.file(OPTIMISE_FILE))
        if not (path / TRIES_FILE).is_file():
            raise InputError(f"{path}: no try of the search is done")
        tries = read_json(contents.file(TRIES_FILE))
        search = checked(path / OPTIMISE_FILE, about, SearchShape)
        saved = checked(path / TRIES_FILE, tries, TriesShape)
        question = search.question
        catalogue = METRICS if question.suite is None else {name: numbers.metric_of(name) for name in numbers.names()}
        with located(f"{path / OPTIMISE_FILE}: the file is damaged"):
            settings = tuple(Setting.parse(text) for text in question.settings)
            goal = Goal.parse(question.goal, catalogue)
            limits = tuple(Limit.parse(text, catalogue) for text in question.limits)
        with located(f"{path / TRIES_FILE}: the file is damaged"):
            for number, tried in enumerate(saved.tries, 1):
                with located(f"tries[{number}]"):
                    tried.check(settings, goal, limits, catalogue)
            for tried in filter(None, (saved.unchanged, saved.checked)):
                tried.check((), goal, limits, catalogue)
        return cls(
            search.name,
            settings,
            goal,
            limits,
            tuple(question.seeds),
            tuple(map(Try.of_data, tries["tries"])),
            Try.of_data(tries["unchanged"]) if saved.unchanged else None,
            Try.of_data(tries["checked"]) if saved.checked else None,
            saved.importances,
            saved.again,
            question.scenario or question.suite or "",
            search.command,
            search.versions,
        )


def _mean_over_cases(numbers: Numbers) -> float | None:
    values = [value for of_case in numbers.values() for value in of_case]
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present and len(present) == len(values) else None
