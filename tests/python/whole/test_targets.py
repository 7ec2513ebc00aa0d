"""Targets beside the rates available to them: closed forms of constant targets, and runs of each kind of traffic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate import Decision, Limits, Report, Run, Scenario, run

Metrics = dict[str, Any]

STEPS = {"schedule": [["0s", "1Mbps"], ["20s", "2Mbps"], ["40s", "500kbps"]]}
NAMES = (
    "target_rate_bps", "available_rate_bps", "target_excess_fraction", "target_shortfall_fraction",
    "target_over_fraction", "target_under_fraction", "available_rate_changes", "target_unconverged", "target_convergence_s",
)  # fmt: skip


def call(name: str = "call", controller: Any = "fixed:1Mbps", **flow: Any) -> dict[str, Any]:
    media = {"controller": controller, "max_rate": "10Mbps", "video": {"source": "ideal"}, **flow.pop("media", {})}
    return {"name": name, "media": media, **flow}


def done(capacity: Any, *flows: dict[str, Any], **scenario: Any) -> Run:
    link = {"name": "cable", "capacity": capacity, "delay": "20ms", "queue": {"time": "300ms"}}
    table = {"duration": "60s", "sending_jitter": "off", "links": [link], "flows": list(flows), **scenario}
    return run(Scenario.from_dict(table))


def metrics(done: Run, flow: str = "call") -> Metrics:
    found = done.metrics(flow)
    return {name: found[name] for name in NAMES}


def expected(*values: float | None) -> Metrics:
    return {name: value if value is None else pytest.approx(value) for name, value in zip(NAMES, values, strict=True)}


def test_a_constant_target_over_steps() -> None:
    found = metrics(done(STEPS, call()))
    # 20 s as much as there is, 20 s half of it, 20 s twice of it
    total = 20 + 40 + 10
    assert found == expected(1e6, total / 60 * 1e6, 10 / total, 20 / total, 1 / 3, 1 / 3, 3, 2, (0 + 20 + 20) / 3)
    assert found["target_rate_bps"] == pytest.approx(
        found["available_rate_bps"] * (1 + found["target_excess_fraction"] - found["target_shortfall_fraction"])
    )


@pytest.mark.parametrize("level", ["summary", "packets"])
def test_the_amount_of_the_record_changes_nothing(level: str) -> None:
    flows = (call(), {"name": "udp", "udp": {"rate": "300kbps"}, "start": "13s"})
    series, other = (done(STEPS, *flows, record=record) for record in ("series", level))
    assert metrics(series) == metrics(other)
    assert series.digest == other.digest


@pytest.mark.parametrize(("rate", "over", "under"), [(1099, 0, 0), (1101, 1, 0), (901, 0, 0), (899, 0, 1)])
def test_a_tenth_is_neither_over_nor_under(rate: int, over: int, under: int) -> None:
    found = metrics(done("1Mbps", call(controller=f"fixed:{rate}kbps")))
    distance = rate / 1000 - 1
    converged = over + under == 0
    assert found == expected(
        rate * 1e3, 1e6, max(distance, 0), max(-distance, 0), over, under, 1, 1 - converged, 0 if converged else 60
    )


def test_two_calls_share_while_both_run() -> None:
    other = call("other", "gcc", start="20s", stop="40s")
    found = metrics(done("2Mbps", call(controller="gcc"), other))
    assert found["available_rate_bps"] == pytest.approx((2 + 1 + 2) / 3 * 1e6)
    assert found["available_rate_changes"] == 3
    theirs = metrics(done("2Mbps", call(controller="gcc"), other), "other")
    assert theirs["available_rate_bps"] == pytest.approx(1e6)
    assert theirs["available_rate_changes"] == 1


def test_what_does_not_adapt_comes_first() -> None:
    udp = {"name": "udp", "udp": {"rate": "1Mbps", "packet_size": "1250B"}, "start": "20s", "stop": "40s"}
    found = metrics(done("2Mbps", call(), udp))
    assert found == expected(1e6, 5 / 3 * 1e6, 0, 40 / 100, 0, 2 / 3, 3, 2, (20 + 0 + 20) / 3)
    # a constant call is such a flow, and leaves what it does not take
    found = metrics(done("3Mbps", call(controller="gcc"), call("other", "fixed:1Mbps")))
    assert found["available_rate_bps"] == pytest.approx(2e6, rel=0.03), "3 Mbit/s less the other, with its headers"
    theirs = metrics(done("3Mbps", call(controller="gcc"), call("other", "fixed:1Mbps")), "other")
    assert theirs["available_rate_bps"] == pytest.approx(1.5e6), "of the two that are there it is one"


@pytest.mark.parametrize(
    "media",
    [
        {"video": False, "audio": {"rate": "64kbps"}},
        {"video": {"source": "cbr", "packet_size": "200B", "schedule": [["0s", "80kbps"]]}},
    ],
)
def test_audio_and_constant_packets_are_no_flows_that_share(media: dict[str, Any]) -> None:
    other = call("other", "gcc", media=media)
    flows = done("1Mbps", call(controller="gcc"), other)
    sent = flows.metrics("other")["sending_rate_bps"]
    assert metrics(flows)["available_rate_bps"] == pytest.approx(1e6 - sent, rel=0.002)


def test_tcp_shares_while_it_sends() -> None:
    long = {"name": "tcp", "tcp": {}, "start": "20s", "stop": "40s"}
    found = metrics(done("4Mbps", call(), long))
    # up to a second after its last packet, and the interval of its end
    assert found["available_rate_bps"] == pytest.approx((4 * 40 + 2 * 20 - 2 * 1) / 60 * 1e6, rel=0.007)


def test_a_call_that_starts_later_has_its_own_time() -> None:
    found = metrics(done(STEPS, call(start="30s", stop="50s")))
    assert found == expected(1e6, 1.25e6, 0.5 / 2.5, 1 / 2.5, 0.5, 0.5, 2, 2, 10)


def test_pauses_are_no_time_of_a_target_and_leave_the_path_to_others() -> None:
    paused = call(media={"pauses": [["20s", "40s"]]})
    found = metrics(done("1Mbps", paused))
    assert found == expected(1e6, 1e6, 0, 0, 0, 0, 2, 0, 0)
    other = call("other", "gcc")
    found = metrics(done("2Mbps", call(controller="gcc", media={"pauses": [["20s", "40s"]]}), other), "other")
    assert found["available_rate_bps"] == pytest.approx((1 + 2 + 1) / 3 * 1e6)
    assert found["available_rate_changes"] == 3


def test_the_warm_up_is_left_out() -> None:
    found = metrics(done(STEPS, call(), warmup="30s"))
    assert found == expected(1e6, 1e6, 10 / 30, 10 / 30, 2 / 3, 1 / 3, 1, 1, 20)
    # nothing changes after the warm-up
    assert metrics(done("1Mbps", call(), warmup="10s")) == expected(1e6, 1e6, 0, 0, 0, 0, 0, 0, None)


def test_the_tightest_link_counts() -> None:
    links = [
        {"name": name, "from": begin, "to": end, "capacity": capacity, "delay": "10ms"}
        for name, begin, end, capacity in (
            ("wide", "a", "b", {"schedule": [["0s", "4Mbps"], ["30s", "800kbps"]]}),
            ("narrow", "b", "c", "1Mbps"),
        )
    ]
    scenario = {"duration": "60s", "links": links, "flows": [call(**{"from": "a", "to": "c"})]}
    found = metrics(run(Scenario.from_dict(scenario)))
    assert found == expected(1e6, 0.9e6, 0.1 / 0.9 / 1, 0, 0.5, 0, 2, 1, (0 + 30) / 2) | {
        "target_excess_fraction": pytest.approx(0.2 * 30 / 54)
    }


class Climbing(tidegate.Controller):
    """Ten seconds at a time: 0.5, 1, 1.05 and 2 Mbit/s, and then 1."""

    RATES = (5e5, 1e6, 1.05e6, 2e6, 1e6, 1e6, 1e6)

    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        del limits
        return self.on_alarm(now_ns)

    def on_report(self, now_ns: int, report: Report) -> None:
        del now_ns, report

    def on_alarm(self, now_ns: int) -> Decision:
        step = now_ns // 10**10
        return Decision(self.RATES[step], pacing_bps=self.RATES[step], alarm_ns=(step + 1) * 10**10)


def test_a_target_converges_once_it_stays() -> None:
    found = metrics(done("1Mbps", call(controller=Climbing)))
    mean = (0.5 + 1 + 1.05 + 2 + 1 + 1) / 6
    assert found == expected(mean * 1e6, 1e6, 1.05 / 6, 0.5 / 6, 1 / 6, 1 / 6, 1, 0, 10)
    # the change at 30 s is converged at 40 s; that at 57 s has no time to be one
    steps = {"schedule": [["0s", "1Mbps"], ["30s", "1200kbps"], ["57s", "1Mbps"]]}
    found = metrics(done(steps, call(controller=Climbing)))
    assert (found["available_rate_changes"], found["target_unconverged"]) == (2, 1)
    assert found["target_convergence_s"] == pytest.approx((10 + 27) / 2)


def test_an_interval_that_the_end_cuts_short_counts() -> None:
    steps = {"schedule": [["0s", "1Mbps"], ["10s", "500kbps"]]}
    found = metrics(done(steps, call(), duration="10.1s"))
    total = 10 + 0.05
    assert found == expected(1e6, total / 10.1 * 1e6, 0.05 / total, 0, 0.1 / 10.1, 0, 1, 0, 0)


def test_small_changes_are_none_until_they_add_up() -> None:
    steps = {"schedule": [["0s", "1Mbps"], ["15s", "1.06Mbps"], ["30s", "1.12Mbps"], ["45s", "1.06Mbps"]]}
    assert metrics(done(steps, call()))["available_rate_changes"] == 2


def test_without_a_limit_nothing_is_compared() -> None:
    assert metrics(done("infinite", call())) == expected(1e6, *[None] * 8)


def test_over_a_link_that_is_down_the_target_is_over() -> None:
    down = {"schedule": [["0s", "1Mbps"], ["20s", "0bps"], ["30s", "1Mbps"]]}
    assert metrics(done(down, call())) == expected(1e6, 5e5 / 3 * 5, 10 / 50, 0, 1 / 6, 0, 3, 1, (0 + 10 + 0) / 3)
    whole = metrics(done(down, call(), warmup="20s", duration="30s"))
    assert whole == expected(1e6, 0, None, None, 1, 0, 0, 0, None)


def test_nothing_is_available_in_a_radio_network() -> None:
    radio = run(Scenario.load("lte-cell", {"duration": "5s", "warmup": "0s"}))
    subject = next(flow for flow in radio.summary["flows"] if flow["kind"] == "media")
    assert subject["target_rate_bps"] > 0
    assert subject["available_rate_bps"] is subject["target_over_fraction"] is subject["target_convergence_s"] is None


def test_a_generated_capacity_is_the_same_for_every_reader() -> None:
    brownian: dict[str, Any] = {"brownian": {}}
    fine, coarse = (done(brownian, call(), bin=width, duration="20s") for width in ("200ms", "1s"))
    assert metrics(fine) == metrics(coarse)
    truth = fine.table("truth")
    ours = np.asarray(truth.to_numpy("link")) == "cable"
    assert metrics(fine)["available_rate_bps"] == pytest.approx(truth.to_numpy("capacity_bps")[ours].mean())


def test_other_traffic_has_no_target() -> None:
    found = metrics(done("1Mbps", {"name": "udp", "udp": {"rate": "300kbps"}}), "udp")
    assert found == dict.fromkeys(NAMES)
