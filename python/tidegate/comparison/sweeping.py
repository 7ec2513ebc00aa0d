"""Sweeps: variants of a scenario, each with several seeds, on all cores; finished runs are not repeated."""

from __future__ import annotations

import hashlib
import io
import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from tidegate import _core
from tidegate._inputs import parse_toml
from tidegate.control import registry
from tidegate.control.contenders import Contender, anchored, contenders
from tidegate.errors import InputError, RunError, located
from tidegate.output import csv
from tidegate.output.document import Document
from tidegate.output.notebook import Displayable
from tidegate.output.progress import progress_bar
from tidegate.results import SWEEP_FILE, Results
from tidegate.results.dataset import CONTROLLER, KEY, SEED, Row, Writer, number_of
from tidegate.results.folders import add_file
from tidegate.results.metrics import FLOWS, finite
from tidegate.results.saved import Contents, read_json
from tidegate.results.shapes import Key, Seed, Shape, Summary, checked
from tidegate.runs import RunJob, build, engine, pool
from tidegate.runs.jobs import by_processes
from tidegate.runs.seeds import seeds_of
from tidegate.scenario import Scenario, subject, toml
from tidegate.scenario.lower import Lowered
from tidegate.scenario.reading import Files
from tidegate.scenario.variants import PREFIX, with_controller
from tidegate.show import sweeps
from tidegate.show.sweeps import Swept
from tidegate.units import show

_MAX_RUNS = 1_000_000


class SweepShape(Shape):
    """`sweep.json`."""

    grid: dict[str, list[str]]
    seeds: list[Seed]
    results: list[Key]
    scenario: str
    command: str

    @model_validator(mode="after")
    def _as_many_runs(self) -> Self:
        planned = len(self.seeds) * math.prod(map(len, self.grid.values()))
        if len(self.results) != planned:
            right = f"expected {planned}, of each combination with each seed"
            raise ValueError(f"results: found {len(self.results)}; {right}")
        return self


class SweepRow(Shape):
    """A kept run of a sweep."""

    seed: Seed
    digest: str
    versions: dict[str, str]
    summary: Summary
    scenario_hash: str = ""


@dataclass(frozen=True)
class Point:
    """One run of a sweep."""

    settings: Mapping[str, str]
    """The values that differ from the scenario, by key."""
    seed: int
    """The seed of the run."""
    lowered: Lowered
    """The scenario for the engine; points that differ only in their seeds share it."""
    key: str
    """A hash of all that the result depends on; it names the result's file."""


