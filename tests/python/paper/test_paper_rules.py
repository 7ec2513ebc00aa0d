"""Rules of papers: every verdict, both sides of each bound, and the effect of intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import InputError
from tidegate.output.document import NOTHING
from tidegate.paper import Backing, Judgement, Measure, Verdict, words
from tidegate.paper.claims import Bound, Claim, Phrase
from tidegate.paper.verdicts import judge
from tidegate.query.intervals import Expression, Truth, Undefined, Value
from tidegate.results.stats import Interval

NAN = math.nan
M = {
    "a": Interval(1.0, 0.2, 5),
    "b": Interval(2.0, 0.2, 5),
    "c": Interval(2.3, 0.2, 5),
    "once": Interval(5.0, None, 1),
    "exact": Interval(3.0, 0.0, 1),
    "zero": Interval(0.0, 0.1, 5),
    "none": Interval(NAN, None, 0),
    "loss.0.5": Interval(0.5, 0.0, 1),
    "odd name/1": Interval(7.0, 0.0, 1),
}


def truth(text: str) -> Truth:
    return Expression(text).truth(M)


@pytest.mark.parametrize(
    ("text", "holds", "sure"),
    [
        ("a < b", True, True),
        ("b < a", False, True),
        ("b < c", True, False),  # 1.8 to 2.2 and 2.1 to 2.5 overlap
        ("c <= b", False, False),
        ("not b < c", False, False),
        ("not b < a", True, True),
        ("once > 1", True, False),  # one run has no interval
        ("exact == 3", True, True),
        ("exact != 3", False, True),
        ("a == 1", True, False),
        ("a != 7", True, True),
        ("0.7 < a < 1.3", True, True),
        ("0.9 < a < 1.3", True, False),
        ("b / a == 2", True, False),
        ("1.4 < b / a < 2.8", True, True),  # 1.8 / 1.2 = 1.5 and 2.2 / 0.8 = 2.75
        ("1.4 < b / a < 2.7", True, False),
        ("b - a > 0.5", True, True),  # 1.8 - 1.2 = 0.6
        ("b - a > 0.7", True, False),
        ("b + a < 3.5", True, True),
        ("b * a < 2.6", True, False),  # 2.2 * 1.2 = 2.64
        ("-a < -0.7", True, True),
        ("abs(a - b) <= 1", True, False),
        ("abs(zero) < 0.2", True, True),
        ("min(a, b, c) < 1.5 < max(a, b,)", True, True),
        ("b < a or a < b", True, True),
        ("a < b and b < c", True, False),
        ("b < a and b < c", False, True),
        ("loss.0.5 < 1 and measure['odd name/1'] == 7", True, True),
        ("0.1 + 0.2 <= 0.3", True, True),
        ("0.1 + 0.2 > 0.3", False, True),
        ("0.3000001 <= 0.3", False, True),
    ],
)  # fmt: skip
def test_what_holds_and_what_is_sure(text: str, holds: bool, sure: bool) -> None:
    assert (truth(text).holds, truth(text).sure) == (holds, sure)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("significant(a < b)", True),
        ("significant(b < c)", False),
        ("significant(b < a)", False),
        ("significant(once > 1)", False),  # one run has no spread
        ("significant(exact > 2)", True),
        ("significant(b / a > 1.4)", True),
        ("significant(b / a > 1.6)", False),
        ("not significant(b < c)", True),
    ],
)
def test_significant_means_that_intervals_do_not_overlap(text: str, holds: bool) -> None:
    got = truth(text)
    assert (got.holds, got.sure) == (holds, True)


def test_touching_intervals_are_not_apart() -> None:
    touching = {"a": Interval(1.0, 0.5, 5), "b": Interval(2.0, 0.5, 5)}
    assert not Expression("significant(a < b)").truth(touching).holds
    assert Expression("significant(a <= b)").truth(touching).holds
    apart = {"a": Interval(1.0, 0.5, 5), "b": Interval(2.0, 0.499, 5)}
    assert Expression("significant(a < b)").truth(apart).holds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("none < 1", "none has no value"),
        ("not none < 1", "none has no value"),
        ("a / zero > 1", "zero is a denominator and has the value 0"),
        ("a / (b - 2) > 1", "b - 2 is a denominator and has the value 0"),
        ("b < a or none < 1", "none has no value"),
        ("a < b and none < 1", "none has no value"),
        ("a * 1e308 * 1e308 > 0", "the value of a * 1e308 * 1e308 is too large"),
        ("not a * 1e308 * 1e308 - 1 <= 0", "the value of a * 1e308 * 1e308 is too large"),
    ],
)
def test_what_says_nothing_is_neither_true_nor_false(text: str, why: str) -> None:
    with pytest.raises(Undefined) as caught:
        truth(text)
    assert str(caught.value) == why


def test_what_is_decided_needs_no_more() -> None:
    assert truth("zero == 0 or a / zero > 2").holds
    assert not truth("zero > 0 and a / zero > 2").holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'found ""; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("a <", 'found "a <"; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("1or 2", 'found "1or 2"; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("a < b; c", 'found "a < b; c"; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("a < 'x'", "found \"'x'\"; expected numbers, measures and comparisons of them"),
        ("a ** 2 < 1", 'found "a ** 2"; expected numbers, measures and comparisons of them'),
        ("a in b", 'found "a in b"; expected numbers, measures and comparisons of them'),
        ("(lambda: 1)()", 'found "(lambda: 1)()"; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("[x for x in a]", 'found "[x for x in a]"; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("open('x') < 1", 'found "open"; there is no such function (available: abs, max, min, significant)'),
        ("maxx(a, 1) < 1", 'found "maxx"; there is no such function; did you mean max?'),
        ("a.b.__class__() < 1", 'found "a.b.__class__"; there is no such function (available: abs, max, min, significant)'),
        ("x[0] < 1", 'found "x[0] < 1"; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("measure[text] < 1", 'found "measure[text] < 1"; expected a rule such as "udp.loss / gcc.loss >= 2"'),
        ("abs(a, b) < 1", "abs: found 2 values; expected one"),
        ("min() < 1", "min: found 0 values; expected at least one"),
        ("a and b < 1", 'found "a"; expected a comparison, such as gcc.loss < 0.1'),
        ("(a < b) + 1 < 2", 'found "a < b"; expected a number or a measure'),
        ("significant(a)", 'found "a"; expected a comparison, such as gcc.loss < 0.1'),
        ("1e999 < a", 'found "1e999"; expected numbers, measures and comparisons of them'),
        ("9" * 3000 + "<a", None),
        ("(" * 500 + "a" + ")" * 500 + " < 1", None),
        ("-" * 1900 + "a < 1", None),
        ("1" + "0" * 400 + " < a", None),
    ],
)  # fmt: skip
def test_what_is_no_rule(text: str, message: str | None) -> None:
    with pytest.raises(InputError) as caught:
        Expression(text)
    assert message is None or str(caught.value) == message


@given(st.text(alphabet="ab.1 <>=()+-*/'\"[],_notrmiax", max_size=40))
def test_whatever_is_written_is_a_rule_or_an_error(text: str) -> None:
    try:
        rule = Expression(text)
        measures = dict.fromkeys(rule.names, Interval(1.0, 0.5, 3))
        got: Any = rule.truth(measures) if rule.kind == "truth" else rule.number(measures)
        assert isinstance(got, Truth | Value)
    except (InputError, Undefined):
        pass


@given(
    st.sampled_from(["x + y", "x - y", "x * y", "x / y", "abs(x)", "min(x, y)", "max(x, y)", "-x * (y + x)"]),
    *[st.floats(-10, 10)] * 2,
    *[st.floats(0, 3)] * 2,
    *[st.floats(-1, 1)] * 2,
)
def test_no_value_inside_the_intervals_leads_outside(
    text: str, x: float, y: float, half_x: float, half_y: float, share_x: float, share_y: float
) -> None:
    rule = Expression(text)
    try:
        bounds = rule.number({"x": Interval(x, half_x, 5), "y": Interval(y, half_y, 5)})
        inside = rule.number({"x": Interval(x + share_x * half_x, 0.0, 1), "y": Interval(y + share_y * half_y, 0.0, 1)})
    except Undefined:
        return
    slack = 1e-9 * (1 + abs(inside.mean))
    assert bounds.low - slack <= inside.mean <= bounds.high + slack


# --- verdicts -------------------------------------------------------------------------------------

NUMBER = Claim("n", "Table 1", "a number", 100.0, "ms", None, Bound("5%", "rounding", 0.05), "x")
STATEMENT = Claim("s", "section 1", "a statement", agrees=Expression("x.a < x.b"))


def number(value: float, half: float | None = 0.0, unit: str = "ms", **changes: Any) -> Judgement:
    count = 1 if half is None else 5
    return judge(replace(NUMBER, **changes), {"x": Measure(Interval(value, half, count), unit)}, quick=False)


@pytest.mark.parametrize(("value", "verdict"), [
    (94.999, "differs"), (95.0, "agrees"), (100.0, "agrees"), (105.0, "agrees"), (105.001, "differs"),
])  # fmt: skip
def test_both_sides_of_a_relative_tolerance(value: float, verdict: str) -> None:
    assert number(value).verdict == verdict


def test_other_tolerances() -> None:
    absolute = Bound("2 ms", "", 0.0, 2.0)
    assert [str(number(v, bound=absolute).verdict) for v in (97.99, 98, 102, 102.01)] == [
        "differs", "agrees", "agrees", "differs",
    ]  # fmt: skip
    wider = Bound("5% or 10 ms", "", 0.05, 10.0)
    assert [str(number(v, bound=wider).verdict) for v in (89.9, 90, 110, 110.1)] == [
        "differs", "agrees", "agrees", "differs",
    ]  # fmt: skip
    negative: dict[str, Any] = {"published": -100.0}
    assert [str(number(v, **negative).verdict) for v in (-105.1, -105, -95, -94.9)] == [
        "differs", "agrees", "agrees", "differs",
    ]  # fmt: skip
    # the ends of a range are each a published number
    span: dict[str, Any] = {"published": (100.0, 200.0)}
    got = [number(v, **span) for v in (94.9, 95, 150, 210, 210.1)]
    assert [str(judgement.verdict) for judgement in got] == ["differs", "agrees", "agrees", "agrees", "differs"]
    assert [judgement.deviation for judgement in got] == pytest.approx([-5.1, -5, 0, 10, 10.1])
    # one event in one run says that the mean is above 0 and not above 5.6
    rare: dict[str, Any] = {"published": 1.0, "bound": Bound("count", "", count=True)}
    assert [str(number(v, **rare).verdict) for v in (0, 0.1, 5.5, 6)] == ["differs", "agrees", "agrees", "differs"]
    exact = Bound("0 ms", "", 0.0, 0.0)
    assert [str(number(v, bound=exact).verdict) for v in (99.9999, 100, 100.0001)] == ["differs", "agrees", "differs"]


@pytest.mark.parametrize(("value", "half", "verdict", "sure"), [
    (100, 4.9, "agrees", True), (100, 5.0, "agrees", True), (100, 5.1, "agrees", False), (103, 2.1, "agrees", False),
    (106, 0.9, "differs", True), (106, 1.0, "differs", False), (94, 1.1, "differs", False), (94, 0.9, "differs", True),
    (100, None, "agrees", False), (110, None, "differs", False),
])  # fmt: skip
def test_the_mean_decides_and_the_interval_says_how_surely(
    value: float, half: float | None, verdict: str, sure: bool
) -> None:
    got = number(value, half)
    assert (got.verdict, got.sure) == (verdict, sure)


def test_deviations() -> None:
    assert (number(93).deviation, number(93).relative) == (-7, -0.07)
    assert number(-50, published=-100.0).relative == 0.5
    assert number(3, published=0.0).relative is None
    assert number(150, published=(100.0, 200.0)).relative is None
    deviations = {words.deviation(number(v)) for v in (93, 112.34)}
    assert deviations == {"-7.0 %", "+12.3 %"}
    assert words.deviation(number(93, bound=Bound("2 ms", "", 0, 2.0))) == "-7 ms"
    assert words.deviation(number(3, published=0.0)) == "+3 ms"
    assert words.deviation(number(150, published=(100.0, 200.0))) == "inside"
    points = replace(NUMBER, unit="%", bound=Bound("2 points", "", 0.0, 2.0))
    assert words.deviation(judge(points, {"x": Measure.exact(93, "%")}, quick=False)) == "-7 points"


def test_trends_and_reasons_of_numbers() -> None:
    trend: dict[str, Any] = {"trend": Expression("ours > published / 2")}
    assert number(80, **trend).verdict is Verdict.TREND
    assert number(50, **trend).verdict is Verdict.DIFFERS
    assert number(100, **trend).verdict is Verdict.AGREES
    assert number(110, trend=Expression("abs(ours - published) <= 3 * sigma"), sigma=4.0).verdict is Verdict.TREND
    assert number(113, trend=Expression("abs(ours - published) <= 3 * sigma"), sigma=4.0).verdict is Verdict.DIFFERS


def statement(a: float, b: float, half: float = 0.0, **changes: Any) -> Judgement:
    measures = {"x.a": Measure(Interval(a, half, 5), "s"), "x.b": Measure(Interval(b, half, 5)), "none": Measure.of([])}
    return judge(replace(STATEMENT, **changes), measures, quick=False)


def test_verdicts_on_statements() -> None:
    assert statement(1, 2).verdict is Verdict.AGREES
    assert statement(2, 2).verdict is Verdict.DIFFERS
    trend: dict[str, Any] = {"trend": Expression("x.a <= 2 * x.b")}
    assert statement(1, 2, **trend).verdict is Verdict.AGREES
    assert statement(2, 2, **trend).verdict is Verdict.TREND
    assert statement(4, 2, **trend).verdict is Verdict.TREND
    assert statement(4.1, 2, **trend).verdict is Verdict.DIFFERS
    assert (statement(1, 2, 0.4).sure, statement(1, 2, 0.6).sure) == (True, False)
    assert list(statement(1, 2).ours) == ["x.a", "x.b"]


def test_what_an_unstated_setting_decides_cannot_be_told() -> None:
    open_rule: dict[str, Any] = {"open": Expression("x.b < 3"), "reason": Phrase.parse("The queue decides it.")}
    untold = statement(4, 2, **open_rule, because=Expression("x.b < 3"))
    assert (untold.verdict, untold.backing, untold.unexplained) == (Verdict.OPEN, Backing.CONFIRMED, False)
    assert untold.reason == "The queue decides it."
    # neither agreement nor a trend tells it, where another value of the setting gives another verdict
    assert statement(1, 2, **open_rule).verdict is Verdict.OPEN
    assert statement(4, 2, **open_rule, trend=Expression("x.a > 3")).verdict is Verdict.OPEN
    # where none does, the verdict is that of the other rules
    assert statement(4, 5, **open_rule).verdict is Verdict.AGREES
    assert statement(6, 5, **open_rule).verdict is Verdict.DIFFERS
    assert statement(4, 2, 1.5, **open_rule).sure is False
    assert [j.verdict for j in words.differences([statement(6, 5), untold, statement(1, 2)])] == [
        Verdict.DIFFERS, Verdict.OPEN,
    ]  # fmt: skip


def test_what_backs_a_reason() -> None:
    reason: dict[str, Any] = {
        "reason": Phrase.parse("It is {x.a}, {x.a} s, {x.a / x.b} times the other; {x.a > 3}; {x.a / (x.b - x.b)}.")
    }
    text = (
        "It is 4.00 ± 0.10 s, 4.00 ± 0.10 s, 2 times the other; yes; (x.b - x.b is a denominator and has the value 0)."
    )
    assert statement(1, 2, **reason).backing is Backing.NEEDLESS
    assert statement(1, 2, **reason).reason == ""
    unchecked = statement(4, 2, 0.1, **reason)
    assert unchecked.backing is Backing.UNCHECKED
    assert unchecked.reason == text
    backed = statement(4, 2, **reason, because=Expression("x.b < 3"))
    assert backed.backing is Backing.CONFIRMED
    assert words.reason(backed).endswith("(Confirmed by what was measured.)")
    refuted = statement(4, 2, **reason, because=Expression("x.b < 2"))
    assert refuted.backing is Backing.REFUTED
    assert words.reason(refuted).endswith("(Not confirmed by what was measured.)")
    undefined = statement(4, 2, **reason, because=Expression("none < 2"))
    assert (undefined.backing, undefined.undefined) == (Backing.REFUTED, "none has no value")
    assert [judgement.unexplained for judgement in (unchecked, backed, refuted, statement(4, 2), statement(1, 2))] == [
        False, False, False, True, False,
    ]  # fmt: skip
    trend = statement(4, 2, trend=Expression("x.a > 3"))
    assert words.reason(trend) == "Same trend: x.a > 3 holds. No reason known."
    assert (trend.verdict, trend.backing, trend.unexplained) == (Verdict.TREND, Backing.UNKNOWN, False)


def test_no_value_agrees_with_nothing() -> None:
    got = judge(NUMBER, {"x": Measure.of([], "ms")}, quick=False)
    assert (got.verdict, got.deviation, got.undefined, got.sure) == (Verdict.DIFFERS, None, "x has no value", False)
    assert words.ours(got) == "no value"
    lost = statement(1, 2, agrees=Expression("not none < 1"))
    assert (lost.verdict, lost.undefined) == (Verdict.DIFFERS, "none has no value")
    assert Measure.exact(NAN).value.count == Measure.exact(math.inf).value.count == 0


def test_quick_runs_leave_out_what_only_full_ones_measure() -> None:
    claim = replace(NUMBER, quick=False)
    assert judge(claim, {}, quick=True).verdict is Verdict.NOT_RUN
    assert judge(claim, {"x": Measure.exact(100, "ms")}, quick=False).verdict is Verdict.AGREES


def test_what_needs_something_that_is_not_installed_is_not_run() -> None:
    absent = Measure.not_taken("PyAV is needed: pip install av", "ms")
    got = judge(NUMBER, {"x": absent}, quick=False)
    assert (got.verdict, got.backing, got.unexplained) == (Verdict.NOT_RUN, Backing.NEEDLESS, False)
    assert (words.ours(got), words.reason(got)) == (NOTHING, "PyAV is needed: pip install av")
    # a claim is not run if its measure, a rule or its reason names the absent measure; others are judged
    measures = {"x": Measure.exact(100, "ms"), "y": absent, "z": absent}
    assert judge(NUMBER, measures, quick=False).verdict is Verdict.AGREES
    backed = replace(NUMBER, reason=Phrase.parse("It is {y}."), because=Expression("z > 1"))
    assert judge(backed, measures, quick=False).reason == "PyAV is needed: pip install av"


def test_a_measure_must_be_there_in_the_right_unit() -> None:
    with pytest.raises(InputError, match=r'^the measure x has the unit "s"; expected "ms", as published$'):
        number(0.1, unit="s")
    with pytest.raises(InputError, match=r"^x: the experiment has no such measure$"):
        judge(NUMBER, {}, quick=False)
    with pytest.raises(InputError, match=r"^x\.a: the experiment has no such measure; did you mean x\.aa\?$"):
        judge(STATEMENT, {"x.aa": Measure.exact(1), "x.b": Measure.exact(1)}, quick=False)
    # a name in a rule that happens not to be needed is still checked
    with pytest.raises(InputError, match=r"^lost: the experiment has no such measure$"):
        statement(1, 2, agrees=Expression("x.a < x.b or lost < 1"))
    for key, rule in {"trend": "lost < 1", "because": "lost < 1"}.items():
        with pytest.raises(InputError, match=r"^lost: the experiment has no such measure$"):
            statement(1, 2, 0.0, **{key: Expression(rule)})
    with pytest.raises(InputError, match=r"^lost: the experiment has no such measure$"):
        number(100, reason=Phrase.parse("It is {lost}."))
    with pytest.raises(InputError, match=r"^sigma: the experiment has no such measure"):
        number(100, trend=Expression("ours < sigma"))
