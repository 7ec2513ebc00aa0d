"""The result as Markdown: what the page says, for places that show no HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.comparing import file_name
from tidegate.paper import facts, tables, words

if TYPE_CHECKING:
    from tidegate.paper.result import Result


def render(result: Result) -> str:
    """The whole text."""
    paper = result.document.paper
    parts = [
        f"# {tables.plain(paper.title)}",
        tables.plain(facts.origin(result)),
        tables.plain(paper.about),
        "## What was run",
        tables.markdown(("", ""), facts.what_was_run(result)),
        *(tables.plain(note) for note in facts.notes(result)),
        "## Verdicts",
        tables.plain(facts.line(result)),
        tables.markdown(facts.SUMMARY, facts.summary(result)),
        tables.markdown(("verdict", "means"), [[str(one), text] for one, text in facts.MEANING.items()]),
        tables.markdown(("of those that do not agree", "claims", "which means"), facts.reasons(result)),
    ]
    worst = words.differences(result.judgements)
    if worst:
        parts += ["## Where ours differs", tables.markdown(words.HEADS, map(words.row, worst))]
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
    parts += ["## Tolerances and rules", tables.markdown(facts.RULES, facts.rules(result))]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"
