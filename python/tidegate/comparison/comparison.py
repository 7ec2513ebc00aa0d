"""Controllers side by side: on the same network, with the same seeds and the same competitors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
from tidegate.errors import InputError, Refusals, RunError, located
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
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)


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
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The changed values of each variant, by dotted key, where variants of the scenario are compared: then their names
    are those of the columns, and stand where otherwise controllers do."""
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
        against = next(iter(by_name)) if self.variants else ""
        object.__setattr__(self, "table", ComparisonTable.of(by_name, self.failed, remarks, against))

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
            **self._variants(),
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

    def _variants(self) -> dict[str, Any]:
        return {"variants": {name: dict(keys) for name, keys in self.variants.items()}} if self.variants else {}

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
                **self._variants(),
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
        return cls(scenario, runs, index.command, attached, index.failed, index.variants)


def _session(run: Run) -> dict[str, Any]:
    return {} if run.session is None else {"session": dict(run.session)}


def compare(
    controllers: Iterable[Contender] = (),
    scenario: Scenario | str | Path | None = None,
    *,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    seeds: int | Sequence[int] = 1,
    record: Level | None = None,
    workers: int | None = None,
    processes: bool | None = False,
    progress: pool.Progress | bool | None = None,
    command: str = "",
    media: str | None = None,
    recordings: Mapping[str, Run] | None = None,
) -> Comparison:
    """Runs a scenario with each of several controllers, or each of several variants of it, and each of several seeds.

    Args:
        controllers: Names with their parts, such as `gcc`, `gcc:draft-02`, `fixed:2Mbps`; classes, and `(Mine,
            {"k": 2})` for one with settings; `program:COMMAND` is a real program at both ends of the call, by the wall
            clock (Linux).
        scenario: A scenario, or the path or name of one; a generated LTE link by default.
        variants: Changed values by dotted key of each variant, by its name; `controller` is the call's. Without
            controllers those of the scenario's table are the default. All have the same luck. The scenario as it is
            comes first, under its own name, unless the first variant changes nothing; beside variants there is at most
            one controller, which they all have.
        seeds: The number of seeds, counted from 1, or the seeds themselves.
        record: The level at which each run is recorded, instead of the scenario's.
        workers: The number of runs at a time; one a core by default.
        processes: Whether to run in processes, for controllers that compute in Python; None: if there are such.
        progress: True for a bar, on a terminal or in a notebook; or a function that takes the fraction that is done.
        command: The command line, for the record.
        media: A clip that is really encoded, sent and decoded, as `--media` takes it: adds the metrics of pictures.
        recordings: Calls that were recorded elsewhere ([imported][tidegate.recordings.imported]), by name: further
            columns, which are not ranked.

    Raises:
        InputError: when scenario, controllers, seeds or clip are not usable.
        RunError: when each controller has a run that fails; if only some do, `failed` has them.

    >>> from tidegate import scenario_for
    >>> lte = scenario_for(duration="5s")
    >>> compare(["gcc", "fixed:1Mbps"], lte, seeds=2).seeds
    [1, 2]
    """
    # a name in place of a list is refused by the function that reads it
    controllers = controllers if isinstance(controllers, str) else list(controllers)
    base = scenario if isinstance(scenario, Scenario) else Scenario.load(DEFAULT if scenario is None else scenario)
    if not controllers and not variants:
        variants = _stated(base) or ({base.name: {}} if recordings else {})
    by_label = contenders(controllers) if controllers or not variants else {}
    chosen = seeds_of(seeds)
    changes = {}
    if variants:
        base, changes = _with_only(base, by_label), _named(base, variants)
        _check_columns(base, changes)
    labels = list(changes or by_label)
    sessions = [] if changes else sessions_of(labels, base, chosen, record)
    if sessions:
        # imported only where it is needed, since it works only on Linux
        from tidegate import shell

    def scenarios(base: Scenario) -> list[Scenario]:
        """The scenario of each column that is simulated."""
        simulated = [contender for label, contender in by_label.items() if not is_program(label)]
        variants = [partial(_variant, base, name, values) for name, values in changes.items()]
        columns, refusals = [], Refusals()
        for make in variants or [partial(with_controller, base, contender) for contender in simulated]:
            with refusals.of_input():
                columns.append(make())
        refusals.raise_all()
        return columns

    if sessions and media is not None:
        raise InputError(
            f"{sessions[0].contender.label} makes its own video; a clip can only be fed to simulated calls"
        )

    def runs_of(
        columns: Iterable[Scenario], level: Level | None, tell: pool.Progress | None
    ) -> tuple[dict[str, list[Run]], dict[str, str]]:
        files = Files()
        lowered = [Lowered(column, files) for column in columns]
        split = by_processes(processes, lowered, len(lowered) * len(chosen), workers)
        jobs = [RunJob(variant, seed, level) for variant in lowered for seed in chosen]
        first, then = shell.beside(tell, jobs, sessions) if sessions else (tell, None)
        done = iter(attempt(jobs, workers=workers, processes=split, progress=first, keep_going=len(labels) > 1))
        # sessions run after the simulations, which keep the processors busy and would disturb them
        live = iter(shell.attempt(sessions, then) if sessions else ())
        return _without_failed({label: [next(live if is_program(label) else done) for _ in chosen] for label in labels})

    further = _recorded_columns(recordings or {}, labels)
    with progress_bar(progress, f"{len(labels) * len(chosen)} runs") as tell:
        if media is None:
            runs, failed = runs_of(scenarios(base), record, tell)
            return Comparison(base, runs | further, command, failed=failed, variants=changes)
        from tidegate.media.chain import Chain, files

        chain = Chain(media, workers=workers, progress=tell)
        base = chain.feed(base)
        runs, failed = runs_of(scenarios(base), "packets", chain.running)
        all_judged = iter(chain.judge([run for same_label in runs.values() for run in same_label]))
    judged = {label: list(itertools.islice(all_judged, len(same_label))) for label, same_label in runs.items()}
    runs = {label: [video.judged_run() for video in videos] for label, videos in judged.items()}
    return Comparison(base, runs | further, command, files(judged), failed, changes)


