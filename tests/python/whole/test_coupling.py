"""Coupled congestion control (RFC 8699): who gets what of a bottleneck that the flows of one sender share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from coupling import CAPACITY, CONTROLLERS, FLOWS, rates, scenario, steady
from gcc_experiments import RecordedFlow
from support import ROOT
from tidegate import Scenario, ScenarioError, TidegateError
from tidegate.control.registry import choose, registry


@pytest.mark.parametrize("algorithm", ["active", "conservative"])
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_rates_go_by_priority(controller: str, algorithm: str) -> None:
    """2 : 1 : 1 within 10 %, on a link that is used; without coupling nothing of the kind."""
    camera, slides, second = steady(controller, algorithm)
    assert camera / slides == pytest.approx(2, rel=0.1)
    assert camera / second == pytest.approx(2, rel=0.1)
    alone = steady(controller, "no")
    assert not 1.8 < alone[0] / alone[1] < 2.2
    assert 0.85 * sum(alone) < camera + slides + second < CAPACITY


def test_a_flow_limited_by_what_it_wants_leaves_the_rest_to_the_others() -> None:
    """The camera wants 500 kbit/s of the 2 Mbit/s that are its own by priority."""
    changes = {"flows__camera__media__video__max": "500kbps"}
    run = tidegate.run(scenario({"priorities": [2, 2, 1]}, **changes))
    camera, slides, second = rates(run, 20, 120)
    # the encoder's 500 kbit/s and headers
    assert 0.48e6 < camera < 0.56e6
    assert slides / second == pytest.approx(2, rel=0.1)
    assert camera + slides + second > 0.8 * CAPACITY


def test_who_leaves_leaves_its_share_at_once() -> None:
    """From 60 s on there are two, and the link is as full after three seconds as it was; alone, they have to probe."""

    def used(coupling: dict[str, Any] | None) -> tuple[float, list[float]]:
        run = tidegate.run(scenario(coupling, flows__camera__stop="60s"))
        return sum(rates(run, 61, 63)) / sum(rates(run, 50, 60)), rates(run, 70, 120)

    share, after = used({"priorities": [2, 1, 1]})
    assert share > 0.9
    assert after[0] == 0
    assert after[1] / after[2] == pytest.approx(1, rel=0.1)
    assert used(None)[0] < share - 0.1


def test_who_pauses_comes_back_to_its_share_without_a_burst() -> None:
    """A flow that pauses for 20 s is not counted meanwhile, and begins anew: the sum grows by a start rate only."""
    run = tidegate.run(scenario({"priorities": [2, 1, 1]}, flows__camera__media__pauses=[["40s", "60s"]]))
    before, during, after = rates(run, 30, 40), rates(run, 43, 60), rates(run, 65, 120)
    assert before[0] / before[1] == pytest.approx(2, rel=0.15)
    assert during[0] < 0.02e6
    assert during[1] / during[2] == pytest.approx(1, rel=0.1)
    assert during[1] + during[2] > 0.75 * CAPACITY
    assert after[0] / after[1] == pytest.approx(2, rel=0.1)
    # 300 kbit/s more than the link has, for as long as it takes to notice: not the 2 Mbit/s that it had
    assert RecordedFlow(run, "slides").queueing(60, 65)[1] < 150


def test_the_conservative_sum_waits_for_two_round_trips_after_it_has_fallen() -> None:
    """RFC 8699 section 5.3.2; a round trip is 50 ms at least. The active one goes on at once."""

    def soonest(algorithm: str) -> float:
        """The least time from a fall of the camera's rate to its next change, s."""
        table = tidegate.run(scenario({"algorithm": algorithm})).table("decisions")
        mine = table.to_numpy("flow") == "camera"
        t, rate = (table.to_numpy(name)[mine][table.to_numpy("t_s")[mine] > 20] for name in ("t_s", "target_bps"))
        # what the controller calculates is replaced at the same instant
        last = np.append(np.diff(t) > 0, True)
        t, rate = t[last], rate[last]
        changed = np.flatnonzero(np.diff(rate)) + 1
        falls = [at for at, before in zip(changed, changed - 1, strict=True) if rate[at] < 0.97 * rate[before]]
        assert len(falls) >= 3
        gaps = [t[changed[changed > at][0]] - t[at] for at in falls if (changed > at).any()]
        return float(min(gaps))

    assert soonest("conservative") >= 0.1
    assert soonest("active") < 0.05


