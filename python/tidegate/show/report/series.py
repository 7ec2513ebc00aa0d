"""The time series of a report: resampled to one grid, quantised and packed.

A report has to be mailed and opened offline, so its size counts. Series are rebinned to at least
:data:`MIN_BIN`, written as whole numbers of a stated step and as differences from one value to the
next: most of them are then one or two digits long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidegate.output.packed import pack
from tidegate.show import view
from tidegate.show._session import Session, queues, session
from tidegate.show.view import Floats, FlowSeries, RunLike

#: Finest bin shown, in seconds: RFC 8868 section 3 logs rates every 200 ms.
MIN_BIN = 0.2
#: Largest number of points of a series: a screen has hardly more pixels.
MAX_POINTS = 1500
#: Largest size (bytes) of the series of all seeds; further seeds are only in the table.
BUDGET = 600_000

#: The step of each quantity, in the unit of its axis.
STEPS = {
    "rate": 0.001, "delay": 0.1, "loss": 0.1, "queue": 0.1, "trip": 0.1, "pacer": 0.1, "frame": 0.1,
    "late": 0.1, "marks": 0.1,
}  # fmt: skip


def factor(bins: int, width: float) -> int:
    """The number of recorded bins in each bin of the report."""
    finest = math.ceil(MIN_BIN / width - 1e-9) if width > 0 else 1
    return max(1, min(finest, bins), math.ceil(bins / MAX_POINTS))


def _fold(values: Floats, k: int) -> Floats:
    padded = np.full(math.ceil(len(values) / k) * k, np.nan)
    padded[: len(values)] = values
    return padded.reshape(-1, k)


def _mean(values: Floats, k: int) -> Floats:
    return _weighted(values, np.ones(len(values)), k)


def _weighted(values: Floats, weights: Floats, k: int) -> Floats:
    folded, folded_weights = _fold(values, k), _fold(weights, k)
    valid = np.isfinite(folded) & (folded_weights > 0)
    total = np.where(valid, folded_weights, 0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.where(total > 0, np.where(valid, folded * folded_weights, 0).sum(axis=1) / total, np.nan)


def _largest(values: Floats, k: int) -> Floats:
    folded = _fold(values, k)
    largest = np.where(np.isfinite(folded), folded, -np.inf).max(axis=1)
    return np.where(np.isfinite(largest), largest, np.nan)


def _last(values: Floats, k: int) -> Floats:
    return values[np.minimum(np.arange(k - 1, k * math.ceil(len(values) / k), k), len(values) - 1)]


def step_means(t: Floats, values: Floats, edges: Floats) -> Floats:
    """Means of a step function over the bins between ``edges``; NaN for bins before its first step."""
    if not len(t):
        return np.full(len(edges) - 1, np.nan)
    corners = np.unique(np.concatenate([edges, t[(t > edges[0]) & (t < edges[-1])]]))
    level = view.step_at(t, values, corners[:-1])
    area = np.concatenate([[0.0], np.cumsum(level * np.diff(corners))])
    index = np.searchsorted(corners, edges)
    return np.diff(area[index]) / np.diff(edges)


def _flow(series: FlowSeries, grid: Floats, k: int) -> dict[str, Floats]:
    """A flow's series on the report's bins, in the units of the axes."""

    def lay(values: Floats) -> Floats:
        return view.on_grid(series.t, values, grid)

    arrived, lost = np.nan_to_num(lay(series.arrived)), np.nan_to_num(lay(series.lost))
    packets = np.nansum(_fold(arrived + lost, k), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = np.where(packets > 0, np.nansum(_fold(lost, k), axis=1) / packets * 100, np.nan)
    marks = {"marks": _weighted(lay(series.marked), arrived + lost, k) * 100} if view.has_marks(series) else {}
    receive = _mean(lay(series.receive_bps), k) / 1e6
    # a call that was recorded only at its sender has no receive rate: the sending rate is shown instead
    sent = {} if np.isfinite(receive).any() else {"sent": _mean(lay(series.sending_bps), k) / 1e6}
    return {
        "receive": receive,
        **sent,
        "target": _last(lay(series.target_bps), k) / 1e6,
        "delay": _weighted(lay(series.delay_ms), arrived, k),
        "delayMax": _largest(lay(series.delay_max_ms), k),
        "loss": loss,
        **marks,
    }


_KIND = {
    "receive": "rate", "sent": "rate", "target": "rate", "goodput": "rate", "acked": "rate", "encoder": "rate",
    "delay": "delay", "delayMax": "delay", "loss": "loss", "trip": "trip", "pacer": "pacer", "frame": "frame",
    "late": "late", "marks": "marks",
}  # fmt: skip


def _ends(ends: Session, grid: Floats, k: int) -> dict[str, Floats]:
    """The series that the two ends of a flow knew, on the report's bins, in the units of the axes."""

    def rate(values: Floats) -> Floats:
        return _mean(view.on_grid(ends.series.t, values, grid), k) / 1e6

    edges = np.append(grid[::k] - ends.series.width / 2, grid[-1] + ends.series.width / 2)
    return {
        "goodput": rate(ends.goodput_bps),
        "acked": rate(ends.acked_bps),
        "encoder": rate(ends.encoder_bps),
        "trip": _largest_in(*ends.round_trip, edges),
        "pacer": _largest_in(*ends.pacer, edges) / 1e3,
        "frame": _largest_in(*ends.frames, edges),
        "late": _largest_in(*ends.lateness, edges),
    }


