"""A suite for some controllers and seeds: its runs, and doing those that are not there."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tidegate import _core
from tidegate._files import sha256
from tidegate.control.contenders import Contender, Scalar, contenders
from tidegate.control.registry import is_program
from tidegate.errors import InputError, RunError
from tidegate.output.progress import progress_bar
from tidegate.results.dataset import CONTROLLER, Row, Writer, number_of
from tidegate.results.sweeps import Results
from tidegate.runs import RunJob, build, engine, pool, versions
from tidegate.runs.jobs import by_processes
from tidegate.runs.seeds import seeds_of
from tidegate.scenario.lower import Lowered
from tidegate.scenario.reading import Files
from tidegate.suite import measures, numbers
from tidegate.suite._shapes import kept_runs
from tidegate.suite.cases import Case, check_controllers
from tidegate.suite.result import FORMAT, SuiteResult
from tidegate.suite.suite import Suite

if TYPE_CHECKING:
    from tidegate.runs import Run
    from tidegate.shell import LiveJob

SESSIONS = "sessions"
"""The folder of the runs of real programs in that of a result."""
_LEVEL = "series"  # what measures are read from; nothing of it is kept but a line a second
_MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Point:
    """One run of a suite."""

    case: Case
    """Its case."""
    controller: str
    """Name of the controller in tables."""
    seed: int
    """Its seed."""
    lowered: Lowered
    """The scenario as the engine takes it; seeds of one cell share it."""
    key: str
    """Hash of all that the result depends on; the name of its file."""
    session: LiveJob | None = None
    """The session that it is a run of, where a program is tried."""


@dataclass(frozen=True, repr=False)
class Plan:
    """The runs of a suite, checked, with their files read."""

    suite: Suite
    """The suite."""
    controllers: tuple[str, ...]
    """Names of the controllers."""
    seeds: tuple[int, ...]
    """The seeds of each cell."""
    points: tuple[Point, ...]
    """Every run."""
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why there are no runs of a case and a controller."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why runs failed before, by their keys: they are not tried again."""

    @classmethod
    def of(
        cls,
        suite: Suite | str | Path,
        controllers: Sequence[Contender],
        *,
        seeds: int | Sequence[int] | None = None,
        cases: Sequence[str] = (),
        simulated: bool = False,
    ) -> Plan:
        """The plan of a suite.

        Args:
            suite: A suite, or the name or path of one.
            controllers: Names such as `gcc`, `fixed:2Mbps`, `python:mine.py:Mine`, `program:node call.js`; a
                class, or one with settings, `(Mine, {"k": 2})`.
            seeds: Their number, counted from 1, or a list; the suite's number by default.
            cases: Patterns of names of cases (`5.1*`), for these alone.
            simulated: Whether real programs (`program:COMMAND`), which take part by the wall clock, are refused.

        Raises:
            InputError: when suite, controllers, seeds or cases are not usable, or no case can be run.
        """
        complete = suite if isinstance(suite, Suite) else Suite.load(suite)
        chosen = complete.only(tuple(cases))
        by_label = contenders(controllers)
        check_controllers(by_label, simulated=simulated)
        seed_list = seeds_of(complete.table.seeds if seeds is None else seeds)
        if len(seed_list) * len(chosen.cases) * len(by_label) > _MOST_RUNS:
            raise InputError(f"the suite has more than {_MOST_RUNS} runs; expected fewer controllers, cases or seeds")
        if all(case.not_run for case in chosen.cases):
            reasons = dict.fromkeys(case.not_run for case in chosen.cases)
            raise InputError(f"{complete.name}: no case can be run: {'; '.join(reasons)}")
        points: list[Point] = []
        refused: dict[tuple[str, str], str] = {}
        files = Files()
        for case in chosen.cases:
            for controller, controller_settings in by_label.items() if not case.not_run else ():
                try:
                    points += _points(case, controller, controller_settings, seed_list, files)
                except InputError as refusal:
                    refused[case.name, controller] = str(refusal)
        if not points:
            label, why = next((controller, why) for (_, controller), why in refused.items())
            raise InputError(f"{label} fits no case: {why}")
        return cls(chosen, tuple(by_label), tuple(seed_list), tuple(points), refused)

    def after(self, before: Plan, failed: Mapping[str, str]) -> Self:
        """This plan with all runs of an earlier one, so that its result is that of both.

        A suite whose cases need different numbers of seeds is run in several steps.

        Args:
            before: The earlier plan.
            failed: Why runs of it, or of those before it, failed, by their keys.
        """
        names = {case.name for case in before.suite.cases}
        added = tuple(case for case in self.suite.cases if case.name not in names)
        suite = replace(before.suite, cases=(*before.suite.cases, *added))
        points = {(point.case.name, point.controller, point.seed): point for point in (*before.points, *self.points)}
        return type(self)(
            suite,
            self.controllers,
            tuple(sorted({*before.seeds, *self.seeds})),
            tuple(points.values()),
            {**before.refused, **self.refused},
            failed,
        )

    def __repr__(self) -> str:
        return f"<tidegate Plan of {self.suite.name} for {', '.join(self.controllers)}: {len(self.points)} runs>"

    def kept(self, out: str | Path) -> tuple[int, int]:
        """Returns the number of runs kept in a folder, and the number of all."""
        results = kept_runs(Path(out))
        keys = {point.key for point in self.points}
        return sum(results.file(key).is_file() for key in keys), len(keys)

    def run(
        self,
        out: str | Path,
        *,
        baseline: str | None = None,
        workers: int | None = None,
        processes: bool | None = None,
        progress: pool.Progress | bool | None = None,
        command: str = "",
        further: Mapping[str, Any] | None = None,
    ) -> SuiteResult:
        """Does the runs that are not in the folder, and writes its pages and tables.

        Args:
            out: The folder; each run is kept in it when it is done, and the same folder again goes on from there.
            baseline: The controller to compare the others with; the suite's, or the first one, by default.
            workers: Number of runs at once; one a core by default.
            processes: Whether to use processes; by default where a controller in Python takes part.
            progress: True for a bar, on a terminal or in a notebook; or a function that is told the fraction done.
            command: The command line, for the record.
            further: More entries for `suite.json`.

        Raises:
            InputError: when the baseline is none of the controllers.
            OutputError: when results cannot be written.
        """
        against = self._baseline(baseline)
        results = kept_runs(Path(out))
        about = {**self._about(against, command), **(further or {})}
        with results.prepared(about, [], []), progress_bar(progress, f"{len(self.points)} runs") as tell:
            # of a sweep over a suite, what each contender has
            settings = dict((further or {}).get("sweep", {}).get("settings", {}))
            table = self._dataset(results.folder, settings)
            points = {point.key: point for point in self.points}
            present = {key for key in points if results.read(key) is not None}
            tabled = table.begin(present)
            for key in sorted(present - tabled):
                if (row := results.read(key)) is not None:
                    table.add(_row(points[key], row, settings))
            missing = {key: point for key, point in points.items() if key not in present and key not in self.failed}
            for key in missing:
                results.clear_way(key)
            jobs = [SuiteJob(point) for point in missing.values() if point.session is None]
            seconds: dict[tuple[str, str], float] = {}
            live = [SuiteJob(point) for point in missing.values() if point.session is not None]
            processes = by_processes(processes, (point.lowered for point in self.points), len(jobs), workers)
            first, second = _parts(tell, jobs, live)

            def keep(job: SuiteJob, row: Mapping[str, Any]) -> Path:
                # the file first, because runs are resumed from it: a row without it would come twice after a kill
                file = results.write(job.point.key, row)
                table.add(_row(job.point, row, settings))
                return file

            def keep_timed(number: int, timed: tuple[Mapping[str, Any], float]) -> Path:
                point, (row, took) = jobs[number].point, timed
                cell = (point.case.name, point.controller)
                seconds[cell] = seconds.get(cell, 0.0) + took
                return keep(jobs[number], row)

            try:
                done: list[Any] = engine.run_all(
                    [Timed(job) for job in jobs],
                    workers=workers,
                    processes=processes,
                    progress=first,
                    keep_going=True,
                    keep=keep_timed,
                    # a cell with a failed run has no verdict
                    together=[(job.point.case.name, job.point.controller) for job in jobs],
                )
                done += _held(live, results, second, keep)
            finally:
                table.close()
            failed, refused = dict(self.failed), dict(self.refused)
            for job, outcome in zip([*jobs, *live], done, strict=True):
                if isinstance(outcome, InputError):
                    refused[job.point.case.name, job.point.controller] = str(outcome)
                elif isinstance(outcome, RunError | _core.InternalError):
                    failed[job.point.key] = str(outcome)
                elif isinstance(outcome, BaseException):
                    raise outcome
            about |= {"format": FORMAT, "failed": failed, "refused": _refusals(refused)}
            result = SuiteResult.gather(results, about, self.suite, len(present), seconds)
            result.write_pages(results.folder)
            return result

    def _dataset(self, folder: Path, settings: Mapping[str, Mapping[str, str]]) -> Writer:
        """Opens the Parquet data set of the runs, with the settings of contenders that are combinations."""
        keys = dict.fromkeys(key for values in settings.values() for key in values if key != CONTROLLER)
        numeric = [
            key for key in keys if all(number_of(values.get(key, "")) is not None for values in settings.values())
        ]
        words = ["scenario", *(key for key in keys if key not in numeric), "digest"]
        return Writer(folder, words, [*numeric, *numbers.names()])

    def sessions(self, out: str | Path) -> list[LiveJob]:
        """Returns the sessions of programs that are not yet kept in a folder; they run by the wall clock."""
        results = kept_runs(Path(out))
        return [point.session for point in self.points if point.session is not None and results.read(point.key) is None]

    def _baseline(self, baseline: str | None) -> str:
        if baseline is not None and baseline not in self.controllers:
            raise InputError(f"baseline: found {baseline}; expected one of {', '.join(self.controllers)}")
        usual = self.suite.table.baseline
        return baseline or (usual if usual in self.controllers else None) or self.controllers[0]

    def _about(self, baseline: str, command: str) -> dict[str, Any]:
        runs = [
            {"case": point.case.name, "controller": point.controller, "seed": point.seed, "key": point.key}
            for point in self.points
        ]
        classes = {name: text for point in self.points for name, text in point.lowered.inputs.local_classes.items()}
        return {
            **({"classes": classes} if classes else {}),
            "suite": self.suite.name,
            "text": self.suite.text,
            "cases": [case.to_data() for case in self.suite.cases],
            "controllers": list(self.controllers),
            "baseline": baseline,
            "command": command,
            "versions": dict(versions()),
            "refused": _refusals(self.refused),
            "runs": runs,
        }


