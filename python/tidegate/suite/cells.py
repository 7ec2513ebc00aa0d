"""What is behind each cell, as data: the page's script makes it into what is seen when a cell is opened.

A page has to be mailed, so what is kept goes by a budget: series in coarser bins first, then only for cells that are
not passed, then for none; numbers of all metrics, then only of those that are compared or judged, then none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.output.packed import pack
from tidegate.output.palette import Look
from tidegate.results.metrics import FLOWS, finite
from tidegate.results.stats import Interval
from tidegate.suite import numbers
from tidegate.suite.scores import SHOWN

if TYPE_CHECKING:
    from tidegate.suite.numbers import Row
    from tidegate.suite.result import Cell, SuiteResult

_BINS = (1, 2, 5, 10)
"""Seconds of a bin of series, finer ones first."""
_STEPS = {"rate": 1e4, "delay": 1.0}
"""What a step of a kept series is, in bit/s and ms."""
_FEW = "To keep the page small, opened cells have only the numbers that are compared or judged; scores.csv has all."
_NONE = "To keep the page small, opened cells have no numbers but those of their rules; scores.csv has all."
_MOST_FLOWS = 8
_MOST_EVENTS = 24


def data(result: SuiteResult, own: Mapping[str, Look], room: int) -> dict[str, Any]:
    """All that the script draws from.

    Args:
        result: The result.
        own: How controllers look.
        room: Bytes that it may take.
    """
    cells = [_cell(result, cell) for cell in result.cells]
    room -= _size(cells)
    names, notes = _add_numbers(result, cells, room // 2)
    notes += _add_series(result, cells, room // 2)
    return {
        "controllers": [
            {
                "name": controller,
                "light": own[controller].colour,
                "dark": own[controller].on_dark,
                "dash": list(own[controller].dashes),
            }
            for controller in result.controllers
        ],
        "cases": [
            {"name": case.name, "title": case.title, "source": case.source, "notRun": case.not_run}
            for case in result.suite.cases
        ],
        "rules": [{"name": rule.name, "says": rule.says, "source": rule.source} for rule in result.suite.rules],
        "metrics": [_about(name) for name in names],
        "cells": cells,
        "steps": _STEPS,
        "note": " ".join(notes),
    }


def _about(name: str) -> list[Any]:
    metric = numbers.about(name)
    return [name, metric.label, metric.unit, metric.digits, metric.definition]


def _cell(result: SuiteResult, cell: Cell) -> dict[str, Any]:
    place = {rule.name: at for at, rule in enumerate(result.suite.rules)}
    made: dict[str, Any] = {"state": cell.state}
    if cell.why:
        made["why"] = cell.why[:2000]
    if cell.checks:
        made["checks"] = [
            [
                place[check.rule.name],
                "no value" if check.missing else check.shown,
                "" if check.value.half is None else check.interval,
                check.limit,
                int(check.passed) + 2 * int(check.close),
                check.beyond,
            ]
            for check in cell.checks
        ]
    return made


def _names(result: SuiteResult) -> list[str]:
    """The metrics that some run has."""
    there: set[str] = set()
    for _, _, _, row in result.runs():
        for flow in row["contenders"]:
            there |= {name for name, value in _of_flow(row, flow).items() if finite(value) is not None}
        there |= {name for name, value in row["measures"]["run"].items() if finite(value) is not None}
    return [name for name in numbers.known() if name in there]


def _of_flow(row: Row, flow: str) -> dict[str, Any]:
    plain: Mapping[str, Any] = next((entry for entry in row["flows"] if entry["flow"] == flow), {})
    known = {name: plain[name] for name in FLOWS if name in plain}
    return {**known, **row["measures"]["flows"].get(flow, {})}


def _add_numbers(result: SuiteResult, cells: Sequence[dict[str, Any]], room: int) -> tuple[list[str], list[str]]:
    """Numbers of each cell's flows and of the run, as means over seeds with half an interval.

    Returns:
        The names of the numbers, and what was left out.
    """
    names = _names(result)
    made = [_numbers(result, cell, names) for cell in result.cells]
    left_out: list[str] = []
    if _size(made) > room:
        few = {name for name, _ in SHOWN} | {rule.metric for rule in result.suite.rules}
        names, left_out = [name for name in names if name in few], [_FEW]
        made = [_numbers(result, cell, names) for cell in result.cells]
    if _size(made) > room:
        names, left_out = [], [_NONE]
        made = [_numbers(result, cell, names) for cell in result.cells]
    for cell, further in zip(cells, made, strict=True):
        cell.update(further)
    return names, left_out


def _numbers(result: SuiteResult, cell: Cell, names: Sequence[str]) -> dict[str, Any]:
    rows = list(result.rows.get((cell.case, cell.controller), {}).values())
    if not rows or not names:
        return {}
    flows = list(rows[0]["contenders"])
    kept = [
        {"name": flow, "values": _values([_of_flow(row, flow) for row in rows], names)} for flow in flows[:_MOST_FLOWS]
    ]
    others = [flow for flow in rows[0]["flows"] if flow["flow"] not in flows]
    beside = [
        [str(flow["flow"]), str(flow["kind"]), _rounded("receive_rate_bps", _mean_rate(rows, str(flow["flow"])))]
        for flow in others[:_MOST_FLOWS]
    ]
    return {
        "flows": kept,
        "run": _values([row["measures"]["run"] for row in rows], names),
        "more": [max(0, len(flows) - _MOST_FLOWS), max(0, len(others) - _MOST_FLOWS)],
        "beside": beside,
        "digest": str(rows[0]["digest"]),
        "seed": rows[0]["seed"],
    }


def _mean_rate(rows: Sequence[Row], flow: str) -> float | None:
    of = [finite(_of_flow(row, flow).get("receive_rate_bps")) for row in rows]
    known = Interval.of(of)
    return known.mean if known.count else None


def _values(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[float]]:
    """Mean and half an interval of each that there is, in the metric's unit; nothing of those that there are not."""
    made: list[list[float]] = []
    for name in names:
        values = [value for row in rows if (value := finite(row.get(name))) is not None]
        mean = Interval.of(values)
        shown = ((mean.mean,) if not mean.half else (mean.mean, mean.half)) if values else ()
        made.append([part for value in shown if (part := _rounded(name, value)) is not None])
    return made


