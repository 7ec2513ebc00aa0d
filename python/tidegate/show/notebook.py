"""What a notebook shows of a result that is the last line of a cell: a small table, and what it is.

Nothing in it knows whether the page is dark or light: lines and fills are translucent, and text has the page's colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.results.metrics import finite, metric
from tidegate.show import sweeps, view
from tidegate.show.report.markup import Content, Markup, tag, text
from tidegate.show.sweeps import SweepLike, Swept
from tidegate.show.view import RunLike

if TYPE_CHECKING:
    from tidegate._core import Table
    from tidegate.show.table import ComparisonTable

_ROWS = 20
"""How many lines of a long table are shown."""
_HEAD = 10
"""How many rows of a recorded table."""
_FLOWS = (
    "goodput_bps",
    "sending_rate_bps",
    "one_way_delay_ms_p50",
    "one_way_delay_ms_p95",
    "loss_fraction",
    "frame_delay_ms_p95",
    "freezes",
    "mos",
)
"""What is told of each flow of a run."""
_STYLE = Markup(
    ".tidegate-cell{overflow-x:auto}"
    ".tidegate-cell p{margin:.25em 0}"
    ".tidegate-cell .soft{opacity:.72;font-size:.9em}"
    ".tidegate-cell table{border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums}"
    ".tidegate-cell th,.tidegate-cell td{text-align:right;white-space:nowrap;padding:.3em .9em;color:inherit;"
    "border:0;border-bottom:1px solid rgba(128,136,150,.4)}"
    ".tidegate-cell th:first-child,.tidegate-cell td:first-child,.tidegate-cell .text{text-align:left}"
    ".tidegate-cell tbody th{font-weight:500}"
    ".tidegate-cell td.best{font-weight:650;background:rgba(15,140,80,.16)}"
    ".tidegate-cell td.best::after{content:' ★'}"
    ".tidegate-cell td.unsure{font-weight:inherit;background:none}"
    ".tidegate-cell td.unsure::after{content:' ☆'}"
    ".tidegate-cell td.out{opacity:.72}"
)


def fragment(title: Content, *content: Content, notes: Iterable[str] = ()) -> str:
    """A piece of a page: a title, tables, and a line for each note."""
    small = [tag("p", one, class_="soft") for one in notes if one]
    return tag("div", tag("style", _STYLE), tag("p", tag("b", title)), *content, *small, class_="tidegate-cell")


def grid(heads: Sequence[Content], rows: Sequence[Sequence[Content]], *, most: int = _ROWS) -> Markup:
    """A table whose first column says what a line is; of a long one its first lines, and how many there are.

    Args:
        heads: What stands over the columns.
        rows: The cells of each line; one that is a `td` already stays as it is.
        most: How many lines are shown.
    """
    lines = [tag("tr", tag("th", row[0], scope="row"), *(_cell(one) for one in row[1:])) for row in rows[:most]]
    if len(rows) > most:
        lines.append(tag("tr", tag("td", f"and {len(rows) - most} more", class_="text", colspan=len(heads))))
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    return tag("table", tag("thead", head), tag("tbody", *lines))


def _cell(content: Content) -> Markup:
    return content if isinstance(content, Markup) and content.startswith("<td") else tag("td", content)


def of_table(table: Table) -> str:
    """The first rows of a recorded table."""
    names = table.columns
    head = table[:_HEAD]
    columns = [head[name].tolist() for name in names]
    rows = [[str(at), *map(_value, row)] for at, row in enumerate(zip(*columns, strict=True))]
    made = grid(["row", *names], rows)
    more = f", of which the first {_HEAD} are shown" if len(table) > _HEAD else ""
    return fragment(f"{len(table)} rows, {len(names)} columns{more}", made)


def _value(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.7g}" if math.isfinite(value) else "-"


def of_run(run: RunLike, title: str, notes: Iterable[str]) -> str:
    """What became of each flow of a run.

    Args:
        run: The run.
        title: What it is.
        notes: What else there is to say.
    """
    flows = _flows(run)
    metrics = [about for about in map(metric, _FLOWS) if any(finite(one.get(about.name)) is not None for one in flows)]
    heads = [f"{about.label}, {about.unit}" if about.unit else about.label for about in metrics]
    rows = [[one["flow"], *(about.show(finite(one.get(about.name))) for about in metrics)] for one in flows]
    return fragment(title, grid(["flow", *heads], rows), notes=notes)


def _flows(run: RunLike) -> Sequence[Any]:
    """Its flows, the subject first."""
    flows = list(run.summary["flows"])
    name = view.subject_of(run) if flows else ""
    return sorted(flows, key=lambda one: one["flow"] != name)


def of_comparison(table: ComparisonTable, title: str) -> str:
    """Metrics and controllers, with what is best.

    Args:
        table: Its table.
        title: What was compared.
    """
    rows: list[list[Content]] = []
    for row in table.rows:
        unit = f", {row.metric.unit}" if row.metric.unit else ""
        cells = [_judged(table.cell(row, name), name in row.best.labels, row.best.sure) for name in table.controllers]
        rows.append([f"{row.label}{unit}", *cells])
    if table.verdicts:
        rows.append([metric("quality").label, *(table.verdicts[name] for name in table.controllers)])
    notes = []
    if any(row.best.labels for row in table.rows):
        notes.append(f"★ best{', ☆ the best mean, perhaps by luck' if table.unsure else ''}.")
    notes += [f"{name} {why}." for name, why in table.too_little.items()]
    notes += [f"{name} failed: {why}" for name, why in table.failed.items()]
    notes += [f"{one}." for one in table.recordings]
    notes += [f"Warning: {one}" for one in table.warnings]
    return fragment(title, grid(["", *table.controllers], rows, most=len(rows)), notes=notes)


def _judged(words: str, best: bool, sure: bool) -> Markup:
    return tag("td", words, class_=None if not best else "best" if sure else "best unsure")


def of_sweep(sweep: SweepLike, title: str) -> str:
    """A line for each combination of a sweep: means over its seeds."""
    swept = Swept.of(sweep)
    verdict = ["passed"] if swept.judged else []
    heads = [*sweep.keys, *verdict, "runs", *map(sweeps.head, swept.names)]
    rows = []
    for one in swept.combinations:
        cells = [sweeps.about(name).show_interval(one.mean(name)) for name in swept.names]
        rows.append([*one.settings.values(), *([one.verdict] if verdict else []), str(len(one.rows)), *cells])
    failed = [f"failed: {why}" for why in sweep.failed[:5]]
    more = [f"and {len(sweep.failed) - 5} more failed"] if len(sweep.failed) > 5 else []  # noqa: PLR2004
    return fragment(title, grid(heads, [list(map(text, row)) for row in rows]), notes=[*failed, *more])
