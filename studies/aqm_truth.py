"""CoDel, FQ-CoDel and PIE beside ns-3.37's: tables of `docs/queues.md`.

`benches/reference/aqm.sh` makes the other half.
"""

from __future__ import annotations

import csv
import random
from functools import cache
from typing import Any

import numpy as np

from kept import kept
from support import ROOT, jain, markdown
from tidegate import Scenario, run
from tidegate.results.stats import Interval

REFERENCE = ROOT / "benches" / "reference" / "aqm_ns3.csv"
PHASES_REFERENCE = REFERENCE.with_name("aqm_phase_ns3.csv")
SEEDS = range(1, 6)
DISCIPLINES: dict[str, Any] = {
    "codel": {"name": "codel", "ecn": False},
    # ns-3's quantum is the device's MTU; its PIE does not derandomize
    "fq-codel": {"name": "fq-codel", "ecn": False, "quantum": "1500B"},
    "pie": {"name": "pie", "ecn": False, "derandomize": False},
}
CASES = [(name, algorithm, flows) for name in DISCIPLINES for algorithm in ("sack", "cubic") for flows in (1, 4, 16)]
CAUSES = [
    ("codel", "sack", 1, "device"),
    ("codel", "sack", 1, "recovery"),
    ("fq-codel", "sack", 1, "device"),
    ("fq-codel", "sack", 1, "recovery"),
    ("codel", "cubic", 16, "clamp"),
    ("fq-codel", "sack", 16, "pipe"),
    ("pie", "cubic", 1, "clamp"),
    ("pie", "cubic", 4, "clamp"),
]
"""Cases in which the two would be further apart, and the thing of ns-3's own that makes it so; docs/queues.md has both figures."""


def _mean(each: list[list[float]]) -> tuple[float, float, float]:
    index, wait, drops = (float(mean) for mean in np.mean(each, axis=0))
    return index, wait, drops


@cache
def theirs(name: str, algorithm: str, flows: int, own: str = "") -> tuple[float, float, float]:
    """Means over seeds: Jain's index, wait (ms), drops; with one thing of ns-3's `own` left as it is."""
    with REFERENCE.open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["discipline"], row["algorithm"], row["flows"], row["own"]) == (name, algorithm, str(flows), own)
        ]
    assert len(rows) == len(SEEDS)
    goodputs = [[float(rate) for rate in row["goodput_mbps"].split(";")] for row in rows]
    waits, drops = ([float(row[column]) for row in rows] for column in ("waited_ms", "dropped"))
    return _mean([[jain(rates), *both] for rates, *both in zip(goodputs, waits, drops, strict=True)])


@kept
def outcome(name: str, algorithm: str, flows: int, seed: int) -> list[float]:
    """The same of a run of tidegate, made alike as docs/queues.md tells: ns-3 finds losses by RFC 6675, too."""
    _, *means = _measured(name, algorithm, flows, seed)
    return means


@kept
def in_step(name: str, mbps: float, delay_ms: float, flows: int, jitter_ms: float, seed: int) -> list[float]:
    """Goodput as part of the capacity, Jain's index, wait (ms) and drops of `sack` with the senders' jitter or without."""
    return _measured(name, "sack", flows, seed, mbps, delay_ms, jitter_ms)


def _measured(
    name: str, algorithm: str, flows: int, seed: int, mbps: float = 10, delay_ms: float = 20, jitter_ms: float = 0
) -> list[float]:
    luck, delay = random.Random(seed), f"{delay_ms:g}ms"
    tcp = {"algorithm": algorithm, "recovery": "rfc6675", "hystart": False, "delayed_ack": False, "handshake": True}
    link = {"name": "link", "capacity": f"{mbps:g}Mbps", "delay": delay, "discipline": DISCIPLINES[name]}
    back = {"capacity": "infinite", "delay": delay, "discipline": "drop-tail"}
    data = {
        "duration": "70s",
        "warmup": "10s",
        "seed": seed,
        "sending_jitter": f"{jitter_ms:g}ms" if jitter_ms else "off",
        "links": [{**link, "back": back}],
        "flows": [{"name": f"tcp-{n}", "start": f"{luck.random():.9f}s", "tcp": tcp} for n in range(flows)],
    }
    summary = run(Scenario.from_dict(data), record="summary").summary["flows"]
    received = [flow["packets_received"] for flow in summary]
    waits = [flow["queueing_delay_ms_mean"] for flow in summary]
    rates = [flow["goodput_bps"] for flow in summary]
    return [
        sum(rates) / (mbps * 1e6 * 1460 / 1500),
        jain(rates),
        float(np.average(waits, weights=received)),
        sum(flow["lost_queue"] for flow in summary),
    ]


