"""A call over a socket beside its simulation, with the same scenario, seed and settings."""

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
"""The name of a number that is no metric: the median over time of the controller's target for the encoder."""

WITHIN = 0.10
"""The largest difference of the median targets, as a fraction of the simulated one."""

LOSS_WITHIN = 0.01
"""The largest difference of the losses, as a fraction of packets."""

_METRICS = (
    "sending_rate_bps", "receive_rate_bps", "loss_fraction", "one_way_delay_ms_p50", "one_way_delay_ms_p95",
    "queueing_delay_ms_p95", "frame_delay_ms_p95", "frames_sent", "frames_rendered", "freezes", "feedback_rate_bps",
)  # fmt: skip
_STEP = 0.01  # seconds between two samples of the target


@dataclass(frozen=True)
class Line:
    """One number of the call and of its simulation."""

    name: str
    live: float | None
    simulated: float | None
    limit: str = ""
    """The limit of the difference in words; empty where there is none."""
    within: bool | None = None
    """Whether the difference is within the limit; None where there is no limit or a number is missing."""

    def show(self, value: float | None) -> str:
        """Formats a value for tables."""
        return metric("receive_rate_bps" if self.name == TARGET else self.name).show(value)

    @property
    def label(self) -> str:
        """The label with the unit, for tables."""
        if self.name == TARGET:
            return f"{TARGET} (Mbit/s)"
        quantity = metric(self.name)
        return f"{quantity.label} ({quantity.unit})" if quantity.unit else quantity.label


@dataclass(frozen=True)
class Gap:
    """A call, its simulation, and the numbers of both."""

    live: Run
    simulated: Run
    lines: Sequence[Line]

    @property
    def within(self) -> bool:
        """Whether all differences with a limit are within it."""
        return all(line.within for line in self.lines if line.within is not None)

    def to_data(self) -> dict[str, Any]:
        """The numbers of both as plain data."""
        keys = ("name", "live", "simulated", "limit", "within")
        lines = [{key: getattr(line, key) for key in keys} for line in self.lines]
        return {"within": self.within, "lines": lines, "live": self.live.about["live"], "digest": self.simulated.digest}


def gap(live: Run, scenario: Scenario | None = None) -> Gap:
    """Simulates a call that was made over a socket, and compares the two.

    Args:
        live: The run that `tidegate live` wrote.
        scenario: The scenario to simulate instead of the call's own; see
            [with_media_of][tidegate.comparison.gap.with_media_of].

    Raises:
        InputError: when the run is not a call over a socket, or the scenario does not fit.
        RunError: when the simulation fails.
    """
    details = live.about.get("live")
    if not isinstance(details, dict) or "lasted_s" not in details:
        raise InputError(
            f"{live.name} is not a call over a socket; expected a result of `tidegate live send` or `receive`"
        )
    simulated_scenario = live.scenario if scenario is None else scenario
    lasted = float(details["lasted_s"])
    if lasted < float(simulated_scenario.duration) / 1e9:
        # a call that ended early is compared up to its end
        simulated_scenario = simulated_scenario.with_changes({"duration": f"{max(lasted, 1e-3):.3f}s", "warmup": "0s"})
    simulated = run(simulated_scenario, seed=live.seed)
    return Gap(live, simulated, _lines(live, simulated))


def with_media_of(live: Run, scenario: Scenario) -> Scenario:
    """A scenario whose subject has the media of a call, including its headers, and the call's duration.

    Raises:
        InputError: when one of the two has no media.
    """
    recorded = live.scenario
    calls = [flow for flow in recorded.to_dict()["flows"] if flow.get("name") == live.subject]
    data = scenario.to_dict()
    if not calls:
        raise InputError(f"{live.name}: the scenario of the call has no flow {live.subject}")
    data["flows"][subject.of_scenario(scenario, "media")]["media"] = calls[0]["media"]
    data["duration"] = str(recorded.duration)
    return Scenario.from_dict(data, scenario.base)


def median_target(run: Run) -> float | None:
    """The median over time of the target of a run's subject (bit/s), from the first decision to the end of the run."""
    times, targets = view.curve(run, "decisions", "flow", run.subject, "target_bps")
    if not len(times):
        return None
    samples = np.arange(times[0], float(run.summary["duration_s"]), _STEP)
    return float(np.median(view.step_at(times, targets, samples))) if len(samples) else None


def _lines(live: Run, simulated: Run) -> list[Line]:
    live_metrics, simulated_metrics = live.metrics(), simulated.metrics()
    a, b = median_target(live), median_target(simulated)
    near = None if a is None or b is None else abs(a - b) <= WITHIN * b
    lines = [Line(TARGET, a, b, f"within {WITHIN:.0%}", near)]
    for name in _METRICS:
        a, b = live_metrics.get(name), simulated_metrics.get(name)
        if name == "loss_fraction":
            close = None if a is None or b is None else abs(a - b) <= LOSS_WITHIN
            lines.append(Line(name, a, b, "within 1 point", close))
        elif (a, b) != (None, None):
            lines.append(Line(name, a, b))
    return lines
