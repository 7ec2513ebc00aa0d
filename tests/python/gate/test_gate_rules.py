"""Rules of the gate as people write them, and metrics and amounts by their short names."""

from __future__ import annotations

import pytest

from tidegate.errors import InputError
from tidegate.gate.rules import DEFAULT, Rule
from tidegate.query import amount, find
from tidegate.results.metrics import METRICS


def test_a_rule_has_a_metric_a_direction_and_limits() -> None:
    rule = Rule.parse("delay_p95 > +5% and > +10ms")
    assert rule.metric is METRICS["one_way_delay_ms_p95"]
    assert (rule.sign, rule.scope, rule.cases) == (1, "worst", ("*",))
    assert [(limit.size, limit.relative) for limit in rule.limits] == [(0.05, True), (10.0, False)]
    falls = Rule.parse("mean  utilisation < -5%  in 5.6*, 5.7")
    assert (falls.sign, falls.scope, falls.cases) == (-1, "mean", ("5.6*", "5.7"))
    assert falls.text == "mean utilisation < -5% in 5.6*, 5.7"
    assert Rule.parse("tcp rate < -20%").series == "tcp receive_rate_bps"
    assert falls.is_about("5.6,delay=50ms")
    assert not falls.is_about("5.5")
    assert falls.series == "mean utilisation"
    assert rule.series == "worst one_way_delay_ms_p95"


def test_excess_is_above_zero_beyond_each_limit_and_below_within_it() -> None:
    rises = Rule.parse("delay_p95 > +5% and > +10ms")
    assert rises.excess(100.0, 112.0) == pytest.approx((7.0, 2.0))
    assert rises.excess(100.0, 107.0) == pytest.approx((2.0, -3.0))
    assert rises.excess(400.0, 412.0) == pytest.approx((-8.0, 2.0))
    falls = Rule.parse("rate < -5% and < -50kbps")
    assert falls.excess(1e6, 0.9e6) == pytest.approx((50e3, 50e3))
    assert falls.excess(1e6, 1.2e6) == pytest.approx((-250e3, -250e3))


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("delay_p95", "one_way_delay_ms_p95"),
        ("delay_mean", "one_way_delay_ms_mean"),
        ("queue_delay_mean", "queueing_delay_ms_mean"),
        ("frame_delay_p99", "frame_delay_ms_p99"),
        ("rate", "receive_rate_bps"),
        ("goodput", "goodput_bps"),
        ("loss", "loss_fraction"),
        ("residual_loss", "residual_loss_fraction"),
        ("freeze_time", "freeze_time_s"),
        ("oscillation", "oscillation_hz"),
        ("utilisation", "utilisation"),
        ("mos", "mos"),
    ],
)
def test_metrics_have_short_names(short: str, name: str) -> None:
    assert find(short).name == name
    assert find(name).name == name


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("10ms", "one_way_delay_ms_p95", 10.0),
        ("0.5s", "one_way_delay_ms_p95", 500.0),
        ("0.5s", "freeze_time_s", 0.5),
        ("50kbps", "receive_rate_bps", 50e3),
        ("0.5pp", "loss_fraction", 0.005),
        ("0.5%", "loss_fraction", 0.005),
        ("2/s", "oscillation_hz", 2.0),
        ("0.3", "mos", 0.3),
    ],
)
def test_amounts_are_in_the_units_of_the_summary(text: str, name: str, value: float) -> None:
    assert amount(text, METRICS[name]) == pytest.approx(value)


def test_the_default_rules_can_be_read_and_each_is_about_something_else() -> None:
    assert len({Rule.parse(text).metric.name for text in DEFAULT}) == len(DEFAULT)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("delay_p95", "expected a limit such as"),
        ("utilization > +5%", "utilization: there is no such metric; did you mean utilisation"),
        ("delay_p95 > 5%", r"found '> 5%'; a limit is a change against the baseline.*: > \+5%"),
        ("delay_p95 > -5%", r"> \+5%"),
        ("delay_p95 < -5%", "lower is better, so this rule would fail for an improvement"),
        ("utilisation > +5%", "higher is better"),
        ("delay_p95 > +10", "a time needs a unit"),
        ("delay_p95 > +ten%", "expected a number in per cent"),
        ("delay_p95 > +10kbps", "no unit of time"),
        ("utilisation < -0.1", "expected a share in per cent"),
        ("mos < -lots", "expected a number"),
        ("delay_p95 > +5% and < -10ms", "limits in both directions"),
        ("delay_p95 > +5% and +10ms", "for a limit; expected a limit such as"),
        ("delay_p95 > +nan%", "expected a number in per cent"),
        ("", "expected a rule such as"),
    ],
)
def test_a_rule_that_cannot_be_says_what_would_be_right(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Rule.parse(text)
