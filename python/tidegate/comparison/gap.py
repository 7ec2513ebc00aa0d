"""A call over a socket beside its simulation: the same scenario, seed and settings, in two habitats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.errors import InputError
from tidegate.results.metrics import metric
from tidegate.runs import Run, run
from tidegate.scenario import Scenario, subject
from tidegate.show import view

TARGET = "median target"
"""The name of what no metric is: the median over time of what the controller let the encoder have."""

WITHIN = 0.10
"""How far the medians of the target may be apart, as a part of the simulated one."""

LOSS_WITHIN = 0.01
"""How far the losses may be apart."""

_SHOWN = (
    "sending_rate_bps", "receive_rate_bps", "loss_fraction", "one_way_delay_ms_p50", "one_way_delay_ms_p95",
    "queueing_delay_ms_p95", "frame_delay_ms_p95", "frames_sent", "frames_rendered", "freezes", "feedback_rate_bps",
)  # fmt: skip
_STEP = 0.01  # seconds between two looks at the target


@dataclass(frozen=True)
class Line:
    """One number, in both habitats."""

    name: str
    live: float | None
    simulated: float | None
    limit: str = ""
    """What is asked for, where it is judged."""
    within: bool | None = None
    """Whether that holds."""

    def show(self, value: float | None) -> str:
        """A value as tables show it."""
        return metric("receive_rate_bps" if self.name == TARGET else self.name).show(value)

    @property
    def label(self) -> str:
        """What tables call it."""
        if self.name == TARGET:
            return f"{TARGET} (Mbit/s)"
        known = metric(self.name)
        return f"{known.label} ({known.unit})" if known.unit else known.label


@dataclass(frozen=True)
class Gap:
    """A call and its simulation."""

    live: Run
    simulated: Run
    lines: Sequence[Line]

    @property
    def within(self) -> bool:
        """Whether all that is judged is within its limits."""
        return all(line.within for line in self.lines if line.within is not None)

    def to_data(self) -> dict[str, Any]:
        """For programs."""
        keys = ("name", "live", "simulated", "limit", "within")
        lines = [{key: getattr(line, key) for key in keys} for line in self.lines]
        return {"within": self.within, "lines": lines, "live": self.live.about["live"], "digest": self.simulated.digest}


def gap(live: Run, scenario: Scenario | None = None) -> Gap:
    """Simulates what a call over a socket was, and holds the two against each other.

    Args:
        live: What `tidegate live` wrote.
        scenario: What is simulated instead of the call's own scenario; see
            [with_media_of][tidegate.comparison.gap.with_media_of].

    Raises:
        InputError: when the run is none over a socket, or the scenario does not fit.
        RunError: when the simulation fails.
    """
    told = live.about.get("live")
    if not isinstance(told, dict) or "lasted_s" not in told:
        raise InputError(
            f"{live.name}: is no call over a socket; expected what `tidegate live send` or `receive` wrote"
        )
    made = live.scenario if scenario is None else scenario
    lasted = float(told["lasted_s"])
    if lasted < float(made.duration) / 1e9:
        # a call that ended early is compared as far as it went
        made = made.with_changes({"duration": f"{max(lasted, 1e-3):.3f}s", "warmup": "0s"})
    simulated = run(made, seed=live.seed)
    return Gap(live, simulated, _lines(live, simulated))


def with_media_of(live: Run, scenario: Scenario) -> Scenario:
    """A scenario whose subject has the media of a call, headers and all, and its duration.

    Raises:
        InputError: when one of the two has no media.
    """
    own = live.scenario
    mine = [flow for flow in own.to_dict()["flows"] if flow.get("name") == live.subject]
    data = scenario.to_dict()
    if not mine:
        raise InputError(f"{live.name}: says nothing of the flow {live.subject}")
    data["flows"][subject.of_scenario(scenario, "media")]["media"] = mine[0]["media"]
    data["duration"] = str(own.duration)
    return Scenario.from_dict(data, scenario.base)


def median_target(run: Run) -> float | None:
    """The median over time of the target of a run's subject in bit/s, from its first decision to its end."""
    times, targets = view.curve(run, "decisions", "flow", run.subject, "target_bps")
    if not len(times):
        return None
    at = np.arange(times[0], float(run.summary["duration_s"]), _STEP)
    return float(np.median(view.step_at(times, targets, at))) if len(at) else None


def _lines(live: Run, simulated: Run) -> list[Line]:
    measured, expected = live.metrics(), simulated.metrics()
    here, there = median_target(live), median_target(simulated)
    near = None if here is None or there is None else abs(here - there) <= WITHIN * there
    lines = [Line(TARGET, here, there, f"within {WITHIN:.0%}", near)]
    for name in _SHOWN:
        one, other = measured.get(name), expected.get(name)
        if name == "loss_fraction":
            close = None if one is None or other is None else abs(one - other) <= LOSS_WITHIN
            lines.append(Line(name, one, other, "within 1 point", close))
        elif (one, other) != (None, None):
            lines.append(Line(name, one, other))
    return lines
