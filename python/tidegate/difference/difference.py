"""The differences between two results: settings, verdicts, and numbers, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from tidegate.difference import document as documents
from tidegate.difference.settings import Setting, differing
from tidegate.difference.sides import Result, Scope, Series, Side
from tidegate.errors import InputError
from tidegate.output.document import Document
from tidegate.output.notebook import Displayable
from tidegate.results.metrics import Metric, finite
from tidegate.results.metrics.model import MARGIN
from tidegate.results.stats import LEVEL, Interval, chance_apart, differences, holm

FILES = "files or code"
"""The name of a difference outside the settings: of a recorded network's file, or of a controller's code."""

_HEADS = {"run": ("of",), "comparison": ("controller",), "sweep": ("settings",), "suite result": ("case", "controller")}

_NO_NETWORK = frozenset({"baseline", "controllers", "engine", "rules", "runs", "seed", "seeds", "suite", "values"})
"""Settings that do not describe the network."""


@dataclass(frozen=True)
class ScopePair:
    """Scopes of both sides that are compared with each other."""

    a: Scope
    """The scope on side A."""
    b: Scope
    """The scope on side B; it differs from that on side A only in the name of a controller."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Both scopes in words, a part for each column of a table."""
        return tuple(a if a == b else f"{a} → {b}" for a, b in zip(self.a, self.b, strict=True))


@dataclass(frozen=True)
class VerdictChange:
    """A verdict that differs between the sides."""

    scopes: ScopePair
    """The scopes of the verdict."""
    a: str
    """The verdict on side A."""
    b: str
    """The verdict on side B."""


@dataclass(frozen=True)
class Number:
    """A number of both sides."""

    scopes: ScopePair
    """The scopes of the number."""
    key: str
    """The metric's name, with its flow, as in the tables of the results."""
    label: str
    """The name in tables."""
    metric: Metric
    """The metric, with unit and digits."""
    a: Interval
    """The mean of side A; of paired numbers over the seeds that both sides have."""
    b: Interval
    """The mean of side B, over the same seeds."""
    difference: Interval
    """B minus A. Paired: the mean of the differences seed by seed, with its 95 % interval. Unpaired: the difference of
    the means, without an interval. NaN where a side has no value."""
    paired: bool
    """Whether the sides have a seed in common."""
    one_sided: int
    """The number of common seeds for which only one side has a value."""
    same: bool
    """Whether both sides have the same values, to the last bit."""
    chance: float = 1.0
    """The probability of such a difference by chance alone, corrected for all numbers by Holm's method."""

    @property
    def matters(self) -> bool:
        """Whether the means differ by at least the smallest difference that matters in practice."""
        size = abs(self.difference.mean)
        return not self.same and (math.isnan(size) or self.one_sided > 0 or size >= self.metric.least)

    @property
    def apart(self) -> bool:
        """Whether the difference matters, and chance does not explain it."""
        return self.matters and self.chance < LEVEL

    @property
    def word(self) -> str:
        """`better` or `worse` if the sides are apart, or `other` where no direction is better; empty otherwise."""
        if not self.apart:
            return ""
        if self.metric.better == "neither":
            return "other"
        return "better" if (self.difference.mean > 0) == (self.metric.better == "higher") else "worse"

    @property
    def order(self) -> tuple[float, float]:
        """The sort key of a list that begins with the largest difference.

        Sizes are in margins, so that milliseconds and megabits can be compared: a margin is a twentieth of the larger
        mean, or the smallest difference that matters if that is more. The first part of the key is the end of the
        interval that is nearer to zero, the second the difference itself.
        """
        mean, half = abs(self.difference.mean), self.difference.half
        if math.isnan(mean):
            return (-math.inf, -math.inf) if not self.same else (0.0, 0.0)
        margin = max(MARGIN * max(abs(self.a.mean), abs(self.b.mean)), self.metric.least)
        return -max(0.0, mean - half) / margin if half is not None else 0.0, -mean / margin


