"""Rules that hold whatever is measured: refused when the file is read, named when the numbers are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from papers import PaperStudy
from support.cable import wrong
from tidegate import paper
from tidegate.errors import InputError
from tidegate.paper import Measure, document, shipped
from tidegate.paper.claims import Bound, Claim
from tidegate.paper.reading import load
from tidegate.paper.turning import firm_rules, without_effect
from tidegate.paper.verdicts import judge
from tidegate.query import Expression
from tidegate.results.stats import Interval

NUMBER = Claim("n", "Table 1", "a number", 100.0, "ms", None, Bound("5%", "rounding", 0.05), "x")
STATEMENT = Claim("s", "section 1", "a statement", agrees=Expression("a < b"))


@pytest.mark.parametrize(
    ("rule", "idle"),
    [
        ("a < b", []),
        ("0 * a < 1", ["a"]),
        ("a - a < b", ["a"]),
        ("a / a < 2 and b > 1", ["a"]),
        ("a < a + b", ["a"]),
        ("abs(a - published) < 3 * sigma", []),
        ("max(a, b, c) < 1", []),
        ("not significant(a < 2 * b) or c == 1", []),
        ("published + 0 * a + 0 * b > 2", ["a", "b"]),
    ],
)
def test_a_measure_that_changes_nothing_is_found(rule: str, idle: list[str]) -> None:
    assert without_effect(Expression(rule)) == idle


@pytest.mark.parametrize(
    ("original", "replaced", "message"),
    [
        ('trend = "delay.8 < delay.1"', 'trend = "delay.1 < published"',
         '58: claim.full-delay.trend: found "delay.1 < published"; the rule does not speak of the number that it judges; '
         "compare ours in it, or make it the because of a reason"),
        ('trend = "received.8 >= 0.99 * received.4"', 'trend = "received.4 > published / 2"',
         '36: table.sent.cells[1].trend: found "received.4 > published / 2"; the rule does not speak of the number'),
        ('trend = "delay.8 < delay.1"', 'trend = "ours * 0 < published"',
         '58: claim.full-delay.trend: found "ours * 0 < published"; whatever the value of ours, the rule compares the same '
         "numbers; leave ours out, or compare it with something else"),
        ('agrees = "loss.8 == 0"', 'agrees = "loss.8 - loss.8 == 0"',
         '66: claim.strange.agrees: found "loss.8 - loss.8 == 0"; whatever the value of loss.8'),
        ('because = "delay.8 < 20"', 'because = "delay.8 < 20 or 0 * loss.8 < 1"',
         '60: claim.full-delay.because: found "delay.8 < 20 or 0 * loss.8 < 1"; whatever the value of loss.8'),
    ],
)  # fmt: skip
def test_a_rule_without_ours_is_refused(original: str, replaced: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(wrong(tmp_path, original, replaced))
    assert f"p/paper.toml:{message}" in str(caught.value)


def firm(claim: Claim, *, mutated: bool = False, **values: float) -> list[str]:
    measures = {name: Measure(Interval(value, 0.0, 1), "ms") for name, value in values.items()}
    return firm_rules(judge(claim, measures, quick=False), measures, mutated=mutated)


def test_rules_that_nothing_turns() -> None:
    assert firm(NUMBER, x=101) == []
    upper = replace(NUMBER, published=(0.0, 100.0), bound=Bound("0%", "a band"))
    assert firm(upper, x=20) == []
    assert firm(upper, x=5) == ["tolerance"]
    assert firm(upper, x=5, mutated=True) == []
    assert firm(STATEMENT, a=1, b=2) == []
    assert firm(STATEMENT, a=0.007, b=15) == []  # b at a tenth of a tenth is enough: at 0
    assert firm(replace(STATEMENT, agrees=Expression("a < 0.01")), a=0.0008) == ["agrees"]
    # one that does not hold needs nothing that turns it
    assert firm(STATEMENT, a=3, b=2) == []
    trend = replace(NUMBER, trend=Expression("ours <= published"))
    assert firm(trend, x=0.007) == ["trend"]
    assert firm(trend, x=20) == []
    assert firm(trend, x=0.007, mutated=True) == []
    # a number with which the rule says nothing does not turn it
    assert firm(replace(STATEMENT, agrees=Expression("1 < a / b < 200")), a=50, b=2) == []
    assert firm(replace(STATEMENT, agrees=Expression("1 / b > 0")), b=2) == ["agrees"]
    # what backs a reason counts where there is one to back
    backed = replace(STATEMENT, because=Expression("c < 1000"))
    assert firm(backed, a=3, b=2, c=1) == ["because"]
    assert firm(backed, a=1, b=2, c=1) == []


def test_the_page_names_them(tmp_path: Path) -> None:
    vague = wrong(tmp_path, 'agrees = "49 <= loss.4 <= 51 and loss.1 == 0"', 'agrees = "loss.4 < 10000"')
    result = paper.run(vague, seeds=1)
    assert [(judgement.claim.id, rule) for judgement, rule in result.firm if not judgement.claim.unturned] == [
        ("share", "agrees")
    ]
    (line,) = [line for line in document.sentences(result) if line.startswith("No evidence")]
    assert (
        "(at 0, a tenth or ten times its value) would make the rule fail: share (agrees). Compare the measure" in line
    )
    text = (result.save(tmp_path / "out") / "index.html").read_text("utf-8")
    assert "nothing is lost below the capacity: no factor changes 0" in text


@pytest.mark.parametrize("key", shipped.names())
def test_every_rule_of_a_shipped_paper_is_turned_by_some_number_or_says_why_none_does(key: str) -> None:
    result = PaperStudy(key).result()
    firm = {judgement.claim.id: judgement.claim.unturned for judgement, _ in result.firm}
    assert {claim for claim, why in firm.items() if not why} == set()
    # a reason that is not needed is not left standing
    for reason in {judgement.claim.unturned for judgement in result.judgements} - {""}:
        assert reason in firm.values(), reason
