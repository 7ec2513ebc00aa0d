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

SHOWN: tuple[tuple[str, str], ...] = (
    ("receive_rate_bps", "mean"),
    ("share_fraction", "mean"),
    ("one_way_delay_ms_p95", "worst"),
    ("loss_fraction", "mean"),
    ("freeze_time_s", "mean"),
    ("power", "mean"),
)
"""What controllers are compared in, and how several contenders' numbers become one."""


@dataclass(frozen=True)
class Score:
    """How a controller stands."""

    controller: str
    """Who."""
    rank: int | None
    """One more than the number of controllers with a power that is greater for certain; `None` if it is out."""
    out: str
    """Why it has no rank."""
    passed: int
    """Cases of which it met all rules."""
    of: int
    """Cases that were run."""
    means: Mapping[str, float]
    """Mean over cases and seeds of each number in `SHOWN`, over those cases that have it."""
    differences: Mapping[str, Interval]
    """Of each number what it has more than the baseline, paired run by run."""


def scores(result: SuiteResult) -> list[Score]:
    """All controllers: who passes most cases first, and of equals who has the better rank.

    Ranks go by Kleinrock's power, the logarithm of rate over delay, as Pantheon's do (Yan et al., USENIX ATC 2018). Who
    carries less than half of what could be is out, since a flow that does not send has no delay.
    """
    means = {one: {name: _mean(result, one, name, of) for name, of in SHOWN} for one in result.controllers}
    out = _too_little(means)
    inside = [one for one in result.controllers if not out[one]]
    found = []
    for one in result.controllers:
        ran = result.count(one, "pass") + result.count(one, "fail")
        differences = {name: result.paired(name, one, result.baseline, of) for name, of in SHOWN}
        rank = 1 + sum(_above(result, other, one) for other in inside if other != one) if one in inside else None
        found.append(Score(one, rank, out[one], result.count(one, "pass"), ran, means[one], differences))
    return sorted(found, key=_place)


def _place(score: Score) -> tuple[int, float, float, str]:
    """Where a controller stands among others; one without a power behind those with one."""
    power = score.means["power"]
    return -score.passed, score.rank or math.inf, -power if math.isfinite(power) else math.inf, score.controller


def _above(result: SuiteResult, one: str, other: str) -> bool:
    """Whether the power of one is greater than another's for certain."""
    more = result.paired("power", one, other, "mean")
    return more.count > 1 and more.half is not None and more.mean - more.half > 0


def _too_little(means: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Of each controller why it is out, or nothing.

    What could be carried is what the best one carried of its share, of those that did not simply flood; and where no
    share is known, its rate.
    """
    name = (
        "share_fraction"
        if all(math.isfinite(each["share_fraction"]) for each in means.values())
        else "receive_rate_bps"
    )
    known = {one: each[name] for one, each in means.items() if math.isfinite(each[name])}
    losses = {one: each["loss_fraction"] for one, each in means.items()}
    _, enough = could_carry(known, losses, 1.0 if name == "share_fraction" else math.inf)
    about = numbers.about(name)
    found = {}
    for one in means:
        if one not in known:
            found[one] = "no run of it is there"
        elif known[one] < enough:
            least = f"{about.show(enough)} {about.unit}"
            found[one] = (
                f"{about.label} {about.show(known[one])} {about.unit}; it takes {least} to be compared in delay"
            )
        else:
            found[one] = ""
    return found


def _mean(result: SuiteResult, controller: str, name: str, of: str) -> float:
    cases = [result.interval(case.name, controller, name, of) for case in result.suite.cases]
    known = [one.mean for one in cases if one.count]
    return math.fsum(known) / len(known) if known else math.nan


def label(name: str) -> str:
    """A number's name with its unit, for the head of a column."""
    one = numbers.about(name)
    return f"{one.label} ({one.unit})" if one.unit else one.label
