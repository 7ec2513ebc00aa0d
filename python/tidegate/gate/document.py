"""The document of a check, and its verdicts as cases of a test report."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from tidegate.output.document import Cell, Column, Document, Paragraph, Phrase, Row, Table, definitions
from tidegate.output.junit import Case
from tidegate.results.remarks import Remarks
from tidegate.suite.tables import file_of, line_of

if TYPE_CHECKING:
    from tidegate.gate.checking import Outcome
    from tidegate.gate.judging import Verdict

_PHRASES = {
    "worse": Phrase("worse", "bad"),
    "undecided": Phrase("undecided", "odd"),
    "better": Phrase("better", "good"),
    "fine": Phrase("within"),
}


def document(outcome: Outcome) -> Document:
    """The document of a check; rows within their limits are details."""
    heads = ("", "case", "metric", "before", "now", "unit", "change", "at least", "limit", "seeds")
    columns = [Column(head, left=head in {"", "case", "metric", "unit"}) for head in heads]
    rows = [_verdict_row(verdict, kind) for kind in _PHRASES for verdict in outcome.verdicts if _kind(verdict) == kind]
    cases = {verdict.case for verdict in outcome.verdicts} | set(outcome.failed)
    against = "" if outcome.controller == outcome.against else f" of {outcome.against}"
    return Document(
        f"{outcome.controller} against the baseline{against}: {outcome.suite}",
        [Table(columns, rows, stub=3), Paragraph(outcome.summary)],
        [definitions(verdict.rule.metric for verdict in outcome.verdicts)],
        [f"{len(outcome.verdicts)} questions in {len(cases)} cases", f"{outcome.runs} runs"],
        failures=list(outcome.failed.items()),
        remarks=Remarks([f"{case} was not run: {why}" for case, why in outcome.not_run.items()]),
    )


def _kind(verdict: Verdict) -> str:
    return "better" if verdict.better else verdict.state


def _verdict_row(verdict: Verdict, kind: str) -> Row:
    metric = verdict.rule.metric
    cells: list[Cell] = [
        _PHRASES[kind],
        verdict.case,
        _quantity(verdict),
        metric.show(verdict.before),
        metric.show(verdict.now),
        metric.unit,
        _change(verdict),
        _bound(verdict) if kind == "worse" else "",
        _limit(verdict) if kind != "better" else "",
        str(verdict.seeds),
    ]
    return Row(cells, detail=kind == "fine")


def _quantity(verdict: Verdict) -> str:
    """The quantity of a rule as a label: `one-way delay, 95th percentile`, `receive rate of tcp`."""
    suffixes = {"worst": "", "mean": ", mean of all calls", "sum": ", sum of all calls"}
    return f"{verdict.rule.metric.label}{suffixes.get(verdict.rule.scope, f' of {verdict.rule.scope}')}"


def _change(verdict: Verdict) -> str:
    """The change of the mean, in the metric's unit and in per cent of the baseline."""
    if not math.isfinite(verdict.now):
        return "no value now"
    lost = f", {verdict.lost} seeds without a value" if verdict.lost else ""
    return f"{_signed_change(verdict, verdict.now - verdict.before)}{lost}"


def _bound(verdict: Verdict) -> str:
    """The lower bound of the change for the worse."""
    return _signed_change(verdict, verdict.rule.sign * verdict.bound)


def _signed_change(verdict: Verdict, amount: float) -> str:
    share = f" ({amount / abs(verdict.before):+.1%})" if verdict.before and math.isfinite(amount) else ""
    return f"{verdict.rule.metric.show(amount, signed=True)}{share}"


def _limit(verdict: Verdict) -> str:
    """The limits of the verdict's rule: `+5% and +10ms`."""
    return " and ".join(limit.bound_text for limit in verdict.rule.limits)


# --- cases of a test report -----------------------------------------------------------------------


def cases(outcome: Outcome, *, strict: bool) -> Iterator[Case]:
    """A case for each rule in each case of the suite, and for each case that failed.

    The time of a case's runs is divided among its rules.
    """
    place: dict[str, Any] = {"file": file_of(outcome.controller), "line": line_of(outcome.controller)}
    rules = Counter(verdict.case for verdict in outcome.verdicts)
    for verdict in outcome.verdicts:
        state: Literal["passed", "failure", "skipped"] = "passed"
        word = title = message = text = ""
        if verdict.state != "fine":
            state = "failure" if strict or verdict.state == "worse" else "skipped"
            word, message = verdict.state, _sentence(verdict)
            title = f"{verdict.case} {'became worse' if word == 'worse' else 'is undecided'}"
            text = "\n".join(_lines(outcome, verdict))
        seconds = outcome.seconds.get(verdict.case)
        took = None if seconds is None else seconds / rules[verdict.case]
        group = f"{outcome.suite}.{verdict.case}"
        yield Case(group, verdict.rule.text, state, message, text, verdict=word, title=title, seconds=took, **place)
    for name, why in outcome.failed.items():
        first = why.partition("\n")[0]
        text = "\n".join([why, *_again(outcome, name)])
        took = outcome.seconds.get(name)
        group = f"{outcome.suite}.{name}"
        yield Case(group, "runs", "error", first, text, title=f"{name} failed", seconds=took, **place)


def _lines(outcome: Outcome, verdict: Verdict) -> Iterator[str]:
    """A verdict at length."""
    metric = verdict.rule.metric
    yield f"rule: {verdict.rule.text}"
    yield f"case: {verdict.case} of {outcome.suite}"
    yield f"{_quantity(verdict)}, mean of {verdict.seeds} seeds:"
    yield f"  before ({outcome.against}): {metric.show(verdict.before)} {metric.unit}".rstrip()
    yield f"  now ({outcome.controller}): {metric.show(verdict.now)} {metric.unit}".rstrip()
    yield f"  change: {_change(verdict)}"
    if verdict.state == "worse":
        yield f"  at least, for sure: {_bound(verdict)}"
    yield f"  limit: {_limit(verdict)}"
    if verdict.state == "worse" and outcome.change is not None and outcome.change.case == verdict.case:
        yield from outcome.change.lines
    yield from _again(outcome, verdict.case)


def _again(outcome: Outcome, case: str) -> Iterator[str]:
    if outcome.again:
        yield f"again: {outcome.again} --cases {shlex.quote(case)}"


def _sentence(verdict: Verdict) -> str:
    """A verdict in one line: quantity, values before and now, change, bound, limit and seeds."""
    metric = verdict.rule.metric
    values = f"{metric.show(verdict.before)} to {metric.show(verdict.now)} {metric.unit}".strip()
    sure = f", at least {_bound(verdict)}" if verdict.state == "worse" else ""
    return f"{_quantity(verdict)}: {values}, {_change(verdict)}{sure}; limit {_limit(verdict)}; {verdict.seeds} seeds"
