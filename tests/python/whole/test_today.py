"""What `docs/scenarios.md` and `docs/policers.md` say, whatever the numbers of their tables are."""

from __future__ import annotations

from statistics import fmean

import pytest

import today
from tidegate import Run, Scenario, run


def call(controller: str, **changes: object) -> Run:
    """A call of half a minute behind the policer."""
    chosen = {"flows.call.media.controller": controller, "duration": "30s", **changes}
    return run(Scenario.load(today.POLICED, chosen), record="summary")


@pytest.mark.parametrize("controller", ["gcc", "tfrc"])
def test_a_policer_is_loss_without_delay_and_a_shaper_delay_before_loss(controller: str) -> None:
    policed, shaped = call(controller).metrics(), call(controller, **{"links.cell.discipline": today.SHAPER}).metrics()
    # 30 ms of propagation; the cell takes 0.5 ms for a packet, and frames leave in bursts
    assert policed["one_way_delay_ms_p95"] < 36
    assert policed["loss_fraction"] > 0.03
    assert shaped["one_way_delay_ms_p95"] > 80
    assert shaped["loss_fraction"] < policed["loss_fraction"] / 3


def test_what_a_policer_lets_pass_is_its_rate() -> None:
    """Of one who never gives way: 1.5 Mbit/s and the burst, to the packet."""
    metrics = call(
        "fixed:3Mbps", **{"flows.call.media.max_rate": "4Mbps", "flows.call.media.video.max": "4Mbps"}
    ).metrics()
    assert 1.495e6 < metrics["receive_rate_bps"] <= 1.5e6 + 50_000 * 8 / 30
    assert 0.45 < metrics["loss_fraction"] < 0.55


def test_a_small_bucket_drops_what_comes_in_bursts_below_the_rate() -> None:
    below = {"flows.call.media.max_rate": "1Mbps", "flows.call.media.video.max": "1Mbps"}
    small = {**below, "links.cell.discipline.burst": "5kB"}
    assert call("gcc", **below).metrics()["loss_fraction"] == 0
    # what is sent again comes in a burst with the frame of that time
    assert 0.075 < call("gcc", **small).metrics()["loss_fraction"] < 0.1
    unrepaired = call("gcc", **small, **{"flows.call.media.repair": "none"}).metrics()
    assert 0.05 < unrepaired["loss_fraction"] < 0.075


@pytest.mark.parametrize("controller", today.CONTROLLERS)
def test_nobody_waits_behind_a_policer(controller: str) -> None:
    assert today.policed.mean(controller, "queueing_delay_ms_mean") < 1.5
    assert today.policed.mean(controller, "one_way_delay_ms_p95") < 35
    # but for who hears of a full queue once a second: the next test
    loses_more = today.policed.mean(controller, "loss_fraction") >= today.shaped.mean(controller, "loss_fraction")
    assert loses_more == (controller != "rrb-simd")


def test_rrb_simd_hears_of_a_shapers_queue_when_it_is_full() -> None:
    """Receiver reports come once a second by libwebrtc's rule, and each 0.144 s by RFC 3550's with 2.5 Mbit/s."""

    def mean(changes: str, metric: str) -> float:
        return today.Runs(today.POLICED, changes).mean("rrb-simd", metric)

    expected = {
        # changes: loss and rate, each with three standard errors of the mean over five seeds
        "": ((0.047, 0.007), (1.080e6, 0.025e6)),
        "shaper": ((0.058, 0.009), (1.230e6, 0.020e6)),
        "rfc3550": ((0.0646, 0.001), (1.455e6, 0.006e6)),
        "shaper, rfc3550": ((0.010, 0.003), (1.358e6, 0.042e6)),
    }
    for changes, ((loss, off), (rate, away)) in expected.items():
        assert mean(changes, "loss_fraction") == pytest.approx(loss, abs=off), changes
        assert mean(changes, "receive_rate_bps") == pytest.approx(rate, abs=away), changes


