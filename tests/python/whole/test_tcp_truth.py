"""TCP beside ns-2, ns-3 and Mathis's formula: how far the numbers of `docs/tcp.md` may be away."""

from __future__ import annotations

import numpy as np
import pytest

from tcp_stalls import PATHS, SEEDS, WAYS, standstills
from tcp_truth import (
    LOSSES,
    NS2_PHASE,
    QUEUES,
    TWINS,
    all_beside_cubic,
    base,
    beside_noise,
    one_flow,
    over_mathis,
    shares,
)
from tidegate import Scenario
from tidegate.errors import ScenarioError


@pytest.mark.parametrize(("algorithm", "least", "most"), [("newreno", 20, 24), ("cubic", 30, 34)])
def test_one_flow_fills_the_link(algorithm: str, least: float, most: float) -> None:
    flow = one_flow(algorithm, False, "off")
    assert 0.99 < flow["utilisation"] < 1.0 + 1e-4
    assert 4e-4 <= flow["loss"] <= 1e-3
    assert least <= flow["mean"] <= most
    assert 36 <= flow["p95"] <= 40


@pytest.mark.parametrize("delayed_ack", [False, True])
@pytest.mark.parametrize("algorithm", TWINS)
def test_one_flow_does_as_its_twin_does(algorithm: str, delayed_ack: bool) -> None:
    flow, expected = one_flow(algorithm, delayed_ack, "off"), base(algorithm, delayed_ack)
    # as far apart as ns-2's Newreno and ns-3's TcpNewReno are, with and without SACK: 0.2 % of the link and
    # half a millisecond to one; of 83,000 packets some 24 to 47 are lost, and 10 % are two to four of them
    assert flow["utilisation"] == pytest.approx(expected["utilisation"], abs=0.003)
    assert flow["loss"] == pytest.approx(expected["loss"], rel=0.10)
    assert flow["mean"] == pytest.approx(expected["mean"], abs=0.6)
    assert flow["p95"] == pytest.approx(expected["p95"], abs=0.3)


def test_the_shorter_flow_gets_two_to_three_times_as_much() -> None:
    for delayed_ack in (False, True):
        mean = np.mean(shares("newreno", delayed_ack, "auto"))
        assert 2.0 <= mean <= 3.0, (delayed_ack, mean)
    # in step with the queue who loses is decided by the phase, and the shorter flow gets less (Floyd and
    # Jacobson 1992): switching the jitter off makes another experiment
    assert np.mean(shares("newreno", False, "off")) < 0.9


@pytest.mark.parametrize("algorithm", ["newreno", "sack"])
@pytest.mark.parametrize("loss", LOSSES)
def test_random_loss_gives_the_rate_of_mathis(algorithm: str, loss: float) -> None:
    assert over_mathis(algorithm, False, loss) == pytest.approx(1.0, rel=0.15)


def test_bbr_yields_where_the_queue_is_deeper_than_its_cap() -> None:
    shares = {
        products: np.mean([share for share, *_ in all_beside_cubic("bbr", queue)]) for products, queue in QUEUES.items()
    }
    # in a queue of one product the cap of two is never reached, and only CUBIC answers losses
    assert shares[0.5] > 0.8
    assert 0.5 < shares[1] < 1
    assert shares[4] < shares[1]
    assert shares[16] < 0.5


def test_with_noise_the_phase_decides_as_in_ns_2() -> None:
    for longer_us, (ratio, _, _) in NS2_PHASE.items():
        # means of eight that wander by a fifth each, on both sides
        assert np.mean(beside_noise(longer_us, "1Gbps")) == pytest.approx(ratio, rel=0.2), longer_us


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_by_rack_no_flow_stands_still(path: tuple[str, int, int, int]) -> None:
    for discipline in PATHS[path]:
        by_count, by_time = (
            np.concatenate([standstills(*path, discipline, keys, seed)["longest"] for seed in SEEDS])
            for keys in WAYS.values()
        )
        # four timeouts in a row of 240 ms and more, each twice the one before, are 3.6 s: none was seen in 640 flows
        assert by_time.max() < 3, (discipline, by_time.max())
        assert np.mean(by_time > 2) < 0.05, discipline
        assert by_count.max() > 1.5 * by_time.max(), discipline


def test_only_selective_acknowledgements_have_a_way_to_repair() -> None:
    with pytest.raises(
        ScenarioError, match=r'recovery: found "rack" with newreno; expected an algorithm with selective'
    ):
        Scenario.from_dict(
            {
                "duration": "1s",
                "links": [{"name": "link"}],
                "flows": [{"name": "tcp", "tcp": {"algorithm": "newreno", "recovery": "rack"}}],
            }
        )
