"""Suites: many controllers on many networks, judged by rules."""

from tidegate.suite._shapes import SUITE_FILE
from tidegate.suite.plan import Plan
from tidegate.suite.result import Cell, SuiteResult
from tidegate.suite.suite import Suite

__all__ = ["SUITE_FILE", "Cell", "Plan", "Suite", "SuiteResult"]
