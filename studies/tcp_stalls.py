"""How long TCP flows over a full link deliver nothing, by their way to repair losses and in Linux: tables of `docs/tcp.md`."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import linux_tcp
from kept import kept
from support import jain, markdown
from tidegate import Scenario, run
from tidegate.results.stats import Interval
from tidegate.show import view

WAYS = {way: {"recovery": way, "delayed_ack": False} for way in ("rfc6675", "rack")}
LIKE_LINUX = {
    "rack, offload": {"recovery": "rack", "delayed_ack": True, "offload": True},
    "rack": {"recovery": "rack", "delayed_ack": True},
    "rfc6675": {"recovery": "rfc6675", "delayed_ack": True},
}
"""Linux acknowledges every second segment, and hands segments to its pacer in bursts."""
PATHS: dict[tuple[str, int, int, int], tuple[str, ...]] = {
    ("cubic", 16, 10, 20): ("pie", "codel", "fq-codel", "drop-tail"),
    ("sack", 24, 50, 10): ("pie", "codel", "fq-codel", "drop-tail"),
}
"""Algorithm, flows, Mbit/s and delay of the link in ms; and its disciplines."""
SEEDS = range(1, 5)
PAYLOAD = 1460 / 1500


@kept
def standstills(
    algorithm: str, flows: int, mbps: int, delay_ms: int, discipline: str, ways: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """The longest time (s) without goodput of each flow, and the flows' goodput over the link's, Jain's index, wait (ms)
    and drops, by these keys of TCP; flows begin within the first second, goodput and what follows are of seconds 10 to 70.
    """
    luck = random.Random(seed)
    back = {"capacity": "infinite", "delay": f"{delay_ms}ms", "discipline": "drop-tail"}
    link = {"name": "link", "capacity": f"{mbps}Mbps", "delay": f"{delay_ms}ms", "discipline": discipline, "back": back}
    tcp = {"algorithm": algorithm, **ways}
    scenario = Scenario.from_dict(
        {
            "duration": "70s",
            "warmup": "10s",
            "links": [link],
            "flows": [{"name": f"f{n}", "start": f"{luck.random():.6f}s", "tcp": tcp} for n in range(flows)],
        }
    )
    done = run(scenario, seed)
    metrics = [done.metrics(f"f{n}") for n in range(flows)]
    rates = [flow["goodput_bps"] for flow in metrics]
    waits = [flow["queueing_delay_ms_mean"] or 0.0 for flow in metrics]
    return {
        "longest": [
            linux_tcp.longest_standstill(*view.curve(done, "series", "flow", f"f{n}", "goodput_bps"))
            for n in range(flows)
        ],
        "goodput": sum(rates) / (mbps * 1e6 * PAYLOAD),
        "jain": jain(rates),
        # as Linux's; a flow that stands still all the time has no wait
        "wait": float(np.average(waits, weights=[flow["packets_received"] for flow in metrics])),
        "drops": done.summary["links"][0]["dropped_queue"],
    }


HEAD = ("longest, s", "over 2 s, %", "over 5 s, %", "goodput", "Jain", "wait, ms", "drops")
DIGITS = {"goodput": 3, "jain": 3, "wait": 1, "drops": 0}
"""Digits of the measures that each run has."""


def _cells(runs: Sequence[Mapping[str, Any]], *, spread: bool = False) -> tuple[str, ...]:
    """The measures of some runs, under :data:`HEAD`; with `spread` means with half of their 95 % interval."""
    longest = np.concatenate([run["longest"] for run in runs])
    stood = (f"{100 * np.mean(longest > limit):.0f}" for limit in (2, 5))
    means = []
    for key, digits in DIGITS.items():
        interval = Interval.of([run[key] for run in runs])
        half = f" ± {interval.half:.{digits}f}" if spread else ""
        means.append(f"{interval.mean:.{digits}f}{half}")
    return f"{longest.max():.1f}", *stood, *means


def table_of_standstills() -> str:
    """Flows that stand still, by path and way."""
    rows = []
    for path, disciplines in PATHS.items():
        algorithm, flows, mbps, delay = path
        for discipline in disciplines:
            for way, keys in WAYS.items():
                cells = _cells([standstills(*path, discipline, keys, seed) for seed in SEEDS])
                rows.append((f"{flows} {algorithm}", f"{mbps} Mbit/s, {delay} ms", discipline, way, *cells))
    return markdown(("flows", "link", "discipline", "recovery", *HEAD), 4, rows)


@cache
def in_linux() -> dict[tuple[str, int, str], list[dict[str, Any]]]:
    """The quiet runs of Linux's TCP by algorithm, flows and discipline, with the measures of :func:`standstills`."""
    runs: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in linux_tcp.record():
        if row["state"] == "quiet":
            measures = {key: float(row[column]) for key, column in COLUMNS.items()}
            longest = [float(seconds) for seconds in row["longest_s"].split(";")]
            runs.setdefault((row["algorithm"], int(row["flows"]), row["discipline"]), []).append(
                {"longest": longest, **measures}
            )
    return runs


COLUMNS = {"goodput": "goodput", "jain": "jain", "wait": "wait_ms", "drops": "drops"}
"""Columns of Linux's record by measure."""


def table_of_linux(algorithm: str, flows: int) -> str:
    """Linux's TCP and ours on the same links."""
    rows: list[tuple[Any, ...]] = []
    for cell, runs in in_linux().items():
        if cell[:2] == (algorithm, flows):
            rows.append((cell[2], "Linux", len(runs), *_cells(runs, spread=True)))
            path = (algorithm, flows, linux_tcp.MBPS, linux_tcp.DELAY_MS, cell[2])
            for way, keys in LIKE_LINUX.items():
                ours = [standstills(*path, keys, seed) for seed in SEEDS]
                rows.append(("", way, len(ours), *_cells(ours, spread=True)))
    return markdown(("discipline", "TCP", "runs", *HEAD), 2, rows)


TABLES = {
    ("tcp.md", "standstills"): table_of_standstills,
    **{
        ("tcp.md", f"{flows} {algorithm} in Linux"): partial(table_of_linux, algorithm, flows)
        for algorithm, flows in sorted({cell[:2] for cell in in_linux()}, key=lambda cell: (cell[0] == "bbr", cell[1]))
    },
}
