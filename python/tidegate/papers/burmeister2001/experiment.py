"""Experiment of the whole document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate import paper
from tidegate.paper import Outcome, Plan
from tidegate.paper.reading import load
from tidegate.papers.burmeister2001 import dithering, losses, multicast, newpred, unicast
from tidegate.runs.pool import Job

PARTS = (unicast, multicast, losses, dithering, newpred)
"""Modules with `jobs`, under keys that no other module uses."""
RESULTS = (
    unicast.UnicastResults,
    multicast.ShareResults,
    losses.LossReportResults,
    dithering.DitheringResults,
)
"""Results that are compared with published numbers."""


class Experiment(paper.Experiment):
    """Tables, figures and statements of all sections."""

    quick_seeds = 3
    full_seeds = 5

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """Jobs of all parts."""
        return {key: job for part in PARTS for key, job in part.jobs(plan).items()}

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures, tables and figures of all parts."""
        published = load(Path(__file__).parent).printed
        parts = [*(results(plan, done, published) for results in RESULTS), newpred.NewpredResults(plan, done)]
        return Outcome(
            {name: measure for part in parts for name, measure in part.measures()},
            tables=[table for part in parts for table in part.tables()],
            figures=[figure for part in parts for figure in part.figures()],
            notes=multicast.NOTES,
            digests={", ".join(map(str, key)): run.digest for key, run in done.items()},
        )
