"""The page of a suite's result: the answer first, then every cell with what is behind it, bookkeeping at the end.

One HTML file that asks the network for nothing, of at most 5 MB: what would be more is thinned out, and the page says
so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.show.palette import looks
from tidegate.show.report import document
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.suite.page import _answer as answer
from tidegate.suite.page import _behind as behind
from tidegate.suite.page import _card as card
from tidegate.suite.page import _cells as cells
from tidegate.suite.page import _cloud as cloud
from tidegate.suite.scores import scores
from tidegate.wording import counted, listed

if TYPE_CHECKING:
    from tidegate.suite.result import SuiteResult

SIZE = 4_500_000
"""About the most bytes that a page has: it has to be mailed, and 5 MB is what issues and mails take."""

_HERE = "tidegate.suite.page"


def render(result: SuiteResult) -> str:
    """The whole page."""
    own = looks(result.controllers, _ran(result))
    every = scores(result)
    styles = [document.asset("report.css"), document.asset("suite.css", _HERE)]
    program = document.asset("suite.js", _HERE)
    before: list[Content] = [_head(result), *answer.sections(result, every, own)]
    scorecard = card.section(result, own)
    after: list[Content] = [
        cloud.section(result, every, own),
        answer.worst(result, every, own),
        *behind.sections(result),
        tag("dialog", id="cell", aria_label="A case and a controller"),
    ]
    # what can be seen at once has its place; what is behind the cells has the rest
    taken = sum(len(str(part).encode()) for part in (*before, scorecard, *after, *styles, program))
    data = cells.data(result, own, SIZE - taken)
    note = [tag("p", data["note"], class_="soft")] if data["note"] else []
    body = [*before, scorecard, *note, *after]
    scripts = [document.data(data), document.script(program)]
    return document.page(f"{result.suite.name}: {listed(result.controllers, most=6)}", body, styles, scripts)


def _ran(result: SuiteResult) -> Mapping[str, set[str]]:
    """The controllers that ran under each contender's name: names in tables do not tell whose class it is."""
    ran: dict[str, set[str]] = {}
    for _, name, _, row in result.runs():
        flows = (flow for flow in row["flows"] if flow["flow"] in row["contenders"])
        ran.setdefault(name, set()).update(str(flow["controller"]) for flow in flows if flow.get("controller"))
    return ran


def _head(result: SuiteResult) -> Markup:
    suite = result.suite
    ran = sum(not case.not_run for case in suite.cases)
    facts = [
        *([f"Source: {suite.table.source}"] if suite.table.source else []),
        counted(len(suite.cases), "case") + (f", {ran} of them run" if ran < len(suite.cases) else ""),
        counted(len(result.controllers), "controller"),
        result.seeds_shown,
    ]
    if version := dict(result.about.get("versions", {})).get("tidegate"):
        facts.append(f"tidegate {version}")
    about = [tag("p", suite.table.description)] if suite.table.description else []
    return tag("header", tag("h1", suite.name), *about, tag("p", " · ".join(facts), class_="soft"))
