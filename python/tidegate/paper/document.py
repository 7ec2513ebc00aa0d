"""What came of a paper as a document: what holds first, then its tables beside ours, bookkeeping last."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tidegate._files import file_name
from tidegate.output.document import (
    NOTHING,
    Beside,
    Block,
    Cell,
    Column,
    Details,
    Document,
    Items,
    Judged,
    Pairs,
    Paragraph,
    Phrase,
    Picture,
    Row,
    Section,
    Sentence,
    Table,
)
from tidegate.paper import words
from tidegate.paper.claims import Claim, Kind
from tidegate.paper.measures import SHOWN_FROM, CellValue, Measure
from tidegate.paper.verdicts import Backing, Judgement, Verdict, filled
from tidegate.results.stats import Interval
from tidegate.wording import counted

if TYPE_CHECKING:
    from tidegate.paper._mutations import Mutations
    from tidegate.paper.figures import Drawing
    from tidegate.paper.measures import Table as Measured
    from tidegate.paper.result import Result

RING = "\N{WHITE CIRCLE}"
"""Marks a verdict that stays what it is without the document's mechanism."""


class _Meaning(NamedTuple):
    """How a verdict is shown."""

    sign: str
    tone: Literal["good", "odd", "bad", "soft"]
    head: str
    """The head of the count of such claims."""
    verb: str
    """How a sentence says it of several."""
    text: str


_VERDICTS = {
    Verdict.AGREES: _Meaning(
        "\N{CHECK MARK}", "good", "agree", "agree",
        "within the stated tolerance, or the rule made of the words holds",
    ),
    Verdict.TREND: _Meaning(
        "\N{ALMOST EQUAL TO}", "odd", "same trend", "show the same trend",
        "outside, but the weaker rule that is shown with it holds",
    ),
    Verdict.DIFFERS: _Meaning("\N{BALLOT X}", "bad", "differ", "differ", "neither"),
    Verdict.NOT_RUN: _Meaning(
        NOTHING, "soft", "not run", "not run", "measured by --full only, or with what is not installed here"
    ),
}  # fmt: skip
_KINDS = {
    Kind.RESULT: ("published results", "what the document found"),
    Kind.FITTED: (
        "published results, in sample",
        "the same, but settings that it does not state were chosen so that these numbers come out",
    ),
    Kind.OWN: ("own claims", "ours; the document does not say it"),
    Kind.SETTING: (
        "settings read back",
        "stated settings, read back from what was run: they show what was run, and no result",
    ),
}
"""What claims of a kind are called, and what they are."""
_BACKING = {
    Backing.CONFIRMED: "reason confirmed (what backs the reason was measured, and holds)",
    Backing.REFUTED: "reason not confirmed (what should back the reason was measured, and does not hold)",
    Backing.UNCHECKED: "reason not checked (nothing measured backs the reason)",
    Backing.UNKNOWN: "no reason known (nobody knows why)",
}
_Rows: TypeAlias = Sequence[Sequence[Cell]]
_QUOTED = 3  # statements of a kind that a sentence quotes: the last ones, where documents conclude
_LONGEST = 150  # characters of a quotation


def document(result: Result) -> Document:
    """What there is to say of a result."""
    paper = result.published.paper
    pictures = {figure.name: _picture(figure) for figure in result.outcome.figures}
    main = [pictures.pop(paper.figure)] if paper.figure in pictures else []
    fitted = [[gap.what, gap.chosen, gap.why] for gap in paper.unstated if gap.fitted]
    unstated = [[gap.what, gap.chosen, gap.why] for gap in paper.unstated]
    sections: dict[str, Sequence[Block]] = {
        "What was fitted": _table(("chosen so that the numbers come out", "chosen", "why"), fitted, "prose"),
        "The document beside ours": [*_published(result), *_statements(result)],
        **_differences(result),
        "Figures": [Beside(list(pictures.values()), "pair")] if pictures else [],
        "What the document leaves unstated": _table(("what", "chosen", "why"), unstated, "prose"),
        "Tables": [Details(table.title, [_block(table)]) for table in result.tables],
        "Behind the verdicts": [*_behind(result)],
    }
    return Document(
        f"{paper.title}, run again",
        [Section("In short", [*_short(result)])],
        [*main, *(Section(title, blocks) for title, blocks in sections.items() if blocks)],
        ["quick" if result.plan.quick else "full", counted(len(result.plan.seeds), "seed")],
        f"{', '.join(paper.authors)}, {paper.year}. {paper.kind}. {paper.source}",
        opening=[Paragraph(paper.about)],
    )


