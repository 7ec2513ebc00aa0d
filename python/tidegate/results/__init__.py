"""Results: definitions of the numbers, statistics over seeds, and folders of saved results."""

from tidegate.results.sweeps import SWEEP_FILE, Results

__all__ = ["SWEEP_FILE", "Results"]
