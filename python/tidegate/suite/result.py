"""What came out of a suite: cells with their verdicts, and scores with paired differences."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from tidegate.comparison.doubts import doubts
from tidegate.errors import InputError
from tidegate.output.document import Document
from tidegate.output.notebook import Shown
from tidegate.results.folders import add_file
from tidegate.results.saved import read_json
from tidegate.results.stats import Interval
from tidegate.results.sweeps import Results
from tidegate.suite import numbers, verdicts
from tidegate.suite.cases import Case
from tidegate.suite.model import SuiteTable
from tidegate.suite.suite import Suite
from tidegate.suite.verdicts import Check

SUITE_FILE = "suite.json"
FORMAT = 1
"""Of `suite.json`."""

_REFUSED_CONTROLLER = re.compile(r"^flows\.[^:]+\.media\.controller: found [^;]+; expected ")
"""What a scenario says of a controller that it cannot have; the name goes on behind it."""

State = Literal["pass", "fail", "error", "not run"]


@dataclass(frozen=True)
class Cell:
    """A case and a controller."""

    case: str
    """The case's name."""
    controller: str
    """What was tried."""
    state: State
    """`pass` where all rules are met, `fail`, `error` where a run failed, `not run`."""
    checks: tuple[Check, ...] = ()
    """Each rule that is for it."""
    why: str = ""
    """Why there is no verdict, for `error` and `not run`."""

    @property
    def brief(self) -> str:
        """`why` in a line, without what stands beside the cell anyway: its case, its controller and where that was put.

        >>> Cell("6.1", "tfrc", "not run", why="6.1: flows.a.media.controller: found tfrc; expected one that can").brief
        'needs one that can'
        """
        first = self.why.partition("\n")[0].removeprefix(f"{self.case}: ")
        return _REFUSED_CONTROLLER.sub("needs ", first)

    @property
    def broken(self) -> list[Check]:
        """The rules that are not met."""
        return [one for one in self.checks if not one.passed]

    @property
    def deciding(self) -> Check | None:
        """The rule that decides: the one that is broken most, or where none is, the one with the least room."""
        return min(self.broken or self.checks, key=lambda one: one.slack, default=None)

    @property
    def close(self) -> bool:
        """Whether another rule decides it with other seeds, perhaps: a limit is within a number's interval."""
        return any(one.close for one in self.broken or self.checks)


