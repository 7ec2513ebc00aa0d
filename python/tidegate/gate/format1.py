"""Baselines of format 1, whose hashes were of texts: `python -m tidegate.gate.format1 baseline.json` rewrites one.

The old hashes are computed as they were; where they hold, those by meaning take their place, and no number changes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tidegate._files import sha256
from tidegate.errors import InputError
from tidegate.gate import baseline as kept
from tidegate.gate.baseline import Baseline
from tidegate.results.metrics import finite
from tidegate.running import Run, RunJob
from tidegate.running.jobs import attempt
from tidegate.suite import Suite, measures
from tidegate.suite.cases import Case


def convert(path: Path, traces: Path | None = None) -> None:
    """Rewrites a baseline of format 1 in today's format.

    Raises:
        InputError: when it is of another suite, network or engine.
    """
    old = Baseline.load(path, format_of=1)
    suite = Suite.load(old.suite, traces=traces)
    cases = [case for case in suite.cases if case.name in old.cases]
    engine = _engines(cases)
    for case in cases:
        known = old.cases[case.name]
        if (known.network, known.engine) != (_network(case), engine[case.name]):
            what = "network" if known.network != _network(case) else "engine"
            raise InputError(f"{path}: {case.name} is of another {what}; make the baseline again")
    if len(cases) < len(old.cases):
        raise InputError(f"{path}: {suite.name} lacks cases of it; make the baseline again")
    hashes = kept.engines(suite, {name: known.values for name, known in old.cases.items()})
    new = {
        case.name: replace(old.cases[case.name], network=kept.network(case), engine=hashes[case.name]) for case in cases
    }
    replace(old, cases=new).save(path)


def _network(case: Case) -> str:
    text = case.scenario.to_toml() if case.scenario is not None else ""
    return hashlib.sha256(f"{text} {case.who}".encode()).hexdigest()[:16]


def _engines(cases: Sequence[Case]) -> dict[str, str]:
    jobs = [RunJob(case.with_controller(kept.REFERENCE), 1, "summary") for case in cases]
    measuring = " ".join(map(sha256, measures.FILES))
    return {
        case.name: _behaviour(run, measuring) for case, run in zip(cases, attempt(jobs, keep_going=True), strict=True)
    }


def _behaviour(run: Run | BaseException, measuring: str) -> str:
    if isinstance(run, BaseException):
        return "none"
    flows = [
        {name: kept.rounded(finite(value)) if finite(value) is not None else value for name, value in flow.items()}
        for flow in run.summary["flows"]
    ]
    text = json.dumps([run.digest, flows, measuring], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    try:
        convert(*map(Path, sys.argv[1:]))
    except InputError as error:
        sys.exit(str(error))
