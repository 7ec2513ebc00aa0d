"""Expressions of numbers with 95 % intervals: rules and numbers, such as `udp.loss / gcc.loss >= 2 and gcc.loss < 0.2`.

The means of its measures decide whether a rule holds. It is also *sure* if every value inside the 95 % intervals
gives the same result. `significant(a < b)` holds only where it is sure, which for two bare measures means that their
intervals do not overlap. Arithmetic uses the ends of intervals, as if both sides were at their worst by chance. A
difference between runs with the same random numbers is therefore better measured for each seed, as its own measure.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from tidegate.errors import InputError, did_you_mean
from tidegate.query.grammar import Node, parse
from tidegate.results.stats import Interval
from tidegate.units import show

_ROUNDING = 1e-12  # of the larger side: what decimal fractions lose in binary at an exact bound
_OPPOSITE = {"<": ">=", ">": "<=", "!=": "=="}
_FUNCTIONS = ("abs", "max", "min", "significant")


class Undefined(Exception):
    """A rule cannot be evaluated: a measure has no value, or a denominator is zero."""


@dataclass(frozen=True)
class Value:
    """A number with the ends of its interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, measured: Interval) -> Value:
        """Makes the value of a measure; with a single run its interval is infinite."""
        half = math.inf if measured.half is None else measured.half
        return cls(measured.mean, measured.mean - half, measured.mean + half)

    def __neg__(self) -> Value:
        return Value(-self.mean, -self.high, -self.low)

    def __add__(self, operand: Value) -> Value:
        return Value(self.mean + operand.mean, self.low + operand.low, self.high + operand.high)

    def __sub__(self, operand: Value) -> Value:
        return self + -operand

    def __mul__(self, operand: Value) -> Value:
        return self._corners(operand, operator.mul)

    def __truediv__(self, operand: Value) -> Value:
        if operand.low <= 0 <= operand.high:
            return Value(self.mean / operand.mean, -math.inf, math.inf)
        return self._corners(operand, operator.truediv)

    def _corners(self, operand: Value, operation: Callable[[float, float], float]) -> Value:
        mean = operation(self.mean, operand.mean)
        ends = [operation(x, y) for x in (self.low, self.high) for y in (operand.low, operand.high)]
        if any(math.isnan(end) for end in ends):  # infinity times zero: anything
            return Value(mean, -math.inf, math.inf)
        return Value(mean, min(ends), max(ends))


_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class Truth(NamedTuple):
    """Whether a rule holds."""

    holds: bool
    """Whether it holds for the means."""
    surely: bool
    """Whether it holds for all values inside the intervals."""
    possibly: bool
    """Whether it holds for some values inside the intervals."""

    @property
    def sure(self) -> bool:
        """Whether all values inside the intervals give the same result as the means."""
        return self.surely if self.holds else not self.possibly

    def __invert__(self) -> Truth:
        return Truth(not self.holds, not self.possibly, not self.surely)


def _combined(parts: Iterable[Truth], combine: Callable[[Iterable[bool]], bool]) -> Truth:
    return Truth(*map(combine, zip(*parts, strict=True)))


def _compared(a: Value, sense: str, b: Value) -> Truth:
    if sense in _OPPOSITE:
        return ~_compared(a, _OPPOSITE[sense], b)
    if sense == "==":
        return _combined([_compared(a, "<=", b), _compared(b, "<=", a)], all)
    a, b = (a, b) if sense == "<=" else (b, a)
    return Truth(at_most(a.mean, b.mean), at_most(a.high, b.low), at_most(a.low, b.high))


def at_most(a: float, b: float) -> bool:
    """Whether `a <= b`, with a tolerance for the rounding of decimal fractions in binary.

    >>> 0.1 + 0.2 <= 0.3, at_most(0.1 + 0.2, 0.3), at_most(0.3000001, 0.3)
    (False, True, False)
    """
    scale = max(abs(a), abs(b))
    return a <= b or (math.isfinite(scale) and a - b <= _ROUNDING * scale)


class Expression:
    """A rule or a number, parsed once and then evaluated with measures.

    >>> rule = Expression("udp.loss / gcc.loss >= 2")
    >>> rule.kind, rule.names
    ('truth', ('udp.loss', 'gcc.loss'))
    >>> rule.truth({"udp.loss": Interval(0.4, 0.1, 5), "gcc.loss": Interval(0.1, 0.01, 5)})
    Truth(holds=True, surely=True, possibly=True)
    >>> Expression("__import__('os')")
    Traceback (most recent call last):
    ...
    tidegate.errors.InputError: found "__import__"; there is no such function (available: abs, max, min, significant)
    """

    def __init__(self, text: str) -> None:
        """Parses a rule or a number.

        Raises:
            InputError: when the text is neither a rule nor a number; says what was found and what would be right.
        """
        self.text = " ".join(text.split())
        self.tree = parse(self.text, f'found {show(text)}; expected a rule such as "udp.loss / gcc.loss >= 2"')
        _check_node(self.tree)
        self.kind: Literal["number", "truth"] = "truth" if _is_truth(self.tree) else "number"
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self.tree.names))

    def truth(self, measures: Mapping[str, Interval]) -> Truth:
        """Whether the rule holds.

        Raises:
            Undefined: when one of its measures has no value, or a denominator is zero.
            InputError: when there is no such measure.
        """
        return _truth(self.tree, measures)

    def number(self, measures: Mapping[str, Interval]) -> Value:
        """Value of an expression that is a number; raises the same errors as `truth`."""
        return _number(self.tree, measures)

    def margins(self, measures: Mapping[str, Interval]) -> tuple[tuple[float, float], ...]:
        """Both means of each comparison in the rule, from left to right; raises the same errors as `truth`."""
        return tuple(_margins(self.tree, measures))

    @property
    def is_measure(self) -> bool:
        """Whether the expression is only the name of a measure."""
        return self.tree.kind == "name"

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def _is_truth(node: Node) -> bool:
    return node.kind in {"comparison", "and", "or", "not"} or (node.kind, node.words) == ("call", ("significant",))


