"""The page of a search, and the numbers of its table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegate.optimisation.found import SearchResult, Tried
from tidegate.optimisation.space import Setting
from tidegate.results.folders import add_file
from tidegate.results.stats import Interval
from tidegate.show.palette import HUES, HUES_ON_DARK
from tidegate.show.report import document, tables
from tidegate.show.report import page as pages
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.show.report.path import BIG, SMALL, Frame, Scale, drawing
from tidegate.show.report.scatter import ticks
from tidegate.wording import counted

_LINES = 20  # of the table of the best
_HELD = f"{HUES[0]} {HUES_ON_DARK[0]}"
_NOT = f"{HUES[7]} {HUES_ON_DARK[7]}"
_BEST = f"{HUES[1]} {HUES_ON_DARK[1]}"


def write(target: Path, result: SearchResult) -> None:
    """Writes the page.

    Raises:
        OutputError: when it cannot be written.
    """
    add_file(target.parent, target.name, html(result))


def numbers(result: SearchResult, one: Tried) -> list[str]:
    """What tables show of a try: of the goal and of other numbers the mean, of limits the worst case."""
    return [_written(result, one, place) for place in range(len(result.shown))]


def _written(result: SearchResult, one: Tried, place: int) -> str:
    series = result.shown[place]
    found = one.numbers.get(series.name)
    if found is None:
        return "-"
    limit = next((limit for limit in result.limits if limit.series == series), None)
    of: Interval = result.goal.interval(found) if place == 0 or limit is None else limit.worst(found)
    return series.metric.show_interval(of)


def on_other_seeds(result: SearchResult) -> str:
    """What the line of the check is called."""
    held = result.checked is None or result.checked.held
    return f"best, on other seeds{'' if held else ' (limits not held)'}"


def html(result: SearchResult) -> str:
    """The whole page."""
    body = [_head(result), _best(result), _search(result), _slices(result), _reproduce(result)]
    scripts = [document.data(pages.NO_CHARTS), document.script(document.asset("report.js"))]
    return document.page(_title(result), body, [document.asset("report.css")], scripts)


def _title(result: SearchResult) -> str:
    return f"{result.name}: {result.goal.best} {result.goal.series.label.lower()}"


def _head(result: SearchResult) -> Markup:
    done = [one for one in result.tries if one.goal is not None]
    facts = [
        counted(len(result.tries), "try", "tries"),
        counted(len(result.seeds), "seed") + " each",
        f"Optuna {result.versions.get('optuna', '')}".strip(),
    ]
    if version := result.versions.get("tidegate"):
        facts.append(f"tidegate {version}")
    asked: list[Content] = [tag("dt", "sought"), tag("dd", result.goal.text)]
    for limit in result.limits:
        asked += [tag("dt", "has to hold"), tag("dd", limit.text)]
    for setting in result.settings:
        asked += [tag("dt", setting.key), tag("dd", setting.text)]
    notes = []
    if failed := [one for one in result.tries if one.goal is None]:
        told = f": {len(failed)} of {len(result.tries)} tries; the first: {failed[0].why}"
        notes.append(tag("p", tag("strong", "Failed"), told))
    if done and result.best is None:
        notes.append(tag("p", tag("strong", "No try holds all limits"), "; the table begins with the nearest."))
    facts_line = tag("p", " · ".join(facts), class_="soft")
    return tag("header", tag("h1", _title(result)), facts_line, *notes, tag("dl", *asked))


def _best(result: SearchResult) -> Markup:
    heads = ["", *(one.key for one in result.settings), *(series.head for series in result.shown)]
    rows = []

    def add(what: str, one: Tried | None, *, strong: bool = False) -> None:
        if one is None:
            return
        cells: list[Content] = [tag("th", what, scope="row")]
        cells += [tag("td", one.values.get(setting.key, tables.NOTHING)) for setting in result.settings]
        cells += [tag("td", text) for text in numbers(result, one)]
        rows.append(tag("tr", *cells, class_="first" if strong else None))

    ranked = result.ranked[:_LINES]
    for one in ranked[:1]:
        add("best" if result.best else "nearest", one, strong=True)
    add(on_other_seeds(result), result.checked)
    add("with nothing changed", result.unchanged)
    for number, one in enumerate(ranked[1:], 2):
        add(f"{number}.{'' if one.held else ' (limits not held)'}", one)
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in heads)))
    table = tag("table", head, tag("tbody", *rows), class_="numbers")
    cases = max((len(some) for one in ranked for some in one.numbers.values()), default=1)
    of = f"Means over {counted(len(result.seeds), 'seed')}"
    of += f" and {cases} cases; of what has to hold the worst case." if cases > 1 else "."
    lucky = "The best of many tries is lucky, too: go by what it is on seeds by which it was not chosen."
    return tag(
        "section",
        tag("h2", "The best"),
        tag("div", table, class_="scroll"),
        tag("p", f"{of} {lucky}", class_="soft"),
    )


# --- pictures -------------------------------------------------------------------------------------


def _search(result: SearchResult) -> Markup:
    figures = [
        tag("figure", tag("h3", "Try by try"), _history(result), tag("figcaption", _caption(result))),
    ]
    if result.importances:
        said = "How much of the differences between good and all tries each setting explains, by Optuna (PED-ANOVA)."
        figures.append(
            tag("figure", tag("h3", "What mattered"), _importances(result.importances), tag("figcaption", said))
        )
    return tag("section", tag("h2", "The search"), tag("div", *figures, class_="pair"))


def _caption(result: SearchResult) -> str:
    held = "Grey: a limit does not hold. " if result.limits else ""
    return f"{held}The line is the best so far."


def _values(result: SearchResult) -> list[float]:
    scale = result.goal.series.metric.scale
    return [one.goal * scale for one in result.tries if one.goal is not None]


def _up(result: SearchResult, frame: Frame) -> Scale:
    values = _values(result) or [0.0]
    low, top = min(values), max(values)
    room = 0.06 * (top - low) or 0.1 * abs(top) or 1.0
    return Scale(low - room if low < 0 or low - room > 0 else 0.0, top + room, False, frame.base, frame.top)


def _history(result: SearchResult) -> Markup:
    frame, up = BIG, _up(result, BIG)
    across = Scale(0, len(result.tries) + 1, False, frame.left, frame.right)
    parts = _frame(frame, up, result.goal.series.head)
    for tick in ticks(len(result.tries)):
        if tick == int(tick):
            parts.append(tag("text", f"{tick:g}", x=across.at(tick), y=frame.base + 17, text_anchor="middle"))
    parts.append(tag("text", "Try", x=(frame.left + frame.right) / 2, y=frame.height - 8, text_anchor="middle"))
    best: float | None = None
    line: list[str] = []
    dots: list[Content] = []
    scale = result.goal.series.metric.scale
    for number, one in enumerate(result.tries, 1):
        if one.goal is None:
            continue
        x, y = across.at(number), up.at(one.goal * scale)
        dots.append(_dot(result, one, x, y))
        if one.held and (best is None or result.goal.better(one.goal, best)):
            if best is not None:
                line.append(f"{x},{up.at(best * scale)}")
            best = one.goal
            line.append(f"{x},{y}")
    if best is not None:
        line.append(f"{frame.right},{up.at(best * scale)}")
        parts.append(tag("polyline", points=" ".join(line), class_="line", data_hue=_BEST))
    return drawing(frame, [*parts, *dots], "Value of each try, and the best so far")


def _importances(shares: Mapping[str, float]) -> Markup:
    rows = []
    for key, share in shares.items():
        bar = tag("div", style=f"width:{100 * share:.1f}%", class_="bar-of")
        rows.append(tag("tr", tag("td", key), tag("td", f"{100 * share:.0f} %"), tag("td", bar, class_="track")))
    return tag("table", tag("tbody", *rows), class_="shares")


def _slices(result: SearchResult) -> Markup:
    figures = [tag("figure", tag("h3", one.key), _slice(result, one)) for one in result.settings]
    return tag("section", tag("h2", "Setting by setting"), tag("div", *figures, class_="columns"))


def _slice(result: SearchResult, setting: Setting) -> Markup:
    frame, up = SMALL, _up(result, SMALL)
    parts = _frame(frame, up, "")
    tries = [one for one in result.tries if one.goal is not None]
    if setting.choices:
        across = Scale(-0.5, len(setting.choices) - 0.5, False, frame.left, frame.right)
        places = {value: float(number) for number, value in enumerate(setting.choices)}
        marks = [(float(number), value) for number, value in enumerate(setting.choices)]
    else:
        across = Scale(setting.low, setting.high, setting.log, frame.left, frame.right)
        places = {one.values[setting.key]: setting.number(one.values[setting.key]) for one in tries}
        middle = math.sqrt(setting.low * setting.high) if setting.log else (setting.low + setting.high) / 2
        marks = [(at, setting.value(at)) for at in (setting.low, middle, setting.high)]
    for at, text in marks:
        anchor = "end" if across.at(at) > frame.right - 20 else "middle"
        parts.append(tag("text", text, x=across.at(at), y=frame.base + 16, text_anchor=anchor))
    scale = result.goal.series.metric.scale
    parts += [
        _dot(result, one, across.at(places[one.values[setting.key]]), up.at((one.goal or 0.0) * scale))
        for one in tries
        if one.values[setting.key] in places
    ]
    return drawing(frame, parts, f"{result.goal.series.label} over {setting.key}")


def _frame(frame: Frame, up: Scale, name: str) -> list[Content]:
    parts: list[Content] = []
    for tick in _round(up.low, up.top):
        y = up.at(tick)
        parts.append(tag("line", x1=frame.left, y1=y, x2=frame.right, y2=y, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=frame.left - 6, y=y + 4, text_anchor="end"))
    parts.append(tag("line", x1=frame.left, y1=frame.base, x2=frame.right, y2=frame.base, class_="axis"))
    if name:
        turned = f"translate(13 {(frame.top + frame.base) / 2}) rotate(-90)"
        parts.append(tag("text", name, transform=turned, text_anchor="middle"))
    return parts


def _round(low: float, top: float) -> Sequence[float]:
    """Round numbers between two values."""
    steps = ticks(top - low, 4)
    step = steps[1] if len(steps) > 1 else (top - low) or 1.0
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(top / step + 1e-9) + 1)]


def _dot(result: SearchResult, one: Tried, x: float, y: float) -> Markup:
    said = [f"{key} = {value}" for key, value in one.values.items()]
    told = zip(result.shown, numbers(result, one), strict=True)
    said += [f"{series.label}: {text} {series.metric.unit}".rstrip() for series, text in told]
    hue = _BEST if one is result.best else _HELD if one.held else _NOT
    return tag("circle", tag("title", "\n".join(said)), cx=x, cy=y, r=6 if one is result.best else 4, data_hue=hue)


def _reproduce(result: SearchResult) -> Markup:
    parts: list[Content] = [tag("h2", "Make it again")]
    if result.again:
        parts += [tag("p", "To see the best in full:"), tag("pre", tag("code", result.again))]
    if result.command:
        parts += [tag("p", "The search:"), tag("pre", tag("code", result.command))]
    pairs = [item for name, value in result.versions.items() for item in (tag("dt", name), tag("dd", value))]
    parts.append(tag("details", tag("summary", "Versions"), tag("dl", *pairs)))
    text = tag("pre", tag("code", result.scenario))
    parts.append(tag("details", tag("summary", "Scenario or suite (TOML)"), text))
    about = {series.metric.name: series for series in result.shown}
    items = [item for one in about.values() for item in (tag("dt", one.label), tag("dd", one.metric.definition))]
    parts.append(tag("details", tag("summary", "What the numbers mean"), tag("dl", *items)))
    return tag("section", *parts)
