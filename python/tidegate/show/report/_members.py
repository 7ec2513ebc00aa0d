"""What a report shows of the members of sessions: their RTCP, and what became of the losses that they saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tidegate.results.metrics import MEMBERS, metric
from tidegate.results.stats import Interval
from tidegate.show import view
from tidegate.show.palette import HUES, HUES_ON_DARK
from tidegate.show.report import scatter, tables
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.show.view import RunLike

SHOWN = 40
"""Members with a row of their own in a session; the rest are in its sums."""
_POINTS = 200
"""At most so many points of a line."""
_ALLOWED = 5.0
"""% of the session bandwidth that RTCP may use (RFC 3550 section 6.2)."""


def section(groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    """Table and figures; nothing where there are no sessions."""
    runs = [run for one in groups.values() for run in one]
    sessions = view.sessions(runs[0].summary)
    if not sessions:
        return Markup("")
    heads = [
        tag("th", "Member", scope="col"),
        tag("th", "Profile", class_="text", scope="col"),
        *(tag("th", tables.name(metric(one)), title=metric(one).definition, scope="col") for one in MEMBERS),
    ]
    rows: list[Content] = []
    for label, of in groups.items():
        for name, members in view.sessions(of[0].summary).items():
            what = name if len(groups) == 1 else f"{name}, {label}"
            rows.append(tag("tr", tag("th", what, colspan=len(heads), scope="rowgroup")))
            rows += [_row(of, member) for member in members[:SHOWN]]
            rows.append(_sum(of, name, len(members)))
    notes = []
    if len(runs) > len(groups):
        notes.append("Means over seeds.")
    if any(len(members) > SHOWN for members in sessions.values()):
        notes.append(f"Of each session the first {SHOWN} members; the last row is of all of them.")
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    parts: list[Content] = [tag("h2", "Members of sessions"), tag("div", table, class_="scroll")]
    if notes:
        parts.append(tag("p", " ".join(notes), class_="soft"))
    return tag("section", *parts, *_figures(runs[0]))


def _row(runs: Sequence[RunLike], member: Mapping[str, Any]) -> Markup:
    cells = []
    for name in MEMBERS:
        values = [view.member(run, member["flow"]).get(name) for run in runs]
        cells.append(tag("td", tables.write(metric(name), Interval.of(values).mean)))
    return tag("tr", tag("td", member["member"]), tag("td", member["profile"], class_="text"), *cells)


def _sum(runs: Sequence[RunLike], session: str, count: int) -> Markup:
    totals = [view.session_sums(view.sessions(run.summary)[session]) for run in runs]
    cells = []
    for name in MEMBERS:
        value = Interval.of(total[name] for total in totals).mean
        cells.append(tag("th", tables.write(metric(name), value)))
    return tag("tr", tag("th", f"all {count}"), tag("th", ""), *cells)


def _figures(run: RunLike) -> Iterator[Markup]:
    """RTCP over time, and how long reports waited, of the first run."""
    if not view.has(run, "rtcp"):
        return
    sessions = view.sessions(run.summary)
    names = list(sessions)[: len(HUES)]
    hues = dict(zip(names, zip(HUES, HUES_ON_DARK, strict=True), strict=False))
    shares = {name: _shares(run, sessions[name]) for name in names}
    figures = [
        tag(
            "figure",
            tag("h3", "RTCP over time"),
            scatter.lines(shares, hues, x="Time (s)", y="RTCP so far (% of session bandwidth)", limit=_ALLOWED),
            tag("figcaption", "All members together, from the start of the run; dashed: what RFC 3550 allows."),
        )
    ]
    waits = {name: _waits(run, sessions[name]) for name in names} if view.has(run, "losses") else {}
    waits = {name: curve for name, curve in waits.items() if curve}
    if waits:
        figures.append(
            tag(
                "figure",
                tag("h3", "Waiting time of reports, distribution"),
                scatter.lines(waits, hues, x="From detection to sending (ms)", y="Share of the reports sent (%)"),
                tag("figcaption", "Of each lost packet that a member reported."),
            )
        )
    yield tag("div", *figures, class_="pair")


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