def _points(
    case: Case, controller: str, choice: str | dict[str, Scalar], seeds: Sequence[int], files: Files
) -> list[Point]:
    """The runs of a case and a controller.

    Raises:
        InputError: when the controller cannot take part in the case.
    """
    sessions = [case.session(controller, seed) for seed in seeds] if is_program(controller) else []
    lowered = Lowered(sessions[0].standing.live if sessions else case.with_controller(choice), files)
    job = lowered.for_run(record=_LEVEL)
    # the measures of a run depend on the choice of contenders, too
    content = f"{build()} {_measuring()} {job.hash} {case.who}"
    content += "".join(f" {session_of.contender.content}" for session_of in sessions[:1])
    return [
        Point(case, controller, seed, lowered, hashlib.sha256(f"{content} {seed}".encode()).hexdigest()[:32], session)
        for seed, session in zip_longest(seeds, sessions)
    ]


def _row(point: Point, row: Mapping[str, Any], settings: Mapping[str, Mapping[str, str]]) -> Row:
    """A run as the data set has it: of several contenders the worst number."""
    settings_of = settings.get(point.controller, {})
    words = {**settings_of, "scenario": point.case.name, "digest": str(row["digest"])}
    values = {key: number_of(value) for key, value in settings_of.items()}
    values |= {name: numbers.number(row, name) for name in numbers.names()}
    return Row(point.key, point.controller, words, point.seed, values)


