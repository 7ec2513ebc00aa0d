"""What is behind the verdicts: rules, cases that were not run, runs that failed, and how to make it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate.comparison.doubts import NAMED
from tidegate.show.report.markup import Content, Markup, join, tag
from tidegate.suite import numbers, verdicts
from tidegate.suite.page import words
from tidegate.suite.scores import SHOWN
from tidegate.wording import counted, listed

if TYPE_CHECKING:
    from tidegate.suite.model import RuleTable
    from tidegate.suite.result import SuiteResult

_MOST_WARNINGS = 30


def sections(result: SuiteResult) -> Iterator[Markup]:
    """All of them that there are."""
    yield from _failed(result)
    yield from _not_run(result)
    yield _rules(result)
    yield from _doubts(result)
    yield from _warnings(result)
    yield _again(result)
    yield _definitions(result)


def _failed(result: SuiteResult) -> Iterator[Markup]:
    broken = [cell for cell in result.cells if cell.state == "error"]
    if broken:
        rows = [[cell.case, cell.controller, cell.why] for cell in broken]
        table = words.table(["Case", "Controller", "Why"], rows, "prose")
        yield tag("section", tag("h2", "Runs that failed"), table)


def _not_run(result: SuiteResult) -> Iterator[Markup]:
    reasons: dict[str, list[str]] = {}
    for case in result.suite.cases:
        if case.not_run:
            reasons.setdefault(case.not_run, []).append(f"{case.name} ({case.title})" if case.title else case.name)
    if reasons:
        pairs = [item for why, cases in reasons.items() for item in (tag("dt", why), tag("dd", "; ".join(cases)))]
        yield tag("section", tag("h2", "Cases that were not run"), tag("dl", *pairs))


def _rules(result: SuiteResult) -> Markup:
    if not result.suite.rules:
        return tag("section", tag("h2", "Rules"), tag("p", "This suite has none: every cell that ran is passed."))
    met: dict[str, list[bool]] = {rule.name: [] for rule in result.suite.rules}
    for cell in result.cells:
        for check in cell.checks:
            met[check.rule.name].append(check.passed)
    items = [item for rule in result.suite.rules for item in (tag("dt", rule.name), _rule(rule, met[rule.name]))]
    return tag("section", tag("h2", "Rules"), tag("dl", *items))


def _rule(rule: RuleTable, met: list[bool]) -> Markup:
    one = numbers.about(rule.metric)
    of = "" if rule.of is None else f" ({rule.of})"
    beside = f" relative to {rule.relative_to}" if rule.relative_to else ""
    cases = "in every case" if rule.cases == ["*"] else f"in {', '.join(rule.cases)}"
    who = "" if rule.controllers == ["*"] else f", of {', '.join(rule.controllers)}"
    number = f"{words.begun(one.label)}{of}{beside}: {verdicts.limit(rule)}, {cases}{who}."
    told = f" {number} Met in {sum(met)} of {counted(len(met), 'cell')}. Source: {rule.source}. {rule.why}"
    return tag("dd", tag("span", f"{words.begun(rule.says).rstrip('.')}.", class_="says"), told)


def _doubts(result: SuiteResult) -> Iterator[Markup]:
    if result.doubts:
        told = list(result.doubts.items())
        items = [tag("li", f"{said} ", tag("small", f"({listed(cases, most=NAMED)})")) for said, cases in told]
        yield tag("section", tag("h2", "What this cannot tell"), tag("ul", *items))


def _warnings(result: SuiteResult) -> Iterator[Markup]:
    said: dict[str, set[str]] = {}
    for case, controller, _, row in result.runs():
        for one in row["warnings"]:
            said.setdefault(one if isinstance(one, str) else f"{one['key']}: {one['says']}", set()).add(
                f"{case}, {controller}"
            )
    if not said:
        return
    items = [
        tag("li", f"{told} ", tag("small", f"({counted(len(cells), 'cell')}, such as {min(cells)})"))
        for told, cells in list(said.items())[:_MOST_WARNINGS]
    ]
    if len(said) > _MOST_WARNINGS:
        items.append(tag("li", f"and {len(said) - _MOST_WARNINGS} more"))
    head = tag("summary", f"What runs warn of ({len(said)})")
    yield tag("section", tag("h2", "Warnings"), tag("details", head, tag("ul", *items)))


def _again(result: SuiteResult) -> Markup:
    parts: list[Content] = [tag("h2", "Make it again")]
    if command := str(result.about.get("command", "")):
        parts += [tag("p", "The command that made this:"), tag("pre", tag("code", command))]
    seeds = ", ".join(str(seed) for seed in result.seeds[:20]) + (" ..." if len(result.seeds) > 20 else "")  # noqa: PLR2004
    parts.append(
        tag(
            "p",
            f"Seeds: {seeds or 'none'}. The same seeds give the same bits on every machine; scores.csv, beside this "
            "page, has every number of every run with its digest, and junit.xml the verdicts for other programs.",
            class_="soft",
        )
    )
    versions = dict(result.about.get("versions", {}))
    if versions:
        pairs = [item for name, value in versions.items() for item in (tag("dt", name), tag("dd", str(value)))]
        parts.append(tag("details", tag("summary", "Versions"), tag("dl", *pairs)))
    if result.suite.text:
        parts.append(tag("details", tag("summary", "The suite (TOML)"), tag("pre", tag("code", result.suite.text))))
    return tag("section", *parts)


def _definitions(result: SuiteResult) -> Markup:
    """Of the numbers that rules and scores speak of."""
    named = dict.fromkeys([*(name for name, _ in SHOWN), *(rule.metric for rule in result.suite.rules)])
    about = [numbers.about(name) for name in named]
    items = [
        join([tag("dt", words.begun(one.label)), tag("dd", tag("code", one.name), f": {one.definition}")])
        for one in about
    ]
    return tag("section", tag("details", tag("summary", "What the numbers mean"), tag("dl", *items)))
