"""Which rows are wanted: `controller == "gcc" and delay_p95 > 100ms`, over whole columns at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tidegate.errors import InputError, did_you_mean, located
from tidegate.query.conditions import Condition, Series
from tidegate.query.grammar import Node, parse
from tidegate.query.names import amount, find
from tidegate.results.metrics import METRICS, Metric
from tidegate.units import show

Column = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
_Rows: TypeAlias = Callable[[Mapping[str, Column]], Mask]

_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_VALUES = {"number", "amount", "text", "sign", "product"}  # `2/s` is a product
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
            InputError: says what was found and what would be right.
        """
        self._columns, self._catalogue = columns, catalogue
        self.conditions: list[Condition] = []
        """What is asked of metrics, in order."""
        self._names: dict[str, None] = {}
        with located("--where"):
            self._rows = self._read(parse(text, f"found {show(text)}; expected a condition such as {_EXAMPLE}"))
        self.names = tuple(self._names)
        """The columns that it is about."""

    def __call__(self, columns: Mapping[str, Column]) -> Mask:
        """Which rows it holds for; a number that is not there is never more, less or equal, and not unlike anything."""
        return self._rows(columns)

    def _read(self, node: Node) -> _Rows:
        """What tells the rows for which a part holds."""
        join = np.logical_or if node.kind in {"or", "in"} else np.logical_and
        inverted = node.kind == "not" or node.words == ("not in",)
        if node.kind in {"and", "or", "not"}:
            parts = [self._read(part) for part in node.parts]
        else:
            parts = [self._compared(*pair) for pair in node.pairs]
        if not parts:
            raise _wrong(node)
        return lambda columns: join.reduce([rows(columns) for rows in parts]) ^ inverted

    def _compared(self, name: Node, sense: str, right: Node) -> _Rows:
        """What tells the rows for which a column and a value compare so."""
        if name.kind != "name" or len(name.words) > 1 or right.kind not in _VALUES:
            raise _wrong(name, sense, right)
        column = column_of(name.words[0], self._columns, self._catalogue)
        value, compare = self._value(column, sense, right), _COMPARED[sense]
        self._names[column] = None
        if column in self._catalogue and not isinstance(value, str):
            self.conditions.append(Condition(Series(self._catalogue[column]), sense, value))
        # a number that is not there is not equal to itself
        return lambda columns: compare(columns[column], value) & (columns[column] == columns[column])

    def _value(self, column: str, sense: str, right: Node) -> float | str:
        """What a column is compared with, as the column has it."""
        metric, text = self._catalogue.get(column), self._columns[column] == "U"
        if right.number is not None and not text:
            return right.number
        if metric is not None:
            return amount(right.value, metric)
        if not text:
            raise InputError(f"{column}: found {show(right.value)}; expected a number")
        if sense not in {"==", "!="}:
            raise InputError(f"{column}: is text; expected == or != or in [...]")
        return right.value


def _wrong(*parts: Node | str) -> InputError:
    shown = show(" ".join(part if isinstance(part, str) else part.text for part in parts))
    return InputError(f"found {shown}; expected a column compared with a value, as in {_EXAMPLE}")


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
        return find(name, {each: catalogue[each] for each in columns if each in catalogue}).name
    except InputError:
        raise InputError(f"{name}: there is no such column{did_you_mean(name, columns)}") from None
