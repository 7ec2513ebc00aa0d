"""What a report shows of the members of sessions: their RTCP, and what became of the losses that they saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tidegate.output.chart import Axis, Chart, Dot, Trail
from tidegate.output.document import Beside, Column, Drawing, Number, Row, Section, Table, notes
from tidegate.output.palette import HUES, Look
from tidegate.results.metrics import MEMBERS, metric
from tidegate.results.stats import Interval
from tidegate.show import view
from tidegate.show.view import RunLike

SHOWN = 20
"""Members with a row of their own in a session; the rest are in its sums."""
_POINTS = 200
"""At most so many points of a line."""
_ALLOWED = 5.0
"""% of the session bandwidth that RTCP may use (RFC 3550 section 6.2)."""


def section(groups: Mapping[str, Sequence[RunLike]]) -> Iterator[Section]:
    """Table and charts; nothing where there are no sessions."""
    runs = [run for members in groups.values() for run in members]
    sessions = view.sessions(runs[0].summary)
    if not sessions:
        return
    heads = [Column("member"), Column("profile", left=True)]
    heads += [Column(metric(name).label, metric(name)) for name in MEMBERS]
    rows: list[Row] = []
    for label, members in groups.items():
        for session, some in view.sessions(members[0].summary).items():
            rows.append(Row([session if len(groups) == 1 else f"{session}, {label}"], kind="group"))
            rows += [_row(members, member) for member in some[:SHOWN]]
            rows += [Row([f"and {len(some) - SHOWN} more"], kind="group")] if len(some) > SHOWN else []
            rows.append(_sum(members, session, len(some)))
    said = "Means over seeds." if len(runs) > len(groups) else ""
    drawn = list(_drawings(runs[0]))
    beside = [Beside(drawn, "pair")] if drawn else []
    yield Section("Members of sessions", [Table(heads, rows, "numbers", stub=2), *notes(said), *beside])


def _row(runs: Sequence[RunLike], member: Mapping[str, Any]) -> Row:
    values = {name: Interval.of(view.member(run, member["flow"]).get(name) for run in runs) for name in MEMBERS}
    return Row([member["member"], member["profile"], *_means(values)])


def _sum(runs: Sequence[RunLike], session: str, count: int) -> Row:
    totals = [view.session_sums(view.sessions(run.summary)[session]) for run in runs]
    values = {name: Interval.of(total[name] for total in totals) for name in MEMBERS}
    return Row([f"all {count}", "", *_means(values)], kind="sum")


def _means(values: Mapping[str, Interval]) -> list[Number]:
    return [Number(metric(name), replace(value, half=None)) for name, value in values.items()]


def _drawings(run: RunLike) -> Iterator[Drawing]:
    """RTCP over time, and how long reports waited, of the first run."""
    if not view.has(run, "rtcp"):
        return
    sessions = view.sessions(run.summary)
    names = list(sessions)[: len(HUES)]
    shares = {name: _shares(run, sessions[name]) for name in names}
    yield Drawing(
        _lines(shares, "Time (s)", "RTCP so far (% of session bandwidth)", _ALLOWED),
        "RTCP over time",
        "All members together, from the start of the run; dashed: what RFC 3550 allows.",
    )
    waits = {name: _waits(run, sessions[name]) for name in names} if view.has(run, "losses") else {}
    waits = {name: curve for name, curve in waits.items() if curve}
    if waits:
        yield Drawing(
            _lines(waits, "From detection to sending (ms)", "Share of the reports sent (%)"),
            "Waiting time of reports, distribution",
            "Of each lost packet that a member reported.",
        )


def _lines(curves: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, level: float | None = None) -> Chart:
    """A line for each session, in a colour of its own; its name stands at its end."""
    every = [point for curve in curves.values() for point in curve]
    widest = max((a for a, _ in every), default=1.0) or 1.0
    highest = max((*(b for _, b in every), level or 0.0), default=1.0) * 1.1 or 1.0
    trails = [
        Trail(Look(at), [Dot(a, b) for a, b in curve[:-1]] + [Dot(*curve[-1], label=name)] if curve else [], name,
              joined=True, bare=True)
        for at, (name, curve) in enumerate(curves.items())
    ]  # fmt: skip
    return Chart(Axis(x, 0.0, widest), Axis(y, 0.0, highest), trails, f"{y} against {x}", level=level)


def _shares(run: RunLike, members: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    table = view.keep(run).table("rtcp")
    flows = [member["flow"] for member in members]
    mine = np.isin(table["flow"], flows)
    at, size = np.asarray(table["t_s"], dtype=float)[mine], np.asarray(table["size"], dtype=float)[mine]
    # the first member with RTCP says what the session bandwidth is
    bandwidth = next((m["rtcp_bps"] / m["rtcp_share"] for m in members if m["rtcp_share"]), None)
    duration = float(run.summary["duration_s"])
    if bandwidth is None or not duration > 0:
        return []
    ends = np.linspace(0.0, duration, _POINTS + 1)[1:]
    order = np.argsort(at, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(size[order])])[np.searchsorted(at[order], ends, side="right")]
    share = 100 * 8 * sums / ends / bandwidth
    # the first packets stand alone against a short time
    late = ends >= duration / 50
    return [(round(float(a), 4), round(float(b), 4)) for a, b in zip(ends[late], share[late], strict=True)]


def _waits(run: RunLike, members: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    table = view.keep(run).table("losses")
    sent = np.isin(table["reporting"], ["early", "regular"])
    mine = np.isin(table["flow"], [member["flow"] for member in members]) & sent
    waited = np.sort(np.asarray(table["waited_ms"], dtype=float)[mine])
    if not len(waited):
        return []
    at = np.linspace(0.0, 1.0, min(len(waited), _POINTS))
    values = np.quantile(waited, at, method="inverted_cdf")
    return [(round(float(a), 3), round(100 * float(b), 2)) for a, b in zip(values, at, strict=True)]
