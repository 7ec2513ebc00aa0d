"""What a page opens with: what holds and what does not, by the verdicts, and what was chosen to get there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidegate.paper import facts
from tidegate.paper._model import Kind
from tidegate.paper.verdicts import Judgement, Verdict, filled

if TYPE_CHECKING:
    from tidegate.paper.result import Result

_QUOTED = 3  # statements of a kind that a sentence quotes: the last ones, where documents conclude
_LONGEST = 150  # characters of a quotation


def sentences(result: Result) -> list[str]:
    """How many claims hold, which statements do and which do not, and what the mechanism has to do with it."""
    said = [f"{facts.line(result)}"]
    statements = [one for one in result.judgements if one.claim.kind is Kind.RESULT and one.claim.cell is None]
    alone = len(result.plan.seeds) == 1  # then nothing is sure
    holds = [one for one in statements if one.verdict is Verdict.AGREES and (alone or one.sure is not False)]
    if result.mutations is None:
        said.append(_listed("Holds", holds, "no statement of the text"))
    else:
        needed = [one for one in holds if _turned(result, one)]
        said.append(_listed("Holds, and would not without the mechanism", needed, "no statement of the text"))
        said.append(_listed("Holds with and without it", [one for one in holds if one not in needed], "none"))
    fails = [one for one in statements if one.verdict is Verdict.DIFFERS]
    said.append(_listed("Does not hold", fails, "no statement of the text fails"))
    return said + without(result)


def _turned(result: Result, one: Judgement) -> bool:
    return result.mutations is not None and bool(result.mutations.turned_by(one.claim.id))


def _listed(head: str, found: Sequence[Judgement], nothing: str) -> str:
    if not found:
        return f"{head}: {nothing}."
    quoted = (
        f"“{textwrap.shorten(one.claim.text, _LONGEST, placeholder=' …')}” ({one.claim.where})"
        for one in found[-_QUOTED:]
    )
    more = len(found) - _QUOTED
    return f"{head}: {'; '.join(quoted)}{f'; and {more} more' if more > 0 else ''}."


def without(result: Result) -> list[str]:
    """What becomes of the verdicts where the mechanism is taken away."""
    known = result.mutations
    if known is None:
        return ["Nobody has tried which verdicts turn without the document's mechanism."]
    said = []
    seeds = "one seed" if known.seeds == 1 else f"{known.seeds} seeds"
    for name, about in known.about.items():
        every = [one.claim.id for one in result.judgements]
        found = [
            one.claim.id
            for one in result.judgements
            if one.claim.kind in {Kind.RESULT, Kind.FITTED} and one.verdict in {Verdict.AGREES, Verdict.TREND}
        ]
        (turned, judged), (of_held, held) = known.count(name, every), known.count(name, found)
        said.append(
            f"Without the mechanism ({name}: {about}; {seeds}) {turned} of {judged} verdicts turn, and "
            f"{of_held} of the {held} published numbers and statements that hold."
        )
    return said


def contradicted(result: Result) -> list[list[str]]:
    """Stated settings that were not run: what, stated, run, and what the stated one gives."""
    return [
        [one.what, one.stated, one.run, filled(phrase, result.outcome.measures)]
        for one, phrase in zip(result.document.paper.contradicted, result.document.gives, strict=True)
    ]


CONTRADICTED = ("stated, and not run", "stated", "run", "what the stated one gives")
"""Heads of that table."""

FITTED = ("chosen so that the numbers come out", "chosen", "why")
"""Heads of the table of what was fitted."""


def fitted(result: Result) -> list[list[str]]:
    """Unstated settings that were chosen by the document's own results."""
    return [[one.what, one.chosen, one.why] for one in result.document.paper.unstated if one.fitted]


REASONS = ("where", "claims", "verdicts", "why")
"""Heads of the table of reasons."""


def groups(judgements: Iterable[Judgement]) -> list[list[Judgement]]:
    """Those that share a reason and a verdict, each with the first one's at its head."""
    found: dict[tuple[object, ...], list[Judgement]] = {}
    for one in judgements:
        key = (one.claim.cell[0], one.claim.group, one.verdict, one.backing) if one.claim.cell else (one.claim.id,)
        found.setdefault(key, []).append(one)
    return list(found.values())
