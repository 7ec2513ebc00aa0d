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

# Past this ratio between the largest and the smallest delay a linear axis shows only one of the
# two.
_LOG_RATIO = 30.0
_CDF_POINTS = 240

_QUANTITIES = (
    ("rate", "Rate against capacity",
     "Received by the far end, the controller's target, and the capacity that there was."),
    ("delay", "One-way delay", "From the wire to arrival: mean of each bin, and its largest."),
    ("trip", "Round trip", "The largest of the bin, as reports have it."),
    ("pacer", "Waiting at the sender", "Media in the pacer: the most in the bin."),
    ("frame", "Frame delay",
     "From capture to the screen: the largest of the bin; where the picture stood still is shaded."),
    ("loss", "Packets lost", "Of the packets that were received or lost in the bin."),
    ("queue", "Queues", "Bytes waiting at each link."),
)  # fmt: skip
_OF_ONE = {"trip", "pacer", "frame"}
"""What only a report on one controller shows."""


def data(groups: Groups, looks: Mapping[str, Look], link: str | None) -> dict[str, Any]:
    """What the charts are drawn from: columns of panels (one a seed), distributions of delay."""
    single = len(groups) == 1
    columns: list[dict[str, Any]] = []
    for label, members in groups.items():
        subjects = _media(members[0]) if single else [view.subject_of(members[0])]
        hues, dash = _hues(subjects, looks[label]), [2 * length for length in looks[label].dashes]
        flows = [{"name": name, "colour": hues[name], "dash": dash} for name in subjects]
        columns.append({"label": label, "flows": flows, "panels": []})
    used = 0
    for place in range(max(len(members) for members in groups.values())):
        new = [
            series.panel(members[place], [f["name"] for f in column["flows"]], link, ends=single)
            if place < len(members)
            else None
            for column, members in zip(columns, groups.values(), strict=True)
        ]
        used += series.size(new)
        if place and used > series.BUDGET:
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
    least, most = (float(joined.min()), float(joined.max())) if len(joined) else (1.0, 10.0)
    least = max(least, 1e-3)
    # a log axis when a quick controller and a slow one would not fit on a linear one
    wide = most > _LOG_RATIO * least
    grid = np.geomspace(least / 1.1, max(most, 1.2 * least) * 1.1, _CDF_POINTS)
    lines = [
        {
            "label": flow["name"] if single else column["label"],
            "colour": flow["colour"],
            "dash": flow["dash"],
            "y": series.distribution(of, grid),
            "p95": round(float(of[list(view.SHARES).index(0.95)]), 3),
        }
        for label, column in zip(groups, columns, strict=True)
        for flow in column["flows"]
        if len(of := delays[label, flow["name"]])
    ]
    return {"columns": columns, "cdf": {"x": [float(f"{v:.6g}") for v in grid], "lines": lines}, "logDelay": bool(wide)}


def _media(run: RunLike) -> list[str]:
    """The flows that a report on one controller shows in full: media, as many as there are hues."""
    media = [str(entry["flow"]) for entry in run.summary["flows"] if entry["kind"] == "media"]
    return media[: len(HUES)] or [view.subject_of(run)]


def _hues(subjects: Sequence[str], look: Look) -> dict[str, tuple[str, str]]:
    """Colours of flows on light pages and on dark ones: the label's own, or one each where it has several."""
    if len(subjects) == 1:
        return {subjects[0]: (look.colour, look.on_dark)}
    pairs = list(zip(HUES, HUES_ON_DARK, strict=True))
    return {name: pairs[i % len(pairs)] for i, name in enumerate(subjects)}


def timeline(groups: Groups, looks: Mapping[str, Look], link: str | None) -> tuple[Timeline, list[str]]:
    """Charts over time of contenders side by side, and what is to be said of them.

    Args:
        groups: Runs by label, one a seed.
        looks: How each label's line looks.
        link: The link whose capacity is drawn.
    """
    drawn = data(groups, looks, link)
    columns = drawn["columns"]
    seeds = [panel["seed"] for panel in columns[0]["panels"]]
    possible = [quantity for quantity in _QUANTITIES if quantity[0] not in _OF_ONE or len(groups) == 1]
    quantities = [quantity for quantity in possible if _drawn(columns, quantity[0])]
    notes = [f"Bins of {columns[0]['panels'][0]['dt'] * 1e3:g} ms; a point stands at the beginning of its bin."]
    if link:
        notes.append(f"Capacity is the truth of link {link}, mean of each bin.")
    total = max(map(len, groups.values()))
    if len(seeds) < total:
        kept = f"{len(seeds)} of {total} seeds"
        notes.append(f"To keep the file small it holds the series of {kept}; the numbers are of all.")
    heads = [(label, looks[label] if len(groups) > 1 else None) for label in groups]
    return Timeline({"steps": series.STEPS, **drawn}, heads, quantities, seeds), notes


def _drawn(columns: Sequence[Mapping[str, Any]], quantity: str) -> bool:
    """Whether any panel has something to draw of a quantity; what nobody recorded has no heading."""
    if quantity == "rate":
        return True
    panels = [panel for column in columns for panel in column["panels"]]
    if quantity == "queue":
        return any(panel.get("queues") for panel in panels)
    names = ("delay", "delayMax") if quantity == "delay" else (quantity,)
    packed = (flow.get(name, ()) for panel in panels for flow in panel["flows"] for name in names)
    return any(value is not None for one in packed for value in one)
