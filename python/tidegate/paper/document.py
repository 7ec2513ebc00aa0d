"""Page of a paper's result: claims that hold first, then its tables beside ours, bookkeeping last."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
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
    Words,
)
from tidegate.paper import words
from tidegate.paper._mutations import Effect
from tidegate.paper.claims import Claim, Kind, Unstated
from tidegate.paper.measures import CellValue, Measure
from tidegate.paper.verdicts import Backing, Judgement, Verdict, filled
from tidegate.results.stats import Interval
from tidegate.wording import counted

if TYPE_CHECKING:
    from tidegate.paper._mutations import Mutations
    from tidegate.paper.figures import Drawing
    from tidegate.paper.measures import Table as Measured
    from tidegate.paper.result import Result

RING = "\N{WHITE CIRCLE}"
"""Marks a verdict that is not clearly worse without the document's mechanism, under any mutation."""


class _Meaning(NamedTuple):
    """Symbol, colour and words of a verdict."""

    symbol: str
    tone: Literal["good", "odd", "bad", "soft"]
    head: str
    """Head of the column with the number of such claims."""
    verb: str
    """Verb or words after a number of claims."""
    text: str


_VERDICTS = {
    Verdict.AGREES: _Meaning(
        "\N{CHECK MARK}", "good", "agree", "agree",
        "the number is within the stated tolerance, or the statement's rule holds",
    ),
    Verdict.TREND: _Meaning(
        "\N{ALMOST EQUAL TO}", "odd", "same trend", "show the same trend",
        "outside the tolerance, but the claim's weaker rule (its trend) holds",
    ),
    Verdict.DIFFERS: _Meaning(
        "\N{BALLOT X}", "bad", "differ", "differ", "outside the tolerance, and no weaker rule holds"
    ),
    Verdict.OPEN: _Meaning(
        "?", "soft", "cannot be told", "cannot be told",
        "a setting that the document does not state decides whether it agrees",
    ),
    Verdict.NOT_RUN: _Meaning(
        NOTHING, "soft", "not run", "not run", "only --full measures it, or it needs a package that is not installed"
    ),
}  # fmt: skip
_KINDS = {
    Kind.RESULT: ("published result", "", "results of the document"),
    Kind.FITTED: (
        "published result",
        " over fitted settings",
        "results of the document; unstated settings were chosen so that these numbers come out",
    ),
    Kind.OWN: ("own claim", "", "claims of tidegate, which the document does not make"),
    Kind.SETTING: (
        "setting",
        " read back",
        "settings that the document states, read back from the runs to show that they were used; not results",
    ),
    Kind.QUOTED: ("quoted result", "", "results of other work, which the document quotes"),
}
"""Noun, further words and meaning of each kind of claims."""
_BACKING = {
    Backing.CONFIRMED: "confirmed: the condition that supports it was measured and holds",
    Backing.REFUTED: "not confirmed: the condition that would support it was measured and does not hold",
    Backing.UNCHECKED: "not checked: no measured condition supports it",
    Backing.UNKNOWN: "not known",
}
"""What is known of a reason, in words after a number of reasons."""
_NOT_COUNTED = {
    Effect.WITHIN: "surely another number, but within the tolerance",
    Effect.NOT_APART: "perhaps worse (intervals overlap)",
    Effect.BETTER: "better without the mechanism",
    Effect.NO_VALUE: "without a value then",
    Effect.CONSTRUCTED: "worse by construction",
}
"""Effects of a mutation that are no evidence for the mechanism, in words after a number of claims."""
_EFFECTS = {
    Effect.WITHIN: "another number, within the tolerance",
    Effect.NOT_APART: "perhaps worse",
    Effect.BETTER: "better without",
    Effect.NO_VALUE: "nothing to measure",
    Effect.CONSTRUCTED: "by construction",
}
"""The same beside a single claim."""
_FITTED = {Kind.FITTED: " (fitted settings)"}
"""What stands beside a claim of a kind."""
_Rows: TypeAlias = Sequence[Sequence[Cell]]
_FEW = 2  # seeds, with which intervals are wide
_QUOTED = 3  # statements that a sentence quotes
_LONGEST = 150  # characters of a quotation


