"""Verdicts without the mechanism that a document is about, to see which of them turn.

If a verdict stays the same when, say, a congestion controller is replaced by a sender of constant rate, it is no
evidence for that controller. A verdict *turns* only if it is worse without the mechanism and the numbers are apart. The
verdicts come from runs of the paper's experiment with such changes. They are stored beside the paper in
`mutations.json`; the slow tests compute them again.
"""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tidegate._inputs import JSON, parse_json
from tidegate._inputs import read as read_input
from tidegate.errors import InputError
from tidegate.paper.verdicts import Judgement, Verdict
from tidegate.query.intervals import Undefined
from tidegate.results.shapes import Shape, checked
from tidegate.results.stats import Interval

FILE = "mutations.json"
"""Name of the file in a paper's folder."""

AS_RUN = "as run"
"""Name of the unchanged experiment, run with as many seeds as the changed ones."""


class Effect(enum.StrEnum):
    """Effect of a mutation on the verdict on a claim."""

    TURNS = "turns"
    """The verdict is worse without the mechanism, and of a number that decides it the intervals are apart."""
    UNCHANGED = "unchanged"
    WITHIN = "within the tolerance"
    """The number agrees with and without the mechanism, although its intervals are apart: the tolerance is wide."""
    NOT_APART = "not apart"
    """The verdict is worse without the mechanism, but no number is surely another one."""
    BETTER = "better"
    """The verdict is better without the mechanism."""
    NO_VALUE = "no value"
    """Without the mechanism there is nothing to measure, so that any rule would fail."""
    CONSTRUCTED = "by construction"
    """The claim compares the mechanism with what replaces it, or states what the mutation sets."""


_ORDER = (Verdict.AGREES, Verdict.TREND, Verdict.OPEN, Verdict.DIFFERS)


def effect(as_run: Judgement, mutated: Judgement, *, constructed: bool = False) -> Effect:
    """Effect of a mutation, from the judgements with the mechanism and without.

    Args:
        as_run: Judgement of the unchanged experiment.
        mutated: Judgement of the changed one.
        constructed: Whether the verdict changes whatever is measured, because of what the mutation is.
    """
    pairs = [(measure.value, mutated.ours[name].value) for name, measure in as_run.ours.items() if name in mutated.ours]
    apart = any(_apart(*pair) for pair in pairs)
    if mutated.verdict is as_run.verdict or as_run.verdict is Verdict.OPEN:
        wide = apart and as_run.verdict is Verdict.AGREES and as_run.claim.bound is not None
        return Effect.WITHIN if wide else Effect.UNCHANGED
    if mutated.verdict is Verdict.NOT_RUN or _says_nothing(mutated):
        return Effect.NO_VALUE
    if constructed:
        return Effect.CONSTRUCTED
    if _ORDER.index(mutated.verdict) < _ORDER.index(as_run.verdict):
        return Effect.BETTER
    return Effect.TURNS if apart else Effect.NOT_APART


def _says_nothing(judgement: Judgement) -> bool:
    """Whether there is no value by which to judge the claim."""
    rule = judgement.claim.agrees
    if rule is None:
        return not all(measure.value.count for measure in judgement.ours.values())
    try:
        rule.truth({name: measure.value for name, measure in judgement.ours.items()})
    except Undefined:
        return True
    return False


def _apart(first: Interval, second: Interval) -> bool:
    """Whether two intervals do not overlap; those of single runs are unknown."""
    if first.half is None or second.half is None:
        return False
    return abs(first.mean - second.mean) > first.half + second.half


@dataclass(frozen=True)
class MutatedVerdict:
    """The verdict on a claim, as run or under a mutation."""

    verdict: Verdict
    measured: str
    """The measured numbers, in words."""
    effect: Effect = Effect.UNCHANGED
    """Effect of the mutation."""


@dataclass(frozen=True)
class Mutations:
    """A paper's verdicts with its mechanism and without."""

    seeds: int
    """Number of seeds of each run."""
    changes: Mapping[str, str]
    """Descriptions of the mutations, by name."""
    verdicts: Mapping[str, Mapping[str, MutatedVerdict]]
    """Verdicts by claim, then by mutation; `AS_RUN` is among the mutations."""

    def with_effect(self, claim: str, *effects: Effect) -> list[str] | None:
        """Names of the mutations that have one of the effects on a claim; `None` if the claim was not judged."""
        verdicts = self.verdicts.get(claim)
        if verdicts is None or verdicts[AS_RUN].verdict is Verdict.NOT_RUN:
            return None
        return [name for name in self.changes if verdicts[name].effect in effects]

    def too_wide(self, claim: str) -> bool:
        """Whether a tolerance holds the number with and without the mechanism, and no mutation turns the verdict."""
        return bool(self.with_effect(claim, Effect.WITHIN)) and not self.turned_by(claim)

    def turned_by(self, claim: str) -> list[str] | None:
        """Names of the mutations that turn the verdict on a claim; `None` if the claim was not judged."""
        return self.with_effect(claim, Effect.TURNS)

    def holding(self, claims: Iterable[str]) -> list[str]:
        """Those of the claims that agree, or have the same trend, in the unchanged experiment."""
        holds = {Verdict.AGREES, Verdict.TREND}
        return [claim for claim in claims if claim in self.verdicts and self.verdicts[claim][AS_RUN].verdict in holds]

    def counts(self, name: str, claims: Iterable[str]) -> Counter[Effect]:
        """Number of claims by the effect of a mutation on them; those that were not judged are left out."""
        return Counter(
            self.verdicts[claim][name].effect for claim in claims if self.with_effect(claim, *Effect) is not None
        )


class _Stored(Shape):
    seeds: Annotated[int, Field(gt=0)]
    mutations: dict[str, str]
    claims: dict[str, list[Annotated[list[str], Field(min_length=2, max_length=3)]]]


def load(folder: Path) -> Mutations | None:
    """Loads the verdicts that are stored in a paper's folder; `None` if there are none.

    Raises:
        InputError: when the file cannot be used.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        data = checked(path, parse_json(read_input(path, JSON).data, JSON.limit), _Stored, "the file cannot be used")
        names = [AS_RUN, *data.mutations]
        verdicts = {
            claim: {
                name: MutatedVerdict(Verdict(verdict), measured, *map(Effect, effect))
                for name, (verdict, measured, *effect) in zip(names, row, strict=True)
            }
            for claim, row in data.claims.items()
        }
        return Mutations(data.seeds, data.mutations, verdicts)
    except ValueError as error:
        raise InputError(
            f"{path}: the file cannot be used: {error}; TIDEGATE_BLESS=1 make mutations writes it again"
        ) from None


def text(mutations: Mutations) -> str:
    """Text of the file, with one line a claim, so that a diff shows which claims changed."""

    def lines() -> Iterator[str]:
        for claim, row in mutations.verdicts.items():
            values: list[Any] = [
                [str(mutated.verdict), mutated.measured, *([] if name == AS_RUN else [str(mutated.effect)])]
                for name, mutated in row.items()
            ]
            yield f"  {json.dumps(claim)}: {json.dumps(values, ensure_ascii=False)}"

    head = json.dumps(dict(mutations.changes), indent=1, ensure_ascii=False)
    body = ",\n".join(lines())
    return f'{{"seeds": {mutations.seeds},\n"mutations": {head},\n"claims": {{\n{body}\n}}}}\n'
