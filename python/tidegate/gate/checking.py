"""Running a suite against a baseline, with as many seeds as it takes."""

from __future__ import annotations

import glob
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tidegate.errors import InputError, RunError
from tidegate.gate import baseline as baselines
from tidegate.gate import document as documents
from tidegate.gate.baseline import Baseline, CaseBaseline
from tidegate.gate.course import Change, Course
from tidegate.gate.evidence import LEVEL, LOOKS, Family, State, looks_up_to
from tidegate.gate.judging import Question, Verdict, judge
from tidegate.gate.rules import DEFAULT, Rule
from tidegate.output.document import Document
from tidegate.output.junit import Case
from tidegate.output.notebook import Displayable
from tidegate.runs import pool
from tidegate.suite import Plan, Suite, SuiteResult

Progress = Callable[[str], AbstractContextManager[pool.Progress | None]]
"""Makes a progress bar with a title; the bar is called with the fraction that is done."""


def _quiet(_: str) -> AbstractContextManager[pool.Progress | None]:
    return nullcontext()


@dataclass(frozen=True, repr=False)
class Outcome(Displayable):
    """The result of a check."""

    suite: str
    """Name of the suite."""
    controller: str
    """The controller that was checked."""
    against: str
    """The controller of the baseline."""
    verdicts: Sequence[Verdict]
    """Verdict on each rule in each case that the rule is about and that has a value."""
    failed: Mapping[str, str]
    """Reasons of failed runs, by case."""
    not_run: Mapping[str, str]
    """Reasons why cases cannot be run, by case."""
    runs: int
    """Number of runs that the check took."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time that the runs of each case took."""
    again: str = ""
    """The command of this check but for its cases; nothing where it is not known."""
    change: Change | None = None
    """The course over time of the case that became worst, before and now; `None` where nothing is worse."""
    level: float = LEVEL
    """Probability, at most, that a check says worse although all is within its limits."""

    def those(self, state: State) -> list[Verdict]:
        """Verdicts of one state."""
        return [verdict for verdict in self.verdicts if verdict.state == state]

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self.those(state))} {state}" for state in ("worse", "undecided", "fine"))
        failed = f", {len(self.failed)} cases failed" if self.failed else ""
        return f"<tidegate gate Outcome of {self.controller} against {self.against} on {self.suite}: {counts}{failed}>"

    def passed(self, *, strict: bool = False) -> bool:
        """Whether nothing is worse, no run failed, and (if `strict`) nothing is undecided."""
        return not self.failed and not self.those("worse") and not (strict and self.those("undecided"))

    @property
    def summary(self) -> str:
        """The result in one sentence: `1 of 24 worse, 2 undecided`."""
        worse, undecided = len(self.those("worse")), len(self.those("undecided"))
        parts = [f"{worse} of {len(self.verdicts)} worse"] if worse else []
        parts += [f"{undecided} undecided"] if undecided else []
        parts += [f"{len(self.failed)} cases failed"] if self.failed else []
        return ", ".join(parts) or "nothing is worse"

    def document(self) -> Document:
        """The check as a document, from which all output formats are made."""
        return documents.document(self)

    def cases(self, *, strict: bool = False) -> list[Case]:
        """The verdicts as cases of a test report.

        Args:
            strict: Whether an undecided rule counts as a failure; otherwise it counts as skipped.
        """
        return list(documents.cases(self, strict=strict))

    def to_data(self) -> dict[str, Any]:
        """The check as JSON data; numbers are in the summary's units."""
        return {
            "suite": self.suite,
            "controller": self.controller,
            "against": self.against,
            "passed": self.passed(),
            "level": self.level,
            "runs": self.runs,
            "answers": [
                {
                    "case": verdict.case,
                    "rule": verdict.rule.text,
                    "metric": verdict.rule.metric.name,
                    "of": verdict.rule.scope,
                    **{key: getattr(verdict, key) for key in ("state", "better", "seeds", "before", "now")},
                    "worse_by_at_least": verdict.bound,
                    "without_value": verdict.lost,
                }
                for verdict in self.verdicts
            ],
            **({} if self.change is None else {"change": self.change.to_data()}),
            "failed": dict(self.failed),
            "not_run": dict(self.not_run),
        }


