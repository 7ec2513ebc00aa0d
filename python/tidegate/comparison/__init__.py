"""Comparisons of several controllers, and sweeps over all combinations of a grid of values."""

from tidegate.comparison.comparison import COMPARISON_FILE, Comparison, compare, sessions_of
from tidegate.scenario.variants import scenario_for, with_controller

__all__ = ["COMPARISON_FILE", "Comparison", "compare", "scenario_for", "sessions_of", "with_controller"]
