"""DCTCP beside ns-3.37's, and Prague beside CUBIC over DualPI2; `pytest -s` shows what was seen.

`benches/reference/aqm.sh` makes ns-3's half. The tables that docs/tcp.md shows are these: TIDEGATE_BLESS=1 writes them again.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from support import ROOT, check_table, jain, markdown
from tidegate import Scenario, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "tcp.md"
REFERENCE = ROOT / "benches" / "reference" / "dctcp_ns3.csv"
SEEDS = range(1, 6)
CASES = [(flows, mbps, threshold) for flows in (1, 4) for mbps in (10, 50) for threshold in (2, 10)]
FROM_S, TO_S, PAYLOAD, PACKET = 10, 70, 1446, 1500
"""What is counted, and bytes of data in a packet as they are in ns-3."""

Figures = tuple[float, float, float, float]
"""Means over seeds: goodput of all flows (Mbit/s), Jain's index, wait (ms), share of packets marked."""


def mean(each: Sequence[tuple[float, ...]]) -> Any:
    return tuple(float(one) for one in np.mean(each, axis=0))


@cache
def theirs(flows: int, mbps: int, threshold: int) -> Figures:
    """ns-3's."""
    each = []
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            if (row["flows"], row["mbps"], row["threshold_ms"]) == (str(flows), str(mbps), str(threshold)):
                rates = [float(rate) for rate in row["goodput_mbps"].split(";")]
                assert row["dropped"] == "0"
                each.append((sum(rates), jain(rates), float(row["waited_ms"]), int(row["marked"]) / int(row["gone"])))
    assert len(each) == len(SEEDS)
    got: Figures = mean(each)
    return got


@cache
def ours(flows: int, mbps: int, threshold: int) -> Figures:
    """The same of tidegate: CoDel that never drops, and marks what has waited longer than the threshold (a step)."""
    each = []
    for seed in SEEDS:
        luck = random.Random(seed)
        step = {"name": "codel", "target": "10s", "ce_threshold": f"{threshold}ms"}
        link = {"name": "link", "capacity": f"{mbps}Mbps", "delay": "20ms", "discipline": step}
        tcp = {"algorithm": "dctcp", "delayed_ack": False}
        data = {
            "duration": f"{TO_S}s",
            "warmup": f"{FROM_S}s",
            "seed": seed,
            "sending_jitter": "off",
            "links": [{**link, "back": {"capacity": "infinite", "delay": "20ms", "discipline": "drop-tail"}}],
            "flows": [{"name": f"tcp-{n}", "start": f"{luck.random():.9f}s", "tcp": tcp} for n in range(flows)],
        }
        summary = run(Scenario.from_dict(data), record="summary").summary["flows"]
        received = [flow["packets_received"] for flow in summary]
        assert not any(flow["lost_queue"] for flow in summary)
        waits = [flow["queueing_delay_ms_mean"] for flow in summary]
        carried = sum(received) * PAYLOAD * 8 / (TO_S - FROM_S) / 1e6
        marked = sum(flow["marked"] for flow in summary) / sum(received)
        each.append((carried, jain(received), float(np.average(waits, weights=received)), marked))
    got: Figures = mean(each)
    return got


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_dctcp_is_near_ns_3(case: tuple[int, int, int]) -> None:
    (carried, index, wait, marked), (their_carried, their_index, their_wait, their_marked) = ours(*case), theirs(*case)
    print(f"{case}: {ours(*case)} {theirs(*case)}")
    assert carried == pytest.approx(their_carried, rel=0.02)
    assert abs(index - their_index) <= 0.05
    assert wait == pytest.approx(their_wait, rel=0.15)
    assert marked == pytest.approx(their_marked, rel=0.10)


BESIDE: dict[str, tuple[tuple[str, bool], ...]] = {
    "Prague and CUBIC with ECN": (("prague", True), ("cubic", True)),
    "Prague and CUBIC without": (("prague", True), ("cubic", False)),
    "DCTCP and CUBIC with ECN": (("dctcp", True), ("cubic", True)),
}
"""Who shares a DualPI2."""


@cache
def shared(who: str) -> tuple[tuple[float, float], ...]:
    """Of each of two flows goodput (Mbit/s) and mean wait (ms): 40 Mbit/s, 20 ms, DualPI2; seconds 20 to 80, means over five seeds."""
    flows = [
        {"name": name, "tcp": {"algorithm": name, **({"ecn": ecn} if name == "cubic" else {})}}
        for name, ecn in BESIDE[who]
    ]
    link = {"name": "link", "capacity": "40Mbps", "delay": "10ms", "discipline": "dualpi2"}
    each = []
    for seed in SEEDS:
        luck = random.Random(seed)
        begun = [{**flow, "start": f"{luck.random():.9f}s"} for flow in flows]
        data = {"duration": "80s", "warmup": "20s", "seed": seed, "links": [link], "flows": begun}
        summary = run(Scenario.from_dict(data), record="summary").summary["flows"]
        each.append([(flow["goodput_bps"] / 1e6, flow["queueing_delay_ms_mean"]) for flow in summary])
    return tuple((float(rate), float(wait)) for rate, wait in np.mean(each, axis=0))


def test_prague_shares_with_cubic_and_waits_for_nobody() -> None:
    for who in list(BESIDE)[:2]:
        (rate, wait), (other, its_wait) = shared(who)
        assert 0.5 < rate / other < 2, "RFC 9332 section 2.1: rough equality"
        assert wait < 1
        assert 12 < its_wait < 18
        assert 38 < rate + other < 40
    (rate, _), (other, _) = shared("DCTCP and CUBIC with ECN")
    assert rate > 5 * other


def test_the_page_shows_what_was_measured() -> None:
    head = ["flows", "Mbit/s", "step, ms", "goodput, ns-3", "here", "Jain, ns-3", "here"]
    head += ["wait, ns-3, ms", "here", "marked, ns-3, %", "here"]
    rows = []
    for case in CASES:
        pairs = zip(theirs(*case), ours(*case), ("{:.2f}", "{:.3f}", "{:.2f}", "{:.1f}"), (1, 1, 1, 100), strict=True)
        cells = [form.format(one * scale) for their, our, form, scale in pairs for one in (their, our)]
        rows.append((*case, *cells))
    check_table(PAGE, "DCTCP", markdown(head, 0, rows))
    head = ["over DualPI2", "goodput, Mbit/s", "wait, ms", "CUBIC's goodput", "wait"]
    rows = [(who, *(f"{one:.1f}" for pair in shared(who) for one in pair)) for who in BESIDE]
    check_table(PAGE, "beside CUBIC", markdown(head, 1, rows))
