"""A sweep over a suite: settings of a controller, each combination a contender in every case.

The folder is that of the suite's result, with the contenders side by side, and has the page and the figure of a sweep
beside it. So runs are kept as those of `tidegate suite run` are, and a run that either of them did is not done again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tidegate.comparison.sweeping import SweepResult
from tidegate.errors import InputError
from tidegate.results.folders import add_file
from tidegate.results.metrics import HEADLINE
from tidegate.runs import pool
from tidegate.scenario.variants import PREFIX, labelled
from tidegate.show.sweeps import ALL_CASES, CASE
from tidegate.suite import numbers
from tidegate.suite.plan import Plan
from tidegate.suite.result import SuiteResult
from tidegate.suite.scores import SCORED
from tidegate.suite.suite import Suite

CONTROLLER = PREFIX.removesuffix(".")
"""The key whose values are controllers."""
_NUMBERS = tuple(name for name in HEADLINE if name != "utilisation")
"""Numbers of combinations. Utilisation by one call is meaningless where several calls share a link."""
_SWEEP = "sweep"  # what `suite.json` has the settings of contenders under


@dataclass(frozen=True, repr=False)
class SuiteSweep(SweepResult):
    """The result of a sweep over a suite: a sweep with the cases as one more key."""

    suite: str = ""
    """The suite's name."""

    @property
    def name(self) -> str:
        """The suite's name."""
        return self.suite

    @classmethod
    def of(cls, result: SuiteResult) -> Self:
        """From the result of the suite, whose contenders are combinations.

        Raises:
            InputError: when they are none.
        """
        try:
            about = result.about[_SWEEP]
            keys, settings_of, plain = list(about["keys"]), dict(about["settings"]), str(about["controller"])
            rows = [
                _row({**settings_of[controller], CASE: case}, settings_of[controller].get(CONTROLLER, plain), seed, row)
                for case, controller, seed, row in result.runs()
            ]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{result.folder} does not hold the sweep of a suite ({error!r})") from None
        verdicts: dict[tuple[str, ...], str] = {
            (*settings_of[cell.controller].values(), cell.case): str(cell.state) for cell in result.cells
        }
        for controller, settings in settings_of.items():
            passed = result.count(controller, "pass")
            count = passed + result.count(controller, "fail") + result.count(controller, "error")
            verdicts[*settings.values(), ALL_CASES] = f"{passed} of {count}"
        failed = [f"{case}, {controller}: {why}" for (case, controller), why in result.troubles.items()]
        planned = len(result.about["runs"])
        command = str(result.about["command"])
        return cls(
            [*keys, CASE],
            rows,
            failed,
            result.resumed,
            planned,
            result.suite.text,
            command,
            verdicts,
            result.suite.name,
        )

    def save(self, folder: Path) -> None:
        """Writes tables, page and figure beside those of the suite's result.

        Raises:
            OutputError: when they cannot be written.
        """
        add_file(folder, "summary.md", self.to_markdown())
        add_file(folder, "summary.csv", self.to_csv())
        self.save_page(folder)


def _row(settings: Mapping[str, str], controller: str, seed: int, row: numbers.Row) -> dict[str, Any]:
    """A run as sweeps have it. Its subject are the contenders, with the numbers that the suite's scores go by."""
    joined_by = dict(SCORED)
    values = {name: numbers.number(row, name, joined_by.get(name)) for name in _NUMBERS}
    subject = {"flow": "subject", "kind": "media", "controller": controller, **values}
    parts = {key: row[key] for key in ("links", "warnings", "recordings") if key in row}
    summary = {**parts, "seed": seed, "digest": row["digest"], "flows": [subject, *row["flows"]]}
    return {
        "settings": settings,
        "seed": seed,
        "digest": row["digest"],
        "versions": row["versions"],
        "summary": summary,
    }


@dataclass(frozen=True, repr=False)
class SweepPlan:
    """The runs of a sweep over a suite, checked."""

    plan: Plan
    """Those of the suite, with every combination as a contender."""
    keys: Sequence[str]
    """The keys that are varied."""
    controller: str
    """The controller of the settings; empty where controllers are varied."""
    settings: Mapping[str, Mapping[str, str]]
    """The values of each contender, by its name."""

    @classmethod
    def of(
        cls,
        suite: Suite,
        grid: Mapping[str, Sequence[str]],
        controller: str | None = None,
        *,
        seeds: int | Sequence[int] | None = None,
        cases: Sequence[str] = (),
    ) -> SweepPlan:
        """The plan of a sweep over a suite.

        Args:
            suite: The suite.
            grid: Values by key: `controller` for controllers, `controller.NAME` for a setting of theirs.
            controller: Whose settings are varied, where `grid` names no controllers.
            seeds: How many, counted from 1, or which; as many as the suite says by default.
            cases: Patterns of names of cases, for these alone.

        Raises:
            InputError: when a key is none of a controller, a value does not fit, or no case can be run.
        """
        for key, values in grid.items():
            if key != CONTROLLER and not key.startswith(PREFIX):
                why = f"expected {CONTROLLER} or {PREFIX}NAME; networks are varied in the suite's file (vary)"
                raise InputError(f"--set {key}: in a suite only settings of controllers are swept; {why}")
            if twice := next((value for value in values if list(values).count(value) > 1), None):
                raise InputError(f"--set {key}: the value {twice} is given twice")
        if CONTROLLER in grid and controller is not None:
            raise InputError(
                f"--controller {controller}: --set {CONTROLLER} gives the controllers already; leave one of them out"
            )
        if CONTROLLER not in grid and controller is None:
            raise InputError("--suite: no controller is given; expected --controller with a name, such as gcc")
        by_label = {}
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            by_label[labelled(chosen.get(CONTROLLER, controller or ""), chosen)] = chosen
        if len(by_label) < math.prod(len(values) for values in grid.values()):
            raise InputError(
                f"--set: two combinations of values give the same controller (found {', '.join(by_label)})"
            )
        plan = Plan.of(suite, list(by_label), seeds=seeds, cases=cases)
        return cls(plan, list(grid), controller or "", by_label)

    def __repr__(self) -> str:
        return f"<tidegate SweepPlan of {self.plan.suite.name}: {', '.join(self.keys)}, {len(self.plan.points)} runs>"

    def run(
        self,
        out: str | Path,
        *,
        workers: int | None = None,
        progress: pool.Progress | bool | None = None,
        command: str = "",
    ) -> tuple[SuiteResult, SuiteSweep]:
        """Does the runs that are not in the folder, and writes pages, tables and figure.

        Args:
            out: The folder; each run is kept in it when it is done.
            workers: How many runs at once; one a core by default.
            progress: True for a bar, on a terminal or in a notebook; or a function that is told the fraction done.
            command: What was typed, for the record.

        Returns:
            The suite's result, and the same as a sweep.

        Raises:
            OutputError: when results cannot be written.
        """
        about = {"keys": list(self.keys), "controller": self.controller, "settings": self.settings}
        result = self.plan.run(out, workers=workers, progress=progress, command=command, further={_SWEEP: about})
        sweep = SuiteSweep.of(result)
        if sweep.rows:
            sweep.save(Path(out))
        return result, sweep


def is_sweep(result: SuiteResult) -> bool:
    """Whether the contenders of a suite's result are combinations of a sweep."""
    return _SWEEP in result.about
