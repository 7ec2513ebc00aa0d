"""A run: the result of a scenario and a seed, in memory or in a folder."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tidegate._core import Table
from tidegate._files import table_written, writable, write_file
from tidegate.errors import InputError, did_you_mean
from tidegate.output.document import Document
from tidegate.output.notebook import Displayable
from tidegate.results.folders import write_folder
from tidegate.results.remarks import Remarks
from tidegate.results.saved import read_json
from tidegate.results.shapes import RunShape, checked
from tidegate.runs._tables import SIDES, Kept, Saved, WithFiles, capture_file, stream_file
from tidegate.scenario import Scenario, subject
from tidegate.show import view

RUN_FILE = "run.json"
_SLICES = "slices"
FORMAT = 1
"""Version of the format of `run.json`."""


class Run(Displayable):
    """A run: its metrics, its recorded tables, its scenario and versions.

    >>> from tidegate import Scenario, run
    >>> once = run(Scenario.load("home-broadband", {"duration": "5s"}))
    >>> again = run(Scenario.load("home-broadband", {"duration": "5s"}))
    >>> once.digest == again.digest
    True
    >>> once.table("truth").columns
    ['t_s', 'link', 'capacity_bps', 'controller', 'seed']
    """

    def __init__(self, about: Mapping[str, Any], tables: Any) -> None:
        """Use [run][tidegate.runs.run] or [Run.load][tidegate.runs.Run.load]."""
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
        """Name of the controller: the one in a comparison, else that of the subject."""
        named = self._about.get("controller")
        if named is None:
            entry = subject.of_summary(self.summary)
            named = entry.get("controller") or entry["kind"]
        return str(named)

    def under(self, controller: str) -> Self:
        """This run with another name of its controller, such as the one in a comparison."""
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
        """The metrics; see [metrics][tidegate.results.metrics] for their definitions."""
        summary: Mapping[str, Any] = self._about["summary"]
        return summary

    @property
    def warnings(self) -> list[str]:
        """Remarks on the run, [notes][tidegate.Run.notes] included: `KEY: SENTENCE`, with the key of a setting."""
        return list(self.remarks.sentences)

    @property
    def notes(self) -> list[str]:
        """[Warnings][tidegate.Run.warnings] that do not put the numbers in doubt."""
        return self.remarks.notes

    @property
    def remarks(self) -> Remarks:
        """Warnings and notes of the run."""
        return view.remarks([self.summary])

    def to_data(self) -> dict[str, Any]:
        """The run as plain data, as `--json` prints it."""
        notes = [dict(zip(("key", "says"), note.split(": ", 1), strict=True)) for note in self.notes]
        return {"digest": self.digest, "seed": self.seed, **self.summary, "notes": notes}

    @property
    def about(self) -> Mapping[str, Any]:
        """Contents of `run.json`: seed, versions, inputs, scenario, digest, summary."""
        return self._about

    @property
    def scenario(self) -> Scenario:
        """Scenario of the run. To run it again, its recorded networks have to be there, and the same."""
        scenario = Scenario.parse(self._about["scenario"], Path(self._about["base"]) / f"{self.name}.toml")
        return scenario.kept(self._about.get("inputs", {}))

    @property
    def flows(self) -> list[str]:
        """Names of the flows."""
        return [flow["flow"] for flow in self.summary["flows"]]

    @property
    def members(self) -> list[Mapping[str, Any]]:
        """The metrics of the members of sessions: their RTCP, and the reports of their losses.

        See [MEMBERS][tidegate.results.metrics.MEMBERS]; packets of a member are in the metrics of its flow,
        `SESSION.MEMBER`.
        """
        return [dict(member) for member in self.summary.get("members", ())]

    @property
    def subject(self) -> str:
        """The flow that comparisons are about; see [place][tidegate.scenario.subject.place]."""
        return str(subject.of_summary(self.summary)["flow"])

    def metrics(self, flow: str | None = None) -> Mapping[str, Any]:
        """The metrics of a flow; of the subject by default.

        Raises:
            InputError: when there is no such flow.
        """
        wanted = flow or self.subject
        for metrics in self.summary["flows"]:
            if metrics["flow"] == wanted:
                return dict(metrics)
        hint = did_you_mean(wanted, self.flows) or f"; available: {', '.join(self.flows)}"
        raise InputError(f"{wanted}: the run has no such flow{hint}")

    def with_metrics(self, flow: str, metrics: Mapping[str, Any]) -> Self:
        """This run with further metrics of a flow in its summary."""
        flows = [{**entry, **metrics} if entry["flow"] == flow else entry for entry in self.summary["flows"]]
        return type(self)({**self._about, "summary": {**self.summary, "flows": flows}}, self._tables)

    @property
    def session(self) -> Mapping[str, Any] | None:
        """For a run of real programs in a comparison: the verdict on its clock, with the reasons; else None."""
        return self._about.get("session")

    def with_files(self, folder: Path, names: Sequence[str], about: Mapping[str, Any], keeps: object = None) -> Self:
        """This run with additional files, which are saved with it, and additional facts.

        Args:
            folder: Folder of the files, which has to last as long as the run.
            names: Names of the files, relative to the folder.
            about: Keys of `run.json` to add or replace.
            keeps: Object that lives as long as the run, such as one that clears the folder.
        """
        tables = WithFiles(self._tables, folder, keeps)
        return type(self)({**self._about, **about, "files": list(names)}, tables)

    @property
    def tables(self) -> list[str]:
        """Names of the recorded tables."""
        return list(self._tables.names())

    def table(self, name: str) -> Table:
        """A recorded table; its last columns are the [controller][tidegate.runs.Run.controller] and the seed.

        Raises:
            KeyError: when the run has no table of that name; lists the names that it has.
        """
        if name not in self.tables:
            hint = did_you_mean(name, self.tables) or f"; available: {', '.join(self.tables)}"
            raise KeyError(f"{name}: the run has no such table{hint}")
        table: Table = self._tables.get(name)
        return table.labelled(self.controller, self.seed)

    def pcapng(self, side: str = "receiver") -> bytes:
        """Capture file of all flows as one side sees them, for a run with `capture`.

        Args:
            side: `sender`, the ends where media, data or datagrams come from, or `receiver`, where they go.

        Raises:
            InputError: when the run recorded no packets, or there is no such side.
            RunError: when the fields of a packet do not fit it.
        """
        if side not in SIDES:
            raise InputError(f"side: found {side}; expected {' or '.join(SIDES)}")
        data: bytes | None = self._tables.capture(side)
        if data is None:
            raise InputError("the run recorded no packets; set capture = true in the scenario")
        return data

    def encoded(self, flow: str) -> bytes:
        """Output of a flow's encoder in the loop: a byte stream (H.264 annex B) that starts with its parameter sets.

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

    def save(self, folder: str | Path, also: Iterable[Path] = ()) -> Path:
        """Writes a folder with `run.json` and a Parquet file for each table, completely or not at all.

        The output of encoders in the loop is in `encoded-FLOW.h264`. An earlier run in the folder is replaced; files in
        it that are not tidegate's, or were changed, stay.

        Args:
            folder: The folder.
            also: Files to copy into it.

        Raises:
            OutputError: when it cannot be written, or is no folder of a run.
        """
        path = Path(folder)
        with write_folder(path, RUN_FILE) as making:
            self._fill(making)
            for file in also:
                shutil.copyfile(file, making / file.name)
        return path

    def _fill(self, folder: Path) -> None:
        with writable(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name in self.tables:
            file = folder / f"{name}.parquet"
            table = self.table(name)
            with table_written(file):
                table.write_parquet(str(file))
        for side in SIDES:
            data = self._tables.capture(side)
            if data is not None:
                write_file(folder / capture_file(side), data)
        for flow in self.in_loop:
            write_file(folder / stream_file(flow), self.encoded(flow))
        for name in self._about.get("files", ()):
            with writable(folder / name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self._tables.file(name), folder / name)
        write_file(folder / RUN_FILE, json.dumps(self._about, indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Loads a folder of [save][tidegate.runs.Run.save].

        Raises:
            InputError: when there is no run, or it is damaged.
        """
        path = Path(folder)
        saved = Saved(path)
        about = read_json(saved.file(RUN_FILE))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise InputError(f"{path / RUN_FILE}: the file is not a run of this version of tidegate")
        missing = {"name", "seed", "digest", "summary", "scenario", "base"} - about.keys()
        if missing:
            raise InputError(f"{path / RUN_FILE}: the file is damaged: without {', '.join(sorted(missing))}")
        checked(path / RUN_FILE, about, RunShape)
        return cls(about, saved)

    def check(self) -> None:
        """Checks that the files of a saved run are as they were written, so that its digest is that of its tables.

        Raises:
            InputError: when one is damaged or missing.
        """
        if isinstance(self._tables, Saved):
            self._tables.check()

    @property
    def draws(self) -> Mapping[str, Any]:
        """Number of draws from each random substream, with hashes at certain numbers of draws.

        Two runs with equal hashes at the same number of draws drew the same numbers. Saved runs have no draws.

        Raises:
            InputError: for a run that was read from a folder.
        """
        draws: Mapping[str, Any] | None = self._tables.draws()
        if draws is None:
            raise InputError("a saved run has no counts of random draws; run its scenario again")
        return draws

    def __copy__(self) -> Self:
        return type(self)(self._about, self._tables)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # tables cannot be changed
        return type(self)(copy.deepcopy(self._about, memo), self._tables)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the run with its tables, but without files of a session and draws."""
        return type(self), self._in_memory()

    def kept(self) -> Self:
        """This run with all its tables in memory, so that its folder may be deleted."""
        return type(self)(*self._in_memory())

    def _in_memory(self) -> tuple[Mapping[str, Any], Kept]:
        about = {key: value for key, value in self._about.items() if key != "files"}
        if isinstance(self._tables, Kept):
            return about, self._tables
        tables = {name: self._tables.get(name) for name in self.tables}
        captures = {side: self._tables.capture(side) for side in SIDES}
        return about, Kept(tables, captures, {flow: self.encoded(flow) for flow in self.in_loop})

    def __repr__(self) -> str:
        return f"<tidegate Run of {self.name}, {self.controller}, seed {self.seed}, digest {self.digest[:16]}>"

    def document(self) -> Document:
        """The run as a document, from which its tables and pages are made."""
        from tidegate.show import report

        return report.document(self)
