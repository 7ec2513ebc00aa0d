"""The result of a suite: cells with their verdicts, and scores with paired differences."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from tidegate.comparison.doubts import doubts
from tidegate.errors import located
from tidegate.output.document import Document
from tidegate.output.notebook import Displayable
from tidegate.results.folders import add_file
from tidegate.results.saved import read_json
from tidegate.results.shapes import checked
from tidegate.results.stats import Interval
from tidegate.results.sweeps import Results
from tidegate.suite import numbers, verdicts
from tidegate.suite._shapes import SUITE_FILE, SuiteShape, kept_runs
from tidegate.suite.cases import Case
from tidegate.suite.suite import Suite
from tidegate.suite.verdicts import Check

FORMAT = 1
"""Of `suite.json`."""

_REFUSED_CONTROLLER = re.compile(r"^flows\.[^:]+\.media\.controller: found [^;]+; expected ")
"""Beginning of a scenario's error about a controller that it cannot have, up to the name."""

State = Literal["pass", "fail", "error", "not run"]


@dataclass(frozen=True)
class Cell:
    """A case and a controller."""

    case: str
    """The case's name."""
    controller: str
    """The controller's name."""
    state: State
    """`pass` where all rules are met, `fail`, `error` where a run failed, `not run`."""
    checks: tuple[Check, ...] = ()
    """Each rule that is for it."""
    why: str = ""
    """Why there is no verdict, for `error` and `not run`."""

    @property
    def brief(self) -> str:
        """`why` in a line, without case, controller and key, which stand beside the cell anyway.

        >>> Cell("6.1", "tfrc", "not run", why="6.1: flows.a.media.controller: found tfrc; expected one that can").brief
        'needs one that can'
        """
        first = self.why.partition("\n")[0].removeprefix(f"{self.case}: ")
        return _REFUSED_CONTROLLER.sub("needs ", first)

    @property
    def broken(self) -> list[Check]:
        """The rules that are not met."""
        return [check for check in self.checks if not check.passed]

    @property
    def deciding(self) -> Check | None:
        """The deciding rule: the one broken by the widest margin, or else the one kept by the narrowest."""
        return min(self.broken or self.checks, key=lambda check: check.slack, default=None)

    @property
    def close(self) -> bool:
        """Whether other seeds could change the verdict: a kept rule is close, or all broken rules are."""
        return all(check.close for check in self.broken) if self.broken else bool(self.hanging)

    @property
    def hanging(self) -> list[Check]:
        """The close rules among those that decide: the broken ones, or else all, that with least room first."""
        return sorted((check for check in self.broken or self.checks if check.close), key=lambda check: check.slack)