@dataclass(frozen=True, repr=False)
class Difference(Displayable):
    """Two results, side by side."""

    a: Side
    """Side A, the earlier one if one is earlier."""
    b: Side
    """Side B."""

    def __repr__(self) -> str:
        return f"<tidegate Difference of {self.a.title} and {self.b.title}>"

    def document(self) -> Document:
        """The differences as a document, from which all forms are made."""
        return documents.document(self)

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of the columns that name the scope of a line."""
        return _HEADS[self.a.kind]

    def cells(self, parts: Sequence[str]) -> tuple[str, ...]:
        """The cells of these columns, from the parts of a scope or of a pair of scopes."""
        return (", ".join(parts),) if self.a.kind == "sweep" else tuple(parts)

    @cached_property
    def common(self) -> list[ScopePair]:
        """The scopes that both sides have."""
        names = self._renamed
        in_b = _scopes(self.b)
        matches = {scope: (*scope[:-1], *(names.get(name, name) for name in scope[-1:])) for scope in _scopes(self.a)}
        return [ScopePair(a, b) for a, b in matches.items() if b in in_b]

    @property
    def only_a(self) -> list[Scope]:
        """Scopes that only side A has."""
        common = {pair.a for pair in self.common}
        return [scope for scope in _scopes(self.a) if scope not in common]

    @property
    def only_b(self) -> list[Scope]:
        """Scopes that only side B has."""
        common = {pair.b for pair in self.common}
        return [scope for scope in _scopes(self.b) if scope not in common]

    @cached_property
    def _renamed(self) -> dict[str, str]:
        """The controller of side B by that of side A, if each side has exactly one that the other side has not."""
        if self.a.kind in {"run", "sweep"}:
            return {}
        a, b = ([*dict.fromkeys(scope[-1] for scope in _scopes(side))] for side in (self.a, self.b))
        gone, new = [name for name in a if name not in b], [name for name in b if name not in a]
        return dict(zip(gone, new, strict=True)) if len(gone) == len(new) == 1 else {}

    @cached_property
    def settings(self) -> list[Setting]:
        """The settings that differ."""
        differences = differing(self.a.settings, self.b.settings)
        if any(setting.key.partition(".")[0] not in _NO_NETWORK for setting in differences):
            return differences
        return [*differences, *self._files()]

    def _files(self) -> Iterator[Setting]:
        """Runs whose settings are the same but whose files or code differ, as settings."""
        reported = set()
        for pair, seed in self._pairs():
            a, b = self.a.runs[pair.a][seed].content, self.b.runs[pair.b][seed].content
            owner = f" of {pair.a[-1]}" if self.a.kind not in {"run", "sweep"} else ""
            if pair.a == pair.b and a != b and owner not in reported:
                reported.add(owner)
                yield Setting(f"{FILES}{owner}", a[:12], b[:12])

    def _pairs(self) -> Iterator[tuple[ScopePair, int]]:
        """Pairs of runs with the same seed: their scopes and the seed."""
        for pair in [ScopePair((), ())] if self.a.kind == "run" else self.common:
            a, b = self.a.runs.get(pair.a, {}), self.b.runs.get(pair.b, {})
            yield from ((pair, seed) for seed in a if seed in b)

    @cached_property
    def runs(self) -> tuple[int, int]:
        """The number of runs that are the same to the bit, and of all pairs with the same seed."""
        same = [self.a.runs[pair.a][seed].digest == self.b.runs[pair.b][seed].digest for pair, seed in self._pairs()]
        return sum(same), len(same)

    @cached_property
    def verdicts(self) -> list[VerdictChange]:
        """The verdicts that differ."""
        pairs = ((pair, self.a.verdicts.get(pair.a), self.b.verdicts.get(pair.b)) for pair in self.common)
        return [VerdictChange(pair, a or "-", b or "-") for pair, a, b in pairs if a != b]

    @cached_property
    def numbers(self) -> list[Number]:
        """All numbers of both sides, the largest difference first."""
        numbers: list[Number] = []
        chances: dict[int, float] = {}
        for pair in self.common:
            a, b = self.a.series.get(pair.a, {}), self.b.series.get(pair.b, {})
            for key in dict.fromkeys([*a, *b]):
                number, by_seed = _number(pair, key, a.get(key), b.get(key))
                if not number.same and len(by_seed) > 1:
                    chances[len(numbers)] = chance_apart(by_seed)
                numbers.append(number)
        adjusted = holm(chances)
        corrected = [replace(number, chance=adjusted.get(index, 1.0)) for index, number in enumerate(numbers)]
        return sorted(corrected, key=lambda number: number.order)

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        same, paired = self.runs
        apart = self.settings or self.verdicts or self.only_a or self.only_b or same < paired
        return bool(apart) or any(not number.same for number in self.numbers)

    def to_data(self, *, every: bool = False) -> dict[str, Any]:
        """The differences as plain data, with numbers in the units of the summary.

        Args:
            every: Whether to include the numbers that are the same.
        """
        same, paired = self.runs
        return {
            "kind": self.a.kind,
            "a": self.a.title,
            "b": self.b.title,
            "differs": self.differs,
            "settings": [asdict(setting) for setting in self.settings],
            "only_a": [self._by_head(scope) for scope in self.only_a],
            "only_b": [self._by_head(scope) for scope in self.only_b],
            "verdicts": [
                {**self._by_head(change.scopes.parts), "a": change.a, "b": change.b} for change in self.verdicts
            ],
            "numbers": [
                {
                    **self._by_head(number.scopes.parts),
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
            "runs_paired": paired,
        }

    def _by_head(self, parts: Sequence[str]) -> dict[str, str]:
        return dict(zip(self.heads, self.cells(parts), strict=True))


def diff(a: Result, b: Result) -> Difference:
    """Compares two results of one kind.

    Args:
        a: A run, a comparison, a sweep or a suite's result; the earlier one if one is earlier.
        b: Another result of the same kind.

    Raises:
        InputError: when they are of two kinds, or of a kind that cannot be compared.
    """
    side_a, side_b = Side.of(a), Side.of(b)
    if side_a.kind != side_b.kind:
        raise InputError(f"one is a {side_a.kind} and the other a {side_b.kind}; expected two of the same kind")
    return Difference(side_a, side_b)


def _scopes(side: Side) -> Mapping[Scope, None]:
    return dict.fromkeys([*side.series, *side.verdicts])


def _number(
    scopes: ScopePair, key: str, series_a: Series | None, series_b: Series | None
) -> tuple[Number, list[float]]:
    """A number of both sides, and its differences seed by seed."""
    either = series_a or series_b
    assert either is not None  # noqa: S101
    a, b = (series.values if series is not None else {} for series in (series_a, series_b))
    common = sorted(a.keys() & b.keys())
    if common:
        a, b = ({seed: values[seed] for seed in common} for values in (a, b))
    by_seed = differences(b, a)
    means = Interval.of(a.values()), Interval.of(b.values())
    apart = Interval.of(by_seed) if common else Interval(means[1].mean - means[0].mean, None, 0)
    one_sided = sum((a[seed] is None) != (b[seed] is None) for seed in common)
    number = Number(scopes, key, either.label, either.metric, *means, apart, bool(common), one_sided, same=a == b)
    return number, by_seed
