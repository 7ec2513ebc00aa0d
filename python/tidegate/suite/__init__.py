"""Suites: many controllers on many networks, judged by rules."""

from tidegate.suite.plan import Plan
from tidegate.suite.result import SUITE_FILE, Cell, SuiteResult
from tidegate.suite.suite import Suite

__all__ = ["SUITE_FILE", "Cell", "Plan", "Suite", "SuiteResult"]
