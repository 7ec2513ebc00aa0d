"""Both placements of GCC on ten shipped scenarios: what is run, and the table of `docs/placements.md`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import tidegate
from tidegate import Comparison

SCENARIOS = (
    "congested-uplink",
    "deep-buffer-3g",
    "home-broadband",
    "lossy-wifi",
    "lte-generated",
    "cell-with-outages",
    "satellite",
    "rfc8867-5.1-variable-capacity",
    "rfc8867-5.3-congested-feedback",
    "tcp-joins",
)
CONTROLLERS = ("gcc:draft-02", "gcc-remb:draft-02", "gcc:hoang2017", "gcc-remb:hoang2017")
SEEDS = 3


@dataclass(frozen=True)
class Column:
    """A metric of the subject, averaged over the seeds."""

    head: str
    metric: str
    scale: float
    digits: int


COLUMNS = (
    Column("rate (kb/s)", "receive_rate_bps", 1e-3, 0),
    Column("delay p95 (ms)", "one_way_delay_ms_p95", 1, 0),
    Column("loss (%)", "loss_fraction", 100, 2),
    Column("feedback (kb/s)", "feedback_rate_bps", 1e-3, 1),
    Column("feedback (%)", "feedback_overhead", 100, 2),
)


@cache
def compared(name: str) -> Comparison:
    """The runs on one scenario."""
    return tidegate.compare(list(CONTROLLERS), name, seeds=SEEDS, record="summary")


def mean(name: str, controller: str, metric: str) -> float:
    """A metric of the call under test, averaged over the seeds."""
    runs = compared(name).runs[controller]
    flow = runs[0].summary["flows"][0]["flow"]
    return float(sum(run.metrics(flow)[metric] for run in runs) / len(runs))


def table() -> str:
    """The whole table in Markdown."""
    lines = [
        "| scenario | controller | " + " | ".join(column.head for column in COLUMNS) + " |",
        "|---|---|" + "---:|" * len(COLUMNS),
    ]
    for name in SCENARIOS:
        for controller in CONTROLLERS:
            cells = [f"{mean(name, controller, one.metric) * one.scale:.{one.digits}f}" for one in COLUMNS]
            lines.append(f"| {name} | {controller} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