def of_table(table: Measured) -> Document:
    """A table alone."""
    return Document(table.title, [_block(table)])


# --- what holds and what does not -----------------------------------------------------------------


def _short(result: Result) -> Iterator[Block]:
    contradicted = result.published.paper.contradicted
    stated = [
        [setting.what, setting.stated, setting.run, filled(phrase, result.outcome.measures)]
        for setting, phrase in zip(contradicted, result.published.gives, strict=True)
    ]
    yield Items(sentences(result))
    yield from _table(("stated, and not run", "stated", "run", "what the stated one gives"), stated, "prose")
    heads = ("claims", "all", *(meaning.head for meaning in _VERDICTS.values()), "turn")
    rows = []
    for kind, counts in result.counts_by_kind.items():
        name, meaning = _KINDS[kind]
        turn = "?" if result.mutations is None else result.turned(_of(result, kind))
        each = (counts.get(verdict, 0) for verdict in _VERDICTS)
        rows.append(Row([name, sum(counts.values()), *each, turn, _prose(meaning)]))
    yield Table([*map(Column, heads), Column("what they are", left=True, detail=True)], rows)
    signs = [_named(verdict, meaning.text) for verdict, meaning in _VERDICTS.items()]
    signs.append(Phrase(f"{RING} stays what it is without the document's mechanism", "soft"))
    yield Paragraph([part for sign in signs for part in (" ", sign)][1:], "legend", detail=True)
    absent = Counter(claim.reason for claim in result.judgements if claim.verdict is Verdict.NOT_RUN and claim.reason)
    for reason, count in absent.items():
        yield Paragraph(f"Not run, {counted(count, 'claim')}: {reason}.", "soft")


def _of(result: Result, kind: Kind) -> list[Judgement]:
    return [judgement for judgement in result.judgements if judgement.claim.kind is kind]


def sentences(result: Result) -> list[str]:
    """How many claims hold, which statements do and which do not, and what the mechanism has to do with it."""
    statements = [claim for claim in _of(result, Kind.RESULT) if claim.claim.cell is None]
    alone = len(result.plan.seeds) == 1  # then nothing is sure
    holds = [claim for claim in statements if claim.verdict is Verdict.AGREES and (alone or claim.sure is not False)]
    fails = [claim for claim in statements if claim.verdict is Verdict.DIFFERS]
    said, known = [_counts(result)], result.mutations
    if known is None:
        said.append(_quoted("Holds", holds, "no statement of the text"))
    else:
        needed = [claim for claim in holds if known.turned_by(claim.claim.id)]
        said.append(_quoted("Holds, and would not without the mechanism", needed, "no statement of the text"))
        said.append(_quoted("Holds with and without it", [claim for claim in holds if claim not in needed], "none"))
    said.append(_quoted("Does not hold", fails, "no statement of the text fails"))
    if known is None:
        return [*said, "Nobody has tried which verdicts turn without the document's mechanism."]
    every = [claim.claim.id for claim in result.judgements]
    results = [
        claim.claim.id
        for claim in (*_of(result, Kind.RESULT), *_of(result, Kind.FITTED))
        if claim.verdict in {Verdict.AGREES, Verdict.TREND}
    ]
    seeds = "one seed" if known.seeds == 1 else f"{known.seeds} seeds"
    for name, about in known.about.items():
        (turned, judged), (of_held, held) = known.count(name, every), known.count(name, results)
        said.append(
            f"Without the mechanism ({name}: {about}; {seeds}) {turned} of {judged} verdicts "
            f"turn, and {of_held} of the {held} published numbers and statements that hold."
        )
    return said


