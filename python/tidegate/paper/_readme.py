"""The result as Markdown: what the page says, for places that show no HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate._files import file_name
from tidegate.paper import _opening as opening
from tidegate.paper import _tables as tables
from tidegate.paper import facts, words

if TYPE_CHECKING:
    from tidegate.paper.result import Result


def render(result: Result) -> str:
    """The whole text."""
    paper = result.document.paper
    parts = [
        f"# {tables.plain(paper.title)}",
        tables.plain(facts.origin(result)),
        tables.plain(paper.about),
        "## In short",
        "\n".join(f"* {tables.plain(one)}" for one in opening.sentences(result)),
        tables.markdown(opening.CONTRADICTED, stated) if (stated := opening.contradicted(result)) else "",
        tables.markdown(facts.SUMMARY, facts.summary(result)),
        *(tables.plain(note) for note in facts.absent(result)),
    ]
    if rows := opening.fitted(result):
        parts += ["## What was fitted", tables.markdown(opening.FITTED, rows)]
    if worst := opening.groups(words.differences(result.judgements)):
        rows = [[one[0].claim.where, words.several(one), str(one[0].verdict), words.reason(one[0])] for one in worst]
        parts += ["## Where ours differs, and why", tables.markdown(opening.REASONS, rows)]
    parts += ["## Every claim", tables.markdown(words.HEADS, map(words.row, result.judgements))]
    if result.outcome.figures:
        parts.append("## Figures")
    for one in result.outcome.figures:
        parts.append(f"### {tables.plain(f'{one.where}: {one.title}')}")
        parts.append(f"![{tables.plain(one.title)}](figures/{file_name(one.name)}.png)")
        parts.append(tables.plain(one.caption))
    if paper.unstated:
        rows = [[one.what, one.chosen, one.why] for one in paper.unstated]
        parts += ["## What the document leaves unstated", tables.markdown(("what", "chosen", "why"), rows)]
    if result.tables:
        parts.append("## Tables")
    for table in result.tables:
        rows = [[tables.words(cell) for cell in row] for row in table.rows]
        parts += [f"### {tables.plain(table.title)}", tables.markdown(table.columns, rows)]
    parts += ["## What was run", tables.markdown(("", ""), facts.what_was_run(result))]
    parts += [tables.plain(note) for note in facts.notes(result)]
    parts.append(tables.markdown(("verdict", "means"), [[str(one), text] for one, text in facts.MEANING.items()]))
    parts += ["## Tolerances and rules", tables.markdown(facts.RULES, facts.rules(result))]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"
