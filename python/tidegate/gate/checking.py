"""Running a suite against a baseline, with as many seeds as it takes."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidegate.errors import InputError, RunError
from tidegate.gate import baseline as kept
from tidegate.gate import document as documents
from tidegate.gate.baseline import Baseline, Known
from tidegate.gate.deciding import LEVEL, LOOKS, Family, State, looks_up_to
from tidegate.gate.judging import Answer, Question, judge
from tidegate.gate.rules import DEFAULT, Rule
from tidegate.output.document import Document
from tidegate.output.junit import Case
from tidegate.output.notebook import Shown
from tidegate.runs import pool
from tidegate.suite import Plan, Suite, SuiteResult

Progress = Callable[[str], AbstractContextManager[pool.Progress | None]]
"""Makes a bar for a piece of work, which is told the fraction that is done."""


def _quiet(_: str) -> AbstractContextManager[pool.Progress | None]:
    return nullcontext()


@dataclass(frozen=True, repr=False)
class Outcome(Shown):
    """What a check found."""

    suite: str
    """The suite."""
    controller: str
    """What was tried."""
    against: str
    """The controller of the baseline."""
    answers: Sequence[Answer]
    """Each rule in each case that it is about and has a value in."""
    failed: Mapping[str, str]
    """Cases of which a run failed, and why."""
    not_run: Mapping[str, str]
    """Cases that cannot be run, and why."""
    runs: int
    """How many runs it took."""
    level: float = LEVEL
    """How often a check of what is within all limits says worse."""

    def those(self, state: State) -> list[Answer]:
        """The answers of a kind."""
        return [one for one in self.answers if one.state == state]

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self.those(state))} {state}" for state in ("worse", "undecided", "fine"))
        failed = f", {len(self.failed)} cases failed" if self.failed else ""
        return f"<tidegate gate Outcome of {self.controller} against {self.against} on {self.suite}: {counts}{failed}>"

    def passed(self, *, strict: bool = False) -> bool:
        """Whether nothing is worse, no run failed, and (if `strict`) nothing is undecided."""
        return not self.failed and not self.those("worse") and not (strict and self.those("undecided"))

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        worse, undecided = len(self.those("worse")), len(self.those("undecided"))
        parts = [f"{worse} of {len(self.answers)} worse"] if worse else []
        parts += [f"{undecided} undecided"] if undecided else []
        parts += [f"{len(self.failed)} cases failed"] if self.failed else []
        return ", ".join(parts) or "nothing is worse"

    def document(self) -> Document:
        """The check as data, of which all its forms are made."""
        return documents.document(self)

    def cases(self, *, strict: bool = False) -> list[Case]:
        """The answers as cases of a test report.

        Args:
            strict: Whether what is undecided is a failure, too; else it is skipped.
        """
        return list(documents.cases(self, strict=strict))

    def to_data(self) -> dict[str, Any]:
        """As plain data, numbers in the summary's own units."""
        return {
            "suite": self.suite,
            "controller": self.controller,
            "against": self.against,
            "passed": self.passed(),
            "level": self.level,
            "runs": self.runs,
            "answers": [
                {
                    "case": answer.case,
                    "rule": answer.rule.text,
                    "metric": answer.rule.metric.name,
                    "of": answer.rule.of,
                    **{key: getattr(answer, key) for key in ("state", "better", "seeds", "before", "now")},
                    "worse_by_at_least": answer.bound,
                    "without_value": answer.lost,
                }
                for answer in self.answers
            ],
            "failed": dict(self.failed),
            "not_run": dict(self.not_run),
        }


