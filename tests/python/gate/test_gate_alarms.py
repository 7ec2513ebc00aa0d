"""How often the gate alarms for nothing, and how often it misses something: over kept numbers of real runs of `smoke`.

Every comparison draws its seeds from a bank of runs, so that each run serves several of them. The figures are in
docs/ci.md.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum

import pytest

import gate_alarms
from gate_alarms import NULLS, RULES, SEEDS, SLOWER, Bank
from tidegate.gate.deciding import LOOKS
from tidegate.gate.judging import Answer, Question, judge


@pytest.fixture(scope="module")
def bank() -> Bank:
    return gate_alarms.bank()


@dataclass
class Drawn:
    """Runs out of the bank, as if a check had made them."""

    bank: Bank
    controller: str
    seeds: Sequence[int]
    failed: dict[str, str] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    def reach(self, cases: Sequence[str], seeds: int) -> None:
        self.most |= dict.fromkeys(cases, seeds)

    def values(self, case: str, series: str, seeds: int) -> list[float | None]:
        column = self.bank[case, self.controller][series]
        return [column[at] for at in self.seeds[:seeds]]


def compared(bank: Bank, before: str, now: str, old: Sequence[int], new: Sequence[int]) -> tuple[list[Answer], int]:
    """The answers of a check over these seeds, and how many runs it took."""
    cases = list(dict.fromkeys(case for case, _ in bank))
    known = Drawn(bank, before, old)
    values = {case: {rule.series: known.values(case, rule.series, LOOKS[-1]) for rule in RULES} for case in cases}
    runs = Drawn(bank, now, new)
    answers = judge([Question(case, rule) for rule in RULES for case in cases], LOOKS, values, runs)
    return answers, sum(runs.most.values())


def test_five_hundred_changes_that_change_nothing_but_luck_alarm_in_two_per_cent_at_most(bank: Bank) -> None:
    draw = random.Random(1)
    alarms, runs, open_ = [], 0, 0
    for at in range(500):
        before, now = draw.sample(NULLS, 2)
        seeds = draw.sample(range(SEEDS), 2 * LOOKS[-1])
        # every other one with the same luck in the network; the rest under other seeds altogether
        old, new = seeds[: LOOKS[-1]], seeds[: LOOKS[-1]] if at % 2 else seeds[LOOKS[-1] :]
        answers, count = compared(bank, before, now, old, new)
        assert len(answers) == 24
        alarms += [(at, one.case, one.rule.text) for one in answers if one.state == "worse"]
        open_ += any(one.state == "undecided" for one in answers)
        runs += count
    print(
        f"false alarms: {len({at for at, *_ in alarms})} of 500 {alarms}; undecided in {open_}; {runs / 500:.0f} runs each"
    )
    assert len({at for at, *_ in alarms}) <= 10
    # they do change runs, and cost what they have to
    assert different(bank, "5.6", NULLS[0], NULLS[1]) > 0.9
    assert runs / 500 < 150


def test_a_true_change_of_12_per_cent_beside_tcp_is_caught_in_95_of_100(bank: Bank) -> None:
    rule = next(rule for rule in RULES if rule.metric.name == "utilisation")
    means = [fsum(value or 0.0 for value in bank["5.6", one][rule.series]) / SEEDS for one in (NULLS[0], SLOWER)]
    assert means[1] / means[0] - 1 == pytest.approx(-0.12, abs=0.015)
    draw = random.Random(2)
    caught, seeds = 0, 0
    for _ in range(100):
        some = draw.sample(range(SEEDS), LOOKS[-1])
        answers, _ = compared(bank, draw.choice(NULLS), SLOWER, some, some)
        (found,) = (one for one in answers if (one.case, one.rule) == ("5.6", rule))
        caught += found.state == "worse"
        seeds += found.seeds
    print(f"caught: {caught} of 100, after {seeds / 100:.0f} seeds; true change {means[1] / means[0] - 1:+.1%}")
    assert caught >= 95


def different(bank: Bank, case: str, one: str, other: str) -> float:
    """In which part of the seeds the numbers of two controllers differ."""
    a, b = (zip(*bank[case, controller].values(), strict=True) for controller in (one, other))
    return sum(x != y for x, y in zip(a, b, strict=True)) / SEEDS
