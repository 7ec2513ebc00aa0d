"""Controllers side by side: the same network, the same luck, the same competitors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tidegate import _core
from tidegate._files import file_names, named, write_file
from tidegate.comparison.doubts import doubts
from tidegate.control.contenders import Contender, contenders
from tidegate.control.registry import is_program
from tidegate.errors import InputError, RunError
from tidegate.output import csv
from tidegate.output.document import Document
from tidegate.output.notebook import Shown
from tidegate.output.progress import shown
from tidegate.results.folders import write_folder
from tidegate.results.remarks import Remarks
from tidegate.results.saved import Contents, read_json
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


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Runs of several controllers over the same scenario and seeds."""

    scenario: Scenario
    """The scenario; the controllers take the place of its subject's."""
    runs: Mapping[str, Sequence[Run]]
    """The runs of each controller, in order of seeds."""
    command: str = ""
    """What was typed to get it."""
    attached: Mapping[str, bytes] = field(default_factory=dict)
    """Further files by their names: of real video `quality.png`, `contact-sheet.png` and `quality-*.csv`."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why the runs of a controller are not there, by its name."""
    remarks: Remarks = field(init=False)
    """Warnings and notes of its runs, and questions that it cannot answer."""
    table: ComparisonTable = field(init=False)
    """Means over seeds with 95 % intervals."""

    def __post_init__(self) -> None:
        """Gives each run its controller's name, and makes the table."""
        named = {name: [run.under(name) for run in some] for name, some in self.runs.items()}
        object.__setattr__(self, "runs", named)
        every = [run for some in named.values() for run in some]
        seen = {name: [{**run.summary, **_session(run)} for run in some] for name, some in named.items()}
        remarks = view.remarks(run.summary for run in every)
        doubted = doubts(self.scenario, list(dict.fromkeys(run.subject for run in every)), seen)
        remarks = replace(remarks, sentences=[*remarks.sentences, *doubted])
        object.__setattr__(self, "remarks", remarks)
        object.__setattr__(self, "table", ComparisonTable.of(named, self.failed, remarks))

    @property
    def warnings(self) -> list[str]:
        """Remarks, [notes][tidegate.Comparison.notes] included: `KEY: SENTENCE`, with the key of a setting."""
        return list(self.remarks.sentences)

    @property
    def notes(self) -> list[str]:
        """Those of the [warnings][tidegate.Comparison.warnings] that leave the numbers as they are."""
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
        return f"<tidegate Comparison of {', '.join(self.controllers)} over {self._where}>"

    @property
    def _where(self) -> str:
        count = len(self.seeds)
        return f"{self.scenario.name}, {f'{count} seeds' if count > 1 else f'seed {self.seeds[0]}'}"

    def document(self) -> Document:
        """The comparison as data, of which all its forms are made."""
        from tidegate.show import report

        return report.document(self)

    def to_data(self) -> dict[str, Any]:
        """As plain data: what `--json` prints."""
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
                for name, some in self.runs.items()
                for run in some
            ],
        }

    def to_csv(self) -> str:
        """As CSV, a line for each controller, seed and flow with all its metrics, in the summary's own units."""
        return csv.flows(["controller"], (([name], run.summary) for name, some in self.runs.items() for run in some))

    def save(self, folder: str | Path) -> Path:
        """Writes table, picture, report and runs into a folder, whole or not at all.

        An earlier comparison there is replaced; files in it that are not tidegate's, or were changed, are kept.

        Raises:
            InputError: when a controller has two runs of one seed.
            OutputError: when it cannot be written, or something else is there.
        """
        from tidegate.show import plot, report

        path = Path(folder)
        with write_folder(path, COMPARISON_FILE) as making:
            places = []
            folders = file_names(self.runs)
            for name, some in self.runs.items():
                for run in some:
                    place = f"runs/{folders[name]}-seed{run.seed}"
                    if (making / place).exists():
                        raise InputError(f"{name}: has two runs of seed {run.seed}; expected one of each")
                    run.save(making / place)
                    places.append({"controller": name, "seed": run.seed, "folder": place})
            write_file(making / "table.md", self.table.to_markdown())
            write_file(making / "table.csv", self.table.to_csv())
            write_file(making / "runs.csv", self.to_csv())
            write_file(making / "scenario.toml", self.scenario.to_toml())
            for name, data in self.attached.items():
                write_file(making / name, data)
            with named(path):
                plot.comparison(self.runs).savefig(making / "comparison.png")
                report.write(making / "report.html", self)
            about = {
                "format": 1,
                "command": self.command,
                "base": str(self.scenario.base.resolve()),
                "scenario": self.scenario.to_toml(),
                "name": self.scenario.name,
                "runs": places,
                "attached": list(self.attached),
                "failed": dict(self.failed),
            }
            write_file(making / COMPARISON_FILE, json.dumps(about, indent=1) + "\n")
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads what [save][tidegate.comparison.Comparison.save] wrote.

        Raises:
            InputError: when there is no comparison, or it is damaged.
        """
        path = Path(folder)
        saved = Contents(path)
        about = read_json(saved.file(COMPARISON_FILE))
        try:
            scenario = Scenario.parse(about["scenario"], Path(about["base"]) / f"{about['name']}.toml")
            runs: dict[str, list[Run]] = {}
            for one in about["runs"]:
                runs.setdefault(str(one["controller"]), []).append(Run.load(path / one["folder"]))
            names = [Path(name).name for name in about.get("attached", [])]
            attached = {name: saved.file(name).read_bytes() for name in names}
            if not runs:
                raise InputError(f"{path / COMPARISON_FILE}: is damaged: it has no runs")
            failed = {label: str(why) for label, why in about.get("failed", {}).items()}
            return cls(scenario, runs, str(about["command"]), attached, failed)
        except OSError as error:
            raise InputError(f"{path}: is not whole: {error.filename} cannot be read") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path / COMPARISON_FILE}: is damaged: {error!r}") from None


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
        seeds: How many, counted from 1, or which.
        record: How much each run keeps, instead of the scenario's.
        workers: How many runs at once; one a core by default.
        processes: Whether to use processes, for controllers that are busy in Python; None: where there are such.
        progress: True for a bar, on a terminal or in a notebook; or a function that is told the fraction that is done.
        command: What was typed, for the record.
        media: A clip that is really encoded, sent and decoded, as `--media` takes it: adds the metrics of pictures.

    Raises:
        InputError: when scenario, controllers, seeds or clip are not usable.
        RunError: when the runs of every controller fail; those of some are in `failed`, and the others are kept.

    >>> from tidegate import scenario_for
    >>> lte = scenario_for(duration="5s")
    >>> compare(["gcc", "fixed:1Mbps"], lte, seeds=2).seeds
    [1, 2]
    """
    every = contenders(controllers)
    labels = list(every)
    base = scenario if isinstance(scenario, Scenario) else Scenario.load(DEFAULT if scenario is None else scenario)
    chosen = seeds_of(seeds)
    sessions = sessions_of(labels, base, chosen, record)
    if sessions:
        # only where it is needed: it is for Linux
        from tidegate import shell
    simulated = [label for label in labels if not is_program(label)]
    variants = [with_controller(base, every[label]) for label in simulated]
    if sessions and media is not None:
        raise InputError(f"{sessions[0].contender.label}: makes its own video; a clip is fed to simulated calls alone")

    def runs_of(
        variants: Iterable[Scenario], level: Level | None, tell: pool.Progress | None
    ) -> tuple[dict[str, list[Run]], dict[str, str]]:
        files = Files()
        lowered = [Lowered(variant, files) for variant in variants]
        split = by_processes(processes, lowered, len(lowered) * len(chosen), workers)
        jobs = [RunJob(one, seed, level) for one in lowered for seed in chosen]
        first, then = shell.beside(tell, jobs, sessions) if sessions else (tell, None)
        done = iter(attempt(jobs, workers=workers, processes=split, progress=first, keep_going=len(labels) > 1))
        # after the simulations: what keeps the processors busy would make sessions noisy
        live = iter(shell.attempt(sessions, then) if sessions else ())
        return _sorted({label: [next(live if is_program(label) else done) for _ in chosen] for label in labels})

    with shown(progress, f"{len(labels) * len(chosen)} runs") as tell:
        if media is None:
            runs, failed = runs_of(variants, record, tell)
            return Comparison(base, runs, command, failed=failed)
        from tidegate.media.chain import Chain, files

        chain = Chain(media, workers=workers, progress=tell)
        base = chain.feed(base)
        runs, failed = runs_of((with_controller(base, name) for name in every.values()), "packets", chain.running)
        every_judged = iter(chain.judge([run for some in runs.values() for run in some]))
    judged = {label: list(itertools.islice(every_judged, len(some))) for label, some in runs.items()}
    runs = {label: [one.judged_run() for one in some] for label, some in judged.items()}
    return Comparison(base, runs, command, files(judged), failed)


