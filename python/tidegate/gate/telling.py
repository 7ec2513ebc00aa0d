"""What a check found: rows for a table, JUnit XML, annotations of GitHub, plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

from tidegate.gate.checking import Outcome
from tidegate.gate.judging import Answer
from tidegate.suite.tables import printable

HEADS = ("", "case", "what", "before", "now", "unit", "change", "at least", "limit", "seeds")
"""Of the table."""


def rows(outcome: Outcome, *, every: bool = False) -> Iterator[tuple[str, ...]]:
    """A line of the table for each answer that a person has to know.

    Args:
        outcome: What was found.
        every: Also what is within its limits.
    """
    words = {"worse": "worse", "undecided": "undecided", "better": "better", "fine": "within"}
    kinds = {word: [one for one in outcome.answers if _kind(one) == word] for word in words}
    for word, text in words.items():
        for one in kinds[word] if word != "fine" or every else ():
            bound = _signed(one, one.rule.sign * one.bound) if word == "worse" else ""
            about = one.rule.metric
            yield (
                text,
                one.case,
                what(one),
                about.show(one.before),
                about.show(one.now),
                about.unit,
                change(one),
                bound,
                limit(one) if word != "better" else "",
                str(one.seeds),
            )


def _kind(one: Answer) -> str:
    return "better" if one.better else one.state


def what(one: Answer) -> str:
    """What a rule looks at, for people: `one-way delay, 95th percentile`, `receive rate of tcp`."""
    of = {"worst": "", "mean": ", mean of all", "sum": ", sum of all"}
    return f"{one.rule.metric.label}{of.get(one.rule.of, f' of {one.rule.of}')}"


def change(one: Answer) -> str:
    """The change of the mean, in the metric's unit and in per cent of the baseline."""
    if not math.isfinite(one.now):
        return "no value any more"
    lost = f", {one.lost} without a value" if one.lost else ""
    return f"{_signed(one, one.now - one.before)}{lost}"


def _signed(one: Answer, amount: float) -> str:
    about = one.rule.metric
    if not math.isfinite(amount):
        return "-"
    share = f" ({amount / abs(one.before):+.1%})" if one.before else ""
    return f"{amount * about.scale:+.{about.digits}f}{share}"


def limit(one: Answer) -> str:
    """The limits of its rule: `+5% and +10ms`."""
    return " and ".join(each.text for each in one.rule.limits)


def sentence(one: Answer) -> str:
    """An answer in a line: what, from what to what, and how sure."""
    about = one.rule.metric
    values = f"{about.show(one.before)} to {about.show(one.now)} {about.unit}".strip()
    sure = f", at least {_signed(one, one.rule.sign * one.bound)}" if one.state == "worse" else ""
    return f"{what(one)}: {values}, {change(one)}{sure}; limit {limit(one)}; {one.seeds} seeds"


def headline(outcome: Outcome) -> str:
    """What was held against what, and how much was run."""
    cases = {one.case for one in outcome.answers} | set(outcome.failed)
    against = "" if outcome.controller == outcome.against else f" of {outcome.against}"
    what = f"{outcome.controller} against the baseline{against}"
    asked = f"{len(outcome.answers)} questions in {len(cases)} cases"
    return f"{what}: {outcome.suite}, {asked}, {outcome.runs} runs"


def verdict(outcome: Outcome) -> str:
    """The answer in a sentence."""
    worse, open_ = len(outcome.those("worse")), len(outcome.those("undecided"))
    parts = [f"{worse} of {len(outcome.answers)} worse"] if worse else []
    parts += [f"{open_} undecided"] if open_ else []
    parts += [f"{len(outcome.failed)} cases failed"] if outcome.failed else []
    return ", ".join(parts) or "nothing is worse"


def junit(outcome: Outcome, *, strict: bool = False) -> str:
    """As JUnit XML: a test for each rule in each case.

    Args:
        outcome: What was found.
        strict: Whether what is undecided is a failure, too; else it is skipped.
    """
    counts = {
        "tests": len(outcome.answers) + len(outcome.failed),
        "failures": len(outcome.those("worse")) + (len(outcome.those("undecided")) if strict else 0),
        "errors": len(outcome.failed),
        "skipped": 0 if strict else len(outcome.those("undecided")),
    }
    root = ET.Element("testsuites", name="tidegate check")
    about = {"name": f"{outcome.suite}: {printable(outcome.controller)}", **{k: str(v) for k, v in counts.items()}}
    group = ET.SubElement(root, "testsuite", about)
    for one in outcome.answers:
        test = ET.SubElement(group, "testcase", classname=f"{outcome.suite}.{one.case}", name=printable(one.rule.text))
        if one.state == "worse" or (strict and one.state == "undecided"):
            ET.SubElement(test, "failure", message=printable(f"{one.state}: {sentence(one)}"))
        elif one.state == "undecided":
            ET.SubElement(test, "skipped", message=printable(f"undecided: {sentence(one)}"))
    for case, why in outcome.failed.items():
        test = ET.SubElement(group, "testcase", classname=f"{outcome.suite}.{case}", name="runs")
        ET.SubElement(test, "error", message=printable(why))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def github(outcome: Outcome, *, strict: bool = False) -> Iterator[str]:
    """As workflow commands of GitHub, a line each: an error for what is worse, a warning for what is undecided.

    Args:
        outcome: What was found.
        strict: Whether what is undecided is an error, too.
    """
    for one in outcome.those("worse"):
        yield _command("error", f"{one.case} became worse", sentence(one))
    for one in outcome.those("undecided"):
        yield _command("error" if strict else "warning", f"{one.case} is undecided", sentence(one))
    for case, why in outcome.failed.items():
        yield _command("error", f"{case} failed", why)


def _command(kind: str, title: str, message: str) -> str:
    # https://docs.github.com/actions/reference/workflow-commands-for-github-actions, as its toolkit escapes them
    plain = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    head = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={head}::{plain}"


def data(outcome: Outcome) -> dict[str, Any]:
    """As plain data, numbers in the summary's own units."""
    return {
        "suite": outcome.suite,
        "controller": outcome.controller,
        "against": outcome.against,
        "passed": outcome.passed(),
        "level": outcome.level,
        "runs": outcome.runs,
        "answers": [
            {
                "case": one.case,
                "rule": one.rule.text,
                "metric": one.rule.metric.name,
                "of": one.rule.of,
                "state": one.state,
                "better": one.better,
                "seeds": one.seeds,
                "before": one.before,
                "now": one.now,
                "worse_by_at_least": one.bound,
                "without_value": one.lost,
            }
            for one in outcome.answers
        ],
        "failed": dict(outcome.failed),
        "not_run": dict(outcome.not_run),
    }
