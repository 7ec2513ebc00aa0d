"""One grammar for what people ask of numbers: metrics, amounts, conditions, goals and ranges."""

from tidegate.query.columns import Where, column_of
from tidegate.query.conditions import Condition, Series
from tidegate.query.grammar import parse
from tidegate.query.intervals import Expression
from tidegate.query.names import amount, find

__all__ = ["Condition", "Expression", "Series", "Where", "amount", "column_of", "find", "parse"]
