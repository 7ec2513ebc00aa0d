"""Judgements in words: the published number, the measured one, their difference and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.output.document import NOTHING
from tidegate.paper.claims import Claim, PublishedTable
from tidegate.paper.measures import CellValue, Measure, Table
from tidegate.paper.verdicts import Backing, Judgement, Verdict

NOT_SURE = "(not sure)"
"""Stands beside a verdict that more seeds could change."""
ByCell = Mapping[tuple[str, str, str], Judgement]
"""Judgements by table, row and column."""


def published(claim: Claim) -> str:
    """The document's number with unit and spread, or the rule made from its words: as a sentence, then as code."""
    if claim.published is None:
        return f"{claim.in_words or 'rule'}: {claim.agrees.text}" if claim.agrees else ""
    sigma = "" if claim.sigma is None else f" (\N{GREEK SMALL LETTER SIGMA} {claim.sigma:g})"
    return f"{bare(claim, ' to ')}{sigma} {claim.unit}".strip()


def bare(claim: Claim, to: str = "\N{EN DASH}") -> str:
    """The document's number as printed, without its unit; `to` stands between the ends of a range."""
    ends = claim.published if isinstance(claim.published, tuple) else (claim.published,)
    return to.join(f"{end:.{claim.digits}f}" for end in ends if end is not None)


def measured(judgement: Judgement) -> Measure | None:
    """The first measure that decided the verdict; `None` if the claim was not run."""
    return next(iter(judgement.ours.values()), None)


def ours(judgement: Judgement) -> str:
    """The measured number with its interval; for a rule, each measure with its name."""
    if not judgement.ours:
        return NOTHING
    if judgement.claim.measure is not None:
        return next(iter(judgement.ours.values())).show(judgement.claim.digits)
    return "; ".join(f"{name} = {measure.show()}" for name, measure in judgement.ours.items())


def deviation(judgement: Judgement) -> str:
    """The deviation: relative if the tolerance is, else in the number's unit."""
    if judgement.deviation is None:
        return NOTHING
    claim, relative = judgement.claim, judgement.relative
    if relative is not None and (claim.bound is None or claim.bound.share or not claim.bound.amount):
        percent = round(relative * 100, 1) + 0.0  # turns -0.0 into 0.0
        return f"{percent:+.1f} %" if abs(percent) < 1000 else f"\N{MULTIPLICATION SIGN}{relative + 1:.3g}"  # noqa: PLR2004
    if isinstance(claim.published, tuple) and judgement.deviation == 0:
        return "inside"
    amount = Measure.exact(judgement.deviation).number(claim.digits)
    unit = "points" if claim.unit == "%" else claim.unit
    return f"{'+' if judgement.deviation > 0 else ''}{amount} {unit}".strip()


def tolerance(claim: Claim) -> str:
    """The largest deviation that still agrees, and why it is that large."""
    if claim.bound is None:
        return ""
    wide = f"; {claim.bound.wide}" if claim.bound.wide else ""
    return f"\N{PLUS-MINUS SIGN} {claim.bound.words}: {claim.bound.why}{wide}"


def verdict(judgement: Judgement) -> str:
    """The verdict, and whether more seeds could change it."""
    return f"{judgement.verdict} {NOT_SURE}" if doubtful(judgement) else str(judgement.verdict)


def doubtful(judgement: Judgement) -> bool:
    """Whether a value inside the intervals gives another verdict."""
    # with one seed there are no intervals and no verdict is sure; the page says so once
    spread = all(measure.value.half is not None for measure in judgement.ours.values())
    return judgement.sure is False and spread


def reason(judgement: Judgement) -> str:
    """The rule of the trend, the reason and its backing; or what must be installed to run the claim."""
    claim = judgement.claim
    text = judgement.reason
    match judgement.backing:
        case Backing.CONFIRMED:
            text += " (Confirmed by what was measured.)"
        case Backing.REFUTED:
            text += " (Not confirmed by what was measured.)"
        case Backing.UNCHECKED:
            text += " (Not checked.)"
        case Backing.UNKNOWN:
            text = "No reason known."
    if judgement.verdict is Verdict.TREND and claim.trend is not None:
        text = f"Same trend: {claim.trend_in_words or f'{claim.trend.text} holds'}. {text}"
    return f"{text} [{judgement.undefined}]".strip() if judgement.undefined else text


HEADS = ("where", "what", "published", "ours", "deviation", "verdict", "why")
"""Heads of the table of claims."""


def row(judgement: Judgement) -> list[str]:
    """A row of the table of claims."""
    claim = judgement.claim
    numbers = [published(claim), ours(judgement), deviation(judgement)]
    return [claim.where, claim.text, *numbers, verdict(judgement), reason(judgement)]


def differences(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Judgements that do not agree, the worst first."""
    order = [Verdict.DIFFERS, Verdict.OPEN, Verdict.TREND]
    return sorted((j for j in judgements if j.verdict in order), key=lambda judgement: order.index(judgement.verdict))


def beside(table: PublishedTable, by_cell: ByCell) -> Table:
    """A table of the document, with our number beside each of its numbers."""
    heads = [table.row]
    for head in table.heads:
        heads += [f"{head.title}, published", f"{head.title}, ours", f"{head.name}, verdict"]
    rows: list[list[CellValue]] = []
    for name in table.rows:
        cells: list[CellValue] = [name]
        for head in table.heads:
            judgement = by_cell.get((table.id, name, head.name))
            if judgement is None:
                cells += [None, None, None]
            else:
                number = judgement.claim.published
                stated = published(judgement.claim) if isinstance(number, tuple) else number
                cells += [stated, measured(judgement), str(judgement.verdict)]
        rows.append(cells)
    return Table(table.id, f"{table.where}: {table.text}", heads, rows)
