"""The page: sections in the order in which a reader asks for them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.results.metrics import MEMBERS
from tidegate.show import view
from tidegate.show.report import _charts as charts
from tidegate.show.report import _members as of_members
from tidegate.show.report import document, numbers, series, tables
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.show.view import RunLike
from tidegate.wording import counted, listed

if TYPE_CHECKING:
    from tidegate.show.report import Source

NO_CHARTS: Mapping[str, Any] = {
    "steps": series.STEPS,
    "columns": [],
    "cdf": {"x": [], "lines": []},
    "logDelay": False,
}
"""The data of a page without charts over time."""


def render(source: Source) -> str:
    """The whole page."""
    groups = view.grouped(source.runs)
    every = [run for members in groups.values() for run in members]
    link = view.bottleneck(every)
    recorded = all(view.has(run, "series") for run in every)
    # a flow that is copied on its way has no far end
    single = not any(view.subject_of(run) in view.copied(run.summary) for run in every)
    body = [_head(source, groups), *([numbers.headline(groups)] if single else []), *_pictures(source)]
    data = dict(NO_CHARTS)
    if recorded and single:
        data |= charts.data(groups, link)
        body.append(charts.section(data, groups, link))
        body.append(charts.distributions(data, groups))
    elif not recorded:
        body.append(
            tag(
                "p",
                "The runs were recorded at level “summary”, so that there are no series to draw.",
                class_="soft",
            )
        )
    body += [
        numbers.flows(groups),
        of_members.section(groups),
        numbers.network(every),
        _reproduce(source, groups),
        _definitions(groups),
    ]
    styles = [document.asset("uplot/uPlot.min.css"), document.asset("report.css")]
    scripts = [document.data(data), document.script(_uplot()), document.script(document.asset("report.js"))]
    return document.page(_title(source, groups), body, styles, scripts)


def _uplot() -> str:
    # its licence asks to go with every copy, and the page is one
    return f"/*\n{document.asset('uplot/LICENSE')}\n*/\n{document.asset('uplot/uPlot.iife.min.js')}"


def _title(source: Source, groups: Mapping[str, Sequence[RunLike]]) -> str:
    if source.title:
        return source.title
    names = list(groups)
    first = next(iter(groups.values()))[0]
    return f"{listed(names)} on {first.summary.get('name') or 'one network'}"


def _head(source: Source, groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    first = next(iter(groups.values()))[0]
    kind = "recorded" if source.recorded else "of simulated time"
    duration = first.summary.get("duration_s")
    facts = [
        *([] if duration is None else [f"{float(duration):g} s {kind}"]),
        counted(max(len(members) for members in groups.values()), "seed"),
        counted(len(first.summary["flows"]), "flow"),
    ]
    if version := source.versions.get("tidegate"):
        facts.append(f"tidegate {version}")
    failures = [tag("p", tag("strong", f"{name} failed"), f": {why}") for name, why in source.failed.items()]
    summaries = (run.summary for members in groups.values() for run in members)
    told = dict.fromkeys([*view.warnings(summaries), *source.warnings])
    warnings = [tag("p", tag("strong", "Warning"), f": {one}") for one in told]
    return tag(
        "header", tag("h1", _title(source, groups)), tag("p", " · ".join(facts), class_="soft"), *failures, *warnings
    )


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


def _reproduce(source: Source, groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    if source.recorded:
        files = source.recorded.get("files", ())
        lines = [tag("li", f"{one['file']} ({one['format']}) ", tag("code", str(one["sha256"]))) for one in files]
        return tag("section", tag("h2", "What this is made of"), tag("ul", *lines))
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
                    tag("td", str(view.seed_of(run))),
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
