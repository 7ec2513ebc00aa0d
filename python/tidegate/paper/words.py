"""How judgements are put into words: the same on the page, in Markdown, and on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.paper._model import Claim, Document
from tidegate.paper._mutations import Mutations
from tidegate.paper.measures import CellValue, Measure, Table
from tidegate.paper.verdicts import Backing, Judgement, Verdict

NOTHING = "\N{EN DASH}"


def published(claim: Claim) -> str:
    """What the document says: its number with unit and spread, or the rule made of its words."""
    if claim.published is None:
        return f"rule: {claim.agrees.text}" if claim.agrees else ""
    if isinstance(claim.published, tuple):
        number = " to ".join(f"{one:.{claim.digits}f}" for one in claim.published)
    else:
        number = f"{claim.published:.{claim.digits}f}"
    if claim.sigma is not None:
        number += f" (\N{GREEK SMALL LETTER SIGMA} {claim.sigma:g})"
    return f"{number} {claim.unit}".strip()


def ours(one: Judgement) -> str:
    """What was measured, with its interval; each measure by name where a rule speaks of several."""
    if not one.ours:
        return NOTHING
    if one.claim.measure is not None:
        return next(iter(one.ours.values())).show(one.claim.digits)
    return "; ".join(f"{name} = {measure.show()}" for name, measure in one.ours.items())


def deviation(one: Judgement) -> str:
    """Relative where the tolerance is, else in the number's unit."""
    if one.deviation is None:
        return NOTHING
    bound = one.claim.bound
    if one.relative is not None and (bound is None or bound.share or not bound.amount):
        percent = round(one.relative * 100, 1) + 0.0  # which makes -0.0 a zero
        return f"{percent:+.1f} %" if abs(percent) < 1000 else f"\N{MULTIPLICATION SIGN}{one.relative + 1:.3g}"  # noqa: PLR2004
    if isinstance(one.claim.published, tuple) and one.deviation == 0:
        return "inside"
    amount = Measure.exact(one.deviation).number(one.claim.digits)
    unit = "points" if one.claim.unit == "%" else one.claim.unit
    return f"{'+' if one.deviation > 0 else ''}{amount} {unit}".strip()


def tolerance(claim: Claim) -> str:
    """How far off still agrees, and why."""
    return "" if claim.bound is None else f"\N{PLUS-MINUS SIGN} {claim.bound.words}: {claim.bound.why}"


SIGN = {
    Verdict.AGREES: "\N{CHECK MARK}",
    Verdict.TREND: "\N{ALMOST EQUAL TO}",
    Verdict.DIFFERS: "\N{BALLOT X}",
    Verdict.NOT_RUN: NOTHING,
}
"""Of a verdict where room is short, for print and for eyes that see no colours."""

RING = "\N{WHITE CIRCLE}"
"""Marks a verdict that stays what it is without the document's mechanism."""


def ring(one: Judgement, known: Mutations | None) -> str:
    """The mark of a verdict that turns under no mutation; nothing where it does, or nobody tried."""
    turned = None if known is None else known.turned_by(one.claim.id)
    return RING if turned == [] and one.verdict is not Verdict.NOT_RUN else ""


def without(one: Judgement, name: str, known: Mutations | None) -> str:
    """What a claim comes to under a mutation: its sign, what was measured, and whether that agrees, too."""
    answer = known.answers.get(one.claim.id, {}).get(name) if known is not None else None
    if answer is None:
        return NOTHING
    met = " (met all the same)" if answer.verdict is Verdict.AGREES else ""
    return f"{SIGN[answer.verdict]} {answer.ours}{met}"


def several(group: Sequence[Judgement]) -> str:
    """The claims that share a reason."""
    first = group[0].claim
    if first.cell is None:
        return f"{first.text}: published {published(first)}; ours {ours(group[0])}"
    cells = [f"{bare(one.claim)} / {_mine(one)}" for one in group]
    rows = dict.fromkeys(one.claim.cell[1] for one in group if one.claim.cell)
    columns = dict.fromkeys(one.claim.cell[2] for one in group if one.claim.cell)
    count = f"{len(group)} cells: " if len(group) > 1 else ""
    return f"{count}{', '.join(columns)} of {'; '.join(rows)} (published / ours: {', '.join(cells)})"


