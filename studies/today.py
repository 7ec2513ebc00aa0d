"""Networks that people have, under every controller of the registry: the tables of `docs/scenarios.md` and `docs/policers.md`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any, Self

import tidegate
from support import markdown
from tidegate import Comparison, Scenario
from tidegate.control import registry
from tidegate.results.quality import verdict_on

SEEDS = 5
CONTROLLERS = list(registry.registry())
COLUMNS = {
    "rate (kb/s)": ("receive_rate_bps", 1e-3, 0),
    "loss (%)": ("loss_fraction", 100, 1),
    "delay p95 (ms)": ("one_way_delay_ms_p95", 1, 0),
    "queueing (ms)": ("queueing_delay_ms_mean", 1, 1),
    "frame delay p95 (ms)": ("frame_delay_ms_p95", 1, 0),
    "frozen (s)": ("freeze_time_s", 1, 1),
}
"""Metrics of the call with scale and digits, means over seeds."""


@cache
def compared(name: str, changes: tuple[tuple[str, Any], ...] = ()) -> Comparison:
    """All controllers on a shipped scenario."""
    return tidegate.compare(CONTROLLERS, Scenario.load(name, dict(changes)), seeds=SEEDS, record="summary")


def mean(comparison: Comparison, controller: str, metric: str, flow: str | None = None) -> float:
    """A metric of the call, or of another flow, averaged over the seeds."""
    return fmean(float(run.metrics(flow)[metric]) for run in comparison.runs[controller])


def _cells(comparison: Comparison, controller: str, heads: Mapping[str, tuple[str, float, int]]) -> list[str]:
    return [f"{mean(comparison, controller, metric) * scale:.{digits}f}" for metric, scale, digits in heads.values()]


@dataclass(frozen=True)
class Beside:
    """A flow beside the call, and what the picture compares the scenario with."""

    flow: str
    link: str
    instead: Mapping[str, Any]
    title: str

    @classmethod
    def managed(cls, flow: str, link: str) -> Self:
        """With the queue of RFC 8867 section 4 in place of one that is managed."""
        deep = {f"links.{link}.discipline": "drop-tail", f"links.{link}.queue": {"time": "300ms"}}
        return cls(flow, link, deep, "drop-tail with 300 ms instead")


BESIDE = {
    "fq-codel-home": Beside.managed("backup", "uplink"),
    "pie-cable": Beside.managed("backup", "uplink"),
    "l4s-access": Beside.managed("download", "downlink"),
    "bbr-next-door": Beside(
        "download", "downlink", {"flows.download.tcp.algorithm": "cubic"}, "CUBIC next door instead"
    ),
}
"""Scenarios in which something else is sent, too."""


def table(name: str) -> str:
    """What every controller makes of a scenario."""
    comparison, beside = compared(name), BESIDE.get(name)
    rows = [
        [
            controller,
            *_cells(comparison, controller, COLUMNS),
            *([f"{mean(comparison, controller, 'receive_rate_bps', beside.flow) / 1000:.0f}"] if beside else []),
            verdict_on(run.metrics() for run in comparison.runs[controller]),
        ]
        for controller in CONTROLLERS
    ]
    heads = [*COLUMNS, *([f"{beside.flow} (kb/s)"] if beside else [])]
    return markdown(["controller", *heads, "fit for a call"], 1, rows)


POLICED = "policed-mobile"
SHAPER = {"name": "shaper", "rate": "1.5Mbps", "burst": "50kB"}
"""The same bucket as that of the scenario, with the same queue of 300 ms, at its rate."""


def policed() -> Comparison:
    """All controllers behind the policer."""
    return compared(POLICED)


@cache
def shaped() -> Comparison:
    """All controllers behind a shaper with the policer's bucket."""
    scenario = Scenario.load(POLICED, {"links.cell.discipline": SHAPER})
    return tidegate.compare(CONTROLLERS, scenario, seeds=SEEDS, record="summary")


def policer_table() -> str:
    """Each controller behind the policer and behind the shaper."""
    heads = {name: COLUMNS[name] for name in ("rate (kb/s)", "loss (%)", "delay p95 (ms)", "frozen (s)")}
    rows = [
        [controller, *_cells(policed(), controller, heads), *_cells(shaped(), controller, heads)]
        for controller in CONTROLLERS
    ]
    both = [f"{kind}: {name}" for kind in ("policer", "shaper") for name in heads]
    return markdown(["controller", *both], 1, rows)
