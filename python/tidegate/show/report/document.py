"""One HTML file with all that it needs inside: it opens offline and asks the network for nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources

from tidegate.show.report.markup import Content, Markup, tag

#: Nothing may be fetched, from anywhere: what the page needs is in it.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, body: Sequence[Content], styles: Sequence[str], scripts: Sequence[Markup]) -> str:
    """The whole file.

    Args:
        title: What the browser's tab says.
        body: The sections.
        styles: Style sheets, as text.
        scripts: What [data][tidegate.show.report.document.data] and [script][tidegate.show.report.document.script]
            made.
    """
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content="tidegate"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        *(tag("style", Markup(sheet)) for sheet in styles),
    ]
    content = tag("body", tag("main", *body), *scripts)
    return f"<!doctype html>\n{tag('html', tag('head', *head), content, lang='en')}\n"


def asset(name: str, package: str = "tidegate.show.report") -> str:
    """The text of a file in a package's folder `assets`."""
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


def data(value: object) -> Markup:
    """What scripts find as JSON under the id `data`."""
    # a name may hold "</script>": no "<" may reach the parser of HTML
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Markup(text), type="application/json", id="data")


def script(code: str) -> Markup:
    """A program of the page."""
    return tag("script", Markup(code))
