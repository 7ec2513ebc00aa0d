"""The table of a comparison: metrics over controllers, as blocks of a document, CSV, or data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from tidegate.output import csv
from tidegate.output.document import Block, Column, Document, Number, Paragraph, Phrase, Table, notes
from tidegate.output.document import Row as TableRow
from tidegate.output.notebook import Displayable
from tidegate.results.metrics import COUNTED, HEADLINE, PICTURES, Metric, finite, metric
from tidegate.results.quality import verdict, verdict_on
from tidegate.results.remarks import Remarks
from tidegate.results.stats import Best, BySeed, Interval, paired
from tidegate.show import _carried, played, view
from tidegate.show.view import RunLike

FAILED = "failed"

_DETAILS = (*COUNTED, "jitter_ms_mean", "mos", "convergence_time_s", "oscillation_hz", "feedback_overhead")
"""Further metrics, which only whole documents have."""
_TOO_FEW = (
    "A number of two seeds alone has no interval here where that would be wider than the number (12.7 standard "
    "errors); five seeds give one that is some seven times narrower."
)
_FREEZES = ("freeze_time_s", "freezes")
"""The picture that stands still as a browser counts it, which recorded and simulated calls both have."""
_ABREAST = 5
"""The largest number of controllers side by side in a table on paper."""


@dataclass(frozen=True)
class Row:
    """One metric over all controllers."""

    key: str
    """`metric`, `FLOW:metric` for another flow, or `fairness:metric`."""
    label: str
    """The metric's name, with its flow."""
    metric: Metric
    """Its label, unit and definition."""
    values: Mapping[str, BySeed]
    """The numbers by seed, by controller."""
    out: frozenset[str] = frozenset()
    """Controllers that are not compared in this metric because they carried too little."""
    recorded: frozenset[str] = frozenset()
    """Columns that are calls recorded elsewhere, which are not ranked."""

    @cached_property
    def cells(self) -> Mapping[str, Interval]:
        """Mean and interval over seeds, by controller."""
        return {name: Interval.of(by_seed.values()) for name, by_seed in self.values.items()}

    @cached_property
    def best(self) -> Best:
        """The best of the controllers that carried enough; see [best][tidegate.results.stats.best]."""
        ranked = (name for name in self.values if name not in self.out | self.recorded)
        return self.metric.best({name: self.values[name] for name in ranked})

    def mark(self, name: str) -> Any:
        """The mark of a controller's number; see [Number][tidegate.output.document.Number]."""
        if name in self.out:
            return "out"
        return "" if name not in self.best.labels else "best" if self.best.sure else "unsure"


