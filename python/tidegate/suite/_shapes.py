"""Shapes of the files in the folder of a suite's result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tidegate.results.saved import check_summary
from tidegate.results.shapes import FilePath, Finite, Key, Numbers, Seed, SessionVerdict, Shape, Unbounded
from tidegate.results.sweeps import Results

SUITE_FILE = "suite.json"


class CaseShape(Shape):
    """A case of `suite.json`."""

    name: str
    title: str
    source: str
    contenders: list[str]
    not_run: str
    begin_between: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None
    scenario: str | None = None
    base: FilePath | None = None

    @model_validator(mode="after")
    def _anchored(self) -> Self:
        if self.scenario is not None and self.base is None:
            raise ValueError("base is missing, the folder of its scenario")
        return self


class Refusal(Shape):
    """A case that a controller cannot take part in."""

    case: str
    controller: str
    why: str


class PlannedRun(Shape):
    """A run of `suite.json`."""

    case: str
    controller: str
    seed: Seed
    key: Key


class SweepSettings(Shape):
    """The settings of contenders that are combinations of a sweep."""

    keys: list[str]
    controller: str
    settings: dict[str, dict[str, str]]


class SuiteShape(Shape):
    """`suite.json`."""

    suite: FilePath
    text: str
    cases: Annotated[list[CaseShape], Field(min_length=1)]
    controllers: Annotated[list[str], Field(min_length=1)]
    baseline: str
    command: str
    versions: dict[str, str]
    refused: list[Refusal]
    runs: list[PlannedRun]
    failed: dict[str, str] = Field(default_factory=dict)
    sweep: SweepSettings | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Checks that names in one place are those of another."""
        cases = [case.name for case in self.cases]
        for key, names in (("cases", cases), ("controllers", self.controllers)):
            if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
                raise ValueError(f"{key}: {repeated[0]} is there twice; names are unique")
        if self.baseline not in self.controllers:
            raise ValueError(f"baseline: found {self.baseline}; expected one of the controllers")
        planned = {(run.case, run.controller) for run in self.runs}
        planned |= {(refusal.case, refusal.controller) for refusal in self.refused}
        cells = {(case, controller) for case in cases for controller in self.controllers}
        if unknown := sorted(planned - cells):
            raise ValueError(f"runs: found {', '.join(unknown[0])}; expected a case and a controller of this file")
        needed = {case.name for case in self.cases if not case.not_run}
        if missing := sorted(cell for cell in cells - planned if cell[0] in needed):
            raise ValueError(f"runs: found none of {', '.join(missing[0])}")
        if self.sweep is not None:
            for name in self.controllers:
                if list(self.sweep.settings.get(name, ())) != self.sweep.keys:
                    raise ValueError(f"sweep.settings: found no values of {name} for the keys {self.sweep.keys}")
        return self


class Event(Shape):
    """An event of a run, and the time until a contender's rate had converged."""

    at_s: Finite
    event: str = Field(alias="what")
    flow: str
    seconds: Finite | None


class FlowSeries(Shape):
    """Means over seconds of a flow."""

    rate_bps: list[Unbounded | None] = Field(default_factory=list)
    delay_ms: list[Unbounded | None] = Field(default_factory=list)
    share_bps: list[Unbounded | None] | None = None


class LinkSeries(Shape):
    """Means over seconds of a link."""

    capacity_bps: list[Unbounded | None]


class Series(Shape):
    """Means over seconds."""

    t_s: list[Finite]
    flows: dict[str, FlowSeries]
    links: dict[str, LinkSeries]


class Measured(Shape):
    """The measures of a run."""

    flows: dict[str, Numbers]
    run: Numbers
    events: list[Event] = Field(default_factory=list)
    series: Series | None = None


class SuiteRow(Shape):
    """A kept run of a suite."""

    seed: Seed
    digest: str
    versions: dict[str, str]
    scenario_hash: str = ""
    contenders: Annotated[list[str], Field(min_length=1)]
    flows: list[Any]
    links: list[Any]
    warnings: list[Any]
    recordings: list[Any]
    session: SessionVerdict | None = None
    measures: Measured

    @model_validator(mode="after")
    def _summarised(self) -> Self:
        """Checks its parts of the summary."""
        check_summary({key: getattr(self, key) for key in ("flows", "links", "warnings", "recordings")})
        return self


def kept_runs(folder: Path) -> Results:
    """The kept runs in the folder of a suite's result."""
    return Results(folder, SUITE_FILE, SuiteRow)
