"""Published documents run again: each of their numbers beside ours, with a computed verdict.

`papers/KEY/paper.toml` holds a document's claims as data, and `papers/KEY/experiment.py` the code that measures
the same. [run][tidegate.paper.run] runs that code and judges the claims. See `docs/papers.md`.
"""

from __future__ import annotations

from tidegate.paper.experiment import Experiment, Outcome, Plan, Then, group_seeds
from tidegate.paper.figures import Drawing, Sheet
from tidegate.paper.measures import Measure, Quantity, Table
from tidegate.paper.result import PAPER_FILE, Result, list_papers, run
from tidegate.paper.verdicts import Backing, Judgement, Verdict

__all__ = [
    "PAPER_FILE",
    "Backing",
    "Drawing",
    "Experiment",
    "Judgement",
    "Measure",
    "Outcome",
    "Plan",
    "Quantity",
    "Result",
    "Sheet",
    "Table",
    "Then",
    "Verdict",
    "group_seeds",
    "list_papers",
    "run",
]