def _rounded(name: str, value: float | None) -> float | None:
    metric = numbers.about(name)
    if value is None:
        return None
    shown = round(value * metric.scale, metric.digits + 1)
    return int(shown) if shown == int(shown) else shown


def _add_series(result: SuiteResult, cells: Sequence[dict[str, Any]], room: int) -> list[str]:
    """Rates over capacity, and delays, of the first seed; and how soon flows found their rate at each event."""
    firsts = [_first(result, cell) for cell in result.cells]
    some = firsts[:: max(1, len(firsts) // 60)]
    # a part of them tells what all would take: packing all of them for each width would be long
    likely = _size([_series(row, 1) for row in some]) * len(firsts) / max(1, len(some))
    made: list[dict[str, Any]] = []
    for width in [bin_s for bin_s in _BINS if likely / bin_s <= 1.2 * room] or _BINS[-1:]:
        made = [_series(row, width) for row in firsts]
        if _size(made) <= room:
            break
    notes: list[str] = []
    if _size(made) > room:
        made = [{} if cell.state == "pass" else some for cell, some in zip(result.cells, made, strict=True)]
        notes.append("To keep the page small, cells that are passed have no pictures.")
    if _size(made) > room:
        made = [{} for _ in made]
        notes = ["To keep the page small, cells have no pictures."]
    for cell, further in zip(cells, made, strict=True):
        cell.update(further)
    return notes


def _first(result: SuiteResult, cell: Cell) -> Row | None:
    rows = result.rows.get((cell.case, cell.controller), {})
    return rows[min(rows)] if rows else None


def _series(row: Row | None, width: int) -> dict[str, Any]:
    if row is None:
        return {}
    kept = row["measures"]
    made: dict[str, Any] = {}
    if events := list(kept.get("events") or ())[:_MOST_EVENTS]:
        made["events"] = [[event["at_s"], event["what"], event["flow"], event["seconds"]] for event in events]
    of = kept.get("series") or {}
    flows, links = dict(of.get("flows") or {}), dict(of.get("links") or {})
    if not flows or not len(of.get("t_s") or ()):
        return made
    names = [name for name in flows if name in row["contenders"]] + [
        name for name in flows if name not in row["contenders"]
    ]
    shown = [
        {
            "name": name,
            "own": int(name in row["contenders"]),
            "rate": _packed(flows[name].get("rate_bps"), width, "rate"),
            "share": _packed(flows[name].get("share_bps"), width, "rate") if name in row["contenders"] else [],
            "delay": _packed(flows[name].get("delay_ms"), width, "delay") if name in row["contenders"] else [],
        }
        for name in names[:_MOST_FLOWS]
    ]
    # the narrowest link is what flows compete for
    means = {name: float(np.nanmean(link["capacity_bps"])) for name, link in links.items() if len(link["capacity_bps"])}
    link = min(means, key=lambda name: means[name]) if means else ""
    made["series"] = {
        "seed": row["seed"],
        "t0": float(of["t_s"][0]),
        "dt": float(width),
        "flows": shown,
        "capacity": _packed(links[link]["capacity_bps"], width, "rate") if link else [],
        "link": link,
        "links": len(means),
    }
    return made


def _packed(values: Sequence[float | None] | None, width: int, quantity: str) -> list[int | None]:
    """Means over bins, as whole steps and differences from one to the next; nothing where all are unknown."""
    if not values:
        return []
    plain = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    padded = np.full(-(-len(plain) // width) * width, np.nan)
    padded[: len(plain)] = plain
    folded = padded.reshape(-1, width)
    known = np.isfinite(folded)
    count = known.sum(axis=1)
    means = np.where(count > 0, np.where(known, folded, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)
    return pack(means, _STEPS[quantity]) if np.isfinite(means).any() else []


def _size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":")))
