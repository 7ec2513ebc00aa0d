"""When a metric is worse: `delay_p95 > +5% and > +10ms`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tidegate.errors import InputError
from tidegate.results.metrics import METRICS, Metric
from tidegate.results.metrics.asked import amount, find

DEFAULT = (
    "delay_p95 > +5% and > +10ms",
    "mean utilisation < -5% and < -1pp",
    "loss > +10% and > +0.5pp",
    "freeze_time > +25% and > +1s",
)
"""What is asked where nobody says what to ask.

The limits are ours. The relative ones: who tunes a controller talks about a change of 5 % of delay or rate. The
absolute ones keep what nobody notices out of it, beside what a call can live with (`tidegate.results.quality`: 150 ms
one way, 1 % of loss): 10 ms is a fifteenth of the first, half a point is half of the second.
"""

_FORMS = "'delay_p95 > +5% and > +10ms', 'utilisation < -5%', 'tcp rate < -20% in 5.6*'"
_RULE = re.compile(
    r"\s*(?:(?P<of>[A-Za-z][\w.-]*)\s+)?(?P<metric>[A-Za-z]\w*)\s*(?P<limits>[<>].*?)(?:\s+in\s+(?P<cases>[^<>]+?))?\s*",
    re.DOTALL,
)
_LIMIT = re.compile(r"(?P<sense>[<>])\s*(?P<sign>[+-]?)\s*(?P<size>[^\s<>+-]\S*(?:\s[A-Za-z%/]+)?)")


@dataclass(frozen=True)
class Limit:
    """How much worse is too much."""

    size: float
    """A fraction of the baseline's value, or an amount in the summary's own units; not negative."""
    relative: bool
    """Whether it is a fraction."""
    text: str
    """As it was written: `+5%`."""


@dataclass(frozen=True)
class Rule:
    """A metric that must not become worse than the baseline by more than *all* of its limits."""

    text: str
    """As it was written."""
    metric: Metric
    """What is looked at."""
    sign: int
    """1 where larger is worse, -1 where smaller is."""
    limits: tuple[Limit, ...]
    """It is worse where the change exceeds each of them."""
    of: str = "worst"
    """How the contenders of one run count: the `worst` of them, their `mean`, their `sum`; or the name of a flow."""
    cases: tuple[str, ...] = ("*",)
    """Patterns of the names of cases that it is about."""

    @classmethod
    def parse(cls, text: str, catalogue: Mapping[str, Metric] = METRICS) -> Self:
        """Reads a rule.

        Args:
            text: `[worst | mean | sum | FLOW] METRIC > +LIMIT [and > +LIMIT] [in CASE,...]`; with `<` and `-` for what
                must not fall. A limit in per cent is relative to the baseline, one with a unit is a difference (of
                shares `pp`, points of per cent).
            catalogue: The metrics that there are.

        Raises:
            InputError: says what was found and what would be right.

        >>> rule = Rule.parse("delay_p95 > +5% and > +10ms")
        >>> rule.metric.name, [(limit.size, limit.relative) for limit in rule.limits]
        ('one_way_delay_ms_p95', [(0.05, True), (10.0, False)])
        """
        match = _RULE.fullmatch(text)
        if match is None:
            raise InputError(f"--fail-if: found {text!r}; expected something like {_FORMS}")
        try:
            one = find(match["metric"], catalogue)
            sign, limits = _limits(match["limits"], one)
        except InputError as error:
            raise InputError(f"--fail-if {text!r}: {error}") from None
        cases = tuple(name.strip() for name in (match["cases"] or "*").split(","))
        return cls(" ".join(text.split()), one, sign, limits, match["of"] or "worst", cases)

    def is_about(self, case: str) -> bool:
        """Whether it is about a case."""
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in self.cases)

    @property
    def series(self) -> str:
        """What of a run it looks at, as baselines name it: `worst one_way_delay_ms_p95`."""
        return f"{self.of} {self.metric.name}"

    def excess(self, baseline: float, now: float) -> tuple[float, ...]:
        """By how much one pair of runs exceeds each limit, in the summary's units; negative where it does not."""
        worse = self.sign * (now - baseline)
        return tuple(worse - limit.size * (abs(baseline) if limit.relative else 1.0) for limit in self.limits)


def _limits(text: str, one: Metric) -> tuple[int, tuple[Limit, ...]]:
    signs, limits = zip(*(_limit(part, one) for part in re.split(r"\s+and\s+", text)), strict=True)
    if len(set(signs)) > 1:
        raise InputError("has limits in both directions; expected one direction, and two rules for two")
    if one.better == ("higher" if signs[0] > 0 else "lower"):
        raise InputError(f"{one.label}: {one.better} is better, so this would fail for what became better")
    return signs[0], limits


def _limit(text: str, one: Metric) -> tuple[int, Limit]:
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        raise InputError(f"found {text.strip()!r} for a limit; expected something like > +5% or > +10ms")
    sign = 1 if match["sense"] == ">" else -1
    wanted = "+" if sign > 0 else "-"
    if match["sign"] != wanted:
        right = f"{match['sense']} {wanted}{match['size']}"
        why = "limits are changes against the baseline, so they have a sign"
        raise InputError(f"found {text.strip()!r}; {why}: {right} ({'rises' if sign > 0 else 'falls'} by more)")
    size = match["size"]
    if not size.endswith("%"):
        return sign, Limit(amount(size, one), False, f"{wanted}{size}")
    try:
        share = float(size[:-1])
    except ValueError:
        raise InputError(f"found {size!r} for a limit; expected a number of per cent, such as {wanted}5%") from None
    if not 0 <= share < 1e6:  # noqa: PLR2004
        raise InputError(f"found {size!r} for a limit; expected from 0% to 1000000%")
    return sign, Limit(share / 100, True, f"{wanted}{size}")
