"""The numbers of a report: which metrics are shown, and which of them are best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from tidegate.results.metrics import COUNTED, HEADLINE, PICTURES, Metric, finite, metric
from tidegate.results.quality import verdict, verdict_on
from tidegate.results.stats import Interval
from tidegate.show import _carried, view
from tidegate.show.table import Row
from tidegate.show.view import RunLike

NOTHING = "\N{EN DASH}"

#: Metrics of the headline table: those of every comparison, and what else tells controllers apart.
SUBJECT = (
    *HEADLINE,
    *COUNTED,
    *PICTURES,
    "jitter_ms_mean",
    "mos",
    "convergence_time_s",
    "oscillation_hz",
    "feedback_overhead",
)

#: How the flows share, at the scale in between (RFC 8868 section 3 names 1, 5 and 20 s).
FAIRNESS = ("jain_5s", "ratio_5s")

#: Metrics of the table of flows.
FLOWS = (
    "goodput_bps",
    "sending_rate_bps",
    "one_way_delay_ms_p50",
    "one_way_delay_ms_p95",
    "jitter_ms_mean",
    "loss_fraction",
    "frame_delay_ms_p95",
    "freezes",
    "mos",
)

#: Whether a flow is fit for a call: words, not numbers.
VERDICTS = ("quality", "quality_network")


def write(about: Metric, value: float | None) -> str:
    """A value with its unit; a dash where there is none."""
    number = about.show(value)
    if number == "-":
        return NOTHING
    # what is there but too small to be seen in these digits is not nothing
    if value and float(number) == 0:
        number = f"< {10.0**-about.digits:g}"
    return f"{number} {about.unit}" if about.unit else number


def name(about: Metric) -> str:
    """A metric's label as a heading."""
    return about.label[:1].upper() + about.label[1:]


def cell(runs: Sequence[RunLike], flow: str, of: str) -> Interval:
    """Mean and interval of one metric over runs; those that do not define it are left out."""
    return Interval.of(view.metric(run, flow, of) for run in runs)


def verdict_of(runs: Sequence[RunLike], flow: str, of: str) -> str:
    """What runs say of a flow in one of `VERDICTS`; a dash where they say nothing."""
    flows = [view.flow_summary(run, flow) for run in runs]
    said = verdict_on(flows) if of == "quality" else verdict(one.get(of) for one in flows)
    return NOTHING if said == "-" else said


def defined(groups: Mapping[str, Sequence[RunLike]], names: Iterable[str]) -> list[Metric]:
    """Those of the metrics that at least one flow of one run defines."""
    summaries = [run.summary for runs in groups.values() for run in runs]
    entries = [entry for one in summaries for entry in (*one["flows"], *one.get("members", ()))]
    return [metric(one) for one in names if any(entry.get(one) is not None for entry in entries)]


def headline(groups: Mapping[str, Sequence[RunLike]]) -> list[Row]:
    """The table that compares the subjects, a row for each metric that one of them defines."""
    out = frozenset(_carried.too_little(groups))
    rows = [_row(of, groups, partial(_of_subject, of), frozenset() if of in _carried.RATES else out) for of in SUBJECT]
    rows += [_row(of, groups, partial(_of_all, of), out) for of in FAIRNESS]
    return [row for row in rows if any(one.count for one in row.cells.values())]


def _row(
    of: str, groups: Mapping[str, Sequence[RunLike]], value: Callable[[RunLike], float | None], out: frozenset[str]
) -> Row:
    about = metric(of)
    return Row(of, about.label, about, {label: view.by_seed(runs, value) for label, runs in groups.items()}, out)


def _of_subject(of: str, run: RunLike) -> float | None:
    return finite(view.flow_summary(run, view.subject_of(run)).get(of))


def _of_all(of: str, run: RunLike) -> float | None:
    return finite(run.summary.get("fairness", {}).get(of))
