"""How long many TCP flows over a full link deliver nothing, by their way to repair losses: a table of `docs/tcp.md`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from kept import kept
from support import jain, markdown
from tidegate import Scenario, run
from tidegate.show import view

WAYS = ("rfc6675", "rack")
PATHS: dict[tuple[str, int, int, int], tuple[str, ...]] = {
    ("cubic", 16, 10, 20): ("pie", "codel", "fq-codel", "drop-tail"),
    ("sack", 24, 50, 10): ("pie", "codel", "fq-codel", "drop-tail"),
}
"""Algorithm, flows, Mbit/s and delay of the link in ms; and its disciplines."""
SEEDS = range(1, 5)
PAYLOAD = 1460 / 1500


@kept
def standstills(
    algorithm: str, flows: int, mbps: int, delay_ms: int, discipline: str, recovery: str, seed: int
) -> dict[str, Any]:
    """The longest time (s) without goodput of each flow, and the flows' goodput over the link's, Jain's index, wait (ms)
    and drops; flows begin within the first second, goodput and what follows are of seconds 10 to 70."""
    luck = random.Random(seed)
    back = {"capacity": "infinite", "delay": f"{delay_ms}ms", "discipline": "drop-tail"}
    link = {"name": "link", "capacity": f"{mbps}Mbps", "delay": f"{delay_ms}ms", "discipline": discipline, "back": back}
    tcp = {"algorithm": algorithm, "recovery": recovery}
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
    return {
        "longest": [_longest(*view.curve(done, "series", "flow", f"f{n}", "goodput_bps")) for n in range(flows)],
        "goodput": sum(rates) / (mbps * 1e6 * PAYLOAD),
        "jain": jain(rates),
        "wait": float(np.mean([flow["queueing_delay_ms_mean"] for flow in metrics])),
        "drops": done.summary["links"][0]["dropped_queue"],
    }


def _longest(begin: view.Floats, goodput: view.Floats) -> float:
    """The longest time between two bins with goodput, from the beginning of one to that of the next."""
    alive = begin[goodput > 0]
    return float(np.diff(np.append(alive, begin[-1])).max())


def table_of_standstills() -> str:
    """Flows that stand still, by path and way."""
    head = ("flows", "link", "discipline", "recovery", "longest, s", "over 2 s, %", "over 5 s, %")
    rows = []
    for path, disciplines in PATHS.items():
        algorithm, flows, mbps, delay = path
        for discipline in disciplines:
            for way in WAYS:
                each = [standstills(*path, discipline, way, seed) for seed in SEEDS]
                longest = np.concatenate([seed["longest"] for seed in each])
                goodput, index, wait, drops = (
                    np.mean([seed[key] for seed in each]) for key in ("goodput", "jain", "wait", "drops")
                )
                rows.append(
                    (
                        f"{flows} {algorithm}",
                        f"{mbps} Mbit/s, {delay} ms",
                        discipline,
                        way,
                        f"{longest.max():.1f}",
                        *(f"{100 * np.mean(longest > limit):.0f}" for limit in (2, 5)),
                        f"{goodput:.3f}",
                        f"{index:.3f}",
                        f"{wait:.1f}",
                        f"{drops:.0f}",
                    )
                )
    return markdown([*head, "goodput", "Jain", "wait, ms", "drops"], 4, rows)


TABLES = {("tcp.md", "standstills"): table_of_standstills}