def ours(name: str, algorithm: str, flows: int) -> tuple[float, float, float]:
    """Means over seeds."""
    return _mean([outcome(name, algorithm, flows, seed) for seed in SEEDS])


def off(number: float, reference: float) -> float:
    """By which part of it a number is away from its reference."""
    return number / reference - 1


def beside_ns3() -> str:
    """Each discipline under each number of flows."""
    head = ["discipline", "TCP", "flows", "Jain, ns-3", "here", "wait, ns-3, ms", "here", "", "drops, ns-3", "here", ""]
    rows = []
    for case in CASES:
        (index, wait, drops), (their_index, their_wait, their_drops) = ours(*case), theirs(*case)
        indices = (f"{their_index:.3f}", f"{index:.3f}")
        waits = (f"{their_wait:.2f}", f"{wait:.2f}", f"{100 * off(wait, their_wait):+.0f} %")
        dropped = (f"{their_drops:.0f}", f"{drops:.0f}", f"{100 * off(drops, their_drops):+.0f} %")
        rows.append((*case, *indices, *waits, *dropped))
    return markdown(head, 2, rows)


def own_of_ns3() -> str:
    """Each cause, with it and without."""
    rows = []
    for name, algorithm, flows, own in CAUSES:
        case = (name, algorithm, flows)
        _, wait, drops = ours(*case)
        each = (theirs(*case, own), theirs(*case))
        waits = [f"{reference:.2f} ({100 * off(wait, reference):+.0f} %)" for _, reference, _ in each]
        dropped = [f"{reference:.0f} ({100 * off(drops, reference):+.0f} %)" for _, _, reference in each]
        rows.append((*case, own, *waits, *dropped))
    head = [
        "discipline",
        "TCP",
        "flows",
        "rule of ns-3 only",
        "wait with rule, ms",
        "without",
        "drops with rule",
        "without",
    ]
    return markdown(head, 2, rows)


PHASES: list[tuple[str, float, float, int, float]] = [
    ("codel", 10, 20, 2, 1.2),
    ("fq-codel", 4, 50, 2, 3),
    ("fq-codel", 4, 50, 8, 3),
    ("fq-codel", 25, 40, 3, 0.48),
]
"""Discipline, Mbit/s, ms each way, flows, and the link's time for a packet in ms, which is the jitter."""
PHASE_SEEDS = range(1, 21)


@cache
def theirs_in_step(name: str, mbps: float, flows: int, jitter_ms: float) -> list[list[float]]:
    """What `in_step` is, of ns-3's runs."""
    with PHASES_REFERENCE.open() as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["discipline"], float(row["mbps"]), int(row["flows"]), float(row["jitter_ms"]))
            == (name, mbps, flows, jitter_ms)
        ]
    assert len(rows) == len(PHASE_SEEDS)
    goodputs = [[float(rate) for rate in row["goodput_mbps"].split(";")] for row in rows]
    return [
        [sum(rates) / (mbps * 1446 / 1500), jain(rates), float(row["waited_ms"]), float(row["dropped"])]
        for rates, row in zip(goodputs, rows, strict=True)
    ]


def phases() -> str:
    """Cells in which runs without jitter fall into step, in both simulators."""
    rows = []
    for name, mbps, delay_ms, flows, service_ms in PHASES:
        for jitter_ms in (0, service_ms):
            ours = [in_step(name, mbps, delay_ms, flows, jitter_ms, seed) for seed in PHASE_SEEDS]
            both = theirs_in_step(name, mbps, flows, jitter_ms), ours
            jitter = f"jitter {jitter_ms:g} ms" if jitter_ms else "no jitter"
            cell = f"{name}, {mbps:g} Mbit/s, {2 * delay_ms:g} ms, {flows} flows, {jitter}"
            for label, runs in zip(("ns-3", "here"), both, strict=True):
                each = [Interval.of(values) for values in zip(*runs, strict=True)]
                cells = [
                    f"{value.mean:.{digits}f} ± {value.half:.{digits}f}"
                    for value, digits in zip(each, (3, 3, 2, 0), strict=True)
                ]
                rows.append((cell if label == "ns-3" else "", label, *cells))
    return markdown(["link, flows", "", "goodput / capacity", "Jain", "wait, ms", "drops"], 2, rows)


TABLES = {
    ("queues.md", "beside ns-3"): beside_ns3,
    ("queues.md", "of ns-3's own"): own_of_ns3,
    ("queues.md", "in step"): phases,
}
