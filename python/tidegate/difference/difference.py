"""What differs between two results: their settings, their verdicts, and their numbers, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from tidegate.difference import document as documents
from tidegate.difference.settings import Setting, differing
from tidegate.difference.sides import Place, Result, Series, Side
from tidegate.errors import InputError
from tidegate.output.document import Document
from tidegate.output.notebook import Shown
from tidegate.results.metrics import Metric, finite
from tidegate.results.metrics.model import MARGIN
from tidegate.results.stats import LEVEL, Interval, chance_apart, differences, holm

FILES = "files or code"
"""What a difference is called that no setting shows: of a recorded network that is played, of a controller's code."""

_HEADS = {"run": ("of",), "comparison": ("controller",), "sweep": ("settings",), "suite result": ("case", "controller")}

_NO_NETWORK = frozenset({"baseline", "controllers", "engine", "rules", "runs", "seed", "seeds", "suite", "values"})
"""Settings that say what was run and by what, but not on which network."""


@dataclass(frozen=True)
class Where:
    """The runs of both sides that are held against each other."""

    a: Place
    """Of one side."""
    b: Place
    """Of the other one; another place where only the name of the controller differs."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Both in words, a part for each column of a table."""
        return tuple(one if one == other else f"{one} → {other}" for one, other in zip(self.a, self.b, strict=True))


@dataclass(frozen=True)
class Answer:
    """A verdict that is another one."""

    where: Where
    """Of which runs."""
    a: str
    """What it was."""
    b: str
    """What it is."""


@dataclass(frozen=True)
class Number:
    """A number of both sides."""

    where: Where
    """Of which runs."""
    key: str
    """The metric's name, with the flow that it is of: as in the tables of the results."""
    label: str
    """What it is called in tables."""
    metric: Metric
    """What it is."""
    a: Interval
    """The mean of one side, over the seeds that both have where they are paired."""
    b: Interval
    """The mean of the other side."""
    difference: Interval
    """What the second has more than the first: of pairs with the same seed the mean with its 95 % interval, else the
    difference of the means, without one. NaN where a side has no value."""
    paired: bool
    """Whether both sides have a seed in common."""
    one_sided: int
    """In how many pairs only one side has a value."""
    same: bool
    """Whether both have the same values, to the last bit."""
    chance: float = 1.0
    """How likely luck alone would tell them so far apart, corrected for all numbers by Holm's method."""

    @property
    def matters(self) -> bool:
        """Whether the means are further apart than the least difference that matters in practice."""
        size = abs(self.difference.mean)
        return not self.same and (math.isnan(size) or self.one_sided > 0 or size >= self.metric.least)

    @property
    def apart(self) -> bool:
        """Whether the difference matters, and luck does not explain it."""
        return self.matters and self.chance < LEVEL

    @property
    def word(self) -> str:
        """`better` or `worse` where the sides are told apart, `other` where no direction is better; else nothing."""
        if not self.apart:
            return ""
        if self.metric.better == "neither":
            return "other"
        return "better" if (self.difference.mean > 0) == (self.metric.better == "higher") else "worse"

    @property
    def order(self) -> tuple[float, float]:
        """Where it stands in a list that begins with what differs most.

        Sizes are in margins: a twentieth of the larger mean, or the least difference that matters if that is more, so
        that milliseconds and megabits can be in one order. First comes what the interval leaves of a difference at
        least, then the difference.
        """
        mean, half = abs(self.difference.mean), self.difference.half
        if math.isnan(mean):
            return (-math.inf, -math.inf) if not self.same else (0.0, 0.0)
        margin = max(MARGIN * max(abs(self.a.mean), abs(self.b.mean)), self.metric.least)
        return -max(0.0, mean - half) / margin if half is not None else 0.0, -mean / margin


