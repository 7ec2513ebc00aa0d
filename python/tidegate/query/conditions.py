"""What a number of a run has to be: `tcp receive_rate_bps >= 1Mbit/s`, `change(loss_fraction) > 2%`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from tidegate.errors import InputError
from tidegate.query.grammar import Node
from tidegate.query.names import amount, find, written
from tidegate.results.metrics import Metric


@dataclass(frozen=True)
class Series:
    """A number of a run."""

    metric: Metric
    """What it is."""
    of: str | None = None
    """Of which flow, or how several contenders of a suite count; the subject, or the worst, by default."""

    @classmethod
    def named(cls, node: Node, catalogue: Mapping[str, Metric]) -> Self:
        """The number that a name means.

        Raises:
            InputError: when there is no such metric.
        """
        name, *of = node.words
        return cls(find(name, catalogue), *of)

    @property
    def name(self) -> str:
        """How it is kept: `call one_way_delay_ms_p95`."""
        return f"{self.of} {self.metric.name}" if self.of else self.metric.name

    @property
    def label(self) -> str:
        """For people."""
        label = f"{self.of}: {self.metric.label}" if self.of else self.metric.label
        return label[:1].upper() + label[1:]

    @property
    def head(self) -> str:
        """With its unit."""
        return f"{self.label} ({self.metric.unit})" if self.metric.unit else self.label


@dataclass(frozen=True)
class Condition:
    """A number of a run and the bound that it is held against."""

    series: Series
    """The number."""
    sense: str
    """How they are compared: `<`, `<=`, `>`, `>=`, `==` or `!=`."""
    bound: float
    """In the summary's units, or as a fraction."""
    change: bool = False
    """Whether it is about the change against a baseline."""
    relative: bool = False
    """Whether the bound is a fraction of what the number is elsewhere: in the baseline, or in another case."""
    shown: str = field(default="", compare=False)
    """The bound as it was written."""

    @classmethod
    def level(cls, name: Node, sense: str, value: Node, catalogue: Mapping[str, Metric]) -> Self:
        """A number itself held against an amount: `delay_p95 < 150ms`.

        Raises:
            InputError: when there is no such metric, or it has no such amount.
        """
        series = Series.named(name, catalogue)
        return cls(series, sense, amount(value.value, series.metric), shown=value.value)

    @classmethod
    def worsening(cls, node: Node, catalogue: Mapping[str, Metric]) -> Self:
        """A change against a baseline: `change(loss) > 2pp`, or for short with its sign, `loss > +2pp`.

        Raises:
            InputError: says what was found and what would be right.
        """
        pairs = list(node.pairs)
        if len(pairs) != 1 or not {"<", ">"}.issuperset(node.words):
            raise InputError(f"found {node.text!r} for a limit; expected something like > +5% or > +10ms")
        ((name, sense, value),) = pairs
        long = name.kind == "call" and name.words == ("change",) and len(name.parts) == 1
        name = name.parts[0] if long else name
        if name.kind != "name":
            raise InputError(f"found {name.text!r}; expected a metric, or change(METRIC)")
        series = Series.named(name, catalogue)
        sign, size = (value.words[0], value.parts[0].value) if value.kind == "sign" else ("", value.value)
        right = "+" if sense == ">" else "-"
        if sign != right and not (long and right == "+" and not sign):
            why = "limits are changes against the baseline, so they have a sign"
            way = f"{sense} {right}{size} ({'rises' if right == '+' else 'falls'} by more)"
            raise InputError(f"found '{sense} {sign}{size}'; {why}: {way}")
        relative = size.endswith("%")
        bound = amount(size, None if relative else series.metric)
        return cls(series, sense, bound if right == "+" else -bound, True, relative, f"{right}{size}")

    @property
    def size(self) -> float:
        """How large the bound is, whichever its sign."""
        return abs(self.bound)

    @property
    def below(self) -> bool:
        """Whether the number has to be below the bound, and not above."""
        return self.sense.startswith("<")

    def room(self, value: float) -> float:
        """How far within the bound a value is, in parts of it; negative beyond it."""
        return (self.bound - value if self.below else value - self.bound) / (abs(self.bound) or 1.0)

    def __str__(self) -> str:
        bound = f"{100 * self.bound:.12g}%" if self.relative else written(self.bound, self.series.metric)
        if not self.change:
            return f"{self.series.name} {self.sense} {bound}"
        # a share of a share would be something else than points of it
        return f"change({self.series.name}) {self.sense} {bound if self.relative else bound.replace('%', 'pp')}"
