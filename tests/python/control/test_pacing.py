"""Pacing of answers that leave it to the call, and of those that say it themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate import Decision, Limits, Needs, Report, Run, Scenario, run
from tidegate.control import agent
from tidegate.control.learned._receiving import PACE_FACTOR, Follower

BURST_NS = 40_000_000
"""libwebrtc's `PacingController::kDefaultBurstInterval`."""

CALL = """\
duration = "12s"
[[links]]
name = "cable"
capacity = { schedule = [["0s", "2Mbps"], ["5s", "600kbps"], ["8s", "1500kbps"]] }
delay = "20ms"
queue = { time = "200ms" }
[[flows]]
name = "call"
media = { controller = "gcc" }
"""


def call(controller: Any, **media: Any) -> Run:
    scenario = Scenario.parse(CALL).to_dict()
    scenario["flows"][0]["media"] |= {"controller": controller, **media}
    return run(Scenario.from_dict(scenario))


class Aimd(tidegate.Controller):
    """Up where nothing is lost, else down; the answer is a rate."""

    has_feedback = False

    def on_limits(self, now_ns: int, limits: Limits) -> Any:
        del now_ns
        self.limits, self.rate = limits, getattr(self, "rate", limits.start_bps)
        return self.answer()

    def on_report(self, now_ns: int, report: Report) -> Any:
        del now_ns
        self.has_feedback |= len(report.packets) > 0
        lost = any(packet.arrival_ns is None for packet in report.packets)
        rate = int(self.rate * (0.85 if lost else 1.02))
        self.rate = min(max(rate, self.limits.min_bps), self.limits.max_bps)
        return self.answer()

    def answer(self) -> Any:
        return self.rate


class WithoutPacing(Aimd):
    def answer(self) -> Decision:
        return Decision(self.rate)


class Camera(Aimd):
    """Says what a call with a camera does."""

    factor = 1.1

    def answer(self) -> Decision:
        pacing = int(self.rate * (self.factor if self.has_feedback else 2.5) + 0.5)
        # of whole bytes a second
        pacing = (pacing + 4) // 8 * 8
        return Decision(self.rate, pacing_bps=pacing, burst_ns=BURST_NS, drain_queue=True)


class Screen(Camera):
    factor = 1.0


class AtTarget(Aimd):
    def answer(self) -> Decision:
        return Decision(self.rate, pacing_bps=self.rate)


@pytest.mark.parametrize("plain", [Aimd, WithoutPacing])
def test_an_answer_without_pacing_is_paced_as_a_call_is(plain: type[Aimd]) -> None:
    done = call(plain)
    assert len(done.table("decisions")) > 50
    assert done.digest == call(Camera).digest != call(AtTarget).digest


def test_a_screen_is_paced_as_a_screen_is() -> None:
    done = call(Aimd, content="screen")
    assert done.digest == call(Screen, content="screen").digest != call(Camera, content="screen").digest


def ratios(done: Run) -> np.ndarray[Any, Any]:
    decisions = done.table("decisions")
    factors: np.ndarray[Any, Any] = decisions.to_numpy("pacing_bps") / decisions.to_numpy("target_bps")
    return factors


def test_pacing_is_that_of_gcc_once_packets_are_reported() -> None:
    factors, of_gcc = ratios(call(Aimd)), ratios(call("gcc"))
    assert factors[0] == 2.5
    assert np.allclose(factors[factors < 2], of_gcc.mean(), rtol=1e-4)
    assert (factors[1:] < 2).all(), "every report has packets here"


class Constant(tidegate.Controller):
    """Answers once, and then as before."""

    def on_limits(self, now_ns: int, limits: Limits) -> Any:
        del now_ns, limits
        return 500_000

    def on_report(self, now_ns: int, report: Report) -> None:
        del now_ns, report


class Silent(Constant):
    def on_limits(self, now_ns: int, limits: Limits) -> None:
        del now_ns, limits


class Own(Constant):
    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        del now_ns, limits
        return Decision(500_000, pacing_bps=700_000)


class OnReports(Constant):
    needs = Needs("receiver-reports")