def _check_node(node: Node) -> None:
    """Checks that a node and all nodes below it are of this language, with the right types (numbers or truths).

    Raises:
        InputError: when they are not; says what was found and what would be right.
    """
    checks = {
        "number": math.isfinite(node.number or 0.0),
        "name": len(node.words) == 1,
        "product": _ARITHMETIC.keys() >= {*node.words},
    }
    if not checks.get(node.kind, node.kind in {"call", "sign", "sum", "comparison", "and", "or", "not"}):
        raise InputError(f"found {show(node.text)}; expected numbers, measures and comparisons of them")
    if node.kind == "call":
        _check_call(node.words[0], len(node.parts))
    truths = _is_truth(node) and node.kind != "comparison"
    for part in node.parts:
        _check_node(part)
        if _is_truth(part) != truths:
            expected = "a comparison, such as gcc.loss < 0.1" if truths else "a number or a measure"
            raise InputError(f"found {show(part.text)}; expected {expected}")


def _check_call(name: str, count: int) -> None:
    if name not in _FUNCTIONS:
        hint = did_you_mean(name, _FUNCTIONS) or f" (available: {', '.join(_FUNCTIONS)})"
        raise InputError(f"found {show(name)}; there is no such function{hint}")
    single = name in {"abs", "significant"}
    if not count or (single and count > 1):
        raise InputError(f"{name}: found {count} values; expected {'one' if single else 'at least one'}")


def lookup(measures: Mapping[str, Interval], name: str) -> Interval:
    """Finds the measure of a name.

    Raises:
        InputError: when there is none.
    """
    if name not in measures:
        hint = did_you_mean(name, measures)
        raise InputError(f"{name}: the experiment has no such measure{hint}")
    return measures[name]


def _number(node: Node, measures: Mapping[str, Interval]) -> Value:
    if node.kind == "name":
        value = Value.of(lookup(measures, node.words[0]))
        if math.isnan(value.mean):
            raise Undefined(f"{node.words[0]} has no value")
        return value
    if node.number is not None:
        return Value(*[node.number] * 3)
    if node.kind == "call":
        return _call(node.words[0], [_number(part, measures) for part in node.parts])
    value = _number(node.parts[0], measures)
    if node.kind == "sign":
        return -value if node.words == ("-",) else value
    for sign, part in zip(node.words, node.parts[1:], strict=True):
        operand = _number(part, measures)
        if sign == "/" and operand.mean == 0:
            raise Undefined(f"{part.text} is a denominator and has the value 0")
        value = _ARITHMETIC[sign](value, operand)
    if not math.isfinite(value.mean):
        raise Undefined(f"the value of {node.text} is too large")
    return value


def _margins(node: Node, measures: Mapping[str, Interval]) -> Iterator[tuple[float, float]]:
    if node.kind == "comparison":
        means = [_number(part, measures).mean for part in node.parts]
        yield from pairwise(means)
    else:
        for part in node.parts:
            yield from _margins(part, measures)


def _call(name: str, values: Sequence[Value]) -> Value:
    if name == "abs":
        # the greater of the value and its negative; the lower end is not below zero
        greater = _call("max", [values[0], -values[0]])
        return Value(abs(values[0].mean), max(greater.low, 0.0), greater.high)
    pick = min if name == "min" else max
    return Value(*(pick(getattr(value, end) for value in values) for end in ("mean", "low", "high")))


def _truth(node: Node, measures: Mapping[str, Interval]) -> Truth:
    if node.kind == "comparison":
        values = [_number(part, measures) for part in node.parts]
        return _combined([_compared(*operands) for operands in zip(values, node.words, values[1:], strict=False)], all)
    if node.kind in {"not", "call"}:
        inner = _truth(node.parts[0], measures)
        return ~inner if node.kind == "not" else Truth(*[inner.holds and inner.surely] * 3)
    # from left to right: once the result is certain, later parts may be undefined
    truths: list[Truth] = []
    for part in node.parts:
        try:
            truths.append(_truth(part, measures))
        except Undefined:
            if not any(truth.holds is (node.kind == "or") for truth in truths):
                raise
            break
    return _combined(truths, any if node.kind == "or" else all)
