"""Runs for figures and reports: all knowledge of their tables' columns is here.

The functions only read :attr:`RunLike.summary` and :meth:`RunLike.table`; the column
names are those of the recording (see ``docs/results.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.output import palette
from tidegate.results.metrics import MEMBERS
from tidegate.results.remarks import Remarks
from tidegate.results.stats import Interval
from tidegate.scenario import subject
from tidegate.show import _breakers

Floats: TypeAlias = npt.NDArray[np.float64]


class RunLike(Protocol):
    """The interface of a run: a :class:`tidegate.Run`, or anything of the same shape."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """The run's metrics: ``name``, ``seed``, ``flows``, ``links``, ``fairness``."""

    def table(self, name: str) -> Any:
        """A recorded table; :class:`KeyError` where the run has none of that name."""


OneRun = TypeVar("OneRun", bound=RunLike)

#: Runs of several controllers: by label, one run a seed. A plain sequence is grouped by controller.
Runs: TypeAlias = Mapping[str, Sequence[RunLike]] | Sequence[RunLike]


@dataclass(frozen=True)
class FlowSeries:
    """The series of one flow on the recording's bins. Missing values are NaN."""

    t: Floats
    """Middle of each bin, in seconds."""
    sending_bps: Floats
    receive_bps: Floats
    target_bps: Floats
    """The controller's target at the end of each bin; all NaN for flows without a controller."""
    delay_ms: Floats
    """Mean one-way delay of the packets that arrived in the bin."""
    delay_max_ms: Floats
    loss: Floats
    """Lost packets as a fraction of those that were received or lost in the bin; NaN if none was."""
    marked: Floats
    """Packets that queues marked in the bin as a fraction of those that were received or lost in it, at most 1; NaN if
    none was. A mark counts when it is made, which is before its packet arrives."""
    arrived: Floats
    lost: Floats
    width: float
    """Width of a bin, in seconds."""


class _CachedRun:
    """A run whose columns are read only once, since those of a saved run come from files."""

    def __init__(self, run: RunLike) -> None:
        self.summary = run.summary
        self.about = getattr(run, "about", {})
        self._run = run
        self._tables: dict[str, dict[str, npt.NDArray[Any]]] = {}

    def table(self, name: str) -> dict[str, npt.NDArray[Any]]:
        if name not in self._tables:
            table = self._run.table(name)
            names = getattr(table, "columns", None)
            column_of = getattr(table, "to_numpy", None) or table.__getitem__
            # controller and seed are the same in all rows, and in the summary
            columns = [name for name in (table if names is None else names) if name not in {"controller", "seed"}]
            self._tables[name] = {column: np.asarray(column_of(column)) for column in columns}
        return self._tables[name]


def keep(run: RunLike) -> RunLike:
    """The run with a cache of its tables."""
    return run if isinstance(run, _CachedRun) else _CachedRun(run)


def grouped(runs: Runs) -> dict[str, list[RunLike]]:
    """Runs with caches, by label; sequences are grouped by their subject's controller."""
    groups: dict[str, list[RunLike]] = {}
    if isinstance(runs, Mapping):
        groups = {str(label): [keep(run) for run in members] for label, members in runs.items() if len(members)}
    else:
        for run in runs:
            groups.setdefault(controller_of(run), []).append(keep(run))
    if not groups:
        raise ValueError("no run was given")
    return groups


def subject_of(run: RunLike) -> str:
    """The flow that a comparison is about."""
    return str(subject.of_summary(run.summary)["flow"])


def flow_summary(run: RunLike, flow: str) -> Mapping[str, Any]:
    """The metrics of one flow."""
    for entry in run.summary["flows"]:
        if entry["flow"] == flow:
            return dict(entry)
    names = ", ".join(str(entry["flow"]) for entry in run.summary["flows"])
    raise ValueError(f"this run has no flow {flow!r}; available: {names}")