@pytest.mark.parametrize(
    ("controller", "factors"),
    [
        (Constant, [2.5, 1.1]),
        (Silent, [2.5, 1.1]),
        (Own, [1.4]),
        # as libwebrtc's with an estimate from the receiver
        (OnReports, [2.5]),
    ],
)
def test_as_before_is_as_the_call_paces_now(controller: type[Constant], factors: list[float]) -> None:
    assert ratios(call(controller)).tolist() == pytest.approx(factors, rel=1e-4)


@pytest.mark.parametrize("keys", [{"window": 30_000}, {"min_gap_ns": 2_000_000}, {"burst_ns": 10_000_000}])
def test_who_sets_window_gap_or_burst_is_paced_at_the_target(keys: dict[str, Any]) -> None:
    class Partly(Aimd):
        def answer(self) -> Decision:
            return Decision(self.rate, **keys)

    class Wholly(Aimd):
        def answer(self) -> Decision:
            return Decision(self.rate, pacing_bps=self.rate, drain_queue=False, **keys)

    assert Decision(500_000, **keys).pacing_bps == 500_000
    assert call(Partly).digest == call(Wholly).digest


def test_other_fields_stay_what_they_are() -> None:
    class Padded(Aimd):
        def answer(self) -> Decision:
            return Decision(self.rate, padding_bps=400_000, pace_audio=True)

    class PaddedCamera(Camera):
        def answer(self) -> Decision:
            camera = super().answer()
            return Decision(
                self.rate,
                pacing_bps=camera.pacing_bps,
                burst_ns=BURST_NS,
                drain_queue=True,
                padding_bps=400_000,
                pace_audio=True,
            )

    audio = {"rate": "32kbps"}
    assert call(Padded, audio=audio).digest == call(PaddedCamera, audio=audio).digest != call(Aimd, audio=audio).digest


def test_a_decision_says_that_it_leaves_its_pacing_to_the_call() -> None:
    assert Decision(500_000).pacing_bps is None
    assert "pacing_bps=None" in repr(Decision(500_000))
    assert Decision(500_000) == Decision(500_000, pacing_bps=None) != Decision(500_000, pacing_bps=500_000)


# --- those that say their pacing -------------------------------------------------------------------


class FixedInPython(Constant):
    needs = Needs("none")

    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        del now_ns, limits
        return Decision(500_000, pacing_bps=500_000, drain_queue=False, burst_ns=None)


def test_fixed_is_paced_at_its_rate() -> None:
    done = call("fixed:500kbps")
    assert ratios(done).tolist() == [1.0]
    assert done.digest == call(FixedInPython).digest


def test_a_policy_of_the_gym_is_paced_at_its_rate(tmp_path: Path) -> None:
    text = (
        "from tidegate.control.agent import Terms, controller\n"
        "def policy():\n    return controller(lambda seen: float(seen[-1, 2]) / 2, Terms())\n"
    )
    (tmp_path / "policy.py").write_text(text)
    factors = ratios(call(f"python:{tmp_path}/policy.py:policy"))
    assert len(factors) > 1
    assert (factors == 1).all()
    assert agent.Terms().core is not None


def test_what_an_estimator_at_the_receiver_says_is_paced_by_its_own_factor(tmp_path: Path) -> None:
    text = (
        "class Estimator:\n"
        "    def __init__(self):\n        self.asked = 0\n"
        "    def report_states(self, stats):\n        pass\n"
        "    def get_estimated_bandwidth(self):\n"
        "        self.asked += 1\n        return 300_000 + 10_000 * (self.asked % 7)\n"
    )
    (tmp_path / "estimator.py").write_text(text)
    decisions = call(f"alphartc:{tmp_path}/estimator.py").table("decisions")
    pacing, target = decisions.to_numpy("pacing_bps"), decisions.to_numpy("target_bps")
    assert len(target) > 20
    assert pacing.tolist() == [int(PACE_FACTOR * rate) for rate in target]
    # the sending half of ONNX models is the same
    assert json.dumps(Follower().on_limits(0, Limits()).pacing_bps) == "750000"
