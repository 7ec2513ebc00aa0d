"""Which rows are wanted: `controller == "gcc" and delay_p95 > 100ms`, over whole columns at once.

Python's grammar, read by its own parser, of which comparisons with `and`, `or` and `not` are let through; nothing of it
is ever run as Python. Names that are none of Python's (`links.uplink.delay`) are taken as they are.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.errors import InputError, did_you_mean
from tidegate.results.metrics import METRICS, Metric
from tidegate.results.metrics.asked import amount, find
from tidegate.units import show

Column = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_LONGEST = 2000  # characters; more is no condition that anybody wrote
_STRING = re.compile(r"""("[^"]*"|'[^']*')""")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*")
_AMOUNT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:[A-Za-z]+(?:/s)?|%))(?![\w%])")
_PLAIN = {"and", "or", "not", "in"}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_EXAMPLE = "'controller == \"gcc\" and delay_p95 > 100ms'"


class Where:
    """A condition, read once and then held against columns.

    >>> where = Where('controller == "gcc" and delay_p95 > 100ms', {"controller": "U", "one_way_delay_ms_p95": "f"})
    >>> where.names
    ('controller', 'one_way_delay_ms_p95')
    >>> where({"controller": np.array(["gcc", "nada", "gcc"]), "one_way_delay_ms_p95": np.array([90.0, 120.0, 130.0])})
    array([False, False,  True])
    """

    def __init__(self, text: str, columns: Mapping[str, str], catalogue: Mapping[str, Metric] = METRICS) -> None:
        """Reads a condition.

        Args:
            text: The condition.
            columns: The columns that there are, each with the letter of its NumPy kind: `U` is text.
            catalogue: What their numbers are, for amounts with units.

        Raises:
            InputError: says what in it was found and what would be right.
        """
        self._columns, self._catalogue = columns, catalogue
        if len(text) > _LONGEST:
            raise InputError(f"--where: found {len(text)} characters; expected at most {_LONGEST}")
        try:
            self._tree = ast.parse(_python(text), mode="eval").body
            self.names: tuple[str, ...] = tuple(dict.fromkeys(self._check(self._tree)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(f"--where: found {show(text)}; expected a condition such as {_EXAMPLE}") from None

    def _column(self, name: str) -> str:
        return column_of(name, self._columns, self._catalogue)

    def _check(self, node: ast.expr) -> list[str]:
        """The columns that a part is about, all of it checked."""
        match node:
            case ast.BoolOp(values=values):
                return [name for value in values for name in self._check(value)]
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return self._check(part)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, tuple(_COMPARED)):
                if (name := _name(left)) is not None and isinstance(right, ast.Constant):
                    column = self._column(name)
                    self._value(column, right.value, op)
                    return [column]
            case ast.Compare(
                left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.List() | ast.Tuple() as several]
            ):
                name = _name(left)
                inside = [one.value for one in several.elts if isinstance(one, ast.Constant)]
                if name is not None and inside and len(inside) == len(several.elts):
                    column = self._column(name)
                    for each in inside:
                        self._value(column, each, ast.Eq())
                    return [column]
        shown = re.sub(r"column\['([^']*)'\]", r"\1", ast.unparse(node))
        raise InputError(f"--where: found {show(shown)}; expected a column compared with a value, as in {_EXAMPLE}")

    def _value(self, column: str, value: object, op: ast.cmpop) -> float | str:
        """What a column is compared with, as the column has it."""
        about = self._catalogue.get(column)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if about is not None and isinstance(value, str):
            return amount(value, about)
        if self._columns[column] != "U":
            if number:
                return float(value)  # type: ignore[arg-type]
            raise InputError(f"--where: {column}: found {show(str(value))}; expected a number")
        if not isinstance(op, ast.Eq | ast.NotEq):
            raise InputError(f"--where: {column}: is text; expected == or != or in [...]")
        return str(value)

    def __call__(self, columns: Mapping[str, Column]) -> Mask:
        """Which rows it holds for; a number that is not there is never more, less or equal."""
        return self._mask(self._tree, columns)

    def _mask(self, node: ast.expr, columns: Mapping[str, Column]) -> Mask:
        match node:
            case ast.BoolOp(op=op, values=values):
                masks = [self._mask(value, columns) for value in values]
                joined: Mask = (np.logical_and if isinstance(op, ast.And) else np.logical_or).reduce(masks)
                return joined
            case ast.UnaryOp(operand=part):
                return ~self._mask(part, columns)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                column = self._column(_name(left) or "")
                if isinstance(right, ast.Constant):
                    found: Mask = _COMPARED[type(op)](columns[column], self._value(column, right.value, op))
                    # nothing is not unlike anything
                    known: Mask = np.equal(columns[column], columns[column])
                    return np.logical_and(found, known)
                several = [one.value for one in right.elts if isinstance(one, ast.Constant)]  # type: ignore[attr-defined]
                every = [self._value(column, value, ast.Eq()) for value in several]
                inside: Mask = np.isin(columns[column], every)
                return inside if isinstance(op, ast.In) else np.logical_not(inside)
        raise AssertionError(ast.dump(node))


def column_of(name: str, columns: Collection[str], catalogue: Mapping[str, Metric] = METRICS) -> str:
    """The column that somebody means: by its whole name, or a metric without its unit.

    Args:
        name: What was typed.
        columns: Those that there are.
        catalogue: What their numbers are.

    Raises:
        InputError: when there is none.
    """
    if name in columns:
        return name
    try:
        return find(name, {one: about for one, about in catalogue.items() if one in columns}).name
    except InputError:
        raise InputError(f"{name}: there is no such column{did_you_mean(name, columns)}") from None


def _python(text: str) -> str:
    """The text as Python's grammar reads all of it: `links.a.delay` and `10ms` are no Python.

    >>> _python('links.a.delay == "5ms" and delay_p95 > 10ms')
    'column["links.a.delay"] == "5ms" and column["delay_p95"] > "10ms"'
    """
    parts = []
    for at, part in enumerate(_STRING.split(text.strip())):
        if at % 2 == 0:
            part = _AMOUNT.sub(r'"\1"', part)  # noqa: PLW2901
            pieces = _STRING.split(part)
            pieces[::2] = [_NAME.sub(_column, piece) for piece in pieces[::2]]
            part = "".join(pieces)  # noqa: PLW2901
        parts.append(part)
    return "".join(parts)


def _column(found: re.Match[str]) -> str:
    return found[0] if found[0] in _PLAIN else f'column["{found[0]}"]'


def _name(node: ast.expr) -> str | None:
    match node:
        case ast.Subscript(value=ast.Name(id="column"), slice=ast.Constant(value=str() as name)):
            return name
    return None