def document(result: Result) -> Document:
    """The page of a result."""
    paper = result.published.paper
    pictures = {figure.name: _picture(figure) for figure in result.outcome.figures}
    main = [pictures.pop(paper.figure)] if paper.figure in pictures else []
    fitted = [[gap.what, gap.chosen, gap.why] for gap in paper.unstated if gap.fitted]
    unstated = [[gap.what, gap.chosen, gap.why, _with_others(gap, result)] for gap in paper.unstated]
    sections: dict[str, Sequence[Block]] = {
        "What was fitted": _table(("fitted setting", "chosen", "why"), fitted, "prose"),
        "Published numbers beside ours": [*_published(result), *_statements(result)],
        **_differences(result),
        "Figures": [Beside(list(pictures.values()), "pair")] if pictures else [],
        "What the document leaves unstated": _table(("what", "chosen", "why", "with other values"), unstated, "prose"),
        "Tables": [Details(table.title, [_table_block(table)]) for table in result.tables],
        "Behind the verdicts": [*_behind(result)],
    }
    return Document(
        f"{paper.title}, run again",
        [Section("In short", [*_summary(result)])],
        [*main, *(Section(title, blocks) for title, blocks in sections.items() if blocks)],
        ["quick" if result.plan.quick else "full", counted(len(result.plan.seeds), "seed")],
        f"{', '.join(paper.authors)}, {paper.year}. {paper.kind}. {paper.source}",
        opening=[Paragraph(paper.about)],
    )


def of_table(table: Measured) -> Document:
    """A table alone."""
    return Document(table.title, [_table_block(table)])


# --- what holds and what does not -----------------------------------------------------------------


def _summary(result: Result) -> Iterator[Block]:
    paper = result.published.paper
    stated = [
        [setting.what, setting.stated, setting.run, filled(phrase, result.outcome.measures)]
        for setting, phrase in zip(paper.contradicted, result.published.gives, strict=True)
    ]
    first, *lines = sentences(result)
    yield Items([first])
    main = ("the document's main claims", "published, or the rule", "ours", "verdict")
    yield from _table(main, list(_headline(result)), "prose")
    yield from _table(("setting", "stated", "run", "result with the stated setting"), stated, "prose")
    decide = [
        [setting.what, _with_others(setting, result)]
        for setting in paper.unstated
        if {*setting.decides} & {*paper.headline}
    ]
    yield from _table(("unstated setting that decides a main claim", "results with other values"), decide, "prose")
    yield Items(lines)
    heads = ("claims", "all", *(meaning.head for meaning in _VERDICTS.values()), "clearly worse without the mechanism")
    rows = []
    for kind, counts in result.counts_by_kind.items():
        noun, further, meaning = _KINDS[kind]
        name = f"{noun}s{further}"
        worse = "?" if result.mutations is None else result.turned(_of_kind(result, kind))
        numbers = (counts.get(verdict, 0) for verdict in _VERDICTS)
        rows.append(Row([name, sum(counts.values()), *numbers, worse, _prose(meaning)]))
    yield Table([*map(Column, heads), Column("meaning", left=True, detail=True)], rows, "prose")
    signs = [_symbol_and_name(verdict, meaning.text) for verdict, meaning in _VERDICTS.items()]
    signs.append(Phrase(f"{RING} not clearly worse without the document's mechanism", "soft"))
    signs.append(Phrase(f"{words.NOT_SURE} another value inside the interval changes the verdict", "soft"))
    yield Paragraph([part for sign in signs for part in (" ", sign)][1:], "legend", detail=True)
    absent = Counter(
        judgement.reason for judgement in result.judgements if judgement.verdict is Verdict.NOT_RUN and judgement.reason
    )
    for reason, count in absent.items():
        yield Paragraph(f"{counted(count, 'claim')} not run: {reason}.", "soft")


def _with_others(setting: Unstated, result: Result) -> str:
    """Results with other values of a setting: those its file gives, else the reasons of the claims that it decides."""
    if setting.what in result.published.sweeps:
        return filled(result.published.sweeps[setting.what], result.outcome.measures)
    named = {*setting.decides}
    decided = (judgement for judgement in result.judgements if judgement.claim.names & named)
    reasons = (judgement.reason for judgement in decided if judgement.verdict is not Verdict.NOT_RUN)
    return " ".join(dict.fromkeys(reason for reason in reasons if reason))