def write(
    path: Path,
    controller: str,
    suite: Suite,
    *,
    suite_name: str,
    rules: Sequence[str] = (),
    seeds: int = LOOKS[-1],
    cases: Sequence[str] = (),
    out: Path | None = None,
    workers: int | None = None,
    progress: Progress = _quiet,
    force: bool = False,
) -> Baseline:
    """Makes a baseline: runs a suite with every seed that a check may ask for.

    Args:
        path: The file to write.
        controller: The controller.
        suite: The suite.
        suite_name: The suite as it was typed: its name, or its file.
        rules: Rules of checks that name none of their own; `DEFAULT` if empty.
        seeds: Number of seeds of each case.
        cases: Patterns of names of cases, to run only these.
        out: A folder for the runs; by default a temporary one.
        workers: Number of runs at once; one a core by default.
        progress: Makes progress bars.
        force: Whether to replace a file of another kind, too.

    Raises:
        InputError: when rules, cases or seeds are not usable.
        RunError: when a run fails.
        OutputError: when the file cannot be written.
    """
    baselines.check_file(path, force=force)
    texts = tuple(rules) or DEFAULT
    parsed = _parse_rules(texts)
    chosen = suite.only(tuple(cases))
    _enough(seeds, sum(rule.is_about(case.name) for rule in parsed for case in chosen.cases if not case.not_run))
    # a later check may have rules about the rate that a call leaves to other flows
    other_flows = [("receive_rate_bps", flow) for case in chosen.cases for flow in case.others]
    series = baselines.series_of(parsed, [*((rule.metric, rule.of) for rule in chosen.rules), *other_flows])
    with _folder(out) as folder:
        plan = Plan.of(chosen, [controller], seeds=seeds, simulated=True)
        with progress(f"{controller}: {len(plan.points)} runs") as tell:
            result = plan.run(folder, workers=workers, progress=tell)
    if result.troubles:
        raise RunError("\n".join(f"{case}: {why}" for (case, _), why in result.troubles.items()))
    runnable = [case for case in chosen.cases if not case.not_run]
    by_case = {}
    for case in runnable:
        values = {name: baselines.values_of(result, case.name, controller, name, seeds) for name in series}
        by_case[case.name] = {
            name: numbers for name, numbers in values.items() if any(number is not None for number in numbers)
        }
    engine = baselines.engines(chosen, by_case, workers=workers)
    measured = {
        case.name: CaseBaseline(
            baselines.network(case),
            engine[case.name],
            by_case[case.name],
            Course.of(result.rows[case.name, controller]),
        )
        for case in runnable
    }
    baseline = Baseline(suite_name, controller, seeds, tuple(cases), texts, measured, baselines.made_with())
    baseline.save(path, force=force)
    return baseline


def check(
    baseline: Baseline,
    suite: Suite,
    controller: str | None = None,
    *,
    rules: Sequence[str] = (),
    cases: Sequence[str] = (),
    seeds: int | None = None,
    out: Path | None = None,
    workers: int | None = None,
    progress: Progress = _quiet,
    remake: str = "",
    repeat: str = "",
) -> Outcome:
    """Runs a suite and compares it with a baseline.

    Args:
        baseline: The results before the change.
        suite: The suite of the baseline.
        controller: The controller to check; by default the baseline's, as its code is now.
        rules: What counts as worse; by default the baseline's rules.
        cases: Patterns of names of cases, to check only these.
        seeds: Maximum number of seeds; by default as many as the baseline has.
        out: A folder for the runs; by default a temporary one.
        workers: Number of runs at once; one a core by default.
        progress: Makes progress bars.
        remake: `: ` and the command that makes the baseline again, for messages.
        repeat: The command of this check but for its cases, for the text of a failure.

    Raises:
        InputError: when the baseline is of another suite, network or engine, or rules and seeds are not usable.
    """
    tried = controller or baseline.controller
    chosen, absent = _comparable(
        baseline, suite.only(baseline.only).only(tuple(cases)), all_cases=not cases, again=remake
    )
    parsed = _parse_rules(rules or baseline.rules)
    questions = _questions(baseline, parsed, list(chosen), remake)
    looks = looks_up_to(min(baseline.seeds, seeds or baseline.seeds))
    _enough(looks[-1], len(questions))
    with progress("comparing the engine with the baseline's") as tell:
        series = {name: case.values for name, case in chosen.items()}
        engine = baselines.engines(suite, series, workers=workers, progress=tell)
    for name, case in chosen.items():
        if case.engine != engine[name]:
            theirs, ours = (_version(versions) for versions in (baseline.versions, baselines.made_with()))
            why = f"{baselines.REFERENCE} gives other numbers in {name} (made by {theirs}; this is {ours})"
            raise InputError(f"the baseline was made with another engine: {why}; make the baseline again{remake}")
    with _folder(out) as folder:
        runs = _SuiteRuns(suite, tried, folder, workers, progress)
        before = {name: case.values for name, case in chosen.items()}
        verdicts = judge(questions, looks, before, runs)
    worst = max((verdict for verdict in verdicts if verdict.state == "worse"), key=_beyond, default=None)
    change = None
    if worst is not None and (now := runs.course(worst.case)) is not None:
        title = next(case.title for case in suite.cases if case.name == worst.case)
        change = Change(worst.case, title, chosen[worst.case].course, now)
    counts = (runs.count, runs.seconds, repeat, change)
    return Outcome(suite.name, tried, baseline.controller, verdicts, runs.failed, absent, *counts)


def _beyond(verdict: Verdict) -> float:
    """The sure part of a change for the worse, in limits of its rule."""
    before = abs(verdict.before) if math.isfinite(verdict.before) else 0.0
    allowed = max(limit.size * (before if limit.relative else 1.0) for limit in verdict.rule.limits)
    bound = verdict.bound if math.isfinite(verdict.bound) else 0.0
    return bound / allowed if allowed else math.inf


