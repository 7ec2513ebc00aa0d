"""Runs as pieces of work: one, or many at once over threads or processes."""

from __future__ import annotations

import json
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidegate import _core
from tidegate.control import learned
from tidegate.errors import InputError, RunError
from tidegate.output.progress import shown
from tidegate.runs import engine, pool
from tidegate.runs._tables import Fresh
from tidegate.runs._versions import versions_of
from tidegate.runs.recorded import FORMAT, Run
from tidegate.scenario import Scenario, memory
from tidegate.scenario.lower import Lowered, RunInput
from tidegate.scenario.scenario import Level
from tidegate.scenario.variants import as_asked


@dataclass(frozen=True)
class RunJob:
    """One run as a piece of work for the pool."""

    scenario: Scenario | Lowered
    """A scenario; or its lowered form, which several runs share."""
    seed: int | None = None
    record: str | None = None

    @property
    def simulated(self) -> Scenario:
        """What is simulated."""
        return self.scenario.scenario if isinstance(self.scenario, Lowered) else self.scenario

    def __call__(self, tick: pool.Tick) -> Run:
        """Runs the engine.

        Raises:
            RunError: says which component failed, when in simulated time, and why; or how much memory it would need.
        """
        lowered = self.scenario if isinstance(self.scenario, Lowered) else Lowered(self.scenario)
        made = lowered.for_run(seed=self.seed, record=self.record)
        memory.check(made)
        with engine_errors(lowered.scenario):
            recording = _core.run(json.dumps(made.ir), made.inputs.traces, made.inputs.python, tick)
        return run_of(lowered.scenario, made, recording)


@contextmanager
def engine_errors(scenario: Scenario) -> Iterator[None]:
    """Turns an error of the engine into one with its place in `scenario`, or in the file of a controller in Python.

    Raises:
        RunError: for a run that failed.
        InputError: for a scenario that the engine refuses.
    """
    try:
        yield
    except _core.RunError as error:
        raise RunError(f"{as_asked(str(error))}{_place(error.__cause__)}") from error.__cause__
    except _core.Refused as error:
        where = scenario.where(error.place) or scenario.name
        raise InputError(f"{where}: {as_asked(str(error))}{_place(error.__cause__)}") from (error.__cause__ or error)
    except ValueError as error:
        raise InputError(f"{scenario.name}: {error}") from None


def run_of(scenario: Scenario, made: RunInput, recording: _core.Recording) -> Run:
    """The run that left a recording.

    Args:
        scenario: What was run.
        made: What the engine was given.
        recording: What it gave back.
    """
    summary = {**json.loads(recording.summary_json())}
    summary["flows"] = [
        {**flow, "controller": as_asked(flow["controller"])} if flow.get("controller") else flow
        for flow in summary["flows"]
    ]
    summary.setdefault("name", scenario.name)
    summary.setdefault("seed", made.ir["seed"])
    about = {
        "format": FORMAT,
        "name": scenario.name,
        "seed": made.ir["seed"],
        "digest": recording.digest,
        "scenario_hash": made.hash,
        "inputs": {as_asked(name): content for name, content in made.inputs.files.items()},
        **({"classes": made.inputs.here} if made.inputs.here else {}),
        "versions": versions_of(made.inputs.files),
        "base": str(scenario.base.resolve()),
        "scenario": scenario.to_toml(),
        "summary": summary,
    }
    return Run(about, Fresh(recording, scenario.capture))


_LEARNED = Path(learned.__file__).parent


def _place(error: BaseException | None) -> str:
    """Where in its author's file a controller in Python failed."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    if not frames:
        return ""
    last = frames[-1]
    if Path(last.filename).parent == _LEARNED:
        return ""  # whose errors name the author's file, or the model's
    file = Path(last.filename)
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f" ({shown}, line {last.lineno}, in {last.name})"


@dataclass(frozen=True)
class FolderJob:
    """One run that leaves a folder: what another process can hand over."""

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
        record: How much is kept, instead of the scenario's: summary, series or packets.
        progress: True for a bar, on a terminal or in a notebook; or a function that is told the fraction of simulated
            time that is done.

    Raises:
        InputError: when the scenario is not usable.
        RunError: when the run fails; `__cause__` is the exception of a Python controller.
    """
    made = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    with shown(progress, made.name) as tell:
        (done,) = engine.run_all([RunJob(made, seed, record)], progress=tell)
    if isinstance(done, BaseException):
        raise done
    return done


def busy_in_python(lowered: Iterable[Lowered], runs: int, workers: int | None) -> bool:
    """Whether it pays to use processes: a controller in Python holds the interpreter lock.

    No other process has a class of a notebook's cell, so that runs with one are done by threads.
    """
    if runs == 1 or (workers or pool.cores()) == 1:
        return False
    every = [one.inputs for one in lowered]
    return any(one.python for one in every) and not any(one.here for one in every)


def by_processes(asked: bool | None, lowered: Iterable[Lowered], runs: int, workers: int | None) -> bool:
    """Whether runs are done by processes: as asked, and where nobody says so, where it pays.

    Raises:
        InputError: when processes are asked for, and no other process has a class.
    """
    every = list(lowered)
    if asked is None:
        return busy_in_python(every, runs, workers)
    here = next((name for one in every for name in one.inputs.here), None)
    # workers of Dask are sent the class itself
    if asked and here is not None and engine.current() is engine.POOL:
        right = "leave processes out, or put it into a file (python:FILE.py:CLASS)"
        raise InputError(
            f"{here}: is defined in a notebook, or inside a function: other processes do not have it; {right}"
        )
    return asked


def execute(jobs: Sequence[RunJob], *, progress: pool.Progress | None = None) -> list[Run]:
    """Does the runs, at once, and returns them in order.

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
    """Does the runs, at once over threads or processes, and returns them in order.

    With `keep_going`, an error stands in the place of each run that failed.

    Raises:
        RunError: when a run fails, and not to keep going; when a process of a run went away.
    """
    if not processes or len(jobs) < 2 or engine.current() is not engine.POOL:  # noqa: PLR2004
        return engine.run_all(jobs, workers=workers, progress=progress, keep_going=keep_going)
    with tempfile.TemporaryDirectory(prefix="tidegate-", ignore_cleanup_errors=True) as scratch:
        folders = [FolderJob(job, Path(scratch) / str(at)) for at, job in enumerate(jobs)]
        places = pool.run_all(folders, workers=workers, processes=True, progress=progress, keep_going=keep_going)
        return [Run.load(place).kept() if isinstance(place, Path) else place for place in places]
