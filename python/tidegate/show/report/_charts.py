"""Charts of a report: over time, and distributions of delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidegate.output.document import Timeline
from tidegate.output.palette import HUES, HUES_ON_DARK, Look
from tidegate.show import view
from tidegate.show.report import series
from tidegate.show.view import RunLike

Groups = Mapping[str, Sequence[RunLike]]

# Above this ratio between the largest and the smallest delay the axis is logarithmic: a linear one would show only one
# of the two.
_LOG_RATIO = 30.0
_CDF_POINTS = 240

_QUANTITIES = (
    (
        "rate",
        "Rate against capacity",
        "The rate at the receiver, the controller's target, and the capacity of the link.",
    ),
    ("delay", "One-way delay", "From the sender's network interface to arrival: mean and maximum of each bin."),
    ("trip", "Round trip", "Round-trip time from RTCP reports, or the controller's estimate: maximum of each bin."),
    ("pacer", "Delay in the pacer", "Waiting time of media in the sender's pacer: maximum of each bin."),
    ("frame", "Frame delay", "From capture to the screen: maximum of each bin; time without a new picture is shaded."),
    ("late", "Frame lateness", "How much later than the quickest a video frame was complete: maximum of each bin."),
    ("loss", "Packets lost", "Lost packets as a share of the packets received or lost in each bin."),
    ("marks", "Packets marked", "Packets that queues marked, as a share of those received or lost in each bin."),
    ("queue", "Queues", "Bytes in the queue of each link; with DualPI2 in each of its two queues."),
)
_UNKNOWN_CAPACITY = ("rate", "Rate", "The rate at the receiver, or else at the sender, and the controller's target.")
_FREEZES = " Time in which the picture stood still is shaded."
_OF_ONE = {"trip", "pacer", "frame", "late"}
"""Quantities that only a report on one controller shows."""


def data(groups: Groups, looks: Mapping[str, Look], link: str | None) -> dict[str, Any]:
    """The data of the charts: columns of panels (one a seed), and distributions of delay."""
    single = len(groups) == 1
    columns: list[dict[str, Any]] = []
    for label, members in groups.items():
        subjects = _media(members[0]) if single else [view.subject_of(members[0])]
        hues, dash = _hues(subjects, looks[label]), [2 * length for length in looks[label].dashes]
        flows = [{"name": name, "colour": hues[name], "dash": dash} for name in subjects]
        columns.append({"label": label, "flows": flows, "panels": []})
    used = 0
    for index in range(max(len(members) for members in groups.values())):
        new = [
            series.panel(members[index], [f["name"] for f in column["flows"]], link, ends=single)
            if index < len(members)
            else None
            for column, members in zip(columns, groups.values(), strict=True)
        ]
        used += series.size(new)
        if index and used > series.BUDGET:
            break
        for column, panel in zip(columns, new, strict=True):
            if panel is not None:
                column["panels"].append(panel)
    delays = {
        (label, flow["name"]): view.mean_quantiles(members, flow["name"])
        for (label, members), column in zip(groups.items(), columns, strict=True)
        for flow in column["flows"]
    }
    joined = np.concatenate(list(delays.values()))
    low, high = (float(joined.min()), float(joined.max())) if len(joined) else (1.0, 10.0)
    low = max(low, 1e-3)
    # a logarithmic axis where a quick controller and a slow one do not fit on a linear one
    wide = high > _LOG_RATIO * low
    grid = np.geomspace(low / 1.1, max(high, 1.2 * low) * 1.1, _CDF_POINTS)
    lines = [
        {
            "label": flow["name"] if single else column["label"],
            "colour": flow["colour"],
            "dash": flow["dash"],
            "y": series.distribution(quantiles, grid),
            "p95": round(float(quantiles[list(view.SHARES).index(0.95)]), 3),
        }
        for label, column in zip(groups, columns, strict=True)
        for flow in column["flows"]
        if len(quantiles := delays[label, flow["name"]])
    ]
    return {"columns": columns, "cdf": {"x": [float(f"{v:.6g}") for v in grid], "lines": lines}, "logDelay": bool(wide)}


def _media(run: RunLike) -> list[str]:
    """The flows that a report on one controller shows in full: media flows, at most one for each hue."""
    media = [str(entry["flow"]) for entry in run.summary["flows"] if entry["kind"] == "media"]
    return media[: len(HUES)] or [view.subject_of(run)]


def _hues(subjects: Sequence[str], look: Look) -> dict[str, tuple[str, str]]:
    """The colours of flows on light and dark pages: that of the label, or one each for several flows."""
    if len(subjects) == 1:
        return {subjects[0]: (look.colour, look.on_dark)}
    pairs = list(zip(HUES, HUES_ON_DARK, strict=True))
    return {name: pairs[i % len(pairs)] for i, name in enumerate(subjects)}


def timeline(groups: Groups, looks: Mapping[str, Look], link: str | None) -> tuple[Timeline, list[str]]:
    """Makes the charts over time of contenders side by side, and the notes below them.

    Args:
        groups: Runs by label, one a seed.
        looks: The look of each label's line.
        link: The link whose capacity is drawn.
    """
    drawn = data(groups, looks, link)
    columns = drawn["columns"]
    panels = [panel for column in columns for panel in column["panels"]]
    seeds = [panel["seed"] for panel in columns[0]["panels"]]
    possible = [quantity for quantity in _QUANTITIES if quantity[0] not in _OF_ONE or len(groups) == 1]
    quantities = [quantity for quantity in possible if _drawn(columns, quantity[0])]
    if not any("capacity" in panel for panel in panels):
        quantities[0] = _UNKNOWN_CAPACITY
    names = [quantity[0] for quantity in quantities]
    shaded = next((names.index(name) for name in ("frame", "late") if name in names), 0)
    drawn["shaded"] = names[shaded]
    if names[shaded] != "frame" and any(flow.get("without_picture") for panel in panels for flow in panel["flows"]):
        name, title, caption = quantities[shaded]
        quantities[shaded] = (name, title, caption + _FREEZES)
    notes = [f"Bins of {columns[0]['panels'][0]['dt'] * 1e3:g} ms; a point stands at the beginning of its bin."]
    if any("capacity" in panel for panel in panels):
        notes.append(f"Capacity is the true capacity of link {link}, mean of each bin.")
    total = max(map(len, groups.values()))
    if len(seeds) < total:
        notes.append(
            f"To keep the file small, the charts show {len(seeds)} of {total} seeds; the numbers are of all seeds."
        )
    heads = [(label, looks[label] if len(groups) > 1 else None) for label in groups]
    return Timeline({"steps": series.STEPS, **drawn}, heads, quantities, seeds), notes


def _drawn(columns: Sequence[Mapping[str, Any]], quantity: str) -> bool:
    """Whether any panel has data of a quantity; quantities without data get no heading."""
    if quantity == "rate":
        return True
    panels = [panel for column in columns for panel in column["panels"]]
    if quantity == "queue":
        return any(panel.get("queues") for panel in panels)
    names = ("delay", "delayMax") if quantity == "delay" else (quantity,)
    packed = (flow.get(name, ()) for panel in panels for flow in panel["flows"] for name in names)
    return any(value is not None for values in packed for value in values)