def _headline(result: Result) -> Iterator[list[Cell]]:
    """A row for each claim that the document's abstract or conclusion makes."""
    by_id = {judgement.claim.id: judgement for judgement in result.judgements}
    for claim_id in result.published.paper.headline:
        judgement = by_id[claim_id]
        claim = judgement.claim
        meaning = _VERDICTS[judgement.verdict]
        verdict = Phrase(f"{meaning.symbol} {words.verdict(judgement)}{_FITTED.get(claim.kind, '')}", meaning.tone)
        # the code of its rule stands in the table of statements
        stated = _prose(claim.in_words) if claim.in_words else _stated(claim)
        yield [_prose(f"{claim.text} ({claim.where})"), stated, _ours(judgement), verdict]


def _stated(claim: Claim) -> Cell:
    """The document's number with its tolerance, or the rule made from its words: as a sentence, then as code."""
    if claim.agrees is not None:
        return [f"{claim.in_words or 'rule'}: ", Phrase(claim.agrees.text, "code")]
    return _prose(f"{words.published(claim)} ({words.tolerance(claim)})")


def _ours(judgement: Judgement) -> Phrase:
    """The measured numbers, with what to know of a claim that agrees."""
    note = f". {judgement.reason}" if judgement.verdict is Verdict.AGREES and judgement.reason else ""
    return _prose(f"{words.ours(judgement)}{note}")


def _of_kind(result: Result, kind: Kind) -> list[Judgement]:
    return [judgement for judgement in result.judgements if judgement.claim.kind is kind]


def sentences(result: Result) -> list[str]:
    """Sentences with the number of claims that hold, the statements that do and do not, and the mechanism's part."""
    published = (*_of_kind(result, Kind.RESULT), *_of_kind(result, Kind.FITTED))
    statements = [judgement for judgement in published if judgement.claim.cell is None]
    holds = [judgement for judgement in statements if judgement.verdict is Verdict.AGREES]
    fails = [judgement for judgement in statements if judgement.verdict is Verdict.DIFFERS]
    headline, mutations = result.published.paper.headline, result.mutations
    none = "none of the statements in the text"
    lines = [_counts(result), _quoted("Does not hold", fails, none, headline), *_firm(result)]
    if mutations is None:
        lines.append(_quoted("Holds", holds, none, headline))
    else:
        needed = [judgement for judgement in holds if mutations.turned_by(judgement.claim.id)]
        rest = [judgement for judgement in holds if judgement not in needed]
        lines.append(_quoted("Holds only with the mechanism", needed, none, headline))
        lines.append(
            _quoted("Holds, but is no evidence for the mechanism (not clearly worse without it)", rest, none, headline)
        )
    if mutations is None:
        return [
            *lines,
            "No runs without the mechanism are stored, so it is unknown which verdicts depend on the mechanism.",
        ]
    claims = [judgement.claim.id for judgement in result.judgements]
    results = mutations.holding(judgement.claim.id for judgement in published)
    return [*lines, *(_without(mutations, name, claims, results) for name in mutations.changes)]


def _without(mutations: Mutations, name: str, claims: Sequence[str], results: Sequence[str]) -> str:
    """A sentence with the number of claims by the effect of a mutation on them; `results` are published and hold."""
    counts, held = mutations.counts(name, claims), mutations.counts(name, results)
    seeds = "one seed" if mutations.seeds == 1 else f"{mutations.seeds} seeds"
    among = f"{held[Effect.TURNS]} of the {held.total()} published numbers and statements that hold"
    line = (
        f"Without the mechanism ({name}: {mutations.changes[name]}; {seeds}) {counts[Effect.TURNS]} of "
        f"{counts.total()} verdicts are clearly worse (intervals apart), "
        f"{f'among them {among}' if held else 'and no published number or statement holds with it'}"
    )
    others = [f"{counts[effect]} {words}" for effect, words in _NOT_COUNTED.items() if counts[effect]]
    return f"{line}. Not counted: {', '.join(others)}." if others else f"{line}."


def _firm(result: Result) -> list[str]:
    """A sentence on rules that hold whatever is measured, unless the paper's file says why; none if there are none."""
    rules = [f"{judgement.claim.id} ({key})" for judgement, key in result.firm if not judgement.claim.unturned]
    if not rules:
        return []
    named = f"{', '.join(rules[:_QUOTED])}{f' and {len(rules) - _QUOTED} more' if len(rules) > _QUOTED else ''}"
    other = "(at 0, a tenth or ten times its value)"
    line = f"No evidence, because no number of ours {other} would make the rule fail: {named}."
    return [f"{line} Compare the measure with something on both sides, or say with `unturned` why none does."]


