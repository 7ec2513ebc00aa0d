"""What comes out of rules and cases, with as many seeds as each of them needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.gate.baseline import Values
from tidegate.gate.deciding import Evidence, Family, Sample, State
from tidegate.gate.rules import Rule


@dataclass(frozen=True)
class Question:
    """One rule in one case."""

    case: str
    rule: Rule


@dataclass(frozen=True)
class Answer:
    """What came out of one question."""

    case: str
    """The case."""
    rule: Rule
    """The rule."""
    state: State
    """`worse`, `fine` or `undecided`."""
    seeds: int
    """After how many seeds."""
    before: float
    """The baseline's mean over the pairs that both have a value; NaN where there is none."""
    now: float
    """The mean of what was tried."""
    bound: float
    """By how much it is worse at least, at the level of the verdict; may be negative. In the summary's units."""
    lost: int
    """In how many seeds there is no value any more."""

    @property
    def better(self) -> bool:
        """Whether it is better by more than the limits that hold for the other direction, in the mean."""
        return self.state == "fine" and min(self.rule.excess(self.before, 2 * self.before - self.now)) > 0


class Runs(Protocol):
    """Where the numbers of what is tried come from."""

    @property
    def failed(self) -> Mapping[str, str]:
        """Cases of which a run failed, and why."""

    def reach(self, cases: Sequence[str], seeds: int) -> None:
        """Sees to it that these cases have runs with seeds 1 to `seeds`."""

    def values(self, case: str, series: str, seeds: int) -> Sequence[float | None]:
        """A number of each run of a case, as a baseline has it, with seeds 1 to `seeds`."""


def judge(
    questions: Sequence[Question], looks: Sequence[int], before: Mapping[str, Values], runs: Runs
) -> list[Answer]:
    """Answers questions with as many seeds as each of them needs.

    Args:
        questions: Rules and cases.
        looks: After how many seeds is looked.
        before: The baseline's numbers by case.
        runs: Where those of what is tried come from.
    """
    family = Family(questions, looks)
    pairs: dict[Question, _Pairs] = {}
    for seeds in looks:
        wanted = [one for one in family.open if one.case not in runs.failed]
        if not wanted:
            break
        runs.reach(list(dict.fromkeys(one.case for one in wanted)), seeds)
        wanted = [one for one in wanted if one.case not in runs.failed]
        for one in wanted:
            old, new = before[one.case][one.rule.series][:seeds], runs.values(one.case, one.rule.series, seeds)
            pairs[one] = _Pairs(one.rule, list(zip(old, new, strict=True)))
        family.look(seeds, {one: pairs[one].evidence for one in wanted})
    states = family.states()
    levels = {one: family.level_of(one) * family.spent(some.seeds) for one, some in pairs.items()}
    return [some.answer(one, states[one], levels[one]) for one, some in pairs.items() if one.case not in runs.failed]


@dataclass(frozen=True)
class _Pairs:
    """A rule's numbers before and now, seed by seed."""

    rule: Rule
    every: Sequence[tuple[float | None, float | None]]

    @property
    def seeds(self) -> int:
        return len(self.every)

    @property
    def both(self) -> list[tuple[float, float]]:
        return [(before, now) for before, now in self.every if before is not None and now is not None]

    @property
    def lost(self) -> int:
        return sum(before is not None and now is None for before, now in self.every)

    @property
    def evidence(self) -> Evidence:
        gained = sum(before is None and now is not None for before, now in self.every)
        return Evidence.of([self.rule.excess(*pair) for pair in self.both], self.lost, gained)

    def answer(self, question: Question, state: State, level: float) -> Answer:
        before = now = bound = math.nan
        if self.both:
            before, now = (math.fsum(column) / len(self.both) for column in zip(*self.both, strict=True))
            # what the worsening is above at the level: the excess over the limit that is exceeded least, and that limit
            samples = [Sample(column) for column in zip(*(self.rule.excess(*pair) for pair in self.both), strict=True)]
            worse = self.rule.sign * (now - before)
            bound = min(sample.lower_bound(level) + worse - sample.mean for sample in samples)
        return Answer(question.case, self.rule, state, self.seeds, before, now, bound, self.lost)
