"""Results: what each number means, statistics over seeds, and the folders that hold what was run."""

from tidegate.results.sweeps import SWEEP_FILE, Results

__all__ = ["SWEEP_FILE", "Results"]
