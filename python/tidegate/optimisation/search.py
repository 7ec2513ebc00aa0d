"""A search: tries that Optuna proposes, their runs, and the result."""

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
from tidegate.optimisation.goals import Goal, Limit
from tidegate.optimisation.result import OPTIMISE_FILE, TRIES_FILE, SearchResult, Try
from tidegate.optimisation.space import Setting, Values
from tidegate.optimisation.tasks import Task, TryRun
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
_TRIES_AT_ONCE = 4
"""Number of tries that are chosen at once, so that all cores are busy. It is the same on every machine, because later
choices depend on it."""
_SHOWN = ("receive_rate_bps", "utilisation", "one_way_delay_ms_p95", "loss_fraction")
"""Metrics that are saved of each try beside those of the goal and the limits."""


@dataclass(frozen=True)
class Search:
    """A search whose input is checked, before it is run."""

    task: Task
    """The scenario or suite of the runs."""
    settings: tuple[Setting, ...]
    """Settings whose values are searched."""
    goal: Goal
    """The number to maximise or minimise."""
    limits: tuple[Limit, ...]
    """Limits that a valid try has to hold."""
    seeds: tuple[int, ...]
    """The seeds of each try."""
    identity: str
    """Hash of code, scenario and engine: all that the numbers depend on, except the settings."""
    command: str = ""
    """Command of the search, as it was typed."""

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
        """Makes a search, and checks that all its settings fit.

        Args:
            task: A scenario or a suite.
            settings: Settings with their ranges or values: `KEY=LOW:HIGH`, `KEY=log:LOW:HIGH`, `KEY=A,B,C`.
            goal: The number to maximise or minimise: `utilisation`, `lowest delay_p95`.
            limits: Limits that a valid try has to hold: `delay_p95 < 150ms`.
            seeds: Number of runs of a try (of each case of a suite).
            command: Command of the search as it was typed, for the record.

        Raises:
            InputError: when something does not fit, or Optuna is not installed.
        """
        if importlib.util.find_spec("optuna") is None:
            raise InputError(f"a search needs Optuna: {INSTALL}")
        chosen = _settings(settings)
        sought = Goal.parse(goal, task.catalogue)
        bounds = tuple(Limit.parse(text, task.catalogue) for text in limits)
        search = cls(task, chosen, sought, bounds, tuple(seeds_from(seeds)), "", command)
        # both ends of all settings: an invalid key or value raises before any run
        runs = [run for values in search._extremes() for run in task.runs(values, search.seeds)]
        text = " ".join([build(), *(run.key for run in runs)])
        return replace(search, identity=hashlib.sha256(text.encode()).hexdigest()[:32])

    def _extremes(self) -> Iterator[Values]:
        yield {
            setting.key: setting.value(setting.low) if setting.ends else setting.choices[0] for setting in self.settings
        }
        yield {
            setting.key: setting.value(setting.high) if setting.ends else setting.choices[-1]
            for setting in self.settings
        }

    def run(
        self, out: str | Path, *, tries: int = 100, workers: int | None = None, progress: pool.Progress | None = None
    ) -> SearchResult:
        """Does tries until the folder has `tries` of them, counting those of earlier calls.

        Finished runs are kept. A search that was stopped continues, and its result is the same as without the stop.

        Raises:
            InputError: when all tries fail.
            OutputError: when results cannot be written, or the folder holds another search.
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
        with results.prepared(about, [], []):
            return _Running(self, results, tries, workers, progress).run()

    def _question(self) -> dict[str, Any]:
        return {
            **self.task.to_data(),
            "settings": [f"{setting.key}={setting.text}" for setting in self.settings],
            "goal": self.goal.text,
            "limits": [limit.text for limit in self.limits],
            "seeds": list(self.seeds),
        }

    def _check_folder(self, folder: Path) -> None:
        """Checks that a folder holds no other search; the same search may continue in it."""
        try:
            before = read_json(folder / OPTIMISE_FILE)
            earlier, identity = dict(before["question"]), str(before["identity"])
        except (TidegateError, KeyError, TypeError, ValueError):
            return
        now = json.loads(json.dumps(self._question()))
        different = [key for key in {**earlier, **now} if earlier.get(key) != now.get(key)]
        if different:
            why = f"the folder holds another search (different {', '.join(different)})"
        elif identity != self.identity:
            why = "the folder holds a search with another engine, other code or other recordings"
        else:
            return
        raise OutputError(f"{folder}: {why}; choose another folder")

    def series(self) -> list[Series]:
        """Series that are saved of each try."""
        requested = [self.goal.series, *(limit.series for limit in self.limits)]
        usual = [Series(self.task.catalogue[name], None) for name in _SHOWN if name in self.task.catalogue]
        return list({series.name: series for series in (*requested, *usual)}.values())


def _settings(texts: Sequence[str]) -> tuple[Setting, ...]:
    settings: dict[str, Setting] = {}
    for setting in map(Setting.parse, texts):
        if setting.key in settings:
            raise InputError(f"{setting.key} is given twice")
        settings[setting.key] = setting
    if not settings:
        raise InputError("no setting is given; expected one to search, such as links.uplink.queue.time=20ms:500ms")
    return tuple(settings.values())


class _NoLock:
    """A lock for Optuna that does nothing: the search holds a lock on the folder until the process ends."""

    def acquire(self) -> bool:
        """Returns at once."""
        return True

    def release(self) -> None:
        """Does nothing."""


@dataclass
class _Running:
    """A search while it runs."""

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
        self._resume(study)
        (unchanged,) = self._run_tries([{}], self.search.seeds, 0, 0)
        while (done := len(self._finished(study))) < self.wanted:
            # a new sampler for each group of tries: a continued search then chooses as one that was never stopped
            study.sampler = optuna.samplers.TPESampler(seed=done)
            count = min(_TRIES_AT_ONCE - done % _TRIES_AT_ONCE, self.wanted - done)
            settings = self.search.settings
            trials = [study.ask({setting.key: setting.distribution() for setting in settings}) for _ in range(count)]
            chosen = [
                {setting.key: setting.value(trial.params[setting.key]) for setting in settings} for trial in trials
            ]
            for trial, tried in zip(trials, self._run_tries(chosen, self.search.seeds, done, self.wanted), strict=True):
                trial.set_user_attr("tried", tried.to_data())
                if tried.goal is None:
                    study.tell(trial, state=TrialState.FAIL)
                    continue
                for limit, over in zip(self.search.limits, tried.over, strict=True):
                    trial.set_constraint(limit.text, over)
                study.tell(trial, tried.goal)
            self._write(self._result(study, unchanged, None))
        result = self._result(study, unchanged, None)
        if all(tried.goal is None for tried in result.tries):
            raise InputError(f"every try failed; the first: {result.tries[0].why}")
        if result.best is not None:
            fresh_seeds = [self.search.seeds[-1] + seed for seed in self.search.seeds]
            (checked,) = self._run_tries([result.best.values], fresh_seeds, self.wanted, self.wanted)
            result = replace(result, checked=checked)
        self._write(result)
        return result

    def _storage(self) -> optuna.storages.JournalStorage:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        file = self.results.folder / JOURNAL
        if file.is_file():
            # a killed search leaves an incomplete last line
            data = file.read_bytes()
            if not data.endswith(b"\n"):
                file.write_bytes(data[: data.rfind(b"\n") + 1])
        try:
            return JournalStorage(JournalFileBackend(str(file), lock_obj=cast("Any", _NoLock())))
        except (ValueError, KeyError) as error:
            raise InputError(
                f"{file}: the file is damaged: {error}; choose another folder (the runs in this one are kept)"
            ) from None

    def _resume(self, study: optuna.Study) -> None:
        """Repeats the tries that were running when the search stopped, if other tries of their group are done."""
        from optuna.trial import TrialState

        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        for trial in running:
            study.tell(trial.number, state=TrialState.FAIL)
        # if none of the group is done, the sampler chooses the same group again
        if len(self._finished(study)) % _TRIES_AT_ONCE:
            for trial in running:
                study.enqueue_trial(trial.params)

    def _finished(self, study: optuna.Study) -> list[Try]:
        from optuna.trial import TrialState

        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))
        outcomes = (
            (trial.state, Try.of_data(trial.user_attrs["tried"])) for trial in trials if "tried" in trial.user_attrs
        )
        # a try whose runs ended but of which Optuna was not told is done again
        return [tried for state, tried in outcomes if state == TrialState.COMPLETE or tried.goal is None]

    def _run_tries(self, chosen: Sequence[Values], seeds: Sequence[int], done: int, total: int) -> list[Try]:
        """Does the missing runs of some tries, all at once."""
        runs_or_errors: list[list[TryRun] | str] = []
        for values in chosen:
            try:
                runs_or_errors.append(self.search.task.runs(values, seeds))
            except InputError as error:
                runs_or_errors.append(str(error))
        by_key = {run.key: run for runs in runs_or_errors if not isinstance(runs, str) for run in runs}
        missing = [run for key, run in by_key.items() if self.results.read(key) is None]
        for run in missing:
            self.results.clear_way(run.key)
        tell = self.progress

        def report(fraction: float) -> None:
            if tell is not None:
                tell((done + fraction * len(chosen)) / max(total, 1) if total else 0.0)

        busy = busy_in_python((run.lowered for run in missing), len(missing), self.workers)
        jobs = [run.job for run in missing]

        def keep(number: int, row: Mapping[str, Any]) -> Path:
            return self.results.write(missing[number].key, row)

        outcomes = engine.run_all(
            jobs,
            workers=self.workers,
            processes=busy,
            progress=report,
            keep_going=True,
            keep=keep,
            # a try with a failed run has no value
            together=[id(run.lowered) for run in missing],
        )
        failed = {}
        for run, outcome in zip(missing, outcomes, strict=True):
            if isinstance(outcome, RunError | InputError | _core.InternalError):
                failed[run.key] = str(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        return [self._outcome(values, runs, failed) for values, runs in zip(chosen, runs_or_errors, strict=True)]

    def _outcome(self, values: Values, runs: list[TryRun] | str, failed: Mapping[str, str]) -> Try:
        if isinstance(runs, str):
            return Try(values, {}, None, (), runs)
        numbers: dict[str, dict[str, list[float | None]]] = {}
        for run in runs:
            row = self.results.read(run.key)
            if row is None:
                return Try(values, {}, None, (), failed.get(run.key, "the result of the run cannot be read"))
            for series in self.search.series():
                values_of_case = numbers.setdefault(series.name, {}).setdefault(run.case, [])
                values_of_case.append(self.search.task.number(row, series))
        goal = self.search.goal.value(numbers[self.search.goal.series.name])
        over = tuple(limit.excess(numbers[limit.series.name]) for limit in self.search.limits)
        return Try(
            values, numbers, goal, over, "" if goal is not None else f"no run has a value of {self.search.goal.text}"
        )

    def _result(self, study: optuna.Study, unchanged: Try, checked: Try | None) -> SearchResult:
        task, question = self.search.task, self.search.task.to_data()
        result = SearchResult(
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
            question.get("scenario") or question["suite"],
            self.search.command,
            made_with(),
        )
        return replace(result, again=task.again(result.best.values) if result.best else "")

    def _write(self, result: SearchResult) -> None:
        data = result.to_data()
        parts = {key: data[key] for key in ("tries", "unchanged", "checked", "importances")}
        text = json.dumps({"format": _FORMAT, **parts, "again": result.again})
        add_file(self.results.folder, TRIES_FILE, text + "\n")


def made_with() -> dict[str, str]:
    """Versions of tidegate and Optuna that results are made with."""
    return {**versions(), "optuna": importlib.metadata.version("optuna")}


def _importances(study: optuna.Study) -> dict[str, float]:
    """Importances of the settings by Optuna; empty where there are too few tries, or all are alike."""
    import optuna

    with warnings.catch_warnings():
        # Optuna only warns of too few tries, and gives all settings the same importance
        warnings.simplefilter("error", UserWarning)
        try:
            importances = optuna.importance.get_param_importances(study)
        except (ValueError, RuntimeError, ZeroDivisionError, UserWarning):
            return {}
    return {str(key): float(value) for key, value in importances.items() if value == value}  # noqa: PLR0124
