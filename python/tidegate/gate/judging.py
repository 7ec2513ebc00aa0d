"""Verdicts on rules and cases, with as many seeds as each of them needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.gate.baseline import Values
from tidegate.gate.evidence import Evidence, Family, Sample, State
from tidegate.gate.rules import Rule


@dataclass(frozen=True)
class Question:
    """One rule in one case."""

    case: str
    rule: Rule


@dataclass(frozen=True)
class Verdict:
    """The verdict on one question."""

    case: str
    """Name of the case."""
    rule: Rule
    """The rule."""
    state: State
    """`worse`, `fine` or `undecided`."""
    seeds: int
    """Number of seeds that were run."""
    before: float
    """The baseline's mean over the pairs in which both runs have a value; NaN where there is none."""
    now: float
    """The mean of the checked controller over the same pairs."""
    bound: float
    """Lower bound of the change for the worse, at the level of the verdict; may be negative. In the summary's units."""
    lost: int
    """Number of seeds in which only the baseline has a value."""

    @property
    def better(self) -> bool:
        """Whether the mean is better by more than the limits would allow it to be worse."""
        return self.state == "fine" and min(self.rule.excess(self.before, 2 * self.before - self.now)) > 0


class Runs(Protocol):
    """Runs of the controller that is checked."""

    @property
    def failed(self) -> Mapping[str, str]:
        """Reasons of failed runs, by case."""

    def reach(self, cases: Sequence[str], seeds: int) -> None:
        """Runs what these cases lack of the seeds 1 to `seeds`."""

    def values(self, case: str, series: str, seeds: int) -> Sequence[float | None]:
        """Numbers of a series in a case, rounded as in a baseline, for seeds 1 to `seeds`."""


def judge(
    questions: Sequence[Question], looks: Sequence[int], before: Mapping[str, Values], runs: Runs
) -> list[Verdict]:
    """Answers questions with as many seeds as each of them needs.

    Args:
        questions: Rules and cases.
        looks: Numbers of seeds after which the evidence is looked at.
        before: The baseline's numbers by case.
        runs: Runs of the controller that is checked.
    """
    family = Family(questions, looks)
    pairs: dict[Question, _Pairs] = {}
    for seeds in looks:
        undecided = [question for question in family.open if question.case not in runs.failed]
        if not undecided:
            break
        runs.reach(list(dict.fromkeys(question.case for question in undecided)), seeds)
        undecided = [question for question in undecided if question.case not in runs.failed]
        for question in undecided:
            old, new = (
                before[question.case][question.rule.series][:seeds],
                runs.values(question.case, question.rule.series, seeds),
            )
            pairs[question] = _Pairs(question.rule, list(zip(old, new, strict=True)))
        family.look(seeds, {question: pairs[question].evidence for question in undecided})
    states = family.states()
    levels = {
        question: family.level_of(question) * family.spent(seed_pairs.seeds) for question, seed_pairs in pairs.items()
    }
    return [
        seed_pairs.verdict(question, states[question], levels[question])
        for question, seed_pairs in pairs.items()
        if question.case not in runs.failed
    ]


@dataclass(frozen=True)
class _Pairs:
    """A rule's numbers before and now, seed by seed."""

    rule: Rule
    pairs: Sequence[tuple[float | None, float | None]]

    @property
    def seeds(self) -> int:
        return len(self.pairs)

    @property
    def both(self) -> list[tuple[float, float]]:
        return [(before, now) for before, now in self.pairs if before is not None and now is not None]

    @property
    def lost(self) -> int:
        return sum(before is not None and now is None for before, now in self.pairs)

    @property
    def evidence(self) -> Evidence:
        gained = sum(before is None and now is not None for before, now in self.pairs)
        return Evidence.of([self.rule.excess(*pair) for pair in self.both], self.lost, gained)

    def verdict(self, question: Question, state: State, level: float) -> Verdict:
        before = now = bound = math.nan
        if self.both:
            before, now = (math.fsum(column) / len(self.both) for column in zip(*self.both, strict=True))
            # all limits have to be exceeded, so the bound is that of the limit which is exceeded by the smallest amount
            samples = [Sample(column) for column in zip(*(self.rule.excess(*pair) for pair in self.both), strict=True)]
            worse = self.rule.sign * (now - before)
            bound = min(sample.lower_bound(level) + worse - sample.mean for sample in samples)
        return Verdict(question.case, self.rule, state, self.seeds, before, now, bound, self.lost)
