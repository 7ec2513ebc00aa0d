"""Whether a rule depends on what was measured: one that holds with any number of ours is no evidence.

A rule is checked twice. When the file is loaded, each measure that it names must change what it compares, unlike that
of `0 * loss < 1`. When the measures are there, a rule that holds must be turned by one of them at 0, at a tenth or at
ten times its value, or by the run without the document's mechanism.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from tidegate.paper.claims import Claim
from tidegate.paper.measures import Measure
from tidegate.paper.verdicts import Judgement, Verdict, compare, printed_values
from tidegate.query.intervals import Expression, Undefined
from tidegate.results.stats import Interval

PRINTED = frozenset({"published", "sigma"})
"""Names in the rules of a number that the document prints, so that they are not ours."""
OURS = "ours"
"""Name of the measured number in the rules of a number."""
FACTORS = (0.0, 0.1, 10.0)
"""Factors by which a number of ours is multiplied to see whether a rule still holds."""

_DRAWS = 6
_CHECKED = 50  # names of a rule; longer ones are not written by hand
_SAME = 1e-9  # of the larger side: what arithmetic loses


def without_effect(rule: Expression) -> list[str]:
    """Measures that a rule names although no value of theirs changes what it compares.

    >>> without_effect(Expression("0 * gcc.loss + udp.loss < 1")), without_effect(Expression("x / x < 2"))
    (['gcc.loss'], ['x'])
    >>> without_effect(Expression("gcc.loss < udp.loss"))
    []
    """
    luck = random.Random(0)  # noqa: S311 - the same draws each time
    drawn = [
        (values, margins)
        for _ in range(_DRAWS)
        if (margins := _margins(rule, values := {name: _drawn(luck, -2, 2) for name in rule.names})) is not None
    ]
    checked = [name for name in rule.names if name not in PRINTED][:_CHECKED]
    return [name for name in checked if drawn and not any(_changes(rule, name, *draw, luck) for draw in drawn)]


def _drawn(luck: random.Random, lowest: float, highest: float) -> Interval:
    """A random number between two powers of ten."""
    return Interval(10 ** luck.uniform(lowest, highest), 0.0, 1)


Margins = tuple[tuple[float, float], ...]


def _margins(rule: Expression, values: Mapping[str, Interval]) -> Margins | None:
    try:
        return rule.margins(values)
    except Undefined:
        return None


def _changes(rule: Expression, name: str, values: Mapping[str, Interval], before: Margins, luck: random.Random) -> bool:
    """Whether a value above or below all others changes the difference between two sides of the rule."""
    for powers in ((3, 4), (-4, -3)):
        after = _margins(rule, {**values, name: _drawn(luck, *powers)})
        if after is not None and any(_apart(*pair) for pair in zip(before, after, strict=True)):
            return True
    return False


def _apart(first: tuple[float, float], second: tuple[float, float]) -> bool:
    scale = max(map(abs, (*first, *second)))
    return abs((first[0] - first[1]) - (second[0] - second[1])) > _SAME * scale


def firm_rules(judgement: Judgement, measures: Mapping[str, Measure], *, mutated: bool = False) -> list[str]:
    """Rules of a claim that hold and that none of its numbers turns, by their keys in the paper's file.

    A claim that was not run has none, and `because` counts where it backs a reason.

    Args:
        judgement: The claim with its verdict.
        measures: All measures of the experiment.
        mutated: Whether the verdict is another one without the document's mechanism.
    """
    claim = judgement.claim
    if judgement.verdict is Verdict.NOT_RUN:
        return []
    values = {name: measure.value for name, measure in measures.items()}
    if claim.measure is not None:
        values |= printed_values(claim) | {OURS: values[claim.measure]}
    firm = [key for key, holds, names in _rules(claim) if _is_firm(holds, names, values)]
    needless = {"because"} if judgement.verdict is Verdict.AGREES else set()
    if mutated:
        needless.add(_deciding(claim, values))
    return [key for key in firm if key not in needless]


_Holds = Callable[[Mapping[str, Interval]], bool]


def _rules(claim: Claim) -> Iterator[tuple[str, _Holds, Sequence[str]]]:
    """Key, rule and names of our numbers of each rule; the number alone for its tolerance and its trend."""
    number = [] if claim.measure is None else [OURS, claim.measure]
    if claim.measure is not None:
        yield "tolerance", lambda values: compare(claim, values[OURS])[0].holds, number
    for key, rule in (("agrees", claim.agrees), ("trend", claim.trend), ("because", claim.because)):
        if rule is not None:
            names = number if key == "trend" and number else [name for name in rule.names if name not in PRINTED]
            yield key, _truth(rule), names


def _truth(rule: Expression) -> _Holds:
    return lambda values: rule.truth(values).holds


def _is_firm(holds: _Holds, names: Sequence[str], values: Mapping[str, Interval]) -> bool:
    """Whether a rule holds, and still does with any of the numbers at 0, at a tenth and at ten times its value."""
    if not _evaluated(holds, values, undefined=False):
        return False
    groups = [names] if OURS in names else [[name] for name in names]
    scaled = ({name: _scaled(values[name], factor) for name in group} for group in groups for factor in FACTORS)
    # a number with which the rule says nothing does not turn it
    return all(_evaluated(holds, {**values, **changed}, undefined=True) for changed in scaled)


def _evaluated(holds: _Holds, values: Mapping[str, Interval], *, undefined: bool) -> bool:
    try:
        return holds(values)
    except Undefined:
        return undefined


def _scaled(value: Interval, factor: float) -> Interval:
    return Interval(value.mean * factor, None if value.half is None else value.half * factor, value.count)


def _deciding(claim: Claim, values: Mapping[str, Interval]) -> str:
    """Key of the rule that decides the claim's verdict."""
    for key, holds, _ in _rules(claim):
        if key != "because" and _evaluated(holds, values, undefined=False):
            return key
    return ""
