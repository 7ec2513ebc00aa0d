"""Many runs of one question: several controllers side by side, or every combination of a grid of values."""

from tidegate.comparing.comparison import (
    COMPARISON_FILE,
    DEFAULT,
    Comparison,
    anchored,
    attempt,
    busy_in_python,
    compare,
    execute,
    file_name,
    file_names,
    scenario_for,
    seeds_from,
    seeds_of,
    with_controller,
)

__all__ = [
    "COMPARISON_FILE",
    "DEFAULT",
    "Comparison",
    "anchored",
    "attempt",
    "busy_in_python",
    "compare",
    "execute",
    "file_name",
    "file_names",
    "scenario_for",
    "seeds_from",
    "seeds_of",
    "with_controller",
]