def _counts(result: Result) -> str:
    """How many claims of each kind there are, and what they come to."""
    parts = []
    for kind, counts in result.counts_by_kind.items():
        said = ", ".join(f"{counts[verdict]} {_VERDICTS[verdict].verb}" for verdict in _VERDICTS if verdict in counts)
        turned = f" ({result.turned(_of(result, kind))} turn without the mechanism)" if result.mutations else ""
        parts.append(f"{sum(counts.values())} {_KINDS[kind][0]}: {said}{turned}")
    return f"{'; '.join(parts)}."


def _quoted(head: str, statements: Sequence[Judgement], nothing: str) -> str:
    quoted = [
        f"“{textwrap.shorten(statement.claim.text, _LONGEST, placeholder=' …')}” ({statement.claim.where})"
        for statement in statements[-_QUOTED:]
    ]
    more = len(statements) - _QUOTED
    return f"{head}: {'; '.join(quoted) or nothing}{f'; and {more} more' if more > 0 else ''}."


# --- the document beside ours ---------------------------------------------------------------------


def _published(result: Result) -> Iterator[Block]:
    """Its tables in their own form; those of settings, which are no results, folded and last."""
    folded: list[Block] = []
    by_cell = result.by_cell
    if by_cell:
        yield Paragraph("In each cell first what is published, then ours with the sign of the verdict.", "soft")
    for table in result.published.paper.table:
        # as the document has them: `k` is no `K`
        heads = [Column(Phrase(head)) for head in (table.row, *(head.title for head in table.heads))]
        judged = [(row, [by_cell.get((table.id, row, head.name)) for head in table.heads]) for row in table.rows]
        rows = [Row([row, *(_cell(judgement, result.mutations) for judgement in cells)]) for row, cells in judged]
        made = Table(heads, rows, "document")
        title = f"{table.where}: {table.text}"
        if {judgement.claim.kind for _, cells in judged for judgement in cells if judgement} == {Kind.SETTING}:
            folded.append(Details(f"{title} (settings read back)", [made]))
        else:
            yield Section(title, [made], level=3)
    yield from folded


def _cell(judgement: Judgement | None, known: Mutations | None) -> Cell:
    """Published above ours, the verdict as a colour and a sign."""
    if judgement is None:
        return ""
    claim, measure, tone = judgement.claim, words.measured(judgement), _VERDICTS[judgement.verdict].tone
    mine = NOTHING if measure is None else measure.number(claim.digits)
    both = f"published {words.published(claim)}; ours {words.ours(judgement)}"
    title = f"{both} ({words.deviation(judgement)}): {words.verdict(judgement)}"
    lines: list[Sentence] = [words.bare(claim), [f"{mine} ", _sign(judgement, known)]]
    return Judged(lines, "" if tone == "soft" else tone, title)


def _sign(judgement: Judgement, known: Mutations | None) -> Phrase:
    """A verdict as a sign in its colour, with a ring where it turns under no mutation."""
    meaning = _VERDICTS[judgement.verdict]
    stays = known is not None and known.turned_by(judgement.claim.id) == [] and judgement.verdict is not Verdict.NOT_RUN
    return Phrase(f"{meaning.sign}{RING if stays else ''}", meaning.tone, words.verdict(judgement))


def _named(verdict: Verdict, title: str = "") -> Phrase:
    """A verdict as its sign and its name."""
    return Phrase(f"{_VERDICTS[verdict].sign} {verdict}", _VERDICTS[verdict].tone, title)