def _counts(result: Result) -> str:
    """A sentence with the number of claims of each kind and their verdicts."""
    parts = []
    for kind, counts in result.counts_by_kind.items():
        verdicts = ", ".join(
            f"{counts[verdict]} {_VERDICTS[verdict].verb}" for verdict in _VERDICTS if verdict in counts
        )
        worse = result.turned(_of_kind(result, kind))
        without = f" ({worse} clearly worse without the mechanism)" if result.mutations else ""
        noun, further, _ = _KINDS[kind]
        parts.append(f"{counted(sum(counts.values()), noun)}{further}: {verdicts}{without}")
    return f"{'; '.join(parts)}."


def _quoted(head: str, statements: Sequence[Judgement], if_none: str, headline: Sequence[str]) -> str:
    """A sentence that quotes statements: the document's main ones first, then the last whole sentences."""

    def order(index: int) -> tuple[int, bool, int]:
        claim = statements[index].claim
        main = headline.index(claim.id) if claim.id in headline else len(headline)
        return main, claim.text.startswith("..."), -index  # documents end with conclusions

    chosen = sorted(sorted(range(len(statements)), key=order)[:_QUOTED])
    quoted = [_quotation(statements[index]) for index in chosen]
    more = len(statements) - _QUOTED
    return f"{head}: {'; '.join(quoted) or if_none}{f'; and {more} more' if more > 0 else ''}."


def _quotation(judgement: Judgement) -> str:
    """A statement in quotation marks, with its place, and with what weakens it: fitted settings, a verdict in doubt."""
    claim = judgement.claim
    short = textwrap.shorten(claim.text, _LONGEST, placeholder=" …")
    doubt = f" {words.NOT_SURE}" if words.doubtful(judgement) else ""
    return f"“{short}” ({claim.where}){_FITTED.get(claim.kind, '')}{doubt}"


# --- published numbers beside ours ----------------------------------------------------------------


def _published(result: Result) -> Iterator[Block]:
    """The document's tables in its own form; tables of settings, which are no results, come last and are folded."""
    folded: list[Block] = []
    by_cell = result.by_cell
    if by_cell:
        yield Paragraph("Each cell has the published number first, then ours with the symbol of the verdict.", "soft")
    for table in result.published.paper.table:
        # a Phrase keeps the document's spelling, because `k` and `K` differ
        heads = [Column(Phrase(head)) for head in (table.row, *(head.title for head in table.heads))]
        judged = [(row, [by_cell.get((table.id, row, head.name)) for head in table.heads]) for row in table.rows]
        rows = [Row([row, *(_cell(judgement, result.mutations) for judgement in cells)]) for row, cells in judged]
        beside = Table(heads, rows, "document")
        title = f"{table.where}: {table.text}"
        if {judgement.claim.kind for _, cells in judged for judgement in cells if judgement} == {Kind.SETTING}:
            folded.append(Details(f"{title} (settings read back)", [beside]))
        else:
            yield Section(title, [beside], level=3)
    yield from folded


def _cell(judgement: Judgement | None, mutations: Mutations | None) -> Cell:
    """The published number above the measured one, with the verdict as a colour and a symbol."""
    if judgement is None:
        return ""
    claim, measure, tone = judgement.claim, words.measured(judgement), _VERDICTS[judgement.verdict].tone
    mine = NOTHING if measure is None else measure.number(claim.digits)
    both = f"published {words.published(claim)}; ours {words.ours(judgement)}"
    title = f"{both} ({words.deviation(judgement)}): {words.verdict(judgement)}"
    lines: list[Sentence] = [words.bare(claim), [f"{mine} ", _symbol(judgement, mutations)]]
    if words.doubtful(judgement):
        lines.append(words.NOT_SURE)
    return Judged(lines, "" if tone == "soft" else tone, title)


def _symbol(judgement: Judgement, mutations: Mutations | None) -> Phrase:
    """A verdict as a symbol in its colour, with a ring if no mutation changes the verdict."""
    meaning = _VERDICTS[judgement.verdict]
    stays = (
        mutations is not None
        and mutations.turned_by(judgement.claim.id) == []
        and judgement.verdict not in {Verdict.NOT_RUN, Verdict.OPEN}
    )
    return Phrase(f"{meaning.symbol}{RING if stays else ''}", meaning.tone, words.verdict(judgement))


def _symbol_and_name(verdict: Verdict, title: str = "") -> Phrase:
    """A verdict as its symbol and its name."""
    return Phrase(f"{_VERDICTS[verdict].symbol} {verdict}", _VERDICTS[verdict].tone, title)


