"""NEWPRED of burmeister2001: published bands, closed forms for rare losses with enough RTCP, and congestion."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.paper import Plan
from tidegate.papers.burmeister2001 import newpred
from tidegate.papers.burmeister2001.newpred import DELAYS_MS, LOSSES, PUBLISHED, TABLE_14, ParameterSet, RepairSummary
from tidegate.runs import run


def waiting(parameters: ParameterSet, delay: int, loss: float, duration: str, **keys: object) -> float:
    scenario = newpred.constant_loss(parameters, delay, loss, duration, newpred.Variant(**keys))  # type: ignore[arg-type]
    return RepairSummary.from_run(run(scenario)).recovery_ms - newpred.round_trip_ms(parameters, delay)


def test_what_is_published_has_28_bands_and_21_bounds() -> None:
    assert len(TABLE_14) == 11
    assert len(PUBLISHED) == 7 * len(LOSSES)
    assert sum(low > 0 for low, _ in PUBLISHED.values()) == 28
    assert all(low < high for low, high in PUBLISHED.values())
    assert PUBLISHED[32, 0.2] == (560, 780)


@pytest.mark.parametrize("parameters", [parameters for parameters in TABLE_14 if parameters.bandwidth >= 1000], ids=str)
def test_where_rtcp_is_plenty_a_loss_waits_for_the_picture_and_half_the_next(parameters: ParameterSet) -> None:
    # with these delays, reports arrive at times spread evenly over a picture of 33.3 ms
    delays = range(20, 37, 2)
    mean = sum(waiting(parameters, delay, 0.005, "100s") for delay in delays) / len(delays)
    assert mean == pytest.approx(parameters.without_rtcp_ms, rel=0.05)


def test_losses_and_narrow_sessions_make_it_longer() -> None:
    wide, narrow = TABLE_14[-1], TABLE_14[0]
    assert waiting(wide, 50, 0.2, "100s") > 1.15 * waiting(wide, 50, 0.005, "100s")
    assert waiting(narrow, 50, 0.2, "1000s") > 2 * waiting(narrow, 50, 0.01, "1000s")


def test_reports_that_may_not_wait_are_not_sent_and_their_losses_not_repaired() -> None:
    parameters = TABLE_14[0]
    for delay, all_repaired in (("5s", True), ("1s", False)):
        scenario = newpred.constant_loss(parameters, 50, 0.2, "500s", newpred.Variant(max_feedback_delay=delay))
        _, receiver = run(scenario).members
        unrepaired = receiver["losses"] - receiver["recovered"]
        assert receiver["not_allowed"] == 0 if all_repaired else receiver["not_allowed"] > 100
        # repairs of the last losses are still on their way
        assert receiver["not_allowed"] <= unrepaired < receiver["not_allowed"] + 10


def test_reports_that_are_lost_leave_their_losses_as_they_are() -> None:
    scenario = newpred.constant_loss(TABLE_14[2], 50, 0.1, "1000s", newpred.Variant(losses_back=True))
    _, receiver = run(scenario).members
    # each tenth report is lost
    assert receiver["recovered"] / receiver["losses"] == pytest.approx(0.9, abs=0.02)


def test_congestion_adds_what_the_queues_hold_up() -> None:
    parameters = TABLE_14[8]
    plan = Plan(quick=True, seeds=[1])
    done: dict[Any, RepairSummary] = {}
    for loss in LOSSES:
        done["newpred", "a", "as found", parameters, 50, loss, 1] = RepairSummary.from_run(
            run(newpred.constant_loss(parameters, 50, loss, "200s"))
        )
    done["newpred", "b", "as chosen", parameters, 50, 1] = RepairSummary.from_run(
        run(newpred.congested(parameters, 50, "120s"))
    )
    (offset,) = newpred.NewpredResults(plan, done).offsets("as chosen")
    assert 0.01 < offset.loss < 0.2
    assert 40 < offset.queue < 2 * 50 * 1040 * 8 / 5e6 * 1e3
    assert abs(offset.offset - offset.queue) < newpred.UNEXPLAINED_MS


def test_a_plan_has_all_settings() -> None:
    jobs = newpred.jobs(Plan(quick=True, seeds=[1, 2]))
    kinds = [key[1] for key in jobs]
    assert kinds.count("a") == 2 * len(TABLE_14) * len(DELAYS_MS) * len(LOSSES)
    assert kinds.count("b") == len(newpred.FEW) * len(DELAYS_MS)
    full = newpred.jobs(Plan(quick=False, seeds=range(1, 11)))
    assert {key[2] for key in full if key[1] == "b"} == set(newpred.CONGESTIONS)
    assert {key[2] for key in full if key[1] == "a"} == set(newpred.VARIANTS)
