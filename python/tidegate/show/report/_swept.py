"""The document of a sweep: delay against rate along one setting or maps over two, and all numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tidegate.output.chart import Axis, Chart, Dot, Trail, rate_delay
from tidegate.output.document import (
    NOTHING,
    SAME_BITS,
    Beside,
    Block,
    Cell,
    Column,
    Details,
    Document,
    Drawing,
    Number,
    Paragraph,
    Phrase,
    Row,
    Section,
    Table,
    again,
    capitalised,
    definitions,
    notes,
)
from tidegate.output.palette import shade
from tidegate.results.metrics import HEADLINE, Metric, metric
from tidegate.show import played, sweeps
from tidegate.show.sweeps import DELAY, RATE, Combination, Panel, SweepLike, Swept
from tidegate.wording import counted, listed

_PANELS = 24
_LINES = 1000  # of the table of numbers
_MAPS = (RATE, DELAY)
"""The maps that are open at first."""
_MAX_MARKS = 6


def document(sweep: SweepLike) -> Document:
    """Makes the document of a sweep."""
    swept = Swept.of(sweep)
    first = sweep.rows[0]
    failures = [("Failed", why) for why in sweep.failed]
    missing = sweep.planned - len(sweep.rows)
    if missing > len(sweep.failed):
        why = "they failed or were not reached; run the same command again to complete the sweep."
        failures.append((f"{missing} of {sweep.planned} runs are missing", why))
    values = {key: [value for value in swept.values[key] if value != sweeps.ALL_CASES] for key in swept.keys}
    return Document(
        _title(sweep, swept),
        [_numbers(swept), *_recordings(sweep)],
        [
            again(
                {"The command that made these runs:": sweep.command},
                *notes(f"{SAME_BITS} (in summary.csv)."),
                versions=first.get("versions", {}),
                text=("Scenario or suite that is varied (TOML)", sweep.scenario),
            ),
            definitions(map(sweeps.metric_of, swept.names)),
        ],
        _facts(sweep, swept),
        failures=failures,
        remarks=swept.remarks,
        settings=[(key, ", ".join(texts)) for key, texts in values.items()],
        opening=[_drawings(swept)] if swept.drawn else [],
    )


def _recordings(sweep: SweepLike) -> list[Block]:
    shares = played.sentences({**row["summary"], "seed": row["seed"]} for row in sweep.rows)
    return notes(*(f"{share}." for share in shares))


def _title(sweep: SweepLike, swept: Swept) -> str:
    keys = [short for key, short in sweeps.shortened(swept.varied).items() if key != sweeps.CASE]
    return f"{sweep.name}, {listed(keys)} varied" if keys else sweep.name


def _facts(sweep: SweepLike, swept: Swept) -> list[str]:
    facts = [
        counted(len(swept.over_all), "combination"),
        counted(max((len(combination.rows) for combination in swept.combinations), default=0), "seed"),
        counted(len(sweep.rows), "run"),
    ]
    first = sweep.rows[0]
    if duration := first["summary"].get("duration_s"):
        facts.append(f"{float(duration):g} s of simulated time")
    if version := first.get("versions", {}).get("tidegate"):
        facts.append(f"tidegate {version}")
    return facts


# --- pictures -------------------------------------------------------------------------------------


def _drawings(swept: Swept) -> Section:
    panels = swept.panels[:_PANELS]
    sentences = [swept.how] if swept.beside else []
    if len(panels) < len(swept.panels):
        sentences.append(
            f"The first {len(panels)} of {len(swept.panels)} panels; the table below has all combinations."
        )
    if swept.is_map:
        heading, blocks = f"Along {' and '.join(swept.axes)}", list(_maps(swept, panels))
    else:
        heading = f"Rate against delay along {swept.axes[0]}" if swept.axes else "Rate against delay"
        blocks = list(_paths(swept, panels))
    return Section(heading, [*notes(*sentences), *blocks], id="sweep")


def _paths(swept: Swept, panels: Sequence[Panel]) -> Iterator[Block]:
    labels = dict.fromkeys(label for panel in swept.panels for label in panel.lines)
    yield Paragraph([Phrase(label, "strong", look=swept.looks[label]) for label in labels], "legend")
    key = swept.axes[0] if swept.axes else None
    trails = [[_path(swept, label, line, key) for label, line in panel.lines.items()] for panel in panels]
    all_trails = [trail for of_panel in trails for trail in of_panel]
    drawn = [
        Drawing(rate_delay(of_panel, beside=all_trails), panel.title)
        for of_panel, panel in zip(trails, panels, strict=True)
    ]
    yield Beside(drawn) if len(drawn) > 1 else drawn[0]
    yield from notes(
        "Means over seeds. Points are labelled with their values; point at a point to see all numbers. Better is up "
        "and to the right."
    )
    if (len(swept.panels) == 1 or swept.judged) and swept.axes:
        along = [Drawing(_along(swept, panels[0], name), capitalised(sweeps.head(name))) for name in swept.names]
        yield Section(f"All numbers along {swept.axes[0]}", [Beside(along)])


def _path(swept: Swept, label: str, line: Sequence[Combination], key: str | None) -> Trail:
    dots = [
        Dot(
            *combination.point,
            _explanation(combination, combination.settings),
            combination.settings[key] if key else "",
        )
        for combination in line
    ]
    return Trail(swept.looks[label], dots, label, joined=swept.is_line)


def _along(swept: Swept, panel: Panel, name: str) -> Chart:
    """A chart of a number over the values of a setting, at equal distances in their order; bars are 95 % intervals."""
    key, quantity = swept.axes[0], sweeps.metric_of(name)
    values = swept.values[key]
    trails = []
    for label, line in panel.lines.items():
        means = ((combination, combination.mean(name)) for combination in line)
        dots = [
            Dot(values.index(combination.settings[key]), mean.mean * quantity.scale,
                _explanation(combination, combination.settings), half=(mean.half or 0.0) * quantity.scale)
            for combination, mean in means
        ]  # fmt: skip
        trails.append(Trail(swept.looks[label], dots, label, joined=swept.is_line))
    finite_dots = [dot for trail in trails for dot in trail.dots if math.isfinite(dot.y)]
    top = max((dot.y + dot.half for dot in finite_dots), default=1.0)
    # the axis goes below zero only for negative values, not for intervals of shares and rates
    low = min(dot.y - dot.half for dot in finite_dots) if any(dot.y < 0 for dot in finite_dots) else 0.0
    step = -(-len(values) // _MAX_MARKS)
    marks = [(float(index), value) for index, value in enumerate(values)][::step]
    across = Axis(key, -0.3, len(values) - 0.7, marks=marks)
    return Chart(across, Axis("", low, (top * 1.1) or 1.0), trails, f"{sweeps.head(name)} against {key}", "small")


def _explanation(combination: Combination, keys: Sequence[str] | Mapping[str, str]) -> str:
    """The settings and numbers of a combination, a line each."""
    settings = [f"{key} = {combination.settings[key]}" for key in keys]
    means = ((metric(name), combination.mean(name)) for name in HEADLINE)
    numbers = [f"{m.label}: {m.show_interval(mean)} {m.unit}".rstrip() for m, mean in means if mean.count]
    return "\n".join([*settings, *numbers])


def _maps(swept: Swept, panels: Sequence[Panel]) -> Iterator[Block]:
    for name in [*_MAPS, *(name for name in swept.names if name not in _MAPS)]:
        quantity = sweeps.metric_of(name)
        means = (combination.mean(name).mean for panel in panels for combination in panel.combinations)
        values = [value for mean in means if math.isfinite(value := mean * quantity.scale)]
        if not values:
            continue
        low, high = min(values), max(values)
        drawn = [Section(panel.title, [_map(swept, panel, name, (low, high, quantity))], level=3) for panel in panels]
        across, up = swept.axes
        yield Details(
            f"{capitalised(sweeps.head(name))}: from {sweeps.plainly(low)} to {sweeps.plainly(high)}",
            [*notes(f"Columns: {across}; rows: {up}. Means over seeds."), Beside(drawn, "maps")],
            open=name in _MAPS,
        )


def _map(swept: Swept, panel: Panel, name: str, scale: tuple[float, float, Metric]) -> Table:
    across, up = (swept.values[key] for key in swept.axes)
    low, high, quantity = scale
    by_values = {tuple(cell.settings[key] for key in swept.axes): cell for cell in panel.combinations}
    corner = sweeps.shortened(swept.axes)
    rows = []
    for y in reversed(up):
        cells: list[Cell] = [y]
        for x in across:
            combination = by_values.get((x, y))
            if combination is None:
                cells.append(NOTHING)
                continue
            mean = combination.mean(name)
            value = mean.mean * quantity.scale
            cells.append(
                Number(quantity, mean, title=_explanation(combination, swept.varied), replacement=sweeps.plainly(value),
                       shade=shade(value, low, high, quantity.better))
            )  # fmt: skip
        rows.append(Row(cells))
    head = f"{corner[swept.axes[1]]} \\ {corner[swept.axes[0]]}"
    return Table([Column(head), *map(Column, across)], rows, "map")


# --- numbers --------------------------------------------------------------------------------------


def _numbers(swept: Swept) -> Section:
    short = sweeps.shortened(swept.keys)
    keys = [*swept.varied, *swept.constant]
    counts = {len(combination.rows) for combination in swept.over_all}
    heads = [
        Column(short[key], left=True, title=key, detail=key in swept.constant or key == sweeps.CASE) for key in keys
    ]
    heads += [Column("passed", left=True)] if swept.judged else []
    heads.append(Column("runs", detail=len(counts) == 1))
    heads += [Column(sweeps.label(name), sweeps.metric_of(name)) for name in swept.names]
    rows = []
    for combination in swept.combinations:
        cells: list[Cell] = [
            Phrase(value, look=swept.looks[value]) if key == swept.controllers else value
            for key, value in ((key, combination.settings[key]) for key in keys)
        ]
        cells += [combination.verdict] if swept.judged else []
        cells.append(len(combination.rows))
        cells += [Number(sweeps.metric_of(name), combination.mean(name)) for name in swept.names]
        is_case = combination.settings.get(sweeps.CASE, sweeps.ALL_CASES) != sweeps.ALL_CASES
        rows.append(Row(cells, detail=is_case))
    several_seeds = any(len(combination.rows) > 1 for combination in swept.combinations)
    note = "Means over seeds ± half of the 95 % interval (Student's t)." if several_seeds else "One seed each."
    if len(rows) > _LINES:
        note += f" The first {_LINES} of {len(rows)} combinations; summary.md has all."
    stub = sum(column.left and not column.detail for column in heads) or 1
    return Section("In numbers", [Table(heads, rows, "numbers", most=_LINES, stub=stub), *notes(note, detail=True)])
