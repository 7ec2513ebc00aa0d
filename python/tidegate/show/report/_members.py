"""The section of a report on members of sessions: their RTCP, and their reports of lost packets."""

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
"""The largest number of members of a session with a row each; its sums include all members."""
_POINTS = 200
"""The largest number of points of a line."""
_ALLOWED = 5.0
"""The share of the session bandwidth (%) that RTCP may use (RFC 3550 section 6.2)."""


def section(groups: Mapping[str, Sequence[RunLike]]) -> Iterator[Section]:
    """Yields a section with table and charts; none where there are no sessions."""
    runs = [run for members in groups.values() for run in members]
    sessions = view.sessions(runs[0].summary)
    if not sessions:
        return
    heads = [Column("member"), Column("profile", left=True)]
    heads += [Column(metric(name).label, metric(name)) for name in MEMBERS]
    rows: list[Row] = []
    for label, members in groups.items():
        for session, entries in view.sessions(members[0].summary).items():
            rows.append(Row([session if len(groups) == 1 else f"{session}, {label}"], kind="group"))
            rows += [_row(members, member) for member in entries[:SHOWN]]
            rows += [Row([f"and {len(entries) - SHOWN} more"], kind="group")] if len(entries) > SHOWN else []
            rows.append(_sum(members, session, len(entries)))
    note = "Means over seeds." if len(runs) > len(groups) else ""
    drawn = list(_drawings(runs[0]))
    beside = [Beside(drawn, "pair")] if drawn else []
    yield Section("Members of sessions", [Table(heads, rows, "numbers", stub=2), *notes(note), *beside])


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
    """Yields charts of the first run: RTCP over time, and the waiting time of reports."""
    if not view.has(run, "rtcp"):
        return
    sessions = view.sessions(run.summary)
    names = list(sessions)[: len(HUES)]
    shares = {name: _shares(run, sessions[name]) for name in names}
    yield Drawing(
        _lines(shares, "Time (s)", "RTCP so far (% of session bandwidth)", _ALLOWED),
        "RTCP over time",
        "All members together, from the start of the run; dashed: the limit of RFC 3550.",
    )
    waits = {name: _waits(run, sessions[name]) for name in names} if view.has(run, "losses") else {}
    waits = {name: curve for name, curve in waits.items() if curve}
    if waits:
        yield Drawing(
            _lines(waits, "From detection to sending (ms)", "Share of the reports sent (%)"),
            "Waiting time of reports, distribution",
            "Waiting time from the detection of a lost packet to its report.",
        )


def _lines(curves: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, level: float | None = None) -> Chart:
    """A chart with a line for each session, in a colour of its own and with its name at the end."""
    points = [point for curve in curves.values() for point in curve]
    widest = max((a for a, _ in points), default=1.0) or 1.0
    highest = max((*(b for _, b in points), level or 0.0), default=1.0) * 1.1 or 1.0
    trails = [
        Trail(Look(hue), [Dot(a, b) for a, b in curve[:-1]] + [Dot(*curve[-1], label=name)] if curve else [], name,
              joined=True, bare=True)
        for hue, (name, curve) in enumerate(curves.items())
    ]  # fmt: skip
    return Chart(Axis(x, 0.0, widest), Axis(y, 0.0, highest), trails, f"{y} against {x}", level=level)


def _shares(run: RunLike, members: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """The share of RTCP in a session's bandwidth (%) from the start up to each time (s)."""
    table = view.keep(run).table("rtcp")
    flows = [member["flow"] for member in members]
    of_session = np.isin(table["flow"], flows)
    times, sizes = np.asarray(table["t_s"], dtype=float)[of_session], np.asarray(table["size"], dtype=float)[of_session]
    # any member with RTCP gives the session bandwidth
    bandwidth = next((m["rtcp_bps"] / m["rtcp_share"] for m in members if m["rtcp_share"]), None)
    duration = float(run.summary["duration_s"])
    if bandwidth is None or not duration > 0:
        return []
    ends = np.linspace(0.0, duration, _POINTS + 1)[1:]
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(sizes[order])])[np.searchsorted(times[order], ends, side="right")]
    share = 100 * 8 * sums / ends / bandwidth
    # the share of the first packets in a short time would be meaninglessly large
    late = ends >= duration / 50
    return [(round(float(a), 4), round(float(b), 4)) for a, b in zip(ends[late], share[late], strict=True)]


def _waits(run: RunLike, members: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """The distribution of the waiting times of a session's reports: (ms, % of the reports sent)."""
    table = view.keep(run).table("losses")
    sent = np.isin(table["reporting"], ["early", "regular"])
    of_session = np.isin(table["flow"], [member["flow"] for member in members]) & sent
    waited = np.sort(np.asarray(table["waited_ms"], dtype=float)[of_session])
    if not len(waited):
        return []
    shares = np.linspace(0.0, 1.0, min(len(waited), _POINTS))
    values = np.quantile(waited, shares, method="inverted_cdf")
    return [(round(float(a), 3), round(100 * float(b), 2)) for a, b in zip(values, shares, strict=True)]
