"""The oracle: a sender that knows the network, and brings what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate
from tidegate import Scenario
from tidegate.control import Limits, registry
from tidegate.errors import ControllerError, InputError
from tidegate.suite import Plan, Suite
from tidegate.suite.cases import Case
from tidegate.suite.measures import Measures, measure
from tidegate.suite.oracle import Oracle, with_oracle

CASES = sorted(file.stem for file in Path(tidegate.__path__[0], "scenarios").glob("rfc8867-*.toml"))


def case(name: str, **changes: object) -> Case:
    made = Scenario.load(name, {key.replace("__", "."): value for key, value in changes.items()})
    return Case(name, "", "", made, tuple(flow.name for flow in made.flows if flow.media is not None))


def tried(one: Case) -> tuple[tidegate.Run, list[str], Measures]:
    run = tidegate.run(one.with_controller("oracle"))
    contenders = one.contending(run.flows)
    return run, contenders, measure(run, contenders)


def test_rfc_8867_is_there() -> None:
    assert len(CASES) > 8


@pytest.mark.parametrize("name", CASES)
def test_it_brings_nine_tenths_of_its_share_and_no_queue_of_its_own(name: str) -> None:
    run, contenders, found = tried(case(name))
    alone = not any(flow["kind"] == "tcp" for flow in run.summary["flows"])
    for flow in contenders:
        numbers, summary = found.flows[flow], run.metrics(flow)
        assert numbers["share_fraction"] == pytest.approx(0.9, abs=0.02)
        assert (numbers["share_min_5s"] or 0) > 0.8
        assert (numbers["convergence_s_max"] or 0) < 2
        assert summary["loss_fraction"] < (1e-9 if alone else 0.01)
        if alone:
            assert summary["queueing_delay_ms_p95"] < 20


def test_each_flow_and_each_direction_has_a_plan_of_its_own_and_its_name() -> None:
    one = case("rfc8867-5.4-competing-calls")
    made = with_oracle(one.scenario or Scenario.load(one.name), one.contenders)
    assert [(flow.name, int(flow.start) // 10**9) for flow in made.flows] == [
        ("call-1", 0),
        ("call-2", 20),
        ("call-3", 40),
    ]
    plans = [flow.media.controller.settings["shares"] for flow in made.flows if flow.media]  # type: ignore[union-attr]
    assert plans == [
        "1520000@0 1166667@40000000000",
        "1520000@20000000000 1166667@40000000000",
        "1166667@40000000000",
    ]
    both = case("rfc8867-5.3-congested-feedback")
    made = both.with_controller("oracle")
    assert [(flow.name, flow.from_, flow.to) for flow in made.flows] == [
        ("call", "left", "right"),
        ("call.back", "right", "left"),
    ]
    assert both.contending([flow.name for flow in made.flows]) == ["call", "call.back"]


def test_priorities_of_several_alike_go_with_them() -> None:
    table = Scenario.load("rfc8867-5.4-competing-calls").to_dict()
    table["couplings"] = [{"flows": ["call"], "priorities": [3]}]
    made = with_oracle(Scenario.from_dict(table), ["call"])
    assert made.couplings[0].flows == ["call-1", "call-2", "call-3"]
    assert made.couplings[0].priorities == [3, 3, 3]


def test_others_stay_as_they_are() -> None:
    one = case("rfc8867-5.6-long-tcp")
    table = (one.scenario or Scenario.load(one.name)).to_dict()
    table["flows"].append({"name": "other", "media": {"controller": "nada"}})
    made = with_oracle(Scenario.from_dict(table), ["call"])
    assert [flow.kind for flow in made.flows] == ["media", "tcp", "media"]
    assert made.flows[2].media is not None
    assert made.flows[2].media.controller == "nada"


def test_it_needs_to_know_what_comes() -> None:
    with pytest.raises(InputError, match="known before a run"):
        case("cell-with-outages").with_controller("oracle")
    with pytest.raises(InputError, match="known before a run"):
        case("lte-one-call").with_controller("oracle")


def test_it_is_no_scheme_of_the_registry() -> None:
    assert "oracle" not in registry.registry()


def test_it_keeps_within_the_limits_of_its_sources() -> None:
    plan = Oracle("1000000@0 100000@5")
    assert plan.on_limits(0, Limits(max_bps=500_000)).target_bps == 500_000
    decision = plan.on_alarm(5)
    assert (decision.target_bps, decision.alarm_ns) == (90_000, None)
    assert plan.on_limits(6, Limits(min_bps=150_000)).target_bps == 150_000


@pytest.mark.parametrize("wrong", ["", "fast", "1@0 2@0", "1@5 2@3", "1.5@0"])
def test_a_plan_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ControllerError, match="expected pairs"):
        Oracle(wrong)


def test_a_suite_takes_it_by_its_name(tmp_path: Path) -> None:
    text = """
[[cases]]
name = "two"
scenario = "rfc8867-5.2-two-flows"
set = { duration = "30s" }

[[cases]]
name = "drawn"
scenario = "cell-with-outages"

[[rules]]
name = "share"
says = "brings nine tenths of what it could"
metric = "share_fraction"
at_least = 0.85
at_most = 0.95
source = "the oracle"
"""
    found = Plan.of(Suite.parse(text, "mine.toml"), ["oracle", "fixed:30kbps"], seeds=1).run(tmp_path / "out")
    assert found.cell("two", "oracle").state == "pass"
    assert found.cell("two", "fixed:30kbps").state == "fail"
    assert "known before a run" in found.cell("drawn", "oracle").why
