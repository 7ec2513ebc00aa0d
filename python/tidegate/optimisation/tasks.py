"""Tasks of a search: the scenario or suite that each try runs with its values."""

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
class TryRun:
    """One run of a try."""

    case: str
    """Name of the suite's case; empty for a scenario."""
    seed: int
    """Seed of the run."""
    key: str
    """Key of its saved result."""
    job: Job[dict[str, Any]]
    """The job that does the run."""
    lowered: Any
    """The lowered scenario, the same object for all seeds of a try and a case; it says whether it keeps Python busy."""


@dataclass(frozen=True)
class ScenarioTask:
    """A search in a scenario."""

    scenario: Scenario
    """The scenario, with its changes."""
    controller: str | None = None
    """Controller of the subject, in place of the scenario's."""
    file: str = ""
    """Name of the scenario as it was typed."""
    changes: tuple[str, ...] = ()
    """Changes of the scenario as they were typed: `KEY=VALUE`."""
    link: str | None = None
    """File of the recorded network of its first link, as it was typed."""

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario.name

    @property
    def catalogue(self) -> Mapping[str, Metric]:
        """Metrics of a flow, by name."""
        return METRICS

    def runs(self, values: Values, seeds: Sequence[int]) -> list[TryRun]:
        """Runs of a try, one for each seed.

        Raises:
            InputError: when a value does not fit.
        """
        if self.controller is None and (
            key_of_controller := next((key for key in values if key.startswith(PREFIX)), None)
        ):
            raise InputError(
                f"{key_of_controller}: no controller is given; expected --controller with a name, such as gcc"
            )
        label = None if self.controller is None else labelled(self.controller, values)
        scenario = self.scenario if label is None else with_controller(self.scenario, label)
        grid = {key: [value] for key, value in values.items() if not key.startswith(PREFIX)}
        points = sweeping.points(scenario, grid, seeds)
        return [TryRun("", point.seed, point.key, SweepJob(point), point.lowered) for point in points]

    def number(self, row: Row, series: Series) -> float | None:
        """Number of the subject in a saved run, or of the flow that the series names."""
        if series.scope is None:
            return sweeps.value(row, series.metric.name)
        flows = {str(flow["flow"]): flow for flow in row["summary"]["flows"]}
        if series.scope not in flows:
            raise InputError(f"{series.name}: there is no flow {series.scope}; available: {', '.join(flows)}")
        return finite(flows[series.scope].get(series.metric.name))

    def again(self, values: Values) -> str:
        """Command that runs the scenario with these values; it compares controllers if one was chosen."""
        chosen = [f"{key}={value}" for key, value in values.items() if not key.startswith(PREFIX)]
        sets = _repeated("--set", [*self.changes, *chosen])
        file = self.file or self.name
        link = [] if self.link is None else ["--link", self.link]
        if self.controller is not None:
            names = dict.fromkeys([self.controller, labelled(self.controller, values)])
            return shlex.join(["tidegate", "compare", *names, "--scenario", file, *link, *sets, "--seeds", "10"])
        if self.link is None:
            return shlex.join(["tidegate", "run", file, *sets])
        # `run` takes no link
        variant = _repeated("--set", self.changes) + _repeated("--variant", [f"best: {change}" for change in chosen])
        return shlex.join(["tidegate", "compare", "--scenario", file, *link, *variant, "--seeds", "10"])

    def to_data(self) -> dict[str, Any]:
        """Text of the scenario, and the controller."""
        return {"scenario": self.scenario.to_toml(), "controller": self.controller}


@dataclass(frozen=True)
class SuiteTask:
    """A search over a suite, for settings of a controller."""

    suite: Suite
    """The suite, with the selected cases."""
    controller: str
    """The controller whose settings are searched."""
    file: str = ""
    """Name of the suite as it was typed."""
    patterns: tuple[str, ...] = ()
    """Patterns of case names as they were typed."""

    @property
    def name(self) -> str:
        """The suite's name."""
        return self.suite.name

    @property
    def catalogue(self) -> Mapping[str, Metric]:
        """Metrics and measures of suites, by name."""
        return {name: numbers.metric_of(name) for name in numbers.names()}

    def runs(self, values: Values, seeds: Sequence[int]) -> list[TryRun]:
        """Runs of a try, one for each case and seed.

        Raises:
            InputError: when a value does not fit, or is not of the controller.
        """
        for key in values:
            if not key.startswith(PREFIX):
                raise InputError(
                    f"{key}: in a suite only settings of the controller can be searched; expected {PREFIX}NAME"
                )
        plan = Plan.of(self.suite, [labelled(self.controller, values)], seeds=list(seeds), simulated=True)
        if plan.refused:
            (case, label), why = next(iter(plan.refused.items()))
            raise InputError(f"{case}: {label}: {why}")
        return [TryRun(point.case.name, point.seed, point.key, SuiteJob(point), point.lowered) for point in plan.points]

    def number(self, row: Row, series: Series) -> float | None:
        """Number of the contenders in a saved run, or of the flow that the series names."""
        return numbers.number(row, series.metric.name, series.scope)

    def again(self, values: Values) -> str:
        """Command that runs the suite with the controller as it is and with these values."""
        names = dict.fromkeys([self.controller, labelled(self.controller, values)])
        cases = _repeated("--cases", self.patterns)
        return shlex.join(["tidegate", "suite", "run", self.file or self.name, *names, *cases])

    def to_data(self) -> dict[str, Any]:
        """Text of the suite, names of its cases, and the controller."""
        cases = [case.name for case in self.suite.cases]
        return {"suite": self.suite.text, "cases": cases, "controller": self.controller}


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    """An option of the command line with each of these values."""
    return [part for value in values for part in (option, value)]


Task: TypeAlias = ScenarioTask | SuiteTask
"""A task of a search."""
