"""The statistics of the gate: bounds, few seeds, many questions, and several looks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from tidegate.gate import evidence as gate_evidence
from tidegate.gate.evidence import LOOKS, Evidence, Family, Sample, looks_up_to

Draw = Callable[[random.Random], float]


def normal(draw: random.Random) -> float:
    return draw.gauss(0.0, 1.0)


def two_ways(draw: random.Random) -> float:
    """Differences of a call that by chance takes one of two courses: none, or a large one of either sign."""
    return float(draw.choice((-1, 0, 0, 1)))


def heavy(draw: random.Random) -> float:
    """Mostly small differences, rarely very large ones."""
    return draw.gauss(0.0, 1.0) * (10.0 if draw.random() < 0.1 else 0.1)


def after_looks(family: Family[int], draw: random.Random, kind: Draw, shift: float) -> Family[int]:
    """A family after all its looks, with differences of a kind that are `shift` above their limit."""
    values: dict[int, list[float]] = {question: [] for question in family.questions}
    for seeds in family.looks:
        for question in family.open:
            values[question] += [kind(draw) + shift for _ in range(seeds - len(values[question]))]
        family.look(
            seeds, {question: Evidence.of([(value,) for value in values[question]]) for question in family.open}
        )
    return family


def alarms(kind: Draw, shift: float, *, families: int, questions: int, looks: tuple[int, ...] = LOOKS) -> float:
    draw = random.Random(f"{kind.__name__} {shift} {questions}")
    all_families = (Family(range(questions), looks) for _ in range(families))
    return (
        sum("worse" in after_looks(family, draw, kind, shift).states().values() for family in all_families) / families
    )


def test_student_by_hand() -> None:
    # t of 1, 2, 3 is 2 / (1 / sqrt 3) = 3.4641 at 2 degrees of freedom: P(|T| > 3.4641) = 0.0742
    sample = Sample([1.0, 2.0, 3.0])
    assert sample.mean == 2.0
    assert sample.error == pytest.approx(1 / math.sqrt(3))
    assert 1 - sample.p_below() == pytest.approx(0.0742 / 2, abs=1e-4)
    assert sample.p_above() == 0.5**3
    # the bound at the level of p is zero
    assert sample.lower_bound(0.0742 / 2) == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize("kind", [normal, two_ways, heavy])
def test_what_is_at_its_limit_alarms_no_more_often_than_the_level_says(kind: Draw) -> None:
    # 1200 families of a dozen: 1 % are 12, and 24 are 3.5 standard errors more
    assert alarms(kind, 0.0, families=1200, questions=12) <= 0.02


def test_one_question_spends_what_it_may_and_not_much_less() -> None:
    # looks that share the level are correlated, so that less than 1 % comes of it, but not nothing
    assert 0.003 <= alarms(normal, 0.0, families=6000, questions=1) <= 0.0125


def test_looking_as_often_as_one_likes_at_the_whole_level_would_alarm_too_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Family, "spent", lambda self, seeds: 1.0)
    assert alarms(normal, 0.0, families=4000, questions=1) > 0.0125


def test_many_questions_without_holm_would_alarm_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_evidence, "holm", dict)
    assert alarms(normal, 0.0, families=400, questions=12) > 0.03


def test_students_t_alone_would_take_luck_for_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sample, "p_above", Sample.student)
    assert alarms(two_ways, 0.0, families=400, questions=12, looks=LOOKS[:3]) > 0.02


def test_what_is_far_beyond_its_limit_is_caught_and_what_is_well_within_is_acquitted() -> None:
    draw = random.Random(5)
    # a change of three standard deviations of the differences
    assert all(set(after_looks(Family(range(24)), draw, normal, 3.0).states().values()) == {"worse"} for _ in range(20))
    assert all(set(after_looks(Family(range(24)), draw, normal, -3.0).states().values()) == {"fine"} for _ in range(20))


def test_no_spread_is_decided_in_time() -> None:
    family = Family(["worse", "fine", "at its limit"])
    for seeds in LOOKS:
        values = {"worse": 2.0, "fine": -2.0, "at its limit": 0.0}
        family.look(seeds, {question: Evidence.of([(values[question],)] * seeds) for question in family.open})
        if seeds == 5:
            # five of a kind may be luck
            assert family.open == ["worse"]
    assert family.states() == {"worse": "worse", "fine": "fine", "at its limit": "fine"}


def test_a_rule_with_two_limits_needs_proof_over_both_and_one_that_holds_acquits() -> None:
    over_both = Evidence.of([(1.0, 2.0), (1.1, 2.1), (0.9, 1.9)] * 5)
    assert over_both.worse < 1e-4
    over_one = Evidence.of([(1.0, -2.0), (1.1, -2.1), (0.9, -1.9)] * 5)
    assert over_one.worse > 0.99
    assert over_one.fine < 1e-6
    assert Evidence.of([(1.0,), (1.1,), (0.9,)] * 5).fine > 0.99


def test_what_has_no_value_any_more_is_worse_where_that_is_no_luck() -> None:
    assert Evidence.of([], lost=20).worse < 1e-5
    assert Evidence.of([], lost=20).fine == 1.0
    # as often the other way round
    assert Evidence.of([(0.0,)] * 10, lost=5, gained=5).worse > 0.5
    assert Evidence.of([(-1.0,)] * 10, gained=5).fine < 0.01


def test_one_seed_says_nothing_and_five_never_convict() -> None:
    assert not Family(["one"], (1,)).can_convict
    assert not Family(["one"], (5,)).can_convict
    assert Family(["one"], (5, 10)).can_convict
    assert not Family(range(24), (5, 10)).can_convict
    assert Family(range(24)).can_convict
    evidence = Evidence.of([(3.0,)])
    assert (evidence.worse, evidence.fine) == (1.0, 1.0)


def test_holm_gives_what_is_left_more_room() -> None:
    # 0.004 is above 1 % over three, and below it over two once the first is convicted
    family = Family(["sure", "next", "never"], (20,))
    family.look(
        20, {"sure": Evidence(20, 1e-5, 1.0), "next": Evidence(20, 0.004, 1.0), "never": Evidence(20, 0.5, 1.0)}
    )
    assert family.states() == {"sure": "worse", "next": "worse", "never": "undecided"}
    alone = Family(["a", "next", "never"], (20,))
    alone.look(20, {"a": Evidence(20, 0.5, 1.0), "next": Evidence(20, 0.004, 1.0), "never": Evidence(20, 0.5, 1.0)})
    assert alone.states()["next"] == "undecided"


def test_looks_end_where_seeds_do() -> None:
    assert looks_up_to(80) == LOOKS
    assert looks_up_to(40) == LOOKS[:-1]
    assert looks_up_to(20) == (5, 10, 20)
    assert looks_up_to(12) == (5, 10, 12)
    assert looks_up_to(1000) == LOOKS
