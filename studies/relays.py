"""Calls through a relay over TCP beside UDP: the table of `docs/relays.md`."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import tidegate
from kept import kept
from support import markdown
from tidegate import Scenario

SEEDS = 5
VIA: Mapping[str, Any] = {
    "UDP": "udp",
    "TCP, CUBIC": "tcp",
    "TCP, BBR": {"algorithm": "bbr"},
    "TCP, relay of 32 kB": {"writer": "relay", "buffer": "32kB"},
}
"""Transports of the leg, by name."""
LOSSES = ("0%", "1%")
METRICS = {
    "rate (kb/s)": ("receive_rate_bps", 1e-3, 0),
    "loss (%)": ("loss_fraction", 100.0, 2),
    "delay p95 (ms)": ("one_way_delay_ms_p95", 1.0, 0),
    "without picture (s)": ("without_picture_s", 1.0, 1),
}
"""Metrics of the call with scale and digits."""


@kept
def run(via: str, loss: str, controller: str, seed: int) -> Mapping[str, float]:
    """Metrics of a minute of a call whose leg, of 4 Mbit/s and 30 ms, has this transport and these losses."""
    leg = {"name": "leg", "capacity": "4Mbps", "delay": "30ms", "loss": loss, "via": VIA[via]}
    data = {"name": "relays", "duration": "60s", "links": [leg], "flows": [{"name": "call", "media": {}}]}
    (done,) = tidegate.compare([controller], Scenario.from_dict(data), seeds=[seed], record="summary").runs[controller]
    metrics = done.metrics("call")
    return {metric: float(metrics[metric]) for metric, *_ in METRICS.values()}


def _cells(via: str, loss: str, controller: str) -> list[str]:
    runs = [run(via, loss, controller, seed) for seed in range(1, SEEDS + 1)]
    return [f"{fmean(done[metric] for done in runs) * scale:.{digits}f}" for metric, scale, digits in METRICS.values()]


def table() -> str:
    """Each transport, without losses and with them."""
    rows = [[f"{via}, {loss}", *_cells(via, loss, "gcc")] for loss in LOSSES for via in VIA]
    return markdown(["leg, losses", *METRICS], 1, rows)


TABLES = {("relays.md", "relays"): table}
