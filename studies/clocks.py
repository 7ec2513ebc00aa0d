"""Clocks that run apart or are set, under every controller of the registry: the tables of `docs/clocks.md`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import fmean
from typing import Any

import tidegate
from kept import kept
from support import markdown
from tidegate import Scenario
from tidegate.control import registry

SEEDS = 5
SECONDS, HALF = 120, 60
"""Length of a call and the part of it that metrics leave out; a clock is set in the middle."""
CONTROLLERS = list(registry.registry())
CLOCKS: Mapping[str, Mapping[str, Any]] = {
    "true": {},
    "500 ppm fast": {"ppm": 500.0},
    "500 ppm slow": {"ppm": -500.0},
    "set 250 ms ahead": {"steps": [{"time": f"{HALF}s", "ahead": "250ms"}]},
    "set 250 ms back": {"steps": [{"time": f"{HALF}s", "behind": "250ms"}]},
}
"""Clocks of the receiver, by name."""
METRICS = {"receive_rate_bps": (1e-3, 0), "one_way_delay_ms_p95": (1.0, 0)}
"""Metrics of the second half with scale and digits."""


@kept
def run(controller: str, clock: str, seed: int) -> Mapping[str, float]:
    """Metrics of the second half of a call over 2 Mbit/s and 25 ms, whose receiver has the clock of that name."""
    data = {
        "name": "clocks",
        "duration": f"{SECONDS}s",
        "warmup": f"{HALF}s",
        "links": [{"name": "link", "capacity": "2Mbps", "delay": "25ms"}],
        "flows": [{"name": "call", "media": {}}],
        **({"clocks": {"right": dict(CLOCKS[clock])}} if CLOCKS[clock] else {}),
    }
    scenario = Scenario.from_dict(data)
    (done,) = tidegate.compare([controller], scenario, seeds=[seed], record="summary").runs[controller]
    metrics = done.metrics()
    return {metric: float(metrics[metric]) for metric in METRICS}


def _cell(controller: str, clock: str, metric: str) -> str:
    scale, digits = METRICS[metric]
    return f"{fmean(run(controller, clock, seed)[metric] for seed in range(1, SEEDS + 1)) * scale:.{digits}f}"


def table(metric: str) -> str:
    """A metric of every controller with every clock."""
    rows = [[controller, *(_cell(controller, clock, metric) for clock in CLOCKS)] for controller in CONTROLLERS]
    return markdown(["controller", *CLOCKS], 1, rows)


TABLES = {("clocks.md", metric): partial(table, metric) for metric in METRICS}
