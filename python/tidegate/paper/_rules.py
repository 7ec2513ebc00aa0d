"""The rules that claims are judged by: a small language of numbers, measures and comparisons.

`udp.loss / gcc.loss >= 2 and gcc.loss < 0.2` is a rule. There are numbers, names of measures (words with
dots between them; `measure["table 1/0.5 Mb/s"]` for any other name), `+ - * /`, `< <= > >= == !=`
(also chained), `and`, `or`, `not`, and `abs`, `min`, `max` and `significant`. Nothing else is read, and
nothing of it is ever run as Python.

A rule holds or not by the means of its measures. Beside that it is *sure* where every value inside the
95 % intervals says the same; `significant(a < b)` holds only where it is sure, which for two bare
measures means that their intervals do not overlap. Intervals are carried through arithmetic by their
ends, as if luck were as bad as it can be on both sides: a difference between runs that share their luck
is better measured seed by seed, as a measure of its own.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tidegate.errors import InputError, did_you_mean
from tidegate.results.stats import Interval
from tidegate.units import show

Kind = Literal["number", "truth"]

_LONGEST = 2000  # characters of a rule; more is no rule that anybody checks
_FORGIVEN = 1e-12  # of the larger side: what decimal fractions lose in binary at an exact bound


class Undefined(Exception):
    """A rule that says nothing of these measures: one has no value, or stands as zero in a denominator."""


@dataclass(frozen=True)
class Value:
    """A number with the ends of its interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, one: Interval) -> Value:
        """The value of a measure; without a second run its interval has no ends."""
        half = math.inf if one.half is None else one.half
        return cls(one.mean, one.mean - half, one.mean + half)

    @classmethod
    def exact(cls, number: float) -> Value:
        """A number that is no measurement."""
        return cls(number, number, number)


@dataclass(frozen=True)
class Truth:
    """Whether something holds."""

    holds: bool
    """By the means."""
    surely: bool
    """For all values inside the intervals."""
    possibly: bool
    """For some values inside the intervals."""

    @property
    def sure(self) -> bool:
        """Whether all values inside the intervals say the same as the means."""
        return self.surely if self.holds else not self.possibly


class Expression:
    """A rule or a number, read once and then looked up against measures.

    >>> rule = Expression("udp.loss / gcc.loss >= 2")
    >>> rule.kind, rule.names
    ('truth', ('udp.loss', 'gcc.loss'))
    >>> rule.truth({"udp.loss": Interval(0.4, 0.1, 5), "gcc.loss": Interval(0.1, 0.01, 5)})
    Truth(holds=True, surely=True, possibly=True)
    >>> Expression("__import__('os')")
    Traceback (most recent call last):
    ...
    tidegate.errors.InputError: found "__import__"; there is no such function (there are abs, max, min, significant)
    """

    def __init__(self, text: str) -> None:
        """Reads a rule.

        Raises:
            InputError: says what in it was found and what would be right.
        """
        self.text = " ".join(text.split())
        if len(self.text) > _LONGEST:
            raise InputError(f"found {show(self.text)}; expected a rule of at most {_LONGEST} characters")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # what the compiler only frowns at is no rule either
                self._tree = ast.parse(_quoted(self.text), mode="eval").body
            self.kind: Kind = _kind(self._tree)
            self.names: tuple[str, ...] = tuple(dict.fromkeys(_names(self._tree)))
        except (SyntaxError, ValueError, OverflowError):
            raise InputError(f'found {show(text)}; expected a rule such as "udp.loss / gcc.loss >= 2"') from None
        except (RecursionError, MemoryError):
            raise InputError(f"found {show(text)}; it is nested too deeply") from None

    def truth(self, measures: Mapping[str, Interval]) -> Truth:
        """Whether it holds.

        Raises:
            Undefined: when a measure in it has no value, or a denominator is zero.
            InputError: when there is no such measure.
        """
        return _truth(self._tree, measures)

    def number(self, measures: Mapping[str, Interval]) -> Value:
        """Its value, for an expression that is a number.

        Raises:
            Undefined: when a measure in it has no value, or a denominator is zero.
            InputError: when there is no such measure.
        """
        return _number(self._tree, measures)

    @property
    def is_measure(self) -> bool:
        """Whether it is the name of a measure and nothing else."""
        return _name(self._tree) is not None

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


