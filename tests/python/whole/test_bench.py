"""The workloads of the benchmarks run; how fast is not asked here."""

from __future__ import annotations

import pytest

from support import example

bench = example("engine", "benches/peers")


@pytest.mark.parametrize("work", bench.WORKS)
def test_each_workload_runs_and_carries_packets(work: str) -> None:
    seconds = 2.0
    done = bench.measure(work, seconds)
    assert done["packets"] > 0
    if work != "group1000":  # there a packet is copied to its receivers behind the trunk
        assert done["hops"] >= done["packets"] * done["hops_per_packet"] * 0.9
    if work == "cbr10":
        # ten flows of 1 Mb/s through 20 Mb/s, less the 23 ms that the first packets are on their way
        assert done["packets"] == pytest.approx(10 * 1e6 / (1200 * 8) * (seconds - 0.023), rel=0.02)
