"""The document of runs: controllers side by side, all flows, the network, and how to reproduce them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.output.chart import Dot, Trail, mean_dot, rate_delay
from tidegate.output.document import (
    NOTHING,
    SAME_BITS,
    Beside,
    Block,
    Cell,
    Column,
    Details,
    Distribution,
    Document,
    Drawing,
    Items,
    Number,
    Phrase,
    Picture,
    Row,
    Section,
    Sentence,
    Table,
    again,
    definitions,
    notes,
)
from tidegate.output.palette import Look
from tidegate.results.metrics import HEADLINE, MEMBERS, PICTURES, RECORDED, Metric, metric
from tidegate.results.quality import verdict, verdict_on
from tidegate.results.stats import Interval
from tidegate.show import played, view
from tidegate.show.report import _charts as charts
from tidegate.show.report import _members as of_members
from tidegate.show.report import _seen as seen
from tidegate.show.report._charts import Groups
from tidegate.show.table import ComparisonTable
from tidegate.show.view import RunLike
from tidegate.wording import counted, listed

if TYPE_CHECKING:
    from tidegate.show.report import Source

_ABREAST = 8
"""The largest number of metrics side by side in a table on paper."""
_SIDE_BY_SIDE = 8
"""The largest number of flows of a run that terminals show as columns."""
LINKS = (
    "capacity_bps", "carried_bps", "utilisation", "dropped_queue", "dropped_wire", "marked", "bleached",
)  # fmt: skip
_RARE = {"marked", "bleached"}
_DETAILS = (
    "goodput_bps", "sending_rate_bps", "one_way_delay_ms_p50", "jitter_ms_mean", "freezes", "mos",
    "convergence_time_s", "oscillation_hz", "feedback_overhead",
)  # fmt: skip
"""Further metrics of flows, which only whole documents have."""
_CAPTIONS = {
    "quality.png": "Each controller's first seed, means over 0.5 s: quality as seen and as encoded.",
    "contact-sheet.png": "The times of the worst quality: the picture as seen beside the picture as sent.",
}


def document(source: Source) -> Document:
    """Makes the document of runs."""
    groups = view.grouped(source.runs)
    runs = [run for members in groups.values() for run in members]
    looks = view.looks_of(groups)
    # a flow that is copied on its path has several receivers
    single = not any(view.subject_of(run) in view.copied(run.summary) for run in runs)
    # of a recorded call the table of flows has all that is known
    headline = [_headline(groups, source, looks)] if single and not source.recorded else []
    pictures = [*_pictures(source), *_drawings(groups, looks, runs, single=single)]
    brief = RECORDED if source.recorded else (*HEADLINE, *PICTURES)
    numbers = [*_flows(groups, looks, brief), *of_members.section(groups), *_network(runs)]
    if source.recorded:
        numbers += seen.section(runs[0])
    alone = len(runs) == 1
    return Document(
        _title(source, groups),
        numbers if alone else headline,
        [*([] if alone else [*pictures, *numbers]), _reproduce(source, groups), _definitions(groups)],
        _facts(source, groups),
        failures=[(f"{name} failed", why) for name, why in source.failed.items()],
        remarks=source.remarks or view.remarks(run.summary for run in runs),
        opening=[*headline, *pictures] if alone else [],
    )


def _title(source: Source, groups: Groups) -> str:
    if source.title:
        return source.title
    first = next(iter(groups.values()))[0]
    name = first.summary.get("name")
    return f"{name or 'A call'}, recorded" if source.recorded else f"{listed(list(groups))} on {name or 'one network'}"


def _facts(source: Source, groups: Groups) -> list[str]:
    first = next(iter(groups.values()))[0].summary
    kind = "recorded" if source.recorded else "of simulated time"
    duration, version = first.get("duration_s"), source.versions.get("tidegate")
    return [
        *([] if duration is None else [f"{float(duration):g} s {kind}"]),
        *([] if source.recorded else [counted(max(map(len, groups.values())), "seed")]),
        counted(len(first["flows"]), "flow"),
        *([f"tidegate {version}"] if version else []),
    ]


def _headline(groups: Groups, source: Source, looks: Mapping[str, Look]) -> Section:
    seeds = max(map(len, groups.values()))
    means = f"Means over {seeds} seeds ± the half-width of their 95 % interval (Student's t)." if seeds > 1 else ""
    word = "column" if source.against else "controller"
    best = f"The best {word} is determined by paired differences, seed by seed." if len(groups) > 1 else ""
    blocks = ComparisonTable.of(groups, source.failed, against=source.against).blocks(looks)
    return Section(
        "In numbers",
        [*blocks, *notes("Rows without the name of a flow are about the subject flow.", means, best, detail=True)],
    )


def _pictures(source: Source) -> Iterator[Section]:
    files = source.attached.items()
    pictures = [Picture(data, _CAPTIONS.get(name, name), file=name) for name, data in files if name.endswith(".png")]
    if pictures:
        yield Section("What viewers saw", pictures)


def _drawings(groups: Groups, looks: Mapping[str, Look], runs: Sequence[RunLike], *, single: bool) -> Iterator[Block]:
    if not all(view.has(run, "series") for run in runs):
        yield from notes("The runs were recorded at level “summary”, so that there are no series to draw.")
        return
    if not single:
        return
    link = view.bottleneck(runs)
    timeline, sentences = charts.timeline(groups, looks, link)
    yield Section("Over time", [timeline, *notes(*sentences)], id="charts")
    several_seeds = max(map(len, groups.values())) > 1
    means = "; each point is the quantile's mean over seeds" if several_seeds else ""
    caption = f"Share of packets up to each delay{means}. The dots are the 95th percentiles of the table."
    distribution = Distribution("One-way delay, distribution", caption)
    if len(groups) > 1:
        better = "Better is up and to the right. Small dots: seeds; large dots: means over seeds, as in tables."
        chart = Drawing(rate_delay(list(_trails(groups, looks))), "Rate against delay", better)
        yield Section("Rate and delay", [Beside([distribution, chart], "pair")])
    elif timeline.data["cdf"]["lines"]:
        yield Section("Delay", [distribution])


def _trails(groups: Groups, looks: Mapping[str, Look]) -> Iterator[Trail]:
    for label, members in groups.items():
        small = [Dot(*point, size="small") for point in view.delay_and_rate(members)]
        if small:
            yield Trail(looks[label], [*(small if len(small) > 1 else []), mean_dot(label, small)], label)


def _flows(groups: Groups, looks: Mapping[str, Look], names: Sequence[str]) -> Iterator[Section]:
    """Yields a section with a row for each flow; none without flows between two ends.

    Short forms have the metrics of these names alone.
    """
    brief = _defined(groups, names)
    details = _defined(groups, (name for name in _DETAILS if name not in names))
    answers = _defined(groups, ("quality", "quality_network"))
    heads = [Column("flow"), Column("controller", left=True)]
    heads += [Column(quantity.label, quantity, detail=quantity not in brief) for quantity in (*brief, *details)]
    heads += [
        Column(quantity.label, title=quantity.definition, detail=quantity.name != "quality") for quantity in answers
    ]
    rows: list[Row] = []
    for label, members in groups.items():
        if len(groups) > 1:
            rows.append(Row([Phrase(label, look=looks[label])], kind="group"))
        for entry in view.point_to_point(members[0]):
            name = str(entry["flow"])
            numbers = [
                Number(
                    quantity, replace(Interval.of(view.metric(run, name, quantity.name) for run in members), half=None)
                )
                for quantity in (*brief, *details)
            ]
            summaries = [view.flow_summary(run, name) for run in members]
            verdicts = [_verdict(summaries, quantity.name) for quantity in answers]
            rows.append(Row([name, str(entry.get("controller") or entry["kind"]), *numbers, *verdicts]))
    if any(row.kind != "group" for row in rows):
        seeds = max(map(len, groups.values()))
        means = f"Means over {seeds} seeds." if seeds > 1 else ""
        table = Table(heads, rows, "numbers", abreast=_ABREAST, stub=2, turned=_SIDE_BY_SIDE)
        yield Section("Every flow", [table, *notes(means)])


def _verdict(flows: Sequence[Mapping[str, Any]], name: str) -> str:
    """The verdict of one of the two metrics of quality, from the summaries of a flow."""
    return verdict_on(flows) if name == "quality" else verdict(flow.get(name) for flow in flows)


def _defined(groups: Groups, names: Iterable[str]) -> list[Metric]:
    """The metrics that at least one flow or member of one run has."""
    summaries = [run.summary for runs in groups.values() for run in runs]
    entries = [entry for summary in summaries for entry in (*summary["flows"], *summary.get("members", ()))]
    return [metric(name) for name in names if any(entry.get(name) is not None for entry in entries)]


def _network(runs: Sequence[RunLike]) -> Iterator[Section]:
    """Yields a section with a row for each link; none without links."""
    links = [link for run in runs for link in run.summary.get("links", ())]
    if not links:
        return
    # the link of a recorded call has at most a capacity, that of its scenario
    names = [name for name in LINKS if any(link.get(name) if name in _RARE else name in link for link in links)]
    rows = []
    for entry in runs[0].summary["links"]:
        same = [link for link in links if link["link"] == entry["link"]]
        cells: list[Cell] = []
        for name in names:
            mean = replace(Interval.of(link.get(name) for link in same), half=None)
            unlimited = "unlimited" if name == "capacity_bps" and not mean.count else ""
            cells.append(Number(metric(name), mean, replacement=unlimited))
        rows.append(Row([str(entry["link"]), *cells]))
    sentences = ["Means over all runs."] if len(runs) > 1 else []
    sentences += [f"{share}." for share in played.sentences(run.summary for run in runs)]
    heads = [Column("link"), *(Column(metric(name).label, metric(name)) for name in names)]
    yield Section("The network", [Table(heads, rows), *notes(*sentences)])


def _reproduce(source: Source, groups: Groups) -> Section:
    if source.recorded:
        files = source.recorded.get("files", ())
        lines: list[Sentence] = [
            [f"{file['file']} ({file['format']}) ", Phrase(str(file["sha256"]), "code")] for file in files
        ]
        return Section("Recorded files", [Items(lines)])
    rows = [
        Row([label, str(view.seed_of(run)), Phrase(str(run.summary.get("digest", NOTHING)), "code")])
        for label, members in groups.items()
        for run in members
    ]
    digests = Table([Column("Controller"), Column("Seed"), Column("Digest", left=True)], rows)
    return again(
        {"The command that made these runs:": source.command or ""},
        *notes(f"{SAME_BITS}."),
        Details(f"Seeds and digests ({len(rows)})", [digests]),
        versions=source.versions,
        text=("Scenario (TOML)", source.scenario or ""),
    )


def _definitions(groups: Groups) -> Details:
    names = dict.fromkeys((*RECORDED, *PICTURES, *_DETAILS, "quality", "quality_network", *MEMBERS))
    return definitions(_defined(groups, names))