def _statements(result: Result) -> Iterator[Block]:
    """A row for each statement and number of the text, with its verdicts without the mechanism."""
    mutations = result.mutations
    names = [] if mutations is None else list(mutations.changes)
    rows: list[list[Cell]] = []
    for judgement in result.judgements:
        claim = judgement.claim
        if claim.cell is None:
            verdict: list[Words] = [_symbol(judgement, mutations)]
            if words.doubtful(judgement):
                verdict.append(f" {words.NOT_SURE}")
            without = (_mutated_verdict(judgement, name, mutations) for name in names)
            rows.append([claim.where, _prose(claim.text), _stated(claim), _ours(judgement), verdict, *without])
    heads = ["where", "what", "published, or the rule", "ours", "verdict", *(f"without: {name}" for name in names)]
    if rows:
        yield Section("Numbers and statements of the text", _table(heads, rows, "prose"), level=3)


def _mutated_verdict(judgement: Judgement, name: str, mutations: Mutations | None) -> Phrase:
    """A claim's verdict under the mutation `name`: symbol, measured numbers, and a note unless it turns."""
    mutated = mutations.verdicts.get(judgement.claim.id, {}).get(name) if mutations is not None else None
    if mutated is None:
        return _prose(NOTHING)
    note = "still agrees" if mutated.verdict is Verdict.AGREES and mutated.effect is Effect.UNCHANGED else ""
    note = _EFFECTS.get(mutated.effect, note)
    return _prose(f"{_VERDICTS[mutated.verdict].symbol} {mutated.measured}{f' ({note})' if note else ''}")


def _differences(result: Result) -> dict[str, list[Block]]:
    """A row for each reason: twenty cells that share a reason to the last number have one row."""
    groups: dict[tuple[object, ...], list[Judgement]] = {}
    for judgement in words.differences(result.judgements):
        claim = judgement.claim
        key = (claim.cell[0] if claim.cell else claim.id, judgement.verdict, words.reason(judgement))
        groups.setdefault(key, []).append(judgement)
    if not groups:
        return {"Differences": [Paragraph("Nowhere: every claim that was run agrees.")]}
    rows: list[list[Cell]] = []
    for group in groups.values():
        first = group[0]
        verdict = _symbol_and_name(first.verdict)
        rows.append([first.claim.where, _claims_of_group(group), verdict, words.reason(first)])
    backed = Counter(judgement.backing for group in groups.values() for judgement in group)
    reasons = "; ".join(
        f"{counted(backed[backing], 'reason')} {text}" for backing, text in _BACKING.items() if backing in backed
    )
    table = _table(("where", "claims", "verdicts", "why"), rows, "prose")
    return {"Differences and their reasons": [*table, Paragraph(f"{reasons}.")]}


def _claims_of_group(group: Sequence[Judgement]) -> str:
    """The claims that share a reason."""
    first = group[0].claim
    if first.cell is None:
        rule = "" if first.agrees is None else f"rule: {first.in_words or first.agrees.text}"
        return f"{first.text}: {rule or f'published {words.published(first)}'}; ours {words.ours(group[0])}"
    cells = []
    for judgement in group:
        measure = words.measured(judgement)
        mine = NOTHING if measure is None else Measure.exact(measure.value.mean).number(judgement.claim.digits)
        cells.append(f"{words.bare(judgement.claim)} / {mine}")
    rows, columns = (dict.fromkeys(j.claim.cell[index] for j in group if j.claim.cell) for index in (1, 2))
    count = f"{len(group)} cells: " if len(group) > 1 else ""
    return f"{count}{', '.join(columns)} of {'; '.join(rows)} (published / ours: {', '.join(cells)})"


# --- bookkeeping --------------------------------------------------------------------------------


