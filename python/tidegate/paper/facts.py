"""What page and README say about a result beside its claims."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tidegate.paper import words
from tidegate.paper._model import Kind
from tidegate.paper.measures import SHOWN_FROM
from tidegate.paper.verdicts import Backing, Judgement, Verdict

if TYPE_CHECKING:
    from tidegate.paper.result import Result

MEANING = {
    Verdict.AGREES: "within the stated tolerance, or the rule made of the words holds",
    Verdict.TREND: "outside, but the weaker rule that is shown with it holds",
    Verdict.DIFFERS: "neither",
    Verdict.NOT_RUN: "measured by --full only, or with what is not installed here",
}


def origin(result: Result) -> str:
    """Who wrote the document, when, what it is and where it can be found."""
    paper = result.document.paper
    return f"{', '.join(paper.authors)}, {paper.year}. {paper.kind}. {paper.source}"


def what_was_run(result: Result) -> list[tuple[str, str]]:
    """Names and values."""
    seeds = result.plan.seeds
    found = [
        ("scope", "quick" if result.plan.quick else "full"),
        ("seeds", f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])),
        ("pieces of work", str(result.jobs)),
        ("time", f"{result.took_s:.1f} s"),
        *result.versions.items(),
    ]
    return [*found, ("command", result.command)] if result.command else found


def notes(result: Result) -> list[str]:
    """What a reader has to know before the numbers."""
    found = [
        "Numbers of ours are means over seeds ± the half-width of their 95 % interval (Student's t).",
        "Verdicts are computed from these means; those “not sure” would change for some value inside the intervals.",
    ]
    if len(result.plan.seeds) == 1:
        found = ["One seed: there are no intervals, and nothing is known of how far luck moves a number."]
    elif len(result.plan.seeds) < SHOWN_FROM:
        found[0] = (
            "Two seeds: numbers of ours are their means, whose intervals would say nothing; take --seeds 5 or --full."
        )
    return [*found, *result.outcome.notes]


def absent(result: Result) -> list[str]:
    """What must be installed for the claims that were not run, and how many those are."""
    reasons = Counter(one.reason for one in result.judgements if one.verdict is Verdict.NOT_RUN and one.reason)
    return [f"Not run, {count} {'claim' if count == 1 else 'claims'}: {reason}." for reason, count in reasons.items()]


KINDS = {
    Kind.RESULT: "published results",
    Kind.FITTED: "published results, in sample",
    Kind.OWN: "own claims",
    Kind.SETTING: "settings read back",
}
"""What the claims of each kind are called, where they are counted."""

KIND_MEANING = {
    Kind.RESULT: "what the document found",
    Kind.FITTED: "the same, but settings that it does not state were chosen so that these numbers come out",
    Kind.OWN: "ours; the document does not say it",
    Kind.SETTING: "stated settings, read back from what was run: they show what was run, and no result",
}

_SHOWN = {Verdict.AGREES: "agree", Verdict.TREND: "same trend", Verdict.DIFFERS: "differ", Verdict.NOT_RUN: "not run"}

SUMMARY = ("claims", "all", *_SHOWN.values(), "turn", "what they are")
"""Heads of the table of counts; `turn`: how many verdicts are other ones without the document's mechanism."""


def summary(result: Result) -> list[list[str]]:
    """How many claims of each kind there are, how many of them have each verdict, and how many of these turn."""
    rows = []
    for kind, counts in result.counts_by_kind.items():
        turned = "?" if result.mutations is None else str(result.turned(_of(result, kind)))
        known = (str(counts.get(one, 0)) for one in _SHOWN)
        rows.append([KINDS[kind], str(sum(counts.values())), *known, turned, KIND_MEANING[kind]])
    return rows


def _of(result: Result, kind: Kind) -> list[Judgement]:
    return [one for one in result.judgements if one.claim.kind is kind]


def line(result: Result) -> str:
    """The same in a sentence."""
    parts = []
    for kind, counts in result.counts_by_kind.items():
        said = ", ".join(f"{counts[one]} {words.VERBS[one]}" for one in _SHOWN if counts.get(one))
        if result.mutations is not None:
            said += f" ({result.turned(_of(result, kind))} turn without the mechanism)"
        parts.append(f"{sum(counts.values())} {KINDS[kind]}: {said}")
    return "; ".join(parts) + "."


def reasons(result: Result) -> list[tuple[str, str, str]]:
    """What is known of the reasons of claims that do not agree."""
    known = [one.backing for one in result.judgements if one.verdict in {Verdict.DIFFERS, Verdict.TREND}]
    meaning = {
        Backing.CONFIRMED: "what backs the reason was measured, and holds",
        Backing.REFUTED: "what should back the reason was measured, and does not hold",
        Backing.UNCHECKED: "nothing measured backs the reason",
        Backing.UNKNOWN: "nobody knows why",
    }
    return [
        (f"{'reason ' if backing is not Backing.UNKNOWN else ''}{backing}", str(known.count(backing)), text)
        for backing, text in meaning.items()
        if backing in known
    ]


RULES = ("claim", "agrees", "same trend", "backs the reason")
"""Heads of the table of rules."""


def rules(result: Result) -> list[list[str]]:
    """By what each claim was judged."""
    rows = []
    for one in result.judgements:
        claim = one.claim
        agrees = claim.agrees.text if claim.agrees else words.tolerance(claim)
        others = [rule.text if rule else "" for rule in (claim.trend, claim.because)]
        rows.append([claim.id, agrees, *others])
    return rows
