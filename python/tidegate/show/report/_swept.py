"""The document of a sweep: delay against rate along one setting or maps over two, and every number."""

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
    begun,
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
_MOST_MARKS = 6


def document(sweep: SweepLike) -> Document:
    """What there is to say of a sweep."""
    swept = Swept.of(sweep)
    first = sweep.rows[0]
    failures = [("Failed", why) for why in sweep.failed]
    missing = sweep.planned - len(sweep.rows)
    if missing > len(sweep.failed):
        why = "they failed, or have not been done; the same command tells, and does them."
        failures.append((f"{missing} of {sweep.planned} runs are not there", why))
    values = {key: [value for value in swept.values[key] if value != sweeps.ALL_CASES] for key in swept.keys}
    return Document(
        _title(sweep, swept),
        [_numbers(swept), *_recordings(sweep)],
        [
            again(
                {"The command that made these runs:": sweep.command},
                *notes(f"{SAME_BITS} (in summary.csv)."),
                versions=first.get("versions", {}),
                text=("What is varied (TOML)", sweep.scenario),
            ),
            definitions(map(sweeps.about, swept.names)),
        ],
        _facts(sweep, swept),
        failures=failures,
        remarks=swept.remarks,
        settings=[(key, ", ".join(some)) for key, some in values.items()],
        opening=[_drawings(swept)] if swept.drawn else [],
    )


def _recordings(sweep: SweepLike) -> list[Block]:
    shares = played.told({**row["summary"], "seed": row["seed"]} for row in sweep.rows)
    return notes(*(f"{share}." for share in shares))


def _title(sweep: SweepLike, swept: Swept) -> str:
    keys = [short for key, short in sweeps.shortened(swept.varied).items() if key != sweeps.CASE]
    return f"{sweep.name}, {listed(keys)} varied" if keys else sweep.name