def _largest_in(t: Floats, values: Floats, edges: Floats) -> Floats:
    """The largest value in each bin, from values at times; NaN in bins without a value."""
    out = np.full(len(edges) - 1, -np.inf)
    index = np.searchsorted(edges, t, side="right") - 1
    inside = (index >= 0) & (index < len(out)) & np.isfinite(values)
    np.maximum.at(out, index[inside], values[inside])
    return np.where(np.isfinite(out), out, np.nan)


def panel(run: RunLike, subjects: Sequence[str], link: str | None, *, ends: bool = False) -> dict[str, Any]:
    """Packs the series of one run.

    Args:
        run: The run.
        subjects: The flows that are shown in full; other flows have only their receive rate.
        link: The link whose capacity is shown; ``None`` for no capacity.
        ends: Whether to include the series that the ends of these flows knew.
    """
    recorded = {str(entry["flow"]): view.flow_series(run, str(entry["flow"])) for entry in run.summary["flows"]}
    longest = max(recorded.values(), key=lambda series: len(series.t))
    grid, width = longest.t, longest.width
    k = factor(len(grid), width)
    flows: list[dict[str, Any]] = []
    for name in subjects:
        curves = _flow(recorded[name], grid, k)
        entry: dict[str, Any] = {"name": name}
        if ends and len(grid):
            both_ends = session(run, name)
            curves |= _ends(both_ends, grid, k)
            stretches = zip(*both_ends.without_picture, strict=True)
            entry["without_picture"] = [[round(float(begin), 3), round(float(end), 3)] for begin, end in stretches]
        flows.append(entry | {key: pack(values, STEPS[_KIND[key]]) for key, values in curves.items()})
    rates = {name: _mean(rate, k) / 1e6 for name, rate in view.others(run, subjects, grid).items()}
    start = float(grid[0] - width / 2) if len(grid) else 0.0
    bins = math.ceil(len(grid) / k)
    edges: Floats = (start + np.arange(bins + 1) * width * k).astype(np.float64)
    out: dict[str, Any] = {
        "seed": view.seed_of(run),
        "t0": round(start, 6),
        "dt": round(width * k, 6),
        "n": bins,
        "flows": flows,
        "others": [{"name": name, "receive": pack(rate, STEPS["rate"])} for name, rate in rates.items()],
    }
    if link is not None and bins:
        capacity = step_means(*view.truth(run, link), edges) / 1e6
        if np.isfinite(capacity).any():
            out["capacity"] = pack(capacity, STEPS["rate"])
    if bins:
        out["queues"] = [
            {"name": name, "bytes": pack(step_means(t, size, edges) / 1e3, STEPS["queue"])}
            for name, (t, size) in queues(run).items()
        ]
    return out


def size(packed: Any) -> int:
    """The size (bytes) of packed data as JSON."""
    return len(json.dumps(packed, separators=(",", ":")))


def distribution(delays: Floats, grid: Floats) -> list[int]:
    """The share of packets (1/1000) with at most the delays of ``grid``, from the delays at ``view.SHARES``."""
    if not len(delays):
        return []
    share = np.interp(grid, delays, view.SHARES, left=0.0, right=1.0)
    return [round(float(value) * 1000) for value in share]
