"""Scores: how controllers stand beside each other over all cases of a suite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.results.stats import Interval, could_carry
from tidegate.suite import numbers

if TYPE_CHECKING:
    from tidegate.suite.result import SuiteResult

SCORED: tuple[tuple[str, str], ...] = (
    ("receive_rate_bps", "mean"),
    ("share_fraction", "mean"),
    ("one_way_delay_ms_p95", "worst"),
    ("loss_fraction", "mean"),
    ("without_picture_s", "mean"),
    ("power", "mean"),
)
"""Numbers that controllers are compared by, and how those of several contenders are joined."""


@dataclass(frozen=True)
class Score:
    """Rank and means of a controller."""

    controller: str
    """The controller's name."""
    rank: int | None
    """One more than the number of controllers with significantly greater power; `None` without a rank."""
    out: str
    """The reason why it has no rank."""
    passed: int
    """Cases of which it met all rules."""
    of: int
    """Cases that were run."""
    means: Mapping[str, float]
    """Mean over cases and seeds of each number in `SCORED`, over those cases that have it."""
    differences: Mapping[str, Interval]
    """Difference of each number from the baseline, paired run by run."""


def scores(result: SuiteResult) -> list[Score]:
    """Returns the scores of all controllers, by passed cases, then by rank.

    Ranks go by Kleinrock's power, the logarithm of rate over delay, as Pantheon's do (Yan et al., USENIX ATC 2018). A
    controller that carries less than half of the possible rate has no rank: a flow that does not send has no delay.
    """
    means = {
        controller: {name: _mean(result, controller, name, of) for name, of in SCORED}
        for controller in result.controllers
    }
    out = _too_little(means)
    inside = [controller for controller in result.controllers if not out[controller]]
    ranking = []
    for controller in result.controllers:
        ran = result.count(controller, "pass") + result.count(controller, "fail")
        differences = {name: result.paired(name, controller, result.baseline, of) for name, of in SCORED}
        rank = (
            1 + sum(_above(result, other, controller) for other in inside if other != controller)
            if controller in inside
            else None
        )
        ranking.append(
            Score(
                controller, rank, out[controller], result.count(controller, "pass"), ran, means[controller], differences
            )
        )
    return sorted(ranking, key=_place)


def _place(score: Score) -> tuple[int, float, float, str]:
    """Sort key of a controller; those without a power come last."""
    power = score.means["power"]
    return -score.passed, score.rank or math.inf, -power if math.isfinite(power) else math.inf, score.controller


def _above(result: SuiteResult, first: str, second: str) -> bool:
    """Whether the power of the first is significantly greater than that of the second."""
    more = result.paired("power", first, second, "mean")
    return more.count > 1 and more.half is not None and more.mean - more.half > 0


def _too_little(means: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Returns the reason why each controller has no rank, or an empty text.

    The possible part of the share is that of the best controller which did not simply flood; where no share is known,
    its rate is taken.
    """
    name = (
        "share_fraction"
        if all(math.isfinite(numbers_of["share_fraction"]) for numbers_of in means.values())
        else "receive_rate_bps"
    )
    carried = {
        controller: numbers_of[name] for controller, numbers_of in means.items() if math.isfinite(numbers_of[name])
    }
    losses = {controller: numbers_of["loss_fraction"] for controller, numbers_of in means.items()}
    _, enough = could_carry(carried, losses, 1.0 if name == "share_fraction" else math.inf)
    about = numbers.metric_of(name)
    reasons = {}
    for controller in means:
        if controller not in carried:
            reasons[controller] = "none of its runs has finished"
        elif carried[controller] < enough:
            least = f"{about.show(enough)} {about.unit}"
            rate = f"{about.label} {about.show(carried[controller])} {about.unit}"
            reasons[controller] = f"{rate}; delays are compared only from {least} on"
        else:
            reasons[controller] = ""
    return reasons


def _mean(result: SuiteResult, controller: str, name: str, of: str) -> float:
    cases = [result.interval(case.name, controller, name, of) for case in result.suite.cases]
    means = [interval.mean for interval in cases if interval.count]
    return math.fsum(means) / len(means) if means else math.nan


def label(name: str) -> str:
    """Returns a number's label with its unit, for the head of a column."""
    metric = numbers.metric_of(name)
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label
