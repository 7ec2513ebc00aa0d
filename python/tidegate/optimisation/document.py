"""The document of a search: the best tries, and what all of them say of each setting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate.output.chart import Axis, Chart, Dot, Trail, between
from tidegate.output.document import (
    Beside,
    Block,
    Cell,
    Column,
    Document,
    Drawing,
    Number,
    Row,
    Section,
    Share,
    Table,
    again,
    definitions,
    notes,
)
from tidegate.output.palette import Look
from tidegate.results.remarks import Remarks
from tidegate.results.stats import Interval
from tidegate.wording import counted

if TYPE_CHECKING:
    from tidegate.optimisation.found import SearchResult, Tried
    from tidegate.optimisation.space import Setting
    from tidegate.query import Series

_LINES, _SHORT = 20, 5
"""Tries in the table of the best, and how many of them short forms have."""
_HELD, _NOT, _BEST = Look(0), Look(7), Look(1)


def document(result: SearchResult) -> Document:
    """What there is to say of a search."""
    failed = [tried for tried in result.tries if tried.goal is None]
    facts = [
        counted(len(result.tries), "try", "tries"),
        counted(len(result.seeds), "seed") + " each",
        f"Optuna {result.versions.get('optuna', '')}".strip(),
    ]
    if version := result.versions.get("tidegate"):
        facts.append(f"tidegate {version}")
    failures = [("Failed", f"{len(failed)} of {len(result.tries)} tries; the first: {failed[0].why}")] if failed else []
    nearest = "no try holds all limits; the table begins with the one that is nearest"
    return Document(
        f"{result.name}: {result.goal.best} {result.goal.series.label.lower()}",
        [_best(result)],
        [
            _search(result),
            Section(
                "Setting by setting", [Beside([Drawing(_slice(result, each), each.key) for each in result.settings])]
            ),
            again(
                {"To see the best in full:": result.again, "The search:": result.command},
                versions=result.versions,
                text=("Scenario or suite (TOML)", result.scenario),
            ),
            definitions(series.metric for series in result.shown),
        ],
        facts,
        failures=failures,
        remarks=Remarks([nearest] if result.best is None and len(failed) < len(result.tries) else []),
        settings=[
            ("sought", result.goal.text),
            *(("has to hold", limit.text) for limit in result.limits),
            *((setting.key, setting.text) for setting in result.settings),
        ],
    )


def _best(result: SearchResult) -> Section:
    """The best tries, the best one on other seeds, and what nothing changed gives."""
    heads = [Column(""), *(Column(setting.key) for setting in result.settings)]
    heads += [Column(series.label, series.metric) for series in result.shown]
    ranked = result.ranked[:_LINES]
    rows = [_row(result, _place(at, tried), tried, at) for at, tried in enumerate(ranked, 1)]
    if result.checked is not None:
        rows.append(_row(result, f"best, on other seeds{_unless_held(result.checked)}", result.checked))
    if result.unchanged is not None:
        rows.append(_row(result, "unchanged", result.unchanged))
    cases = max((len(some) for tried in ranked for some in tried.numbers.values()), default=1)
    means = f"Means over {counted(len(result.seeds), 'seed')}"
    means += f" and {cases} cases; of what has to hold the worst case." if cases > 1 else "."
    lucky = "The best of many tries is lucky, too: go by what it is on seeds by which it was not chosen."
    table = Table(heads, rows, "numbers", stub=1 + len(result.settings))
    return Section("The best", [table, *notes(means, lucky, detail=True)])


def _place(at: int, tried: Tried) -> str:
    return "best" if at == 1 and tried.held else f"{at}.{_unless_held(tried)}"


def _unless_held(tried: Tried) -> str:
    return "" if tried.held else " (limits not held)"


def _row(result: SearchResult, name: str, tried: Tried, at: int = 0) -> Row:
    cells: list[Cell] = [name, *(tried.values.get(setting.key, "") for setting in result.settings)]
    cells += [Number(series.metric, _interval(result, tried, series)) for series in result.shown]
    return Row(cells, detail=at > _SHORT, kind="first" if at == 1 else "")


def _interval(result: SearchResult, tried: Tried, series: Series) -> Interval:
    """What is told of a try: of the goal and of other numbers the mean, of limits the worst case."""
    numbers = tried.numbers.get(series.name)
    if numbers is None:
        return Interval.of([])
    limit = next((limit for limit in result.limits if limit.series == series), None)
    if limit is None or series == result.goal.series:
        return result.goal.interval(numbers)
    return limit.worst(numbers)


# --- pictures -------------------------------------------------------------------------------------


def _search(result: SearchResult) -> Section:
    grey = "Grey: a limit does not hold. " if result.limits else ""
    blocks: list[Block] = [Drawing(_history(result), "Try by try", f"{grey}The line is the best so far.")]
    if result.importances:
        rows = [Row([key, Share(part)]) for key, part in result.importances.items()]
        shares = Table([Column(""), Column("", left=True)], rows, "shares")
        why = "How much of the differences between good and all tries each setting explains, by Optuna (PED-ANOVA)."
        blocks.append(Section("What mattered", [shares, *notes(why)], level=3))
    return Section("The search", [Beside(blocks, "pair")])


def _history(result: SearchResult) -> Chart:
    """The goal of each try, and the best so far."""
    end, number = len(result.tries) + 1, {id(tried): at for at, tried in enumerate(result.tries, 1)}
    line: list[Dot] = []
    for tried in result.tries:
        goal = _goal(result, tried)
        if tried.held and (not line or result.goal.better(goal, line[-1].y)):
            at = number[id(tried)]
            line += [*([Dot(at, line[-1].y)] if line else []), Dot(at, goal)]
    best = [Trail(_BEST, [*line, Dot(end, line[-1].y)], joined=True, bare=True)] if line else []
    marks = [(at, f"{at:g}") for at in between(0, len(result.tries), 7) if at and at == int(at)]
    return Chart(
        Axis("Try", 0, end, marks=marks),
        _up(result, result.goal.series.head),
        [*best, *_dots(result, lambda tried: number[id(tried)])],
        "Value of each try, and the best so far",
    )


def _slice(result: SearchResult, setting: Setting) -> Chart:
    """The goal of each try over the value of a setting."""
    if setting.choices:
        places = {value: float(at) for at, value in enumerate(setting.choices)}
        across = Axis("", -0.5, len(places) - 0.5, marks=[(at, value) for value, at in places.items()])
    else:
        places = {value: setting.number(value) for tried in result.tries if (value := tried.values.get(setting.key))}
        middle = math.sqrt(setting.low * setting.high) if setting.log else (setting.low + setting.high) / 2
        marks = [(at, setting.value(at)) for at in (setting.low, middle, setting.high)]
        across = Axis("", setting.low, setting.high, setting.log, marks=marks)
    trails = _dots(result, lambda tried: places.get(tried.values[setting.key], math.nan))
    return Chart(across, _up(result, ""), trails, f"{result.goal.series.label} over {setting.key}", "small")


def _dots(result: SearchResult, across: Callable[[Tried], float]) -> list[Trail]:
    """A dot for each try that did not fail, the best one last.

    Args:
        result: The search.
        across: Where on the horizontal axis a try is; nowhere if NaN.
    """
    best = result.best
    done = [tried for tried in result.tries if tried.goal is not None]
    kinds = (
        (_NOT, [tried for tried in done if not tried.held]),
        (_HELD, [tried for tried in done if tried.held and tried is not best]),
        (_BEST, [best] if best else []),
    )
    return [
        Trail(
            look,
            [
                Dot(across(tried), _goal(result, tried), _explained(result, tried),
                    size="large" if tried is best else "plain")
                for tried in some
            ],
        )
        for look, some in kinds
    ]  # fmt: skip


def _goal(result: SearchResult, tried: Tried) -> float:
    """The value of a try's goal in the metric's unit; NaN where it failed."""
    return math.nan if tried.goal is None else tried.goal * result.goal.series.metric.scale


def _up(result: SearchResult, name: str) -> Axis:
    values = [_goal(result, tried) for tried in result.tries if tried.goal is not None] or [0.0]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return Axis(name, low - room if low < 0 or low - room > 0 else 0.0, high + room)


def _explained(result: SearchResult, tried: Tried) -> str:
    """What a try is, and its numbers."""
    lines = [f"{key} = {value}" for key, value in tried.values.items()]
    for series in result.shown:
        number = series.metric.show_interval(_interval(result, tried, series))
        lines.append(f"{series.label}: {number} {series.metric.unit}".rstrip())
    return "\n".join(lines)
