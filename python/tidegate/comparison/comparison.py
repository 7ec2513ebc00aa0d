"""Controllers side by side: on the same network, with the same seeds and the same competitors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from tidegate import _core
from tidegate._files import file_names, writable, write_file
from tidegate._inputs import ATTACHED
from tidegate._inputs import read as read_input
from tidegate.comparison.doubts import doubts
from tidegate.control.contenders import Contender, contenders
from tidegate.control.registry import is_program
from tidegate.errors import InputError, RunError
from tidegate.output import csv
from tidegate.output.document import Document
from tidegate.output.notebook import Displayable
from tidegate.output.progress import progress_bar
from tidegate.results.folders import write_folder
from tidegate.results.remarks import Remarks
from tidegate.results.saved import Contents, read_json, within
from tidegate.results.shapes import FileName, FilePath, Shape, checked
from tidegate.runs import Run, RunJob, pool, versions
from tidegate.runs.jobs import attempt, by_processes
from tidegate.runs.seeds import seeds_of
from tidegate.scenario import Scenario, subject
from tidegate.scenario.lower import Lowered
from tidegate.scenario.reading import Files
from tidegate.scenario.scenario import Level
from tidegate.scenario.variants import DEFAULT, with_controller
from tidegate.show import view
from tidegate.show.table import ComparisonTable

if TYPE_CHECKING:
    from tidegate.shell import LiveJob

COMPARISON_FILE = "comparison.json"


class SavedRun(Shape):
    """A run of `comparison.json`."""

    controller: str
    folder: FileName


class ComparisonShape(Shape):
    """`comparison.json`."""

    scenario: str
    base: FilePath
    name: FilePath
    command: str
    runs: Annotated[list[SavedRun], Field(min_length=1)]
    attached: list[FileName] = Field(default_factory=list)
    failed: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Comparison(Displayable):
    """Runs of several controllers over the same scenario and seeds."""

    scenario: Scenario
    """The scenario; each controller replaces that of its subject."""
    runs: Mapping[str, Sequence[Run]]
    """The runs of each controller, in order of seeds."""
    command: str = ""
    """The command line that made it."""
    attached: Mapping[str, bytes] = field(default_factory=dict)
    """Further files by name: for real video `quality.png`, `contact-sheet.png` and `quality-*.csv`."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reasons why controllers have no runs, by controller."""
    remarks: Remarks = field(init=False)
    """Warnings and notes of its runs, and remarks on questions that it cannot answer."""
    table: ComparisonTable = field(init=False)
    """Means over seeds with 95 % intervals."""

    def __post_init__(self) -> None:
        """Gives each run its controller's name, and makes the table."""
        by_name = {name: [run.under(name) for run in runs] for name, runs in self.runs.items()}
        object.__setattr__(self, "runs", by_name)
        all_runs = [run for runs in by_name.values() for run in runs]
        summaries = {name: [{**run.summary, **_session(run)} for run in runs] for name, runs in by_name.items()}
        remarks = view.remarks(run.summary for run in all_runs)
        doubtful = doubts(self.scenario, list(dict.fromkeys(run.subject for run in all_runs)), summaries)
        remarks = replace(remarks, sentences=[*remarks.sentences, *doubtful])
        object.__setattr__(self, "remarks", remarks)
        object.__setattr__(self, "table", ComparisonTable.of(by_name, self.failed, remarks))

    @property
    def warnings(self) -> list[str]:
        """All remarks, also [notes][tidegate.Comparison.notes]: `KEY: SENTENCE`, with the key of a setting."""
        return list(self.remarks.sentences)

    @property
    def notes(self) -> list[str]:
        """The [warnings][tidegate.Comparison.warnings] that cast no doubt on the numbers."""
        return self.remarks.notes

    @property
    def controllers(self) -> list[str]:
        """The controllers, in the order of the table."""
        return list(self.runs)

    @property
    def seeds(self) -> list[int]:
        """The seeds, in the order of the runs."""
        return [run.seed for run in next(iter(self.runs.values()))]

    def __repr__(self) -> str:
        return f"<tidegate Comparison of {', '.join(self.controllers)} on {self._where}>"

    @property
    def _where(self) -> str:
        count = len(self.seeds)
        return f"{self.scenario.name}, {f'{count} seeds' if count > 1 else f'seed {self.seeds[0]}'}"

    def document(self) -> Document:
        """The comparison as a document, from which all its forms are made."""
        from tidegate.show import report

        return report.document(self)

    def to_data(self) -> dict[str, Any]:
        """The comparison as plain data, which `--json` prints."""
        return {
            "scenario": self.scenario.name,
            "controllers": self.controllers,
            "failed": dict(self.failed),
            "warnings": self.warnings,
            "notes": self.notes,
            "seeds": self.seeds,
            "command": self.command,
            "versions": dict(versions()),
            "table": self.table.to_data(),
            "quality": dict(self.table.verdicts),
            "carried_too_little": dict(self.table.too_little),
            "runs": [
                {"controller": name, "seed": run.seed, "digest": run.digest, "summary": run.summary, **_session(run)}
                for name, runs in self.runs.items()
                for run in runs
            ],
        }

    def to_csv(self) -> str:
        """Formats all metrics as CSV in the units of the summary: a line for each controller, seed and flow."""
        return csv.flows(["controller"], (([name], run.summary) for name, runs in self.runs.items() for run in runs))

    def save(self, folder: str | Path) -> Path:
        """Writes table, picture, report and runs into a folder, completely or not at all.

        An earlier comparison in the folder is replaced; its files that are not tidegate's, or were changed, are kept.

        Raises:
            InputError: when a controller has two runs of one seed.
            OutputError: when it cannot be written, or the folder holds something else.
        """
        from tidegate.show import plot, report

        path = Path(folder)
        with write_folder(path, COMPARISON_FILE) as making:
            saved = []
            stems = file_names(self.runs)
            for name, runs in self.runs.items():
                for run in runs:
                    run_folder = f"runs/{stems[name]}-seed{run.seed}"
                    if (making / run_folder).exists():
                        raise InputError(f"{name} has two runs with seed {run.seed}; expected one run per seed")
                    run.save(making / run_folder)
                    saved.append({"controller": name, "seed": run.seed, "folder": run_folder})
            write_file(making / "table.md", self.table.to_markdown())
            write_file(making / "table.csv", self.table.to_csv())
            write_file(making / "runs.csv", self.to_csv())
            files = {
                name: sha256
                for runs in self.runs.values()
                for run in runs
                for name, sha256 in run.about.get("inputs", {}).items()
            }
            write_file(making / "scenario.toml", self.scenario.kept_toml(path.resolve(), files))
            for name, data in self.attached.items():
                write_file(making / name, data)
            with writable(path):
                plot.comparison(self.runs).savefig(making / "comparison.png")
                report.write(making / "report.html", self)
            index = {
                "format": 1,
                "command": self.command,
                "base": str(self.scenario.base.resolve()),
                "scenario": self.scenario.to_toml(),
                "name": self.scenario.name,
                "runs": saved,
                "attached": list(self.attached),
                "failed": dict(self.failed),
            }
            write_file(making / COMPARISON_FILE, json.dumps(index, indent=1) + "\n")
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads a folder that [save][tidegate.comparison.Comparison.save] wrote.

        Raises:
            InputError: when the folder holds no comparison, or a damaged one.
        """
        path = Path(folder)
        saved = Contents(path)
        index = checked(path / COMPARISON_FILE, read_json(saved.file(COMPARISON_FILE)), ComparisonShape)
        scenario = Scenario.parse(index.scenario, Path(index.base) / f"{index.name}.toml")
        runs: dict[str, list[Run]] = {}
        for entry in index.runs:
            runs.setdefault(entry.controller, []).append(Run.load(within(path, entry.folder)))
        attached = {name: read_input(saved.file(name), ATTACHED).data for name in index.attached}
        return cls(scenario, runs, index.command, attached, index.failed)


def _session(run: Run) -> dict[str, Any]:
    return {} if run.session is None else {"session": dict(run.session)}


def compare(
    controllers: Iterable[Contender],
    scenario: Scenario | str | Path | None = None,
    *,
    seeds: int | Sequence[int] = 1,
    record: Level | None = None,
    workers: int | None = None,
    processes: bool | None = False,
    progress: pool.Progress | bool | None = None,
    command: str = "",
    media: str | None = None,
) -> Comparison:
    """Runs a scenario with each of several controllers and each of several seeds.

    Args:
        controllers: Names with their parts, such as `gcc`, `gcc:draft-02`, `fixed:2Mbps`; classes, and `(Mine,
            {"k": 2})` for one with settings; `program:COMMAND` is a real program at both ends of the call, by the wall
            clock (Linux).
        scenario: A scenario, or the path or name of one; a generated LTE link by default.
        seeds: The number of seeds, counted from 1, or the seeds themselves.
        record: The level at which each run is recorded, instead of the scenario's.
        workers: The number of runs at a time; one a core by default.
        processes: Whether to run in processes, for controllers that compute in Python; None: if there are such.
        progress: True for a bar, on a terminal or in a notebook; or a function that takes the fraction that is done.
        command: The command line, for the record.
        media: A clip that is really encoded, sent and decoded, as `--media` takes it: adds the metrics of pictures.

    Raises:
        InputError: when scenario, controllers, seeds or clip are not usable.
        RunError: when each controller has a run that fails; if only some do, `failed` has them.

    >>> from tidegate import scenario_for
    >>> lte = scenario_for(duration="5s")
    >>> compare(["gcc", "fixed:1Mbps"], lte, seeds=2).seeds
    [1, 2]
    """
    by_label = contenders(controllers)
    labels = list(by_label)
    base = scenario if isinstance(scenario, Scenario) else Scenario.load(DEFAULT if scenario is None else scenario)
    chosen = seeds_of(seeds)
    sessions = sessions_of(labels, base, chosen, record)
    if sessions:
        # imported only where it is needed, since it works only on Linux
        from tidegate import shell
    simulated = [label for label in labels if not is_program(label)]
    variants = [with_controller(base, by_label[label]) for label in simulated]
    if sessions and media is not None:
        raise InputError(
            f"{sessions[0].contender.label} makes its own video; a clip can only be fed to simulated calls"
        )

    def runs_of(
        variants: Iterable[Scenario], level: Level | None, tell: pool.Progress | None
    ) -> tuple[dict[str, list[Run]], dict[str, str]]:
        files = Files()
        lowered = [Lowered(variant, files) for variant in variants]
        split = by_processes(processes, lowered, len(lowered) * len(chosen), workers)
        jobs = [RunJob(variant, seed, level) for variant in lowered for seed in chosen]
        first, then = shell.beside(tell, jobs, sessions) if sessions else (tell, None)
        done = iter(attempt(jobs, workers=workers, processes=split, progress=first, keep_going=len(labels) > 1))
        # sessions run after the simulations, which keep the processors busy and would disturb them
        live = iter(shell.attempt(sessions, then) if sessions else ())
        return _without_failed({label: [next(live if is_program(label) else done) for _ in chosen] for label in labels})

    with progress_bar(progress, f"{len(labels) * len(chosen)} runs") as tell:
        if media is None:
            runs, failed = runs_of(variants, record, tell)
            return Comparison(base, runs, command, failed=failed)
        from tidegate.media.chain import Chain, files

        chain = Chain(media, workers=workers, progress=tell)
        base = chain.feed(base)
        fed = (with_controller(base, contender) for contender in by_label.values())
        runs, failed = runs_of(fed, "packets", chain.running)
        all_judged = iter(chain.judge([run for same_label in runs.values() for run in same_label]))
    judged = {label: list(itertools.islice(all_judged, len(same_label))) for label, same_label in runs.items()}
    runs = {label: [video.judged_run() for video in videos] for label, videos in judged.items()}
    return Comparison(base, runs, command, files(judged), failed)


def sessions_of(
    controllers: Iterable[str], scenario: Scenario, seeds: int | Sequence[int] = 1, record: Level | None = None
) -> list[LiveJob]:
    """The sessions that programs among the contenders need, in the order of the contenders.

    Raises:
        InputError: when there is no such program, or it cannot run as the call of the scenario's subject.
    """
    programs = [label for label in controllers if is_program(label)]
    if not programs:
        return []
    from tidegate.shell import LiveJob

    call = scenario.flows[subject.of_scenario(scenario, "controller")].name
    return [LiveJob.of(label, scenario, call, seed, record) for label in programs for seed in seeds_of(seeds)]


def _without_failed(done: Mapping[str, Sequence[Run | BaseException]]) -> tuple[dict[str, list[Run]], dict[str, str]]:
    """The runs of the controllers without an error, and the first error of each other controller."""
    runs, failed = {}, {}
    for label, outcomes in done.items():
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if not errors:
            runs[label] = [outcome for outcome in outcomes if isinstance(outcome, Run)]
        elif isinstance(errors[0], RunError | InputError | _core.InternalError):
            failed[label] = str(errors[0])
        else:
            raise errors[0]
    if not runs:
        raise next(error for outcomes in done.values() for error in outcomes if isinstance(error, BaseException))
    return runs, failed