def write(
    path: Path,
    controller: str,
    suite: Suite,
    *,
    named: str,
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
        named: What the suite was called by: its name, or its file.
        rules: What checks against it ask where nobody says otherwise; `DEFAULT` if there are none.
        seeds: How many.
        cases: Patterns of names of cases, for these alone.
        out: A folder for the runs; one that goes away by default.
        workers: How many runs at once; one a core by default.
        progress: Makes bars.
        force: Whether to replace a file of another kind, too.

    Raises:
        InputError: when rules, cases or seeds are not usable.
        RunError: when a run fails.
        OutputError: when the file cannot be written.
    """
    kept.check_file(path, force=force)
    texts = tuple(rules) or DEFAULT
    read = _rules(texts)
    chosen = suite.only(tuple(cases))
    _enough(seeds, sum(rule.is_about(case.name) for rule in read for case in chosen.cases if not case.not_run))
    # what a call leaves to others can be asked for later, too
    others = [("receive_rate_bps", flow) for case in chosen.cases for flow in case.others]
    series = kept.series_of(read, [*((rule.metric, rule.of) for rule in chosen.rules), *others])
    with _folder(out) as folder:
        plan = Plan.of(chosen, [controller], seeds=seeds, simulated=True)
        with progress(f"{controller}: {len(plan.points)} runs") as tell:
            result = plan.run(folder, workers=workers, progress=tell)
    if result.troubles:
        raise RunError("\n".join(f"{case}: {why}" for (case, _), why in result.troubles.items()))
    there = [case for case in chosen.cases if not case.not_run]
    known = {}
    for case in there:
        values = {name: kept.values_of(result, case.name, controller, name, seeds) for name in series}
        known[case.name] = {name: some for name, some in values.items() if any(value is not None for value in some)}
    engine = kept.engines(chosen, known, workers=workers)
    found = {case.name: Known(kept.network(case), engine[case.name], known[case.name]) for case in there}
    made = Baseline(named, controller, seeds, tuple(cases), texts, found, kept.made_with())
    made.save(path, force=force)
    return made


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
    made_by: str = "",
) -> Outcome:
    """Runs a suite and compares it with a baseline.

    Args:
        baseline: What was before.
        suite: The suite of the baseline.
        controller: What is tried; the baseline's by default, which is its code of today.
        rules: What counts as worse; those of the baseline by default.
        cases: Patterns of names of cases, for these alone.
        seeds: How many at most; as many as the baseline has by default.
        out: A folder for the runs; one that goes away by default.
        workers: How many runs at once; one a core by default.
        progress: Makes bars.
        made_by: A command that makes the baseline again, for messages.

    Raises:
        InputError: when the baseline is one of another suite, network or engine, or rules and seeds are not usable.
    """
    tried = controller or baseline.controller
    chosen, absent = _comparable(baseline, suite.only(baseline.only).only(tuple(cases)), whole=not cases, again=made_by)
    read = _rules(rules or baseline.rules)
    questions = _questions(baseline, read, list(chosen), made_by)
    looks = looks_up_to(min(baseline.seeds, seeds or baseline.seeds))
    _enough(looks[-1], len(questions))
    with progress("is it the same engine?") as tell:
        series = {name: one.values for name, one in chosen.items()}
        engine = kept.engines(suite, series, workers=workers, progress=tell)
    for name, one in chosen.items():
        if one.engine != engine[name]:
            old, new = (_version(made) for made in (baseline.versions, kept.made_with()))
            why = f"what {kept.REFERENCE} gives in {name} is not what it gave (made by {old}; this is {new})"
            raise InputError(f"the baseline is of another engine: {why}; make the baseline again{made_by}")
    with _folder(out) as folder:
        runs = _SuiteRuns(suite, tried, folder, workers, progress)
        before = {name: one.values for name, one in chosen.items()}
        answers = judge(questions, looks, before, runs)
    return Outcome(suite.name, tried, baseline.controller, answers, runs.failed, absent, runs.count)


class _SuiteRuns:
    """Runs of a suite with one controller."""

    def __init__(self, suite: Suite, controller: str, folder: Path, workers: int | None, progress: Progress) -> None:
        self.suite, self.controller, self.folder = suite, controller, folder
        self.workers, self.progress = workers, progress
        self.failed: dict[str, str] = {}
        self._plan: Plan | None = None
        self._failed: Mapping[str, str] = {}
        self._result: SuiteResult | None = None

    @property
    def count(self) -> int:
        """How many runs there were."""
        return len(self._plan.points) if self._plan else 0

    def reach(self, cases: Sequence[str], seeds: int) -> None:
        some = [glob.escape(case) for case in cases]
        wanted = Plan.of(self.suite, [self.controller], seeds=seeds, cases=some, simulated=True)
        # the folder has every case, with as many seeds as it took
        plan = wanted if self._plan is None else wanted.after(self._plan, self._failed)
        with self.progress(f"{len(cases)} cases, seeds to {seeds}: {len(plan.points) - self.count} runs") as tell:
            self._result = plan.run(self.folder, workers=self.workers, progress=tell)
        self._plan, self._failed = plan, self._result.about["failed"]
        self.failed |= {case: why for (case, _), why in self._result.troubles.items()}

    def values(self, case: str, series: str, seeds: int) -> list[float | None]:
        assert self._result is not None  # noqa: S101
        return kept.values_of(self._result, case, self.controller, series, seeds)


def _rules(texts: Sequence[str]) -> list[Rule]:
    read = [Rule.parse(text, kept.catalogue()) for text in texts]
    for at, rule in enumerate(read):
        if any(replace(rule, text=other.text) == other for other in read[:at]):
            raise InputError(f"--fail-if: {rule.text!r} is given twice")
    return read


def _comparable(
    baseline: Baseline, suite: Suite, *, whole: bool, again: str
) -> tuple[dict[str, Known], dict[str, str]]:
    """The cases that are compared, and why others are not."""
    here = {case.name: case for case in suite.cases}
    absent = {name: case.not_run for name, case in here.items() if case.not_run}
    again = f"; make the baseline again{again}"
    for name in here:
        if name not in baseline.cases and name not in absent:
            there = ", ".join(baseline.cases)
            raise InputError(f"{name}: is a case of {suite.name}, and the baseline has none of it ({there}){again}")
    for name, one in baseline.cases.items():
        if name not in here:
            if whole:
                raise InputError(f"{name}: is a case of the baseline, and there is none in {suite.name}{again}")
            continue
        if name not in absent and one.network != kept.network(here[name]):
            raise InputError(f"{name}: is another network than that of the baseline{again}")
    chosen = {name: one for name, one in baseline.cases.items() if name in here and name not in absent}
    if not chosen:
        raise InputError(f"{suite.name}: no case can be run: {'; '.join(dict.fromkeys(absent.values()))}")
    return chosen, absent


def _questions(baseline: Baseline, rules: Sequence[Rule], cases: Sequence[str], again: str) -> list[Question]:
    """Every rule in every case that it is about and that has such a number.

    Raises:
        InputError: when a rule is about no case, or about a number that the baseline lacks everywhere.
    """
    found = []
    for rule in rules:
        about = [case for case in baseline.cases if rule.is_about(case)]
        if not about:
            raise InputError(f"--fail-if {rule.text!r}: is about no case; there are {', '.join(baseline.cases)}")
        own = [Question(case, rule) for case in about if rule.series in baseline.cases[case].values]
        if not own:
            why = f"the baseline has no {rule.series} in {', '.join(about)}"
            raise InputError(f"--fail-if {rule.text!r}: {why}; make the baseline again with this rule{again}")
        found += [one for one in own if one.case in cases]
    if not found:
        raise InputError(f"no rule is about {', '.join(cases)}; --fail-if says what to ask there")
    return found


def _enough(seeds: int, questions: int) -> None:
    """Whether anything can be shown with so many seeds.

    Raises:
        InputError: says how many are needed.
    """
    if Family(range(questions), looks_up_to(seeds)).can_convict:
        return
    right = next((n for n in range(2, LOOKS[-1] + 1) if Family(range(questions), looks_up_to(n)).can_convict), None)
    what = f"{questions} questions (rules times cases) at {LEVEL:.0%}"
    expected = f"expected at least {right}" if right else "expected fewer rules or cases"
    raise InputError(f"seeds: found {seeds}, which can never show that anything is worse: {what}; {expected}")


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """The folder for runs, or one that goes away."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="tidegate-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch) / "runs"


def _version(made: Mapping[str, str]) -> str:
    commit = made.get("commit", "")
    return f"tidegate {made.get('tidegate', '?')}{f' ({commit[:12]})' if commit else ''}"