def sessions_of(
    controllers: Iterable[str], scenario: Scenario, seeds: int | Sequence[int] = 1, record: Level | None = None
) -> list[LiveJob]:
    """The sessions that the programs among some contenders need, in their order.

    Raises:
        InputError: when there is no such program, or it cannot be the call of the scenario's subject.
    """
    programs = [label for label in controllers if is_program(label)]
    if not programs:
        return []
    from tidegate.shell import LiveJob

    call = scenario.flows[subject.of_scenario(scenario, "controller")].name
    return [LiveJob.of(label, scenario, call, seed, record) for label in programs for seed in seeds_of(seeds)]


def _sorted(done: Mapping[str, Sequence[Run | BaseException]]) -> tuple[dict[str, list[Run]], dict[str, str]]:
    """The runs of those whose runs all went well, and why the others have none."""
    runs, failed = {}, {}
    for label, some in done.items():
        errors = [one for one in some if isinstance(one, BaseException)]
        if not errors:
            runs[label] = [one for one in some if isinstance(one, Run)]
        elif isinstance(errors[0], RunError | InputError | _core.InternalError):
            failed[label] = str(errors[0])
        else:
            raise errors[0]
    if not runs:
        raise next(one for some in done.values() for one in some if isinstance(one, BaseException))
    return runs, failed
