"""Runs as jobs: one, or many at once in threads or processes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate import _core
from tidegate.control.contenders import as_typed
from tidegate.errors import InputError
from tidegate.output.progress import progress_bar
from tidegate.runs import engine, pool
from tidegate.runs._tables import Fresh
from tidegate.runs._versions import versions_of
from tidegate.runs.result import FORMAT, Run
from tidegate.scenario import Scenario, memory
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.lower import Lowered, RunInput
from tidegate.scenario.scenario import Level


@dataclass(frozen=True)
class RunJob:
    """A run as a job of an engine."""

    scenario: Scenario | Lowered
    """The scenario, or its lowered form, which several runs share."""
    seed: int | None = None
    record: str | None = None

    @property
    def simulated(self) -> Scenario:
        """The scenario that is simulated."""
        return self.scenario.scenario if isinstance(self.scenario, Lowered) else self.scenario

    def __call__(self, tick: pool.Tick) -> Run:
        """Runs the engine.

        Raises:
            RunError: when a component fails, with the simulated time and the reason; or when it needs too much memory.
        """
        lowered = self.scenario if isinstance(self.scenario, Lowered) else Lowered(self.scenario)
        run_input = lowered.for_run(seed=self.seed, record=self.record)
        memory.check(run_input)
        with engine_errors(lowered.scenario):
            recording = _core.run(json.dumps(run_input.ir), run_input.inputs.traces, run_input.inputs.python, tick)
        return run_of(lowered.scenario, run_input, recording)


def run_of(scenario: Scenario, run_input: RunInput, recording: _core.Recording) -> Run:
    """Builds the run of a recording.

    Args:
        scenario: The scenario that was run.
        run_input: The engine's input.
        recording: The engine's recording.
    """
    summary = {**json.loads(recording.summary_json())}
    summary["flows"] = [
        {**flow, "controller": as_typed(flow["controller"])} if flow.get("controller") else flow
        for flow in summary["flows"]
    ]
    summary.setdefault("name", scenario.name)
    summary.setdefault("seed", run_input.ir["seed"])
    about = {
        "format": FORMAT,
        "name": scenario.name,
        "seed": run_input.ir["seed"],
        "digest": recording.digest,
        "scenario_hash": run_input.hash,
        "inputs": {as_typed(name): content for name, content in run_input.inputs.files.items()},
        **({"classes": run_input.inputs.local_classes} if run_input.inputs.local_classes else {}),
        "versions": versions_of(run_input.inputs.files),
        "base": str(scenario.base.resolve()),
        "scenario": scenario.to_toml(),
        "summary": summary,
    }
    return Run(about, Fresh(recording, scenario.capture))


@dataclass(frozen=True)
class FolderJob:
    """A run that is saved in a folder, since another process cannot send it."""

    job: RunJob
    folder: Path

    def __call__(self, tick: pool.Tick) -> Path:
        """Runs the engine and saves the run."""
        return self.job(tick).save(self.folder)


def run(
    scenario: Scenario | str | Path,
    seed: int | None = None,
    record: Level | None = None,
    *,
    progress: pool.Progress | bool | None = None,
) -> Run:
    """Runs a scenario once.

    Args:
        scenario: A scenario, or the path or name of one.
        seed: Instead of the scenario's.
        record: Level of recording, instead of the scenario's: summary, series or packets.
        progress: True for a bar, on a terminal or in a notebook; or a function that is called with the fraction of
            simulated time that is done.

    Raises:
        InputError: when the scenario is not usable.
        RunError: when the run fails; `__cause__` is the exception of a Python controller.
    """
    loaded = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    with progress_bar(progress, loaded.name) as tell:
        (done,) = engine.run_all([RunJob(loaded, seed, record)], progress=tell)
    if isinstance(done, BaseException):
        raise done
    return done


def busy_in_python(lowered: Iterable[Lowered], runs: int, workers: int | None) -> bool:
    """Whether processes are faster than threads: a controller in Python holds the interpreter lock.

    With a time limit they are also needed, since a process can be ended. Other processes lack the classes of a
    notebook's cells, so runs with such a class use threads.
    """
    if (runs == 1 or (workers or pool.cores()) == 1) and pool.time_limit() is None:
        return False
    inputs = [scenario.inputs for scenario in lowered]
    return any(entry.python for entry in inputs) and not any(entry.local_classes for entry in inputs)


def by_processes(asked: bool | None, lowered: Iterable[Lowered], runs: int, workers: int | None) -> bool:
    """Whether processes do the runs: as `asked`, or by default where they are faster.

    Raises:
        InputError: when processes are asked for, and a class exists in this process alone.
    """
    scenarios = list(lowered)
    if asked is None:
        return busy_in_python(scenarios, runs, workers)
    local_class = next((name for scenario in scenarios for name in scenario.inputs.local_classes), None)
    # workers of Dask are sent the class itself
    if asked and local_class is not None and engine.current() is engine.POOL:
        right = "leave processes out, or put the class into a file (python:FILE.py:CLASS)"
        raise InputError(
            f"{local_class}: the class is defined in a notebook or a function, so other processes lack it; {right}"
        )
    return asked


def execute(jobs: Sequence[RunJob], *, progress: pool.Progress | None = None) -> list[Run]:
    """Does the runs, several at once, and returns them in order.

    Raises:
        RunError: when a run fails.
    """
    return [run for run in attempt(jobs, progress=progress) if isinstance(run, Run)]


def attempt(
    jobs: Sequence[RunJob],
    *,
    workers: int | None = None,
    processes: bool = False,
    progress: pool.Progress | None = None,
    keep_going: bool = False,
) -> list[Run | BaseException]:
    """Does the runs, several at once in threads or processes, and returns them in order.

    With `keep_going`, an error stands in the place of each run that failed. The seeds of one scenario fail
    together: after one that makes no progress until the time limit the others are not begun.

    Raises:
        RunError: when a run fails without `keep_going`; when a process of a run ends.
    """
    alone = len(jobs) < 2 and pool.time_limit() is None  # noqa: PLR2004
    if not processes or alone or engine.current() is not engine.POOL:
        return engine.run_all(jobs, workers=workers, progress=progress, keep_going=keep_going)
    seeds = [id(job.scenario) for job in jobs]
    with tempfile.TemporaryDirectory(prefix="tidegate-", ignore_cleanup_errors=True) as scratch:
        folders = [FolderJob(job, Path(scratch) / str(number)) for number, job in enumerate(jobs)]
        outcomes = pool.run_all(
            folders, workers=workers, processes=True, progress=progress, keep_going=keep_going, together=seeds
        )
        return [Run.load(outcome).kept() if isinstance(outcome, Path) else outcome for outcome in outcomes]
