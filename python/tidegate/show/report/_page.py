"""The page: sections in the order in which a reader asks for them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.results.metrics import MEMBERS, metric
from tidegate.show import _view
from tidegate.show._palette import HUES, HUES_ON_DARK, Look, looks
from tidegate.show._view import RunLike
from tidegate.show.report import _members as of_members
from tidegate.show.report import _scatter as scatter
from tidegate.show.report import _series as series
from tidegate.show.report import _tables as tables
from tidegate.show.report._markup import Content, Markup, join, tag, text

if TYPE_CHECKING:
    from tidegate.show.report import Source

#: Nothing may be fetched, from anywhere: what the page needs is in it.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

# Past this ratio between the largest and the smallest delay a linear axis shows only one of the
# two.
_LOG_RATIO = 30.0
_CDF_POINTS = 240

_QUANTITIES = (
    (
        "rate",
        "Rate against capacity",
        "Received by the far end, the controller's target, and the capacity that there was.",
    ),
    ("delay", "One-way delay", "From the wire to arrival: mean of each bin, and its largest."),
    ("trip", "Round trip", "The largest of the bin, as reports have it."),
    ("pacer", "Waiting at the sender", "Media in the pacer: the most in the bin."),
    (
        "frame",
        "Frame delay",
        "From capture to the screen: the largest of the bin; where the picture stood still is shaded.",
    ),
    ("loss", "Packets lost", "Of the packets whose fate was settled in the bin."),
    ("queue", "Queues", "Bytes waiting at each link."),
)
_OF_ONE = {"trip", "pacer", "frame"}
"""What only a report on one controller shows."""


def _hue(colour: str) -> tuple[str, str]:
    """A colour for light pages and its counterpart for dark ones."""
    return colour, HUES_ON_DARK[HUES.index(colour)]


def _dash(one: Look) -> list[float]:
    """Strokes and gaps in pixels of a line two wide."""
    return [2 * length for length in one.dashes]


def render(source: Source) -> str:
    """The whole page."""
    groups = _view.grouped(source.runs)
    every = [run for members in groups.values() for run in members]
    link = _view.bottleneck(every)
    recorded = all(_view.has(run, "series") for run in every)
    # a flow that is copied on its way has no far end
    single = not any(_view.subject_of(run) in _view.copied(run.summary) for run in every)
    body = [_head(source, groups), *([_headline(groups)] if single else []), *_pictures(source)]
    data: dict[str, Any] = {
        "steps": series.STEPS,
        "columns": [],
        "cdf": {"x": [], "lines": []},
        "logDelay": False,
    }
    if recorded and single:
        data |= _data(groups, link)
        body.append(_charts(data, groups, link))
        body.append(_distributions(groups))
    elif not recorded:
        body.append(
            tag(
                "p",
                "The runs were recorded at level “summary”, so that there are no series to draw.",
                class_="soft",
            )
        )
    body += [
        _flows(groups),
        of_members.section(groups),
        _network(every),
        _reproduce(source, groups),
        _definitions(groups),
    ]
    title = _title(source, groups)
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content="tidegate"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(_asset("uplot/uPlot.min.css"))),
        tag("style", Markup(_asset("report.css"))),
    ]
    scripts: list[Markup] = [
        tag("script", Markup(_json(data)), type="application/json", id="data"),
        tag("script", Markup(_uplot())),
        tag("script", Markup(_asset("report.js"))),
    ]
    content = tag("body", tag("main", *body), *scripts)
    return f"<!doctype html>\n{tag('html', tag('head', *head), content, lang='en')}\n"


def _asset(name: str) -> str:
    return resources.files("tidegate.show.report").joinpath("assets", name).read_text(encoding="utf-8")


def _uplot() -> str:
    # its licence asks to go with every copy, and the page is one
    return f"/*\n{_asset('uplot/LICENSE')}\n*/\n{_asset('uplot/uPlot.iife.min.js')}"


def _json(value: object) -> str:
    # a name may hold "</script>": no "<" may reach the parser of HTML
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _title(source: Source, groups: Mapping[str, Sequence[RunLike]]) -> str:
    if source.title:
        return source.title
    names = list(groups)
    first = next(iter(groups.values()))[0]
    joined = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{joined} on {first.summary.get('name') or 'one network'}"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _head(source: Source, groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    first = next(iter(groups.values()))[0]
    facts = [
        f"{float(first.summary.get('duration_s') or math.nan):g} s of simulated time",
        _plural(max(len(members) for members in groups.values()), "seed"),
        _plural(len(first.summary["flows"]), "flow"),
    ]
    if version := source.versions.get("tidegate"):
        facts.append(f"tidegate {version}")
    failures = [tag("p", tag("strong", f"{name} failed"), f": {why}") for name, why in source.failed.items()]
    return tag("header", tag("h1", _title(source, groups)), tag("p", " · ".join(facts), class_="soft"), *failures)


def _swatch(own: Look) -> Markup:
    """A piece of its line."""
    dashes = " ".join(f"{length:g}" for length in _dash(own)) or None
    hue = (own.colour, own.on_dark)
    line = tag(
        "line", x1=0, y1=5, x2=30, y2=5, class_="line", data_hue=" ".join(hue), stroke=hue[0], stroke_dasharray=dashes
    )
    return tag("svg", line, class_="swatch", viewBox="0 0 30 10", aria_hidden="true")


def _named(label: str, own: Mapping[str, Look]) -> Markup:
    return join([_swatch(own[label]), text(label)])


def _hues(groups: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {label: (one.colour, one.on_dark) for label, one in looks(groups).items()}


_ABREAST = 5
"""Controllers side by side in a table that is to fit a page of paper."""


def _headline(groups: Mapping[str, Sequence[RunLike]]) -> Markup:
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
        note.append("★ marks the best mean, and every other whose interval overlaps with it.")
    return tag(
        "section",
        tag("h2", "In numbers"),
        *(tag("div", table, class_="scroll") for table in made),
        tag("p", " ".join(note), class_="soft"),
    )


def _numbers(groups: Mapping[str, Sequence[RunLike]], labels: Sequence[str], rows: Sequence[tables.Row]) -> Markup:
    """The columns of some of the controllers."""
    own = looks(groups)
    heads = [tag("th", "", scope="col"), *(tag("th", _named(label, own), scope="col") for label in labels)]
    lines = []
    for row in rows:
        name = tag("span", tables.name(row.about), class_="tip", title=row.about.definition, tabindex=0)
        cells: list[Content] = [tag("th", name, scope="row")]
        for label in labels:
            cell = row.cells[label]
            written: list[Content] = [tables.write(row.about, cell.mean)]
            if cell.half is not None:
                written.append(tag("span", f" ± {row.about.show(cell.half)}", class_="interval"))
            cells.append(tag("td", *written, class_="best" if label in row.best else None))
        lines.append(tag("tr", *cells))
    for about in tables.defined(groups, tables.VERDICTS):
        name = tag("span", tables.name(about), class_="tip", title=about.definition, tabindex=0)
        several = (groups[label] for label in labels)
        said = [tables.verdict_of(members, _view.subject_of(members[0]), about.name) for members in several]
        lines.append(tag("tr", tag("th", name, scope="row"), *(tag("td", words) for words in said)))
    return tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines), class_="headline")


_CAPTIONS = {
    "quality.png": "Each controller's first seed, means over half a second: what is seen, and what is due as encoded.",
    "contact-sheet.png": "The moments at which what was seen was worst beside what was sent.",
}


def _pictures(source: Source) -> list[Markup]:
    """Pictures that belong to the runs, as data of the page."""
    figures = [
        tag(
            "figure",
            tag(
                "img",
                src=f"data:image/png;base64,{base64.b64encode(data).decode()}",
                alt=_CAPTIONS.get(name, name),
                style="max-width:100%;height:auto",
            ),
            tag("figcaption", _CAPTIONS.get(name, name)),
        )
        for name, data in source.attached.items()
        if name.endswith(".png")
    ]
    return [tag("section", tag("h2", "What viewers saw"), *figures)] if figures else []


def _data(groups: Mapping[str, Sequence[RunLike]], link: str | None) -> dict[str, Any]:
    """What the charts are drawn from: columns of panels (one a seed), distributions of delay."""
    hues = _hues(groups)
    own = looks(groups)
    single = len(groups) == 1
    columns: list[dict[str, Any]] = []
    for label, members in groups.items():
        subjects = _media(members[0]) if single else [_view.subject_of(members[0])]
        flow_hues = _flow_hues(subjects, label, hues)
        columns.append(
            {
                "label": label,
                "flows": [{"name": n, "colour": flow_hues[n], "dash": _dash(own[label])} for n in subjects],
                "panels": [],
            }
        )
    used = 0
    for place in range(max(len(members) for members in groups.values())):
        new = [
            series.panel(members[place], [f["name"] for f in column["flows"]], link, ends=single)
            if place < len(members)
            else None
            for column, members in zip(columns, groups.values(), strict=True)
        ]
        used += series.size(new)
        if place and used > series.BUDGET:
            break
        for column, panel in zip(columns, new, strict=True):
            if panel is not None:
                column["panels"].append(panel)
    delays = {
        (label, flow["name"]): _view.mean_quantiles(members, flow["name"])
        for (label, members), column in zip(groups.items(), columns, strict=True)
        for flow in column["flows"]
    }
    joined = np.concatenate(list(delays.values()))
    least, most = (float(joined.min()), float(joined.max())) if len(joined) else (1.0, 10.0)
    least = max(least, 1e-3)
    # a log axis when a quick controller and a slow one would not fit on a linear one
    wide = most > _LOG_RATIO * least
    grid = np.geomspace(least / 1.1, max(most, 1.2 * least) * 1.1, _CDF_POINTS)
    lines = [
        {
            "label": flow["name"] if single else column["label"],
            "colour": flow["colour"],
            "dash": flow["dash"],
            "y": series.distribution(of, grid),
            "p95": round(float(of[list(_view.SHARES).index(0.95)]), 3),
        }
        for label, column in zip(groups, columns, strict=True)
        for flow in column["flows"]
        if len(of := delays[label, flow["name"]])
    ]
    return {
        "columns": columns,
        "cdf": {"x": [float(f"{v:.6g}") for v in grid], "lines": lines},
        "logDelay": bool(wide),
    }


def _media(run: RunLike) -> list[str]:
    """The flows that a report on one controller shows in full: media, as many as there are hues."""
    media = [str(entry["flow"]) for entry in run.summary["flows"] if entry["kind"] == "media"]
    return media[: len(HUES)] or [_view.subject_of(run)]


def _flow_hues(subjects: Sequence[str], label: str, hues: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    if len(subjects) == 1:
        return {subjects[0]: hues[label]}
    return {name: _hue(HUES[i % len(HUES)]) for i, name in enumerate(subjects)}


def _charts(data: Mapping[str, Any], groups: Mapping[str, Sequence[RunLike]], link: str | None) -> Markup:
    columns = data["columns"]
    hues = _hues(groups)
    seeds = [panel["seed"] for panel in columns[0]["panels"]]
    bar: list[Content] = []
    if len(seeds) > 1:
        options = [tag("option", str(seed), value=i) for i, seed in enumerate(seeds)]
        bar.append(tag("label", "Seed ", tag("select", *options, id="seed")))
    bar.append(tag("label", tag("input", type="checkbox", id="log"), " logarithmic delay"))
    bar.append(tag("button", "Whole run", id="reset", type="button", disabled=True))
    bar.append(
        tag(
            "span",
            "Drag over a chart to zoom; all follow. Double-click for the whole run.",
            class_="soft",
        )
    )
    rows: list[Content] = []
    heads = (
        [tag("p", label, class_="name", data_hue=" ".join(hues[label])) for label in groups] if len(groups) > 1 else []
    )
    for quantity, heading, caption in _QUANTITIES:
        if quantity in _OF_ONE and len(groups) > 1:
            continue
        figures = []
        for i, column in enumerate(columns):
            chart = tag(
                "div",
                class_="chart",
                data_chart=quantity,
                data_column=i,
                role="img",
                aria_label=f"{heading}, {column['label']}",
            )
            figures.append(tag("figure", *heads[i : i + 1], chart))
        rows.append(tag("section", tag("h3", heading, title=caption), tag("div", *figures, class_="columns")))
    bin_ms = columns[0]["panels"][0]["dt"] * 1e3
    total = max(len(members) for members in groups.values())
    note = f"Bins of {bin_ms:g} ms; a point stands at the beginning of its bin."
    if link:
        note += f" Capacity is the truth of link {link}, mean of each bin."
    if len(seeds) < total:
        note += f" To keep the file small it holds the series of {len(seeds)} of {total} seeds; the numbers are of all."
    noscript = tag(
        "noscript",
        tag("p", "The charts need JavaScript (all of it is inside this file); the tables do not."),
    )
    return tag(
        "section",
        tag("h2", "Over time"),
        noscript,
        tag("div", *bar, class_="bar"),
        tag("div", *rows),
        tag("p", note, class_="soft"),
        id="charts",
    )


def _distributions(groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    several = max(len(members) for members in groups.values()) > 1
    caption = (
        "Share of the packets that were at most so late"
        + ("; each point is the mean over seeds of that quantile" if several else "")
        + ". The dots are the 95th percentiles of the table."
    )
    left = tag(
        "figure",
        tag("h3", "One-way delay, distribution"),
        tag("div", class_="chart", id="cdf"),
        tag("figcaption", caption),
    )
    if len(groups) == 1:
        return tag("section", tag("h2", "Delay"), left)
    points = {
        label: [
            (
                _view.metric(run, flow, "one_way_delay_ms_p95"),
                _view.metric(run, flow, "receive_rate_bps") / 1e6,
            )
            for run in members
            for flow in [_view.subject_of(run)]
        ]
        for label, members in groups.items()
    }
    right = tag(
        "figure", tag("h3", "Rate against delay"), scatter.svg(points, _hues(groups)),
        tag("figcaption", "Better is up and to the right. Small dots: seeds; large ones: their means, as in tables."),
    )  # fmt: skip
    return tag("section", tag("h2", "Rate and delay"), tag("div", left, right, class_="pair"))


def _flows(groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    own = looks(groups)
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
            rows.append(tag("tr", tag("th", _named(label, own), colspan=len(heads), scope="rowgroup")))
        for entry in _view.point_to_point(members[0]):
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


def _network(every: Sequence[RunLike]) -> Markup:
    columns = {
        "capacity_bps": "Capacity, mean",
        "carried_bps": "Carried",
        "utilisation": "Utilisation",
        "dropped_queue": "Dropped by the queue",
        "dropped_wire": "Lost on the wire",
    }
    if any(link.get("marked") for run in every for link in run.summary["links"]):
        columns["marked"] = "Marked by the queue"
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
    note = "Means over all runs." if len(every) > 1 else ""
    return tag(
        "section",
        tag("h2", "The network"),
        tag("div", table, class_="scroll"),
        tag("p", note, class_="soft"),
    )


def _reproduce(source: Source, groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    parts: list[Content] = [tag("h2", "Make it again")]
    if source.command:
        parts += [
            tag("p", "The command that made these runs:"),
            tag("pre", tag("code", source.command)),
        ]
    parts.append(
        tag(
            "p",
            "The same seeds give the same bits on every machine: equal runs have equal digests.",
            class_="soft",
        )
    )
    rows = []
    for label, members in groups.items():
        for run in members:
            digest = str(run.summary.get("digest", tables.NOTHING))
            rows.append(
                tag(
                    "tr",
                    tag("td", label),
                    tag("td", str(_view.seed_of(run))),
                    tag("td", tag("code", digest), class_="text"),
                )
            )
    head = tag("tr", tag("th", "Controller"), tag("th", "Seed"), tag("th", "Digest", class_="text"))
    digests = tag("div", tag("table", tag("thead", head), tag("tbody", *rows)), class_="scroll")
    parts.append(tag("details", tag("summary", f"Seeds and digests ({len(rows)})"), digests))
    if source.versions:
        pairs = [item for name, value in source.versions.items() for item in (tag("dt", name), tag("dd", value))]
        parts.append(tag("details", tag("summary", "Versions"), tag("dl", *pairs)))
    if source.scenario:
        parts.append(
            tag(
                "details",
                tag("summary", "Scenario (TOML)"),
                tag("pre", tag("code", source.scenario)),
            )
        )
    return tag("section", *parts)


def _definitions(groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    about = tables.defined(groups, dict.fromkeys((*tables.SUBJECT, *tables.FLOWS, *tables.VERDICTS, *MEMBERS)))
    items = [item for one in about for item in (tag("dt", tables.name(one)), tag("dd", one.definition))]
    return tag("section", tag("details", tag("summary", "What the numbers mean"), tag("dl", *items)))
