"""Intervals against published tables, and the choice of the best."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from support import PLAIN
from tidegate import Scenario, _core, run
from tidegate.results.metrics import HEADLINE, METRICS, PICTURES, metric
from tidegate.results.stats import (
    Best,
    Interval,
    best,
    chance_above,
    chance_apart,
    differences,
    holm,
    paired,
    t_probability,
    t_quantile,
)

# NIST/SEMATECH e-Handbook, table 1.3.6.7.2, two-sided 95 % (one-sided 0.975)
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 19: 2.093, 30: 2.042, 100: 1.984}


@pytest.mark.parametrize("freedom", TABLE)
def test_t_quantiles(freedom: int) -> None:
    assert round(t_quantile(freedom), 3) == TABLE[freedom]
    assert t_probability(t_quantile(freedom), freedom) == pytest.approx(0.95, abs=1e-9)


def test_the_limit_is_the_normal_distribution() -> None:
    assert t_quantile(100_000) == pytest.approx(1.959964, abs=5e-5)
    assert t_quantile(2, 0.99) == pytest.approx(9.925, abs=5e-4)


def test_an_interval_by_hand() -> None:
    got = Interval.of([10.0, 12.0, 14.0, 16.0])
    assert (got.mean, got.count) == (13.0, 4)
    # s = sqrt(20 / 3), half = t(3) s / 2
    assert got.half == pytest.approx(3.182446 * math.sqrt(20 / 3) / 2, rel=1e-6)
    assert Interval.of([5.0]) == Interval(5.0, None, 1)
    empty = Interval.of([None, math.nan])
    assert (math.isnan(empty.mean), empty.half, empty.count) == (True, None, 0)


def spread(mean: float, half: float, shape: Sequence[float]) -> dict[int, float]:
    """Numbers by seed with this mean and half-interval, whose deviations have this shape."""
    middle = sum(shape) / len(shape)
    shape_half = Interval.of(shape).half
    scale = half / shape_half if shape_half else 0.0
    return {seed: mean + (value - middle) * scale for seed, value in enumerate(shape, 1)}


def test_differences_are_of_the_same_seed() -> None:
    a, b = {3: 30.0, 1: 11.0, 2: 22.0, 4: None}, {1: 10.0, 2: 20.0, 4: 1.0, 5: 2.0}
    assert differences(a, b) == [1.0, 2.0]
    # a link that differs by seed costs both the same: the interval is that of the remaining difference
    got = paired({1: 110.0, 2: 220.0, 3: 333.0}, {1: 109.0, 2: 218.0, 3: 330.0})
    assert got == Interval.of([1.0, 2.0, 3.0])
    assert paired({1: 1.0}, {1: 0.5}) == Interval(0.5, None, 1)


def test_chances_are_those_of_published_tables() -> None:
    # one-sided: half of what the two-sided table leaves; t = mean / (s / sqrt(n))
    for freedom, t in TABLE.items():
        shape = [float(value) for value in range(freedom + 1)]
        around = spread(t / t_quantile(freedom), 1.0, shape)
        assert chance_above(list(around.values())) == pytest.approx(0.025, rel=2e-3)
        assert chance_apart(list(around.values())) == pytest.approx(0.05, rel=2e-3)
        assert chance_above(list(around.values()), limit=2 * t / t_quantile(freedom)) == pytest.approx(0.975, rel=2e-3)
    assert (chance_above([5.0]), chance_above([])) == (1.0, 1.0), "one value says nothing"
    assert (chance_above([0.5, 0.5], limit=0.5), chance_apart([-0.5, -0.5])) == (1.0, 0.0)


def test_holm_by_hand() -> None:
    # Holm 1979: 0.005, 0.011, 0.02, 0.04 of four: times 4, 3, 2, 1, and never less than one before
    assert holm({"a": 0.005, "b": 0.011, "c": 0.02, "d": 0.04}) == pytest.approx(
        {"a": 0.02, "b": 0.033, "c": 0.04, "d": 0.04}
    )
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}


def test_who_is_best() -> None:
    far, near = spread(1.0, 0.1, [1, 5, 2, 4, 3]), spread(2.0, 0.1, [5, 1, 2, 3, 4])
    assert best({"a": far, "b": near}, "higher") == Best(frozenset("b"), True)
    assert best({"a": far, "b": near}, "lower") == Best(frozenset("a"), True)
    assert best({"a": far, "b": near}, "neither") == Best()
    assert best({"a": far}, "lower") == Best(), "alone"
    assert best({"a": far, "b": {1: None, 2: math.nan}}, "lower") == Best()
    same = {1: 1.0, 2: 1.0}
    assert best({"a": same, "b": same}, "lower", margin=0.05) == Best(), "no key stands out"


def test_noise_is_no_merit() -> None:
    """A star went to each interval that overlapped with the best: the wider, the likelier."""
    # frame delays as they were: sprout had a star and gcc, which is better, had none
    first = spread(5700.0, 60.0, [1, 2, 4, 5, 3])
    gcc, sprout = spread(5780.0, 0.0, [0] * 5), spread(5823.0, 65.0, [5, 2, 1, 4, 3])
    result = best({"nada": first, "gcc": gcc, "sprout": sprout}, "lower")
    assert result == Best(frozenset({"nada"}), False)
    result = best({"nada": first, "gcc": gcc, "sprout": sprout}, "lower", margin=0.05)
    assert "gcc" in result.labels or "sprout" not in result.labels
    for margin in (0.0, 0.01, 0.02, 0.05, 0.5):
        labels = best({"nada": first, "gcc": gcc, "sprout": sprout}, "lower", margin=margin).labels
        assert "sprout" not in labels or "gcc" in labels, "no key is in behind a better one that is out"
    # ten controllers on two seeds: 743 ± 368 was starred beside 281.5 ± 0
    ten = {"tfrc": spread(743.0, 368.0, [1, 2]), "gcc": spread(281.5, 0.0, [0, 0])}
    ten |= {f"other{n}": spread(300.0 + 100 * n, 50.0, [n % 2, 1 - n % 2]) for n in range(8)}
    assert best(ten, "lower", margin=0.05) == Best(frozenset({"gcc"}), False), "and two seeds do not make it sure"


def test_same_luck_tells_apart_what_intervals_do_not() -> None:
    """Each seed is another link; on each of them `a` is a little better."""
    links = [200.0, 500.0, 900.0, 350.0, 620.0]
    a = dict(enumerate(links))
    b = {seed: link * 1.02 + wobble for (seed, link), wobble in zip(a.items(), (1, -1, 2, 0, -1), strict=True)}
    interval_a, interval_b = Interval.of(a.values()), Interval.of(b.values())
    assert abs(interval_a.mean - interval_b.mean) < (interval_a.half or 0) / 10, "the intervals overlap by far"
    assert best({"a": a, "b": b}, "lower", margin=0.05) == Best(frozenset("a"), True)
    shuffled = dict(zip(b, [b[3], b[0], b[4], b[1], b[2]], strict=True))
    assert best({"a": a, "b": shuffled}, "lower", margin=0.05) == Best(), "without the same luck they are alike"


def test_a_difference_that_nobody_sees_is_none() -> None:
    a, b = {1: 0.0, 2: 0.0}, {1: 0.0004, 2: 0.0004}
    assert best({"a": a, "b": b}, "lower") == Best(frozenset("a"), True)
    assert metric("loss_fraction").best({"a": a, "b": b}) == Best(), "0.00 % and 0.04 %"
    assert metric("loss_fraction").best({"a": a, "b": {1: 0.002, 2: 0.002}}) == Best(frozenset("a"), True)
    delay = metric("one_way_delay_ms_p95")
    assert delay.best({"a": {1: 1.0}, "b": {1: 1.9}}) == Best()
    assert delay.best({"a": {1: 1.0}, "b": {1: 2.1}}) == Best(frozenset("a"), False), "one seed is never sure"
    assert delay.best({"a": {1: 100.0}, "b": {1: 104.0}, "c": {1: 106.0}}) == Best(frozenset("ab"), False)


def test_those_that_are_the_same_are_seldom_told_apart() -> None:
    """At most one row of twenty, however many contend; pairs one by one would do so in one of two."""
    rng = random.Random(18)
    rows = 400
    for contenders, seeds in ((3, 5), (10, 5)):
        apart = 0
        for _ in range(rows):
            luck = [rng.gauss(0, 5) for _ in range(seeds)]
            values = {f"{n}": {s: 100 + luck[s] + rng.gauss(0, 1) for s in range(seeds)} for n in range(contenders)}
            apart += best(values, "lower", margin=1.0) != Best()
        # 20 expected at most; a binomial of 400 and 0.05 exceeds 33 in 3 of 1000
        assert apart <= 33, (contenders, apart)


def test_the_rows_of_metrics_are_the_keys_of_a_summary() -> None:
    summary = run(Scenario.parse(PLAIN), record="summary").summary
    parts = {"flows": summary["flows"][0], "links": summary["links"][0], "fairness": summary["fairness"]}
    rows = {part: [row[0] for row in rows] for part, rows in _core.METRICS}
    for part, summary_part in parts.items():
        assert [key for key in summary_part if key in rows[part]] == rows[part], "in the order of the summary"
        # names and times need no row; numbers that links share with flows have theirs among the flows
        assert set(summary_part) - set(rows[part]) <= {
            "flow",
            "link",
            "kind",
            "controller",
            "start_s",
            "stop_s",
            "flows",
            "utilisation",
            "marked",
            # whether it did stop: a part of `circuit_breaker`
            "circuit_breaker_stopped",
        }
    assert set().union(*rows.values()) <= set(METRICS)
    # metrics of pictures stand together, after those of every run and before those of recordings
    positions = [position for position, name in enumerate(METRICS) if name.startswith("picture_")]
    assert positions == list(range(positions[0], positions[0] + 17))
    assert max(list(METRICS).index(name) for part in rows.values() for name in part) < positions[0]


def test_every_metric_says_what_it_is() -> None:
    for name, described in METRICS.items():
        assert described.name == name
        assert described.definition.endswith("."), name
        assert "  " not in described.definition, name
        assert described.label
    assert {*HEADLINE, *PICTURES} <= set(METRICS)
    assert metric("made_up_bps").unit == "Mbit/s"
    assert metric("loss_fraction").show(0.0123) == "1.23"
    assert metric("receive_rate_bps").show_interval(Interval(1e6, 2e5, 3)) == "1.00 ± 0.20"