class _SuiteRuns:
    """Runs of a suite with one controller."""

    def __init__(self, suite: Suite, controller: str, folder: Path, workers: int | None, progress: Progress) -> None:
        self.suite, self.controller, self.folder = suite, controller, folder
        self.workers, self.progress = workers, progress
        self.failed: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._plan: Plan | None = None
        self._failed: Mapping[str, str] = {}
        self._result: SuiteResult | None = None

    @property
    def count(self) -> int:
        """Number of runs so far."""
        return len(self._plan.points) if self._plan else 0

    def reach(self, cases: Sequence[str], seeds: int) -> None:
        patterns = [glob.escape(case) for case in cases]
        wanted = Plan.of(self.suite, [self.controller], seeds=seeds, cases=patterns, simulated=True)
        # the folder has every case, with as many seeds as it took
        plan = wanted if self._plan is None else wanted.after(self._plan, self._failed)
        with self.progress(f"{len(cases)} cases, seeds to {seeds}: {len(plan.points) - self.count} runs") as tell:
            self._result = plan.run(self.folder, workers=self.workers, progress=tell)
        self._plan, self._failed = plan, self._result.about["failed"]
        for (case, _), seconds in self._result.seconds.items():
            self.seconds[case] = self.seconds.get(case, 0.0) + seconds
        self.failed |= {case: why for (case, _), why in self._result.troubles.items()}

    def course(self, case: str) -> Course | None:
        """The course over time of a case's runs."""
        return None if self._result is None else Course.of(self._result.rows.get((case, self.controller), {}))

    def values(self, case: str, series: str, seeds: int) -> list[float | None]:
        assert self._result is not None  # noqa: S101
        return baselines.values_of(self._result, case, self.controller, series, seeds)


def _parse_rules(texts: Sequence[str]) -> list[Rule]:
    rules = [Rule.parse(text, baselines.catalogue()) for text in texts]
    for index, rule in enumerate(rules):
        if any(replace(rule, text=earlier.text) == earlier for earlier in rules[:index]):
            raise InputError(f"--fail-if: the rule {rule.text!r} is given twice")
    return rules


def _comparable(
    baseline: Baseline, suite: Suite, *, all_cases: bool, again: str
) -> tuple[dict[str, CaseBaseline], dict[str, str]]:
    """The cases to compare, and the reasons why other cases cannot be run."""
    cases = {case.name: case for case in suite.cases}
    absent = {name: case.not_run for name, case in cases.items() if case.not_run}
    again = f"; make the baseline again{again}"
    for name in cases:
        if name not in baseline.cases and name not in absent:
            names = ", ".join(baseline.cases)
            raise InputError(
                f"{name} is a case of {suite.name} that is not in the baseline (its cases: {names}){again}"
            )
    for name, case in baseline.cases.items():
        if name not in cases:
            if all_cases:
                raise InputError(f"{name} is a case of the baseline that is not in {suite.name}{again}")
            continue
        if name not in absent and case.network != baselines.network(cases[name]):
            raise InputError(f"{name}: the network differs from that of the baseline{again}")
    chosen = {name: case for name, case in baseline.cases.items() if name in cases and name not in absent}
    if not chosen:
        raise InputError(f"{suite.name}: no case can be run: {'; '.join(dict.fromkeys(absent.values()))}")
    return chosen, absent


def _questions(baseline: Baseline, rules: Sequence[Rule], cases: Sequence[str], again: str) -> list[Question]:
    """Pairs of each rule with each case that it is about and that has its number.

    Raises:
        InputError: when a rule is about no case, or about a number that the baseline lacks everywhere.
    """
    questions = []
    for rule in rules:
        matching = [case for case in baseline.cases if rule.is_about(case)]
        if not matching:
            raise InputError(
                f"--fail-if {rule.text!r}: the rule matches no case; available: {', '.join(baseline.cases)}"
            )
        askable = [Question(case, rule) for case in matching if rule.series in baseline.cases[case].values]
        if not askable:
            why = f"the baseline has no {rule.series} in {', '.join(matching)}"
            raise InputError(f"--fail-if {rule.text!r}: {why}; make the baseline again with this rule{again}")
        questions += [question for question in askable if question.case in cases]
    if not questions:
        raise InputError(f"no rule applies to {', '.join(cases)}; add one with --fail-if")
    return questions


def _enough(seeds: int, questions: int) -> None:
    """Checks that this number of seeds can show a change for the worse.

    Raises:
        InputError: when it cannot; says the number that can.
    """
    if Family(range(questions), looks_up_to(seeds)).can_convict:
        return
    right = next((n for n in range(2, LOOKS[-1] + 1) if Family(range(questions), looks_up_to(n)).can_convict), None)
    reason = f"{questions} questions (rules times cases) at {LEVEL:.0%}"
    expected = f"expected at least {right}" if right else "expected fewer rules or fewer cases"
    raise InputError(f"seeds: found {seeds}, too few to show that anything is worse: {reason}; {expected}")


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """The folder for runs, or a temporary one."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="tidegate-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch) / "runs"


def _version(versions: Mapping[str, str]) -> str:
    commit = versions.get("commit", "")
    return f"tidegate {versions.get('tidegate', '?')}{f' ({commit[:12]})' if commit else ''}"
