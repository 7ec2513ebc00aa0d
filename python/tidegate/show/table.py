"""Result tables: the same rows as text for a terminal, Markdown, CSV, or data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidegate.results.metrics import HEADLINE, PICTURES, Metric, finite, metric
from tidegate.results.quality import verdict_on
from tidegate.results.stats import Best, BySeed, Interval
from tidegate.show import _carried, played, view

if TYPE_CHECKING:
    from tidegate.runs import Run

FAILED = "failed"

LINKS = ("capacity_bps", "carried_bps", "utilisation", "dropped_queue", "dropped_wire", "marked")
"""What tables of links show."""


@dataclass(frozen=True)
class Row:
    """One metric over all controllers."""

    key: str
    """`metric`, `FLOW:metric` for another flow, or `fairness:metric`."""
    label: str
    """The metric's name, with the flow it belongs to."""
    metric: Metric
    """Its label, unit and definition."""
    values: Mapping[str, BySeed]
    """The numbers by seed, by controller."""
    out: frozenset[str] = frozenset()
    """Who is not compared in it, because it carried too little."""

    @cached_property
    def cells(self) -> Mapping[str, Interval]:
        """Mean and interval over seeds, by controller."""
        return {name: Interval.of(by_seed.values()) for name, by_seed in self.values.items()}

    @cached_property
    def best(self) -> Best:
        """Who is best at it of those that carried enough; see [best][tidegate.results.stats.best]."""
        return self.metric.best({name: of for name, of in self.values.items() if name not in self.out})


@dataclass(frozen=True, repr=False)
class ComparisonTable:
    """Means over seeds with 95 % intervals, a row for each metric and a column for each controller."""

    controllers: Sequence[str]
    """The controllers, a column each."""
    rows: Sequence[Row]
    """The metrics, a row each."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why a controller has no values, by its name; it has a column, too."""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    """By controller whether its subject was fit for a call; see [verdict][tidegate.results.quality.verdict]."""
    too_little: Mapping[str, str] = field(default_factory=dict)
    """Who carried too little for its delay, loss and freezes to be compared, and how little in words."""
    warnings: Sequence[str] = ()
    """What the runs warn of, and what they cannot tell."""
    recordings: Sequence[str] = ()
    """How much the runs play of recorded networks."""

    @classmethod
    def of(
        cls, runs: Mapping[str, Sequence[Run]], failed: Mapping[str, str] | None = None, warnings: Sequence[str] = ()
    ) -> ComparisonTable:
        """Over the runs of each controller, with a column for each that failed."""
        failed = failed or {}
        rows = [_row(name, runs, None) for name in (*HEADLINE, *PICTURES)]
        first = next(iter(runs.values()))[0]
        # what stands for a call of a real program has a flow of its own for what comes back
        others = [
            flow for flow in first.flows if flow != first.subject and all(flow in run.flows for run in _all(runs))
        ]
        rows += [_row("receive_rate_bps", runs, flow) for flow in others]
        if any(finite(run.summary.get("fairness", {}).get("jain_5s")) for run in _all(runs)):
            one = metric("jain_5s")
            shares = {
                name: view.by_seed(some, lambda run: finite(run.summary["fairness"].get("jain_5s")))
                for name, some in runs.items()
            }
            rows.append(Row("fairness:jain_5s", one.label, one, shares))
        little = _carried.too_little(runs)
        kept = [
            Row(
                row.key,
                row.label,
                row.metric,
                {**row.values, **{name: {} for name in failed}},
                frozenset() if row.key in _carried.RATES else frozenset(little),
            )
            for row in rows
            if any(cell.count for cell in row.cells.values())
        ]
        recordings = played.told(run.summary for run in _all(runs))
        verdicts = {name: verdict_on(run.metrics() for run in some) for name, some in runs.items()}
        verdicts |= dict.fromkeys(failed, FAILED)
        return cls([*runs, *failed], kept, failed, verdicts, little, warnings, recordings)

    def cell(self, row: Row, controller: str) -> str:
        """The text of a cell: mean and interval, or that the controller failed."""
        return FAILED if controller in self.failed else row.metric.show_interval(row.cells[controller])

    def __repr__(self) -> str:
        return f"<tidegate ComparisonTable of {', '.join(self.controllers)}: {len(self.rows)} metrics>"

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        from tidegate.show import notebook

        return notebook.of_comparison(self, ", ".join(self.controllers))

    @property
    def unsure(self) -> bool:
        """Whether somebody has the best mean of a row perhaps by luck."""
        return any(row.best.labels and not row.best.sure for row in self.rows)

    def to_markdown(self) -> str:
        """As a Markdown table; the best value of each row in bold, with a `?` where it may be luck."""
        head = ["metric", "unit", *self.controllers]
        lines = [pipes(head), pipes(["---", "---", *["---:"] * len(self.controllers)])]
        for row in self.rows:
            cells = []
            for name in self.controllers:
                text = self.cell(row, name)
                cells.append(f"**{text}**{'' if row.best.sure else ' ?'}" if name in row.best.labels else text)
            lines.append(pipes([row.label, row.metric.unit, *cells]))
        if self.verdicts:
            lines.append(pipes([metric("quality").label, "", *(self.verdicts[name] for name in self.controllers)]))
        if any(row.best.labels for row in self.rows):
            lines.append(f"\nBold: best{', with ? the best mean, perhaps by luck' if self.unsure else ''}.")
        lines += [f"\n`{name}` {why}." for name, why in self.too_little.items()]
        lines += [f"\n`{name}` failed: {why}" for name, why in self.failed.items()]
        lines += [f"\n{one}." for one in self.recordings]
        lines += [f"\nWarning: {one}" for one in self.warnings]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """As CSV, one line for each metric and controller, in the summary's own units."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["metric", "controller", "mean", "half_interval_95", "runs"])
        for row in self.rows:
            for name in self.controllers:
                cell = row.cells[name]
                mean = repr(cell.mean) if cell.count else ""
                half = "" if cell.half is None else repr(cell.half)
                writer.writerow([row.key, name, mean, half, cell.count])
        return out.getvalue()

    def to_data(self) -> list[dict[str, Any]]:
        """As plain data, in the summary's own units."""
        return [
            {
                "metric": row.key,
                "controller": name,
                "mean": row.cells[name].mean if row.cells[name].count else None,
                "half_interval_95": row.cells[name].half,
                "runs": row.cells[name].count,
                "best": name in row.best.labels,
                "sure": row.best.sure if name in row.best.labels else None,
            }
            for row in self.rows
            for name in self.controllers
        ]


