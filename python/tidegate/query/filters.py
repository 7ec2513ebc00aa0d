"""Filters of rows, as in `--where`: `controller == "gcc" and delay_p95 > 100ms`, for whole columns at once."""

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

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_VALUES = {"number", "amount", "text", "sign", "product"}  # `2/s` is a product
_EXAMPLE = "'controller == \"gcc\" and delay_p95 > 100ms'"


class RowFilter:
    """A condition on rows, parsed once and then applied to columns.

    >>> text = 'controller == "gcc" and delay_p95 > 100ms'
    >>> row_filter = RowFilter(text, {"controller": "U", "one_way_delay_ms_p95": "f"})
    >>> row_filter.names
    ('controller', 'one_way_delay_ms_p95')
    >>> delays = np.array([90.0, 120.0, 130.0])
    >>> row_filter({"controller": np.array(["gcc", "nada", "gcc"]), "one_way_delay_ms_p95": delays})
    array([False, False,  True])
    """

    def __init__(self, text: str, columns: Mapping[str, str], catalogue: Mapping[str, Metric] = METRICS) -> None:
        """Parses a condition.

        Args:
            text: The condition.
            columns: Names of the columns, each with the letter of its NumPy kind: `U` is text.
            catalogue: Metrics by name of their columns, for amounts with units.

        Raises:
            InputError: when the text is not a condition on these columns; says what was found and what would be right.
        """
        self._columns, self._catalogue = columns, catalogue
        self.conditions: list[Condition] = []
        """Conditions on metrics, in their order in the text."""
        self._names: dict[str, None] = {}
        with located("--where"):
            self._rows = self._row_test(parse(text, f"found {show(text)}; expected a condition such as {_EXAMPLE}"))
        self.names = tuple(self._names)
        """Names of the columns in the condition."""

    def __call__(self, columns: Mapping[str, Column]) -> Mask:
        """Returns the mask of the rows for which the condition holds; no comparison, not even !=, holds for NaN."""
        return self._rows(columns)

    def _row_test(self, node: Node) -> _Rows:
        """Makes the function that computes the mask of a part of the condition."""
        join = np.logical_or if node.kind in {"or", "in"} else np.logical_and
        inverted = node.kind == "not" or node.words == ("not in",)
        if node.kind in {"and", "or", "not"}:
            parts = [self._row_test(part) for part in node.parts]
        else:
            parts = [self._comparison(*pair) for pair in node.pairs]
        if not parts:
            raise _no_comparison(node)
        return lambda columns: join.reduce([rows(columns) for rows in parts]) ^ inverted

    def _comparison(self, name: Node, sense: str, operand: Node) -> _Rows:
        """Makes the function that computes the mask of a comparison of a column with a value."""
        if name.kind != "name" or len(name.words) > 1 or operand.kind not in _VALUES:
            raise _no_comparison(name, sense, operand)
        column = column_of(name.words[0], self._columns, self._catalogue)
        value, compare = self._operand_value(column, sense, operand), _OPERATORS[sense]
        self._names[column] = None
        if column in self._catalogue and not isinstance(value, str):
            self.conditions.append(Condition(Series(self._catalogue[column]), sense, value))
        # NaN stands for a missing number, and is not equal to itself
        return lambda columns: compare(columns[column], value) & (columns[column] == columns[column])

    def _operand_value(self, column: str, sense: str, operand: Node) -> float | str:
        """Converts the right side of a comparison to the unit and type of the column."""
        metric, text = self._catalogue.get(column), self._columns[column] == "U"
        if operand.number is not None and not text:
            return operand.number
        if metric is not None:
            return amount(operand.value, metric)
        if not text:
            raise InputError(f"{column}: found {show(operand.value)}; expected a number")
        if sense not in {"==", "!="}:
            raise InputError(f"{column}: found {sense} for a column of text; expected ==, != or in [...]")
        return operand.value


def _no_comparison(*parts: Node | str) -> InputError:
    text = show(" ".join(part if isinstance(part, str) else part.text for part in parts))
    return InputError(f"found {text}; expected a column compared with a value, as in {_EXAMPLE}")


def column_of(name: str, columns: Collection[str], catalogue: Mapping[str, Metric] = METRICS) -> str:
    """Finds a column by its whole name, or by a metric's name without its unit.

    Args:
        name: The name as it was typed.
        columns: Names of the columns.
        catalogue: The known metrics, keyed by column name.

    Raises:
        InputError: when there is no such column.
    """
    if name in columns:
        return name
    try:
        return find(name, {column: catalogue[column] for column in columns if column in catalogue}).name
    except InputError:
        raise InputError(f"{name}: there is no such column{did_you_mean(name, columns)}") from None
