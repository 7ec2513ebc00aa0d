"""Controls of the rules that ship: senders whose worth is known, and rules that are wrong on purpose.

The oracle passes whatever can be passed; senders that do not adapt fail; and each rule is broken by some contender.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tidegate.suite import Plan, Suite, SuiteResult
from tidegate.suite.inheritance import find

FIXED = ("fixed:1bps", "fixed:30kbps", "fixed:700kbps", "fixed:10Mbps")
"""They do not adapt. The first two are the same where a call has a least rate of 30 kbit/s."""

CODE = '''
from tidegate import Controller, Decision


class Unfair(Controller):
    """Calls that begin with the run take what chance gives them; others take 50 kbit/s."""

    def __init__(self):
        self.rate = None

    def on_limits(self, now_ns, limits):
        if self.rate is None:
            self.rate = 50_000 + 1_300_000 * (self.rng.uniform() if now_ns < 1_000_000_000 else 0)
        rate = min(self.rate, limits.max_bps)
        # so little that a call's pacing would let the encoder's least rate through
        return Decision(rate, pacing_bps=rate)

    def on_report(self, now_ns, report):
        return None

    def coupled_rate(self):
        return self.rate or 1

    def on_coupled(self, now_ns, rate_bps):
        return None


class Swinging(Controller):
    """Never the same rate for more than two seconds."""

    def on_limits(self, now_ns, limits):
        self.limits = limits
        return self.rate(now_ns)

    def on_report(self, now_ns, report):
        return self.rate(now_ns)

    def rate(self, now_ns):
        return min(800_000 if now_ns // 2_000_000_000 % 2 else 200_000, self.limits.max_bps)
'''


def control(suite: str, folder: Path) -> SuiteResult:
    """A suite that ships, with all controls."""
    code = folder / "controls.py"
    code.write_text(CODE, encoding="utf-8")
    others = [f"python:{code}:{name}" for name in ("Unfair", "Swinging")]
    return Plan.of(suite, ["oracle", *FIXED, *others], seeds=1).run(folder / "out", processes=False)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> SuiteResult:
    return control("smoke", tmp_path_factory.mktemp("smoke"))


def breakers(result: SuiteResult) -> Mapping[str, Mapping[str, list[str]]]:
    """Who breaks each rule, and in which cases."""
    found: dict[str, dict[str, list[str]]] = {rule.name: {} for rule in result.suite.rules}
    for cell in result.cells:
        for check in cell.broken:
            who = cell.controller.rpartition(":")[2] if cell.controller.startswith("python:") else cell.controller
            found[check.rule.name].setdefault(who, []).append(cell.case)
    return found


def complaints(
    result: SuiteResult, expected: Mapping[str, str], free: frozenset[tuple[str, str]] = frozenset()
) -> list[str]:
    """What is wrong with the rules of a suite: the oracle that fails, a control that passes, a rule that no contender breaks.

    Args:
        result: The suite with all controls.
        expected: Who must break each rule, and where (`fixed:10Mbps 5.1*`).
        free: Cases that a control may pass, by patterns of cases.
    """
    found = []
    for cell in result.cells:
        may = any(cell.controller == who and fnmatchcase(cell.case, where) for who, where in free)
        if cell.state == "pass" and cell.controller in FIXED and not may:
            found.append(f"{cell.controller} passes {cell.case}")
        if cell.state == "error" and "known before a run" not in cell.why:
            found.append(f"{cell.controller} in {cell.case}: {cell.why}")
        if cell.state == "fail" and cell.controller == "oracle":
            found += [f"the oracle breaks {check.rule.name} in {cell.case}: {check.text}" for check in cell.broken]
    broken = breakers(result)
    for rule in result.suite.rules:
        who, _, where = expected.get(rule.name, "none nowhere").partition(" ")
        if not any(fnmatchcase(case, where) for case in broken[rule.name].get(who, [])):
            found.append(f"{who} does not break {rule.name} in {where}")
    return found


SMOKE = {
    "useful-rate": "fixed:30kbps 5.1",
    "no-starvation": "Unfair 5.4",
    "minimum-rate": "fixed:30kbps 5.6",
    "low-delay": "fixed:10Mbps 5.1",
    "frames-in-time": "fixed:10Mbps 5.4",
    "low-loss": "fixed:10Mbps 5.4",
    "media-in-time": "fixed:10Mbps 5.1",
    "converges": "fixed:30kbps 5.1",
    "fair": "Unfair 5.4",
    "leaves-room-for-tcp": "fixed:10Mbps 5.6",
}
"""Who breaks each rule of the suite `smoke`."""

SMOKE_FREE = frozenset({("fixed:700kbps", "5.6"), ("fixed:10Mbps", "fq-codel"), ("fixed:10Mbps", "loss")})
"""Beside one TCP on 2 Mbit/s 700 kbit/s is a fair rate; and where links carry more than an encoder can fill, a call may send
all that it has."""


def test_rules_of_smoke_tell_the_oracle_from_those_that_do_not_adapt(smoke: SuiteResult) -> None:
    assert complaints(smoke, SMOKE, SMOKE_FREE) == []
    assert smoke.count("oracle", "pass") == 5
    assert "known before a run" in smoke.cell("cell", "oracle").why


WRONG = {
    "the other direction": ('name = "useful-rate"', "at_least = 0.5", "at_most = 0.5", "the oracle breaks useful-rate in 5.1"),
    "another unit": ('name = "low-delay"', "at_most = 100", "at_most = 0.1", "the oracle breaks low-delay in 5.1"),
    "a limit that no contender meets": ('name = "frames-in-time"', "at_most = 400", "at_most = 40", "the oracle breaks frames-in-time in 5.1"),
    "a limit that all contenders meet": ('name = "low-loss"', "at_most = 0.02", "at_most = 2", "does not break low-loss"),
    "the sum instead of the worst": (
        'name = "no-starvation"', 'metric = "share_min_5s"', 'metric = "share_min_5s"\nof = "sum"', "break no-starvation"
    ),
    "another case": ('name = "fair"', 'cases = ["5.4"]', 'cases = ["5.6"]', "the oracle breaks fair in 5.6"),
    "a number of the others": (
        'name = "minimum-rate"', 'metric = "receive_rate_min_bps"', 'metric = "cross_rate_bps"', "does not break minimum-rate"
    ),
}  # fmt: skip
"""Rules that are wrong: which one, what it says, what it says instead, and what is then found."""


@pytest.mark.parametrize("what", WRONG)
def test_a_rule_that_is_wrong_is_found(smoke: SuiteResult, what: str) -> None:
    rule, said, instead, found = WRONG[what]
    text = find("smoke").read_text(encoding="utf-8")
    before, here, after = text.partition(rule)
    assert here
    assert said in after.partition("[[rules]]")[0]
    wrong = Suite.parse(before + here + after.replace(said, instead, 1), find("smoke"))
    told = complaints(replace(smoke, suite=wrong), SMOKE, SMOKE_FREE)
    assert any(found in one for one in told), told


RMCAT = {
    "useful-rate": "fixed:30kbps 5.1,*",
    "no-starvation": "fixed:1bps 5.6,*",
    "minimum-rate": "fixed:30kbps 5.6,*",
    "low-delay": "fixed:10Mbps 5.1,*",
    "no-standing-queue": "fixed:10Mbps 5.7",
    "low-loss": "fixed:10Mbps 5.4",
    "low-loss-beside-tcp": "fixed:10Mbps 5.7",
    "media-in-time": "fixed:10Mbps 5.1,*",
    "frames-in-time": "fixed:10Mbps 5.4",
    "converges": "fixed:30kbps 5.1,*",
    "steady": "Swinging 5.1,*",
    "fair": "Unfair 5.5",
    "first-rises": "fixed:30kbps 5.8",
    "third-rises": "fixed:30kbps 5.8",
    "fair-in-5s": "Unfair 5.2,*",
    "leaves-room-for-tcp": "fixed:10Mbps 5.6,*",
    "leaves-room-for-pages": "fixed:10Mbps 5.7",
    "priorities": "Unfair 6.1",
    "both-bottlenecks-full": "fixed:700kbps 6.3",
}
"""Who breaks each rule of the suite `rmcat`, but for those that hold a controller against itself (`relative_to`)."""

RMCAT_FREE = frozenset({("fixed:700kbps", where) for where in ("5.6*", "6.2-5.6*", "5.7*")})
"""Beside one TCP on 2 Mbit/s 700 kbit/s is a fair rate, whatever the queue: with one that marks the pictures alone may be late, by
414 of 400 ms over five seeds. Beside pages the share is 840 kbit/s."""


@pytest.mark.slow
def test_rules_of_rmcat_tell_the_oracle_from_those_that_do_not_adapt(tmp_path: Path) -> None:
    result = control("rmcat", tmp_path)
    itself = {rule.name for rule in result.suite.rules if rule.relative_to is not None}
    told = [one for one in complaints(result, RMCAT, RMCAT_FREE) if not one.startswith("none")]
    assert told == []
    assert {rule.name for rule in result.suite.rules} - set(RMCAT) == itself
    assert result.count("oracle", "pass") == len(result.suite.cases)
