"""One grammar in every verb: the same words mean the same, and whatever is written is a value or an error."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import InputError
from tidegate.gate.rules import DEFAULT, Rule
from tidegate.optimisation.goals import Goal, Limit
from tidegate.optimisation.space import Setting
from tidegate.query import Condition, Expression, RowFilter, Series, parse, ranges
from tidegate.query.intervals import Undefined
from tidegate.results.metrics import METRICS
from tidegate.results.stats import Interval
from tidegate.suite import verdicts
from tidegate.suite.model import RuleTable

LOSS = METRICS["loss_fraction"]
AT_MOST = Condition(Series(LOSS), "<=", 0.02)
COLUMNS = {"controller": "U", "seed": "u", **dict.fromkeys(METRICS, "f")}


def table(**keys: Any) -> RuleTable:
    return RuleTable.model_validate({"name": "x", "says": "x", "source": "x", **keys})


def test_at_most_two_per_cent_of_loss_is_one_condition_in_every_verb() -> None:
    assert RowFilter("loss <= 2%", COLUMNS).conditions == [AT_MOST]
    assert RowFilter("loss_fraction <= 0.02", COLUMNS).conditions == [AT_MOST]
    assert RowFilter("2 % >= loss", COLUMNS).conditions == [AT_MOST]
    assert Limit.parse("loss <= 2%", METRICS).condition == AT_MOST
    assert verdicts.limits(table(metric="loss_fraction", at_most=0.02)) == (AT_MOST,)
    # a paper's measures have names and units of their own: the tree is the same, and the number is in the measure's unit
    rule = Expression("loss <= 0.02")
    assert rule.tree == parse("loss <= 0.02", "")
    assert [rule.truth({"loss": Interval(value, 0.0, 1)}).holds for value in (0.02, 0.0201)] == [True, False]
    assert (str(AT_MOST), AT_MOST.room(0.02), AT_MOST.room(0.03) < 0) == ("loss_fraction <= 2%", 0.0, True)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("loss > +2pp", "change(loss) > 2pp"),
        ("delay_p95 > +5% and > +10ms", "change(delay_p95) > 5% and change(delay_p95) > 10ms"),
        ("delay_p95 > +5% and > +10ms", "change(delay_p95) > 5% and > 10ms"),
        ("mean utilisation < -5% and < -1pp", "change(mean utilisation) < -5% and < -1pp"),
        ("tcp-1 rate < -20% in 5.6*, 5.7", "change(tcp-1 rate) < -20% in 5.6*,5.7"),
    ],
)
def test_a_change_is_written_as_one_or_for_short_with_its_sign(short: str, long: str) -> None:
    short_rule, long_rule = Rule.parse(short), Rule.parse(long)
    assert (short_rule.limits, short_rule.cases, short_rule.series) == (
        long_rule.limits,
        long_rule.cases,
        long_rule.series,
    )
    assert (short_rule.excess(3.0, 4.0), short_rule.sign) == (long_rule.excess(3.0, 4.0), long_rule.sign)
    assert long_rule.text == " ".join(long.split())
    assert [limit.bound_text for limit in short_rule.limits] == [limit.bound_text for limit in long_rule.limits]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("change(loss) < 2pp", r"found '< 2pp'; a limit is a change .*: < -2pp \(falls by more\)"),
        ("change(loss) > -2pp", r"> \+2pp"),
        ("change(loss, rate) > 2pp", r"expected a metric, or change\(METRIC\)"),
        ("abs(loss) > +2pp", r"found 'abs\(loss\)'; expected a metric, or change\(METRIC\)"),
        ("loss > +2pp and rate < -5%", "the rule has limits for several metrics or scopes"),
        ("loss > +2pp or > +5%", "for a limit; expected a limit such as"),
        ("loss > +2pp in 5.6 and > +5%", "expected a rule such as"),
        ("0pp < change(loss) < 2pp", "for a limit; expected a limit such as"),
    ],
)
def test_what_is_no_change(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Rule.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "loss <= 2%", "tcp rate > 1.5Mbit/s", "delay_p95 < 150ms", "mos >= 3.5", "oscillation < 2/s",
        "call-2 freeze_time <= 0.5s", "worst utilisation >= 33.3%",
    ],
)  # fmt: skip
def test_a_condition_says_itself(text: str) -> None:
    condition = Limit.parse(text, METRICS).condition
    assert Limit.parse(str(condition), METRICS).condition == condition


@pytest.mark.parametrize("text", [*DEFAULT, "change(tcp rate) < -20%"])
def test_a_change_says_itself(text: str) -> None:
    rule = Rule.parse(text)
    assert Rule.parse(" and ".join(map(str, rule.limits))).limits == rule.limits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 < seed < 4", [False, True, True, False]),
        ("seed > 1 and < 4", [False, True, True, False]),
        ("seed not in (1, 4,) or seed < 2 and not seed == 3", [True, True, True, False]),
        ("'gcc' == controller and seed > -1", [True, False, False, True]),
        ("20ms <= delay_p95 < 0.04 s", [False, True, False, False]),
        ("delay_p95 not in ['10ms', 40]", [False, True, True, False]),
        ("seed == 1_0 or seed == 2e0", [False, True, False, False]),
    ],
)
def test_rows(text: str, expected: list[bool]) -> None:
    columns = {
        "seed": np.array([1, 2, 3, 4]),
        "controller": np.array(["gcc", "nada", "x", "gcc"]),
        "one_way_delay_ms_p95": np.array([10.0, 20.0, np.nan, 40.0]),
    }
    assert RowFilter(text, {"seed": "u", "controller": "U", "one_way_delay_ms_p95": "f"})(columns).tolist() == expected


def test_log_stands_before_a_range_or_behind() -> None:
    assert ranges.values("100kbps:10Mbps:4:log") == ranges.values("log:100kbps:10Mbps:4")
    assert Setting.parse("k=1ms:1s:log").log
    assert not Setting.parse("k=1ms:1s").log


WORDS = re.findall(
    r"\S+",
    'loss delay_p95 rate "gcc" controller seed worst tcp change( abs( min( measure["a b"] highest 1 0.02 2% 10 ms 1e3 '
    "1e999 +5% -1pp in not and or ( ) [ ] , < <= > >= == != + - * / ** : = log: 2ms:50ms:5 0.1:1 ; @ {",
)
TEXT = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=25).map("".join),
    st.text(max_size=40),
)


def rule(text: str) -> object:
    expression = Expression(text)
    measures = dict.fromkeys(expression.names, Interval(1.0, 0.5, 3))
    return expression.truth(measures) if expression.kind == "truth" else expression.number(measures)


def rows(text: str) -> object:
    return RowFilter(text, COLUMNS)({name: np.array(["x"] if kind == "U" else [1.0]) for name, kind in COLUMNS.items()})


VERBS: list[Callable[[str], object]] = [
    rule,
    rows,
    Rule.parse,
    lambda text: Limit.parse(text, METRICS),
    lambda text: Goal.parse(text, METRICS),
    ranges.values,
    lambda text: Setting.parse(f"k={text}"),
]


@given(TEXT)
def test_whatever_is_written_is_a_value_or_an_error(text: str) -> None:
    for verb in VERBS:
        try:
            assert verb(text) is not None
        except (InputError, Undefined) as error:
            assert str(error)


@pytest.mark.parametrize(
    "text",
    ["(" * 10**5, "-" * 1999, "not " * 400, "abs(" * 400, "a+" * 999 + "a < 1", "1" * 10**6, " " * 10**5 + "x", "a " * 10**5,
     "a" + " " * 1990 + "1", "x in " * 10**4, "1" * 1990 + "x", "a." * 900, "a < b and " * 190 + "a < b", '"' * 1999],
)  # fmt: skip
def test_long_and_deep_texts_are_answered_at_once(text: str) -> None:
    start = time.process_time()
    for verb in VERBS[:5]:
        try:
            verb(text)
        except (InputError, Undefined) as error:
            assert len(str(error)) < 20 * len(text) + 1000
    assert time.process_time() - start < 2
