"""Settings that do best: a search by Optuna, in a scenario or over a suite."""

from tidegate.optimising.found import OPTIMISE_FILE, SearchResult, Tried
from tidegate.optimising.search import Search
from tidegate.optimising.tasks import ScenarioTask, SuiteTask

__all__ = ["OPTIMISE_FILE", "ScenarioTask", "Search", "SearchResult", "SuiteTask", "Tried"]
