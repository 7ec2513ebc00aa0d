"""Verdicts, computed and never written: what is published beside what was measured."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidegate.errors import InputError
from tidegate.paper.claims import Claim, Phrase
from tidegate.paper.measures import Measure
from tidegate.query.intervals import Expression, Truth, Undefined, at_most, lookup
from tidegate.results.stats import Interval


class Verdict(enum.StrEnum):
    """What a claim comes to."""

    AGREES = "agrees"
    """Ours is within the tolerance, or the statement's rule holds."""
    TREND = "same trend"
    """It is not, but the trend's rule holds."""
    DIFFERS = "differs"
    NOT_RUN = "not run"
    """A quick run does not measure it, or something that it needs is not installed."""


class Backing(enum.StrEnum):
    """What is known of the reason of a claim that does not agree."""

    CONFIRMED = "confirmed"
    """The rule that backs it holds."""
    REFUTED = "not confirmed"
    """It does not hold."""
    UNCHECKED = "not checked"
    """No rule backs it."""
    UNKNOWN = "no reason known"
    NEEDLESS = ""
    """The claim agrees, or was not run."""


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict."""

    claim: Claim
    verdict: Verdict
    ours: Mapping[str, Measure]
    """The measures that decided it, by name."""
    deviation: float | None = None
    """Ours less the published number, in its unit; from the nearer end of a published range."""
    sure: bool | None = None
    """Whether every value inside the intervals gives the same; `None` where nothing was judged."""
    reason: str = ""
    """Why it differs, filled with what was measured; or why it was not run, where something is not installed."""
    backing: Backing = Backing.NEEDLESS
    undefined: str = ""
    """Why a rule said nothing, where it did not."""

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
        """Whether it differs and nobody said why."""
        return self.verdict is Verdict.DIFFERS and self.backing is Backing.UNKNOWN


def judge(claim: Claim, measures: Mapping[str, Measure], *, quick: bool) -> Judgement:
    """The verdict on one claim.

    Raises:
        InputError: when the experiment has no measure that the claim speaks of, or has it in another unit.
    """
    if quick and not claim.quick:
        return Judgement(claim, Verdict.NOT_RUN, {})
    if lacks := _lacks(claim, measures):
        return Judgement(claim, Verdict.NOT_RUN, {}, reason=lacks)
    values = {name: one.value for name, one in measures.items()}
    truth, deviation, undefined, used = _decided(claim, values, measures)
    if truth.holds:
        return Judgement(claim, Verdict.AGREES, used, deviation, truth.sure)
    trend, no_trend = (None, "") if claim.trend is None else _holds(claim.trend, values)
    verdict = Verdict.TREND if trend is not None and trend.holds else Verdict.DIFFERS
    sure = truth.sure and (trend is None or trend.sure)
    backing = Backing.UNKNOWN if claim.reason is None else Backing.UNCHECKED
    no_backing = ""
    if claim.because is not None:
        backed, no_backing = _holds(claim.because, values)
        backing = Backing.CONFIRMED if backed.holds else Backing.REFUTED
    notes = "; ".join(dict.fromkeys(note for note in (undefined, no_trend, no_backing) if note))
    reason = "" if claim.reason is None else _filled(claim.reason, values, measures)
    return Judgement(claim, verdict, used, deviation, sure, reason, backing, notes)


def _decided(
    claim: Claim, values: dict[str, Interval], measures: Mapping[str, Measure]
) -> tuple[Truth, float | None, str, dict[str, Measure]]:
    """Whether it agrees, how far off it is, why nobody can say, and by which measures.

    Numbers put `ours`, `published` and `sigma` beside the measures for the rules that follow.
    """
    if claim.measure is not None:
        value = lookup(values, claim.measure)
        unit = measures[claim.measure].unit
        if unit != claim.unit:
            raise InputError(f'the measure {claim.measure} is in "{unit}"; expected "{claim.unit}" as it is published')
        values |= _published(claim) | {"ours": value}
        _check_names(claim, values)
        undefined = "" if value.count else f"{claim.measure} has no value"
        return *_number(claim, value), undefined, {claim.measure: measures[claim.measure]}
    assert claim.agrees is not None  # noqa: S101
    _check_names(claim, values)
    truth, undefined = _holds(claim.agrees, values)
    return truth, None, undefined, {name: measures[name] for name in claim.agrees.names}


def _names(claim: Claim) -> Iterator[str]:
    """Every measure that the claim's rules and reason speak of, needed this time or not."""
    phrases = () if claim.reason is None else claim.reason.parts
    for rule in (claim.agrees, claim.trend, claim.because, *phrases):
        yield from rule.names if isinstance(rule, Expression) else ()


def _check_names(claim: Claim, values: Mapping[str, Interval]) -> None:
    """Whether all of them are there."""
    for name in _names(claim):
        lookup(values, name)


def _lacks(claim: Claim, measures: Mapping[str, Measure]) -> str:
    """What must be installed to judge the claim; nothing where all of it was measured."""
    names = [*_names(claim), *([] if claim.measure is None else [claim.measure])]
    return "; ".join(dict.fromkeys(one.lacks for name in names if (one := measures.get(name)) and one.lacks))


def _published(claim: Claim) -> dict[str, Interval]:
    """What rules of a number can speak of beside measures."""
    known = claim.published
    middle = sum(known) / 2 if isinstance(known, tuple) else known
    found = {} if middle is None else {"published": Interval(middle, 0.0, 1)}
    return found if claim.sigma is None else found | {"sigma": Interval(claim.sigma, 0.0, 1)}


def _number(claim: Claim, own: Interval) -> tuple[Truth, float | None]:
    """Whether ours is within the tolerance of the published number, and how far off it is."""
    assert claim.published is not None  # noqa: S101
    assert claim.bound is not None  # noqa: S101
    low, high = claim.published if isinstance(claim.published, tuple) else (claim.published, claim.published)
    if not own.count:
        return Truth(False, False, True), None
    least, most = claim.bound.around(low)[0], claim.bound.around(high)[1]
    half = math.inf if own.half is None else own.half

    def inside(value: float) -> bool:
        return at_most(least, value) and at_most(value, most)

    truth = Truth(
        inside(own.mean),
        inside(own.mean - half) and inside(own.mean + half),
        at_most(own.mean - half, most) and at_most(least, own.mean + half),
    )
    deviation = own.mean - min(max(own.mean, low), high)
    return truth, deviation if math.isfinite(deviation) else None


def _holds(rule: Expression, values: Mapping[str, Interval]) -> tuple[Truth, str]:
    try:
        return rule.truth(values), ""
    except Undefined as why:
        return Truth(False, False, True), str(why)


def filled(phrase: Phrase, measures: Mapping[str, Measure]) -> str:
    """Text with what was measured in the place of its braces."""
    return _filled(phrase, {name: one.value for name, one in measures.items()}, measures)


def _filled(phrase: Phrase, values: Mapping[str, Interval], measures: Mapping[str, Measure]) -> str:
    return "".join(part if isinstance(part, str) else _shown(part, values, measures) for part in phrase.parts)


def _shown(part: Expression, values: Mapping[str, Interval], measures: Mapping[str, Measure]) -> str:
    if part.is_measure and part.names[0] in measures:
        return measures[part.names[0]].show()
    try:
        if part.kind == "truth":
            return "yes" if part.truth(values).holds else "no"
        return Measure.exact(part.number(values).mean).show()
    except Undefined as why:
        return f"({why})"