def _behind(result: Result) -> Iterator[Block]:
    seeds = result.plan.seeds
    run = {
        "scope": "quick" if result.plan.quick else "full",
        "seeds": f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0]),
        "jobs": str(result.jobs),
        "time": f"{result.took_s:.1f} s",
        **result.versions,
        **({"command": result.command} if result.command else {}),
    }
    yield Pairs(list(run.items()))
    yield from (Paragraph(note, "soft") for note in (*_notes_on_numbers(len(seeds)), *result.outcome.notes))
    claims = [Row(_claim(judgement), below=words.reason(judgement)) for judgement in result.judgements]
    columns = [Column(head, left=True) for head in words.HEADS[:-1]]
    yield _folded("Every claim", [Table(columns, claims, below=words.HEADS[-1])])
    meanings: _Rows = [[Phrase(str(verdict), meaning.tone), meaning.text] for verdict, meaning in _VERDICTS.items()]
    yield _folded("What verdicts mean", _table(("verdict", "means"), meanings))
    firm = {judgement.claim.id for judgement, _ in result.firm}
    rules = [[*_rules(judgement.claim), _turned(judgement, firm)] for judgement in result.judgements]
    columns_of_rules = (
        "claim",
        "agrees",
        "same trend",
        "rule that backs the reason",
        "fails with another number of ours",
    )
    yield _folded("Tolerances and rules", _table(columns_of_rules, rules, "prose"))
    measures: _Rows = [
        [name, measure.show(), measure.value.count, _prose(measure.about)]
        for name, measure in result.outcome.measures.items()
    ]
    heads = ("measure", "value", "values", "meaning")
    yield _folded("Everything that was measured", _table(heads, measures), bulk=True)
    digests: _Rows = [[name, Phrase(digest, "code")] for name, digest in result.outcome.digests.items()]
    if digests:
        yield _folded("Digests", _table(("run", "digest"), digests), bulk=True)


def _notes_on_numbers(seeds: int) -> list[str]:
    """Notes on means and intervals for the reader."""
    sure = "Verdicts are computed from these means; “not sure”: another value inside the interval changes the verdict."
    if seeds == 1:
        return ["One seed: there are no intervals, and it is unknown how much a number varies between seeds."]
    means = "Our numbers are means over seeds ± the half-width of their 95 % interval (Student's t)"
    few = ", which of two seeds is 12.7 standard errors. Run --seeds 5 or --full" if seeds == _FEW else ""
    return [f"{means}{few}.", sure]


def _claim(judgement: Judgement) -> list[Cell]:
    where, text, published, ours, deviation, verdict, _ = words.row(judgement)
    return [where, *map(_prose, (text, published, ours)), deviation, Phrase(verdict, _VERDICTS[judgement.verdict].tone)]


def _rules(claim: Claim) -> list[Cell]:
    """The tolerance and the rules by which a claim was judged."""
    agrees = words.published(claim) if claim.agrees else words.tolerance(claim)
    trend = f"{claim.trend_in_words or 'rule'}: {claim.trend.text}" if claim.trend else ""
    return [claim.id, agrees, trend, claim.because.text if claim.because else ""]


def _turned(judgement: Judgement, firm: Collection[str]) -> str:
    """Whether some number of ours would make the rules that hold fail, and if none does, why."""
    if judgement.verdict is Verdict.NOT_RUN:
        return NOTHING
    return judgement.claim.unturned or "no" if judgement.claim.id in firm else "yes"


# --- pieces ---------------------------------------------------------------------------------------


def _prose(text: str) -> Phrase:
    return Phrase(text, "words")


def _picture(figure: Drawing) -> Picture:
    name = f"{figure.where}: {figure.title}"
    caption = Phrase(f"{name}. ", "strong"), figure.caption
    return Picture(figure.svg, caption, name, "svg+xml", f"figures/{file_name(figure.name)}.png")


def _table(heads: Sequence[str], rows: _Rows, kind: Literal["", "prose"] = "") -> list[Table]:
    """A table of words, in a list; an empty list if it has no rows."""
    return [Table([Column(head, left=True) for head in heads], list(map(Row, rows)), kind)] if rows else []


def _folded(title: str, tables: Sequence[Table], *, bulk: bool = False) -> Details:
    return Details(f"{title} ({sum(len(table.rows) for table in tables)})", tables, bulk=bulk)


def _table_block(table: Measured) -> Table:
    tones = {str(verdict): meaning.tone for verdict, meaning in _VERDICTS.items()}
    textual = [any(isinstance(row[index], str) for row in table.rows) for index in range(len(table.columns))]
    rows = [
        Row([Phrase(text, tones[text]) if text in tones else text for text in map(cell_text, row)])
        for row in table.rows
    ]
    return Table([Column(Phrase(head), left=text) for head, text in zip(table.columns, textual, strict=True)], rows)


def cell_text(cell: CellValue) -> str:
    """A cell of a table as text for the reader.

    >>> cell_text(Interval(2.0, 0.25, 5)), cell_text(1234567), cell_text(0.98765), cell_text(None)
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
