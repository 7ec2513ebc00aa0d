"""The answer: who stands where, beside whom, by how much; and where each is worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tidegate.show.palette import Look
from tidegate.show.report.markup import Content, Markup, join, tag, text
from tidegate.show.report.tables import NOTHING
from tidegate.suite import tables
from tidegate.suite.page import words
from tidegate.suite.scores import SHOWN, Score, label
from tidegate.wording import counted, listed

if TYPE_CHECKING:
    from tidegate.suite.result import SuiteResult
    from tidegate.suite.verdicts import Check


def sections(result: SuiteResult, every: Sequence[Score], own: Mapping[str, Look]) -> Iterator[Markup]:
    """Ranks, and differences against the baseline."""
    parts: list[Content] = [tag("h2", "The answer"), tag("p", _sentence(every))]
    rows: list[list[Content]] = [
        [
            words.named(one.controller, own),
            f"{one.passed} of {one.of}",
            NOTHING if one.rank is None else str(one.rank),
            *(tables.mean(one, name) for name, _ in SHOWN),
        ]
        for one in every
    ]
    parts.append(words.table(["Controller", "Cases passed", "Rank by power", *_heads()], rows, "scores"))
    parts.append(
        tag(
            "p",
            "Means over the cases; who passes most stands first. A rank goes by power (log of rate over delay): one "
            "more than the number of those whose power is greater for certain (95 %, paired run by run). Who cannot be "
            "told apart shares a rank.",
            class_="soft",
        )
    )
    parts += [tag("p", tag("strong", f"{one.controller} has no rank"), f": {one.out}.") for one in every if one.out]
    yield tag("section", *parts)
    if len(every) > 1:
        yield _beside(result, every, own)


def _heads() -> list[Content]:
    return [words.begun(label(name)) for name, _ in SHOWN]


def _sentence(every: Sequence[Score]) -> Markup:
    """Who passes most, and who is first."""
    most = max(one.passed for one in every)
    passing = [one.controller for one in every if one.passed == most]
    first = [one.controller for one in every if one.rank == 1]
    ran = max(one.of for one in every)
    told: list[Markup] = []
    if len(every) == 1:
        told = [tag("strong", every[0].controller), text(f" passes {most} of {counted(ran, 'case')}.")]
    elif not most:
        told = [text("Nobody passes a case.")]
    else:
        verb = "passes" if len(passing) == 1 else "pass"
        told = [tag("strong", listed(passing, most=6)), text(f" {verb} most: {most} of {counted(ran, 'case')}.")]
    if first and len(every) > 1:
        verb = "has" if len(first) == 1 else "share"
        told += [text(" "), tag("strong", listed(first, most=6)), text(f" {verb} the first rank by power.")]
    return join(told)


def _beside(result: SuiteResult, every: Sequence[Score], own: Mapping[str, Look]) -> Markup:
    rows: list[list[Content]] = [
        [
            words.named(one.controller, own),
            *(words.emphasised(tables.difference(one, name)) for name, _ in SHOWN),
        ]
        for one in every
        if one.controller != result.baseline
    ]
    note = (
        "What each has more than the baseline, as the mean of the differences run by run (the same seed is the same "
        "luck) with its 95 % interval; bold where the interval leaves no doubt of the sign. "
    )
    note += (
        "The interval is over seeds: it speaks of these cases and of no others."
        if len(result.seeds) > 1
        else "With one seed the interval is over cases."
    )
    return tag(
        "section",
        tag("h2", f"Beside {result.baseline}"),
        words.table(["Controller", *_heads()], rows, "scores"),
        tag("p", note, class_="soft"),
    )


def _broken(check: Check) -> Markup:
    return tag("li", tag("b", check.rule.name), f": {check.text} ", tag("span", f"({check.beyond})", class_="bad"))


def worst(result: SuiteResult, every: Sequence[Score], own: Mapping[str, Look]) -> Markup:
    """The case in which each controller breaks most, with the numbers."""
    rows: list[list[Content]] = []
    for one in every:
        cell = result.worst(one.controller)
        if cell is None:
            why = "breaks no rule" if one.of else "no case was run to its end"
            rows.append([words.named(one.controller, own), why, ""])
            continue
        broken = sorted(cell.broken, key=lambda check: check.slack)
        rows.append(
            [
                words.named(one.controller, own),
                words.breakable(cell.case),
                tag("ul", *(_broken(check) for check in broken)),
            ]
        )
    return tag(
        "section",
        tag("h2", "The worst case of each"),
        words.table(["Controller", "Case", "What broke, by how much"], rows, "prose worst"),
        tag("p", "The case with the greatest share of its rules broken.", class_="soft"),
    )
