"""Verdicts on claims, computed from the published and the measured numbers and never set by hand."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidegate.errors import InputError
from tidegate.paper.claims import Claim, Phrase
from tidegate.paper.measures import Measure
from tidegate.query.intervals import Expression, Truth, Undefined, at_most, lookup
from tidegate.results.stats import Interval


class Verdict(enum.StrEnum):
    """Verdict on a claim."""

    AGREES = "agrees"
    """The measured number is within the tolerance, or the statement's rule holds."""
    TREND = "same trend"
    """The claim does not agree, but the rule of its trend holds."""
    DIFFERS = "differs"
    OPEN = "cannot be told"
    """A setting that the document does not state decides whether the claim agrees."""
    NOT_RUN = "not run"
    """A quick run does not measure the claim, or something that it needs is not installed."""


class Backing(enum.StrEnum):
    """State of the evidence for the reason why a claim does not agree."""

    CONFIRMED = "confirmed"
    """The rule that backs the reason holds."""
    REFUTED = "not confirmed"
    """The rule that backs the reason does not hold."""
    UNCHECKED = "not checked"
    """No rule backs the reason."""
    UNKNOWN = "no reason known"
    NEEDLESS = ""
    """The claim agrees, or was not run."""


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict."""

    claim: Claim
    verdict: Verdict
    ours: Mapping[str, Measure]
    """The measures that decided the verdict, by name."""
    deviation: float | None = None
    """Our number less the published one, in its unit; for a range, less its nearer end."""
    sure: bool | None = None
    """Whether every value inside the intervals gives the same verdict; `None` if the claim was not judged."""
    reason: str = ""
    """Why it differs, or what to know if it agrees, with the measured numbers filled in; or what must be installed."""
    backing: Backing = Backing.NEEDLESS
    undefined: str = ""
    """Why a rule has no result, if one has none."""

    @property
    def relative(self) -> float | None:
        """The deviation as a share of the published number."""
        published = self.claim.published
        if self.deviation is None or not isinstance(published, int | float) or published == 0:
            return None
        share = self.deviation / abs(published)
        return share if math.isfinite(share) else None

    @property
    def unexplained(self) -> bool:
        """Whether the claim differs and the paper's file gives no reason."""
        return self.verdict is Verdict.DIFFERS and self.backing is Backing.UNKNOWN


def judge(claim: Claim, measures: Mapping[str, Measure], *, quick: bool) -> Judgement:
    """Judges a claim.

    Raises:
        InputError: when the experiment lacks a measure that the claim names, or has it in another unit.
    """
    if quick and not claim.quick:
        return Judgement(claim, Verdict.NOT_RUN, {})
    if lacks := _lacks(claim, measures):
        return Judgement(claim, Verdict.NOT_RUN, {}, reason=lacks)
    values = {name: measure.value for name, measure in measures.items()}
    truth, deviation, undefined, used = _decide(claim, values, measures)
    opened = None if claim.open is None else _truth_of(claim.open, values)[0]
    untold = opened if opened is not None and opened.holds else None
    if truth.holds and untold is None:
        note = "" if claim.note is None else _filled(claim.note, values, measures)
        return Judgement(claim, Verdict.AGREES, used, deviation, truth.sure, note)
    trend, no_trend = (None, "") if claim.trend is None else _truth_of(claim.trend, values)
    if untold is not None:
        verdict, sure = Verdict.OPEN, untold.sure
    else:
        verdict = Verdict.TREND if trend is not None and trend.holds else Verdict.DIFFERS
        sure = truth.sure and (trend is None or trend.sure)
    backing = Backing.UNKNOWN if claim.reason is None else Backing.UNCHECKED
    no_backing = ""
    if claim.because is not None:
        backed, no_backing = _truth_of(claim.because, values)
        backing = Backing.CONFIRMED if backed.holds else Backing.REFUTED
    notes = "; ".join(dict.fromkeys(note for note in (undefined, no_trend, no_backing) if note))
    reason = "" if claim.reason is None else _filled(claim.reason, values, measures)
    return Judgement(claim, verdict, used, deviation, sure, reason, backing, notes)


