"""The document of a search: the best tries, and the goal against each setting for all tries."""

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
    from tidegate.optimisation.result import SearchResult, Try
    from tidegate.optimisation.space import Setting
    from tidegate.query import Series

_ROWS, _SHORT_ROWS = 20, 5
"""Rows of the table of the best tries, in full and in short outputs."""
_ALLOWED, _FORBIDDEN, _BEST = Look(0), Look(7), Look(1)


def document(result: SearchResult) -> Document:
    """The document of a search."""
    failed = [tried for tried in result.tries if tried.goal is None]
    facts = [
        counted(len(result.tries), "try", "tries"),
        counted(len(result.seeds), "seed") + " each",
        f"Optuna {result.versions.get('optuna', '')}".strip(),
    ]
    if version := result.versions.get("tidegate"):
        facts.append(f"tidegate {version}")
    failures = [("Failed", f"{len(failed)} of {len(result.tries)} tries; the first: {failed[0].why}")] if failed else []
    nearest = "no try keeps all limits; the table begins with the try closest to them"
    return Document(
        f"{result.name}: {result.goal.best} {result.goal.series.label.lower()}",
        [_best_section(result)],
        [
            _search_section(result),
            Section(
                "Goal against each setting",
                [Beside([Drawing(_setting_chart(result, setting), setting.key) for setting in result.settings])],
            ),
            again(
                {"The command that runs the best try:": result.again, "The command of this search:": result.command},
                versions=result.versions,
                text=("Scenario or suite (TOML)", result.scenario),
            ),
            definitions(series.metric for series in result.columns),
        ],
        facts,
        failures=failures,
        remarks=Remarks([nearest] if result.best is None and len(failed) < len(result.tries) else []),
        settings=[
            ("goal", result.goal.text),
            *(("limit", limit.text) for limit in result.limits),
            *((setting.key, setting.text) for setting in result.settings),
        ],
    )


def _best_section(result: SearchResult) -> Section:
    """The best tries, the best one on other seeds, and a try without any change."""
    heads = [Column(""), *(Column(setting.key) for setting in result.settings)]
    heads += [Column(series.label, series.metric) for series in result.columns]
    ranked = result.ranked[:_ROWS]
    rows = [_try_row(result, _rank_label(rank, tried), tried, rank) for rank, tried in enumerate(ranked, 1)]
    if result.checked is not None:
        rows.append(_try_row(result, f"best, with other seeds{_unless_held(result.checked)}", result.checked))
    if result.unchanged is not None:
        rows.append(_try_row(result, "unchanged", result.unchanged))
    cases = max((len(of_cases) for tried in ranked for of_cases in tried.numbers.values()), default=1)
    means = f"Means over {counted(len(result.seeds), 'seed')}"
    means += f" and {cases} cases; for limits the worst case." if cases > 1 else "."
    chance = "The best of many tries is partly chance: rely on its numbers with other seeds."
    table = Table(heads, rows, "numbers", stub=1 + len(result.settings))
    return Section("The best tries", [table, *notes(means, chance, detail=True)])


def _rank_label(rank: int, tried: Try) -> str:
    return "best" if rank == 1 and tried.held else f"{rank}.{_unless_held(tried)}"


def _unless_held(tried: Try) -> str:
    return "" if tried.held else " (limits not kept)"


def _try_row(result: SearchResult, name: str, tried: Try, rank: int = 0) -> Row:
    cells: list[Cell] = [name, *(tried.values.get(setting.key, "") for setting in result.settings)]
    cells += [Number(series.metric, _interval(result, tried, series)) for series in result.columns]
    return Row(cells, detail=rank > _SHORT_ROWS, kind="first" if rank == 1 else "")


def _interval(result: SearchResult, tried: Try, series: Series) -> Interval:
    """The number of a try to show: the worst case for a limit, the mean for the goal and other numbers."""
    numbers = tried.numbers.get(series.name)
    if numbers is None:
        return Interval.of([])
    limit = next((limit for limit in result.limits if limit.series == series), None)
    if limit is None or series == result.goal.series:
        return result.goal.interval(numbers)
    return limit.worst(numbers)


# --- pictures -------------------------------------------------------------------------------------


