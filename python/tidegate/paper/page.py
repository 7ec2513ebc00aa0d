"""The page: each published number beside ours, in one HTML file that asks the network for nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING

from tidegate.paper import facts, tables, words
from tidegate.paper.verdicts import Judgement, Verdict
from tidegate.report.markup import Content, Markup, join, tag

if TYPE_CHECKING:
    from tidegate.paper.experiment import Table
    from tidegate.paper.result import Result

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_CLASS = {
    Verdict.AGREES: "agrees",
    Verdict.TREND: "trend",
    Verdict.DIFFERS: "differs",
    Verdict.NOT_RUN: "soft",
}


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
        tag("style", Markup(_asset("tidegate.report", "report.css"))),
        tag("style", Markup(_asset("tidegate.paper", "paper.css"))),
    ]
    body = [
        tag(
            "header",
            tag("h1", paper.title),
            tag("p", facts.origin(result), class_="soft"),
            tag("p", paper.about),
        ),
        _run(result),
        _summary(result),
        _differences(result),
        _section("Every claim", _claims(result.judgements)),
        _figures(result, drawn),
        _unstated(result),
        _tables(result),
        _behind(result),
    ]
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', tag('main', *body)), lang='en')}\n"


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


def _section(title: str, *contents: Content) -> Markup:
    return tag("section", tag("h2", title), *contents)


def _grid(heads: Sequence[str], rows: Iterable[Sequence[Content]]) -> Markup:
    """A table, wide ones with a bar to scroll by; cells that are elements already stay what they are."""
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    lines = [tag("tr", *(one if isinstance(one, Markup) else tag("td", one) for one in row)) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="scroll")


def _words(text: str) -> Markup:
    return tag("td", text, class_="words")


def _run(result: Result) -> Markup:
    pairs = [part for name, value in facts.what_was_run(result) for part in (tag("dt", name), tag("dd", value))]
    return _section("What was run", tag("dl", *pairs), *(tag("p", note, class_="soft") for note in facts.notes(result)))


def _summary(result: Result) -> Markup:
    counts = [[tag("td", one) for one in row[:-1]] + [_words(row[-1])] for row in facts.summary(result)]
    meanings = [
        [tag("td", tag("span", str(verdict), class_=_CLASS[verdict])), _words(text)]
        for verdict, text in facts.MEANING.items()
    ]
    reasons = [[tag("td", name), tag("td", count), _words(text)] for name, count, text in facts.reasons(result)]
    return _section(
        "Verdicts",
        tag("p", facts.line(result)),
        _grid(facts.SUMMARY, counts),
        _grid(("verdict", "means"), meanings),
        _grid(("of those that do not agree", "claims", "which means"), reasons),
    )


def _differences(result: Result) -> Markup:
    worst = words.differences(result.judgements)
    if not worst:
        return _section("Where ours differs", tag("p", "Nowhere: every claim that was run agrees."))
    return _section("Where ours differs", _claims(worst))


def _claims(judgements: Iterable[Judgement]) -> Markup:
    """A row a claim; a reason has the whole width of a row of its own below."""
    heads = words.HEADS[:-1]
    lines = []
    for one in judgements:
        where, what, published, ours, deviation, verdict, reason = words.row(one)
        said = tag("span", what, title=words.tolerance(one.claim) or None)
        cells = [
            tag("td", where),
            tag("td", said, class_="words"),
            _words(published),
            _words(ours),
            tag("td", deviation),
            tag("td", tag("span", verdict, class_=_CLASS[one.verdict])),
        ]
        lines.append(tag("tr", *cells))
        if reason:
            lines.append(tag("tr", tag("td", reason, colspan=str(len(heads)), class_="why")))
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="scroll")


def _figures(result: Result, drawn: Mapping[str, bytes]) -> Markup:
    if not result.outcome.figures:
        return Markup("")
    shown = []
    for one in result.outcome.figures:
        data = base64.b64encode(drawn[one.name]).decode("ascii")
        picture = tag("img", src=f"data:image/svg+xml;base64,{data}", alt=f"{one.where}: {one.title}")
        caption = tag("figcaption", tag("b", f"{one.where}: {one.title}. "), one.caption)
        shown.append(tag("figure", picture, caption, class_="drawing"))
    return _section("Figures", tag("div", *shown, class_="pair"))


def _unstated(result: Result) -> Markup:
    rows = [[_words(one.what), _words(one.chosen), _words(one.why)] for one in result.document.paper.unstated]
    if not rows:
        return Markup("")
    return _section("What the document leaves unstated", _grid(("what", "chosen", "why"), rows))


def _tables(result: Result) -> Markup:
    shown = [tag("details", tag("summary", one.title), _table(one)) for one in result.tables]
    return _section("Tables", *shown) if shown else Markup("")


def _table(table: Table) -> Markup:
    shown = {str(verdict): _CLASS[verdict] for verdict in Verdict}
    rows = [
        [tag("td", tag("span", text, class_=shown.get(text))) for text in map(tables.words, row)] for row in table.rows
    ]
    return _grid(table.columns, rows)


def _behind(result: Result) -> Markup:
    measures = [
        [name, one.show(), str(one.value.count), _words(one.about)] for name, one in result.outcome.measures.items()
    ]
    parts = [
        _folded("Tolerances and rules", facts.RULES, [[_words(cell) for cell in row] for row in facts.rules(result)]),
        _folded("Everything that was measured", ("measure", "value", "values", "what it is"), measures),
    ]
    if result.outcome.digests:
        digests = [[name, tag("td", tag("code", digest))] for name, digest in result.outcome.digests.items()]
        parts.append(_folded("Digests", ("run", "digest"), digests))
    return _section("Behind the verdicts", join(parts))


def _folded(title: str, heads: Sequence[str], rows: Sequence[Sequence[Content]]) -> Markup:
    return tag("details", tag("summary", f"{title} ({len(rows)})"), _grid(heads, rows))