def _facts(sweep: SweepLike, swept: Swept) -> list[str]:
    facts = [
        counted(len(swept.over_all), "combination"),
        counted(max((len(one.rows) for one in swept.combinations), default=0), "seed"),
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
    said = [swept.how] if swept.beside else []
    if len(panels) < len(swept.panels):
        said.append(f"The first {len(panels)} of {len(swept.panels)} panels; the table below has every combination.")
    if swept.is_map:
        heading, blocks = f"Along {' and '.join(swept.axes)}", list(_maps(swept, panels))
    else:
        heading = f"Rate against delay along {swept.axes[0]}" if swept.axes else "Rate against delay"
        blocks = list(_paths(swept, panels))
    return Section(heading, [*notes(*said), *blocks], id="sweep")


def _paths(swept: Swept, panels: Sequence[Panel]) -> Iterator[Block]:
    labels = dict.fromkeys(label for panel in swept.panels for label in panel.lines)
    yield Paragraph([Phrase(label, "strong", look=swept.looks[label]) for label in labels], "legend")
    key = swept.axes[0] if swept.axes else None
    trails = [[_path(swept, label, some, key) for label, some in panel.lines.items()] for panel in panels]
    every = [trail for some in trails for trail in some]
    drawn = [Drawing(rate_delay(some, beside=every), panel.title) for some, panel in zip(trails, panels, strict=True)]
    yield Beside(drawn) if len(drawn) > 1 else drawn[0]
    yield from notes(
        "Means over seeds; a point says its value, and all its numbers under the pointer. Better is up and right."
    )
    if (len(swept.panels) == 1 or swept.judged) and swept.axes:
        along = [Drawing(_along(swept, panels[0], name), begun(sweeps.head(name))) for name in swept.names]
        yield Section(f"Every number along {swept.axes[0]}", [Beside(along)])


def _path(swept: Swept, label: str, some: Sequence[Combination], key: str | None) -> Trail:
    dots = [Dot(*one.point, _explained(one, one.settings), one.settings[key] if key else "") for one in some]
    return Trail(swept.looks[label], dots, label, joined=key is not None)


def _along(swept: Swept, panel: Panel, name: str) -> Chart:
    """A number over the values of a setting, at equal distances in their order; bars are 95 % intervals."""
    key, about = swept.axes[0], sweeps.about(name)
    values = swept.values[key]
    trails = []
    for label, some in panel.lines.items():
        means = ((one, one.mean(name)) for one in some)
        dots = [
            Dot(values.index(one.settings[key]), mean.mean * about.scale, _explained(one, one.settings),
                half=(mean.half or 0.0) * about.scale)
            for one, mean in means
        ]  # fmt: skip
        trails.append(Trail(swept.looks[label], dots, label, joined=True))
    known = [dot for trail in trails for dot in trail.dots if math.isfinite(dot.y)]
    top = max((dot.y + dot.half for dot in known), default=1.0)
    # of shares and rates below nothing there is nothing: only the interval reaches there
    low = min(dot.y - dot.half for dot in known) if any(dot.y < 0 for dot in known) else 0.0
    step = -(-len(values) // _MOST_MARKS)
    marks = [(float(at), value) for at, value in enumerate(values)][::step]
    across = Axis(key, -0.3, len(values) - 0.7, marks=marks)
    return Chart(across, Axis("", low, (top * 1.1) or 1.0), trails, f"{sweeps.head(name)} over {key}", "small")


def _explained(one: Combination, keys: Sequence[str] | Mapping[str, str]) -> str:
    """A combination and its numbers."""
    settings = [f"{key} = {one.settings[key]}" for key in keys]
    means = ((metric(name), one.mean(name)) for name in HEADLINE)
    numbers = [f"{m.label}: {m.show_interval(mean)} {m.unit}".rstrip() for m, mean in means if mean.count]
    return "\n".join([*settings, *numbers])


def _maps(swept: Swept, panels: Sequence[Panel]) -> Iterator[Block]:
    for name in [*_MAPS, *(name for name in swept.names if name not in _MAPS)]:
        about = sweeps.about(name)
        means = (each.mean(name).mean for panel in panels for each in panel.combinations)
        known = [value for mean in means if math.isfinite(value := mean * about.scale)]
        if not known:
            continue
        low, high = min(known), max(known)
        drawn = [Section(panel.title, [_map(swept, panel, name, (low, high, about))], level=3) for panel in panels]
        across, up = swept.axes
        yield Details(
            f"{begun(sweeps.head(name))}: from {sweeps.plainly(low)} to {sweeps.plainly(high)}",
            [*notes(f"Columns: {across}; rows: {up}. Means over seeds."), Beside(drawn, "maps")],
            open=name in _MAPS,
        )


def _map(swept: Swept, panel: Panel, name: str, scale: tuple[float, float, Metric]) -> Table:
    across, up = (swept.values[key] for key in swept.axes)
    low, high, about = scale
    cells = {tuple(each.settings[key] for key in swept.axes): each for each in panel.combinations}
    corner = sweeps.shortened(swept.axes)
    rows = []
    for down in reversed(up):
        made: list[Cell] = [down]
        for right in across:
            one = cells.get((right, down))
            if one is None:
                made.append(NOTHING)
                continue
            mean = one.mean(name)
            value = mean.mean * about.scale
            made.append(
                Number(about, mean, title=_explained(one, swept.varied), instead=sweeps.plainly(value),
                       shade=shade(value, low, high, about.better))
            )  # fmt: skip
        rows.append(Row(made))
    head = f"{corner[swept.axes[1]]} \\ {corner[swept.axes[0]]}"
    return Table([Column(head), *map(Column, across)], rows, "map")


# --- numbers --------------------------------------------------------------------------------------


def _numbers(swept: Swept) -> Section:
    short = sweeps.shortened(swept.keys)
    keys = [*swept.varied, *swept.constant]
    counts = {len(one.rows) for one in swept.over_all}
    heads = [
        Column(short[key], left=True, title=key, detail=key in swept.constant or key == sweeps.CASE) for key in keys
    ]
    heads += [Column("passed", left=True)] if swept.judged else []
    heads.append(Column("runs", detail=len(counts) == 1))
    heads += [Column(sweeps.label(name), sweeps.about(name)) for name in swept.names]
    rows = []
    for one in swept.combinations:
        cells: list[Cell] = [
            Phrase(value, look=swept.looks[value]) if key == swept.controllers else value
            for key, value in ((key, one.settings[key]) for key in keys)
        ]
        cells += [one.verdict] if swept.judged else []
        cells.append(len(one.rows))
        cells += [Number(sweeps.about(name), one.mean(name)) for name in swept.names]
        rows.append(Row(cells, detail=one.settings.get(sweeps.CASE, sweeps.ALL_CASES) != sweeps.ALL_CASES))
    several = any(len(one.rows) > 1 for one in swept.combinations)
    said = "Means over seeds ± half of the 95 % interval (Student's t)." if several else "One seed each."
    if len(rows) > _LINES:
        said += f" The first {_LINES} of {len(rows)}; summary.md has all of them."
    stub = sum(column.left and not column.detail for column in heads) or 1
    return Section("In numbers", [Table(heads, rows, "numbers", most=_LINES, stub=stub), *notes(said, detail=True)])
