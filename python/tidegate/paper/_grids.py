"""The document's tables on the page, each in its own form: published, ours, and the verdict as a colour and a sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidegate.paper import words
from tidegate.paper._model import Kind, PublishedTable
from tidegate.paper.verdicts import Judgement, Verdict
from tidegate.show.report.markup import Content, Markup, tag

if TYPE_CHECKING:
    from tidegate.paper._mutations import Mutations
    from tidegate.paper.result import Result

CLASS = {
    Verdict.AGREES: "agrees",
    Verdict.TREND: "trend",
    Verdict.DIFFERS: "differs",
    Verdict.NOT_RUN: "soft",
}
"""Of the style sheet."""

SIGN = words.SIGN


def grid(heads: Sequence[str], rows: Sequence[Sequence[Content]], kind: str = "scroll") -> Markup:
    """A table, wide ones with a bar to scroll by; cells that are elements already stay what they are."""
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    lines = [tag("tr", *(one if isinstance(one, Markup) else tag("td", one) for one in row)) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_=kind)


def badge(one: Judgement, known: Mutations | None) -> Markup:
    """The verdict as a sign in its colour, with a ring where it does not hang on the mechanism."""
    return tag(
        "span",
        f"{SIGN[one.verdict]}{words.ring(one, known)}",
        class_=CLASS[one.verdict],
        title=words.verdict(one),
    )


def published_tables(result: Result) -> list[Markup]:
    """All of them, each below what it is; those of settings, which are no results, folded and last."""
    by_cell = {one.claim.cell: one for one in result.judgements if one.claim.cell}
    shown, folded = [], []
    for one in result.document.paper.table:
        made = _table(one, by_cell, result.mutations)
        title = f"{one.where}: {one.text}"
        kinds = {judged.claim.kind for cell, judged in by_cell.items() if cell[0] == one.id}
        if kinds == {Kind.SETTING}:
            folded.append(tag("details", tag("summary", f"{title} (settings read back)"), made, class_="document"))
        else:
            shown.append(tag("div", tag("h3", title), made, class_="document"))
    return shown + folded


def _table(table: PublishedTable, by_cell: Mapping[tuple[str, str, str], Judgement], known: Mutations | None) -> Markup:
    heads = [table.row]
    for head in table.heads:
        unit = table.unit if head.unit is None else head.unit
        heads.append(f"{head.name} ({unit})" if unit else head.name)
    rows = []
    for name in table.rows:
        cells: list[Content] = [tag("th", name, scope="row")]
        for head in table.heads:
            one = by_cell.get((table.id, name, head.name))
            cells.append(tag("td", "") if one is None else _cell(one, known))
        rows.append(cells)
    return grid(heads, rows)


def _cell(one: Judgement, known: Mutations | None) -> Markup:
    """Published above ours."""
    claim = one.claim
    measure = next(iter(one.ours.values()), None)
    mine = words.NOTHING if measure is None else measure.number(claim.digits)
    printed = words.bare(claim)
    why = f"published {words.published(claim)}; ours {words.ours(one)} ({words.deviation(one)}): {words.verdict(one)}"
    return tag(
        "td",
        tag("span", printed, class_="printed"),
        tag("span", f"{mine} ", badge(one, known), class_="mine"),
        class_=f"cell {CLASS[one.verdict]}-cell",
        title=why,
    )