def _statements(result: Result) -> Iterator[Block]:
    """A row a statement or number of the text; what the same is without the mechanism stands beside it."""
    known = result.mutations
    names = [] if known is None else list(known.about)
    rows: list[list[Cell]] = []
    for judgement in result.judgements:
        claim = judgement.claim
        if claim.cell is None:
            text = Phrase(claim.text, "words", words.tolerance(claim))
            numbers = [_prose(words.published(claim)), _prose(words.ours(judgement)), _sign(judgement, known)]
            rows.append([claim.where, text, *numbers, *(_without(judgement, name, known) for name in names)])
    heads = ["where", "what", "published, or the rule", "ours", "verdict", *(f"without: {name}" for name in names)]
    if rows:
        yield Section("Numbers and statements of the text", _table(heads, rows), level=3)


def _without(judgement: Judgement, name: str, known: Mutations | None) -> Phrase:
    """What a claim comes to under a mutation: its sign, what was measured, and whether that agrees, too."""
    answer = known.answers.get(judgement.claim.id, {}).get(name) if known is not None else None
    if answer is None:
        return _prose(NOTHING)
    met = " (met all the same)" if answer.verdict is Verdict.AGREES else ""
    return _prose(f"{_VERDICTS[answer.verdict].sign} {answer.ours}{met}")


def _differences(result: Result) -> dict[str, list[Block]]:
    """A row a reason: twenty cells that share one have one row."""
    groups: dict[tuple[object, ...], list[Judgement]] = {}
    for judgement in words.differences(result.judgements):
        claim = judgement.claim
        key = (claim.cell[0], claim.group, judgement.verdict, judgement.backing) if claim.cell else (claim.id,)
        groups.setdefault(key, []).append(judgement)
    if not groups:
        return {"Where ours differs": [Paragraph("Nowhere: every claim that was run agrees.")]}
    rows: list[list[Cell]] = []
    for group in groups.values():
        first = group[0]
        rows.append([first.claim.where, _several(group), _named(first.verdict), words.reason(first)])
    backed = Counter(judgement.backing for group in groups.values() for judgement in group)
    reasons = "; ".join(f"{backed[backing]} {text}" for backing, text in _BACKING.items() if backing in backed)
    table = _table(("where", "claims", "verdicts", "why"), rows, "prose")
    return {"Where ours differs, and why": [*table, Paragraph(f"{reasons}.")]}


def _several(group: Sequence[Judgement]) -> str:
    """The claims that share a reason."""
    first = group[0].claim
    if first.cell is None:
        return f"{first.text}: published {words.published(first)}; ours {words.ours(group[0])}"
    cells = []
    for judgement in group:
        measure = words.measured(judgement)
        mine = NOTHING if measure is None else Measure.exact(measure.value.mean).number(judgement.claim.digits)
        cells.append(f"{words.bare(judgement.claim)} / {mine}")
    rows, columns = (dict.fromkeys(j.claim.cell[at] for j in group if j.claim.cell) for at in (1, 2))
    count = f"{len(group)} cells: " if len(group) > 1 else ""
    return f"{count}{', '.join(columns)} of {'; '.join(rows)} (published / ours: {', '.join(cells)})"


# --- what is behind them --------------------------------------------------------------------------