def _parts(
    progress: pool.Progress | None, jobs: Sequence[SuiteJob], live: Sequence[SuiteJob]
) -> tuple[pool.Progress | None, pool.Progress | None]:
    """The progress of simulations, and of sessions after them."""
    if not live:
        return progress, None
    from tidegate.shell import beside

    simulated = [RunJob(job.point.lowered, job.point.seed) for job in jobs]
    return beside(progress, simulated, [job.point.session for job in live if job.point.session is not None])


def _held(
    live: Sequence[SuiteJob],
    results: Results,
    tell: pool.Progress | None,
    keep: Callable[[SuiteJob, Mapping[str, Any]], Path],
) -> list[Path | BaseException]:
    """Holds the sessions one after the other, after all simulations; each is kept when it ends."""
    if not live:
        return []
    from tidegate.shell import attempt

    sessions = [job.point.session for job in live if job.point.session is not None]

    def keep_session(number: int, run: Run) -> Path:
        job = live[number]
        row = job.measured(run)
        # a session is saved whole, beside the results
        run.save(results.folder / SESSIONS / job.point.key)
        return keep(job, row)

    return attempt(sessions, tell, keep=keep_session)


def _refusals(refused: Mapping[tuple[str, str], str]) -> list[dict[str, str]]:
    return [{"case": case, "controller": controller, "why": why} for (case, controller), why in refused.items()]