# --- reading --------------------------------------------------------------------------------------

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_FUNCTIONS = ("abs", "max", "min", "significant")


_STRING = re.compile(r"""("[^"]*"|'[^']*')""")
_DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+(?![\w.])", re.ASCII)


def _quoted(text: str) -> str:
    """The text with dotted names as Python's grammar can read them all: `loss.4` is no attribute.

    >>> _quoted('loss.4 < measure["a.b"] + 1.5')
    'measure["loss.4"] < measure["a.b"] + 1.5'
    """
    parts = _STRING.split(text)
    return "".join(part if at % 2 else _DOTTED.sub(r'measure["\g<0>"]', part) for at, part in enumerate(parts))


def _text(node: ast.expr) -> str:
    """A part as its author wrote it, but for spaces and brackets."""
    return re.sub(r"measure\['([A-Za-z_][\w.]*)'\]", r"\1", ast.unparse(node))


def _kind(node: ast.expr) -> Kind:
    """What a part is, all of it checked."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number) if math.isfinite(number):
            return "number"
        case ast.Name() | ast.Subscript() if _name(node) is not None:
            return "number"
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=part):
            return _all("number", part)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return _all("truth", part)
        case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _ARITHMETIC):
            return _all("number", left, right)
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(isinstance(op, _COMPARISONS) for op in ops):
            _all("number", left, *rest)
            return "truth"
        case ast.BoolOp(values=values):
            return _all("truth", *values)
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
            return _call(name, parts)
    raise InputError(f"found {show(_text(node))}; expected numbers, measures and comparisons of them")


def _call(name: str, parts: list[ast.expr]) -> Kind:
    if name not in _FUNCTIONS:
        hint = did_you_mean(name, _FUNCTIONS) or f" (there are {', '.join(_FUNCTIONS)})"
        raise InputError(f"found {show(name)}; there is no such function{hint}")
    one = name in {"abs", "significant"}
    if not parts or (one and len(parts) > 1):
        raise InputError(f"{name}: found {len(parts)} values; expected {'one' if one else 'at least one'}")
    return _all("truth" if name == "significant" else "number", *parts)


def _all(kind: Kind, *parts: ast.expr) -> Kind:
    for part in parts:
        if _kind(part) != kind:
            right = "a number or a measure" if kind == "number" else "a comparison, such as gcc.loss < 0.1"
            raise InputError(f"found {show(_text(part))}; expected {right}")
    return kind


def _name(node: ast.expr) -> str | None:
    """The measure that a part names."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=ast.Name(id="measure"), slice=ast.Constant(value=str() as name)):
            return name
    return None


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.expr) and (name := _name(node)) is not None:
        yield name
        return
    # the name of a function is none of a measure
    parts = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    for part in parts:
        yield from _names(part)


# --- looking up -----------------------------------------------------------------------------------


def lookup(measures: Mapping[str, Interval], name: str) -> Interval:
    """The measure of that name.

    Raises:
        InputError: when there is none.
    """
    if name not in measures:
        hint = did_you_mean(name, measures)
        raise InputError(f"{name}: the experiment has no such measure{hint}")
    return measures[name]


def _number(node: ast.expr, measures: Mapping[str, Interval]) -> Value:
    name = _name(node)
    if name is not None:
        value = Value.of(lookup(measures, name))
        if math.isnan(value.mean):
            raise Undefined(f"{name} has no value")
        return value
    match node:
        case ast.Constant(value=int() | float() as number):
            return Value.exact(float(number))
        case ast.UnaryOp(op=op, operand=part):
            value = _number(part, measures)
            return Value(-value.mean, -value.high, -value.low) if isinstance(op, ast.USub) else value
        case ast.BinOp(op=op, left=left, right=right):
            value = _binary(op, _number(left, measures), _number(right, measures), right)
            if not math.isfinite(value.mean):
                raise Undefined(f"{_text(node)} is too large a number")
            return value
        case ast.Call(func=ast.Name(id=name), args=parts):
            return _function(name, [_number(part, measures) for part in parts])
    raise AssertionError(ast.dump(node))


