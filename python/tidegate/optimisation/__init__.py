"""Search for the best settings with Optuna, in a scenario or over a suite."""

from tidegate.optimisation.result import OPTIMISE_FILE, SearchResult, Try
from tidegate.optimisation.search import Search
from tidegate.optimisation.tasks import ScenarioTask, SuiteTask

__all__ = ["OPTIMISE_FILE", "ScenarioTask", "Search", "SearchResult", "SuiteTask", "Try"]
