"""The table of `docs/placements.md`, and what it must show whatever the numbers are.

`TIDEGATE_BLESS=1` writes it anew.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import placements
import tidegate
from gcc_experiments import Seen
from support import ROOT, check_table

PAGE = ROOT / "docs" / "placements.md"
pytestmark = pytest.mark.slow


def test_the_table_is_what_comes_out() -> None:
    check_table(PAGE, "placements", placements.table())


@pytest.mark.parametrize("name", placements.SCENARIOS)
@pytest.mark.parametrize("preset", ["draft-02", "hoang2017"])
def test_the_second_placement_needs_less_feedback(name: str, preset: str) -> None:
    first, second = (placements.mean(name, f"{one}:{preset}", "feedback_rate_bps") for one in ("gcc", "gcc-remb"))
    assert 0 < second < first


@cache
def recorded(name: str, controller: str, seed: int) -> Seen:
    runs = tidegate.compare([controller], name, seeds=[seed], record="packets").runs[controller]
    return Seen(runs[0], str(runs[0].summary["flows"][0]["flow"]))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_see_a_drop_of_the_capacity_at_the_same_time(seed: int) -> None:
    """From 2.5 to 0.6 Mbit/s at 60 s: apart by at most the wait for a report and a frame's sending."""
    first, second = (recorded("rfc8867-5.1-variable-capacity", f"{one}:draft-02", seed) for one in ("gcc", "gcc-remb"))
    for seen in (first, second):
        assert seen.target(60.0) == pytest.approx(1.52e6), "both send all there is"
        assert 0.1 < seen.falls(0.97 * 1.52e6, 60.0) < 0.3, "a round trip at least, and the filter's lag"
    for rate in (0.97 * 1.52e6, 0.6e6):
        assert abs(first.falls(rate, 60.0) - second.falls(rate, 60.0)) <= 0.05 + 1 / 30
    assert second.queueing(60.0, 70.0)[1] == pytest.approx(first.queueing(60.0, 70.0)[1], rel=0.05)


def test_growth_waits_for_something_to_be_heard() -> None:
    """Steps of 5 % at least a second apart: the next TWCC report, or the next receiver report, makes them."""

    def spacing(controller: str) -> float:
        seen = recorded("home-broadband", controller, 1)
        times, values = seen.noted_at("loss_based")
        return float(np.diff(times[1:][np.diff(values) > 1]).mean())

    assert 1.0 <= spacing("gcc:draft-02") <= 1.0 + 0.05
    rtcp = recorded("home-broadband", "gcc-remb:draft-02", 1).run.table("rtcp")
    back = rtcp.to_numpy("from_receiver").astype(bool)
    interval = float(np.diff(rtcp.to_numpy("t_s")[back]).mean())
    # half an interval of waiting on average; intervals are drawn from 0.5 to 1.5 of their mean, so that it may be more
    assert 1.0 + 0.3 * interval <= spacing("gcc-remb:draft-02") <= 1.0 + interval


def test_the_receiver_does_not_know_the_sessions_least_rate() -> None:
    said = recorded("cell-with-outages", "gcc-remb:draft-02", 1).noted("remb_sent")
    kept = recorded("cell-with-outages", "gcc:draft-02", 1).noted("delay_based")
    # it says less, down to its own least of 5 kb/s
    assert 5000 <= said.min() < 10_000
    assert kept.min() == 30_000


def test_the_thesiss_verdicts_act_on_each_packet_at_the_receiver_and_on_few_reports_at_the_sender() -> None:
    first, second = (recorded("rfc8867-5.1-variable-capacity", f"{one}:hoang2017", 1) for one in ("gcc", "gcc-remb"))
    assert (first.noted("rate_state") == 2).sum() < 0.2 * (first.noted("state") == 1).sum()
    assert (second.noted("rate_state") == 2).sum() > 2 * (second.noted("state") == 1).sum()