@dataclass(frozen=True, repr=False)
class SuiteResult(Displayable):
    """The result of a suite."""

    suite: Suite
    """The suite."""
    controllers: tuple[str, ...]
    """Names of the controllers."""
    baseline: str
    """The controller that the others are compared with, seed by seed."""
    rows: Mapping[tuple[str, str], Mapping[int, numbers.Row]]
    """The kept part of each run, by case and controller, and by seed."""
    troubles: Mapping[tuple[str, str], str]
    """Reasons for missing runs of a cell."""
    unfit: AbstractSet[tuple[str, str]] = frozenset()
    """Those whose controller cannot take part in the case, which is no failure: it cannot be coupled, say."""
    resumed: int = 0
    """Number of runs that were kept from before."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Contents of `suite.json`."""
    folder: Path | None = None
    """Folder of the result."""
    seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Time that the runs of a cell took which were done just now; of a result that is read from a folder nothing."""

    @classmethod
    def gather(
        cls,
        results: Results,
        about: Mapping[str, Any],
        suite: Suite,
        resumed: int = 0,
        seconds: Mapping[tuple[str, str], float] | None = None,
    ) -> Self:
        """Writes `suite.json`, and reads the kept runs."""
        add_file(results.folder, SUITE_FILE, json.dumps(about, indent=1) + "\n")
        return replace(cls._of(results, about, suite, resumed), seconds=seconds or {})

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads the result in a folder.

        Raises:
            InputError: when there is none, or it is damaged.
        """
        path = Path(folder)
        about = read_json(path / SUITE_FILE)
        shape = checked(path / SUITE_FILE, about, SuiteShape)
        with located(f"{path / SUITE_FILE}: the file is damaged"):
            cases = tuple(map(Case.of_data, about["cases"]))
            suite = Suite.of_saved(shape.suite, shape.text, cases)
        return cls._of(kept_runs(path), about, suite, 0)

    @classmethod
    def _of(cls, results: Results, about: Mapping[str, Any], suite: Suite, resumed: int) -> Self:
        failed = about.get("failed", {})
        row_of: dict[str, numbers.Row | None] = {}
        rows: dict[tuple[str, str], dict[int, numbers.Row]] = {}
        troubles = {(refusal["case"], refusal["controller"]): str(refusal["why"]) for refusal in about["refused"]}
        for run in about["runs"]:
            key, cell = run["key"], (run["case"], run["controller"])
            if key not in row_of:
                row_of[key] = results.read(key)
            row = row_of[key]
            if row is not None:
                rows.setdefault(cell, {})[run["seed"]] = row
            else:
                why = failed.get(key, "the run was stopped before its end")
                troubles.setdefault(cell, f"seed {run['seed']}: {why}")
        unfit = {(refusal["case"], refusal["controller"]) for refusal in about["refused"]}
        controllers = tuple(about["controllers"])
        return cls(suite, controllers, about["baseline"], rows, troubles, unfit, resumed, about, results.folder)

    @cached_property
    def cells(self) -> list[Cell]:
        """Every case with every controller, in order."""
        return [self._cell(case, controller) for case in self.suite.cases for controller in self.controllers]

    def cell(self, case: str, controller: str) -> Cell:
        """Returns the cell of a case and a controller.

        Raises:
            KeyError: when there is no such case or controller.
        """
        return self._by_name[case, controller]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Cell]:
        return {(cell.case, cell.controller): cell for cell in self.cells}

    def _cell(self, case: Case, controller: str) -> Cell:
        place = (case.name, controller)
        if case.not_run:
            return Cell(*place, "not run", why=case.not_run)
        if place in self.troubles:
            return Cell(*place, "not run" if place in self.unfit else "error", why=self.troubles[place])
        checks = []
        for rule in self.suite.rules:
            if verdicts.applies(rule, *place):
                beside = None if rule.relative_to is None else self.rows.get((rule.relative_to, controller))
                check = verdicts.check(rule, self.rows[place], beside)
                # frames and targets of a real program are unknown: rules about them do not apply to it
                if check.value.count or not all("session" in row for row in self.rows[place].values()):
                    checks.append(check)
        return Cell(*place, "pass" if all(check.passed for check in checks) else "fail", tuple(checks))

    @cached_property
    def doubts(self) -> dict[str, list[str]]:
        """Questions that its cases cannot answer, each with the key of a setting, and the cases concerned."""
        by_sentence: dict[str, list[str]] = {}
        for case in self.suite.cases:
            runs = {
                controller: list(self.rows.get((case.name, controller), {}).values()) for controller in self.controllers
            }
            runs_of = {controller: rows for controller, rows in runs.items() if rows}
            if case.scenario is not None and runs_of:
                names = dict.fromkeys(name for rows in runs_of.values() for row in rows for name in row["contenders"])
                for controller in doubts(case.scenario, list(names), runs_of):
                    by_sentence.setdefault(controller, []).append(case.name)
        return by_sentence

    @property
    def noisy(self) -> list[tuple[str, str, int, str]]:
        """Sessions of real programs on a machine too busy to trust: case, program, seed, reason."""
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
        """Cache: every pair of controllers is compared, each time with the same numbers."""
        return {}

    def interval(self, case: str, controller: str, metric: str, of: str | None = None) -> Interval:
        """A number's mean over seeds with its 95 % interval."""
        return Interval.of(self.values(case, controller, metric, of).values())

    def paired(self, metric: str, controller: str, other: str, of: str | None = None) -> Interval:
        """Returns the mean difference of `controller` from `other` over cases, with its 95 % interval.

        Differences are taken run by run: a seed draws the same numbers in both. With several seeds the interval is
        over seeds, for these cases and no others; with one seed it is over cases. Cases in which one of the two has no
        number are left out.
        """
        by_seed: dict[int, list[float]] = {}
        for case in self.suite.cases:
            mine, theirs = (self.values(case.name, side, metric, of) for side in (controller, other))
            pairs = {seed: (value, theirs.get(seed)) for seed, value in mine.items()}
            differences = {seed: a - b for seed, (a, b) in pairs.items() if a is not None and b is not None}
            if pairs and len(differences) == len(pairs):
                for seed, difference in differences.items():
                    by_seed.setdefault(seed, []).append(difference)
        if len(by_seed) == 1:
            return Interval.of(next(iter(by_seed.values())))
        return Interval.of(
            math.fsum(differences_of_seed) / len(differences_of_seed) for differences_of_seed in by_seed.values()
        )

    def count(self, controller: str, state: State) -> int:
        """Counts the cells of a controller in a state."""
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

        document = self.document()
        write_page(folder / "index.html", document)
        write_text(folder / "scorecard.md", document)
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
        """The number of seeds of the cells that were run, in words."""
        counts = {len(rows) for rows in self.rows.values()} or {0}
        least, most = min(counts), max(counts)
        return f"{least} to {most} seeds" if least < most else f"{most} {'seed' if most == 1 else 'seeds'}"

    def __repr__(self) -> str:
        cases = len(self.suite.cases)
        return f"<tidegate SuiteResult of {self.suite.name}: {cases} cases, {len(self.controllers)} controllers>"
