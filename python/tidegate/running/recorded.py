"""One run: the engine's answer to a scenario and a seed, in memory or in a folder."""

from __future__ import annotations

import json
import math
import platform
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Self

import numpy as np

from tidegate import _core
from tidegate._core import Table
from tidegate._files import named, sha256, write_file
from tidegate.errors import InputError, OutputError, RunError, did_you_mean
from tidegate.results._folders import write_folder
from tidegate.results._saved import Contents, check_run, read_json
from tidegate.running import _memory as memory
from tidegate.running import pool
from tidegate.scenario import Scenario
from tidegate.scenario import _subject as subject
from tidegate.scenario._lower import Experiment, Lowered
from tidegate.scenario.scenario import Level

RUN_FILE = "run.json"
SIDES = ("sender", "receiver")
"""Of flows, for capture files."""
_SLICES = "slices"
_FORMAT = 1


@cache
def versions() -> Mapping[str, str]:
    """What a result was made with."""
    found = {"tidegate": version(), "python": platform.python_version(), "numpy": np.__version__}
    commit = _core.COMMIT
    return {**found, "commit": commit} if commit else found


@cache
def build() -> str:
    """Which build of the engine this is: a hash of the extension, which differs within a version, too."""
    return sha256(Path(_core.__file__))[:16]


def version() -> str:
    """The version of tidegate."""
    try:
        return metadata.version("tidegate")
    except metadata.PackageNotFoundError:
        return _core.__version__