def _recorded_columns(recordings: Mapping[str, Run], labels: Iterable[str]) -> dict[str, list[Run]]:
    """The columns of calls that were recorded elsewhere, behind those of these labels.

    Raises:
        InputError: when a run was simulated, or a name is that of another column.
    """
    columns: dict[str, list[Run]] = {}
    for name, run in recordings.items():
        if not view.is_recorded(run):
            raise InputError(f"{name}: found a run that was simulated; expected a recorded call (tidegate import)")
        label = f"{name}, recorded"
        if label in labels:
            raise InputError(f"{name}: found a column {label!r} already; expected another name")
        columns[label] = [run]
    return columns


def _stated(scenario: Scenario) -> dict[str, Mapping[str, Any]]:
    """The variants in the scenario's own table.

    Raises:
        InputError: when two of them have one name.
    """
    stated: dict[str, Mapping[str, Any]] = {}
    for variant in scenario.variants:
        if variant.name in stated:
            raise InputError(f"variants: found {variant.name} twice; expected names that differ")
        stated[variant.name] = variant.set
    return stated


def _with_only(scenario: Scenario, controllers: Mapping[str, Any]) -> Scenario:
    """The scenario with the controller that all its variants have, if there is one.

    Raises:
        InputError: when there are several, or it is a real program.
    """
    if len(controllers) > 1:
        raise InputError(
            f"found {len(controllers)} controllers beside variants; expected at most one: `tidegate sweep` runs each "
            "controller with each setting"
        )
    for label, contender in controllers.items():
        if is_program(label):
            raise InputError(f"{label} beside variants: a real program is compared with controllers alone")
        return with_controller(scenario, contender)
    return scenario


def _named(scenario: Scenario, variants: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The changes of each column: those of the variants, behind the scenario as it is."""
    first = next(iter(variants.values()))
    return dict(variants) if not first else {scenario.name: {}, **variants}


def _check_columns(scenario: Scenario, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuses a variant without changes behind the first, and one that has the scenario's name.

    Raises:
        InputError: names each such variant.
    """
    refusals = Refusals()
    for name, values in itertools.islice(changes.items(), 1, None):
        with refusals.of_input():
            if not values:
                right = f'expected a setting, as in "{name}: links.{scenario.links[0].name}.delay=5ms"'
                raise InputError(f"variant {name}: found no changed value; {right}")
    with refusals.of_input():
        if next(iter(changes.values())):
            raise InputError(f"variant {scenario.name}: found the scenario's own name; expected another")
    refusals.raise_all()


def _variant(scenario: Scenario, name: str, values: Mapping[str, Any]) -> Scenario:
    """The scenario with the changes of the variant `name`.

    Raises:
        InputError: when a value does not fit, with the variant's name.
    """
    keys = dict(values)
    controller = keys.pop("controller", None)
    with located(f"variant {name}"):
        # the columns of a comparison are no comparisons
        changed = scenario.with_changes({"variants": [], **keys}) if keys or scenario.variants else scenario
        return changed if controller is None else with_controller(changed, controller)


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
