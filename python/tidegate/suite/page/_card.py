"""The scorecard: a row for each case and a column for each controller; one table on the screen, several on paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidegate.show.palette import Look
from tidegate.show.report.markup import Content, Markup, join, tag, text
from tidegate.suite.page import words

if TYPE_CHECKING:
    from tidegate.suite.cases import Case
    from tidegate.suite.result import Cell, SuiteResult

_ABREAST = 5
"""Controllers side by side on a page of paper."""
_WIDE = 7
"""More of them on a screen have narrow columns."""


def section(result: SuiteResult, own: Mapping[str, Look]) -> Markup:
    """Every case with every controller."""
    names = result.controllers
    parts = math.ceil(len(names) / _ABREAST)
    each = math.ceil(len(names) / parts)
    whole = tag(
        "div", _table(result, names, own, opened=True), class_="scroll card screen", tabindex=0, role="region",
        aria_label="Scorecard",
    )  # fmt: skip
    paper = [
        tag("div", _table(result, names[at : at + each], own, opened=False), class_="card paper")
        for at in range(0, len(names), each)
    ]
    told = ["Beside each verdict stands the rule that decides it: the one that is broken most, or that has least room."]
    if any(cell.close for cell in result.cells):
        told.append("≈: a limit lies within the 95 % interval of that number; other seeds could change the verdict.")
    return tag(
        "section",
        tag("h2", "Scorecard"),
        tag("p", "Open a cell for its rules, numbers and pictures; arrow keys go from cell to cell.", class_="screen"),
        whole,
        *paper,
        tag("p", " ".join(told), class_="soft"),
        tag("noscript", tag("p", "Without scripts the cells cannot be opened; scores.csv has all their numbers.")),
    )


def _table(result: SuiteResult, names: Sequence[str], own: Mapping[str, Look], *, opened: bool) -> Markup:
    head = tag("tr", tag("th", "Case", scope="col"), *(tag("th", words.named(one, own), scope="col") for one in names))
    rows = [_row(result, at, case, names, opened=opened) for at, case in enumerate(result.suite.cases)]
    foot = [f"{result.count(one, 'pass')} of {result.count(one, 'pass') + result.count(one, 'fail')}" for one in names]
    passed = tag("tr", tag("th", "Passed", scope="row"), *(tag("td", one) for one in foot))
    many = "many" if len(names) > _WIDE else None
    return tag("table", tag("thead", head), tag("tbody", *rows), tag("tfoot", passed), class_=many)


def _row(result: SuiteResult, at: int, case: Case, names: Sequence[str], *, opened: bool) -> Markup:
    title: list[Content] = [tag("small", case.title)] if case.title else []
    head = tag("th", tag("span", words.breakable(case.name), class_="label"), *title, scope="row")
    if case.not_run:
        return tag("tr", head, tag("td", f"{words.SIGNS['not run']} not run: {case.not_run}", colspan=len(names),
                                   class_="none"))  # fmt: skip
    cells = []
    for name in names:
        cell = result.cell(case.name, name)
        content: Content = verdict(cell)
        if opened:
            content = tag("button", content, data_at=f"{at},{result.controllers.index(name)}")
        cells.append(tag("td", content, class_=cell.state.replace(" ", "-")))
    return tag("tr", head, *cells)


def verdict(cell: Cell) -> Markup:
    """Sign, word, and the number behind it."""
    parts = [tag("b", f"{words.SIGNS[cell.state]} {cell.state}{' ≈' if cell.close else ''}")]
    one = cell.deciding
    if one is not None:
        value = "no value" if one.missing else one.shown
        parts.append(tag("span", f"{one.rule.name} ", value.replace(" ", "\N{NO-BREAK SPACE}")))
    elif cell.why:
        parts.append(tag("span", cell.brief[:90]))
    else:
        parts.append(text(" no rule"))
    return join(parts)