def _mine(one: Judgement) -> str:
    measure = next(iter(one.ours.values()), None)
    return NOTHING if measure is None else Measure.exact(measure.value.mean).number(one.claim.digits)


def bare(claim: Claim) -> str:
    """What the document prints, without its unit."""
    if claim.published is None:
        return ""
    if isinstance(claim.published, tuple):
        return "\N{EN DASH}".join(f"{one:.{claim.digits}f}" for one in claim.published)
    return f"{claim.published:.{claim.digits}f}"


VERBS = {
    Verdict.AGREES: "agree",
    Verdict.TREND: "show the same trend",
    Verdict.DIFFERS: "differ",
    Verdict.NOT_RUN: "not run",
}
"""Of several claims."""


def verdict(one: Judgement) -> str:
    """The verdict, and whether more seeds could change it."""
    return f"{one.verdict} (not sure)" if one.sure is False and _spread(one) else str(one.verdict)


def _spread(one: Judgement) -> bool:
    """Whether there are intervals to speak of; with one seed nothing is sure, and the page says that once."""
    return all(measure.value.half is not None for measure in one.ours.values())


def reason(one: Judgement) -> str:
    """By which rule it has the same trend, why it differs, and what is known of that; or what it takes to run it."""
    rule = "" if one.claim.because is None else one.claim.because.text
    match one.backing:
        case Backing.CONFIRMED:
            said = f"{one.reason} (Confirmed: {rule} holds.)"
        case Backing.REFUTED:
            said = f"{one.reason} (Not confirmed: {rule} does not hold.)"
        case Backing.UNCHECKED:
            said = f"{one.reason} (Not checked.)"
        case Backing.UNKNOWN:
            said = "No reason known."
        case _:
            said = one.reason
    if one.verdict is Verdict.TREND and one.claim.trend is not None:
        said = f"Same trend: {one.claim.trend.text}. {said}"
    return f"{said} [{one.undefined}]".strip() if one.undefined else said


HEADS = ("where", "what", "published", "ours", "deviation", "verdict", "why")
"""Heads of the table of claims."""


def row(one: Judgement) -> list[str]:
    """A line of the table of claims."""
    claim = one.claim
    return [claim.where, claim.text, published(claim), ours(one), deviation(one), verdict(one), reason(one)]


def differences(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Those that do not agree, the worst first."""
    order = [Verdict.DIFFERS, Verdict.TREND]
    return sorted((one for one in judgements if one.verdict in order), key=lambda one: order.index(one.verdict))


def beside(document: Document, judgements: Sequence[Judgement]) -> list[Table]:
    """The document's tables, each of its numbers with ours at its side."""
    by_cell = {one.claim.cell: one for one in judgements if one.claim.cell is not None}
    tables = []
    for one in document.paper.table:
        heads = [one.row]
        for head in one.heads:
            unit = one.unit if head.unit is None else head.unit
            suffix = f" ({unit})" if unit else ""
            heads += [f"{head.name}{suffix}, published", f"{head.name}{suffix}, ours", f"{head.name}, verdict"]
        rows: list[list[CellValue]] = []
        for name in one.rows:
            cells: list[CellValue] = [name]
            for head in one.heads:
                got = by_cell.get((one.id, name, head.name))
                cells += [None, None, None] if got is None else [_bare(got.claim), _own(got), str(got.verdict)]
            rows.append(cells)
        tables.append(Table(one.id, f"{one.where}: {one.text}", heads, rows))
    return tables


def _bare(claim: Claim) -> CellValue:
    return published(claim) if isinstance(claim.published, tuple) else claim.published


def _own(one: Judgement) -> CellValue:
    return next(iter(one.ours.values()), None)