@dataclass(frozen=True, repr=False)
class Difference(Shown):
    """Two results, side by side."""

    a: Side
    """One of them: what was before, where one was."""
    b: Side
    """The other one."""

    def __repr__(self) -> str:
        return f"<tidegate Difference of {self.a.title} and {self.b.title}>"

    def document(self) -> Document:
        """What differs as data, of which all its forms are made."""
        return documents.document(self)

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of the columns that say which runs a line of a table is about."""
        return _HEADS[self.a.kind]

    def cells(self, parts: Sequence[str]) -> tuple[str, ...]:
        """What stands in these columns of a place, or of a place on both sides in words."""
        return (", ".join(parts),) if self.a.kind == "sweep" else tuple(parts)

    @cached_property
    def places(self) -> list[Where]:
        """The runs that both have."""
        names = self._renamed
        theirs = _places(self.b)
        every = {place: (*place[:-1], names.get(place[-1], place[-1])) for place in _places(self.a)}
        return [Where(place, other) for place, other in every.items() if other in theirs]

    @property
    def only_a(self) -> list[Place]:
        """Runs that one side alone has."""
        both = {one.a for one in self.places}
        return [place for place in _places(self.a) if place not in both]

    @property
    def only_b(self) -> list[Place]:
        """Runs that the other side alone has."""
        both = {one.b for one in self.places}
        return [place for place in _places(self.b) if place not in both]

    @cached_property
    def _renamed(self) -> dict[str, str]:
        """The one controller that only the first side has is held against the one that only the second has."""
        if self.a.kind in {"run", "sweep"}:
            return {}
        mine, theirs = ([*dict.fromkeys(place[-1] for place in _places(one))] for one in (self.a, self.b))
        gone, come = [one for one in mine if one not in theirs], [one for one in theirs if one not in mine]
        return dict(zip(gone, come, strict=True)) if len(gone) == len(come) == 1 else {}

    @cached_property
    def settings(self) -> list[Setting]:
        """The settings that differ."""
        found = differing(self.a.settings, self.b.settings)
        return found if any(one.key.partition(".")[0] not in _NO_NETWORK for one in found) else [*found, *self._files()]

    def _files(self) -> Iterator[Setting]:
        """That runs of one name, on the same network by all that is written down, were made from something else."""
        told = set()
        for where, seed in self._pairs():
            mine, theirs = (one.made[at][seed].content for one, at in ((self.a, where.a), (self.b, where.b)))
            who = f" of {where.a[-1]}" if self.a.kind not in {"run", "sweep"} else ""
            if where.a == where.b and mine != theirs and who not in told:
                told.add(who)
                yield Setting(f"{FILES}{who}", mine[:12], theirs[:12])

    def _pairs(self) -> Iterator[tuple[Where, int]]:
        """Runs of both sides with the same seed."""
        for where in [Where((), ())] if self.a.kind == "run" else self.places:
            mine, theirs = self.a.made.get(where.a, {}), self.b.made.get(where.b, {})
            yield from ((where, seed) for seed in mine if seed in theirs)

    @cached_property
    def runs(self) -> tuple[int, int]:
        """How many runs are the same to the bit, and of how many pairs with the same seed."""
        same = [self.a.made[where.a][seed].digest == self.b.made[where.b][seed].digest for where, seed in self._pairs()]
        return sum(same), len(same)

    @cached_property
    def answers(self) -> list[Answer]:
        """The verdicts that differ."""
        every = ((one, self.a.answers.get(one.a), self.b.answers.get(one.b)) for one in self.places)
        return [Answer(one, mine or "-", theirs or "-") for one, mine, theirs in every if mine != theirs]

    @cached_property
    def numbers(self) -> list[Number]:
        """Every number that a side has, what differs most first."""
        found: list[Number] = []
        chances: dict[int, float] = {}
        for where in self.places:
            mine, theirs = self.a.series.get(where.a, {}), self.b.series.get(where.b, {})
            for key in dict.fromkeys([*mine, *theirs]):
                number, each = _number(where, key, mine.get(key), theirs.get(key))
                if not number.same and len(each) > 1:
                    chances[len(found)] = chance_apart(each)
                found.append(number)
        adjusted = holm(chances)
        told = [replace(one, chance=adjusted.get(at, 1.0)) for at, one in enumerate(found)]
        return sorted(told, key=lambda one: one.order)

    @property
    def differs(self) -> bool:
        """Whether anything does."""
        same, of = self.runs
        apart = self.settings or self.answers or self.only_a or self.only_b or same < of
        return bool(apart) or any(not one.same for one in self.numbers)

    def to_data(self, *, every: bool = False) -> dict[str, Any]:
        """As plain data, numbers in the summary's own units.

        Args:
            every: Also the numbers that are the same.
        """
        same, of = self.runs
        return {
            "kind": self.a.kind,
            "a": self.a.title,
            "b": self.b.title,
            "differs": self.differs,
            "settings": [asdict(setting) for setting in self.settings],
            "only_a": [self._named(place) for place in self.only_a],
            "only_b": [self._named(place) for place in self.only_b],
            "verdicts": [{**self._named(answer.where.parts), "a": answer.a, "b": answer.b} for answer in self.answers],
            "numbers": [
                {
                    **self._named(number.where.parts),
                    "metric": number.key,
                    "a": finite(number.a.mean),
                    "b": finite(number.b.mean),
                    "difference": finite(number.difference.mean),
                    "half_interval_95": number.difference.half,
                    "paired": number.paired,
                    "seeds": number.difference.count if number.paired else None,
                    "chance": number.chance,
                    "verdict": number.word or None,
                    "same": number.same,
                }
                for number in self.numbers
                if every or not number.same
            ],
            "numbers_same": sum(number.same for number in self.numbers),
            "runs_same": same,
            "runs_paired": of,
        }

    def _named(self, parts: Place) -> dict[str, str]:
        return dict(zip(self.heads, self.cells(parts), strict=True))


def diff(a: Result, b: Result) -> Difference:
    """Holds two results of one kind against each other.

    Args:
        a: A run, a comparison, a sweep or a suite's result: what was before, where one was.
        b: Another one of the same kind.

    Raises:
        InputError: when they are of two kinds, or of one that is not compared.
    """
    one, other = Side.of(a), Side.of(b)
    if one.kind != other.kind:
        raise InputError(f"one is a {one.kind} and the other a {other.kind}; expected two of one kind")
    return Difference(one, other)


def _places(side: Side) -> Mapping[Place, None]:
    return dict.fromkeys([*side.series, *side.answers])


def _number(where: Where, key: str, mine: Series | None, theirs: Series | None) -> tuple[Number, list[float]]:
    """A number of both sides, and its differences seed by seed."""
    about = mine or theirs
    assert about is not None  # noqa: S101
    a, b = (one.values if one is not None else {} for one in (mine, theirs))
    common = sorted(a.keys() & b.keys())
    if common:
        a, b = ({seed: one[seed] for seed in common} for one in (a, b))
    each = differences(b, a)
    means = Interval.of(a.values()), Interval.of(b.values())
    apart = Interval.of(each) if common else Interval(means[1].mean - means[0].mean, None, 0)
    one_sided = sum((a[seed] is None) != (b[seed] is None) for seed in common)
    number = Number(where, key, about.label, about.metric, *means, apart, bool(common), one_sided, same=a == b)
    return number, each