def _binary(op: ast.operator, a: Value, b: Value, denominator: ast.expr) -> Value:
    match op:
        case ast.Add():
            return Value(a.mean + b.mean, a.low + b.low, a.high + b.high)
        case ast.Sub():
            return Value(a.mean - b.mean, a.low - b.high, a.high - b.low)
        case ast.Mult():
            return _corners(a, b, operator.mul)
    if b.mean == 0:
        raise Undefined(f"{_text(denominator)} is 0, and divides")
    if b.low <= 0 <= b.high:
        return Value(a.mean / b.mean, -math.inf, math.inf)
    return _corners(a, b, operator.truediv)


def _corners(a: Value, b: Value, do: Callable[[float, float], float]) -> Value:
    ends = [do(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(math.isnan(end) for end in ends):  # infinity times zero: anything
        return Value(do(a.mean, b.mean), -math.inf, math.inf)
    return Value(do(a.mean, b.mean), min(ends), max(ends))


def _function(name: str, values: list[Value]) -> Value:
    if name == "abs":
        (one,) = values
        ends = (abs(one.low), abs(one.high))
        return Value(abs(one.mean), 0.0 if one.low <= 0 <= one.high else min(ends), max(ends))
    pick = min if name == "min" else max
    return Value(*(pick(getattr(one, end) for one in values) for end in ("mean", "low", "high")))


def _truth(node: ast.expr, measures: Mapping[str, Interval]) -> Truth:
    match node:
        case ast.UnaryOp(operand=part):
            one = _truth(part, measures)
            return Truth(not one.holds, not one.possibly, not one.surely)
        case ast.BoolOp(op=op, values=parts):
            return _joined(parts, measures, any if isinstance(op, ast.Or) else all)
        case ast.Call(args=[part]):
            one = _truth(part, measures)
            sure = one.holds and one.surely
            return Truth(sure, sure, sure)
        case ast.Compare(left=left, ops=ops, comparators=rest):
            values = [_number(part, measures) for part in (left, *rest)]
            pairs = [_compare(op, a, b) for op, a, b in zip(ops, values[:-1], values[1:], strict=True)]
            return _fold(pairs, all)
    raise AssertionError(ast.dump(node))


def _joined(parts: list[ast.expr], measures: Mapping[str, Interval], how: Callable[[Iterator[bool]], bool]) -> Truth:
    """`and` and `or`, as they are read: once it is decided, what comes after need not be defined."""
    seen: list[Truth] = []
    decided = how is any
    for part in parts:
        try:
            seen.append(_truth(part, measures))
        except Undefined:
            if not any(one.holds is decided for one in seen):
                raise
            break
    return _fold(seen, how)


def _fold(parts: list[Truth], how: Callable[[Iterator[bool]], bool]) -> Truth:
    return Truth(how(one.holds for one in parts), how(one.surely for one in parts), how(one.possibly for one in parts))


def at_most(a: float, b: float) -> bool:
    """Whether `a <= b`, an exact bound forgiven what decimal fractions lose in binary.

    >>> 0.1 + 0.2 <= 0.3, at_most(0.1 + 0.2, 0.3), at_most(0.3000001, 0.3)
    (False, True, False)
    """
    scale = max(abs(a), abs(b))
    return a <= b or (math.isfinite(scale) and a - b <= _FORGIVEN * scale)


def _compare(op: ast.cmpop, a: Value, b: Value) -> Truth:
    match op:
        case ast.LtE():
            return Truth(at_most(a.mean, b.mean), at_most(a.high, b.low), at_most(a.low, b.high))
        case ast.GtE():
            return _compare(ast.LtE(), b, a)
        case ast.Gt():
            return _not(_compare(ast.LtE(), a, b))
        case ast.Lt():
            return _not(_compare(ast.LtE(), b, a))
        case ast.NotEq():
            return _not(_compare(ast.Eq(), a, b))
    return _fold([_compare(ast.LtE(), a, b), _compare(ast.LtE(), b, a)], all)


def _not(one: Truth) -> Truth:
    return Truth(not one.holds, not one.possibly, not one.surely)
