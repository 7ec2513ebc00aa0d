"""A suite for some controllers and seeds: its runs, and doing those that are not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tidegate import _core
from tidegate._files import sha256
from tidegate.errors import InputError, RunError
from tidegate.results._sweep import Results
from tidegate.running import RunJob, build, pool, versions
from tidegate.running._seeds import seeds_of
from tidegate.running.jobs import busy_in_python
from tidegate.scenario._lower import Lowered
from tidegate.scenario._reading import Files
from tidegate.suite import measures
from tidegate.suite.cases import Case, check_controllers
from tidegate.suite.result import FORMAT, SUITE_FILE, SuiteResult
from tidegate.suite.suite import Suite

_LEVEL = "series"  # what measures are read from; nothing of it is kept but a line a second
_MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Point:
    """One run of a suite."""

    case: Case
    """Its case."""
    controller: str
    """What is tried."""
    seed: int
    """Its seed."""
    lowered: Lowered
    """The scenario as the engine takes it; seeds of one cell share it."""
    key: str
    """Hash of all that the result depends on; the name of its file."""


@dataclass(frozen=True)
class Plan:
    """The runs of a suite, checked, with their files read."""

    suite: Suite
    """What is run."""
    controllers: tuple[str, ...]
    """Who takes part."""
    seeds: tuple[int, ...]
    """The seeds of each cell."""
    points: tuple[Point, ...]
    """Every run."""
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why there are no runs of a case and a controller."""

    @classmethod
    def of(
        cls,
        suite: Suite | str | Path,
        controllers: Sequence[str],
        *,
        seeds: int | Sequence[int] | None = None,
        cases: Sequence[str] = (),
    ) -> Plan:
        """The plan of a suite.

        Args:
            suite: A suite, or the name or path of one.
            controllers: Who takes part: `gcc`, `fixed:2Mbps`, `python:mine.py:Mine`.
            seeds: How many, counted from 1, or which; as many as the suite says by default.
            cases: Patterns of names of cases (`5.1*`), for these alone.

        Raises:
            InputError: when suite, controllers, seeds or cases are not usable, or no case can be run.
        """
        whole = suite if isinstance(suite, Suite) else Suite.load(suite)
        chosen = whole.only(tuple(cases))
        check_controllers(controllers)
        every = seeds_of(whole.table.seeds if seeds is None else seeds)
        if len(every) * len(chosen.cases) * len(controllers) > _MOST_RUNS:
            raise InputError(f"that makes more than {_MOST_RUNS} runs")
        if all(case.not_run for case in chosen.cases):
            reasons = dict.fromkeys(case.not_run for case in chosen.cases)
            raise InputError(f"{whole.name}: no case can be run: {'; '.join(reasons)}")
        points: list[Point] = []
        refused: dict[tuple[str, str], str] = {}
        files = Files()
        for case in chosen.cases:
            for controller in controllers if not case.not_run else ():
                try:
                    lowered = Lowered(case.with_controller(controller), files)
                    made = lowered.for_run(record=_LEVEL)
                except InputError as refusal:
                    refused[case.name, controller] = str(refusal)
                    continue
                # of what a run gives, its measures depend on who is a contender in it, too
                content = f"{build()} {_measuring()} {made.hash} {case.who}"
                points += [
                    Point(
                        case, controller, seed, lowered, hashlib.sha256(f"{content} {seed}".encode()).hexdigest()[:32]
                    )
                    for seed in every
                ]
        if not points:
            label, why = next((controller, why) for (_, controller), why in refused.items())
            raise InputError(f"{label}: fits no case: {why}")
        return cls(chosen, tuple(controllers), tuple(every), tuple(points), refused)

    def kept(self, out: str | Path) -> tuple[int, int]:
        """How many different runs are kept in a folder, and of how many."""
        results = Results(Path(out), SUITE_FILE)
        keys = {point.key for point in self.points}
        return sum(results.file(key).is_file() for key in keys), len(keys)

    def run(
        self,
        out: str | Path,
        *,
        baseline: str | None = None,
        workers: int | None = None,
        processes: bool | None = None,
        progress: pool.Progress | None = None,
        command: str = "",
        further: Mapping[str, Any] | None = None,
    ) -> SuiteResult:
        """Does the runs that are not in the folder, and writes its pages and tables.

        Args:
            out: The folder; each run is kept in it when it is done, and the same folder again goes on from there.
            baseline: Whom others are compared with; as the suite says, or the first controller, by default.
            workers: How many runs at once; one a core by default.
            processes: Whether to use processes; by default where a controller in Python takes part.
            progress: Told the fraction that is done.
            command: What was typed, for the record.
            further: What is to stand in `suite.json` beside that.

        Raises:
            InputError: when nobody of the baseline's name takes part.
            OutputError: when results cannot be written.
        """
        against = self._baseline(baseline)
        results = Results(Path(out), SUITE_FILE)
        about = {**self._about(against, command), **(further or {})}
        with results.begun(about, [], []):
            there = {point.key for point in self.points if results.read(point.key) is not None}
            missing = {point.key: point for point in self.points if point.key not in there}
            for key in missing:
                results.clear_way(key)
            jobs = [SuiteJob(point, results) for point in missing.values()]
            if processes is None:
                processes = busy_in_python((point.lowered for point in self.points), len(jobs), workers)
            done = pool.run_all(jobs, workers=workers, processes=processes, progress=progress, keep_going=True)
            failed, refused = {}, dict(self.refused)
            for job, outcome in zip(jobs, done, strict=True):
                if isinstance(outcome, InputError):
                    refused[job.point.case.name, job.point.controller] = str(outcome)
                elif isinstance(outcome, RunError | _core.InternalError):
                    failed[job.point.key] = str(outcome)
                elif isinstance(outcome, BaseException):
                    raise outcome
            about |= {"format": FORMAT, "failed": failed, "refused": _refusals(refused)}
            result = SuiteResult.gather(results, about, self.suite, len(there))
            result.write_pages(results.folder)
            return result

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
        return {
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


def _refusals(refused: Mapping[tuple[str, str], str]) -> list[dict[str, str]]:
    return [{"case": case, "controller": controller, "why": why} for (case, controller), why in refused.items()]


@dataclass(frozen=True)
class SuiteJob:
    """One run that leaves one file."""

    point: Point
    results: Results

    def __call__(self, tick: pool.Tick) -> Path:
        """Runs the engine, measures, and writes what is kept, whole or not at all.

        Raises:
            RunError: when the run fails; nothing is written then.
        """
        run = RunJob(self.point.lowered, self.point.seed, _LEVEL)(tick)
        flows = run.summary["flows"]
        contenders = self.point.case.judged(flows)
        unjudged = {*self.point.case.contending(run.flows)} - {*contenders}
        if not contenders:
            raise RunError("no flow that could be judged began in this run")
        measured = measures.measure(run, contenders)
        row = {
            "seed": run.seed,
            "digest": run.digest,
            "versions": run.about["versions"],
            "scenario_hash": run.about["scenario_hash"],
            "contenders": contenders,
            "flows": [flow for flow in flows if flow["flow"] not in unjudged],
            **{key: run.summary.get(key, []) for key in ("links", "warnings", "recordings")},
            "measures": {
                "flows": measured.flows,
                "run": measured.run,
                "events": measured.events,
                "series": measured.series,
            },
        }
        return self.results.write(self.point.key, json.loads(json.dumps(row)))


@cache
def _measuring() -> str:
    """Which state of the measures this is: results of another one are not used."""
    return hashlib.sha256("".join(map(sha256, measures.FILES)).encode()).hexdigest()[:16]
