"""Runs in which time does not pass, or hardly: refused, or stopped soon."""

from __future__ import annotations

import time
from typing import Any

import pytest

import tidegate
from tidegate import Scenario, ScenarioError
from tidegate.scenario import _checks as checks

LINK: dict[str, Any] = {"name": "link"}


def scenario(flow: dict[str, Any], **link: Any) -> Scenario:
    return Scenario.from_dict({"duration": "2s", "links": [{**LINK, **link}], "flows": [{"name": "flow", **flow}]})


@pytest.mark.parametrize(
    ("media", "said"),
    [
        ({"repair": {"pli": {"interval": "3ns"}}}, r'repair.pli.interval: found "3ns"; expected at least 1ms'),
        ({"feedback": {"interval": "3ns"}}, r'feedback.interval: found "3ns"; expected at least 1ms'),
        ({"feedback": {"reports": "999us"}}, r'feedback.reports: found "999us"; expected at least 1ms'),
        ({"audio": {"interval": "3ns"}}, r'audio.interval: found "3ns"; expected at least 1ms'),
    ],
)
def test_no_timer_is_shorter_than_a_millisecond(media: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario({"media": media})


def test_a_tcp_in_a_loop_without_time_is_refused_when_it_is_read() -> None:
    with pytest.raises(ScenarioError, match=r"flows.flow.tcp: the round trip takes no time; give a link"):
        scenario({"tcp": {}})
    # any way there or back that takes time will do
    for link in ({"delay": "1ms"}, {"capacity": "1Gbps"}, {"back": {"delay": "1ms"}}, {"jitter": {"uniform": "1ms"}}):
        assert scenario({"tcp": {}}, **link).flows[0].tcp is not None
    # and it is the way that is taken which counts: the one with the fewest hops
    links = [
        {"name": "one", "from": "left", "to": "middle", "delay": "1ms"},
        {"name": "two", "from": "middle", "to": "right", "delay": "1ms"},
        {"name": "short", "from": "left", "to": "right"},
    ]
    with pytest.raises(ScenarioError, match="takes no time"):
        Scenario.from_dict({"duration": "2s", "links": links, "flows": [{"tcp": {}}]})
    # others keep a rate, and need no time of the network
    assert tidegate.run(scenario({"media": {"controller": "gcc"}})).summary["flows"][0]["packets_sent"] > 50


@pytest.mark.parametrize("record", ["summary", "packets"])
def test_packets_that_answer_packets_at_one_instant_are_stopped_within_a_second(
    monkeypatch: pytest.MonkeyPatch, record: Any
) -> None:
    """The engine's own guard: what a scenario's checks do not know of, a model in SimPy for one, can be such a loop."""
    monkeypatch.setattr(checks, "timeless", lambda _: iter(()))
    began = time.perf_counter()
    with pytest.raises(tidegate.RunError, match="packets at one simulated time"):
        tidegate.run(scenario({"tcp": {}}), record=record)
    assert time.perf_counter() - began < 1


def test_a_round_trip_of_a_nanosecond_does_not_last_for_ever() -> None:
    """TFRC's timers follow the round trip, and under AVP reports wait meanwhile: a million events a second before."""
    media = {"controller": "tfrc-sp", "video": {"source": "greedy"}, "feedback": {"profile": "avp"}}
    began = time.perf_counter()
    done = tidegate.run(scenario({"media": media}, jitter={"uniform": "24ns"}))
    assert done.summary["flows"][0]["packets_sent"] > 50
    assert time.perf_counter() - began < 2
