"""A baseline: a controller's results on a suite, seed by seed, as a small file that is kept beside the code.

For each case it has two hashes: one of the scenario, and one of a reference run with a constant rate and one seed
(`REFERENCE`): the run's digest and the numbers that the baseline has. An engine that gives the same reference run gives
the same network, the same competitors and the same numbers, so that any difference comes from the controller. A
baseline therefore holds for other machines and other builds, also for a build in which a controller in Rust has
changed. It does not hold where packets take another course. Both hashes are of meanings: a scenario's name and
description, further metrics and the text of our sources do not count.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tidegate._files import check_target, first_bytes, write_file
from tidegate._inputs import JSON, parse_json
from tidegate._inputs import read as read_input
from tidegate.errors import InputError
from tidegate.gate.course import Course, CourseShape
from tidegate.gate.rules import Rule
from tidegate.results.metrics import HEADLINE, Metric
from tidegate.results.shapes import FilePath, Finite, Shape, checked
from tidegate.runs import engine, pool
from tidegate.runs import versions as current_versions
from tidegate.suite import Plan, Suite, SuiteResult, numbers
from tidegate.suite.cases import Case
from tidegate.suite.plan import SuiteJob

REFERENCE = "fixed:500kbps"
"""The controller of the reference runs that tell engines apart: it reacts to no feedback."""

_ABOUT = "Baseline of `tidegate check`: one number per seed, from seed 1 on, in the units of run summaries."
_FORMAT = 3
_WITHOUT_COURSES = 2
"""The format before, which is read, too: its cases have no course over time."""
_DIGITS = 6  # of a value; more would make files larger and show no difference that matters

Values = Mapping[str, Sequence[float | None]]
"""Numbers by seed, from seed 1 on, of each series: `worst one_way_delay_ms_p95`."""


class CaseShape(Shape):
    """A case of a baseline's file."""

    network: str
    engine: str
    values: dict[str, list[Finite | None]]
    course: CourseShape | None = None


class BaselineShape(Shape):
    """The file of a baseline."""

    suite: FilePath
    controller: str
    seeds: Annotated[int, Field(ge=1)]
    only: list[str]
    rules: list[str]
    cases: dict[str, CaseShape]
    versions: dict[str, str]

    @model_validator(mode="after")
    def _values_of_each_seed(self) -> Self:
        for name, case in self.cases.items():
            for series, values in case.values.items():
                if len(values) != self.seeds:
                    raise ValueError(f"cases.{name}.values: {series} does not have {self.seeds} values")
        return self


@dataclass(frozen=True)
class CaseBaseline:
    """The baseline of one case."""

    network: str
    """Hash of its scenario and its contenders: see `network`."""
    engine: str
    """Hash of the reference run on it: see `engines`."""
    values: Values
    """The numbers of its runs."""
    course: Course | None = None
    """Their course over time; `None` in a baseline of an older tidegate."""


