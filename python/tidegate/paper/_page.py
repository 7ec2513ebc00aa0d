"""The page: what holds and what does not first, then the document's own figure and tables, bookkeeping at the end.

One HTML file that asks the network for nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING

from tidegate.paper import _grids as grids
from tidegate.paper import _opening as opening
from tidegate.paper import _tables as tables
from tidegate.paper import facts, words
from tidegate.paper.figures import Drawing
from tidegate.paper.verdicts import Judgement, Verdict
from tidegate.show.report.markup import Content, Markup, join, tag

if TYPE_CHECKING:
    from tidegate.paper.measures import Table
    from tidegate.paper.result import Result

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render(result: Result, drawn: Mapping[str, bytes]) -> str:
    """The whole page.

    Args:
        result: What came of a paper.
        drawn: Its figures as SVG, by name.
    """
    paper = result.document.paper
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content="tidegate"),
        tag("title", f"{paper.title}, run again"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(_asset("tidegate.show.report", "report.css"))),
        tag("style", Markup(_asset("tidegate.paper", "paper.css"))),
    ]
    main = next((one for one in result.outcome.figures if one.name == paper.figure), None)
    others = [one for one in result.outcome.figures if one is not main]
    body = [
        tag("header", tag("h1", paper.title), tag("p", facts.origin(result), class_="soft"), tag("p", paper.about)),
        _short(result),
        Markup("") if main is None else _figure(main, drawn, "drawing main"),
        _fitted(result),
        _document(result),
        _differences(result),
        _figures(others, drawn),
        _unstated(result),
        _tables(result),
        _behind(result),
    ]
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', tag('main', *body)), lang='en')}\n"


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


def _section(title: str, *contents: Content) -> Markup:
    return tag("section", tag("h2", title), *contents)


def _words(text: str) -> Markup:
    return tag("td", text, class_="words")


def _short(result: Result) -> Markup:
    counts = [[*(tag("td", one) for one in row[:-1]), _words(row[-1])] for row in facts.summary(result)]
    signs = [
        tag("span", f"{words.SIGN[verdict]} {verdict}", class_=grids.CLASS[verdict], title=text)
        for verdict, text in facts.MEANING.items()
    ]
    ring = tag("span", f"{words.RING} stays what it is without the document's mechanism", class_="soft")
    stated = [[_words(cell) for cell in row] for row in opening.contradicted(result)]
    return _section(
        "In short",
        tag("ul", *(tag("li", one) for one in opening.sentences(result))),
        grids.grid(opening.CONTRADICTED, stated) if stated else Markup(""),
        grids.grid(facts.SUMMARY, counts),
        tag("p", *(part for sign in (*signs, ring) for part in (sign, " ")), class_="legend"),
        *(tag("p", note, class_="soft") for note in facts.absent(result)),
    )


def _fitted(result: Result) -> Markup:
    rows = [[_words(cell) for cell in row] for row in opening.fitted(result)]
    return _section("What was fitted", grids.grid(opening.FITTED, rows)) if rows else Markup("")


def _document(result: Result) -> Markup:
    """Its tables in their own form, then what it says in words."""
    said = [one for one in result.judgements if one.claim.cell is None]
    return _section("The document beside ours", *grids.published_tables(result), _statements(result, said))


def _statements(result: Result, judgements: Sequence[Judgement]) -> Markup:
    """A row a statement or number of the text; what the same is without the mechanism stands beside it."""
    if not judgements:
        return Markup("")
    known = result.mutations
    names = [] if known is None else list(known.about)
    rows = []
    for one in judgements:
        cells: list[Content] = [
            tag("td", one.claim.where),
            tag("td", one.claim.text, class_="words", title=words.tolerance(one.claim) or None),
            _words(words.published(one.claim)),
            _words(words.ours(one)),
            tag("td", grids.badge(one, known)),
        ]
        rows.append([*cells, *(_words(words.without(one, name, known)) for name in names)])
    heads = ["where", "what", "published, or the rule", "ours", "verdict", *(f"without: {name}" for name in names)]
    return tag("div", tag("h3", "Numbers and statements of the text"), grids.grid(heads, rows), class_="document")


def _differences(result: Result) -> Markup:
    """A row a reason: twenty cells that share one have one row."""
    worst = words.differences(result.judgements)
    if not worst:
        return _section("Where ours differs", tag("p", "Nowhere: every claim that was run agrees."))
    rows = []
    for group in opening.groups(worst):
        first = group[0]
        cells: list[Content] = [tag("td", first.claim.where), _words(words.several(group))]
        rows.append([*cells, tag("td", grids.badge(first, None)), _words(words.reason(first))])
    reasons = [f"{count} {name} ({text})" for name, count, text in facts.reasons(result)]
    return _section(
        "Where ours differs, and why", grids.grid(opening.REASONS, rows), tag("p", "; ".join(reasons) + ".")
    )


def _claims(judgements: Iterable[Judgement]) -> Markup:
    """A row a claim; a reason has the whole width of a row of its own below."""
    heads = words.HEADS[:-1]
    lines = []
    for one in judgements:
        where, what, published, ours, deviation, verdict, reason = words.row(one)
        cells = [
            tag("td", where),
            tag("td", what, class_="words"),
            _words(published),
            _words(ours),
            tag("td", deviation),
            tag("td", tag("span", verdict, class_=grids.CLASS[one.verdict])),
        ]
        lines.append(tag("tr", *cells))
        if reason:
            lines.append(tag("tr", tag("td", reason, colspan=str(len(heads)), class_="why")))
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="scroll")


def _figure(one: Drawing, drawn: Mapping[str, bytes], kind: str = "drawing") -> Markup:
    data = base64.b64encode(drawn[one.name]).decode("ascii")
    picture = tag("img", src=f"data:image/svg+xml;base64,{data}", alt=f"{one.where}: {one.title}")
    caption = tag("figcaption", tag("b", f"{one.where}: {one.title}. "), one.caption)
    return tag("figure", picture, caption, class_=kind)


def _figures(shown: Sequence[Drawing], drawn: Mapping[str, bytes]) -> Markup:
    if not shown:
        return Markup("")
    return _section("Figures", tag("div", *(_figure(one, drawn) for one in shown), class_="pair"))


def _unstated(result: Result) -> Markup:
    rows = [[_words(one.what), _words(one.chosen), _words(one.why)] for one in result.document.paper.unstated]
    if not rows:
        return Markup("")
    return _section("What the document leaves unstated", grids.grid(("what", "chosen", "why"), rows))


def _tables(result: Result) -> Markup:
    shown = [tag("details", tag("summary", one.title), _table(one)) for one in result.tables]
    return _section("Tables", *shown) if shown else Markup("")


def _table(table: Table) -> Markup:
    shown = {str(verdict): grids.CLASS[verdict] for verdict in Verdict}
    rows = [
        [tag("td", tag("span", text, class_=shown.get(text))) for text in map(tables.words, row)] for row in table.rows
    ]
    return grids.grid(table.columns, rows)


def _behind(result: Result) -> Markup:
    pairs = [part for name, value in facts.what_was_run(result) for part in (tag("dt", name), tag("dd", value))]
    measures = [
        [name, one.show(), str(one.value.count), _words(one.about)] for name, one in result.outcome.measures.items()
    ]
    meanings = [
        [tag("td", tag("span", str(verdict), class_=grids.CLASS[verdict])), _words(text)]
        for verdict, text in facts.MEANING.items()
    ]
    every = tag("details", tag("summary", f"Every claim ({len(result.judgements)})"), _claims(result.judgements))
    parts = [
        every,
        _folded("What verdicts mean", ("verdict", "means"), meanings),
        _folded("Tolerances and rules", facts.RULES, [[_words(cell) for cell in row] for row in facts.rules(result)]),
        _folded("Everything that was measured", ("measure", "value", "values", "what it is"), measures),
    ]
    if result.outcome.digests:
        digests = [[name, tag("td", tag("code", digest))] for name, digest in result.outcome.digests.items()]
        parts.append(_folded("Digests", ("run", "digest"), digests))
    notes = [tag("p", note, class_="soft") for note in facts.notes(result)]
    return _section("Behind the verdicts", tag("dl", *pairs), *notes, join(parts))


def _folded(title: str, heads: Sequence[str], rows: Sequence[Sequence[Content]]) -> Markup:
    return tag("details", tag("summary", f"{title} ({len(rows)})"), grids.grid(heads, rows))
