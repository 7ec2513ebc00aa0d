"""CoDel, FQ-CoDel and PIE beside ns-3.37's; `pytest -s` shows what was seen.

`benches/reference/aqm.sh` makes the other half. The table that docs/queues.md shows is this: TIDEGATE_BLESS=1 writes it again.
"""

from __future__ import annotations

import csv
import random
from functools import cache
from typing import Any

import numpy as np
import pytest

from support import ROOT, check_table, jain, markdown
from tidegate import Scenario, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "queues.md"
REFERENCE = ROOT / "benches" / "reference" / "aqm_ns3.csv"
SEEDS = range(1, 6)
TABLES: dict[str, Any] = {
    "codel": {"name": "codel", "ecn": False},
    # ns-3's quantum is the device's MTU; its PIE does not derandomize
    "fq-codel": {"name": "fq-codel", "ecn": False, "quantum": "1500B"},
    "pie": {"name": "pie", "ecn": False, "derandomize": False},
}
CASES = [(name, algorithm, flows) for name in TABLES for algorithm in ("sack", "cubic") for flows in (1, 4, 16)]
JAIN, WAIT, DROPS = 0.05, 0.10, 0.10
"""How far Jain's index may be off, and by which part the mean wait and the drops."""
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
"""Where it would be more, and what of ns-3's own makes it so; docs/queues.md has both figures."""


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
    each = [
        (jain([float(rate) for rate in row["goodput_mbps"].split(";")]), float(row["waited_ms"]), float(row["dropped"]))
        for row in rows
    ]
    index, wait, drops = (float(one) for one in np.mean(each, axis=0))
    return index, wait, drops


@cache
def ours(name: str, algorithm: str, flows: int) -> tuple[float, float, float]:
    """The same of tidegate, made alike as docs/queues.md tells."""
    each = []
    for seed in SEEDS:
        luck = random.Random(seed)
        tcp = {"algorithm": algorithm, "hystart": False, "delayed_ack": False, "handshake": True}
        link = {"name": "link", "capacity": "10Mbps", "delay": "20ms", "discipline": TABLES[name]}
        back = {"capacity": "infinite", "delay": "20ms", "discipline": "drop-tail"}
        data = {
            "duration": "70s",
            "warmup": "10s",
            "seed": seed,
            "sending_jitter": "off",
            "links": [{**link, "back": back}],
            "flows": [{"name": f"tcp-{n}", "start": f"{luck.random():.9f}s", "tcp": tcp} for n in range(flows)],
        }
        summary = run(Scenario.from_dict(data), record="summary").summary["flows"]
        received = [flow["packets_received"] for flow in summary]
        waits = [flow["queueing_delay_ms_mean"] for flow in summary]
        each.append(
            (
                jain([flow["goodput_bps"] for flow in summary]),
                float(np.average(waits, weights=received)),
                sum(flow["lost_queue"] for flow in summary),
            )
        )
    index, wait, drops = (float(one) for one in np.mean(each, axis=0))
    return index, wait, drops


def off(one: float, other: float) -> float:
    """By which part of it `one` is away from `other`."""
    return one / other - 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_it_is_near_ns_3(case: tuple[str, str, int]) -> None:
    (index, waited, dropped), (their_index, their_wait, their_drops) = ours(*case), theirs(*case)
    print(
        f"{case}: Jain {index:.4f} {their_index:.4f}, wait {waited:.2f} {their_wait:.2f}, drops {dropped} {their_drops}"
    )
    assert abs(index - their_index) <= JAIN
    assert abs(off(waited, their_wait)) <= WAIT
    assert abs(off(dropped, their_drops)) <= DROPS


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: "-".join(map(str, cause)))
def test_what_is_put_aside_is_what_made_the_difference(cause: tuple[str, str, int, str]) -> None:
    *case, own = cause
    _, waited, dropped = ours(*case)
    _, wait, drops = theirs(*case, own)
    print(f"{cause}: wait {off(waited, wait):+.3f}, drops {off(dropped, drops):+.3f}")
    assert abs(off(waited, wait)) > 0.15 or abs(off(dropped, drops)) > 0.20


def test_the_page_shows_what_was_measured() -> None:
    head = ["discipline", "TCP", "flows", "Jain, ns-3", "here", "wait, ns-3, ms", "here", "", "drops, ns-3", "here", ""]
    rows = []
    for case in CASES:
        (index, wait, drops), (their_index, their_wait, their_drops) = ours(*case), theirs(*case)
        indices = (f"{their_index:.3f}", f"{index:.3f}")
        waits = (f"{their_wait:.2f}", f"{wait:.2f}", f"{100 * off(wait, their_wait):+.0f} %")
        dropped = (f"{their_drops:.0f}", f"{drops:.0f}", f"{100 * off(drops, their_drops):+.0f} %")
        rows.append((*case, *indices, *waits, *dropped))
    check_table(PAGE, "beside ns-3", markdown(head, 2, rows))


def test_the_page_shows_what_ns_3_itself_does() -> None:
    rows = []
    for *case, own in CAUSES:
        _, wait, drops = ours(*case)
        each = (theirs(*case, own), theirs(*case))
        waits = [f"{one:.2f} ({100 * off(wait, one):+.0f} %)" for _, one, _ in each]
        dropped = [f"{one:.0f} ({100 * off(drops, one):+.0f} %)" for _, _, one in each]
        rows.append((*case, own, *waits, *dropped))
    head = ["discipline", "TCP", "flows", "ns-3's own", "wait with it, ms", "without", "drops with it", "without"]
    check_table(PAGE, "of ns-3's own", markdown(head, 2, rows))
