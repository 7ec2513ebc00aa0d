"""Whether something became worse: paired differences, looked at several times, over many questions at once.

A *question* is one rule in one case. Of each seed there is a pair of runs, with the baseline and with what is tried,
and by how much it exceeds the rule's limits. A question ends

- **worse** where the mean excess is above zero beyond doubt: its lower one-sided bound is. All questions together are a
  family: they say so of something that is within its limits with a probability of at most `LEVEL`.
- **fine** where the upper one-sided bound is below zero, at `LEVEL` for this question and look alone;
- **undecided** where there are no more seeds.

Bounds are Student's, of means over seeds. They are as good as differences are normal, and these are not always: a
call that takes one of two ways, with luck, has differences of -1, 0 and 1, and five times 1 has no spread at all.
So nothing is ever called surer than the sign test is: `n` differences that are as likely above zero as below are all
above with a probability of 2^-n. Five seeds alone can acquit, and never convict.

Looking several times: a look at `n` seeds spends a part of the level that is in proportion to `n` (Bonferroni's
inequality over looks: whoever looks four times at a quarter of the level is wrong no more often than who looks once).
Many questions: Holm's step-down procedure over what each question has at its best look (S. Holm, "A simple sequentially
rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from tidegate.results.stats import chance_above, holm, t_quantile

LEVEL = 0.01
"""How often a family of questions about what is within its limits may have one that reads worse."""
LOOKS = (5, 10, 20, 40, 80)
"""After how many seeds is looked."""

State = Literal["worse", "fine", "undecided"]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Sample:
    """The excesses of one question over one limit, one a seed."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        """Their mean."""
        return math.fsum(self.values) / len(self.values)

    @property
    def error(self) -> float:
        """The standard error of the mean; zero where all are the same."""
        count, mean = len(self.values), self.mean
        if count < 2 or min(self.values) == max(self.values):  # noqa: PLR2004
            return 0.0
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / (count - 1) / count)

    def p_above(self) -> float:
        """How probable such a mean, or a larger one, is at most where the true one is zero; not below the sign test's.

        >>> Sample([1.0, 1.0, 1.0]).p_above(), Sample([-1.0, -1.0, -1.0]).p_above()
        (0.125, 1.0)
        """
        return max(self.student(), 0.5 ** len(self.values))

    def student(self) -> float:
        """The same by Student's t alone."""
        return chance_above(self.values)

    def p_below(self) -> float:
        """The same for such a mean or a smaller one, by Student's t alone."""
        if len(self.values) > 1 and set(self.values) == {0.0}:
            return 0.0  # exactly at the limit is within it
        return chance_above([-value for value in self.values])

    def lower_bound(self, level: float) -> float:
        """What the true mean is above, but for a probability of `level`."""
        if len(self.values) < 2:  # noqa: PLR2004
            return -math.inf
        return self.mean - t_quantile(len(self.values) - 1, 1 - 2 * level) * self.error


@dataclass(frozen=True)
class Evidence:
    """What is known of one question after a number of seeds."""

    seeds: int
    """How many."""
    worse: float
    """p of "it exceeds all of its limits", where it does not."""
    fine: float
    """p of "it stays within one of its limits", where it does not."""

    @classmethod
    def of(cls, excesses: Sequence[Sequence[float]], lost: int = 0, gained: int = 0) -> Evidence:
        """From the excesses of each pair of runs over each limit of the rule.

        Args:
            excesses: Of each pair of runs in which the metric has a value.
            lost: In how many other pairs only the baseline has a value.
            gained: In how many other pairs only what is tried has one.
        """
        seeds = len(excesses) + lost + gained
        samples = [Sample(column) for column in zip(*excesses, strict=True)]
        # all limits must be exceeded: the weakest proof counts; one that holds is enough: the strongest, paid for
        worse = max((one.p_above() for one in samples), default=1.0)
        fine = min(1.0, len(samples) * min((one.p_below() for one in samples), default=1.0))
        if lost:
            # no value any more, in more seeds than where it is the other way round: a second way to be worse
            worse, fine = min(1.0, 2 * min(worse, _sign_test(lost, lost + gained))), 1.0
        return cls(seeds, worse, fine)


def _sign_test(heads: int, count: int) -> float:
    """P(at least so many heads) of a fair coin."""
    return float(sum(math.comb(count, k) for k in range(heads, count + 1)) / 2**count)


@dataclass
class Family(Generic[K]):
    """Questions that are answered together."""

    questions: Sequence[K]
    """All of them, those that will never be open among them."""
    looks: Sequence[int] = LOOKS
    """After how many seeds is looked; the last is the most that anything is run with."""
    level: float = LEVEL
    """With what probability at most one of them is called worse wrongly."""
    _best: dict[K, float] = field(default_factory=dict)
    _fine: set[K] = field(default_factory=set)

    def spent(self, seeds: int) -> float:
        """Which part of the level a look after so many seeds spends."""
        return seeds / sum(self.looks)

    @property
    def can_convict(self) -> bool:
        """Whether there are seeds enough that anything can be called worse."""
        last = self.looks[-1]
        return 0.5**last <= self.level * self.spent(last) / max(1, len(self.questions))

    def look(self, seeds: int, found: Mapping[K, Evidence]) -> None:
        """Takes what is known of questions that are still open.

        Args:
            seeds: Which look it is.
            found: Of each of them.
        """
        part = self.spent(seeds)
        for question, one in found.items():
            self._best[question] = min(self._best.get(question, 1.0), one.worse / part)
        worse = self._worse()
        self._fine |= {question for question, one in found.items() if one.fine <= self.level and question not in worse}

    def _worse(self) -> set[K]:
        every = holm({one: self._best.get(one, 1.0) for one in self.questions})
        return {one for one, chance in every.items() if chance <= self.level} - self._fine

    def level_of(self, question: K) -> float:
        """At what level the bound of a question was held against its limit at the last look: Holm's, and the look's."""
        surer = sum(self._best.get(one, 1.0) < self._best.get(question, 1.0) for one in self.questions)
        return self.level / (len(self.questions) - surer)

    def states(self) -> dict[K, State]:
        """What is known of each."""
        worse = self._worse()
        return {
            one: "worse" if one in worse else "fine" if one in self._fine else "undecided" for one in self.questions
        }

    @property
    def open(self) -> list[K]:
        """The questions that more seeds may decide."""
        return [one for one, state in self.states().items() if state == "undecided"]


def looks_up_to(seeds: int) -> tuple[int, ...]:
    """The looks where there are so many seeds and no more.

    >>> looks_up_to(80), looks_up_to(30), looks_up_to(3)
    ((5, 10, 20, 40, 80), (5, 10, 20, 30), (3,))
    """
    most = min(seeds, LOOKS[-1])
    return (*(one for one in LOOKS if one < most), most)
