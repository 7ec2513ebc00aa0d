"""DCTCP beside ns-3.37's, and Prague beside CUBIC over DualPI2: tables of `docs/tcp.md`.

`benches/reference/aqm.sh` makes ns-3's half.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from kept import kept
from support import ROOT, jain, markdown
from tidegate import Scenario, run

REFERENCE = ROOT / "benches" / "reference" / "dctcp_ns3.csv"
SEEDS = range(1, 6)
CASES = [(flows, mbps, threshold) for flows in (1, 4) for mbps in (10, 50) for threshold in (2, 10)]
FROM_S, TO_S, PAYLOAD = 10, 70, 1446
"""The time that is counted, and bytes of data in a packet as they are in ns-3."""


@cache
def theirs(flows: int, mbps: int, threshold: int) -> Any:
    """ns-3's means over seeds: goodput of all flows (Mbit/s), Jain's index, wait (ms), share of packets marked."""
    each = []
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            if (row["flows"], row["mbps"], row["threshold_ms"]) == (str(flows), str(mbps), str(threshold)):
                rates = [float(rate) for rate in row["goodput_mbps"].split(";")]
                assert row["dropped"] == "0"
                each.append((sum(rates), jain(rates), float(row["waited_ms"]), int(row["marked"]) / int(row["gone"])))
    assert len(each) == len(SEEDS)
    return np.mean(each, axis=0)


def _summary(seed: int, flows: Sequence[dict[str, Any]], **data: Any) -> Any:
    """Of flows that begin within the first second."""
    luck = random.Random(seed)
    begun = [{**flow, "start": f"{luck.random():.9f}s"} for flow in flows]
    return run(Scenario.from_dict({"seed": seed, "flows": begun, **data}), record="summary").summary["flows"]


@kept
def dctcp(flows: int, mbps: int, threshold: int, seed: int) -> Sequence[float]:
    """The same of a run of tidegate: CoDel that never drops, and marks what has waited longer than the threshold (a step)."""
    step = {"name": "codel", "target": "10s", "ce_threshold": f"{threshold}ms"}
    link = {"name": "link", "capacity": f"{mbps}Mbps", "delay": "20ms", "discipline": step}
    summary = _summary(
        seed,
        [{"name": f"tcp-{n}", "tcp": {"algorithm": "dctcp", "recovery": "rfc6675"}} for n in range(flows)],
        duration=f"{TO_S}s",
        warmup=f"{FROM_S}s",
        sending_jitter="off",
        links=[{**link, "back": {"capacity": "infinite", "delay": "20ms", "discipline": "drop-tail"}}],
    )
    received = [flow["packets_received"] for flow in summary]
    assert not any(flow["lost_queue"] for flow in summary)
    waits = [flow["queueing_delay_ms_mean"] for flow in summary]
    carried = sum(received) * PAYLOAD * 8 / (TO_S - FROM_S) / 1e6
    marked = sum(flow["marked"] for flow in summary) / sum(received)
    return carried, jain(received), float(np.average(waits, weights=received)), marked


def ours(flows: int, mbps: int, threshold: int) -> Any:
    """Means over seeds."""
    return np.mean([dctcp(flows, mbps, threshold, seed) for seed in SEEDS], axis=0)


BESIDE: dict[str, tuple[tuple[str, bool], ...]] = {
    "Prague and CUBIC with ECN": (("prague", True), ("cubic", True)),
    "Prague and CUBIC without": (("prague", True), ("cubic", False)),
    "DCTCP and CUBIC with ECN": (("dctcp", True), ("cubic", True)),
}
"""Algorithms of the two flows that share a DualPI2, and whether each takes ECN."""


@kept
def dualpi2(both: str, seed: int) -> Sequence[Sequence[float]]:
    """Of each of two flows goodput (Mbit/s) and mean wait (ms): 40 Mbit/s, 20 ms, DualPI2; seconds 20 to 80."""
    flows = [
        {"name": name, "tcp": {"algorithm": name, **({"ecn": ecn} if name == "cubic" else {})}}
        for name, ecn in BESIDE[both]
    ]
    link = {"name": "link", "capacity": "40Mbps", "delay": "10ms", "discipline": "dualpi2"}
    summary = _summary(seed, flows, duration="80s", warmup="20s", links=[link])
    return [(flow["goodput_bps"] / 1e6, flow["queueing_delay_ms_mean"]) for flow in summary]


def beside(both: str) -> Any:
    """Means over seeds."""
    return np.mean([dualpi2(both, seed) for seed in SEEDS], axis=0)


def table_of_dctcp() -> str:
    """DCTCP beside ns-3's."""
    head = ["flows", "Mbit/s", "step, ms", "goodput, ns-3", "here", "Jain, ns-3", "here"]
    head += ["wait, ns-3, ms", "here", "marked, ns-3, %", "here"]
    rows = []
    for case in CASES:
        pairs = zip(theirs(*case), ours(*case), ("{:.2f}", "{:.3f}", "{:.2f}", "{:.1f}"), (1, 1, 1, 100), strict=True)
        cells = [form.format(mean * scale) for *means, form, scale in pairs for mean in means]
        rows.append((*case, *cells))
    return markdown(head, 0, rows)


def table_beside_cubic() -> str:
    """Flows that share a DualPI2."""
    head = ["over DualPI2", "goodput, Mbit/s", "wait, ms", "CUBIC's goodput", "wait"]
    return markdown(head, 1, [(both, *(f"{mean:.1f}" for mean in beside(both).ravel())) for both in BESIDE])


TABLES = {("tcp.md", "DCTCP"): table_of_dctcp, ("tcp.md", "beside CUBIC"): table_beside_cubic}