def flows_csv(keys: Sequence[str], runs: Iterable[tuple[Sequence[str], Mapping[str, Any]]]) -> str:
    """A line for each run and flow as CSV: what the run is one of, its seed, the flow, and all metrics that one has.

    Args:
        keys: The names of what tells runs of the same seed apart.
        runs: For each run the values of these, and its summary.
    """
    rows = [(values, summary, flow) for values, summary in runs for flow in summary["flows"]]
    names = dict.fromkeys(name for _, _, flow in rows for name in flow if name not in _FLOW)
    metrics = [name for name in names if any(_plain(flow.get(name)) for _, _, flow in rows)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*keys, "seed", "digest", "flow", "kind", "flow_controller", *metrics])
    for values, summary, flow in rows:
        about = [summary["seed"], summary.get("digest", ""), flow["flow"], flow["kind"], flow.get("controller") or ""]
        writer.writerow([*values, *about, *(_plain(flow.get(name)) for name in metrics)])
    return out.getvalue()


_FLOW = {"flow", "kind", "controller"}


def _plain(value: Any) -> str:
    """A metric as it stands in a file; nothing where it has no value."""
    if isinstance(value, str):
        return value
    number = finite(value)
    return "" if number is None else repr(number)


def _all(runs: Mapping[str, Sequence[Run]]) -> Iterable[Run]:
    return (run for some in runs.values() for run in some)


def _row(name: str, runs: Mapping[str, Sequence[Run]], flow: str | None) -> Row:
    one = metric(name)
    values = {
        label: view.by_seed(some, lambda run: finite(run.metrics(flow).get(name))) for label, some in runs.items()
    }
    key = name if flow is None else f"{flow}:{name}"
    return Row(key, one.label if flow is None else f"{one.label} of {flow}", one, values)


def pipes(cells: Iterable[str]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
