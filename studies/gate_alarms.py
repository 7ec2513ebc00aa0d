"""How often the gate alarms for nothing, and what it misses: the numbers of real runs of `smoke`, of which checks are drawn.

Each of 500 checks draws its seeds from the same bank of runs. The figures are in docs/ci.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kept import kept
from tidegate.gate import baseline
from tidegate.gate.rules import DEFAULT, Rule
from tidegate.runs import Run, RunJob
from tidegate.runs.jobs import attempt
from tidegate.suite import Suite, numbers

NULLS = ("gcc", "gcc:beta=0.850001", "gcc:beta=0.850002", "gcc:beta=0.849999")
"""The same for a verdict by means, over other runs."""
SLOWER = "gcc:beta=0.75"
"""Beside TCP it has 11 to 12 % less."""
SEEDS, CHUNK = 200, 10
RULES = [Rule.parse(text) for text in DEFAULT]

Column = Sequence[float | None]
Bank = Mapping[tuple[str, str], Mapping[str, Column]]
"""By case and controller the numbers of each seed by series."""


@kept
def chunk(case: str, controller: str, first: int) -> dict[str, list[float | None]]:
    """What the rules are about, of ten runs: by series, the numbers of the seeds from `first` on."""
    played = next(table for table in Suite.load("smoke").cases if table.name == case)
    scenario = played.with_controller(controller)
    runs = attempt([RunJob(scenario, seed, "summary") for seed in range(first, first + CHUNK)])
    rows = [_numbers(run, played.contending(run.flows)) for run in runs if isinstance(run, Run)]
    if len(rows) < CHUNK:
        raise RuntimeError(f"{case}, {controller}: a run failed: {runs}")
    return {name: [row[name] for row in rows] for name in rows[0]}


def _numbers(run: Run, contenders: Sequence[str]) -> dict[str, float | None]:
    row = {"contenders": contenders, "flows": run.summary["flows"], "measures": {"flows": {}, "run": {}}}
    return {rule.series: baseline.rounded(numbers.number(row, rule.metric.name, rule.scope)) for rule in RULES}


def bank() -> Bank:
    """All of them."""
    columns: dict[tuple[str, str], dict[str, list[float | None]]] = {}
    for case in Suite.load("smoke").cases:
        for controller in (*NULLS, SLOWER):
            column = columns.setdefault((case.name, controller), {})
            for first in range(1, SEEDS + 1, CHUNK):
                for name, values in chunk(case.name, controller, first).items():
                    column.setdefault(name, []).extend(values)
    return columns


TABLES: Mapping[tuple[str, str], Callable[[], str]] = {}
"""None: docs/ci.md has two sentences."""


def further() -> None:
    """Asks for what tests look at."""
    bank()
