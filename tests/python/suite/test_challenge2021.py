"""The score of the challenge of 2021 against numbers worked out by hand."""

from __future__ import annotations

import pytest

from tidegate import Scenario, run
from tidegate.suite import challenge2021
from tidegate.suite.measures import CATALOGUE, measure


def packet(ssrc: int, sequence: int, sent: float, arrived: float, size: int = 1000) -> dict[str, float]:
    return {
        "ssrc": ssrc,
        "sequence_number": sequence,
        "send_time_ms": sent,
        "arrival_time_ms": arrived,
        "payload_size": size,
    }


def test_each_part_is_worth_what_the_formula_says() -> None:
    # nothing lost, all received, no delay beyond the least
    assert challenge2021.network_score(40.0, 40.0, 1.0, 0.0) == pytest.approx(70.0)
    # half of what is above the least delay: 10 of 20
    assert challenge2021.network_score(220.0, 40.0, 1.0, 0.0) == pytest.approx(60.0)
    assert challenge2021.network_score(40.0, 40.0, 0.25, 0.0) == pytest.approx(55.0)
    assert challenge2021.network_score(40.0, 40.0, 1.0, 0.1) == pytest.approx(67.0)


def test_packets_are_evaluated_as_the_challenge_did() -> None:
    # a stream of five packets in 400 ms, sequence 3 and 4 lost; delays to that of the first: 0, 10, 20, 0, 500 -> 400
    first = [
        packet(1, 1, 1000, 0),
        packet(1, 2, 1090, 100),
        packet(1, 5, 1180, 200),
        packet(1, 6, 1300, 300),
        packet(1, 7, 900, 400),
    ]
    # and one of two packets; delays 0 and -100
    second = [packet(2, 9, 1000, 150, 500), packet(2, 10, 1200, 250, 500)]
    # 95 % of 0, 0, 10, 20, 400 lies 0.8 between the last two: 324; of -100, 0: -5
    delay = ((400 - 324) / (400 - 0) + (400 + 5) / (400 + 100)) / 2
    # 5000 bytes in 0.4 s and 1000 in 0.1 s: 100 and 80 kbit/s
    rate = 90_000 / 120_000
    loss = 2 / (2 + 7)
    every = sorted(first + second, key=lambda one: one["arrival_time_ms"])
    found = challenge2021.network_score_of_packets(every, 120_000)
    assert found == pytest.approx(20 * delay + 20 * rate + 30 * (1 - loss))
    # more than ideal is ideal
    most = challenge2021.network_score_of_packets(every, 1)
    assert most == pytest.approx(20 * delay + 20 + 30 * (1 - loss))


def test_packets_that_tell_no_rate_get_no_points_for_it() -> None:
    assert challenge2021.network_score_of_packets([], 1e6) is None
    assert challenge2021.network_score_of_packets([packet(1, 1, 0, 0)], 1e6) == pytest.approx(50.0)


def test_a_suite_has_it_for_each_flow() -> None:
    scenario = Scenario.load("home-broadband").with_changes(
        {"duration": "20s", "flows.call.media.controller": "fixed:2Mbps"}
    )
    done = run(scenario, record="series")
    found = measure(done, ["call"]).flows["call"]
    flow = done.metrics("call")
    share = found["share_fraction"]
    assert share is not None
    assert 0.3 < share < 1
    delay = (400 - flow["one_way_delay_ms_p95"]) / (400 - flow["one_way_delay_ms_min"])
    expected = 20 * delay + 20 * share + 30 * (1 - flow["loss_fraction"])
    assert found["challenge_2021_score"] == pytest.approx(expected)
    assert "challenge_2021_score" in {one.name for one in CATALOGUE}
