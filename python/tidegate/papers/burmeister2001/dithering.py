"""Sections 7 and 8: effects of k and l on suppression and delay, tables 7 to 13."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.paper import Drawing, Measure, Plan, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.papers.burmeister2001.groups import Part, SessionSummary, session
from tidegate.papers.burmeister2001.topologies import BRANCHES, CENTRE, Cable, cables
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario
from tidegate.units import Rate

GRID = ("0.10", "0.25", "0.50", "0.75", "1.00", "1.25", "1.50", "1.75", "2.00", "3.00", "4.00")
"""Values of k and of l."""
LOSERS: Mapping[int, tuple[str, str]] = {1: ("A2", "A5"), 2: ("A5", "A6"), 3: ("A5", "A6")}
"""An and Af of each scenario: the nearer and the farther of the two members that see the losses."""
DELAYS_3 = ("20ms", "40ms")
"""Delays from A2 to A5 and A6 in scenario 3 (section 7)."""


@dataclass(frozen=True)
class UnstatedSettings:
    """Values for the settings that the document does not state."""

    bandwidth: str = "122kbps"
    """Bandwidth of the session, and rate at which A1 sends."""
    size: int = 750
    """Bytes of an RTP packet on the wire."""
    centre: Cable = field(default_factory=lambda: replace(CENTRE, delay="10ms", byte_error=8.8e-6))
    """Cable from A1 to A2."""
    branch: Cable = field(default_factory=lambda: replace(BRANCHES["A2"], capacity="188kbps"))
    """Cable from A2 to A5 and A6, except for its delay."""
    delays: tuple[str, str] = ("80ms", "88ms")
    """Delays from A2 to A5 and A6 in scenarios 1 and 2."""

    def scenario(self, parameter: str, value: str, number: int, *, redraw: bool = True) -> Scenario:
        """Scenario 1, 2 or 3 with a value of `k` or `l`.

        For `k` both losers are declared senders, for `l` all other members are receivers. With `redraw`, the interval
        of l is drawn for each feedback, as in the document's tables of l; without, it is RFC 4585's.
        """
        near, far = DELAYS_3 if number == 3 else self.delays  # noqa: PLR2004
        cable = cables("T-16", A2=self.centre, A5=replace(self.branch, delay=near), A6=replace(self.branch, delay=far))
        media = {"rate": self.bandwidth, "packet_size": f"{self.size}B"}
        members: list[dict[str, Any]] = [{"name": "A1", "media": media}]
        members += [{"name": name, "declared_sender": parameter == "k"} for name in LOSERS[number]]
        members += [{"name": "A3"}, {"name": "A9"}]
        rules = {parameter: float(value), "redraw": redraw and parameter == "l"}
        return session("dithering", "T-16", cable, Rate.parse(self.bandwidth), members, avpf=rules)


CHOSEN = UnstatedSettings()

TABLES: Mapping[str, tuple[str, str]] = {
    "table7": ("k", "near"),
    "table8": ("k", "far"),
    "table8-failures": ("k", "failure"),
    "table9": ("k", "delay"),
    "table10": ("l", "far"),
    "table11": ("l", "near"),
    "table12": ("l", "failure"),
    "table13": ("l", "delay"),
}
"""Parameter and column of `outcome` by table. Table 10's caption says An; its text and its numbers are Af's."""
COPIED = ("table13", 2)
"""Table and scenario of a column that repeats table 9's digit for digit; it is left out."""
TOLERANCE = 0.05
"""Relative distance from the value at 4 within which a value counts as saturated."""


def outcome(run: SessionSummary, number: int) -> dict[str, float]:
    """The columns of the tables for a run of a scenario.

    The three rates of suppression and failure add up to 1 in the document. So a failure is a loss that An and Af both
    reported, or that neither could report.
    """
    near, far = (run.members[name] for name in LOSERS[number])
    losses = max(near.losses, far.losses)
    suppressed = near.suppressed / losses, far.suppressed / losses
    delay = run.members["A1"].report_delay_s
    return {
        "near": suppressed[0],
        "far": suppressed[1],
        "failure": 1.0 - sum(suppressed),
        "delay": float("nan") if delay is None else delay,
    }


def rho(values: Sequence[float]) -> float:
    """Spearman's rank correlation of values with their order; 0 if all are equal.

    >>> rho([1, 2, 2, 5]), rho([3, 2, 1]), rho([1, 1, 1])
    (0.948..., -1.0, 0.0)
    """
    array = np.asarray(values, dtype=float)
    less, same = (array[:, None] > array).sum(axis=1), (array[:, None] == array).sum(axis=1)
    ranks = less + (same - 1) / 2
    if ranks.std() == 0:
        return 0.0
    return float(np.corrcoef(np.arange(len(array)), ranks)[0, 1])


def saturation(values: npt.ArrayLike) -> int:
    """Index of the first value within 5 % of the last one.

    >>> saturation([0.2, 0.96, 0.9, 1.0])
    1
    """
    array = np.asarray(values, dtype=float)
    close = np.abs(array - array[-1]) <= TOLERANCE * abs(array[-1])
    return int(np.argmax(close))


def _rms(deviations: npt.ArrayLike) -> float:
    return float(np.sqrt(np.mean(np.square(deviations))))


def _deviations(columns: Sequence[Sequence[float]], printed: Sequence[float]) -> list[float]:
    """Root mean square deviation of each column from the printed one."""
    return [_rms(np.subtract(column, printed)) for column in columns]