def test_a_coupled_call_both_ways_and_in_bytes_is_the_same() -> None:
    """Each of two coupled calls has a way back of its own; packets through their bytes change nothing."""
    changes = {f"flows__{name}__media__both_ways": True for name in FLOWS}
    made = scenario({"priorities": [4, 2, 1]}, **changes, duration="20s")
    run = tidegate.run(made)
    assert run.digest == tidegate.run(made).digest
    camera, slides, _ = rates(run, 10, 20)
    assert camera / slides == pytest.approx(2, rel=0.1)
    back = [RecordedFlow(run, f"{name}.back").mean_rate(10, 20) for name in FLOWS]
    assert min(back) > 0.2e6, "and these share as they did"


class Steady(tidegate.Controller):
    """Sends what it is told, and never changes its mind."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.rate = 0.0

    def on_limits(self, now_ns: int, limits: tidegate.Limits) -> float:
        """Begins."""
        del now_ns
        self.rate = limits.start_bps
        return self.rate

    def on_report(self, now_ns: int, report: tidegate.Report) -> None:
        """Does not listen."""

    def coupled_rate(self) -> float:
        """What it sends."""
        return self.rate

    def on_coupled(self, now_ns: int, rate_bps: int) -> float:
        """What it sends from now on."""
        del now_ns
        self.rate = rate_bps
        return rate_bps


def test_controllers_in_python_can_be_coupled() -> None:
    """Three of 300 kbit/s: the sum of 900 is shared 2 : 1 : 1 and stays."""
    data = scenario({"priorities": [2, 1, 1]}, duration="10s").to_dict()
    for flow in data["flows"]:
        flow["media"]["controller"] = Steady
    table = tidegate.run(Scenario.from_dict(data)).table("decisions")
    last = dict(zip(table.to_numpy("flow"), table.to_numpy("target_bps"), strict=True))
    assert [last[name] for name in FLOWS] == [450_000, 225_000, 225_000]


@pytest.mark.parametrize(
    ("controller", "parts"),
    [
        ("gcc:libwebrtc-v1", "preset=libwebrtc-v1"),
        ("nada", ""),
        ("scream", ""),
    ],
)
def test_a_coupled_controller_through_python_is_itself(controller: str, parts: str) -> None:
    """Rates that it tells and takes go to Python and back."""
    chosen = choose(controller, Path())
    (feedback, ecn), interval = chosen.session("auto", "auto"), chosen.needs.interval
    needs = {"format": feedback, "interval": "frame" if interval == "frame" else "auto"}
    through = f"python:twins:make:name={controller.partition(':')[0]}" + (f",{parts}" if parts else "")
    digests = set()
    for one in (controller, through):
        media = {"controller": one, "ecn": ecn, "feedback": needs}
        changes = {f"flows__{name}__media__{key}": value for name in FLOWS for key, value in media.items()}
        run = tidegate.run(scenario({"priorities": [2, 1, 1]}, **changes, duration="4s"))
        coupled = run.table("internals").to_numpy("name").tolist().count("coupled_rate")
        assert coupled > 10, "rates are exchanged"
        digests.add(run.digest)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("coupling", "said"),
    [
        ({"flows": ["camera", "slids"]}, 'couplings[1].flows[2]: found "slids"; expected the name of a media flow'),
        (
            {"flows": ["camera", "camera"]},
            'couplings[1].flows[2]: "camera" is coupled already; a flow can be in one coupling only',
        ),
        ({"flows": []}, "couplings[1].flows: "),
        ({"priorities": [1, 2]}, "couplings[1].priorities: found 2 priorities for 3 flows"),
        ({"priorities": [1, 0, 2]}, "couplings[1].priorities[2]: "),
        ({"priorities": [1, float("nan"), 2]}, "couplings[1].priorities[2]: "),
        ({"algorithm": "passive"}, "couplings[1].algorithm: "),
    ],
)
def test_couplings_that_make_no_sense(coupling: dict[str, Any], said: str) -> None:
    """Each is told by its place, with what would be right."""
    with pytest.raises(ScenarioError) as caught:
        scenario(coupling)
    assert said in str(caught.value)


def test_flows_of_two_senders_and_flows_without_media_are_refused() -> None:
    """Coupling is for what one sender sends under a controller."""
    data = scenario({}).to_dict()
    data["flows"][1].update({"from": "right", "to": "left"})
    with pytest.raises(ScenarioError, match=r'"slides" is sent from "right".*; expected flows of one sender'):
        Scenario.from_dict(data)
    data = scenario({}).to_dict()
    data["flows"][1] = {"name": "slides", "tcp": {}}
    with pytest.raises(ScenarioError, match="expected the name of a media flow"):
        Scenario.from_dict(data)


PAGE = ROOT / "docs/coupled.md"
ALONE = ("gcc-remb", "tfrc", "tfrc-sp", "sprout", "sprout-ewma", "lookup_table", "rrb-simd", "fixed")


@pytest.mark.parametrize("controller", ALONE)
def test_a_controller_that_takes_no_rate_is_refused(controller: str) -> None:
    """The error names the flow, the key, and what would do."""
    with pytest.raises(TidegateError, match=r"flows\.slides\.media\.controller: .*that can be coupled"):
        tidegate.run(scenario({}, flows__slides__media__controller=controller))


def test_the_page_names_those_that_cannot_be_coupled() -> None:
    """All of the registry that the page does not say how to couple."""
    assert f"The other schemes ({', '.join(f'`{name}`' for name in ALONE)}) cannot be coupled" in PAGE.read_text()
    assert {*ALONE, "gcc", "nada", "scream", "scream-v1"} == {*registry()}


def test_a_comparison_keeps_those_that_can_be_coupled() -> None:
    """One that cannot is a column that says why."""
    done = tidegate.compare(["gcc", "sprout"], scenario({}, duration="5s"), record="summary")
    assert list(done.runs) == ["gcc"]
    assert list(done.failed) == ["sprout"]
    assert "found sprout; expected a controller that can be coupled" in done.failed["sprout"]


@pytest.mark.parametrize(
    ("controller", "window"),
    [("scream-v1", "cwnd_bytes"), ("scream", "ref_wnd_bytes"), ("scream:ericsson-2026-07", "ref_wnd_bytes")],
)
def test_a_window_does_not_grow_without_bounds(controller: str, window: str) -> None:
    """Where the window is not what limits the rate, coupling took target and window up again whenever the controller took
    the target down: scream-v1 had 88 MB, ericsson-2026-07 had 374 MB. Queue and link hold 0.35 MB."""
    down = {"schedule": [["0s", "5Mbps"], ["20s", "0bps"], ["30s", "5Mbps"]]}
    changes: dict[str, Any] = {f"flows__{name}__media__controller": controller for name in FLOWS}
    changes |= {f"flows__{name}__media__min_rate": "1bps" for name in FLOWS}
    changes |= {"links__uplink__capacity": down, "links__uplink__queue": {"time": "300ms"}}
    table = tidegate.run(scenario({"priorities": [1000, 1, 0.001]}, **changes, duration="60s")).table("internals")
    windows = table.to_numpy("value")[table.to_numpy("name") == window]
    assert 10_000 < windows.max() < 2_000_000