def test_a_managed_queue_keeps_a_call_beside_a_backup_short_and_alive() -> None:
    for name, beside in today.BESIDE.items():
        if name not in ("fq-codel-home", "pie-cable"):
            continue
        managed, deep = (
            [run(Scenario.load(name, dict(changes)), seed, "summary").metrics() for seed in range(1, 6)]
            for changes in ({}, beside.instead)
        )
        assert max(one["one_way_delay_ms_p95"] for one in managed) < 75, name
        assert min(one["one_way_delay_ms_p95"] for one in deep) > 250, name
        # the backup is there for half of the time, in which the plain queue leaves the call half of its rate or less
        ratio = fmean(one["receive_rate_bps"] for one in managed) / fmean(one["receive_rate_bps"] for one in deep)
        assert 1.3 < ratio < 2, name


def test_what_the_page_says_of_managed_queues() -> None:
    fair, short = today.Runs("fq-codel-home"), today.Runs("pie-cable")
    for controller in today.CONTROLLERS:
        for runs in (fair, short):
            assert runs.mean(controller, "one_way_delay_ms_p95") < 70
    # losses that may be inherent to one and are congestion to the other
    assert 0.020 < fair.mean("gcc", "loss_fraction") < 0.025
    assert 0.15 < fair.mean("tfrc", "loss_fraction") / fair.mean("gcc", "loss_fraction") < 0.2
    sent = {
        name: fair.mean(name, "receive_rate_bps") / (1 - fair.mean(name, "loss_fraction")) for name in ("gcc", "tfrc")
    }
    assert 0.97 < sent["tfrc"] / sent["gcc"] < 0.99
    # what is lost is sent again, which takes its time; without that no frame can be decoded after the first loss
    assert 0.2 < fair.mean("gcc", "without_picture_s") < 0.45
    assert 58 < today.Runs("fq-codel-home", "no repair").mean("gcc", "without_picture_s") < 61
    assert fair.mean("gcc", "frame_delay_ms_p95") == pytest.approx(420, abs=80)
    assert fair.mean("tfrc", "frame_delay_ms_p95") == pytest.approx(250, abs=50)
    assert 0.95 * 2.5e6 < fair.mean("tfrc", "receive_rate_bps") < 2.5e6
    assert 2.2e6 < short.mean("gcc", "receive_rate_bps") < 2.5e6
    assert 0.25e6 < short.mean("gcc-remb", "receive_rate_bps") < 0.45e6


def test_bbr_next_door_keeps_the_queue_short() -> None:
    """It has two bandwidth-delay products in flight at most: a round trip of 40 ms, and as much of queue."""
    beside = today.BESIDE["bbr-next-door"]
    bbr, cubic = (
        run(Scenario.load("bbr-next-door", dict(changes)), record="summary").metrics()
        for changes in ({}, beside.instead)
    )
    # both measure: each other's queue is part of the least round trip that BBR saw, and bursts come on top
    assert 50 < bbr["one_way_delay_ms_p95"] < 110
    assert cubic["one_way_delay_ms_p95"] > 250
    assert bbr["receive_rate_bps"] > 1.2 * cubic["receive_rate_bps"]


def test_dualpi2_keeps_a_classic_call_beside_l4s_short_and_its_share() -> None:
    beside = today.BESIDE["l4s-access"]
    changes = [{}, beside.instead, {"flows.call.media.ecn": "ect1"}]
    runs = [run(Scenario.load("l4s-access", dict(one)), record="summary") for one in changes]
    l4s, deep, deaf = (one.metrics() for one in runs)
    taken = [one.metrics("download")["receive_rate_bps"] for one in runs]
    # the classic queue's target of 15 ms, and a frame that leaves in one piece
    assert l4s["one_way_delay_ms_p95"] < 60
    assert deep["one_way_delay_ms_p95"] > 150
    assert l4s["receive_rate_bps"] > 2.3e6
    assert runs[0].metrics("download")["marked"] > 1000
    # a call that says ECT(1) and does not answer marks takes from who does
    assert taken[2] < 0.6 * taken[0]
    assert deaf["one_way_delay_ms_p95"] < l4s["one_way_delay_ms_p95"]


def test_a_paced_download_that_ends_before_a_full_queue_lets_time_pass() -> None:
    """Its last data were acknowledged while a copy of them waited for the pacer."""
    changes = {**today.BESIDE["l4s-access"].instead, "flows.call.media.controller": "gcc-remb"}
    assert (
        run(Scenario.load("l4s-access", changes), seed=1, record="summary").metrics("download")["packets_received"] > 0
    )