def copied(summary: Mapping[str, Any]) -> set[str]:
    """Flows of members of sessions of more than two, whose arrivals are counted at several ends."""
    groups = (members for members in sessions(summary).values() if len(members) > 2)  # noqa: PLR2004
    return {str(member["flow"]) for members in groups for member in members}


def point_to_point(run: RunLike) -> list[Mapping[str, Any]]:
    """The metrics of the flows between two ends, without members of sessions that send nothing but RTCP."""
    copied_flows = copied(run.summary)
    return [
        flow
        for flow in run.summary["flows"]
        if flow["flow"] not in copied_flows and (flow["kind"] != "member" or flow["packets_sent"])
    ]


def sessions(summary: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The members' metrics by session; empty where the run has no sessions."""
    by_session: dict[str, list[Mapping[str, Any]]] = {}
    for entry in summary.get("members", ()):
        by_session.setdefault(str(entry["flow"]).removesuffix(f".{entry['member']}"), []).append(entry)
    return by_session


def member(run: RunLike, flow: str) -> Mapping[str, Any]:
    """The metrics of the member `SESSION.MEMBER`; empty where the run has none of that name."""
    return next((entry for entry in run.summary.get("members", ()) if entry["flow"] == flow), {})


def remarks(summaries: Iterable[Mapping[str, Any]]) -> Remarks:
    """Gathers the warnings and notes of runs from their summaries, each once."""
    listed = list(summaries)
    return Remarks.of(listed, *_breakers.sentences(listed))


def session_sums(members: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Sums over all members of a session; for times, means weighted by the number of events that each mean is over.

    `losses_heard` is the number of losses of a member's packets that other members reported to it.

    >>> session_sums([
    ...     {"losses": 2, "reported_early": 1, "reported_regular": 0, "waiting_ms_mean": 4.0},
    ...     {"losses": 5, "reported_early": 2, "reported_regular": 1, "waiting_ms_mean": 8.0},
    ... ])["waiting_ms_mean"]
    7.0
    """
    weights = {
        "waiting_ms_mean": ("reported_early", "reported_regular"),
        "loss_report_delay_ms_mean": ("losses_heard",),
        "recovery_ms_mean": ("recovered",),
    }

    def total(name: str) -> float:
        if name not in weights:
            return sum(float(member.get(name) or 0.0) for member in members)
        weighted = [
            (float(member[name]), sum(member[count] for count in weights[name]))
            for member in members
            if member.get(name) is not None
        ]
        weight = sum(count for _, count in weighted)
        return sum(value * count for value, count in weighted) / weight if weight else float("nan")

    return {name: total(name) for name in MEMBERS}


def controller_of(run: RunLike) -> str:
    """The label of the subject's controller."""
    return label_of(run, subject_of(run))


def metric(run: RunLike, flow: str, name: str) -> float:
    """One metric of one flow; NaN where the run could not define it."""
    value = flow_summary(run, flow).get(name)
    return float("nan") if value is None else float(value)


def mean(runs: Iterable[RunLike], name: str) -> float:
    """The mean of one metric of the subjects of those runs that define it; NaN if none does."""
    return Interval.of(metric(run, subject_of(run), name) for run in runs).mean


def delay_and_rate(runs: Iterable[RunLike]) -> list[tuple[float, float]]:
    """The 95th percentile of the delay (ms) and the rate (Mbit/s) of the subject of each run that defines both."""
    flows = ((run, subject_of(run)) for run in runs)
    points = [(metric(*flow, "one_way_delay_ms_p95"), metric(*flow, "receive_rate_bps") / 1e6) for flow in flows]
    return [point for point in points if all(map(math.isfinite, point))]


def is_recorded(run: RunLike) -> bool:
    """Whether a run is a call that was recorded elsewhere."""
    return bool(getattr(run, "about", {}).get("imported"))


def has(run: RunLike, name: str) -> bool:
    """Whether the run recorded this table, and it is not empty."""
    try:
        table = keep(run).table(name)
    except KeyError:
        return False
    return any(len(column) for column in table.values())


def rows(run: RunLike, table: str, key: str, value: str, columns: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Columns of a table, with only the rows whose ``key`` (``flow`` or ``link``) is ``value``."""
    source = keep(run).table(table)
    mask = source[key] == value
    return {name: source[name][mask] for name in columns}


def curve(run: RunLike, table: str, key: str, value: str, column: str, x_column: str = "t_s") -> tuple[Floats, Floats]:
    """A column of numbers against another column, by default against time (s); empty where the run has no such table.

    The rows are those of :func:`rows`.
    """
    if not has(run, table):
        return np.empty(0), np.empty(0)
    got = rows(run, table, key, value, (x_column, column))
    return np.asarray(got[x_column], float), np.asarray(got[column], float)


def flow_series(run: RunLike, flow: str) -> FlowSeries:
    """The series of one flow; raises :class:`ValueError` if the run was recorded without series."""
    if not has(run, "series"):
        raise ValueError(
            f"run {run.summary.get('name', '?')!r} has no series; run it again with record 'series' or 'packets'"
        )
    # recordings of calls may lack marks
    marks = [_MARKED] if _MARKED in keep(run).table("series") else []
    columns = rows(run, "series", "flow", flow, ("t_s", *_SERIES.values(), *marks))
    # an event at the very end of the run opens a bin without width, whose rates would be meaningless
    duration = float(run.summary.get("duration_s") or np.inf)
    inside = columns["t_s"] < duration
    start = np.asarray(columns["t_s"], float)[inside]
    got = {name: np.asarray(columns[column], float)[inside] for name, column in _SERIES.items()}
    # a run as short as its first bin tells no step; the bin then ends with the run
    width = bin_width(start) if len(start) != 1 or duration == np.inf else duration - float(start[0])
    packets = got["lost"] + got["arrived"]
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = np.where(packets > 0, got["lost"] / packets, np.nan)
        ce = np.asarray(columns[_MARKED], float)[inside] if marks else np.full(len(start), np.nan)
        marked = np.where(packets > 0, np.minimum(ce / packets, 1.0), np.nan)
    target = step_at(*curve(run, "decisions", "flow", flow, "target_bps"), start + width)
    return FlowSeries(t=start + width / 2, target_bps=target, loss=loss, marked=marked, width=width, **got)


_SERIES = {
    "sending_bps": "sending_rate_bps",
    "receive_bps": "receive_rate_bps",
    "delay_ms": "one_way_delay_ms_mean",
    "delay_max_ms": "one_way_delay_ms_max",
    "lost": "packets_lost",
    "arrived": "packets_arrived",
}
"""Series of a flow by the columns in which they are recorded."""
_MARKED = "packets_marked"


def has_marks(series: FlowSeries) -> bool:
    """Whether any packet of a flow was marked by a queue."""
    return bool((np.nan_to_num(series.marked) > 0).any())


def bin_width(t: Floats) -> float:
    """The width (s) of the bins that begin at ``t``: the smallest step between two of them."""
    return float(np.min(np.diff(t))) if len(t) > 1 else 0.0


def end_of(t: Floats) -> float:
    """The end (s) of a time axis over bins with these middles; 1 s for fewer than two bins, whose width is unknown."""
    return float(t[-1] + bin_width(t) / 2) if len(t) > 1 else 1.0


def step_at(t: Floats, values: Floats, times: Floats) -> Floats:
    """A step function, ``values`` from each ``t`` on, sampled at ``times``; NaN before the first ``t``."""
    index = np.searchsorted(t, times, side="right") - 1
    out = np.full(len(times), np.nan)
    out[index >= 0] = values[index[index >= 0]]
    return out


def truth(run: RunLike, link: str) -> tuple[Floats, Floats]:
    """The capacity (bit/s) of a link over time: steps, each valid from its time (s) on."""
    return curve(run, "truth", "link", link, "capacity_bps")


def queue(run: RunLike, link: str) -> tuple[Floats, Floats]:
    """The queue of a link over time: (s, bytes)."""
    return curve(run, "queues", "link", link, "bytes")


def bottleneck(runs: Iterable[RunLike]) -> str | None:
    """The link with the highest mean utilisation over the runs; ``None`` if all are unlimited.

    Of equally full links the first counts, so that a forward link goes before its backward direction.
    """
    link = most_utilised_link(run.summary for run in runs)
    return None if link is None else link[0]


def most_utilised_link(summaries: Iterable[Mapping[str, Any]]) -> tuple[str, float] | None:
    """The link with the highest mean utilisation over the runs with these summaries, and that mean."""
    totals: dict[str, list[float]] = {}
    for summary in summaries:
        for link in summary.get("links", ()):
            value = link.get("utilisation")
            if value is not None and np.isfinite(value):
                totals.setdefault(str(link["link"]), []).append(float(value))
    means = {name: sum(values) / len(values) for name, values in totals.items()}
    return max(means.items(), key=lambda item: item[1]) if means else None


def same_truth(runs: Sequence[RunLike], link: str | None) -> bool:
    """Whether all runs had the same capacity over time; if not, a median over them means nothing."""
    if link is None:
        return True
    first = truth(runs[0], link)
    return all(np.array_equal(a, b) for run in runs[1:] for a, b in zip(truth(run, link), first, strict=True))


def on_grid(series_t: Floats, values: Floats, grid: Floats) -> Floats:
    """Values in the bins of ``grid`` that they fall into; NaN in bins without a value."""
    out = np.full(len(grid), np.nan)
    if len(series_t) and len(grid):
        half = (bin_width(grid) or 1.0) / 2
        index = np.clip(np.searchsorted(grid, series_t - half), 0, len(grid) - 1)
        near = np.abs(grid[index] - series_t) <= half
        out[index[near]] = values[near]
    return out


def seed_of(run: RunLike) -> Any:
    """The run's seed."""
    return run.summary.get("seed")


def by_seed(runs: Sequence[OneRun], value: Callable[[OneRun], float | None]) -> dict[int, float | None]:
    """A number of each run by seed; by index where runs have no seeds, or the same seed."""
    seeds = [seed_of(run) for run in runs]
    distinct = all(type(seed) is int for seed in seeds) and len(set(seeds)) == len(seeds)
    return {key: value(run) for key, run in zip(seeds if distinct else range(len(seeds)), runs, strict=True)}


def label_of(run: RunLike, flow: str) -> str:
    """The controller of a flow; its kind where it has none.

    Raises:
        ValueError: If there is no such flow.
    """
    entry = flow_summary(run, flow)
    return str(entry.get("controller") or entry["kind"])


MAX_OTHERS = 6
"""Largest number of other flows that are drawn one by one; of more flows the sum is drawn."""


def described(run: RunLike, flow: str) -> str:
    """A flow with its controller, or its kind where it has none: `beside (gcc)`, `download (cubic)`."""
    label = label_of(run, flow)
    return flow if label == flow else f"{flow} ({label})"


def others(run: RunLike, subjects: Collection[str], grid: Floats) -> dict[str, Floats]:
    """The receive rates (bit/s) of the flows beside the subjects, by description, in the bins of `grid`.

    Of more than :data:`MAX_OTHERS` flows there is only their sum.
    """
    names = [str(entry["flow"]) for entry in run.summary["flows"] if entry["flow"] not in subjects]
    series = {name: flow_series(run, name) for name in names}
    rates = {described(run, name): on_grid(s.t, s.receive_bps, grid) for name, s in series.items()}
    if len(names) <= MAX_OTHERS:
        return rates
    return {f"{len(names)} other flows": np.nansum(np.vstack(list(rates.values())), axis=0)}


def renamed(labels: Mapping[str, str] | None, name: str) -> str:
    """Another name for a flow, a link or a controller, if there is one; that of a flow also for its description.

    >>> renamed({"beside": "A"}, "beside (gcc)"), renamed({"gcc": "GCC"}, "gcc"), renamed(None, "gcc")
    ('A', 'GCC', 'gcc')
    """
    names = labels or {}
    return names.get(name) or names.get(name.partition(" (")[0], name)


def headline(run: RunLike, flow: str, labels: Mapping[str, str] | None = None) -> str:
    """The headline of a figure of one flow, with other names for flows and controllers if there are."""
    controller = label_of(run, flow)
    flow, controller = (renamed(labels, name) for name in (flow, controller))
    return f"{flow} under {controller} on “{run.summary.get('name', '?')}”, seed {seed_of(run)}"


SHARES: Floats = np.arange(201) / 200.0
"""The shares of packets at which delay quantiles are given, as in the table `quantiles`."""


def delay_quantiles(run: RunLike, flow: str) -> Floats:
    """The one-way delays (ms) of a flow at the quantiles :data:`SHARES`; empty without packets or known delays.

    The engine counts them packet by packet after the warm-up, so that the value at 95 % is the summary's
    ``one_way_delay_ms_p95``. Without the table ``quantiles`` they come from the packets or bins of the run.
    """
    if has(run, "quantiles"):
        _, quantiles = curve(run, "quantiles", "flow", flow, "one_way_delay_ms", "share")
        # recordings without departure or arrival times have no delays at all
        return quantiles if np.isfinite(quantiles).all() else np.empty(0)
    delay, weight = delays(run, flow)
    if not len(delay):
        return np.empty(0)
    order = np.argsort(delay)
    share = np.cumsum(weight[order]) / weight.sum()
    index = np.minimum(np.searchsorted(share, SHARES - 1e-12), len(delay) - 1)
    return np.asarray(delay[order][index], float)


def knows_packets(run: RunLike) -> bool:
    """Whether :func:`delay_quantiles` come from packets, not from means of bins."""
    return has(run, "quantiles") or has(run, "packets")


def mean_quantiles(runs: Sequence[RunLike], flow: str) -> Floats:
    """Means over runs of each delay quantile, like all numbers in tables and figures; empty without packets."""
    by_run = [quantiles for quantiles in (delay_quantiles(run, flow) for run in runs) if len(quantiles)]
    return np.mean(by_run, axis=0) if by_run else np.empty(0)


def delays(run: RunLike, flow: str) -> tuple[Floats, Floats]:
    """One-way delays (ms) and their weights.

    They come from the ``packets`` table; without it, they are the mean of each bin, weighted by the
    packets of the bin.
    """
    if has(run, "packets"):
        got = rows(run, "packets", "flow", flow, ("sent_s", "arrived_s", "kind"))
        # the receiver's RTCP is recorded under the same flow, but is not part of its delay
        media = ~np.isin(got["kind"], ("rtcp", "ack"))
        delay = (np.asarray(got["arrived_s"], float) - np.asarray(got["sent_s"], float))[media] * 1e3
        delay = delay[np.isfinite(delay)]
        return delay, np.ones(len(delay))
    series = flow_series(run, flow)
    valid = np.isfinite(series.delay_ms) & (series.arrived > 0)
    return series.delay_ms[valid], series.arrived[valid]


def looks_of(groups: Mapping[str, Sequence[RunLike]]) -> dict[str, palette.Look]:
    """The looks of runs by label: a label has the look of the controller that ran."""
    ran: dict[str, set[str]] = {}
    for label, runs in groups.items():
        subjects = (flow_summary(run, subject_of(run)) for run in runs)
        ran[label] = {str(flow["controller"]) for flow in subjects if flow.get("controller")}
    return palette.looks(groups, ran)
