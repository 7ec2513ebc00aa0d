"""The page of a sweep: delay against rate along one setting or maps over two, and every number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tidegate.results.metrics import Metric
from tidegate.show import sweeps
from tidegate.show.palette import Look, shade
from tidegate.show.report import document, numbers, page, path, tables
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.show.sweeps import DELAY, RATE, Combination, Panel, SweepLike, Swept
from tidegate.wording import counted, listed

_PANELS = 24
_LINES = 1000  # of the table of numbers
_MAPS = (RATE, DELAY)
"""The maps that are open at first."""


def render(sweep: SweepLike) -> str:
    """The whole page."""
    swept = Swept.of(sweep)
    drawing = [_drawings(swept)] if swept.drawn else []
    body = [_head(sweep, swept), *drawing, _numbers(swept), _reproduce(sweep), _definitions(swept)]
    # the page's program gives lines their colours, on dark pages, too
    scripts = [document.data(page.NO_CHARTS), document.script(document.asset("report.js"))]
    return document.page(_title(sweep, swept), body, [document.asset("report.css")], scripts)


def _title(sweep: SweepLike, swept: Swept) -> str:
    keys = [short for key, short in sweeps.shortened(swept.varied).items() if key != sweeps.CASE]
    return f"{sweep.name}, {listed(keys)} varied" if keys else sweep.name


def _head(sweep: SweepLike, swept: Swept) -> Markup:
    seeds = max((len(one.rows) for one in swept.combinations), default=0)
    facts = [
        counted(len(swept.over_all), "combination"),
        counted(seeds, "seed"),
        counted(len(sweep.rows), "run"),
    ]
    first = sweep.rows[0]
    if duration := first["summary"].get("duration_s"):
        facts.append(f"{float(duration):g} s of simulated time")
    if version := first.get("versions", {}).get("tidegate"):
        facts.append(f"tidegate {version}")
    parts = [tag("h1", _title(sweep, swept)), tag("p", " · ".join(facts), class_="soft")]
    parts += [tag("p", tag("strong", "Failed"), f": {why}") for why in sweep.failed]
    missing = sweep.planned - len(sweep.rows)
    if missing > len(sweep.failed):
        why = "they failed, or have not been done; the same command tells, and does them"
        parts.append(tag("p", tag("strong", f"{missing} of {sweep.planned} runs are not there"), f": {why}."))
    parts += [tag("p", tag("strong", "Warning"), f": {one}") for one in swept.warnings]
    values = {key: [value for value in swept.values[key] if value != sweeps.ALL_CASES] for key in swept.keys}
    settings = [item for key in values for item in (tag("dt", key), tag("dd", ", ".join(values[key])))]
    return tag("header", *parts, *([tag("dl", *settings)] if settings else []))


# --- pictures -------------------------------------------------------------------------------------


def _drawings(swept: Swept) -> Markup:
    panels = swept.panels[:_PANELS]
    notes = [swept.how] if swept.beside else []
    if len(panels) < len(swept.panels):
        notes.append(f"The first {len(panels)} of {len(swept.panels)} panels; the table below has every combination.")
    if swept.is_map:
        parts = _maps(swept, panels)
        heading = f"Along {' and '.join(swept.axes)}"
    else:
        parts = _paths(swept, panels)
        heading = f"Rate against delay along {swept.axes[0]}" if swept.axes else "Rate against delay"
    said = [tag("p", " ".join(notes), class_="soft")] if notes else []
    return tag("section", tag("h2", heading), *said, *parts, id="sweep")


def _paths(swept: Swept, panels: Sequence[Panel]) -> list[Markup]:
    labels = dict.fromkeys(label for panel in swept.panels for label in panel.lines)
    own = swept.looks
    every = [one for panel in panels for some in panel.lines.values() for one in some]
    scales = path.scales([path.point(one) for one in every])
    key = swept.axes[0] if swept.axes else None
    figures = [
        tag("figure", *([tag("h3", panel.title)] if panel.title else []), path.svg(panel.lines, own, scales, key))
        for panel in panels
    ]
    who = tag("p", *(tag("span", numbers.named(label, own), class_="who") for label in labels), class_="legend")
    caption = "Means over seeds; a point says its value, and all its numbers under the pointer. Better is up and right."
    drawn = tag("div", *figures, class_="columns" if len(panels) > 1 else None)
    along = [_along(swept, panels[0], own)] if (len(swept.panels) == 1 or swept.judged) and swept.axes else []
    return [who, drawn, tag("p", caption, class_="soft"), *along]


def _along(swept: Swept, panel: Panel, own: Mapping[str, Look]) -> Markup:
    """Each number over the values of the one setting."""
    key = swept.axes[0]
    figures = [
        tag("figure", tag("h3", _named(name)), path.along(panel.lines, own, key, swept.values[key], name))
        for name in swept.names
    ]
    return tag("section", tag("h2", f"Every number along {key}"), tag("div", *figures, class_="columns"))


def _maps(swept: Swept, panels: Sequence[Panel]) -> list[Markup]:
    names = [*_MAPS, *(name for name in swept.names if name not in _MAPS)]
    parts = []
    for name in names:
        about = sweeps.about(name)
        means = {
            id(one): one.mean(name).mean * about.scale
            for panel in panels
            for some in panel.lines.values()
            for one in some
        }
        known = [value for value in means.values() if math.isfinite(value)]
        if not known:
            continue
        drawn = [_map(swept, panel, means, (min(known), max(known), about)) for panel in panels]
        across, up = swept.axes
        said = f"Columns: {across}; rows: {up}. Means over seeds."
        parts.append(
            tag(
                "details",
                tag("summary", f"{_named(name)}: from {sweeps.plainly(min(known))} to {sweeps.plainly(max(known))}"),
                tag("p", said, class_="soft"),
                tag("div", *drawn, class_="maps"),
                open=name in _MAPS,
            )
        )
    return parts


def _map(
    swept: Swept, panel: Panel, means: Mapping[int, float], scale: tuple[float, float, Metric]
) -> Markup:  # fmt: skip
    across, up = (swept.values[key] for key in swept.axes)
    low, top, about = scale
    cells = {tuple(one.settings[key] for key in swept.axes): one for some in panel.lines.values() for one in some}
    corner = sweeps.shortened(swept.axes)
    head = tag(
        "tr", tag("th", f"{corner[swept.axes[1]]} \\ {corner[swept.axes[0]]}"), *(tag("th", value) for value in across)
    )
    rows = []
    for down in reversed(up):
        told: list[Content] = [tag("th", down, scope="row")]
        for right in across:
            one = cells.get((right, down))
            if one is None:
                told.append(tag("td", tables.NOTHING))
                continue
            mean = means[id(one)]
            fill, ink = shade(mean, low, top, about.better)
            told.append(
                tag(
                    "td",
                    sweeps.plainly(mean),
                    title=path.told(one, swept.varied),
                    style=f"background:{fill};color:{ink}",
                )
            )
        rows.append(tag("tr", *told))
    title = [tag("h3", panel.title)] if panel.title else []
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="map")
    return tag("figure", *title, tag("div", table, class_="scroll"))


def _named(name: str) -> str:
    head = sweeps.head(name)
    return head[:1].upper() + head[1:]


# --- numbers --------------------------------------------------------------------------------------


def _numbers(swept: Swept) -> Markup:
    short = sweeps.shortened(swept.varied)
    own = swept.looks
    heads = [tag("th", short[key], title=key, scope="col", class_="text") for key in swept.varied]
    heads += [tag("th", "Passed", scope="col")] if swept.judged else []
    heads.append(tag("th", "Runs", scope="col"))
    heads += [tag("th", _named(name), title=sweeps.about(name).definition, scope="col") for name in swept.names]
    rows = []
    for one in swept.combinations[:_LINES]:
        told = ((key, one.settings[key]) for key in swept.varied)
        cells = [
            tag("td", numbers.named(value, own) if key == swept.controllers else value, class_="text")
            for key, value in told
        ]
        cells += [tag("td", one.verdict)] if swept.judged else []
        cells.append(tag("td", len(one.rows)))
        cells += [tag("td", *_interval(one, name)) for name in swept.names]
        rows.append(tag("tr", *cells))
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="numbers")
    said = "Means over seeds ± half of the 95 % interval (Student's t)." if _several(swept) else "One seed each."
    if len(swept.combinations) > _LINES:
        said += f" The first {_LINES} of {len(swept.combinations)}; summary.md has all of them."
    return tag("section", tag("h2", "In numbers"), tag("div", table, class_="scroll"), tag("p", said, class_="soft"))


def _several(swept: Swept) -> bool:
    return any(len(one.rows) > 1 for one in swept.combinations)


def _interval(one: Combination, name: str) -> list[Content]:
    mean, about = one.mean(name), sweeps.about(name)
    half = [tag("span", f" ± {about.show(mean.half)}", class_="interval")] if mean.half is not None else []
    return [about.show(mean.mean), *half]


def _reproduce(sweep: SweepLike) -> Markup:
    parts: list[Content] = [tag("h2", "Make it again")]
    if sweep.command:
        parts += [tag("p", "The command that made these runs:"), tag("pre", tag("code", sweep.command))]
    same = "The same seeds give the same bits on every machine: equal runs have equal digests (in summary.csv)."
    parts.append(tag("p", same, class_="soft"))
    if versions := sweep.rows[0].get("versions"):
        pairs = [item for name, value in versions.items() for item in (tag("dt", name), tag("dd", str(value)))]
        parts.append(tag("details", tag("summary", "Versions"), tag("dl", *pairs)))
    if sweep.scenario:
        text = tag("pre", tag("code", sweep.scenario))
        parts.append(tag("details", tag("summary", "What is varied (TOML)"), text))
    return tag("section", *parts)


def _definitions(swept: Swept) -> Markup:
    about = {one.name: one for one in map(sweeps.about, swept.names)}
    items = [item for one in about.values() for item in (tag("dt", tables.name(one)), tag("dd", one.definition))]
    return tag("section", tag("details", tag("summary", "What the numbers mean"), tag("dl", *items)))
