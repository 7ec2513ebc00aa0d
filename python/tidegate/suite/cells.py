"""Details of each cell as data, which the page's script shows when the cell is opened.

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
from tidegate.suite.scores import SCORED

if TYPE_CHECKING:
    from tidegate.suite.numbers import Row
    from tidegate.suite.result import Cell, SuiteResult

_BINS = (1, 2, 5, 10)
"""Seconds of a bin of series, finer ones first."""
_STEPS = {"rate": 1e4, "delay": 1.0}
"""Size of a step of a kept series, in bit/s and ms."""
_SOME_NUMBERS = (
    "To keep the page small, opened cells have only the numbers that are compared or judged; scores.csv has all."
)
_RULE_NUMBERS = "To keep the page small, opened cells have only the numbers of their rules; scores.csv has all."
_MOST_FLOWS = 8
_MOST_EVENTS = 24


def data(result: SuiteResult, look_of: Mapping[str, Look], room: int) -> dict[str, Any]:
    """Collects the data that the script draws.

    Args:
        result: The result.
        look_of: The look of each controller.
        room: Largest size of the data, in bytes.
    """
    cells = [_cell(result, cell) for cell in result.cells]
    room -= _size(cells)
    names, notes = _add_numbers(result, cells, room // 2)
    notes += _add_series(result, cells, room // 2)
    return {
        "controllers": [
            {
                "name": controller,
                "light": look_of[controller].colour,
                "dark": look_of[controller].on_dark,
                "dash": list(look_of[controller].dashes),
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
    metric = numbers.metric_of(name)
    return [name, metric.label, metric.unit, metric.digits, metric.definition]


def _cell(result: SuiteResult, cell: Cell) -> dict[str, Any]:
    number_of = {rule.name: number for number, rule in enumerate(result.suite.rules)}
    packed: dict[str, Any] = {"state": cell.state}
    if cell.why:
        packed["why"] = cell.why[:2000]
    if cell.checks:
        packed["checks"] = [
            [
                number_of[check.rule.name],
                "no value" if check.missing else check.shown,
                "" if check.value.half is None else check.interval,
                check.limit,
                int(check.passed) + 2 * int(check.close),
                check.beyond,
            ]
            for check in cell.checks
        ]
    return packed


def _names(result: SuiteResult) -> list[str]:
    """Returns the metrics that at least one run has."""
    present: set[str] = set()
    for _, _, _, row in result.runs():
        for flow in row["contenders"]:
            present |= {name for name, value in _of_flow(row, flow).items() if finite(value) is not None}
        present |= {name for name, value in row["measures"]["run"].items() if finite(value) is not None}
    return [name for name in numbers.names() if name in present]


def _of_flow(row: Row, flow: str) -> dict[str, Any]:
    summary: Mapping[str, Any] = next((entry for entry in row["flows"] if entry["flow"] == flow), {})
    metrics = {name: summary[name] for name in FLOWS if name in summary}
    return {**metrics, **row["measures"]["flows"].get(flow, {})}


def _add_numbers(result: SuiteResult, cells: Sequence[dict[str, Any]], room: int) -> tuple[list[str], list[str]]:
    """Numbers of each cell's flows and of the run, as means over seeds with half an interval.

    Returns:
        The names of the numbers, and notes on those left out.
    """
    names = _names(result)
    of_cells = [_numbers(result, cell, names) for cell in result.cells]
    left_out: list[str] = []
    if _size(of_cells) > room:
        necessary = {name for name, _ in SCORED} | {rule.metric for rule in result.suite.rules}
        names, left_out = [name for name in names if name in necessary], [_SOME_NUMBERS]
        of_cells = [_numbers(result, cell, names) for cell in result.cells]
    if _size(of_cells) > room:
        names, left_out = [], [_RULE_NUMBERS]
        of_cells = [_numbers(result, cell, names) for cell in result.cells]
    for cell, of_cell in zip(cells, of_cells, strict=True):
        cell.update(of_cell)
    return names, left_out


def _numbers(result: SuiteResult, cell: Cell, names: Sequence[str]) -> dict[str, Any]:
    rows = list(result.rows.get((cell.case, cell.controller), {}).values())
    if not rows or not names:
        return {}
    flows = list(rows[0]["contenders"])
    judged = [
        {"name": flow, "values": _values([_of_flow(row, flow) for row in rows], names)} for flow in flows[:_MOST_FLOWS]
    ]
    rest = [flow for flow in rows[0]["flows"] if flow["flow"] not in flows]
    beside = [
        [str(flow["flow"]), str(flow["kind"]), _rounded("receive_rate_bps", _mean_rate(rows, str(flow["flow"])))]
        for flow in rest[:_MOST_FLOWS]
    ]
    return {
        "flows": judged,
        "run": _values([row["measures"]["run"] for row in rows], names),
        "more": [max(0, len(flows) - _MOST_FLOWS), max(0, len(rest) - _MOST_FLOWS)],
        "beside": beside,
        "digest": str(rows[0]["digest"]),
        "seed": rows[0]["seed"],
    }


def _mean_rate(rows: Sequence[Row], flow: str) -> float | None:
    rates = [finite(_of_flow(row, flow).get("receive_rate_bps")) for row in rows]
    mean = Interval.of(rates)
    return mean.mean if mean.count else None


def _values(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[float]]:
    """Returns mean and half interval of each metric, in its unit; an empty list for one without values."""
    packed: list[list[float]] = []
    for name in names:
        values = [value for row in rows if (value := finite(row.get(name))) is not None]
        mean = Interval.of(values)
        pair = ((mean.mean,) if not mean.half else (mean.mean, mean.half)) if values else ()
        packed.append([part for value in pair if (part := _rounded(name, value)) is not None])
    return packed


def _rounded(name: str, value: float | None) -> float | None:
    metric = numbers.metric_of(name)
    if value is None:
        return None
    rounded = round(value * metric.scale, metric.digits + 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _add_series(result: SuiteResult, cells: Sequence[dict[str, Any]], room: int) -> list[str]:
    """Adds rates over capacity and delays of the first seed, and the convergence time after each event."""
    firsts = [_first(result, cell) for cell in result.cells]
    sample = firsts[:: max(1, len(firsts) // 60)]
    # the size of all is estimated from a sample: packing all of them for each width would take long
    likely = _size([_series(row, 1) for row in sample]) * len(firsts) / max(1, len(sample))
    of_cells: list[dict[str, Any]] = []
    for width in [bin_s for bin_s in _BINS if likely / bin_s <= 1.2 * room] or _BINS[-1:]:
        of_cells = [_series(row, width) for row in firsts]
        if _size(of_cells) <= room:
            break
    notes: list[str] = []
    if _size(of_cells) > room:
        of_cells = [{} if cell.state == "pass" else sample for cell, sample in zip(result.cells, of_cells, strict=True)]
        notes.append("To keep the page small, passed cells have no charts.")
    if _size(of_cells) > room:
        of_cells = [{} for _ in of_cells]
        notes = ["To keep the page small, cells have no charts."]
    for cell, of_cell in zip(cells, of_cells, strict=True):
        cell.update(of_cell)
    return notes


def _first(result: SuiteResult, cell: Cell) -> Row | None:
    rows = result.rows.get((cell.case, cell.controller), {})
    return rows[min(rows)] if rows else None


def _series(row: Row | None, width: int) -> dict[str, Any]:
    if row is None:
        return {}
    measures = row["measures"]
    packed: dict[str, Any] = {}
    if events := list(measures.get("events") or ())[:_MOST_EVENTS]:
        packed["events"] = [[event["at_s"], event["what"], event["flow"], event["seconds"]] for event in events]
    series = measures.get("series") or {}
    flows, links = dict(series.get("flows") or {}), dict(series.get("links") or {})
    if not flows or not len(series.get("t_s") or ()):
        return packed
    names = [name for name in flows if name in row["contenders"]] + [
        name for name in flows if name not in row["contenders"]
    ]
    drawn = [
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
    packed["series"] = {
        "seed": row["seed"],
        "t0": float(series["t_s"][0]),
        "dt": float(width),
        "flows": drawn,
        "capacity": _packed(links[link]["capacity_bps"], width, "rate") if link else [],
        "link": link,
        "links": len(means),
    }
    return packed


def _packed(values: Sequence[float | None] | None, width: int, quantity: str) -> list[int | None]:
    """Returns means over bins, as whole steps and differences between neighbours; empty where all are unknown."""
    if not values:
        return []
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    padded = np.full(-(-len(numbers) // width) * width, np.nan)
    padded[: len(numbers)] = numbers
    folded = padded.reshape(-1, width)
    finite_values = np.isfinite(folded)
    count = finite_values.sum(axis=1)
    means = np.where(count > 0, np.where(finite_values, folded, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)
    return pack(means, _STEPS[quantity]) if np.isfinite(means).any() else []


def _size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":")))