def _behind(result: Result) -> Iterator[Block]:
    seeds = result.plan.seeds
    run = {
        "scope": "quick" if result.plan.quick else "full",
        "seeds": f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0]),
        "pieces of work": str(result.jobs),
        "time": f"{result.took_s:.1f} s",
        **result.versions,
        **({"command": result.command} if result.command else {}),
    }
    yield Pairs(list(run.items()))
    yield from (Paragraph(note, "soft") for note in (*_of_numbers(len(seeds)), *result.outcome.notes))
    claims = [Row(_claim(judgement), below=words.reason(judgement)) for judgement in result.judgements]
    columns = [Column(head, left=True) for head in words.HEADS[:-1]]
    yield _folded("Every claim", [Table(columns, claims, below=words.HEADS[-1])])
    meanings: _Rows = [[Phrase(str(verdict), meaning.tone), meaning.text] for verdict, meaning in _VERDICTS.items()]
    yield _folded("What verdicts mean", _table(("verdict", "means"), meanings))
    rules = [_rules(judgement.claim) for judgement in result.judgements]
    heads = ("claim", "agrees", "same trend", "backs the reason")
    yield _folded("Tolerances and rules", _table(heads, rules, "prose"))
    measures: _Rows = [
        [name, measure.show(), measure.value.count, _prose(measure.about)]
        for name, measure in result.outcome.measures.items()
    ]
    heads = ("measure", "value", "values", "what it is")
    yield _folded("Everything that was measured", _table(heads, measures), bulk=True)
    digests: _Rows = [[name, Phrase(digest, "code")] for name, digest in result.outcome.digests.items()]
    if digests:
        yield _folded("Digests", _table(("run", "digest"), digests), bulk=True)


def _of_numbers(seeds: int) -> list[str]:
    """What a reader has to know of the numbers."""
    sure = "Verdicts are computed from these means; those “not sure” would change for some value inside the intervals."
    if seeds == 1:
        return ["One seed: there are no intervals, and nothing is known of how far luck moves a number."]
    if seeds < SHOWN_FROM:
        few = "Two seeds: numbers of ours are their means, whose intervals would say nothing; take --seeds 5 or --full."
        return [few, sure]
    return ["Numbers of ours are means over seeds ± the half-width of their 95 % interval (Student's t).", sure]


def _claim(judgement: Judgement) -> list[Cell]:
    where, text, published, ours, deviation, verdict, _ = words.row(judgement)
    return [where, *map(_prose, (text, published, ours)), deviation, Phrase(verdict, _VERDICTS[judgement.verdict].tone)]


def _rules(claim: Claim) -> list[Cell]:
    """By what a claim was judged."""
    others = (rule.text if rule else "" for rule in (claim.trend, claim.because))
    return [claim.id, claim.agrees.text if claim.agrees else words.tolerance(claim), *others]


# --- pieces ---------------------------------------------------------------------------------------


def _prose(text: str) -> Phrase:
    return Phrase(text, "words")


def _picture(figure: Drawing) -> Picture:
    name = f"{figure.where}: {figure.title}"
    caption = Phrase(f"{name}. ", "strong"), figure.caption
    return Picture(figure.svg, caption, name, "svg+xml", f"figures/{file_name(figure.name)}.png")


def _table(heads: Sequence[str], rows: _Rows, kind: Literal["", "prose"] = "") -> list[Table]:
    """A table of words; nothing where it has no rows."""
    return [Table([Column(head, left=True) for head in heads], list(map(Row, rows)), kind)] if rows else []


def _folded(title: str, tables: Sequence[Table], *, bulk: bool = False) -> Details:
    return Details(f"{title} ({sum(len(table.rows) for table in tables)})", tables, bulk=bulk)


def _block(table: Measured) -> Table:
    tones = {str(verdict): meaning.tone for verdict, meaning in _VERDICTS.items()}
    left = [any(isinstance(row[at], str) for row in table.rows) for at in range(len(table.columns))]
    rows = [
        Row([Phrase(text, tones[text]) if text in tones else text for text in map(shown, row)]) for row in table.rows
    ]
    return Table([Column(Phrase(head), left=text) for head, text in zip(table.columns, left, strict=True)], rows)


def shown(cell: CellValue) -> str:
    """A cell of a table for people.

    >>> shown(Interval(2.0, 0.25, 5)), shown(1234567), shown(0.98765), shown(None)
    ('2.00 ± 0.25', '1234567', '0.988', '')
    """
    match cell:
        case None:
            return ""
        case str():
            return cell
        case Measure():
            return cell.number()
        case Interval():
            return Measure(cell).number()
        case bool():
            return "yes" if cell else "no"
    return Measure.exact(float(cell)).number()