def jobs(plan: Plan) -> Mapping[Any, Then[Run, SessionSummary]]:
    """Jobs of tables 7 to 13."""
    rules = (("k", "k", False), ("l", "l", True), ("l of RFC 4585", "l", False))
    return {
        ("dither", rule, value, number, seed): Then(
            RunJob(CHOSEN.scenario(parameter, value, number, redraw=redraw), seed), SessionSummary.from_run
        )
        for seed, number, value, (rule, parameter, redraw) in product(plan.seeds, LOSERS, GRID, rules)
    }


class DitheringResults(Part):
    """Results of tables 7 to 13."""

    @cached_property
    def cells(self) -> dict[tuple[str, str, int], Measure]:
        """Measures by table (`table10 of RFC 4585` and so on for RFC 4585's rule), value and scenario."""
        cells = {}
        for table, (parameter, column) in TABLES.items():
            for rule in ("k",) if parameter == "k" else ("l", "l of RFC 4585"):
                name = table + rule.removeprefix(parameter)
                for value, number in product(GRID, LOSERS):
                    values = [outcome(run, number)[column] for run in self.runs["dither", rule, value, number]]
                    cells[name, value, number] = Measure.of(values, "s" if column == "delay" else "")
        return cells

    def column(self, table: str, number: int) -> list[float]:
        """Our values of a column, one for each value of k or l."""
        return [self.cells[table, value, number].value.mean for value in GRID]

    def singles(self, table: str, number: int) -> list[list[float]]:
        """Our values of a column, for each seed."""
        rule, column = TABLES[table]
        return [
            [outcome(self.done["dither", rule, value, number, seed], number)[column] for value in GRID]
            for seed in self.plan.seeds
        ]

    def printed(self, table: str, number: int) -> list[float] | None:
        """The document's values of a column; `None` for the copied one."""
        if (table, number) == COPIED:
            return None
        return [self.published[f"{table}/{value}/{number}"] for value in GRID]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for (table, value, number), measure in self.cells.items():
            yield f"{table}/{value}/{number}", measure
        correlation = "Spearman's rank correlation with k or l"
        for table, number in product(TABLES, LOSERS):
            printed = self.printed(table, number)
            if printed is None:
                continue
            singles = self.singles(table, number)
            others = self.singles(table, {2: 3, 3: 2}.get(number, number))
            for name, statistics, description in (
                ("ours.rho", map(rho, singles), correlation),
                ("swapped", _deviations(others, printed), "rms deviation from the document, scenarios 2 and 3 swapped"),
                ("rms", _deviations(singles, printed), "rms deviation from the document"),
            ):
                yield f"{table}.{number}.{name}", Measure.median(statistics, "", f"{description}, median over runs")
            yield f"{table}.{number}.printed.rho", Measure.exact(rho(printed), "", correlation)

    def tables(self) -> Iterator[Table]:
        """Comparisons of columns, and RFC 4585's l beside the document's."""
        rows: list[list[CellValue]] = []
        for table, number in product(TABLES, LOSERS):
            printed, ours = self.printed(table, number), self.column(table, number)
            if printed is None:
                rows.append([table, number, "no: a copy of a column of table 9", *[None] * 5])
            else:
                judged = "yes" if abs(rho(printed)) > 0.8 else "no"  # noqa: PLR2004
                steps = GRID[saturation(printed)], GRID[saturation(ours)]
                deviation = _rms(np.subtract(ours, printed))
                rows.append([table, number, judged, rho(printed), rho(ours), *steps, deviation])
        heads = [
            "table",
            "scenario",
            "judged",
            "rank correlation, published",
            "rank correlation, ours",
            "saturation at, published",
            "saturation at, ours",
        ]
        title = "Columns of tables 7 to 13: rank correlation, and saturation (first value within 5 % of the value at 4)"
        yield Table("columns", title, [*heads, "rms deviation"], rows)
        tables_of_l = [table for table, (parameter, _) in TABLES.items() if parameter == "l"]
        rules = {"": ", random interval", " of RFC 4585": ", RFC 4585"}
        columns = list(product(LOSERS, rules))
        rows = [
            [table, value, *(self.cells[f"{table}{rule}", value, number] for number, rule in columns)]
            for table, value in product(tables_of_l, GRID)
        ]
        heads = ["table", "l", *(f"scenario {number}{rules[rule]}" for number, rule in columns)]
        yield Table("rules-of-l", "Rules of l: tables 10 to 13 by the document's rule and by RFC 4585's", heads, rows)

    def figures(self) -> Iterator[Drawing]:
        """Each table as a figure."""
        x = [float(value) for value in GRID]
        for table, (parameter, column) in TABLES.items():
            label = {
                "near": "Suppressed at member An",
                "far": "Suppressed at member Af",
                "failure": "Suppression failures",
                "delay": "Mean loss report delay (s)",
            }[column]
            where = "Table 8, the second" if table == "table8-failures" else f"Table {table.removeprefix('table')}"
            sheet = Sheet(where, f"{label} by {parameter}", parameter, label, ylim=(0, None))
            for number in LOSERS:
                name = f"scenario {number}"
                sheet.series(name, x, self.singles(table, number))
                printed = self.printed(table, number)
                if printed is not None:
                    sheet.published(name, x, printed)
            yield sheet.drawing(table, "Lines: our values. Markers: values of the document.")
        sheet = Sheet(
            "Table 12, scenario 2",
            "Suppression failures by l with two intervals",
            "l",
            "Suppression failures",
            ylim=(0, None),
        )
        for name, table in (
            ("random for each feedback", "table12"),
            ("current interval (RFC 4585)", "table12 of RFC 4585"),
        ):
            sheet.series(name, x, self.column(table, 2))
        sheet.published("random for each feedback", x, self.printed("table12", 2) or [])
        yield sheet.drawing(
            "rules-of-l", "By RFC 4585 the values are constant from l = 1 on, in the document from l = 3 on."
        )
