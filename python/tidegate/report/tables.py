"""The numbers of a report: which metrics are shown, how they are written, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidegate import _view
from tidegate._view import RunLike

#: Metrics of the headline table, in order; those that no run defines are left out.
HEADLINE = (
    "goodput_bps",
    "utilisation",
    "one_way_delay_ms_p50",
    "one_way_delay_ms_p95",
    "queueing_delay_ms_p95",
    "loss_fraction",
    "frame_delay_ms_p95",
    "freeze_time_s",
    "convergence_time_s",
    "oscillation_hz",
    "feedback_overhead",
)

#: Metrics of the table of flows.
FLOWS = (
    "goodput_bps",
    "sending_rate_bps",
    "one_way_delay_ms_p50",
    "one_way_delay_ms_p95",
    "loss_fraction",
    "frame_delay_ms_p95",
    "freezes",
)


@dataclass(frozen=True)
class About:
    """How a metric is called, written and judged."""

    name: str
    label: str
    unit: str
    scale: float
    """Factor from the recorded unit to the written one."""
    digits: int
    better: str | None
    """``higher``, ``lower`` or nothing."""
    definition: str

    def write(self, value: float, *, unit: bool = True) -> str:
        """A value with its unit; a dash where there is none."""
        if not math.isfinite(value):
            return "–"
        number = f"{value * self.scale:.{self.digits}f}"
        # what is there but too small to be seen in these digits is not nothing
        if value > 0 and float(number) == 0:
            number = f"< {10.0**-self.digits:g}"
        return f"{number} {self.unit}" if unit and self.unit else number


@dataclass(frozen=True)
class Cell:
    """A mean over seeds with its 95 % interval."""

    mean: float
    half_width: float
    """NaN where a single seed leaves no interval."""
    count: int


@dataclass(frozen=True)
class Row:
    """One metric of the headline table."""

    about: About
    cells: Mapping[str, Cell]
    best: frozenset[str]


def cell(runs: Sequence[RunLike], flow: str, name: str) -> Cell:
    """Mean and interval of one metric over runs; those that do not define it are left out."""
    values = [value for run in runs if math.isfinite(value := _view.metric(run, flow, name))]
    if not values:
        return Cell(math.nan, math.nan, 0)
    mean, half_width = mean_interval(values)
    return Cell(mean, half_width, len(values))


def defined(groups: Mapping[str, Sequence[RunLike]], names: Iterable[str]) -> list[About]:
    """Those of the metrics that at least one flow of one run defines."""
    found = []
    for name in names:
        if any(entry.get(name) is not None for runs in groups.values() for run in runs for entry in run.summary["flows"]):
            found.append(describe(name))
    return found


def headline(groups: Mapping[str, Sequence[RunLike]]) -> list[Row]:
    """The table that compares the subjects, a row for each metric that one of them defines."""
    rows = []
    for name in HEADLINE:
        cells = {label: cell(runs, _view.subject_of(runs[0]), name) for label, runs in groups.items()}
        if any(one.count for one in cells.values()):
            about = describe(name)
            rows.append(Row(about, cells, frozenset(_best(cells, about.better))))
    return rows


def _best(cells: Mapping[str, Cell], better: str | None) -> list[str]:
    known = {label: one for label, one in cells.items() if one.count}
    if better is None or len(known) < 2:
        return []
    pick = max if better == "higher" else min
    first = known[pick(known, key=lambda label: known[label].mean)]

    def reach(one: Cell) -> float:
        return one.half_width if math.isfinite(one.half_width) else 0.0

    tied = [label for label, one in known.items() if abs(one.mean - first.mean) <= reach(one) + reach(first)]
    # a star on everybody tells nothing
    return tied if len(tied) < len(known) else []


_SUFFIXES = (
    ("_bps", "Mb/s", 1e-6, 2),
    ("_fraction", "%", 100.0, 2),
    ("utilisation", "%", 100.0, 1),
    ("_overhead", "%", 100.0, 2),
    ("_s", "s", 1.0, 1),
    ("_hz", "Hz", 1.0, 3),
)


def describe(name: str) -> About:
    """What is known of a metric; one that is in no catalogue is read by its suffix."""
    unit, scale, digits = "", 1.0, 0
    if "_ms_" in name:
        unit, scale, digits = "ms", 1.0, 0
    for suffix, u, s, d in _SUFFIXES:
        if name.endswith(suffix):
            unit, scale, digits = u, s, d
    return About(name, name, unit, scale, digits, "higher" if "goodput" in name or "util" in name else "lower", name)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    import statistics

    return statistics.fmean(values), 2.776 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
