"""What `docs/placements.md` says, whatever the numbers of its table are."""

from __future__ import annotations

import pytest

import placements
from placements import DRAFT, FULL_BPS, THESIS


@pytest.mark.parametrize("name", placements.SCENARIOS)
@pytest.mark.parametrize("controllers", [DRAFT, THESIS], ids=placements.PRESETS)
def test_the_second_placement_needs_less_feedback(name: str, controllers: list[str]) -> None:
    first, second = (placements.mean(name, controller, "feedback_rate_bps") for controller in controllers)
    assert 0 < second < first


@pytest.mark.parametrize("seed", placements.SEEDS)
def test_both_see_a_drop_of_the_capacity_at_the_same_time(seed: int) -> None:
    """From 2.5 to 0.6 Mbit/s at 60 s: apart by at most the wait for a report and a frame's sending."""
    first, second = (placements.fall(controller, seed) for controller in DRAFT)
    for fall in (first, second):
        assert fall["before_bps"] == pytest.approx(FULL_BPS), "both send all there is"
        assert 0.1 < fall["falls_s"] < 0.3, "a round trip at least, and the filter's lag"
    for name in ("falls_s", "below_s"):
        assert abs(first[name] - second[name]) <= 0.05 + 1 / 30
    assert second["queueing_ms"] == pytest.approx(first["queueing_ms"], rel=0.05)


def test_growth_waits_for_something_to_be_heard() -> None:
    """Steps of 5 % at least a second apart: the next TWCC report, or the next receiver report, makes them."""
    first, second = (placements.growth(controller) for controller in DRAFT)
    assert 1.0 <= first["step_s"] <= 1.0 + 0.05
    # half an interval of waiting on average; intervals are drawn from 0.5 to 1.5 of their mean, so that it may be more
    assert 1.0 + 0.3 * second["rtcp_s"] <= second["step_s"] <= 1.0 + second["rtcp_s"]


def test_the_receiver_does_not_know_the_sessions_least_rate() -> None:
    # it says less, down to its own least of 5 kb/s
    assert 5000 <= placements.least("gcc-remb:draft-02", "remb_sent") < 10_000
    assert 30_000 <= placements.least("gcc:draft-02", "delay_based") < 35_000


def test_the_thesiss_verdicts_act_on_each_packet_at_the_receiver_and_on_few_reports_at_the_sender() -> None:
    first, second = map(placements.overuse, THESIS)
    assert first["updates"] < 0.2 * first["packets"]
    assert second["updates"] > 2 * second["packets"]
