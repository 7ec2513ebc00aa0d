"""Result tables: the same rows as text for a terminal, Markdown, CSV, or data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tidegate.results.metrics import HEADLINE, PICTURES, Metric, finite, metric
from tidegate.results.quality import verdict
from tidegate.results.stats import Interval, best
from tidegate.show import _view

if TYPE_CHECKING:
    from tidegate.running import Run

FAILED = "failed"


@dataclass(frozen=True)
class Row:
    """One metric over all controllers."""

    key: str
    """`metric`, `FLOW:metric` for another flow, or `fairness:metric`."""
    label: str
    """The metric's name, with the flow it belongs to."""
    metric: Metric
    """Its label, unit and definition."""
    cells: Mapping[str, Interval]
    """Mean and interval over seeds, by controller."""

    @property
    def best(self) -> frozenset[str]:
        """The controllers with the best mean; see [best][tidegate.results.stats.best]."""
        return best(self.cells, self.metric.better)


@dataclass(frozen=True)
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
    warnings: Sequence[str] = ()
    """What the runs warn of."""
    recordings: Sequence[str] = ()
    """How much the runs play of recorded networks."""

    @classmethod
    def of(cls, runs: Mapping[str, Sequence[Run]], failed: Mapping[str, str] | None = None) -> ComparisonTable:
        """Over the runs of each controller, with a column for each that failed."""
        failed = failed or {}
        none = dict.fromkeys(failed, Interval.of(()))
        rows = [_row(name, runs, None) for name in (*HEADLINE, *PICTURES)]
        first = next(iter(runs.values()))[0]
        others = [flow for flow in first.flows if flow != first.subject]
        rows += [_row("receive_rate_bps", runs, flow) for flow in others]
        if any(finite(run.summary.get("fairness", {}).get("jain_5s")) for run in _all(runs)):
            cells = {
                name: Interval.of(finite(run.summary["fairness"].get("jain_5s")) for run in some)
                for name, some in runs.items()
            }
            one = metric("jain_5s")
            rows.append(Row("fairness:jain_5s", one.label, one, cells))
        kept = [
            replace(row, cells={**row.cells, **none}) for row in rows if any(cell.count for cell in row.cells.values())
        ]
        warnings = _view.warnings(run.summary for run in _all(runs))
        recordings = _view.recordings(run.summary for run in _all(runs))
        verdicts = {name: verdict(run.metrics().get("quality") for run in some) for name, some in runs.items()}
        return cls([*runs, *failed], kept, failed, {**verdicts, **dict.fromkeys(failed, FAILED)}, warnings, recordings)

    def cell(self, row: Row, controller: str) -> str:
        """The text of a cell: mean and interval, or that the controller failed."""
        return FAILED if controller in self.failed else row.metric.show_interval(row.cells[controller])

    def to_markdown(self) -> str:
        """As a Markdown table; the best value of each row in bold."""
        head = ["metric", "unit", *self.controllers]
        lines = [pipes(head), pipes(["---", "---", *["---:"] * len(self.controllers)])]
        for row in self.rows:
            cells = []
            for name in self.controllers:
                text = self.cell(row, name)
                cells.append(f"**{text}**" if name in row.best else text)
            lines.append(pipes([row.label, row.metric.unit, *cells]))
        if self.verdicts:
            lines.append(pipes([metric("quality").label, "", *(self.verdicts[name] for name in self.controllers)]))
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
                "best": name in row.best,
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
    cells = {label: Interval.of(finite(run.metrics(flow).get(name)) for run in some) for label, some in runs.items()}
    key = name if flow is None else f"{flow}:{name}"
    return Row(key, one.label if flow is None else f"{one.label} of {flow}", one, cells)


def pipes(cells: Iterable[str]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
