"""Tables of a report: controllers side by side, every flow, and the network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tidegate.results.metrics import metric
from tidegate.show import _carried, played, view
from tidegate.show.palette import Look, looks_of
from tidegate.show.report import tables
from tidegate.show.report.markup import Content, Markup, join, tag, text
from tidegate.show.table import Row
from tidegate.show.view import RunLike


def dash(one: Look) -> list[float]:
    """Strokes and gaps in pixels of a line two wide."""
    return [2 * length for length in one.dashes]


def _swatch(own: Look) -> Markup:
    """A piece of its line."""
    dashes = " ".join(f"{length:g}" for length in dash(own)) or None
    hue = (own.colour, own.on_dark)
    line = tag(
        "line", x1=0, y1=5, x2=30, y2=5, class_="line", data_hue=" ".join(hue), stroke=hue[0], stroke_dasharray=dashes
    )
    return tag("svg", line, class_="swatch", viewBox="0 0 30 10", aria_hidden="true")


def named(label: str, own: Mapping[str, Look]) -> Markup:
    """A controller with a piece of its line."""
    return join([_swatch(own[label]), text(label)])


_ABREAST = 5
"""Controllers side by side in a table that is to fit a page of paper."""


def headline(groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    """The table of headline metrics: a column a controller, several tables where there are many."""
    labels = list(groups)
    parts = math.ceil(len(labels) / _ABREAST)
    each = math.ceil(len(labels) / parts)
    rows = tables.headline(groups)
    made = [_numbers(groups, labels[at : at + each], rows) for at in range(0, len(labels), each)]
    seeds = max(len(members) for members in groups.values())
    note = ["Of the subject flow."]
    if seeds > 1:
        note.append(f"Means over {seeds} seeds ± the half-width of their 95 % interval (Student's t).")
    if len(groups) > 1:
        unsure = any(row.best.labels and not row.best.sure for row in rows)
        maybe = ", ☆ the best mean, perhaps by luck" if unsure else ""
        note.append(f"★ marks the best{maybe} (paired differences, seed by seed).")
    note += [f"{label} {why}." for label, why in _carried.too_little(groups).items()]
    return tag(
        "section",
        tag("h2", "In numbers"),
        *(tag("div", table, class_="scroll") for table in made),
        tag("p", " ".join(note), class_="soft"),
    )


def _numbers(groups: Mapping[str, Sequence[RunLike]], labels: Sequence[str], rows: Sequence[Row]) -> Markup:
    """The columns of some of the controllers."""
    own = looks_of(groups)
    heads = [tag("th", "", scope="col"), *(tag("th", named(label, own), scope="col") for label in labels)]
    lines = []
    for row in rows:
        name = tag("span", tables.name(row.metric), class_="tip", title=row.metric.definition, tabindex=0)
        cells: list[Content] = [tag("th", name, scope="row")]
        for label in labels:
            cell = row.cells[label]
            written: list[Content] = [tables.write(row.metric, cell.mean)]
            if cell.half is not None:
                written.append(tag("span", f" ± {row.metric.show(cell.half)}", class_="interval"))
            mark = ("best" if row.best.sure else "best unsure") if label in row.best.labels else None
            mark = "out" if label in row.out else mark
            cells.append(tag("td", *written, class_=mark))
        lines.append(tag("tr", *cells))
    for about in tables.defined(groups, tables.VERDICTS):
        name = tag("span", tables.name(about), class_="tip", title=about.definition, tabindex=0)
        several = (groups[label] for label in labels)
        said = [tables.verdict_of(members, view.subject_of(members[0]), about.name) for members in several]
        lines.append(tag("tr", tag("th", name, scope="row"), *(tag("td", words) for words in said), class_="words"))
    return tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines), class_="headline")


def flows(groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    """The section with a row for every flow."""
    own = looks_of(groups)
    several = len(groups) > 1
    shown = tables.defined(groups, tables.FLOWS)
    heads = [
        tag("th", "Flow", scope="col"),
        tag("th", "Kind", class_="text", scope="col"),
        tag("th", "Controller", class_="text", scope="col"),
    ]
    verdicts = tables.defined(groups, tables.VERDICTS)
    heads += [tag("th", tables.name(about), title=about.definition, scope="col") for about in (*shown, *verdicts)]
    rows = []
    for label, members in groups.items():
        if several:
            rows.append(tag("tr", tag("th", named(label, own), colspan=len(heads), scope="rowgroup")))
        for entry in view.point_to_point(members[0]):
            name = str(entry["flow"])
            cells = [tag("td", tables.write(about, tables.cell(members, name, about.name).mean)) for about in shown]
            cells += [tag("td", tables.verdict_of(members, name, about.name)) for about in verdicts]
            controller = entry.get("controller") or tables.NOTHING
            texts = [
                tag("td", name),
                *(tag("td", t, class_="text") for t in (entry["kind"], controller)),
            ]
            rows.append(tag("tr", *texts, *cells))
    if not rows:
        return Markup("")
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    seeds = max(len(members) for members in groups.values())
    note = tag("p", f"Means over {seeds} seeds.", class_="soft") if seeds > 1 else Markup("")
    return tag("section", tag("h2", "Every flow"), tag("div", table, class_="scroll"), note)


def network(every: Sequence[RunLike]) -> Markup:
    """The section about the links; nothing where there are none."""
    if not any(run.summary.get("links") for run in every):
        return Markup("")
    columns = {
        "capacity_bps": "Capacity, mean",
        "carried_bps": "Carried",
        "utilisation": "Utilisation",
        "dropped_queue": "Dropped by the queue",
        "dropped_wire": "Lost on the wire",
    }
    if any(link.get("marked") for run in every for link in run.summary["links"]):
        columns["marked"] = "Marked by the queue"
    if any(link.get("bleached") for run in every for link in run.summary["links"]):
        columns["bleached"] = "ECN fields cleared"
    rows = []
    for entry in every[0].summary.get("links", ()):
        cells = []
        for name in columns:
            values = [link.get(name) for run in every for link in run.summary["links"] if link["link"] == entry["link"]]
            known = [float(value) for value in values if value is not None]
            mean = sum(known) / len(known) if known else math.nan
            unlimited = name == "capacity_bps" and not known
            cells.append(tag("td", "unlimited" if unlimited else tables.write(metric(name), mean)))
        rows.append(tag("tr", tag("td", entry["link"]), *cells))
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", head, scope="col") for head in ("Link", *columns.values())))),
        tag("tbody", *rows),
    )
    notes = ["Means over all runs."] if len(every) > 1 else []
    notes += [f"{one}." for one in played.told(run.summary for run in every)]
    return tag(
        "section",
        tag("h2", "The network"),
        tag("div", table, class_="scroll"),
        tag("p", " ".join(notes), class_="soft"),
    )