@dataclass(frozen=True, repr=False)
class SuiteResult(Shown):
    """The result of a suite."""

    suite: Suite
    """What was run."""
    controllers: tuple[str, ...]
    """Who took part."""
    baseline: str
    """Whom the others are compared with, seed by seed."""
    rows: Mapping[tuple[str, str], Mapping[int, numbers.Row]]
    """What is kept of each run: by case and controller, and by seed."""
    troubles: Mapping[tuple[str, str], str]
    """Why a cell lacks runs."""
    unfit: AbstractSet[tuple[str, str]] = frozenset()
    """Those of them whose controller cannot take part in the case, which is no failure: it cannot be coupled, say."""
    resumed: int = 0
    """How many runs were there already, and were not done again."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What `suite.json` holds."""
    folder: Path | None = None
    """Where it is kept."""

    @classmethod
    def gather(cls, results: Results, about: Mapping[str, Any], suite: Suite, resumed: int = 0) -> Self:
        """Writes down what was run, and reads what there is of it."""
        add_file(results.folder, SUITE_FILE, json.dumps(about, indent=1) + "\n")
        return cls._of(results, about, suite, resumed)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads the result in a folder.

        Raises:
            InputError: when there is none, or it is damaged.
        """
        path = Path(folder)
        about = read_json(path / SUITE_FILE)
        try:
            from tidegate.scenario import toml

            table = SuiteTable.model_validate(toml.parse(about["text"], str(path / SUITE_FILE)))
            suite = Suite(about["suite"], table, tuple(map(Case.of_data, about["cases"])), about["text"])
            return cls._of(Results(path, SUITE_FILE), about, suite, 0)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path / SUITE_FILE}: is damaged: {error!r}") from None

    @classmethod
    def _of(cls, results: Results, about: Mapping[str, Any], suite: Suite, resumed: int) -> Self:
        failed = about.get("failed", {})
        read: dict[str, numbers.Row | None] = {}
        rows: dict[tuple[str, str], dict[int, numbers.Row]] = {}
        troubles = {(one["case"], one["controller"]): str(one["why"]) for one in about["refused"]}
        for run in about["runs"]:
            key, cell = run["key"], (run["case"], run["controller"])
            if key not in read:
                read[key] = results.read(key)
            row = read[key]
            if row is not None:
                rows.setdefault(cell, {})[run["seed"]] = row
            else:
                why = failed.get(key, "was stopped before it was done")
                troubles.setdefault(cell, f"seed {run['seed']}: {why}")
        unfit = {(one["case"], one["controller"]) for one in about["refused"]}
        who = tuple(about["controllers"])
        return cls(suite, who, about["baseline"], rows, troubles, unfit, resumed, about, results.folder)

    @cached_property
    def cells(self) -> list[Cell]:
        """Every case with every controller, in order."""
        return [self._cell(case, controller) for case in self.suite.cases for controller in self.controllers]

    def cell(self, case: str, controller: str) -> Cell:
        """One of them.

        Raises:
            KeyError: when there is no such case or controller.
        """
        return self._by_name[case, controller]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Cell]:
        return {(cell.case, cell.controller): cell for cell in self.cells}

    def _cell(self, case: Case, controller: str) -> Cell:
        here = (case.name, controller)
        if case.not_run:
            return Cell(*here, "not run", why=case.not_run)
        if here in self.troubles:
            return Cell(*here, "not run" if here in self.unfit else "error", why=self.troubles[here])
        checks = []
        for rule in self.suite.rules:
            if verdicts.applies(rule, *here):
                beside = None if rule.relative_to is None else self.rows.get((rule.relative_to, controller))
                one = verdicts.check(rule, self.rows[here], beside)
                # of a real program nobody knows frames or targets: a rule about them is not for it
                if one.value.count or not all("session" in row for row in self.rows[here].values()):
                    checks.append(one)
        return Cell(*here, "pass" if all(one.passed for one in checks) else "fail", tuple(checks))

    @cached_property
    def doubts(self) -> dict[str, list[str]]:
        """What its cases cannot tell, a sentence with the key of a setting each, and of which cases that is said."""
        found: dict[str, list[str]] = {}
        for case in self.suite.cases:
            runs = {one: list(self.rows.get((case.name, one), {}).values()) for one in self.controllers}
            seen = {one: some for one, some in runs.items() if some}
            if case.scenario is not None and seen:
                names = dict.fromkeys(name for some in seen.values() for row in some for name in row["contenders"])
                for one in doubts(case.scenario, list(names), seen):
                    found.setdefault(one, []).append(case.name)
        return found

    @property
    def noisy(self) -> list[tuple[str, str, int, str]]:
        """Sessions of real programs whose clock cannot be trusted: case, program, seed, and what speaks against it."""
        return [
            (case, controller, seed, "; ".join(row["session"]["against"]))
            for case, controller, seed, row in self.runs()
            if "session" in row and row["session"]["against"]
        ]

    def values(self, case: str, controller: str, metric: str, of: str | None = None) -> dict[int, float | None]:
        """A number of each of a cell's runs, by seed; see [number][tidegate.suite.numbers.number]."""
        key = (case, controller, metric, of)
        if key not in self._values:
            rows = self.rows.get((case, controller), {})
            self._values[key] = {seed: numbers.number(row, metric, of) for seed, row in rows.items()}
        return self._values[key]

    @cached_property
    def _values(self) -> dict[tuple[str, str, str, str | None], dict[int, float | None]]:
        """What was asked for already: every pair of controllers is compared, each time with the same numbers."""
        return {}

    def interval(self, case: str, controller: str, metric: str, of: str | None = None) -> Interval:
        """A number's mean over seeds with its 95 % interval."""
        return Interval.of(self.values(case, controller, metric, of).values())

    def paired(self, metric: str, controller: str, other: str, of: str | None = None) -> Interval:
        """The mean over cases of what `controller` has more than `other`, with its 95 % interval.

        The same seed is the same luck, so that differences are taken run by run. With several seeds the interval is
        over seeds, for these cases and no others; with one seed it is over cases. Cases in which one of the two has no
        number are left out.
        """
        by_seed: dict[int, list[float]] = {}
        for case in self.suite.cases:
            mine, theirs = (self.values(case.name, one, metric, of) for one in (controller, other))
            pairs = {seed: (value, theirs.get(seed)) for seed, value in mine.items()}
            differences = {seed: a - b for seed, (a, b) in pairs.items() if a is not None and b is not None}
            if pairs and len(differences) == len(pairs):
                for seed, difference in differences.items():
                    by_seed.setdefault(seed, []).append(difference)
        if len(by_seed) == 1:
            return Interval.of(next(iter(by_seed.values())))
        return Interval.of(math.fsum(some) / len(some) for some in by_seed.values())

    def count(self, controller: str, state: State) -> int:
        """How many cells of a controller are in a state."""
        return sum(cell.controller == controller and cell.state == state for cell in self.cells)

    def worst(self, controller: str) -> Cell | None:
        """The cell in which a controller breaks most rules; of several the one with the greatest share of them."""
        failing = [cell for cell in self.cells if cell.controller == controller and cell.broken]
        return max(failing, key=lambda cell: (len(cell.broken) / len(cell.checks), len(cell.broken)), default=None)

    def document(self) -> Document:
        """The result as data, of which all its forms are made."""
        from tidegate.suite.document import document

        return document(self)

    def write_pages(self, folder: Path) -> None:
        """Writes the page, the scorecard and the files for other programs into the folder of the result.

        Raises:
            OutputError: when one cannot be written.
        """
        from tidegate.output.files import write_page, write_text
        from tidegate.suite import tables

        made = self.document()
        write_page(folder / "index.html", made)
        write_text(folder / "scorecard.md", made)
        for name, text in tables.files(self):
            add_file(folder, name, text)

    def runs(self) -> Iterator[tuple[str, str, int, numbers.Row]]:
        """Every finished run: case, controller, seed, and what is kept of it."""
        for (case, controller), rows in self.rows.items():
            for seed, row in rows.items():
                yield case, controller, seed, row

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds, in order."""
        return sorted({seed for rows in self.rows.values() for seed in rows})

    @property
    def seeds_shown(self) -> str:
        """How many seeds the cells have that were run, in words."""
        counts = {len(rows) for rows in self.rows.values()} or {0}
        least, most = min(counts), max(counts)
        return f"{least} to {most} seeds" if least < most else f"{most} {'seed' if most == 1 else 'seeds'}"

    def __repr__(self) -> str:
        cases = len(self.suite.cases)
        return f"<tidegate SuiteResult of {self.suite.name}: {cases} cases, {len(self.controllers)} controllers>"