@dataclass(frozen=True)
class Baseline:
    """A controller's results on a suite."""

    suite: str
    """Name or file of the suite."""
    controller: str
    """The controller, as it was typed."""
    seeds: int
    """Number of seeds of each case."""
    only: tuple[str, ...]
    """Patterns of the names of its cases; empty if it has all cases of the suite."""
    rules: tuple[str, ...]
    """Rules of checks that name no rules of their own."""
    cases: Mapping[str, CaseBaseline]
    """Baselines of the cases, by name."""
    versions: Mapping[str, str]
    """Versions of tidegate that it was made with: see `made_with`."""

    def save(self, path: Path, *, force: bool = False) -> None:
        """Writes the baseline to a file.

        Raises:
            OutputError: when it cannot be written, or the file is not a baseline.
        """
        check_file(path, force=force)
        fields = ("suite", "controller", "seeds", "only", "rules", "versions")
        head = {"about": _ABOUT, "format": _FORMAT, **{name: getattr(self, name) for name in fields}}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
        cases = []
        for name, case in self.cases.items():
            about = f'"network": {json.dumps(case.network)}, "engine": {json.dumps(case.engine)}'
            series = [f"   {json.dumps(key)}: {json.dumps(list(values))}" for key, values in case.values.items()]
            rows = ",\n".join(series)
            course = "" if case.course is None else f',\n   "course": {case.course.to_json()}'
            cases.append(f'  {json.dumps(name)}: {{\n   {about}, "values": {{\n{rows}\n  }}{course}}}')
        write_file(path, "\n".join(["{", *lines, ' "cases": {', ",\n".join(cases), " }", "}", ""]))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads a baseline from a file.

        Raises:
            InputError: when there is none, or it is damaged.
        """
        try:
            data = parse_json(read_input(path, JSON).data, JSON.limit)
        except InputError as error:
            hint = f"tidegate check {path} CONTROLLER --suite smoke --write makes a baseline"
            raise InputError(f"{error}; {hint}") from None
        except ValueError as error:
            raise InputError(f"{path} is not a baseline, or is incomplete: {error}") from None
        found_format = data.get("format") if isinstance(data, dict) else None
        readable = found_format in (_FORMAT, _WITHOUT_COURSES)
        if not readable or not data.get("cases"):
            reason = "it has no cases" if readable else f"found format {found_format!r}; expected {_FORMAT}"
            raise InputError(f"{path} is not a baseline of this version of tidegate ({reason}); make it again")
        saved = checked(path, data, BaselineShape, "the file is not a baseline of tidegate, or is damaged")
        cases = {
            name: CaseBaseline(
                case.network, case.engine, case.values, None if case.course is None else Course.read(case.course)
            )
            for name, case in saved.cases.items()
        }
        only, rules = tuple(saved.only), tuple(saved.rules)
        return cls(saved.suite, saved.controller, saved.seeds, only, rules, cases, saved.versions)


def check_file(path: Path, *, force: bool) -> None:
    """Checks that a baseline may be written to a file.

    Raises:
        OutputError: when the file is not a baseline and would be lost.
    """
    check_target(path, "baseline of tidegate", lambda file: _ABOUT.encode() in first_bytes(file), force=force)


def catalogue() -> dict[str, Metric]:
    """Metrics that a rule can be about, by name."""
    return {name: numbers.metric_of(name) for name in numbers.names()}


def series_of(rules: Sequence[Rule], requested: Sequence[tuple[str, str | None]] = ()) -> list[str]:
    """Series that a baseline keeps of each run: the headline metrics, those of the suite, and those of the rules.

    Args:
        rules: The rules of the gate.
        requested: Further metrics, such as those of the suite's own rules, each with the flow or aggregate that it is
            of.
    """
    usual = [f"worst {name}" for name in HEADLINE]
    of_suite = [f"{scope or 'worst'} {name}" for name, scope in requested]
    return list(dict.fromkeys([*usual, *of_suite, *(rule.series for rule in rules)]))


def values_of(result: SuiteResult, case: str, controller: str, series: str, seeds: int) -> list[float | None]:
    """Numbers of a series in one case, from seed 1 on."""
    scope, _, name = series.rpartition(" ")
    by_seed = result.values(case, controller, name, scope)
    return [rounded(by_seed.get(seed)) for seed in range(1, seeds + 1)]


def rounded(value: float | None) -> float | None:
    """A value rounded as in the file of a baseline."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def network(case: Case) -> str:
    """Hash of the meaning of a case's scenario and of the contenders that are judged in it."""
    meaning = case.scenario.to_dict() if case.scenario is not None else {}
    for key in ("name", "description", "source"):
        meaning.pop(key, None)
    return _hash([meaning, case.who])


def engines(
    suite: Suite,
    series: Mapping[str, Iterable[str]],
    *,
    workers: int | None = None,
    progress: pool.Progress | None = None,
) -> dict[str, str]:
    """Hashes of the reference run (digest and numbers) of each case.

    Args:
        suite: The suite.
        series: The series whose numbers count, by case: those that its baseline has.
        workers: Number of runs at once; one a core by default.
        progress: Called with the fraction that is done.
    """
    plan = Plan.of(suite, [REFERENCE], seeds=1, cases=[glob.escape(case) for case in series])
    jobs = [SuiteJob(point) for point in plan.points]
    outcomes = engine.run_all(jobs, workers=workers, progress=progress, keep_going=True)
    rows = {point.case.name: row for point, row in zip(plan.points, outcomes, strict=True)}
    return {case: _behaviour(rows.get(case), names) for case, names in series.items()}


def _behaviour(row: Mapping[str, Any] | BaseException | None, series: Iterable[str]) -> str:
    """Hash of a run's digest and of its numbers; `none` where the run is missing or failed."""
    if row is None or isinstance(row, BaseException):
        return "none"
    parts = {name: name.rpartition(" ") for name in series}
    values = {name: [rounded(numbers.number(row, metric, scope))] for name, (scope, _, metric) in parts.items()}
    return _hash([row["digest"], values])


def _hash(meaning: Any) -> str:
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:16]


def made_with() -> dict[str, str]:
    """Version and commit of tidegate that a baseline is made with."""
    return {name: version for name, version in current_versions().items() if name in {"tidegate", "commit"}}
