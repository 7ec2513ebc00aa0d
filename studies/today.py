"""Networks that people have, under every controller of the registry: the tables of `docs/scenarios.md` and `docs/policers.md`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Self

import numpy as np

import tidegate
from kept import kept
from support import markdown
from tidegate import Scenario
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
    "without picture (s)": ("without_picture_s", 1, 1),
}
"""Metrics of the call with scale and digits, means over seeds."""


WANTED = (*(metric for metric, *_ in COLUMNS.values()), "quality", "quality_network")
"""Metrics that tables are made of."""
SHAPER = {"name": "shaper", "rate": "1.5Mbps", "burst": "50kB"}
"""The same bucket as that of the policer's scenario, with the same queue of 300 ms, at its rate."""
RFC_3550 = {"flows.call.media.feedback.reports": "rfc3550"}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "shaper": {"links.cell.discipline": SHAPER},
    "rfc3550": RFC_3550,
    "shaper, rfc3550": {"links.cell.discipline": SHAPER, **RFC_3550},
    "no repair": {"flows.call.media.repair": "none"},
}
"""Changes of a scenario, by name."""


@kept
def run(name: str, changes: str, controller: str, seed: int) -> Mapping[str, Mapping[str, Any]]:
    """Metrics of a controller on a shipped scenario with the changes of that name, for the call ("") and for each flow."""
    scenario = Scenario.load(name, dict(CHANGES[changes]))
    (done,) = tidegate.compare([controller], scenario, seeds=[seed], record="summary").runs[controller]
    call = done.metrics()
    return {
        "": {metric: call[metric] for metric in WANTED},
        **{flow: {"receive_rate_bps": done.metrics(flow)["receive_rate_bps"]} for flow in done.flows},
    }


@dataclass(frozen=True)
class Runs:
    """All controllers on a scenario."""

    name: str
    changes: str = ""

    def of(self, controller: str, flow: str = "") -> list[Mapping[str, Any]]:
        """The metrics of the call, or of another flow, a seed each."""
        return [run(self.name, self.changes, controller, seed)[flow] for seed in range(1, SEEDS + 1)]

    def mean(self, controller: str, metric: str, flow: str = "") -> float:
        """A metric averaged over the seeds."""
        return fmean(float(metrics[metric]) for metrics in self.of(controller, flow))

    def cells(self, controller: str, heads: Mapping[str, tuple[str, float, int]]) -> list[str]:
        """Means as a table has them."""
        return [f"{self.mean(controller, metric) * scale:.{digits}f}" for metric, scale, digits in heads.values()]


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
    runs, beside = Runs(name), BESIDE.get(name)
    rows = [
        [
            controller,
            *runs.cells(controller, COLUMNS),
            *([f"{runs.mean(controller, 'receive_rate_bps', beside.flow) / 1000:.0f}"] if beside else []),
            verdict_on(runs.of(controller)),
        ]
        for controller in CONTROLLERS
    ]
    heads = [*COLUMNS, *([f"{beside.flow} (kb/s)"] if beside else [])]
    return markdown(["controller", *heads, "within limits"], 1, rows)


POLICED = "policed-mobile"
policed, shaped = Runs(POLICED), Runs(POLICED, "shaper")


def policer_table() -> str:
    """Each controller behind the policer and behind the shaper."""
    heads = {name: COLUMNS[name] for name in ("rate (kb/s)", "loss (%)", "delay p95 (ms)", "without picture (s)")}
    rows = [
        [controller, *policed.cells(controller, heads), *shaped.cells(controller, heads)] for controller in CONTROLLERS
    ]
    both = [f"{kind}: {name}" for kind in ("policer", "shaper") for name in heads]
    return markdown(["controller", *both], 1, rows)


HANDOVER = "wifi-to-lte"
ON_LTE, HOME_AGAIN, REACHED_BPS = (25.0, 50.0), 50.0, 2e6
"""Seconds of the scenario that a call has to find the rate of LTE, and at which it is on Wi-Fi again; and most of what its
encoder wants, 2.5 Mbit/s."""


@kept
def handover(signalled: bool, controller: str, seed: int) -> list[float | None]:
    """Receive rate (bit/s) on LTE, seconds until the target is `REACHED_BPS` on Wi-Fi again, and seconds without a picture.

    `None` where the target does not come so far.
    """
    scenario = Scenario.load(HANDOVER)
    moves = scenario.to_dict()["moves"]
    paths = [{**move, "signalled": signalled} if move["key"] == "path" else move for move in moves]
    (done,) = tidegate.compare(
        [controller], scenario.with_changes({"moves": paths}), seeds=[seed], record="series"
    ).runs[controller]
    series, decisions = done.table("series"), done.table("decisions")
    times = series.to_numpy("t_s")
    on_lte = (times >= ON_LTE[0]) & (times < ON_LTE[1])
    after, target = decisions.to_numpy("t_s") - HOME_AGAIN, decisions.to_numpy("target_bps")
    reached = after[(after > 0) & (target >= REACHED_BPS)]
    return [
        float(np.nanmean(series.to_numpy("receive_rate_bps")[on_lte])),
        float(reached[0]) if len(reached) else None,
        done.metrics()["without_picture_s"],
    ]


def handover_table() -> str:
    """Each controller from Wi-Fi to LTE and back, where the ends hear of it and where they do not."""
    rows = []
    for controller in CONTROLLERS:
        each: list[list[str]] = []
        for signalled in (True, False):
            rates, reached, stood = zip(
                *(handover(signalled, controller, seed) for seed in range(1, SEEDS + 1)), strict=True
            )
            back = "never" if None in reached else f"{fmean(reached):.1f}"
            each.append([f"{fmean(rates) / 1e3:.0f}", back, f"{fmean(stood):.1f}"])
        rows.append([controller, *(f"{heard} → {unheard}" for heard, unheard in zip(*each, strict=True))])
    return markdown(["controller", "on LTE (kb/s)", "back after (s)", "without picture (s)"], 1, rows)


TABLES = {
    ("scenarios.md", HANDOVER): handover_table,
    **{("scenarios.md", name): partial(table, name) for name in (POLICED, "starlink", *BESIDE)},
    ("policers.md", "policers"): policer_table,
}


def further() -> None:
    """Asks for numbers that tests look at."""
    for seed in range(1, SEEDS + 1):
        for changes in ("rfc3550", "shaper, rfc3550"):
            run(POLICED, changes, "rrb-simd", seed)
        run("fq-codel-home", "no repair", "gcc", seed)
