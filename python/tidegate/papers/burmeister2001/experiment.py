"""All of the document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate import paper
from tidegate.paper import Outcome, Plan
from tidegate.paper.reading import load
from tidegate.papers.burmeister2001 import dithering, losses, multicast, newpred, unicast
from tidegate.runs.pool import Job

PARTS = (unicast, multicast, losses, dithering)
"""Modules with `jobs`, whose keys are theirs alone, and `Results` of them, held against published numbers."""


class Experiment(paper.Experiment):
    """All of the document."""

    quick_seeds = 3
    full_seeds = 5

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """The runs of all parts."""
        return {key: job for part in (*PARTS, newpred) for key, job in part.jobs(plan).items()}

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """What they came to."""
        published = load(Path(__file__).parent).printed
        results = [*(part.Results(plan, done, published) for part in PARTS), newpred.Results(plan, done)]
        return Outcome(
            {name: measure for one in results for name, measure in one.measures()},
            tables=[table for one in results for table in one.tables()],
            figures=[figure for one in results for figure in one.figures()],
            notes=multicast.NOTES,
            digests={", ".join(map(str, key)): one.digest for key, one in done.items()},
        )
