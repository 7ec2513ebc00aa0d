"""What a search has found: tries, the best of them, and what the folder of a search holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tidegate.errors import InputError
from tidegate.optimisation.goals import Goal, Limit, Numbers
from tidegate.optimisation.space import Setting, Values
from tidegate.output import csv
from tidegate.output.document import Document
from tidegate.output.notebook import Shown
from tidegate.query import Series
from tidegate.results.metrics import METRICS
from tidegate.results.saved import Contents, read_json
from tidegate.suite import numbers

OPTIMISE_FILE = "optimise.json"
TRIES_FILE = "tries.json"


@dataclass(frozen=True)
class Tried:
    """One try."""

    values: Values
    """What was chosen, by key."""
    numbers: Mapping[str, Numbers]
    """Each number that is kept, by name: of each case, seed by seed."""
    goal: float | None
    """The value of the goal; none where the try failed."""
    over: tuple[float, ...] = ()
    """By how much of its bound each limit is not held; not above zero where it is."""
    why: str = ""
    """Why it failed."""

    @property
    def held(self) -> bool:
        """Whether all limits are."""
        return self.goal is not None and all(one <= 0 for one in self.over)

    def to_data(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Self:
        """From plain data."""
        return cls(**{**data, "over": tuple(data["over"])})


@dataclass(frozen=True, repr=False)
class SearchResult(Shown):
    """What a search has found so far."""

    name: str
    """The scenario or suite."""
    settings: tuple[Setting, ...]
    """What was chosen from."""
    goal: Goal
    """What is sought."""
    limits: tuple[Limit, ...]
    """What has to hold."""
    seeds: tuple[int, ...]
    """The seeds of each try."""
    tries: tuple[Tried, ...]
    """Every try, in order."""
    unchanged: Tried | None
    """The same without any of the settings."""
    checked: Tried | None
    """The best try on other seeds than those by which it was chosen."""
    importances: Mapping[str, float]
    """How much each setting mattered for the goal, by Optuna (PED-ANOVA); they sum to 1."""
    again: str
    """What to type for the best try."""
    scenario: str
    """The scenario or suite, as TOML."""
    command: str
    """What was typed."""
    versions: Mapping[str, str]
    """What it was made with."""

    def __repr__(self) -> str:
        values = "none for which all limits hold"
        if self.best is not None:
            values = ", ".join(f"{key}={value}" for key, value in self.best.values.items())
        return f"<tidegate SearchResult of {self.name}: {len(self.tries)} tries, the best {values}>"

    def document(self) -> Document:
        """The search as data, of which all its forms are made."""
        from tidegate.optimisation import document

        return document.document(self)

    @property
    def best(self) -> Tried | None:
        """The best of those for which all limits hold; the first of equals."""
        return min((tried for tried in self.tries if tried.held), key=self._rank, default=None)

    @property
    def shown(self) -> list[Series]:
        """What tables show: the goal first, then what has to hold, then what else is kept."""
        asked = [self.goal.series, *(one.series for one in self.limits)]
        kept = dict.fromkeys(name for one in self.tries for name in one.numbers)
        known = {one.name: one for one in asked}
        return [*known.values(), *(Series(numbers.about(name), None) for name in kept if name not in known)]

    @property
    def ranked(self) -> list[Tried]:
        """Those that did not fail: the best first, and those for which a limit does not hold last."""
        return sorted((tried for tried in self.tries if tried.goal is not None), key=self._rank)

    def _rank(self, tried: Tried) -> tuple[float, float]:
        """The rank of a try: how far limits are not held, then the goal, the better the lower."""
        goal = tried.goal or 0.0
        return sum(max(0.0, over) for over in tried.over), -goal if self.goal.best == "highest" else goal

    def to_data(self) -> dict[str, Any]:
        """As plain data, numbers in the summary's own units."""
        singled_out = {"best": self.best, "checked": self.checked, "unchanged": self.unchanged}
        return {
            **{name: tried.to_data() if tried else None for name, tried in singled_out.items()},
            "importances": dict(self.importances),
            "tries": [tried.to_data() for tried in self.tries],
        }

    def to_csv(self) -> str:
        """A line for each try: what was chosen, and the mean of each number over seeds and cases."""
        names = list(dict.fromkeys(name for one in self.tries for name in one.numbers))
        rows = []
        for number, one in enumerate(self.tries, 1):
            means = [_mean(one.numbers.get(name, {})) for name in names]
            chosen = [one.values.get(setting.key, "") for setting in self.settings]
            rows.append([number, *chosen, one.goal, str(one.held).lower(), *means, one.why])
        heads = ["try", *(one.key for one in self.settings), "goal", "limits_held", *names, "why"]
        return csv.lines(heads, rows)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads what a search left in its folder, also one that was stopped.

        Raises:
            InputError: when there is no search, it has no try, or it is damaged.
        """
        path = Path(folder)
        saved = Contents(path)
        about = read_json(saved.file(OPTIMISE_FILE))
        if not (path / TRIES_FILE).is_file():
            raise InputError(f"{path}: no try is done")
        found = read_json(saved.file(TRIES_FILE))
        try:
            asked = about["question"]
            catalogue = {name: numbers.about(name) for name in numbers.known()} if "suite" in asked else METRICS
            unchanged, checked = (Tried.of_data(found[key]) if found[key] else None for key in ("unchanged", "checked"))
            return cls(
                str(about["name"]),
                tuple(Setting.parse(text) for text in asked["settings"]),
                Goal.parse(asked["goal"], catalogue),
                tuple(Limit.parse(text, catalogue) for text in asked["limits"]),
                tuple(asked["seeds"]),
                tuple(map(Tried.of_data, found["tries"])),
                unchanged,
                checked,
                dict(found["importances"]),
                str(found["again"]),
                str(asked.get("scenario") or asked.get("suite")),
                str(about["command"]),
                dict(about["versions"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path}: is damaged: {error!r}") from None


def _mean(numbers: Numbers) -> float | None:
    values = [value for some in numbers.values() for value in some]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
