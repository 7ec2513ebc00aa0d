"""Scenarios that ship: each is good and says where it comes from, and those of RFC 8867 are what it says."""

from __future__ import annotations

import json

import pytest

import tidegate
from tidegate import Scenario
from tidegate.scenario import shipped
from tidegate.scenario._lower import lower


@pytest.mark.parametrize("name", shipped.names())
def test_shipped_scenarios_are_good_and_say_where_they_come_from(name: str) -> None:
    scenario = Scenario.load(name)
    scenario.check()
    assert scenario.name == name
    assert len(scenario.description) > 40
    assert any(word in scenario.source for word in ("RFC", "Ours", "NSDI", "thesis"))


def test_there_are_more_than_a_dozen() -> None:
    assert len(shipped.names()) >= 12
    assert tidegate.Scenario.load("home-broadband").name in shipped.names()


# RFC 8867: duration, capacity of the bottleneck over time (Mbit/s), flows as (start, stop), in seconds
RFC8867 = {
    "5.1-variable-capacity": (100, [(0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)], [(0, 99)]),
    "5.2-two-flows": (125, [(0, 4.0), (25, 2.0), (50, 3.5), (75, 1.0), (100, 2.0)], [(0, None)] * 2),
    "5.3-congested-feedback": (100, [(0, 2.0), (20, 1.0), (40, 0.5), (60, 2.0)], [(0, 99)] * 2),
    "5.4-competing-calls": (120, [(0, 3.5)], [(0, 119), (20, 119), (40, 119)]),
    "5.5-rtt-fairness": (300, [(0, 4.0)], [(start, 299) for start in (0, 10, 20, 30, 40)]),
    "5.6-long-tcp": (120, [(0, 2.0)], [(5, 119)]),
    "5.7-short-tcp": (300, [(0, 2.0)], [(5, 299)] * 2),
    "5.8-pause-resume": (120, [(0, 3.5)], [(0, 119)] * 3),
}


@pytest.mark.parametrize("case", RFC8867)
def test_the_cases_of_rfc_8867_are_what_it_says(case: str) -> None:
    ir = lower(Scenario.load(f"rfc8867-{case}")).ir
    duration, capacity, calls = RFC8867[case]
    second = 10**9
    assert ir["duration"] == duration * second
    (link,) = (link for link in ir["links"] if link["name"] == "bottleneck")
    constant = link["capacity"].get("constant")
    steps = link["capacity"]["schedule"]["steps"] if constant is None else [[0, constant]]
    assert steps == [[at * second, round(rate * 1e6)] for at, rate in capacity]
    assert link["settings"]["queue"]["time"] == 300_000_000
    assert link["settings"]["loss"] == "none"
    media = [flow for flow in ir["flows"] if "media" in flow["kind"]]
    stops = [None if flow["stop"] is None else flow["stop"] / second for flow in media]
    assert list(zip((flow["start"] / second for flow in media), stops, strict=True)) == calls
    for flow in media:
        spec = flow["kind"]["media"]
        assert (spec["video"]["min"], spec["video"]["max"], spec["start_rate"]) == (150_000, 1_500_000, 150_000)
        assert spec["audio"] == {"rate": 20_000, "interval": 20_000_000}
    ways = [sum(one["settings"]["delay"] for one in ir["links"] if one["from"] in (flow["from"], "router") or one is link)
            for flow in media[:1]]  # fmt: skip
    if case.startswith("5.5"):
        own = {one["from"]: one["settings"]["delay"] / 1e6 for one in ir["links"] if one["from"].startswith("sender")}
        assert list(own.values()) == [10, 25, 50, 100, 150]
    else:
        assert link["settings"]["delay"] == 50_000_000, ways


def test_the_rest_of_5_3_5_6_5_7_and_5_8() -> None:
    feedback = lower(Scenario.load("rfc8867-5.3-congested-feedback")).ir
    back = next(link for link in feedback["links"] if link["name"] == "bottleneck.back")
    assert back["capacity"]["schedule"]["steps"] == [[0, 2_000_000], [35 * 10**9, 800_000], [70 * 10**9, 2_000_000]]
    assert [flow["kind"]["media"]["pair"] for flow in feedback["flows"]] == ["call.back", "call"]
    tcp = [flow for flow in lower(Scenario.load("rfc8867-5.6-long-tcp")).ir["flows"] if "tcp" in flow["kind"]]
    assert [(flow["start"], flow["stop"], flow["kind"]["tcp"]["workload"]) for flow in tcp] == [
        (0, 119 * 10**9, "long")
    ]
    web = [flow for flow in lower(Scenario.load("rfc8867-5.7-short-tcp")).ir["flows"] if "tcp" in flow["kind"]]
    assert (len(web), sum(flow["start"] == 0 for flow in web)) == (10, 2)
    starts = [flow["start"] / 1e9 for flow in web if flow["start"]]
    assert sum(starts) / len(starts) == 10.0
    sizes = {json.dumps(flow["kind"]["tcp"]["workload"]) for flow in web}
    assert sizes == {json.dumps({"web": {"min": 30_000, "max": 50_000, "idle": 10**10}})}
    pausing = lower(Scenario.load("rfc8867-5.8-pause-resume")).ir["flows"][1]
    assert pausing["kind"]["media"]["pauses"] == [[40 * 10**9, 60 * 10**9]]
