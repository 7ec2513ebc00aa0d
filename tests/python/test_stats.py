"""Intervals against published tables, and who is best."""

from __future__ import annotations

import math

import pytest

from support import PLAIN
from tidegate import Scenario, _core, run
from tidegate.results.metrics import HEADLINE, METRICS, PICTURES, metric
from tidegate.results.stats import Interval, best, t_probability, t_quantile

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
    nothing = Interval.of([None, math.nan])
    assert (math.isnan(nothing.mean), nothing.half, nothing.count) == (True, None, 0)


def test_who_is_best() -> None:
    far, near = Interval(1.0, 0.1, 5), Interval(2.0, 0.1, 5)
    assert best({"a": far, "b": near}, "higher") == {"b"}
    assert best({"a": far, "b": near}, "lower") == {"a"}
    assert best({"a": far, "b": near}, "neither") == frozenset()
    assert best({"a": far, "b": Interval(1.15, 0.1, 5)}, "lower") == frozenset(), "nobody can be told apart"
    assert best({"a": far, "b": Interval(math.nan, None, 0)}, "lower") == frozenset()


def test_the_rows_of_metrics_are_the_keys_of_a_summary() -> None:
    summary = run(Scenario.parse(PLAIN), record="summary").summary
    parts = {"flows": summary["flows"][0], "links": summary["links"][0], "fairness": summary["fairness"]}
    rows = {part: [row[0] for row in rows] for part, rows in _core.METRICS}
    for part, found in parts.items():
        assert [key for key in found if key in rows[part]] == rows[part], "in the order of the summary"
        # names and times need no row, and what a link has in common with a flow has one there
        assert set(found) - set(rows[part]) <= {
            "flow",
            "link",
            "kind",
            "controller",
            "start_s",
            "stop_s",
            "flows",
            "utilisation",
            "marked",
            # whether it did stop: part of what `circuit_breaker` says
            "circuit_breaker_stopped",
        }
    assert set().union(*rows.values()) <= set(METRICS)
    assert [name for name in METRICS if name.startswith("picture_")] == list(METRICS)[-17:], "and those of pictures"


def test_every_metric_says_what_it_is() -> None:
    for name, one in METRICS.items():
        assert one.name == name
        assert one.definition.endswith("."), name
        assert one.label
    assert {*HEADLINE, *PICTURES} <= set(METRICS)
    assert metric("made_up_bps").unit == "Mbit/s"
    assert metric("loss_fraction").show(0.0123) == "1.23"
    assert metric("receive_rate_bps").show_interval(Interval(1e6, 2e5, 3)) == "1.00 ± 0.20"
