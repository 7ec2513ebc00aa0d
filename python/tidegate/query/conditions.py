"""Conditions of rules and limits, on a number of a run: `tcp rate >= 1Mbps`, `change(loss) > 2%`."""

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
    """A number of a run: a metric of a flow, or of the contenders together."""

    metric: Metric
    """The metric."""
    scope: str | None = None
    """Name of the flow, or how contenders of a suite count: `worst`, `mean` or `sum`. By default the subject of a
    scenario, or the worst contender of a suite."""

    @classmethod
    def parse(cls, node: Node, catalogue: Mapping[str, Metric]) -> Self:
        """Finds the number that a name means.

        Raises:
            InputError: when there is no such metric.
        """
        name, *scope = node.words
        return cls(find(name, catalogue), *scope)

    @property
    def name(self) -> str:
        """Key of the series in saved results: `call one_way_delay_ms_p95`."""
        return f"{self.scope} {self.metric.name}" if self.scope else self.metric.name

    @property
    def label(self) -> str:
        """Label for tables and charts: `Call: one-way delay, 95th percentile`."""
        label = f"{self.scope}: {self.metric.label}" if self.scope else self.metric.label
        return label[:1].upper() + label[1:]

    @property
    def head(self) -> str:
        """Label with the unit, for column heads and axes."""
        return f"{self.label} ({self.metric.unit})" if self.metric.unit else self.label


@dataclass(frozen=True)
class Condition:
    """A bound on a number of a run."""

    series: Series
    """The number."""
    sense: str
    """The comparison: `<`, `<=`, `>`, `>=`, `==` or `!=`."""
    bound: float
    """The bound, in the summary's units or as a fraction."""
    change: bool = False
    """Whether the bound is on the change against a baseline."""
    relative: bool = False
    """Whether the bound is a fraction of the number in the baseline, or in another case."""
    bound_text: str = field(default="", compare=False)
    """The bound as it was written."""

    @classmethod
    def level(cls, name: Node, sense: str, value: Node, catalogue: Mapping[str, Metric]) -> Self:
        """Makes a bound on the number itself: `delay_p95 < 150ms`.

        Raises:
            InputError: when there is no such metric, or it has no such amount.
        """
        series = Series.parse(name, catalogue)
        return cls(series, sense, amount(value.value, series.metric), bound_text=value.value)

    @classmethod
    def worsening(cls, node: Node, catalogue: Mapping[str, Metric]) -> Self:
        """Makes a bound on the change against a baseline: `change(loss) > 2pp`, or short with a sign, `loss > +2pp`.

        Raises:
            InputError: when the text is not such a limit; says what was found and what would be right.
        """
        pairs = list(node.pairs)
        if len(pairs) != 1 or not {"<", ">"}.issuperset(node.words):
            raise InputError(f"found {node.text!r} for a limit; expected a limit such as > +5% or > +10ms")
        ((name, sense, value),) = pairs
        spelled_out = name.kind == "call" and name.words == ("change",) and len(name.parts) == 1
        name = name.parts[0] if spelled_out else name
        if name.kind != "name":
            raise InputError(f"found {name.text!r}; expected a metric, or change(METRIC)")
        series = Series.parse(name, catalogue)
        sign, size = (value.words[0], value.parts[0].value) if value.kind == "sign" else ("", value.value)
        needed_sign = "+" if sense == ">" else "-"
        if sign != needed_sign and not (spelled_out and needed_sign == "+" and not sign):
            reason = "a limit is a change against the baseline, so it needs a sign"
            example = f"{sense} {needed_sign}{size} ({'rises' if needed_sign == '+' else 'falls'} by more)"
            raise InputError(f"found '{sense} {sign}{size}'; {reason}: {example}")
        relative = size.endswith("%")
        bound = amount(size, None if relative else series.metric)
        return cls(series, sense, bound if needed_sign == "+" else -bound, True, relative, f"{needed_sign}{size}")

    @property
    def size(self) -> float:
        """Absolute value of the bound."""
        return abs(self.bound)

    @property
    def below(self) -> bool:
        """Whether the number has to be below the bound rather than above it."""
        return self.sense.startswith("<")

    def room(self, value: float) -> float:
        """Distance of a value from the bound as a fraction of the bound; negative beyond it."""
        return (self.bound - value if self.below else value - self.bound) / (abs(self.bound) or 1.0)

    def __str__(self) -> str:
        bound = f"{100 * self.bound:.12g}%" if self.relative else written(self.bound, self.series.metric)
        if not self.change:
            return f"{self.series.name} {self.sense} {bound}"
        # `%` would read as relative here, so a change of a share is in percentage points
        return f"change({self.series.name}) {self.sense} {bound if self.relative else bound.replace('%', 'pp')}"