class Run:
    """What a run says about itself.

    >>> from tidegate import Scenario, run
    >>> once = run(Scenario.load("home-broadband", {"duration": "5s"}))
    >>> again = run(Scenario.load("home-broadband", {"duration": "5s"}))
    >>> once.digest == again.digest
    True
    >>> once.table("truth").columns
    ['t_s', 'link', 'capacity_bps', 'controller', 'seed']
    """

    def __init__(self, about: Mapping[str, Any], tables: Any) -> None:
        """Use [run][tidegate.running.run] or [Run.load][tidegate.running.Run.load]."""
        self._about = about
        self._tables = tables

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self._about["name"])

    @property
    def seed(self) -> int:
        """The seed that all its randomness comes from."""
        return int(self._about["seed"])

    @property
    def controller(self) -> str:
        """Of which controller it is a run: what a comparison calls it, else its subject's."""
        named = self._about.get("controller")
        if named is None:
            entry = subject.of_summary(self.summary)
            named = entry.get("controller") or entry["kind"]
        return str(named)

    def under(self, controller: str) -> Self:
        """This run as one of that controller, as a comparison calls it."""
        return (
            self
            if controller == self.controller
            else type(self)({**self._about, "controller": controller}, self._tables)
        )

    @property
    def digest(self) -> str:
        """Hash of the whole recording: equal for equal runs, on every machine."""
        return str(self._about["digest"])

    @property
    def summary(self) -> Mapping[str, Any]:
        """The metrics; see [metrics][tidegate.results.metrics] for what each one is."""
        found: Mapping[str, Any] = self._about["summary"]
        return found

    @property
    def about(self) -> Mapping[str, Any]:
        """What `run.json` holds: seed, versions, inputs, scenario, digest, summary."""
        return self._about

    @property
    def scenario(self) -> Scenario:
        """The scenario that it is a run of."""
        return Scenario.parse(self._about["scenario"], Path(self._about["base"]) / f"{self.name}.toml")

    @property
    def flows(self) -> list[str]:
        """Names of the flows."""
        return [flow["flow"] for flow in self.summary["flows"]]

    @property
    def members(self) -> list[Mapping[str, Any]]:
        """The metrics of the members of sessions: RTCP, and what became of the losses that each saw.

        See [MEMBERS][tidegate.results.metrics.MEMBERS]; what a member sent and received is in its flow,
        `SESSION.MEMBER`.
        """
        return [dict(one) for one in self.summary.get("members", ())]

    @property
    def subject(self) -> str:
        """The flow that comparisons are about; see [place][tidegate.scenario._subject.place]."""
        return str(subject.of_summary(self.summary)["flow"])

    def metrics(self, flow: str | None = None) -> Mapping[str, Any]:
        """The metrics of one flow; of the subject by default.

        Raises:
            InputError: when there is no such flow.
        """
        wanted = flow or self.subject
        for one in self.summary["flows"]:
            if one["flow"] == wanted:
                return dict(one)
        hint = did_you_mean(wanted, self.flows) or f"; there are {', '.join(self.flows)}"
        raise InputError(f"{wanted}: no such flow{hint}")

    def with_metrics(self, flow: str, metrics: Mapping[str, Any]) -> Self:
        """This run with further metrics of a flow in its summary."""
        flows = [{**one, **metrics} if one["flow"] == flow else one for one in self.summary["flows"]]
        return type(self)({**self._about, "summary": {**self.summary, "flows": flows}}, self._tables)

    @property
    def tables(self) -> list[str]:
        """Names of the recorded tables."""
        return list(self._tables.names())

    def table(self, name: str) -> Table:
        """A recorded table; its last columns are the [controller][tidegate.running.Run.controller] and the seed.

        Raises:
            KeyError: when the run has none of that name, with those that it has.
        """
        if name not in self.tables:
            hint = did_you_mean(name, self.tables) or f"; there are {', '.join(self.tables)}"
            raise KeyError(f"{name}: no such table in this run{hint}")
        table: Table = self._tables.get(name)
        return table if {"controller", "seed"} <= set(table.columns) else table.labelled(self.controller, self.seed)

    def pcapng(self, side: str = "receiver") -> bytes:
        """What one side sees of all flows as a capture file, for a run with `capture`.

        Args:
            side: `sender`, the ends where media, data or datagrams come from, or `receiver`, where they go.

        Raises:
            InputError: when the run kept no packets, or there is no such side.
            RunError: when the fields of a packet do not fit it.
        """
        if side not in SIDES:
            raise InputError(f"side: found {side}; expected {' or '.join(SIDES)}")
        data: bytes | None = self._tables.capture(side)
        if data is None:
            raise InputError("the run kept no packets; set capture = true in the scenario")
        return data

    def encoded(self, flow: str) -> bytes:
        """What the encoder in the loop of a flow made: a byte stream (H.264 annex B) from its parameter sets on.

        Raises:
            InputError: when the flow has none.
        """
        data: bytes | None = self._tables.encoded(flow) if flow in self.in_loop else None
        if data is None:
            raise InputError(f"{self.name}: {flow} has no encoder in the loop")
        return data

    @property
    def in_loop(self) -> list[str]:
        """Flows with an encoder in the loop."""
        return sorted(set(self.table(_SLICES).to_numpy("flow").tolist())) if _SLICES in self.tables else []

    def save(self, folder: str | Path) -> Path:
        """Writes a folder with `run.json` and one Parquet file for each table, whole or not at all.

        What encoders in the loop made is in `encoded-FLOW.h264`. An earlier run there is replaced; files in it that are
        not tidegate's, or were changed, are kept.

        Raises:
            OutputError: when it cannot be written, or something else is there.
        """
        path = Path(folder)
        with write_folder(path, RUN_FILE) as making:
            self._fill(making)
        return path

    def _fill(self, folder: Path) -> None:
        with named(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name in self.tables:
            file = folder / f"{name}.parquet"
            with named(file):
                try:
                    self.table(name).write_parquet(str(file))
                except ValueError as error:
                    raise OutputError(f"{file}: cannot be written: {error}") from None
        for side in SIDES:
            data = self._tables.capture(side)
            if data is not None:
                write_file(folder / _capture(side), data)
        for flow in self.in_loop:
            write_file(folder / _stream(flow), self.encoded(flow))
        write_file(folder / RUN_FILE, json.dumps(self._about, indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads what [save][tidegate.running.Run.save] wrote.

        Raises:
            InputError: when there is no run, or it is damaged.
        """
        path = Path(folder)
        saved = _Saved(path)
        about = read_json(saved.file(RUN_FILE))
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise InputError(f"{path / RUN_FILE}: is not a run of this version of tidegate")
        missing = {"name", "seed", "digest", "summary", "scenario", "base"} - about.keys()
        if missing:
            raise InputError(f"{path / RUN_FILE}: is damaged: {', '.join(sorted(missing))} missing")
        check_run(path / RUN_FILE, about)
        return cls(about, saved)

    @property
    def draws(self) -> Mapping[str, Any]:
        """For each random substream how many draws were taken, with hashes on the way.

        Two runs with an equal hash at the same number of draws had the same luck there. Not kept in folders.

        Raises:
            InputError: for a run that was read from a folder.
        """
        found: Mapping[str, Any] | None = self._tables.draws()
        if found is None:
            raise InputError("the draws of a saved run are not kept; run its scenario again")
        return found

    def kept(self) -> Self:
        """This run with all its tables in memory, so that its folder may go."""
        return type(self)(self._about, _Kept(self, self._tables))

    def __repr__(self) -> str:
        return f"<tidegate Run of {self.name}, seed {self.seed}, digest {self.digest}>"


class _Fresh:
    """Tables of a recording in memory."""

    def __init__(self, recording: _core.Recording, capture: bool) -> None:
        self._recording = recording
        self._capture = capture

    def names(self) -> list[str]:
        return list(self._recording.table_names())

    def get(self, name: str) -> Table:
        return self._recording.table(name)

    def capture(self, side: str) -> bytes | None:
        if not self._capture:
            return None
        try:
            return bytes(self._recording.pcapng(side))
        except ValueError as error:
            raise RunError(f"no capture file: {error}") from None

    def encoded(self, flow: str) -> bytes | None:
        return self._recording.encoded(flow)

    def draws(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] = json.loads(self._recording.draws_json())
        return found


class _Saved(Contents):
    """Tables of a run in a folder."""

    def names(self) -> list[str]:
        return sorted(file.stem for file in self.folder.glob("*.parquet") if self.is_ours(file.name))

    def get(self, name: str) -> Table:
        file = self.file(f"{name}.parquet")
        try:
            return _core.read_parquet(str(file))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read: {error}") from None

    def capture(self, side: str) -> bytes | None:
        file = self.file(_capture(side))
        return file.read_bytes() if file.is_file() else None

    def encoded(self, flow: str) -> bytes | None:
        file = self.file(_stream(flow))
        return file.read_bytes() if file.is_file() else None

    def draws(self) -> Mapping[str, Any] | None:
        return None


def _capture(side: str) -> str:
    return f"packets-{side}.pcapng"


def _stream(flow: str) -> str:
    return f"encoded-{flow}.h264"


class _Kept:
    """Tables of a run in memory that were read from a folder."""

    def __init__(self, run: Run, saved: _Saved) -> None:
        self._tables = {name: saved.get(name) for name in saved.names()}
        self._captures = {side: saved.capture(side) for side in SIDES}
        self._encoded = {flow: run.encoded(flow) for flow in run.in_loop}

    def names(self) -> list[str]:
        return list(self._tables)

    def get(self, name: str) -> Table:
        return self._tables[name]

    def capture(self, side: str) -> bytes | None:
        return self._captures[side]

    def encoded(self, flow: str) -> bytes | None:
        return self._encoded.get(flow)

    def draws(self) -> Mapping[str, Any] | None:
        return None


@dataclass(frozen=True)
class RunJob:
    """One run as a piece of work for the pool."""

    scenario: Scenario | Lowered
    """A scenario; or what several runs of one share."""
    seed: int | None = None
    record: str | None = None

    def __call__(self, tick: pool.Tick) -> Run:
        """Runs the engine.

        Raises:
            RunError: says which component failed, when in simulated time, and why; or how much memory it would need.
        """
        lowered = self.scenario if isinstance(self.scenario, Lowered) else Lowered(self.scenario)
        made = lowered.experiment(seed=self.seed, record=self.record)
        memory.check(made.ir)
        with engine_errors(lowered.scenario):
            recording = _core.run(json.dumps(made.ir), made.inputs.traces, made.inputs.python, tick)
        return run_of(lowered.scenario, made, recording)


@contextmanager
def engine_errors(scenario: Scenario) -> Iterator[None]:
    """Names the place in `scenario`, or in the file of a controller in Python, of an error of the engine."""
    try:
        yield
    except _core.RunError as error:
        raise RunError(f"{error}{_place(error.__cause__)}") from error.__cause__
    except _core.Refused as error:
        where = scenario.where(error.place) or scenario.name
        raise InputError(f"{where}: {error}{_place(error.__cause__)}") from (error.__cause__ or error)
    except ValueError as error:
        raise InputError(f"{scenario.name}: {error}") from None


def run_of(scenario: Scenario, made: Experiment, recording: _core.Recording) -> Run:
    """The run of a scenario, `made` into what the engine took, that left this recording."""
    summary = {**json.loads(recording.summary_json())}
    summary.setdefault("name", scenario.name)
    summary.setdefault("seed", made.ir["seed"])
    about = {
        "format": _FORMAT,
        "name": scenario.name,
        "seed": made.ir["seed"],
        "digest": recording.digest,
        "scenario_hash": made.hash,
        "inputs": made.inputs.files,
        "versions": dict(versions()),
        "base": str(scenario.base.resolve()),
        "scenario": scenario.to_toml(),
        "summary": summary,
    }
    return Run(about, _Fresh(recording, scenario.capture))


def _place(error: BaseException | None) -> str:
    """Where in its author's file a controller in Python failed."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    if not frames:
        return ""
    last = frames[-1]
    return f" ({last.filename}, line {last.lineno}, in {last.name})"


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
    progress: pool.Progress | None = None,
) -> Run:
    """Runs a scenario once.

    Args:
        scenario: A scenario, or the path or name of one.
        seed: Instead of the scenario's.
        record: How much is kept, instead of the scenario's: summary, series or packets.
        progress: Told the fraction of simulated time that is done.

    Raises:
        InputError: when the scenario is not usable.
        RunError: when the run fails; `__cause__` is the exception of a Python controller.
    """
    made = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    (done,) = pool.run_all([RunJob(made, seed, record)], progress=progress)
    if isinstance(done, BaseException):
        raise done
    return done


def finite(value: Any) -> float | None:
    """A metric's value where it has one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