@dataclass(frozen=True)
class SuiteJob:
    """One run of a suite, as a job."""

    point: Point

    def __call__(self, tick: pool.Tick) -> dict[str, Any]:
        """Runs the engine and measures.

        Raises:
            RunError: when the run fails.
        """
        return self.measured(RunJob(self.point.lowered, self.point.seed, _LEVEL)(tick))

    def measured(self, run: Run) -> dict[str, Any]:
        """Returns the kept part of a run.

        Raises:
            RunError: when no flow in it can be judged.
        """
        flows = run.summary["flows"]
        contenders = self.point.case.judged(flows)
        unjudged = {*self.point.case.contending(run.flows)} - {*contenders}
        if not contenders:
            raise RunError("no flow that can be judged began in this run")
        live = self.point.session is not None
        # the share of a program is that of the call that it stands for
        measured = measures.measure(run, contenders, self.point.case.scenario if live else None)
        row = {
            "seed": run.seed,
            "digest": run.digest,
            "versions": run.about["versions"],
            "scenario_hash": run.about["scenario_hash"],
            "contenders": contenders,
            "flows": [flow for flow in flows if flow["flow"] not in unjudged],
            **{key: run.summary.get(key, []) for key in ("links", "warnings", "recordings")},
            **({} if run.session is None else {"session": dict(run.session)}),
            "measures": vars(measured),
        }
        data: dict[str, Any] = json.loads(json.dumps(row))
        return data


@dataclass(frozen=True)
class Timed:
    """A job with the seconds that it takes."""

    job: pool.Job[Any]

    def __call__(self, tick: pool.Tick) -> tuple[Any, float]:
        """Does the job, and returns its result with the seconds."""
        began = time.perf_counter()
        result = self.job(tick)
        return result, time.perf_counter() - began


@cache
def _measuring() -> str:
    """Hash of the code of the measures: kept results of other code are not used."""
    return hashlib.sha256("".join(map(sha256, measures.FILES)).encode()).hexdigest()[:16]
