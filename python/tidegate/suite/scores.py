"""Scores: how controllers stand beside each other over all cases of a suite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    """Cases passed, means and rank of a controller."""

    controller: str
    """The controller's name."""
    rank: int | None
    """One more than the number of those with significantly greater power, among the controllers that pass most cases;
    `None` for all others, and where the ranks of all of these would be the same."""
    out: str
    """The reason why its delays and its power are not compared; empty where they are."""
    passed: int
    """Cases of which it met all rules."""
    of: int
    """Cases that were run."""
    met: int
    """Rules that it met, counted in each case."""
    rules: int
    """Rules that were asked of it, counted in each case."""
    means: Mapping[str, Interval]
    """Mean over cases and seeds of each number in `SCORED`, over those cases that have it; the interval is over seeds,
    and holds for these cases."""
    differences: Mapping[str, Interval]
    """Difference of each number from the baseline, paired run by run."""


def scores(result: SuiteResult) -> list[Score]:
    """Returns the scores of all controllers, by passed cases, then by rank and by rules met.

    Who passes more cases is ahead, whatever the power. Ranks are for those that pass most, and go by Kleinrock's power,
    the logarithm of rate over delay, as Pantheon's do (Yan et al., USENIX ATC 2018). A controller that carries less
    than half of the possible rate has no rank: a flow that does not send has no delay.
    """
    means = {
        controller: {name: _mean(result, controller, name, of) for name, of in SCORED}
        for controller in result.controllers
    }
    out = _too_little(
        {controller: {name: mean.mean for name, mean in row.items()} for controller, row in means.items()}
    )
    ranks = _ranks(result, [controller for controller in leaders(result) if not out[controller]])
    ranking = []
    for controller in result.controllers:
        checks = [check for cell in result.cells if cell.controller == controller for check in cell.checks]
        passed = result.count(controller, "pass")
        score = Score(
            controller,
            ranks.get(controller),
            out[controller],
            passed,
            passed + result.count(controller, "fail"),
            sum(check.passed for check in checks),
            len(checks),
            means[controller],
            {name: result.paired(name, controller, result.baseline, of) for name, of in SCORED},
        )
        ranking.append(score)
    return sorted(ranking, key=_place)


def leaders(result: SuiteResult) -> list[str]:
    """The controllers that pass most cases; none where no case is passed."""
    passed = {controller: result.count(controller, "pass") for controller in result.controllers}
    most = max(passed.values())
    return [controller for controller, count in passed.items() if count == most > 0]


def _ranks(result: SuiteResult, controllers: Sequence[str]) -> dict[str, int]:
    """Ranks of controllers by power; nothing where they would say nothing."""
    ranks = {
        controller: 1 + sum(_above(result, other, controller) for other in controllers if other != controller)
        for controller in controllers
    }
    return ranks if len(set(ranks.values())) > 1 else {}


def _place(score: Score) -> tuple[int, float, int, float, str]:
    """Sort key of a controller; those without a power come last."""
    power = score.means["power"].mean
    return (
        -score.passed,
        score.rank or math.inf,
        -score.met,
        -power if math.isfinite(power) else math.inf,
        score.controller,
    )


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


def _mean(result: SuiteResult, controller: str, name: str, of: str) -> Interval:
    """A number's mean over cases, with its interval over seeds."""
    cases = [result.values(case.name, controller, name, of) for case in result.suite.cases]
    means = [(values, mean) for values in cases if (mean := Interval.of(values.values())).count]
    if not means:
        return Interval.of([])
    # by how much the mean over cases is off with each seed
    off: dict[int, float] = {}
    for values, mean in means:
        for seed, value in values.items():
            off[seed] = off.get(seed, 0.0) + (0.0 if value is None else value - mean.mean) / len(means)
    return Interval(math.fsum(mean.mean for _, mean in means) / len(means), Interval.of(off.values()).half, len(off))


def label(name: str) -> str:
    """Returns a number's label with its unit, for the head of a column."""
    metric = numbers.metric_of(name)
    return f"{metric.label} ({metric.unit})" if metric.unit else metric.label
