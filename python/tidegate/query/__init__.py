"""One grammar for questions about numbers: metrics, amounts, conditions, goals and ranges."""

from tidegate.query.conditions import Condition, Series
from tidegate.query.filters import RowFilter, column_of
from tidegate.query.grammar import parse
from tidegate.query.intervals import Expression
from tidegate.query.names import amount, find

__all__ = ["Condition", "Expression", "RowFilter", "Series", "amount", "column_of", "find", "parse"]