def _search_section(result: SearchResult) -> Section:
    grey = "Grey: a limit is not kept. " if result.limits else ""
    blocks: list[Block] = [Drawing(_history_chart(result), "Try by try", f"{grey}The line is the best value so far.")]
    if result.importances:
        rows = [Row([key, Share(share)]) for key, share in result.importances.items()]
        shares = Table([Column(""), Column("", left=True)], rows, "shares")
        why = "Share of the difference between good tries and all tries that each setting explains (Optuna, PED-ANOVA)."
        blocks.append(Section("Importance of the settings", [shares, *notes(why)], level=3))
    return Section("The search", [Beside(blocks, "pair")])


def _history_chart(result: SearchResult) -> Chart:
    """The goal of each try, and the best so far."""
    end, numbers = len(result.tries) + 1, {id(tried): number for number, tried in enumerate(result.tries, 1)}
    line: list[Dot] = []
    for tried in result.tries:
        goal = _goal_value(result, tried)
        if tried.held and (not line or result.goal.better(goal, line[-1].y)):
            number = numbers[id(tried)]
            line += [*([Dot(number, line[-1].y)] if line else []), Dot(number, goal)]
    best = [Trail(_BEST, [*line, Dot(end, line[-1].y)], joined=True, bare=True)] if line else []
    marks = [(mark, f"{mark:g}") for mark in between(0, len(result.tries), 7) if mark and mark == int(mark)]
    return Chart(
        Axis("Try", 0, end, marks=marks),
        _goal_axis(result, result.goal.series.head),
        [*best, *_try_dots(result, lambda tried: numbers[id(tried)])],
        "Goal of each try, and the best value so far",
    )


def _setting_chart(result: SearchResult, setting: Setting) -> Chart:
    """Draws the goal of each try against the value of a setting."""
    if setting.choices:
        positions = {value: float(position) for position, value in enumerate(setting.choices)}
        across = Axis(
            "", -0.5, len(positions) - 0.5, marks=[(position, value) for value, position in positions.items()]
        )
    else:
        positions = {value: setting.number(value) for tried in result.tries if (value := tried.values.get(setting.key))}
        middle = math.sqrt(setting.low * setting.high) if setting.log else (setting.low + setting.high) / 2
        marks = [(position, setting.value(position)) for position in (setting.low, middle, setting.high)]
        across = Axis("", setting.low, setting.high, setting.log, marks=marks)
    trails = _try_dots(result, lambda tried: positions.get(tried.values[setting.key], math.nan))
    return Chart(across, _goal_axis(result, ""), trails, f"{result.goal.series.label} against {setting.key}", "small")


def _try_dots(result: SearchResult, across: Callable[[Try], float]) -> list[Trail]:
    """A dot for each try that did not fail, the best one last.

    Args:
        result: The search.
        across: Position of a try on the horizontal axis; NaN leaves it out.
    """
    best = result.best
    done = [tried for tried in result.tries if tried.goal is not None]
    kinds = (
        (_FORBIDDEN, [tried for tried in done if not tried.held]),
        (_ALLOWED, [tried for tried in done if tried.held and tried is not best]),
        (_BEST, [best] if best else []),
    )
    return [
        Trail(
            look,
            [
                Dot(across(tried), _goal_value(result, tried), _dot_text(result, tried),
                    size="large" if tried is best else "plain")
                for tried in tries
            ],
        )
        for look, tries in kinds
    ]  # fmt: skip


def _goal_value(result: SearchResult, tried: Try) -> float:
    """The value of a try's goal in the metric's unit; NaN where it failed."""
    return math.nan if tried.goal is None else tried.goal * result.goal.series.metric.scale


def _goal_axis(result: SearchResult, name: str) -> Axis:
    values = [_goal_value(result, tried) for tried in result.tries if tried.goal is not None] or [0.0]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return Axis(name, low - room if low < 0 or low - room > 0 else 0.0, high + room)


def _dot_text(result: SearchResult, tried: Try) -> str:
    """Text of a dot: the try's settings and numbers."""
    lines = [f"{key} = {value}" for key, value in tried.values.items()]
    for series in result.columns:
        number = series.metric.show_interval(_interval(result, tried, series))
        lines.append(f"{series.label}: {number} {series.metric.unit}".rstrip())
    return "\n".join(lines)
