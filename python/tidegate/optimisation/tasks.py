"""What a try runs: a scenario, or a suite, with the values that were chosen."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidegate.comparison import sweeping
from tidegate.comparison.sweeping import SweepJob
from tidegate.errors import InputError
from tidegate.optimisation.space import Values
from tidegate.query import Series
from tidegate.results.metrics import METRICS, Metric, finite
from tidegate.runs.pool import Job
from tidegate.scenario import Scenario
from tidegate.scenario.variants import PREFIX, labelled, with_controller
from tidegate.show import sweeps
from tidegate.suite import Plan, Suite, numbers
from tidegate.suite.plan import SuiteJob

Row = Mapping[str, Any]


@dataclass(frozen=True)
class One:
    """One run of a try."""

    case: str
    """The case of a suite; of a scenario there is one, without a name."""
    seed: int
    """Its seed."""
    key: str
    """What its result is kept under."""
    job: Job[dict[str, Any]]
    """The work."""
    busy: Any
    """Its scenario, to be asked whether it is busy in Python."""


@dataclass(frozen=True)
class ScenarioTask:
    """A scenario."""

    scenario: Scenario
    """What is run."""
    controller: str | None = None
    """What the subject runs instead of its own controller."""
    file: str = ""
    """How the scenario is named on the command line."""
    changes: tuple[str, ...] = ()
    """What was changed of it there, as `KEY=VALUE`."""

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario.name

    @property
    def catalogue(self) -> Mapping[str, Metric]:
        """The numbers of a flow."""
        return METRICS

    def runs(self, values: Values, seeds: Sequence[int]) -> list[One]:
        """One for each seed.

        Raises:
            InputError: when a value does not fit.
        """
        if self.controller is None and (of := next((key for key in values if key.startswith(PREFIX)), None)):
            raise InputError(f"{of}: whose? Name the controller: --controller gcc")
        label = None if self.controller is None else labelled(self.controller, values)
        made = self.scenario if label is None else with_controller(self.scenario, label)
        grid = {key: [value] for key, value in values.items() if not key.startswith(PREFIX)}
        points = sweeping.points(made, grid, seeds)
        return [One("", one.seed, one.key, SweepJob(one), one.lowered) for one in points]

    def number(self, row: Row, series: Series) -> float | None:
        """Of the subject, or of the flow that is named."""
        if series.of is None:
            return sweeps.value(row, series.metric.name)
        flows = {str(flow["flow"]): flow for flow in row["summary"]["flows"]}
        if series.of not in flows:
            raise InputError(f"{series.name}: there is no flow {series.of}; there are {', '.join(flows)}")
        return finite(flows[series.of].get(series.metric.name))

    def again(self, values: Values) -> str:
        """A comparison with what the scenario has."""
        chosen = [f"{key}={value}" for key, value in values.items() if not key.startswith(PREFIX)]
        sets = [part for one in (*self.changes, *chosen) for part in ("--set", one)]
        file = self.file or self.name
        if self.controller is None:
            return shlex.join(["tidegate", "run", file, *sets])
        names = dict.fromkeys([self.controller, labelled(self.controller, values)])
        return shlex.join(["tidegate", "compare", *names, "--scenario", file, *sets, "--seeds", "10"])

    def to_data(self) -> dict[str, Any]:
        """Its text, and who runs."""
        return {"scenario": self.scenario.to_toml(), "controller": self.controller}


@dataclass(frozen=True)
class SuiteTask:
    """A suite, for settings of a controller."""

    suite: Suite
    """What is run."""
    controller: str
    """Whose settings are chosen."""
    file: str = ""
    """How the suite is named on the command line."""
    patterns: tuple[str, ...] = ()
    """Which of its cases were asked for there."""

    @property
    def name(self) -> str:
        """The suite's name."""
        return self.suite.name

    @property
    def catalogue(self) -> Mapping[str, Metric]:
        """The numbers and measures of suites."""
        return {name: numbers.about(name) for name in numbers.known()}

    def runs(self, values: Values, seeds: Sequence[int]) -> list[One]:
        """One for each case and seed.

        Raises:
            InputError: when a value does not fit, or is not of the controller.
        """
        for key in values:
            if not key.startswith(PREFIX):
                raise InputError(f"{key}: over a suite only the controller's settings are chosen, as {PREFIX}NAME")
        plan = Plan.of(self.suite, [labelled(self.controller, values)], seeds=list(seeds), simulated=True)
        if plan.refused:
            (case, label), why = next(iter(plan.refused.items()))
            raise InputError(f"{case}: {label}: {why}")
        return [One(one.case.name, one.seed, one.key, SuiteJob(one), one.lowered) for one in plan.points]

    def number(self, row: Row, series: Series) -> float | None:
        """Of the contenders, or of the flow that is named."""
        return numbers.number(row, series.metric.name, series.of)

    def again(self, values: Values) -> str:
        """The suite with the controller as it is, and as it would be."""
        names = dict.fromkeys([self.controller, labelled(self.controller, values)])
        cases = [part for one in self.patterns for part in ("--cases", one)]
        return shlex.join(["tidegate", "suite", "run", self.file or self.name, *names, *cases])

    def to_data(self) -> dict[str, Any]:
        """Its text, its cases, and who runs."""
        cases = [case.name for case in self.suite.cases]
        return {"suite": self.suite.text, "cases": cases, "controller": self.controller}


Task: TypeAlias = ScenarioTask | SuiteTask
"""What is tried."""