@dataclass(frozen=True, repr=False)
class SweepResult(Displayable):
    """The results of a sweep."""

    keys: Sequence[str]
    """The keys that were varied."""
    rows: Sequence[Mapping[str, Any]]
    """The finished runs, each with `settings`, `seed`, `digest`, `versions`, `summary`."""
    failed: Sequence[str]
    """A sentence for each run that failed."""
    resumed: int
    """The number of runs that were in the folder already."""
    planned: int = 0
    """The number of all runs, including those that failed or are not done."""
    scenario: str = ""
    """The scenario that is varied, as TOML."""
    command: str = ""
    """The command line that made it."""
    verdicts: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """The verdicts of a suite's rules in a sweep over a suite, by the values of all keys."""

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(tomllib.loads(self.scenario).get("name") or "sweep")

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        keys = f" varying {', '.join(self.keys)}" if self.keys else ""
        return f"<tidegate {type(self).__name__} of {self.name}{keys}: {len(self.rows)} of {self.planned} runs{failed}>"

    def document(self) -> Document:
        """The sweep as a document, from which all its forms are made."""
        from tidegate.show import report

        return report.document(self)

    def groups(self) -> list[tuple[dict[str, str], list[Mapping[str, Any]]]]:
        """The rows of each combination of settings, in order."""
        return [(dict(combination.settings), list(combination.rows)) for combination in Swept.of(self).combinations]

    def to_csv(self) -> str:
        """Formats as CSV a line for each finished run: all metrics of its subject, and sums over its sessions."""
        names = dict.fromkeys(name for row in self.rows for name in (*sweeps.of_subject(row), *sweeps.of_sessions(row)))
        numbers = [name for name in names if any(sweeps.value(row, name) is not None for row in self.rows)]
        rows = []
        for row in self.rows:
            settings = [row["settings"][key] for key in self.keys]
            values = [sweeps.value(row, name) for name in numbers]
            rows.append([*settings, row["seed"], row["digest"], sweeps.of_subject(row)["flow"], *values])
        return csv.lines([*self.keys, "seed", "digest", "flow", *numbers], rows)

    def flows_csv(self) -> str:
        """Formats as CSV a line for each flow of each finished run, with all its metrics."""
        return csv.flows(
            self.keys, (([row["settings"][key] for key in self.keys], row["summary"]) for row in self.rows)
        )

    def to_markdown(self, *, detail: bool = True) -> str:
        """Formats as Markdown a line for each combination: means over seeds with 95 % intervals."""
        return super().to_markdown(detail=detail)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads the results of a sweep from its folder, also of a sweep that was stopped.

        Raises:
            InputError: when the folder holds no sweep, or a damaged one, or no finished run.
        """
        path = Path(folder)
        index = checked(path / SWEEP_FILE, read_json(Contents(path).file(SWEEP_FILE)), SweepShape)
        with located(f"{path / SWEEP_FILE}: the file is damaged"):
            toml.parse(index.scenario, "scenario")
        planned = itertools.product(itertools.product(*index.grid.values()), index.seeds)
        results = Results(path, row=SweepRow)
        rows = [
            {**row, "settings": dict(zip(index.grid, values, strict=True))}
            for key, (values, _) in zip(index.results, planned, strict=True)
            if (row := results.read(key)) is not None
        ]
        if not rows:
            raise InputError(f"{path}: none of the {len(index.results)} runs of the sweep is done")
        return cls(list(index.grid), rows, [], len(rows), len(index.results), index.scenario, index.command)

    def save_page(self, folder: Path) -> None:
        """Writes the page and, where there is something to draw, the figure into the sweep's folder.

        Raises:
            OutputError: when they cannot be written.
        """
        from tidegate.show import plot, report

        report.write(folder / "report.html", self)
        if Swept.of(self).drawn:
            data = io.BytesIO()
            plot.sweep(self).savefig(data, format="png")
            add_file(folder, "sweep.png", data.getvalue())


Grid = Mapping[str, Sequence[Contender]]
"""Values by dotted key: text, as on the command line; for a controller also classes."""
_CONTROLLER = PREFIX.removesuffix(".")


def for_subject(
    scenario: Scenario, grid: Grid, controller: Contender | None = None
) -> tuple[Scenario, dict[str, Sequence[Contender]]]:
    """Returns a sweep in which `controller` and `controller.NAME` are keys of the subject's controller.

    Args:
        scenario: The scenario.
        grid: Values by key.
        controller: The subject's controller, in place of the scenario's.

    Raises:
        InputError: when the controller is given twice, a key comes twice, or the subject has no media.
    """
    if controller is not None and _CONTROLLER in grid:
        raise InputError(f"--controller {controller}: --set controller gives the controllers already; leave one out")
    if controller is not None:
        scenario = with_controller(scenario, controller)
    short = [key for key in grid if key == _CONTROLLER or key.startswith(PREFIX)]
    if not short:
        return scenario, dict(grid)
    flow = scenario.flows[subject.of_scenario(scenario, _CONTROLLER)].name
    long = {key: f"flows.{flow}.media.{key}" if key in short else key for key in grid}
    if twice := next((key for key in short if long[key] in grid), None):
        raise InputError(f"--set {twice}: the key is given twice, the second time as {long[twice]}; leave one out")
    return scenario, {long[key]: values for key, values in grid.items()}


def _values_by_label(grid: Grid) -> dict[str, dict[str, Any]]:
    """The values of each key for scenarios, by their labels in tables."""
    return {key: _values(key, values) for key, values in grid.items()}


def _values(key: str, values: Sequence[Contender]) -> dict[str, Any]:
    texts = [value for value in values if isinstance(value, str)]
    if not values:
        raise InputError(f"{key} has no value")
    if twice := next((value for value in texts if texts.count(value) > 1), None):
        raise InputError(f"{key}: the value {twice} is given twice")
    if len(texts) == len(values):
        with located(key):
            return {value: plain_value(value) for value in texts}
    if key.rpartition(".")[2] != "controller":
        wrong = next(value for value in values if not isinstance(value, str))
        raise InputError(f'{key}: found {wrong!r}; expected values as text, such as "20ms"')
    return {label: anchored(controller) for label, controller in contenders(values).items()}


def _settings_text(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def points(scenario: Scenario, grid: Grid, seeds: Sequence[int]) -> list[Point]:
    """Makes every combination of a grid's values with every seed.

    Raises:
        InputError: when a key does not exist, a value does not fit, two combinations are the same, or there are too
            many runs.
    """
    values = _values_by_label(grid)
    if len(seeds) * math.prod(map(len, values.values())) > _MAX_RUNS:
        raise InputError(f"the sweep has more than {_MAX_RUNS} runs; expected fewer values or seeds")
    planned = []
    files = Files()
    variants: dict[str, Mapping[str, str]] = {}
    for chosen in itertools.product(*values.values()):
        settings = dict(zip(grid, chosen, strict=True))
        changes = {key: values[key][label] for key, label in settings.items()}
        try:
            variant = scenario.with_changes(changes)
            lowered = Lowered(variant, files)
            prepared = lowered.for_run(record="summary")
        except InputError as error:
            raise InputError(f"with {_settings_text(settings)}: {error}" if settings else str(error)) from None
        if (same := variants.setdefault(prepared.hash, settings)) is not settings:
            raise InputError(
                f"two combinations of values give the same scenario: {_settings_text(same)}; and "
                f"{_settings_text(settings)}; expected combinations that differ in more than the label (more seeds: "
                "--seeds)"
            )
        for seed in seeds:
            text = f"{build()} {prepared.hash} {seed}"
            key = hashlib.sha256(text.encode()).hexdigest()[:32]
            planned.append(Point(settings, seed, lowered, key))
    return planned


@dataclass(frozen=True, repr=False)
class Plan:
    """The runs of a sweep, after their settings are checked and their files read."""

    scenario: Scenario
    """The scenario that is varied."""
    grid: Mapping[str, Sequence[str]]
    """Values by dotted key."""
    seeds: Sequence[int]
    """The seeds of each combination."""
    points: Sequence[Point]
    """Every combination with every seed."""
    command: str = ""
    """The command line."""

    @classmethod
    def of(cls, scenario: Scenario, grid: Grid, seeds: Sequence[int], command: str = "") -> Plan:
        """Plans a sweep.

        Raises:
            InputError: when a key does not exist, a value does not fit, or there are too many runs.
        """
        labels = {key: list(values) for key, values in _values_by_label(grid).items()}
        return cls(scenario, labels, seeds, points(scenario, grid, seeds), command)

    def run(
        self,
        out: str | Path,
        *,
        workers: int | None = None,
        processes: bool | None = False,
        progress: pool.Progress | bool | None = None,
    ) -> SweepResult:
        """Runs all points without a result in `out`; see [sweep][tidegate.comparison.sweeping.sweep] for the arguments.

        Raises:
            OutputError: when results cannot be written.
        """
        results = Results(Path(out))
        scenarios = {id(point.lowered): point.lowered.scenario for point in self.points}
        variants = [hashlib.sha256(scenario.to_toml().encode()).hexdigest()[:16] for scenario in scenarios.values()]
        classes = {name: text for point in self.points for name, text in point.lowered.inputs.local_classes.items()}
        index = {"command": self.command, "scenario": self.scenario.to_toml(), "grid": dict(self.grid)}
        index |= {"classes": classes} if classes else {}
        index["results"] = [point.key for point in self.points]
        with progress_bar(progress, f"{len(self.points)} runs") as tell, results.prepared(index, variants, self.seeds):
            return _run(results, self, workers, processes, tell)

    def __repr__(self) -> str:
        keys = f" varying {', '.join(self.grid)}" if self.grid else ""
        return f"<tidegate Plan of a sweep of {self.scenario.name}{keys}: {len(self.points)} runs>"

    def kept(self, out: Path) -> tuple[int, int]:
        """The number of different runs whose results are in the folder `out`, and of all different runs."""
        keys = {point.key for point in self.points}
        return sum((out / "results" / f"{key}.json").is_file() for key in keys), len(keys)


def plain_value(text: str) -> Any:
    """Parses a value from the command line: as TOML where it is valid, else as text.

    Raises:
        InputError: when a comment or further keys follow the value.

    >>> plain_value("3"), plain_value("20ms"), plain_value("false"), plain_value('{ mean = "1%", burst = 5 }')
    (3, '20ms', False, {'mean': '1%', 'burst': 5})
    """
    if registry.is_file(text):
        return anchored(text)
    try:
        table = parse_toml(f"value = {text}")
    except ValueError:
        return text
    try:
        # further lines of the text would be keys of their own
        tomllib.loads(f"value = [{text}]")
    except tomllib.TOMLDecodeError:
        raise InputError(f"found {show(text)}; expected a value alone, without a comment or another key") from None
    value = table["value"]
    return value if isinstance(value, bool | int | float | str | list | dict) else text


@dataclass(frozen=True)
class SweepJob:
    """The run of one point."""

    point: Point

    def __call__(self, tick: pool.Tick) -> dict[str, Any]:
        """Runs the engine, and returns the row of the run.

        Raises:
            RunError: when the run fails.
        """
        run = RunJob(self.point.lowered, self.point.seed, "summary")(tick)
        return {
            "settings": dict(self.point.settings),
            "seed": run.seed,
            "digest": run.digest,
            "versions": run.about["versions"],
            "scenario_hash": run.about["scenario_hash"],
            "summary": run.summary,
        }


def sweep(
    scenario: Scenario | str | Path,
    grid: Grid,
    *,
    out: str | Path,
    controller: Contender | None = None,
    seeds: int | Sequence[int] = 1,
    workers: int | None = None,
    processes: bool | None = False,
    progress: pool.Progress | bool | None = None,
) -> SweepResult:
    """Runs all combinations of a grid with all seeds, but for those that are finished already.

    Args:
        scenario: A scenario, or the path or name of one.
        grid: Values by dotted key, such as `{"links.uplink.delay": ["20ms", "50ms"]}`; of a controller also classes.
            `controller` is the subject's, and `controller.NAME` a setting of it.
        out: The folder for the results; with the same folder again, an unfinished sweep goes on.
        controller: The subject's controller, in place of the scenario's: a name, a class, or one with settings.
        seeds: The number of seeds, counted from 1, or the seeds themselves.
        workers: The number of runs at a time; one a core by default.
        processes: Whether to run in processes, for controllers that compute in Python; None: if there are such.
        progress: True for a bar, on a terminal or in a notebook; or a function that takes the fraction that is done.

    Raises:
        InputError: when scenario, grid or seeds are not usable.
        OutputError: when results cannot be written.
    """
    base = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    plan = Plan.of(*for_subject(base, grid, controller), seeds_of(seeds))
    return plan.run(out, workers=workers, processes=processes, progress=progress)


def _run(
    results: Results, plan: Plan, workers: int | None, processes: bool | None, progress: pool.Progress | None
) -> SweepResult:
    base, grid = plan.scenario, plan.grid
    table = _dataset(results.folder, plan)
    points = {point.key: point for point in plan.points}
    finished = {key for key in points if results.read(key) is not None}
    for key in sorted(finished - table.begin(finished)):
        if (row := results.read(key)) is not None:
            table.add(_row(plan, points[key], row))
    jobs = [SweepJob(point) for key, point in points.items() if key not in finished]
    for job in jobs:
        results.clear_way(job.point.key)
    processes = by_processes(processes, (point.lowered for point in plan.points), len(plan.points), workers)

    def keep(number: int, row: Mapping[str, Any]) -> Path:
        point = jobs[number].point
        # the result first, from which a sweep is resumed: a row whose result is missing would be written twice
        file = results.write(point.key, row)
        table.add(_row(plan, point, row))
        return file

    try:
        done = engine.run_all(jobs, workers=workers, processes=processes, progress=progress, keep_going=True, keep=keep)
    finally:
        table.close()
    failed = []
    for job, outcome in zip(jobs, done, strict=True):
        if isinstance(outcome, BaseException):
            if not isinstance(outcome, RunError | InputError | _core.InternalError):
                raise outcome
            failed.append(f"{_settings_text(job.point.settings) or base.name}, seed {job.point.seed}: {outcome}")
    # the settings are those of this sweep: another spelling of a value is the same run
    done_rows = ((point, results.read(point.key)) for point in plan.points)
    rows = [{**row, "settings": dict(point.settings)} for point, row in done_rows if row is not None]
    result = SweepResult(list(grid), rows, failed, len(finished), len(plan.points), base.to_toml(), plan.command)
    if rows:
        add_file(results.folder, "summary.csv", result.to_csv())
        add_file(results.folder, "flows.csv", result.flows_csv())
        add_file(results.folder, "summary.md", result.to_markdown())
        result.save_page(results.folder)
    return result


def _dataset(folder: Path, plan: Plan) -> Writer:
    """A writer of the runs as a Parquet data set; a setting whose values are all numbers is a column of numbers."""
    keys = [key for key in plan.grid if key not in {CONTROLLER, SEED, KEY, "scenario", "digest"}]
    numeric = [key for key in keys if all(number_of(str(value)) is not None for value in plan.grid[key])]
    return Writer(folder, ["scenario", *(key for key in keys if key not in numeric), "digest"], [*numeric, *FLOWS])


def _row(plan: Plan, point: Point, row: Mapping[str, Any]) -> Row:
    flow = sweeps.of_subject(row)
    settings = {key: str(value) for key, value in point.settings.items()}
    words = {**settings, "scenario": plan.scenario.name, "digest": str(row["digest"])}
    numbers = {key: number_of(value) for key, value in settings.items()}
    numbers |= {name: finite(flow.get(name)) for name in FLOWS}
    return Row(point.key, str(flow.get("controller") or flow["kind"]), words, int(row["seed"]), numbers)


__all__ = ["SWEEP_FILE", "Plan", "Point", "SweepResult", "points", "sweep"]
