"""The document of a check, and its answers as cases of a test report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from tidegate.output.document import Cell, Column, Document, Paragraph, Phrase, Row, Table, definitions
from tidegate.output.junit import Case
from tidegate.results.remarks import Remarks

if TYPE_CHECKING:
    from tidegate.gate.checking import Outcome
    from tidegate.gate.judging import Answer

_WORDS = {
    "worse": Phrase("worse", "bad"),
    "undecided": Phrase("undecided", "odd"),
    "better": Phrase("better", "good"),
    "fine": Phrase("within"),
}


def document(outcome: Outcome) -> Document:
    """What there is to say of a check; what is within its limits is a detail."""
    heads = ("", "case", "what", "before", "now", "unit", "change", "at least", "limit", "seeds")
    columns = [Column(head, left=head in {"", "case", "what", "unit"}) for head in heads]
    rows = [_row(answer, kind) for kind in _WORDS for answer in outcome.answers if _kind(answer) == kind]
    cases = {answer.case for answer in outcome.answers} | set(outcome.failed)
    against = "" if outcome.controller == outcome.against else f" of {outcome.against}"
    return Document(
        f"{outcome.controller} against the baseline{against}: {outcome.suite}",
        [Table(columns, rows, stub=3), Paragraph(outcome.verdict)],
        [definitions(answer.rule.metric for answer in outcome.answers)],
        [f"{len(outcome.answers)} questions in {len(cases)} cases", f"{outcome.runs} runs"],
        failures=list(outcome.failed.items()),
        remarks=Remarks([f"{case} was not run: {why}" for case, why in outcome.not_run.items()]),
    )


def _kind(answer: Answer) -> str:
    return "better" if answer.better else answer.state


def _row(answer: Answer, kind: str) -> Row:
    about = answer.rule.metric
    cells: list[Cell] = [
        _WORDS[kind],
        answer.case,
        _asked(answer),
        about.show(answer.before),
        about.show(answer.now),
        about.unit,
        _change(answer),
        _least(answer) if kind == "worse" else "",
        _limit(answer) if kind != "better" else "",
        str(answer.seeds),
    ]
    return Row(cells, detail=kind == "fine")


def _asked(answer: Answer) -> str:
    """What a rule looks at, for people: `one-way delay, 95th percentile`, `receive rate of tcp`."""
    of = {"worst": "", "mean": ", mean of all", "sum": ", sum of all"}
    return f"{answer.rule.metric.label}{of.get(answer.rule.of, f' of {answer.rule.of}')}"


def _change(answer: Answer) -> str:
    """The change of the mean, in the metric's unit and in per cent of the baseline."""
    if not math.isfinite(answer.now):
        return "no value any more"
    lost = f", {answer.lost} without a value" if answer.lost else ""
    return f"{_signed(answer, answer.now - answer.before)}{lost}"


def _least(answer: Answer) -> str:
    """By how much it is worse at least."""
    return _signed(answer, answer.rule.sign * answer.bound)


def _signed(answer: Answer, amount: float) -> str:
    share = f" ({amount / abs(answer.before):+.1%})" if answer.before and math.isfinite(amount) else ""
    return f"{answer.rule.metric.show(amount, signed=True)}{share}"


def _limit(answer: Answer) -> str:
    """The limits of its rule: `+5% and +10ms`."""
    return " and ".join(limit.shown for limit in answer.rule.limits)


# --- cases of a test report -----------------------------------------------------------------------


def cases(outcome: Outcome, *, strict: bool) -> Iterator[Case]:
    """A case for each rule in each case of the suite, and for each case that failed."""
    for answer in outcome.answers:
        state: Literal["passed", "failure", "skipped"] = "passed"
        word = title = message = ""
        if answer.state != "fine":
            state = "failure" if strict or answer.state == "worse" else "skipped"
            word, message = answer.state, _sentence(answer)
            title = f"{answer.case} {'became worse' if word == 'worse' else 'is undecided'}"
        group = f"{outcome.suite}.{answer.case}"
        yield Case(group, answer.rule.text, state, message, word=word, title=title)
    for name, why in outcome.failed.items():
        yield Case(f"{outcome.suite}.{name}", "runs", "error", why, title=f"{name} failed")


def _sentence(answer: Answer) -> str:
    """An answer in a line: what, from what to what, and how sure."""
    about = answer.rule.metric
    values = f"{about.show(answer.before)} to {about.show(answer.now)} {about.unit}".strip()
    sure = f", at least {_least(answer)}" if answer.state == "worse" else ""
    return f"{_asked(answer)}: {values}, {_change(answer)}{sure}; limit {_limit(answer)}; {answer.seeds} seeds"
