"""Shares by closed forms, and measures of runs that are made up, whose numbers are known."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tidegate
from support import ROOT
from tidegate import Scenario
from tidegate.suite import _demands as demanding
from tidegate.suite import numbers
from tidegate.suite import shares as sharing
from tidegate.suite.filling import Wish, fill
from tidegate.suite.measures import CATALOGUE, Measures, measure

M = 1e6
CALL = {"controller": "gcc", "video": {"min": "150kbps", "max": "1.5Mbps"}, "audio": {"rate": "20kbps"}}
BOUND = 1.52 * M
Rate = Callable[[float], float]


def calls(capacity: Any, *flows: Mapping[str, Any], duration: str = "100s", **more: Any) -> Scenario:
    """Flows over one cable."""
    link = {"name": "wire", "capacity": capacity, "back": {"capacity": "infinite"}}
    table = {"name": "made-up", "duration": duration, "links": [link], "flows": [dict(one) for one in flows], **more}
    return Scenario.from_dict(table)


def call(name: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "media": CALL, **keys}


def run_of(scenario: Scenario, rates: Mapping[str, Rate], width: float = 0.2) -> Any:
    """What looks like a run of a scenario in which flows received at these rates, each read at the middle of a bin."""
    end = scenario.duration / 1e9
    start = width * np.arange(round(end / width))
    kinds = {name: flow.kind for flow in scenario.flows for name in (*flow.names, f"{flow.name}.back")}
    demands = {one.flow: one for one in demanding.demands(scenario) or ()}
    values = {name: np.array([rate(time + width / 2) for time in start]) for name, rate in rates.items()}
    flows = [
        {
            "flow": name,
            "kind": kinds[name],
            "start_s": next((time for time, most in demands[name].most if most), 0.0) if demands else 0.0,
            "stop_s": end,
            "receive_rate_bps": float(own.mean()),
        }
        for name, own in values.items()
    ]
    series = {
        "t_s": np.tile(start, len(values)),
        "flow": np.repeat(list(values), len(start)),
        "receive_rate_bps": np.concatenate(list(values.values())),
        "one_way_delay_ms_mean": np.full(len(start) * len(values), 50.0),
        "packets_arrived": np.full(len(start) * len(values), 10.0),
    }
    series["sending_rate_bps"] = series["receive_rate_bps"]
    known = {link: steps for link, steps in demanding.known_capacity(scenario).items() if steps}
    truth = {
        "t_s": np.tile(start, len(known)),
        "link": np.repeat(list(known), len(start)),
        "capacity_bps": np.array([demanding.at(steps, time + 1e-9) for steps in known.values() for time in start]),
    }
    tables = {"series": series, "truth": truth}
    summary = {"duration_s": end, "flows": flows}
    table = {name: SimpleNamespace(to_numpy=columns.__getitem__) for name, columns in tables.items()}
    metrics = {one["flow"]: one for one in flows}.__getitem__
    return SimpleNamespace(scenario=scenario, summary=summary, table=table.__getitem__, metrics=metrics)


def measured(scenario: Scenario, rates: Mapping[str, Rate]) -> Measures:
    """The measures of a run that is made up, all of whose media flows contend."""
    media = [name for flow in scenario.flows if flow.media for name in flow.names]
    return measure(run_of(scenario, rates), [name for name in rates if name in media])


def at_each(scenario: Scenario, flow: str, *times: float) -> list[float]:
    found = sharing.of_scenario(scenario)
    assert found is not None
    return [found.at(flow, time) / M for time in times]


# Water filling


def test_a_single_link_is_divided_evenly_and_what_one_cannot_use_goes_to_the_others() -> None:
    many = [Wish(("a",), math.inf)] * 3
    assert fill({"a": 3 * M}, many) == [M, M, M]
    assert fill({"a": 3 * M}, [Wish(("a",), 0.4 * M), *many[:2]]) == [0.4 * M, 1.3 * M, 1.3 * M]
    assert fill({"a": 3 * M}, [Wish(("a",), math.inf, 2), Wish(("a",), math.inf)]) == [2 * M, M]
    assert fill({"a": 3 * M}, [Wish(("a",), 1.5 * M, 2), Wish(("a",), math.inf)]) == [1.5 * M, 1.5 * M]
    assert fill({"a": 0.0}, many) == [0.0, 0.0, 0.0]
    assert fill({}, [Wish(("a",), M), Wish(("a",), math.inf)]) == [M, math.inf]


def test_a_flow_over_two_links_has_what_the_narrow_one_gives_and_the_wide_one_gives_the_rest() -> None:
    wishes = [Wish(("a", "b"), math.inf), Wish(("a",), math.inf), Wish(("b",), math.inf)]
    assert fill({"a": 2 * M, "b": 1.5 * M}, wishes) == [0.75 * M, 1.25 * M, 0.75 * M]


@pytest.mark.parametrize("seed", range(40))
def test_nobody_can_have_more_but_at_the_cost_of_somebody_who_has_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    capacity = {name: float(rng.uniform(1, 10)) for name in "abcd"}
    wishes = []
    for _ in range(int(rng.integers(1, 8))):
        way = tuple(name for name in "abcd" if rng.random() < 0.6)
        wishes.append(Wish(way, float(rng.choice([0.5, 2.0, 50.0])), float(rng.choice([0.5, 1.0, 3.0]))))
    rates = fill(capacity, wishes)
    load = {name: sum(r for r, wish in zip(rates, wishes, strict=True) if name in wish.way) for name in capacity}
    assert all(load[name] <= capacity[name] * (1 + 1e-9) for name in capacity)
    for rate, wish in zip(rates, wishes, strict=True):
        level = rate / wish.weight
        here = [
            name
            for name in wish.way
            if load[name] >= capacity[name] * (1 - 1e-9)
            and all(
                r / other.weight <= level * (1 + 1e-9)
                for r, other in zip(rates, wishes, strict=True)
                if name in other.way
            )
        ]
        assert rate == pytest.approx(wish.most) or here, "it is bounded by itself, or greatest at a full link"


# Shares of RFC 8867's cases


def test_5_1_has_the_capacity_up_to_what_a_call_can_fill() -> None:
    one = Scenario.load("rfc8867-5.1-variable-capacity")
    assert at_each(one, "call", 20, 50, 70, 90, 99.5) == [1.0, 1.52, 0.6, 1.0, 0.0]


def test_5_4_is_divided_by_those_that_are_there() -> None:
    three = Scenario.load("rfc8867-5.4-competing-calls")
    assert at_each(three, "call-1", 10, 30, 60) == pytest.approx([1.52, 1.52, 3.5 / 3])
    assert at_each(three, "call-3", 10, 30, 60) == pytest.approx([0.0, 0.0, 3.5 / 3])


def test_5_6_gives_tcp_as_much_as_the_call_and_all_while_there_is_none() -> None:
    one = Scenario.load("rfc8867-5.6-long-tcp")
    assert at_each(one, "tcp", 2, 50) == [2.0, 1.0]
    assert at_each(one, "call", 2, 50) == [0.0, 1.0]


def test_5_8_gives_the_others_what_the_pausing_one_leaves() -> None:
    one = Scenario.load("rfc8867-5.8-pause-resume")
    assert at_each(one, "first", 30, 50, 80) == pytest.approx([3.5 / 3, 1.52, 3.5 / 3])
    assert at_each(one, "pausing", 30, 50, 80) == pytest.approx([3.5 / 3, 0.0, 3.5 / 3])


def test_5_3_is_of_each_direction_by_itself() -> None:
    both = Scenario.load("rfc8867-5.3-congested-feedback")
    assert at_each(both, "call", 30, 50) == [1.0, 0.5]
    assert at_each(both, "call.back", 30, 50) == [1.52, 0.8]


def test_6_3_is_the_narrow_links_half_and_what_that_leaves_of_the_wide_one() -> None:
    points = [("A", "B", "2Mbps"), ("B", "C", "8Mbps"), ("C", "D", "1.5Mbps")]
    links = [{"name": f"{a}-{b}", "from": a, "to": b, "capacity": rate} for a, b, rate in points]
    ends = {"S1": ("A", "D"), "S2": ("A", "B"), "S3": ("C", "D")}
    flows = [call(name, **{"from": a, "to": b}) for name, (a, b) in ends.items()]
    table = {"duration": "300s", "links": links, "flows": flows}
    found = sharing.of_scenario(Scenario.from_dict(table))
    assert found is not None
    assert found.demands["S1"].way == ("A-B", "B-C", "C-D")
    assert [found.at(name, 100) / M for name in ends] == [0.75, 1.25, 0.75]


def test_udp_takes_its_rate_first_and_yields_to_nobody() -> None:
    udp = {"name": "udp", "start": "10s", "udp": {"rate": "1Mbps", "schedule": [["0s", "1Mbps"], ["20s", "3.5Mbps"]]}}
    one = calls("4Mbps", call("call"), {"name": "tcp", "tcp": {}}, udp)
    # 4 - 1 are two times 1.5, which is less than a call can fill; then 0.5 are left
    assert at_each(one, "call", 5, 15, 35) == pytest.approx([1.52, 1.5, 0.25])
    assert at_each(one, "tcp", 5, 15, 35) == pytest.approx([2.48, 1.5, 0.25])
    assert at_each(calls("2Mbps", call("call"), udp), "udp", 35) == [2.0], "no more than there is"


def test_priorities_of_coupled_flows_divide_what_as_many_flows_would_have() -> None:
    coupled = [{"flows": ["a", "b"], "priorities": [2, 1]}]
    one = calls("3Mbps", call("a"), call("b"), call("c"), couplings=coupled)
    assert at_each(one, "a", 50) == pytest.approx([4 / 3])
    assert at_each(one, "b", 50) == pytest.approx([2 / 3])
    assert at_each(one, "c", 50) == pytest.approx([1.0])


def test_what_an_application_has_to_send_bounds_its_share() -> None:
    video = {**CALL["video"], "schedule": [["0s", "300kbps"], ["30s", "2Mbps"]]}  # type: ignore[dict-item]
    slow = {"name": "slow", "start": "10s", "media": {**CALL, "video": video}}
    one = calls("2Mbps", slow, call("other"))
    assert at_each(one, "slow", 5, 20, 60) == pytest.approx([0.0, 0.32, 1.0])
    assert at_each(one, "other", 5, 20, 60) == pytest.approx([1.52, 1.52, 1.0])
    voice = calls("2Mbps", {"name": "voice", "media": {"controller": "gcc", "video": False, "audio": {}}})
    assert at_each(voice, "voice", 50) == pytest.approx([0.0408]), "50 packets a second of 102 bytes"


def test_a_token_bucket_bounds_its_link() -> None:
    bucket = {"name": "policer", "rate": "1Mbps", "burst": "60kB"}
    link = {"name": "wire", "capacity": "5Mbps", "discipline": bucket}
    one = Scenario.from_dict({"duration": "20s", "links": [link], "flows": [call("call")]})
    assert at_each(one, "call", 10) == [1.0]


def test_where_a_link_says_no_one_number_there_is_no_share() -> None:
    assert sharing.of_scenario(Scenario.load("lte-one-call")) is None
    assert sharing.of_scenario(Scenario.load("group-t2")) is None
    assert sharing.of_scenario(Scenario.load("cell-with-outages")) is None, "it is drawn when it is run"


# Shares of runs


def test_a_run_has_the_shares_of_its_scenario() -> None:
    changes = {"duration": "30s", "links.bottleneck.capacity.schedule": [["0s", "1Mbps"], ["10.1s", "600kbps"]]}
    changes["flows.call.stop"] = "29s"
    one = Scenario.load("rfc8867-5.1-variable-capacity", changes)
    found, before = sharing.of_run(tidegate.run(one)), sharing.of_scenario(one)
    assert found is not None
    assert before is not None
    # the recording has means over bins, the scenario the instant
    assert found.bits("call", 0, 30) == pytest.approx(10.1 * M + 18.9 * 0.6 * M)
    assert found.bits("call", 0, 30) == pytest.approx(float(before.bits("call", 0, 30)))


def test_a_generated_link_has_the_share_that_it_carried_and_no_events() -> None:
    run = tidegate.run(Scenario.load("cell-with-outages", {"duration": "20s"}))
    found = sharing.of_run(run)
    assert found is not None
    truth = run.table("truth")
    down = truth.to_numpy("link") == run.scenario.links[0].name
    carried = np.minimum(truth.to_numpy("capacity_bps")[down], found.demands["call"].at(10.0)) * 0.2
    assert found.bits("call", 0, 20) == pytest.approx(carried.sum(), rel=0.01)
    assert found.restless
    numbers = measure(run, ["call"]).flows["call"]
    assert numbers["share_fraction"] is not None
    assert numbers["convergence_s_max"] is None


def test_pages_take_what_they_took_and_a_file_counts_until_it_has_arrived() -> None:
    pages = {"name": "pages", "tcp": {"workload": {"web": {"min": "40kB", "max": "40kB", "idle": "2s"}}}}
    file = {"name": "file", "start": "10s", "tcp": {"workload": {"file": "2MB"}}}
    run = tidegate.run(calls("4Mbps", call("call"), pages, file, duration="40s"))
    found = sharing.of_run(run)
    assert found is not None
    rate = run.metrics("pages")["receive_rate_bps"]
    assert found.at("pages", 5) == pytest.approx(rate)
    series = run.table("series")
    mine = series.to_numpy("flow") == "file"
    last = series.to_numpy("t_s")[mine][series.to_numpy("receive_rate_bps")[mine] > 0][-1] + 0.2
    assert 15 < last < 35, "else this shows nothing"
    assert found.at("file", last - 0.1) == pytest.approx(4 * M - rate - BOUND)
    assert found.at("file", last + 0.1) == 0.0


def test_a_pause_is_at_a_time_of_the_run() -> None:
    pausing = {"name": "call", "start": "10s", "media": {**CALL, "pauses": [["20s", "30s"]]}}
    run = tidegate.run(calls("2Mbps", pausing, duration="40s"))
    series = run.table("series")
    sent = dict(zip(series.to_numpy("t_s").round(1), series.to_numpy("sending_rate_bps"), strict=True))
    assert sent[19.6] > 0
    assert sent[22.0] == sent[28.0] == 0
    found = sharing.of_run(run)
    assert found is not None
    assert found.life("call") == [(10.0, 20.0), (30.0, 40.0)]


# Measures of a flow


def test_the_share_received_is_of_what_it_could_have_had_after_the_first_seconds() -> None:
    one = calls({"schedule": [["0s", "1Mbps"], ["50s", "2Mbps"]]}, call("call", start="10s"), duration="90s")

    def rate(time: float) -> float:
        return 0.0 if time < 15 else 0.5 * M if time < 50 else 1.0 * M

    found = measured(one, {"call": rate}).flows["call"]
    # 35 s of 1 Mbit/s and 40 s of what a call can fill, of which it had half a megabit and one
    assert found["share_fraction"] == pytest.approx((35 * 0.5 + 40 * 1.0) / (35 * 1.0 + 40 * 1.52))
    assert found["share_min_5s"] == pytest.approx(0.5)
    assert found["receive_rate_min_bps"] == pytest.approx(0.5 * M)


def test_the_best_five_seconds_are_any_five_seconds_after_the_first_ten() -> None:
    one = calls("2Mbps", call("call"))
    found = measured(one, {"call": lambda time: 1.5 * M if time < 9 or 40.4 < time < 43.4 else M}).flows["call"]
    assert found["receive_rate_max_bps"] == pytest.approx((3 * 1.5 + 2) / 5 * M)
    assert found["receive_rate_min_bps"] == pytest.approx(M)


def test_the_worst_five_seconds_are_any_five_seconds() -> None:
    one = calls("1Mbps", call("call"))
    found = measured(one, {"call": lambda time: 0.0 if 40.4 < time < 43.4 else M}).flows["call"]
    assert found["share_min_5s"] == pytest.approx(2 / 5)
    assert found["receive_rate_min_bps"] == pytest.approx(0.4 * M)
    assert found["receive_rate_bin_min_bps"] == 0.0
    assert found["receive_rate_bin_max_bps"] == pytest.approx(M)
    bins = 95 / 0.2
    assert found["receive_rate_bin_std_bps"] == pytest.approx(M * math.sqrt(15 / bins * (1 - 15 / bins)))
    early = measured(one, {"call": lambda time: 0.0 if time < 10 else M}).flows["call"]
    assert early["share_min_5s"] == pytest.approx(1.0), "what was before the tenth second does not count"
    late = measured(one, {"call": lambda time: 0.0 if time < 10.2 else M}).flows["call"]
    assert late["share_min_5s"] == pytest.approx(4.8 / 5), "what is after it does"
    end = measured(one, {"call": lambda time: 0.0 if time > 99 else M}).flows["call"]
    assert end["share_min_5s"] == pytest.approx(4 / 5), "the last window counts"


def test_who_pauses_is_not_asked_for_anything() -> None:
    one = calls("1Mbps", {"name": "call", "media": {**CALL, "pauses": [["40s", "60s"]]}})
    found = measured(one, {"call": lambda time: 0.0 if 40 < time < 60 else 0.9 * M}).flows["call"]
    assert found["share_min_5s"] == pytest.approx(0.9)
    assert found["share_fraction"] == pytest.approx(0.9)
    assert found["receive_rate_bin_min_bps"] == pytest.approx(0.9 * M)


def test_convergence_is_told_of_each_event() -> None:
    one = calls({"schedule": [["0s", "1Mbps"], ["40s", "500kbps"], ["70s", "1Mbps"]]}, call("call", start="10s"))

    def rate(time: float) -> float:
        if time < 40:
            return 0.1 * M if time < 14 else 0.9 * M
        if time < 70:
            return 0.9 * M if time < 42 else 0.5 * M
        return 0.5 * M

    found = measured(one, {"call": rate})
    told = [(event["at_s"], event["what"], event["seconds"]) for event in found.events]
    # a mean over one second is within a quarter of 1 Mbit/s when 0.19 s are not at 0.9; of 0.5 when 0.31 s are
    assert told == [
        (10.0, "it begins", pytest.approx(4.0)),
        (40.0, "wire carries 0.5 Mbit/s", pytest.approx(1.8)),
        (70.0, "wire carries 1 Mbit/s", None),
    ]
    assert found.flows["call"]["convergence_s_max"] == pytest.approx(30.0), "never, until the end"
    assert found.flows["call"]["convergence_s_mean"] == pytest.approx((4.0 + 1.8 + 30.0) / 3)


@pytest.mark.parametrize(("part", "seconds"), [(0.74, None), (0.76, 0.0), (1.24, 0.0), (1.26, None)])
def test_converged_is_within_a_quarter_of_the_share(part: float, seconds: float | None) -> None:
    found = measured(calls("1Mbps", call("call")), {"call": lambda time: part * M})
    assert [event["seconds"] for event in found.events] == [seconds]


@pytest.mark.parametrize(("held", "converged"), [(4.4, False), (4.6, True)])
def test_converged_is_for_five_seconds(held: float, converged: bool) -> None:
    one = calls("1Mbps", call("call"), duration="20s")
    # a second of which 0.2 s are missing is within a quarter: so it begins 0.2 s before, and ends as much after
    found = measured(one, {"call": lambda time: M if 5 < time < 5 + held else 0.0})
    assert [event["seconds"] for event in found.events] == [4.8 if converged else None]


def test_others_that_come_and_go_are_events_of_whoever_shares_a_link_with_them() -> None:
    other = {"name": "other", "from": "x", "to": "y", "media": CALL, "start": "50s"}
    links = [
        {"name": "wire", "capacity": "2Mbps"},
        {"name": "elsewhere", "from": "x", "to": "y", "capacity": "2Mbps"},
    ]
    tcp = {"name": "tcp", "start": "30s", "stop": "70s", "tcp": {}}
    back = {"name": "back", "from": "right", "to": "left", "start": "40s", "tcp": {}}
    flows = [call("call"), tcp, back, other]
    one = Scenario.from_dict({"duration": "100s", "links": links, "flows": flows})
    steady = dict.fromkeys(("call", "tcp", "back", "other"), lambda time: M)
    found = measured(one, steady)
    told = [(event["at_s"], event["what"]) for event in found.events if event["flow"] == "call"]
    assert told == [(0.0, "it begins"), (30.0, "tcp comes"), (70.0, "tcp goes")]


def test_oscillation_is_that_of_static_periods() -> None:
    one = calls({"schedule": [["0s", "1Mbps"], ["50s", "500kbps"]]}, call("call"))

    def rate(time: float) -> float:
        if time < 10 or 50 < time < 60:
            return 0.2 * M if int(time) % 2 else 1.5 * M  # it may do so until it has converged
        middle = M if time < 50 else 0.5 * M
        return middle * (1.5 if int(time) % 4 < 2 else 0.5)

    found = measured(one, {"call": rate}).flows["call"]
    assert found["steady_oscillation_hz"] == pytest.approx(0.25, abs=0.02), "up for 2 s, down for 2 s"
    assert found["oscillation_bps"] == pytest.approx((M + 0.5 * M) / 2)
    assert found["rate_std_fraction"] == pytest.approx(0.5)
    calm = measured(one, {"call": lambda time: M if time < 50 else 0.5 * M}).flows["call"]
    assert calm["steady_oscillation_hz"] == 0.0
    assert [calm["oscillation_bps"], calm["rate_std_fraction"]] == pytest.approx([0.0, 0.0], abs=1e-6)


# Measures of a run


def two(first: Rate, second: Rate, **more: Any) -> Measures:
    return measured(calls("2Mbps", call("a"), call("b"), **more), {"a": first, "b": second})


def test_fairness_is_the_least_ratio_once_rates_have_had_time_to_converge() -> None:
    found = two(lambda time: 0.1 * M if time < 10 else 1.5 * M, lambda time: 0.5 * M).run
    assert [found[f"fairness_min_{one}s"] for one in (1, 5, 20)] == pytest.approx([1 / 3] * 3)
    turned = two(lambda time: 0.5 * M, lambda time: 1.5 * M).run
    assert turned["fairness_min_20s"] == pytest.approx(1 / 3), "the smaller share"
    x = np.array([1.5, 0.5])
    assert found["jain_min_20s"] == pytest.approx(x.sum() ** 2 / (2 * (x**2).sum()))


def test_a_longer_window_forgives_what_evens_out() -> None:
    def swing(high: bool) -> Rate:
        return lambda time: (1.2 if (int(time) % 2 == 0) == high else 0.4) * M

    found = two(swing(high=True), swing(high=False)).run
    assert found["fairness_min_1s"] == pytest.approx(1 / 3)
    assert found["fairness_min_5s"] == pytest.approx((3 * 0.4 + 2 * 1.2) / (3 * 1.2 + 2 * 0.4))
    assert found["fairness_min_20s"] == pytest.approx(1.0)


def test_who_gets_nothing_is_not_treated_fairly() -> None:
    assert two(lambda time: M, lambda time: 0.0).run["fairness_min_5s"] == 0.0
    assert two(lambda time: 0.0, lambda time: 0.0).run["fairness_min_5s"] == 0.0
    assert two(lambda time: 0.0, lambda time: 0.0).run["jain_min_20s"] == 0.0


def test_priorities_are_taken_out_of_ratios() -> None:
    coupled = [{"flows": ["a", "b"], "priorities": [2, 1]}]
    found = measured(
        calls("1.5Mbps", call("a"), call("b"), couplings=coupled), {"a": lambda time: M, "b": lambda time: 0.5 * M}
    ).run
    assert found["fairness_min_5s"] == pytest.approx(1.0)


def test_ratios_are_of_flows_with_the_same_share_on_a_common_link() -> None:
    rates = {"a": lambda time: 1.0 * M, "b": lambda time: 0.5 * M}
    slow = {**CALL, "max_rate": "500kbps"}
    capped = calls("2Mbps", call("a"), {"name": "b", "media": slow})
    assert measured(capped, rates).run["fairness_min_5s"] is None
    apart = [{"name": "wire", "capacity": "1Mbps"}, {"name": "other", "from": "x", "to": "y", "capacity": "1Mbps"}]
    flows = [call("a"), call("b", **{"from": "x", "to": "y"})]
    elsewhere = Scenario.from_dict({"duration": "100s", "links": apart, "flows": flows})
    assert measured(elsewhere, rates).run["fairness_min_5s"] is None
    assert measured(elsewhere, rates).run["jain_min_20s"] == pytest.approx(1.5**2 / (2 * 1.25)), "of shares, wherever"


@pytest.mark.parametrize(("stop", "known"), [("39s", (1, 5)), ("41s", (1, 5, 20)), ("21s", (1,)), ("19s", ())])
def test_ratios_need_a_window_in_a_static_period(stop: str, known: tuple[int, ...]) -> None:
    late = call("b", start="10s", stop=stop)
    one = calls("2Mbps", call("a"), late, duration="45s")
    found = measured(one, {"a": lambda time: M, "b": lambda time: M}).run
    assert tuple(length for length in (1, 5, 20) if found[f"fairness_min_{length}s"] is not None) == known


def test_cross_traffic_is_compared_flow_by_flow() -> None:
    tcp = {"name": "tcp", "tcp": {}}
    one = calls("2Mbps", call("a"), call("b"), tcp)
    rates = {"a": lambda time: 0.4 * M, "b": lambda time: 0.2 * M, "tcp": lambda time: 1.2 * M}
    found = measured(one, rates).run
    assert found["cross_ratio_20s"] == pytest.approx(0.3 / 1.2)
    assert found["cross_rate_bps"] == pytest.approx(1.2 * M)
    assert found["delivered_fraction"] == pytest.approx(1.8 / 2)
    alone = two(lambda time: M, lambda time: M).run
    assert alone["cross_ratio_20s"] is None
    assert alone["cross_rate_bps"] is None


# What is kept


def test_series_are_means_over_seconds_and_small() -> None:
    one = calls({"schedule": [["0s", "1Mbps"], ["50.5s", "500kbps"]]}, call("call", start="1s"))
    found = measured(one, {"call": lambda time: 0.0 if time < 1 else 0.25 * M}).series
    assert found["t_s"] == list(range(100))
    assert found["flows"]["call"]["rate_bps"][:3] == [0, 250_000, 250_000]
    assert found["flows"]["call"]["share_bps"][:2] == [0, 1_000_000]
    assert found["flows"]["call"]["delay_ms"][5] == 50.0
    assert found["links"]["wire"]["capacity_bps"][49:52] == pytest.approx([1_000_000, 700_000, 500_000], abs=100_001)
    assert found["links"]["wire"]["capacity_bps"][51] == 500_000
    assert set(found["links"]) == {"wire"}, "the way back carries everything"


@pytest.mark.parametrize(
    "name",
    [
        "rfc8867-5.7-short-tcp",
        "hundred-calls",
        "lte-one-call",
        "group-t2",
        pytest.param("lte-cell", marks=pytest.mark.slow),
    ],
)
def test_any_run_can_be_measured_and_what_is_kept_is_small(name: str) -> None:
    run = tidegate.run(Scenario.load(name, {"duration": "12s"} if name == "hundred-calls" else {}))
    media = [str(one["flow"]) for one in run.summary["flows"] if one["kind"] == "media"]
    found = measure(run, media)
    kept = json.dumps([found.flows, found.run, found.events, found.series], allow_nan=False)
    assert len(kept) < (1_000_000 if name == "lte-cell" else 200_000)  # the radio network has 740 flows
    known = {one.name for one in CATALOGUE}
    assert {key for numbers in found.flows.values() for key in numbers} | set(found.run) <= known
    if media:
        assert {key for numbers in found.flows.values() for key in numbers} | set(found.run) == known


def test_each_measure_says_what_it_is() -> None:
    assert len({one.name for one in CATALOGUE}) == len(CATALOGUE)
    for one in CATALOGUE:
        assert one.definition.endswith((".", ")."))
        assert one.name not in tidegate.metrics.METRICS, "a number of the summary has this name"
        assert ("RFC" in one.definition) or one.name in {
            "jain_min_20s",
            "delivered_fraction",
            "power",
            "challenge_2021_score",
        }


def test_each_time_of_convergence_has_its_own_name_on_the_page() -> None:
    section = (ROOT / "docs" / "results.md").read_text().partition("\n## Convergence and oscillation")[2]
    table = [line.split("|")[1:3] for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    stated = {key: name.strip() for name, keys in table for key in re.findall("`(.*?)`", keys)}
    labels = {name: numbers.metric_of(name).label for name in numbers.names() if "convergence" in name}
    assert set(stated) == set(labels)
    assert len(set(stated.values())) == 3
    for key, name in stated.items():
        # of the suites' measure there are the longest and the mean
        assert labels[key].endswith(name), key
