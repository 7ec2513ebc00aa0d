"""BBR version 3: how far the numbers of `docs/tcp.md` may be away, and example test cases of its draft (appendix)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from bbr3_truth import LOSSES, RATES, carried
from tcp_truth import QUEUES, all_beside_cubic, play

PAYLOAD = 1460 / 1500
"""Share of data in a packet."""


def one_flow(link: Mapping[str, Any], seconds: Sequence[int], algorithm: str = "bbr3") -> Mapping[str, Any]:
    """Metrics of one flow over 40 ms between two times."""
    begin, end = seconds
    done = play(
        1,
        duration=f"{end}s",
        warmup=f"{begin}s",
        links=[{"delay": "20ms", **link}],
        flows=[{"name": "tcp", "tcp": {"algorithm": algorithm, "recovery": "rack"}}],
    )
    return done.metrics("tcp")


def test_cubic_gets_nearly_half_where_the_queue_is_no_deeper_than_the_cap() -> None:
    shares = {
        products: np.mean([share for share, *_ in all_beside_cubic("bbr3", queue)])
        for products, queue in QUEUES.items()
    }
    for products in (0.5, 1, 4):
        assert 0.45 < shares[products] < 0.6, shares
    assert 0.2 < shares[16] < 0.4


@pytest.mark.parametrize("mbps", RATES)
def test_random_loss_beyond_the_threshold_is_answered(mbps: int) -> None:
    each = [carried("bbr3", mbps, loss) for loss in LOSSES]
    assert each == sorted(each, reverse=True)
    assert each[1] > 0.9
    # the closed form is in `crates/sim/tests/tcp/bbr3.rs`, at the test of random loss
    assert 0.75 < each[3] < 0.85
    assert each[5] < 0.3
    assert carried("bbr", mbps, LOSSES[5]) > 0.85, "version 1 answers none"


def test_tenfold_capacity_is_reached_within_two_seconds() -> None:
    # the wait for a probe is up to 3 s or 33 round trips, and log 10 / log 1.25 round trips of growth follow
    link = {"capacity": {"schedule": [["0s", "10Mbps"], ["20s", "100Mbps"]]}, "queue": {"packets": 330}}
    after = one_flow(link, (22, 24))
    assert 0.96 * PAYLOAD < after["goodput_bps"] / 1e8 <= PAYLOAD


def test_a_tenth_of_the_capacity_is_kept_but_its_queue_stays() -> None:
    def later(packets: int, algorithm: str = "bbr3") -> Mapping[str, Any]:
        link = {"capacity": {"schedule": [["0s", "100Mbps"], ["20s", "10Mbps"]]}, "queue": {"packets": packets}}
        return one_flow(link, (45, 51), algorithm)

    deep, shallow, first = later(330), later(33), later(330, "bbr")
    for flow in (deep, shallow, first):
        assert 0.95 * PAYLOAD < flow["goodput_bps"] / 1e7 < 1.01 * PAYLOAD
        assert flow["loss_fraction"] < 0.01
    assert shallow["queueing_delay_ms_mean"] < 10
    assert first["queueing_delay_ms_mean"] < 10
    # as ProbeRTT leaves half of the bandwidth-delay product of before: 167 packets of 1.2 ms
    assert 100 < deep["queueing_delay_ms_mean"] < 330


def test_a_policer_is_found_by_its_losses() -> None:
    policer = {"name": "policer", "rate": "5Mbps", "burst": "10kB"}
    flow = one_flow({"capacity": "50Mbps", "queue": {"packets": 330}, "discipline": policer}, (20, 60))
    assert 0.85 * PAYLOAD < flow["goodput_bps"] / 5e6 < PAYLOAD
    assert 0.002 < flow["loss_fraction"] < 0.04


def test_a_path_smaller_than_a_packet_has_four_under_way() -> None:
    flow = one_flow({"capacity": "64kbps", "delay": "1ms", "queue": {"packets": 40}}, (20, 60))
    assert 0.97 * PAYLOAD < flow["goodput_bps"] / 64e3 <= 1.001 * PAYLOAD
    assert flow["loss_fraction"] == 0
    # 1500 bytes take 187.5 ms: three wait before each, and two more while it probes, with extra_acked
    assert 3 * 187.5 < flow["queueing_delay_ms_mean"] < 6 * 187.5
