"""A search: tries that Optuna proposes, runs that are kept, and what came out."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from tidegate import _core
from tidegate.errors import InputError, OutputError, RunError, TidegateError
from tidegate.optimisation.found import OPTIMISE_FILE, TRIES_FILE, SearchResult, Tried
from tidegate.optimisation.goals import Goal, Limit
from tidegate.optimisation.space import Setting, Values
from tidegate.optimisation.tasks import One, Task
from tidegate.query import Series
from tidegate.results import Results
from tidegate.results.folders import add_file
from tidegate.results.saved import read_json
from tidegate.runs import build, engine, pool, versions
from tidegate.runs.jobs import busy_in_python
from tidegate.runs.seeds import seeds_from

if TYPE_CHECKING:
    import optuna

JOURNAL = "optuna.jsonl"
"""Optuna's own record of its study."""
INSTALL = "pip install 'tidegate[optimise]'"
_FORMAT = 1
_ABREAST = 4
"""Tries that are chosen at once, so that cores are busy; the same number on every machine, as what is chosen next
depends on it."""
_SHOWN = ("receive_rate_bps", "utilisation", "one_way_delay_ms_p95", "loss_fraction")
"""What is kept of each try beside what is asked for."""


@dataclass(frozen=True)
class Search:
    """A search, checked, before it is run."""

    task: Task
    """What is tried."""
    settings: tuple[Setting, ...]
    """What is chosen."""
    goal: Goal
    """What is sought."""
    limits: tuple[Limit, ...]
    """What has to hold."""
    seeds: tuple[int, ...]
    """The seeds of each try."""
    identity: str
    """Hash of code, scenario and engine: what the numbers depend on beside what is chosen."""
    command: str = ""
    """What was typed."""

    @classmethod
    def of(
        cls,
        task: Task,
        settings: Sequence[str],
        goal: str,
        limits: Sequence[str] = (),
        *,
        seeds: int = 3,
        command: str = "",
    ) -> Self:
        """A search.

        Args:
            task: A scenario or a suite.
            settings: What is chosen: `KEY=LOW:HIGH`, `KEY=log:LOW:HIGH`, `KEY=A,B,C`.
            goal: What is sought: `utilisation`, `lowest delay_p95`.
            limits: What has to hold: `delay_p95 < 150ms`.
            seeds: How many runs of a try (of each case of a suite).
            command: What was typed, for the record.

        Raises:
            InputError: when something does not fit, or Optuna is not installed.
        """
        if importlib.util.find_spec("optuna") is None:
            raise InputError(f"a search needs Optuna: {INSTALL}")
        chosen = _settings(settings)
        sought = Goal.parse(goal, task.catalogue)
        bounds = tuple(Limit.parse(text, task.catalogue) for text in limits)
        made = cls(task, chosen, sought, bounds, tuple(seeds_from(seeds)), "", command)
        # both ends of all settings: a key or a value that does not fit is found before any run
        runs = [run for values in made._corners() for run in task.runs(values, made.seeds)]
        text = " ".join([build(), *(run.key for run in runs)])
        return replace(made, identity=hashlib.sha256(text.encode()).hexdigest()[:32])

    def _corners(self) -> Iterator[Values]:
        yield {each.key: each.value(each.low) if each.ends else each.choices[0] for each in self.settings}
        yield {each.key: each.value(each.high) if each.ends else each.choices[-1] for each in self.settings}

    def run(
        self, out: str | Path, *, tries: int = 100, workers: int | None = None, progress: pool.Progress | None = None
    ) -> SearchResult:
        """Does tries until there are so many in the folder, those of earlier calls among them.

        Finished runs are kept; a search that was stopped goes on with what it was at, and comes to the same end as one
        that was not.

        Raises:
            InputError: when all tries fail.
            OutputError: when results cannot be written, or another search is there.
        """
        folder = Path(out)
        results = Results(folder, OPTIMISE_FILE)
        about = {
            "name": self.task.name,
            "command": self.command,
            "versions": made_with(),
            "identity": self.identity,
            "question": self._question(),
        }
        self._check_folder(folder)
        with results.begun(about, [], []):
            return _Running(self, results, tries, workers, progress).run()

    def _question(self) -> dict[str, Any]:
        return {
            **self.task.to_data(),
            "settings": [f"{one.key}={one.text}" for one in self.settings],
            "goal": self.goal.text,
            "limits": [one.text for one in self.limits],
            "seeds": list(self.seeds),
        }

    def _check_folder(self, folder: Path) -> None:
        """The same search may go on; another one has a folder of its own."""
        try:
            before = read_json(folder / OPTIMISE_FILE)
            had, identity = dict(before["question"]), str(before["identity"])
        except (TidegateError, KeyError, TypeError, ValueError):
            return
        now = json.loads(json.dumps(self._question()))
        different = [key for key in {**had, **now} if had.get(key) != now.get(key)]
        if different:
            why = f"holds another search (other {', '.join(different)})"
        elif identity != self.identity:
            why = "holds a search with another engine, or with other code or recordings"
        else:
            return
        raise OutputError(f"{folder}: {why}; choose another folder")

    def series(self) -> list[Series]:
        """What is kept of each try."""
        asked = [self.goal.series, *(one.series for one in self.limits)]
        shown = [Series(self.task.catalogue[name], None) for name in _SHOWN if name in self.task.catalogue]
        return list({one.name: one for one in (*asked, *shown)}.values())