@dataclass(frozen=True, repr=False)
class ComparisonTable(Displayable):
    """Means over seeds with 95 % intervals, a row for each metric and a column for each controller."""

    controllers: Sequence[str]
    """The controllers, a column each."""
    rows: Sequence[Row]
    """The metrics, a row each."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reasons why controllers have no values, by controller; these have columns, too."""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    """Whether the subject was within the limits of loss, delay and jitter, by controller; see
    [verdict][tidegate.results.quality.verdict]."""
    too_little: Mapping[str, str] = field(default_factory=dict)
    """Controllers that carried too little, each with a sentence: only their rates are compared."""
    remarks: Remarks = field(default_factory=Remarks)
    """Warnings and notes of the runs, and remarks on questions that they cannot answer."""
    recordings: Sequence[str] = ()
    """Sentences on the parts of recorded networks that the runs play."""
    details: Sequence[Row] = ()
    """Further metrics, which short forms leave out."""
    networks: Mapping[str, str] = field(default_factory=dict)
    """Whether the network by itself was within the limits of loss, delay and jitter, by controller."""
    against: str = ""
    """Column from which the differences of the others are shown, seed by seed; none if empty."""
    recorded: Sequence[str] = ()
    """Columns that are calls recorded elsewhere, beside simulated ones."""

    @classmethod
    def of(
        cls,
        runs: Mapping[str, Sequence[RunLike]],
        failed: Mapping[str, str] | None = None,
        remarks: Remarks | None = None,
        against: str = "",
    ) -> ComparisonTable:
        """Makes the table from the runs of each controller, with a column for each controller that failed.

        With `against` there are differences from that column, too.
        """
        failed = failed or {}
        recorded = frozenset(label for label, members in runs.items() if any(map(view.is_recorded, members)))
        simulated = {label: members for label, members in runs.items() if label not in recorded} or runs
        little = _carried.too_little(simulated)

        def row(name: str, part: Callable[[RunLike], Mapping[str, Any]], prefix: str = "", suffix: str = "") -> Row:
            """A metric of a part of each summary."""
            quantity, key = metric(name), f"{prefix}{name}"
            values = {
                label: view.by_seed(members, lambda run: finite(part(run).get(name))) for label, members in runs.items()
            }
            idle = frozenset() if key in _carried.RATES else frozenset(little)
            by_seed = {**values, **{label: {} for label in failed}}
            return Row(key, f"{quantity.label}{suffix}", quantity, by_seed, idle, recorded)

        def fairness(run: RunLike) -> Mapping[str, Any]:
            return dict(run.summary.get("fairness", {}))

        all_runs = [run for members in simulated.values() for run in members]
        first = next(iter(simulated.values()))[0]
        # runs of real programs have an extra flow for the way back, which simulated runs have not
        names = [str(entry["flow"]) for entry in first.summary["flows"]]
        others = [
            name for name in names if name != view.subject_of(first) and all(_flow(run, name) for run in all_runs)
        ]
        rows = [row(name, _subject) for name in (*HEADLINE, *PICTURES)]
        rows += [
            row("receive_rate_bps", partial(_flow, name=flow), f"{flow}:", f" of {_described(all_runs, flow)}")
            for flow in others
        ]
        rows.append(row("jain_5s", fairness, "fairness:"))
        rows[2:2] = [row("marked_fraction", _marking)] if any(_subject(run).get("marked") for run in all_runs) else []
        rows += [row(name, _subject) for name in _FREEZES] if recorded else []
        details = [*(row(name, _subject) for name in _DETAILS), row("ratio_5s", fairness, "fairness:")]
        subjects = {name: [*map(_subject, members)] for name, members in runs.items()}
        verdicts = {name: verdict_on(flows) for name, flows in subjects.items()}
        networks = {name: verdict(flow.get("quality_network") for flow in flows) for name, flows in subjects.items()}
        return cls(
            [*runs, *failed],
            [line for line in rows if any(cell.count for cell in line.cells.values())],
            failed,
            verdicts | dict.fromkeys(failed, FAILED),
            little,
            remarks or Remarks(),
            played.sentences(run.summary for run in all_runs),
            [line for line in details if any(cell.count for cell in line.cells.values())],
            networks,
            against if against in runs else "",
            [label for label in runs if label in recorded and len(runs) > 1],
        )

    def __repr__(self) -> str:
        return f"<tidegate ComparisonTable of {', '.join(self.controllers)}: {len(self.rows)} metrics>"

    def blocks(self, looks: Mapping[str, Any] | None = None) -> Iterator[Block]:
        """Makes the blocks of a document.

        Args:
            looks: The look of each controller's line, for forms that draw it.
        """
        heads = [Column(""), *(Column(Phrase(name, look=(looks or {}).get(name))) for name in self.controllers)]
        rows = [self._row(row) for row in self.rows] + [self._row(row, detail=True) for row in self.details]
        for name, answers in (("quality", self.verdicts), ("quality_network", self.networks)):
            if set(answers.values()) - {"-"}:
                quantity = metric(name)
                cells = (answers.get(label, FAILED) for label in self.controllers)
                rows.append(TableRow([quantity.label, *cells], quantity, name != "quality", "words"))
        yield Table(heads, rows, "headline", abreast=_ABREAST)
        if self.against and len(self.controllers) - len(self.recorded) > 1:
            yield from self._differences(looks or {})
        for name, why in self.too_little.items():
            yield Paragraph([Phrase(name, "code"), f" {why}."], "soft")
        for name in self.recorded:
            why = "was recorded and not simulated: it is not ranked, and nothing relates it to a seed"
            yield Paragraph([Phrase(name, "code"), f" {why}.{self._on_freezes(name)}"], "soft")
        for name, why in self.failed.items():
            # whole documents name failures at their beginning
            yield Paragraph([Phrase(name, "code"), f" failed: {why}"], "soft", rest=True)
        yield from notes(*(f"{share}." for share in self.recordings))
        idle_rows, idle_details = (
            any(_idle(cell) for row in rows for cell in row.cells.values()) for rows in (self.rows, self.details)
        )
        if idle_rows or idle_details:
            yield from notes(_TOO_FEW, detail=not idle_rows)

    def difference(self, row: Row, name: str) -> Interval:
        """Difference of a column from `against` in a metric: the mean over seeds of both, with its 95 % interval."""
        return paired(row.values.get(name, {}), row.values[self.against])

    def _differences(self, looks: Mapping[str, Any]) -> Iterator[Block]:
        """Makes the table of differences from the first column."""
        names = [name for name in self.controllers if name != self.against and name not in self.recorded]
        heads = [Column(""), *(Column(Phrase(name, look=looks.get(name))) for name in names)]
        rows = []
        for row in self.rows:
            cells = []
            for name in names:
                value = self.difference(row, name)
                sure = value.half is not None and abs(value.mean) > value.half
                failed = FAILED if name in self.failed else ""
                cells.append(Number(row.metric, value, "sure" if sure else "", failed, signed=True))
            # a number of recorded columns alone has no difference
            if self.failed or any(cell.value.count for cell in cells):
                rows.append(TableRow([row.label, *cells], row.metric))
        yield Paragraph(["Differences from ", Phrase(self.against, "code"), ", of runs with the same seed:"])
        # signs and three digits more than a mean's: five of them would be wider than a page of 1300 pixels
        yield Table(heads, rows, "headline", abreast=_ABREAST - 1)

    def _on_freezes(self, name: str) -> str:
        """A sentence on the still picture of a recorded call."""
        rows = {row.key: row for row in self.rows}
        if "freeze_time_s" in rows and rows["freeze_time_s"].cells[name].count:
            label = f"{metric('freeze_time_s').label!r} is defined alike for all columns"
            return f" Its browser counted its freezes: {label}; the time without a new picture needs each shown frame."
        return " It has no frozen time: there is no getStats that counts it, and packets do not tell what was shown."

    def _row(self, row: Row, *, detail: bool = False) -> TableRow:
        cells = [
            Number(row.metric, _telling(row.cells[name]), row.mark(name), FAILED if name in self.failed else "")
            for name in self.controllers
        ]
        return TableRow([row.label, *cells], row.metric, detail)

    def document(self) -> Document:
        """The table as a document."""
        return Document(", ".join(self.controllers), list(self.blocks()), remarks=self.remarks)

    def to_csv(self) -> str:
        """Formats as CSV, with one line for each metric and controller, in the units of the summary."""
        rows = [
            [row.key, name, finite(cell.mean), cell.half, cell.count]
            for row in self.rows
            for name, cell in row.cells.items()
        ]
        return csv.lines(["metric", "controller", "mean", "half_interval_95", "runs"], rows)

    def to_data(self) -> list[dict[str, Any]]:
        """The table as plain data, in the units of the summary."""
        return [
            {
                "metric": row.key,
                "controller": name,
                "mean": finite(cell.mean),
                "half_interval_95": cell.half,
                "runs": cell.count,
                "best": name in row.best.labels,
                "sure": row.best.sure if name in row.best.labels else None,
                **self._difference_data(row, name),
            }
            for row in self.rows
            for name, cell in row.cells.items()
        ]

    def _difference_data(self, row: Row, name: str) -> dict[str, Any]:
        if not self.against or name == self.against or name in self.recorded:
            return {}
        value = self.difference(row, name)
        return {"difference": finite(value.mean), "difference_half_interval_95": value.half}


def _idle(value: Interval) -> bool:
    """Whether an interval is of two seeds, and wider than the number itself."""
    return value.count == 2 and value.half is not None and value.half > abs(value.mean)  # noqa: PLR2004


def _telling(value: Interval) -> Interval:
    """The number, without an idle interval."""
    return Interval(value.mean, None, value.count) if _idle(value) else value


def _subject(run: RunLike) -> Mapping[str, Any]:
    return view.flow_summary(run, view.subject_of(run))


def _marking(run: RunLike) -> Mapping[str, Any]:
    """The share of marked packets of the subject flow."""
    marked, sent = (finite(_subject(run).get(name)) for name in ("marked", "packets_sent"))
    return {"marked_fraction": None if marked is None or not sent else marked / sent}


def _described(runs: Sequence[RunLike], flow: str) -> str:
    """A flow with its controller or kind, where that is the same in all runs."""
    names = {view.described(run, flow) for run in runs}
    return names.pop() if len(names) == 1 else flow


def _flow(run: RunLike, name: str) -> Mapping[str, Any]:
    """A flow's summary; empty where a run has no flow of that name."""
    return next((entry for entry in run.summary["flows"] if entry["flow"] == name), {})
