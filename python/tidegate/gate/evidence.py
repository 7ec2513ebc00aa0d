"""Whether something became worse: paired differences, looked at several times, over many questions at once.

A *question* is one rule in one case. Each seed gives a pair of runs, one of the baseline and one of the controller that
is checked, and the amount by which this pair exceeds the rule's limits: its excess. A question ends as

- **worse** where the lower one-sided bound of the mean excess is above zero. All questions together are a family: the
  probability that any question within its limits is called worse is at most `LEVEL`.
- **fine** where the upper one-sided bound is below zero, at `LEVEL` for this question and look alone;
- **undecided** where it is neither after the last seed.

Bounds are Student's, of means over seeds. They hold for normal differences, and differences are not always normal: a
call that by chance takes one of two courses has differences of -1, 0 and 1, and five times 1 has no spread at all.
So no verdict is surer than the sign test: `n` differences that are as likely above zero as below are all above with a
probability of 2^-n. Five seeds alone can show that a question is fine, but never that it is worse.

Several looks: a look at `n` seeds spends a part of the level that is in proportion to `n` (Bonferroni's inequality
over looks: four looks, each at a quarter of the level, are wrong no more often than one look at the whole level).
Many questions: Holm's step-down procedure over each question's best look (S. Holm, "A simple sequentially rejective
multiple test procedure", Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from tidegate.results.stats import chance_above, holm, t_quantile

LEVEL = 0.01
"""Maximum probability that a family whose questions are all within their limits has one that is called worse."""
LOOKS = (5, 10, 20, 40, 80)
"""Numbers of seeds after which the evidence is looked at."""

State = Literal["worse", "fine", "undecided"]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Sample:
    """The excesses of one question over one limit, one for each seed."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        """The mean excess, in the summary's units."""
        return math.fsum(self.values) / len(self.values)

    @property
    def error(self) -> float:
        """The standard error of the mean; zero where all are the same."""
        count, mean = len(self.values), self.mean
        if count < 2 or min(self.values) == max(self.values):  # noqa: PLR2004
            return 0.0
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / (count - 1) / count)

    def p_above(self) -> float:
        """One-sided p-value of the mean: the probability of a mean at least this large if the true mean is zero.

        It is Student's, but at least 0.5^n, the smallest p-value that a sign test of n values can give.

        >>> Sample([1.0, 1.0, 1.0]).p_above(), Sample([-1.0, -1.0, -1.0]).p_above()
        (0.125, 1.0)
        """
        return max(self.student(), 0.5 ** len(self.values))

    def student(self) -> float:
        """One-sided p-value of the mean by Student's t alone."""
        return chance_above(self.values)

    def p_below(self) -> float:
        """Probability of a mean at most this large if the true mean is zero, by Student's t alone."""
        if len(self.values) > 1 and set(self.values) == {0.0}:
            return 0.0  # exactly at the limit is within it
        return chance_above([-value for value in self.values])

    def lower_bound(self, level: float) -> float:
        """Lower bound of the true mean; it is wrong with a probability of `level`."""
        if len(self.values) < 2:  # noqa: PLR2004
            return -math.inf
        return self.mean - t_quantile(len(self.values) - 1, 1 - 2 * level) * self.error


@dataclass(frozen=True)
class Evidence:
    """The evidence on one question after a number of seeds."""

    seeds: int
    """Number of seeds."""
    worse: float
    """p-value for "the question exceeds all of its limits": small where it does."""
    fine: float
    """p-value for "the question stays within one of its limits": small where it does."""

    @classmethod
    def of(cls, excesses: Sequence[Sequence[float]], lost: int = 0, gained: int = 0) -> Evidence:
        """Weighs the excesses of each pair of runs over each limit of the rule.

        Args:
            excesses: A row for each pair of runs in which both have a value, with a column for each limit.
            lost: Number of pairs in which only the baseline has a value.
            gained: Number of pairs in which only the checked controller has a value.
        """
        seeds = len(excesses) + lost + gained
        samples = [Sample(column) for column in zip(*excesses, strict=True)]
        # worse: all limits must be exceeded, so the weakest proof counts
        # fine: one limit that holds is enough, so the strongest proof counts, times the number of limits (Bonferroni)
        worse = max((sample.p_above() for sample in samples), default=1.0)
        fine = min(1.0, len(samples) * min((sample.p_below() for sample in samples), default=1.0))
        if lost:
            # more seeds lost their value than gained one: a second way to be worse
            worse, fine = min(1.0, 2 * min(worse, _sign_test(lost, lost + gained))), 1.0
        return cls(seeds, worse, fine)


def _sign_test(heads: int, count: int) -> float:
    """P(at least `heads` heads) in `count` tosses of a fair coin."""
    return float(sum(math.comb(count, k) for k in range(heads, count + 1)) / 2**count)


@dataclass
class Family(Generic[K]):
    """Questions that are answered together."""

    questions: Sequence[K]
    """All questions, also those that are never open."""
    looks: Sequence[int] = LOOKS
    """Numbers of seeds of the looks; the last is the maximum number of seeds of any case."""
    level: float = LEVEL
    """Maximum probability that any question is wrongly called worse."""
    _best: dict[K, float] = field(default_factory=dict)
    _fine: set[K] = field(default_factory=set)

    def spent(self, seeds: int) -> float:
        """Part of the level that a look after `seeds` seeds spends, from 0 to 1."""
        return seeds / sum(self.looks)

    @property
    def can_convict(self) -> bool:
        """Whether there are enough seeds that a question can be called worse."""
        last = self.looks[-1]
        return 0.5**last <= self.level * self.spent(last) / max(1, len(self.questions))

    def look(self, seeds: int, evidence: Mapping[K, Evidence]) -> None:
        """Takes the evidence on the questions that are still open.

        Args:
            seeds: Number of seeds of this look.
            evidence: The evidence on each of these questions.
        """
        part = self.spent(seeds)
        for question, proof in evidence.items():
            self._best[question] = min(self._best.get(question, 1.0), proof.worse / part)
        worse = self._worse()
        self._fine |= {
            question for question, proof in evidence.items() if proof.fine <= self.level and question not in worse
        }

    def _worse(self) -> set[K]:
        chances = holm({question: self._best.get(question, 1.0) for question in self.questions})
        return {question for question, chance in chances.items() if chance <= self.level} - self._fine

    def level_of(self, question: K) -> float:
        """Level by Holm's procedure at which a question is tested, before the part that a look spends."""
        surer = sum(self._best.get(rival, 1.0) < self._best.get(question, 1.0) for rival in self.questions)
        return self.level / (len(self.questions) - surer)

    def states(self) -> dict[K, State]:
        """The state of each question."""
        worse = self._worse()
        return {
            question: "worse" if question in worse else "fine" if question in self._fine else "undecided"
            for question in self.questions
        }

    @property
    def open(self) -> list[K]:
        """The questions that more seeds may decide."""
        return [question for question, state in self.states().items() if state == "undecided"]


def looks_up_to(seeds: int) -> tuple[int, ...]:
    """The looks that a maximum number of seeds allows, the last at all of them.

    >>> looks_up_to(80), looks_up_to(30), looks_up_to(3)
    ((5, 10, 20, 40, 80), (5, 10, 20, 30), (3,))
    """
    last = min(seeds, LOOKS[-1])
    return (*(look for look in LOOKS if look < last), last)