def _settings(texts: Sequence[str]) -> tuple[Setting, ...]:
    found: dict[str, Setting] = {}
    for one in map(Setting.parse, texts):
        if one.key in found:
            raise InputError(f"{one.key}: is given twice")
        found[one.key] = one
    if not found:
        raise InputError("name a setting to choose, such as links.uplink.queue.time=20ms:500ms")
    return tuple(found.values())


class _Ours:
    """A lock of Optuna's that locks nothing: the folder is locked while a search is at work, until the process ends."""

    def acquire(self) -> bool:
        """At once."""
        return True

    def release(self) -> None:
        """Nothing to do."""


@dataclass
class _Running:
    """A search at work."""

    search: Search
    results: Results
    wanted: int
    workers: int | None
    progress: pool.Progress | None

    def run(self) -> SearchResult:
        import optuna
        from optuna.trial import TrialState

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        direction = "maximize" if self.search.goal.best == "highest" else "minimize"
        study = optuna.create_study(
            study_name="tidegate", storage=self._storage(), direction=direction, load_if_exists=True
        )
        self._take_up(study)
        (unchanged,) = self._try([{}], self.search.seeds, 0, 0)
        while (done := len(self._finished(study))) < self.wanted:
            # chosen anew for each few, so that a search that goes on chooses as one that was never stopped
            study.sampler = optuna.samplers.TPESampler(seed=done)
            count = min(_ABREAST - done % _ABREAST, self.wanted - done)
            settings = self.search.settings
            asked = [study.ask({each.key: each.distribution() for each in settings}) for _ in range(count)]
            chosen = [{each.key: each.value(trial.params[each.key]) for each in settings} for trial in asked]
            for trial, one in zip(asked, self._try(chosen, self.search.seeds, done, self.wanted), strict=True):
                trial.set_user_attr("tried", one.to_data())
                if one.goal is None:
                    study.tell(trial, state=TrialState.FAIL)
                    continue
                for limit, over in zip(self.search.limits, one.over, strict=True):
                    trial.set_constraint(limit.text, over)
                study.tell(trial, one.goal)
            self._write(self._result(study, unchanged, None))
        result = self._result(study, unchanged, None)
        if all(one.goal is None for one in result.tries):
            raise InputError(f"every try failed; the first: {result.tries[0].why}")
        if result.best is not None:
            others = [self.search.seeds[-1] + seed for seed in self.search.seeds]
            (checked,) = self._try([result.best.values], others, self.wanted, self.wanted)
            result = replace(result, checked=checked)
        self._write(result)
        return result

    def _storage(self) -> optuna.storages.JournalStorage:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        file = self.results.folder / JOURNAL
        if file.is_file():
            # what a killed search was about to write is no line
            data = file.read_bytes()
            if not data.endswith(b"\n"):
                file.write_bytes(data[: data.rfind(b"\n") + 1])
        try:
            return JournalStorage(JournalFileBackend(str(file), lock_obj=cast("Any", _Ours())))
        except (ValueError, KeyError) as error:
            raise InputError(f"{file}: is damaged: {error}; choose another folder: runs are kept in this one") from None

    def _take_up(self, study: optuna.Study) -> None:
        """What was under way when a search was stopped is done again, if others that were chosen with it are done."""
        from optuna.trial import TrialState

        begun = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        for one in begun:
            study.tell(one.number, state=TrialState.FAIL)
        # where none is done, all will be chosen again, and will be the same
        if len(self._finished(study)) % _ABREAST:
            for one in begun:
                study.enqueue_trial(one.params)

    def _finished(self, study: optuna.Study) -> list[Tried]:
        from optuna.trial import TrialState

        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))
        tried = ((one.state, Tried.of_data(one.user_attrs["tried"])) for one in trials if "tried" in one.user_attrs)
        # one that was stopped between its runs and their telling is done again
        return [one for found, one in tried if found == TrialState.COMPLETE or one.goal is None]

    def _try(self, chosen: Sequence[Values], seeds: Sequence[int], done: int, of: int) -> list[Tried]:
        """Runs what is not there of some tries, all at once."""
        tried: list[list[One] | str] = []
        for values in chosen:
            try:
                tried.append(self.search.task.runs(values, seeds))
            except InputError as error:
                tried.append(str(error))
        every = {one.key: one for some in tried if not isinstance(some, str) for one in some}
        missing = [one for key, one in every.items() if self.results.read(key) is None]
        for one in missing:
            self.results.clear_way(one.key)
        tell = self.progress

        def told(fraction: float) -> None:
            if tell is not None:
                tell((done + fraction * len(chosen)) / max(of, 1) if of else 0.0)

        busy = busy_in_python((one.busy for one in missing), len(missing), self.workers)
        jobs = [one.job for one in missing]

        def keep(number: int, row: Mapping[str, Any]) -> Path:
            return self.results.write(missing[number].key, row)

        outcomes = engine.run_all(jobs, workers=self.workers, processes=busy, progress=told, keep_going=True, keep=keep)
        failed = {}
        for one, outcome in zip(missing, outcomes, strict=True):
            if isinstance(outcome, RunError | InputError | _core.InternalError):
                failed[one.key] = str(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        return [self._tried(values, some, failed) for values, some in zip(chosen, tried, strict=True)]

    def _tried(self, values: Values, runs: list[One] | str, failed: Mapping[str, str]) -> Tried:
        if isinstance(runs, str):
            return Tried(values, {}, None, (), runs)
        numbers: dict[str, dict[str, list[float | None]]] = {}
        for one in runs:
            row = self.results.read(one.key)
            if row is None:
                return Tried(values, {}, None, (), failed.get(one.key, "its result cannot be read"))
            for series in self.search.series():
                of = numbers.setdefault(series.name, {}).setdefault(one.case, [])
                of.append(self.search.task.number(row, series))
        goal = self.search.goal.value(numbers[self.search.goal.series.name])
        over = tuple(limit.over(numbers[limit.series.name]) for limit in self.search.limits)
        return Tried(values, numbers, goal, over, "" if goal is not None else f"no run has a {self.search.goal.text}")

    def _result(self, study: optuna.Study, unchanged: Tried, checked: Tried | None) -> SearchResult:
        task, about = self.search.task, self.search.task.to_data()
        made = SearchResult(
            task.name,
            self.search.settings,
            self.search.goal,
            self.search.limits,
            self.search.seeds,
            tuple(self._finished(study)),
            unchanged,
            checked,
            _importances(study),
            "",
            about.get("scenario") or about["suite"],
            self.search.command,
            made_with(),
        )
        return replace(made, again=task.again(made.best.values) if made.best else "")

    def _write(self, result: SearchResult) -> None:
        data = result.to_data()
        kept = {key: data[key] for key in ("tries", "unchanged", "checked", "importances")}
        text = json.dumps({"format": _FORMAT, **kept, "again": result.again})
        add_file(self.results.folder, TRIES_FILE, text + "\n")


def made_with() -> dict[str, str]:
    """What results are made with, Optuna among it."""
    return {**versions(), "optuna": importlib.metadata.version("optuna")}


def _importances(study: optuna.Study) -> dict[str, float]:
    """By Optuna; nothing where there are too few tries, or all are alike."""
    import optuna

    with warnings.catch_warnings():
        # that there are too few is said as a warning, and all are alike then
        warnings.simplefilter("error", UserWarning)
        try:
            found = optuna.importance.get_param_importances(study)
        except (ValueError, RuntimeError, ZeroDivisionError, UserWarning):
            return {}
    return {str(key): float(value) for key, value in found.items() if value == value}  # noqa: PLR0124