def _decide(
    claim: Claim, values: dict[str, Interval], measures: Mapping[str, Measure]
) -> tuple[Truth, float | None, str, dict[str, Measure]]:
    """Whether the claim agrees, its deviation, why the rule has no result (if so), and the measures used.

    For a number, adds `ours`, `published` and `sigma` to the values that the claim's rules can use.
    """
    if claim.measure is not None:
        value = lookup(values, claim.measure)
        unit = measures[claim.measure].unit
        if unit != claim.unit:
            raise InputError(
                f'the measure {claim.measure} has the unit "{unit}"; expected "{claim.unit}", as published'
            )
        values |= printed_values(claim) | {"ours": value}
        _check_names(claim, values)
        undefined = "" if value.count else f"{claim.measure} has no value"
        return *compare(claim, value), undefined, {claim.measure: measures[claim.measure]}
    assert claim.agrees is not None  # noqa: S101
    _check_names(claim, values)
    truth, undefined = _truth_of(claim.agrees, values)
    return truth, None, undefined, {name: measures[name] for name in claim.agrees.names}


def _names(claim: Claim) -> Iterator[str]:
    """Names of all measures in the claim's rules and reason, whether this judgement needs them or not."""
    phrases = [part for phrase in (claim.reason, claim.note) if phrase is not None for part in phrase.parts]
    for rule in (claim.agrees, claim.trend, claim.because, claim.open, *phrases):
        yield from rule.names if isinstance(rule, Expression) else ()


def _check_names(claim: Claim, values: Mapping[str, Interval]) -> None:
    """Checks that all measures that the claim names exist."""
    for name in _names(claim):
        lookup(values, name)


def _lacks(claim: Claim, measures: Mapping[str, Measure]) -> str:
    """Says what must be installed to judge the claim; empty if all its measures have been taken."""
    names = [*_names(claim), *([] if claim.measure is None else [claim.measure])]
    return "; ".join(
        dict.fromkeys(measure.lacks for name in names if (measure := measures.get(name)) and measure.lacks)
    )


def printed_values(claim: Claim) -> dict[str, Interval]:
    """Printed values that the rules of a number can use beside measures."""
    number = claim.published
    middle = sum(number) / 2 if isinstance(number, tuple) else number
    printed = {} if middle is None else {"published": Interval(middle, 0.0, 1)}
    return printed if claim.sigma is None else printed | {"sigma": Interval(claim.sigma, 0.0, 1)}


def compare(claim: Claim, ours: Interval) -> tuple[Truth, float | None]:
    """Whether our number is within the tolerance of the published one, and its deviation."""
    assert claim.published is not None  # noqa: S101
    assert claim.bound is not None  # noqa: S101
    low, high = claim.published if isinstance(claim.published, tuple) else (claim.published, claim.published)
    if not ours.count:
        return Truth(False, False, True), None
    lowest, highest = claim.bound.around(low)[0], claim.bound.around(high)[1]
    half = math.inf if ours.half is None else ours.half

    def inside(value: float) -> bool:
        return at_most(lowest, value) and at_most(value, highest)

    truth = Truth(
        inside(ours.mean),
        inside(ours.mean - half) and inside(ours.mean + half),
        at_most(ours.mean - half, highest) and at_most(lowest, ours.mean + half),
    )
    deviation = ours.mean - min(max(ours.mean, low), high)
    return truth, deviation if math.isfinite(deviation) else None


def _truth_of(rule: Expression, values: Mapping[str, Interval]) -> tuple[Truth, str]:
    try:
        return rule.truth(values), ""
    except Undefined as error:
        return Truth(False, False, True), str(error)


def filled(phrase: Phrase, measures: Mapping[str, Measure]) -> str:
    """Text of a phrase, with measured numbers in place of its braces."""
    return _filled(phrase, {name: measure.value for name, measure in measures.items()}, measures)


def _filled(phrase: Phrase, values: Mapping[str, Interval], measures: Mapping[str, Measure]) -> str:
    following = [*phrase.parts[1:], ""]
    return "".join(
        part if isinstance(part, str) else _part_text(part, after, values, measures)
        for part, after in zip(phrase.parts, following, strict=True)
    )


def _part_text(
    part: Expression, after: str | Expression, values: Mapping[str, Interval], measures: Mapping[str, Measure]
) -> str:
    if part.is_measure and part.names[0] in measures:
        measure = measures[part.names[0]]
        # "{rate} packets a second" has the unit already
        named = measure.unit and isinstance(after, str) and re.match(rf"\s{re.escape(measure.unit)}(?!\w)", after)
        return measure.number() if named else measure.show()
    try:
        if part.kind == "truth":
            return "yes" if part.truth(values).holds else "no"
        return Measure.exact(part.number(values).mean).show()
    except Undefined as error:
        return f"({error})"
