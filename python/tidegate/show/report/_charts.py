"""Charts of a report: over time, and distributions of delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidegate.show import view
from tidegate.show.palette import HUES, HUES_ON_DARK, looks_of
from tidegate.show.report import scatter, series
from tidegate.show.report.markup import Content, Markup, tag
from tidegate.show.report.numbers import dash
from tidegate.show.view import RunLike

# Past this ratio between the largest and the smallest delay a linear axis shows only one of the
# two.
_LOG_RATIO = 30.0
_CDF_POINTS = 240

_QUANTITIES = (
    (
        "rate",
        "Rate against capacity",
        "Received by the far end, the controller's target, and the capacity that there was.",
    ),
    ("delay", "One-way delay", "From the wire to arrival: mean of each bin, and its largest."),
    ("trip", "Round trip", "The largest of the bin, as reports have it."),
    ("pacer", "Waiting at the sender", "Media in the pacer: the most in the bin."),
    (
        "frame",
        "Frame delay",
        "From capture to the screen: the largest of the bin; where the picture stood still is shaded.",
    ),
    ("loss", "Packets lost", "Of the packets that were received or lost in the bin."),
    ("queue", "Queues", "Bytes waiting at each link."),
)
_OF_ONE = {"trip", "pacer", "frame"}
"""What only a report on one controller shows."""


def _hue(colour: str) -> tuple[str, str]:
    """A colour for light pages and its counterpart for dark ones."""
    return colour, HUES_ON_DARK[HUES.index(colour)]


def _hues(groups: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {label: (one.colour, one.on_dark) for label, one in looks_of(groups).items()}


def data(groups: Mapping[str, Sequence[RunLike]], link: str | None) -> dict[str, Any]:
    """What the charts are drawn from: columns of panels (one a seed), distributions of delay."""
    hues = _hues(groups)
    own = looks_of(groups)
    single = len(groups) == 1
    columns: list[dict[str, Any]] = []
    for label, members in groups.items():
        subjects = _media(members[0]) if single else [view.subject_of(members[0])]
        flow_hues = _flow_hues(subjects, label, hues)
        columns.append(
            {
                "label": label,
                "flows": [{"name": n, "colour": flow_hues[n], "dash": dash(own[label])} for n in subjects],
                "panels": [],
            }
        )
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
    return {
        "columns": columns,
        "cdf": {"x": [float(f"{v:.6g}") for v in grid], "lines": lines},
        "logDelay": bool(wide),
    }


def _media(run: RunLike) -> list[str]:
    """The flows that a report on one controller shows in full: media, as many as there are hues."""
    media = [str(entry["flow"]) for entry in run.summary["flows"] if entry["kind"] == "media"]
    return media[: len(HUES)] or [view.subject_of(run)]


def _flow_hues(subjects: Sequence[str], label: str, hues: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    if len(subjects) == 1:
        return {subjects[0]: hues[label]}
    return {name: _hue(HUES[i % len(HUES)]) for i, name in enumerate(subjects)}


def section(data: Mapping[str, Any], groups: Mapping[str, Sequence[RunLike]], link: str | None) -> Markup:
    columns = data["columns"]
    hues = _hues(groups)
    seeds = [panel["seed"] for panel in columns[0]["panels"]]
    bar: list[Content] = []
    if len(seeds) > 1:
        options = [tag("option", str(seed), value=i) for i, seed in enumerate(seeds)]
        bar.append(tag("label", "Seed ", tag("select", *options, id="seed")))
    bar.append(tag("label", tag("input", type="checkbox", id="log"), " logarithmic delay"))
    bar.append(tag("button", "Whole run", id="reset", type="button", disabled=True))
    bar.append(
        tag(
            "span",
            "Drag over a chart to zoom; all follow. Double-click for the whole run.",
            class_="soft",
        )
    )
    rows: list[Content] = []
    heads = (
        [tag("p", label, class_="name", data_hue=" ".join(hues[label])) for label in groups] if len(groups) > 1 else []
    )
    for quantity, heading, caption in _QUANTITIES:
        if (quantity in _OF_ONE and len(groups) > 1) or not _drawn(columns, quantity):
            continue
        figures = []
        for i, column in enumerate(columns):
            chart = tag(
                "div",
                class_="chart",
                data_chart=quantity,
                data_column=i,
                role="img",
                aria_label=f"{heading}, {column['label']}",
            )
            figures.append(tag("figure", *heads[i : i + 1], chart))
        rows.append(tag("section", tag("h3", heading, title=caption), tag("div", *figures, class_="columns")))
    bin_ms = columns[0]["panels"][0]["dt"] * 1e3
    total = max(len(members) for members in groups.values())
    note = f"Bins of {bin_ms:g} ms; a point stands at the beginning of its bin."
    if link:
        note += f" Capacity is the truth of link {link}, mean of each bin."
    if len(seeds) < total:
        note += f" To keep the file small it holds the series of {len(seeds)} of {total} seeds; the numbers are of all."
    noscript = tag(
        "noscript",
        tag("p", "The charts need JavaScript (all of it is inside this file); the tables do not."),
    )
    return tag(
        "section",
        tag("h2", "Over time"),
        noscript,
        tag("div", *bar, class_="bar"),
        tag("div", *rows),
        tag("p", note, class_="soft"),
        id="charts",
    )


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


def distributions(data: Mapping[str, Any], groups: Mapping[str, Sequence[RunLike]]) -> Markup:
    if len(groups) == 1 and not data["cdf"]["lines"]:
        return Markup("")
    several = max(len(members) for members in groups.values()) > 1
    caption = (
        "Share of the packets that were at most so late"
        + ("; each point is the mean over seeds of that quantile" if several else "")
        + ". The dots are the 95th percentiles of the table."
    )
    left = tag(
        "figure",
        tag("h3", "One-way delay, distribution"),
        tag("div", class_="chart", id="cdf"),
        tag("figcaption", caption),
    )
    if len(groups) == 1:
        return tag("section", tag("h2", "Delay"), left)
    points = {
        label: [
            (
                view.metric(run, flow, "one_way_delay_ms_p95"),
                view.metric(run, flow, "receive_rate_bps") / 1e6,
            )
            for run in members
            for flow in [view.subject_of(run)]
        ]
        for label, members in groups.items()
    }
    right = tag(
        "figure", tag("h3", "Rate against delay"), scatter.svg(points, _hues(groups)),
        tag("figcaption", "Better is up and to the right. Small dots: seeds; large ones: their means, as in tables."),
    )  # fmt: skip
    return tag("section", tag("h2", "Rate and delay"), tag("div", left, right, class_="pair"))
