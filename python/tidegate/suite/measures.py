"""Measures of a run beyond its summary: what RFC 8868 section 3 asks for, and what rules of suites are about.

A flow's *share* is what it could have had, by [shares][tidegate.suite.shares]. A *static period* begins 10 s after the
last event (a capacity changes, a flow comes or goes) and ends with the next one: RFC 8868 has ratios taken "during
static periods of a test (i.e., when bottleneck bandwidth is constant and no arrival/departure of streams)". The 10 s
are ours, because ratios of flows that still move tell of convergence, which is measured by itself.

Where shares are not defined (radio networks, members of sessions), and on links whose capacity moves all the time
(recorded and generated ones), what is about shares or static periods has no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.results.metrics import Metric, finite
from tidegate.results.metrics.model import catalogue
from tidegate.suite import _demands, _fairness, _rates, challenge2021, filling
from tidegate.suite import _fairness as fairness
from tidegate.suite import shares as sharing
from tidegate.suite._rates import STARTUP, Rates, Stretch
from tidegate.suite.shares import Floats, Shares

if TYPE_CHECKING:
    from tidegate.runs import Run
    from tidegate.scenario import Scenario

_PARTS = (_demands, _fairness, _rates, challenge2021, filling, sharing)
_DEFINITIONS = Path(__file__).with_name("measures.toml")

FILES: tuple[Path, ...] = (_DEFINITIONS, Path(__file__), *(Path(str(part.__file__)) for part in _PARTS))
"""Source files that measures depend on: results of other versions of these files are measured anew."""

_BY_KIND = catalogue(_DEFINITIONS)
CATALOGUE: tuple[Metric, ...] = (*_BY_KIND["flow"], *_BY_KIND["run"])
"""Definitions of the measures: first those of flows, then those of the run."""

_MOST_SERIES = 24
"""Flows whose series are kept, contenders first: a picture of more shows nothing, and 1000 would be megabytes."""


@dataclass(frozen=True)
class Measures:
    """Measures of a run that its summary does not have."""

    flows: Mapping[str, Mapping[str, float | None]]
    """Further numbers by flow: of media, and of TCP."""
    run: Mapping[str, float | None]
    """Numbers of the run as a whole."""
    events: Sequence[Mapping[str, Any]]
    """Of each contender and event: `at_s`, `what`, `flow`, `until_s` (the next event), and `seconds` until its rate had
    converged; `None` if it had not by then."""
    series: Mapping[str, Any]
    """Means over seconds: `t_s`; in `flows` by flow, at most 24 of them, `rate_bps`, `delay_ms` and `share_bps`; in
    `links` by link `capacity_bps`."""


def measure(run: Run, contenders: Sequence[str], scenario: Scenario | None = None) -> Measures:
    """Measures a run that was recorded with series.

    Args:
        run: The run.
        contenders: The names of its flows under the controller that is tried.
        scenario: Whose flows have the shares, where a program stands for one of them; the run's by default.
    """
    shares = sharing.of_run(run, scenario)
    series = _series(run)
    warmup = float(run.summary.get("warmup_s", 0.0))
    flows = {
        str(flow["flow"]): Rates(str(flow["flow"]), series[str(flow["flow"])], shares, _lives(flow, shares, warmup))
        for flow in run.summary["flows"]
        if flow["kind"] in ("media", "program", "tcp", "udp") and str(flow["flow"]) in series
    }
    kinds = {str(flow["flow"]): str(flow["kind"]) for flow in run.summary["flows"]}
    judged = [flows[name] for name in contenders if name in flows]
    events = [event for rates in judged for event in rates.convergence]
    return Measures(
        flows={
            name: _with_scores(rates.numbers(), run.metrics(name))
            for name, rates in flows.items()
            if kinds[name] != "udp"
        },
        run=_run_numbers(run, shares, flows, judged),
        events=sorted(events, key=lambda event: (event["at_s"], event["flow"])),
        series=_by_seconds(
            run, (judged + [rates for name, rates in flows.items() if kinds[name] != "udp"])[:_MOST_SERIES]
        ),
    )


def _series(run: Run) -> dict[str, dict[str, Floats]]:
    names = ("t_s", "sending_rate_bps", "receive_rate_bps", "one_way_delay_ms_mean", "packets_arrived")
    end = float(run.summary["duration_s"])
    by_flow = sharing.columns(run, "series", "flow", names)
    # events at the very last instant open a bin of no width
    return {
        flow: {name: column[columns["t_s"] < end] for name, column in columns.items()}
        for flow, columns in by_flow.items()
    }


def _lives(flow: Mapping[str, Any], shares: Shares | None, warmup: float) -> list[Stretch]:
    """Periods after the warm-up in which a flow has data to send."""
    name = str(flow["flow"])
    has_share = shares is not None and name in shares.demands
    lives = shares.life(name) if shares is not None and has_share else [(float(flow["start_s"]), float(flow["stop_s"]))]
    return [(max(begin, warmup), end) for begin, end in lives if end > warmup]


def _run_numbers(
    run: Run, shares: Shares | None, flows: Mapping[str, Rates], contenders: Sequence[Rates]
) -> dict[str, float | None]:
    tcp = [str(flow["flow"]) for flow in run.summary["flows"] if flow["kind"] == "tcp"]
    rates = [float(flow["receive_rate_bps"] or 0.0) for flow in run.summary["flows"] if flow["kind"] == "tcp"]
    numbers: dict[str, float | None] = dict.fromkeys(metric.name for metric in _BY_KIND["run"])
    numbers["cross_rate_bps"] = sum(rates) if rates else None
    lives = [flow.lives[0][0] for flow in contenders if flow.lives]
    if shares is None or not lives:
        return numbers
    for length in (1, 5, 20):
        numbers[f"fairness_min_{length}s"] = fairness.min_ratio(shares, contenders, float(length))
    numbers["jain_min_20s"] = fairness.min_jain(shares, contenders)
    cross_traffic = [flows[name] for name in tcp if name in flows]
    numbers["cross_ratio_20s"] = fairness.over_cross_traffic(shares, contenders, cross_traffic)
    numbers["delivered_fraction"] = fairness.delivered(shares, list(flows.values()), min(lives) + STARTUP)
    return numbers


def _by_seconds(run: Run, flows: Sequence[Rates]) -> dict[str, Any]:
    count = int(float(run.summary["duration_s"]) + 1e-6)
    starts = np.arange(count, dtype=np.float64)
    by_flow = {}
    for name, flow in {flow.name: flow for flow in flows}.items():
        arrived, delay = flow.series["packets_arrived"], flow.series["one_way_delay_ms_mean"]
        second = np.minimum((flow.start + 1e-6).astype(np.int64), count)
        packets = np.bincount(second, arrived, count + 1)[:count]
        total = np.bincount(second, np.where(arrived > 0, np.nan_to_num(delay) * arrived, 0.0), count + 1)[:count]
        by_flow[name] = {
            "rate_bps": _whole(flow.received(starts, starts + 1.0)),
            "delay_ms": [round(t / n, 1) if n else None for t, n in zip(total.tolist(), packets.tolist(), strict=True)],
        }
        if flow.shares is not None:
            by_flow[name]["share_bps"] = _whole(flow.shares.bits(name, starts, starts + 1.0))
    return {"t_s": list(range(count)), "flows": by_flow, "links": _capacities(run, starts)}


def _capacities(run: Run, starts: Floats) -> dict[str, Any]:
    by_link = {}
    for link, columns in sharing.columns(run, "truth", "link", ("t_s", "capacity_bps")).items():
        if not (columns["capacity_bps"] < sharing.UNLIMITED).any():
            continue
        edges = np.append(columns["t_s"], float(run.summary["duration_s"]))
        total = np.concatenate([[0.0], np.cumsum(columns["capacity_bps"] * np.diff(edges))])
        by_link[link] = {
            "capacity_bps": _whole(np.interp(starts + 1.0, edges, total) - np.interp(starts, edges, total))
        }
    return by_link


def _whole(values: Floats) -> list[int | None]:
    return [round(value) if np.isfinite(value) else None for value in values.tolist()]


def _with_scores(numbers: Mapping[str, float | None], flow: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns the numbers of a flow with the scores by which others rank schemes."""
    score = challenge_score(flow, numbers.get("share_fraction"))
    return {**numbers, "power": power(flow), "challenge_2021_score": score}


def challenge_score(flow: Mapping[str, Any], share_fraction: float | None) -> float | None:
    """Points of the challenge of 2021 for a flow with these metrics, and this part of its share received.

    >>> flow = {"one_way_delay_ms_p95": 130.0, "one_way_delay_ms_min": 40.0, "loss_fraction": 0.02}
    >>> round(challenge_score(flow, 0.9), 2), challenge_score(flow, None)
    (62.4, None)
    """
    parts = [finite(flow.get(f"one_way_delay_ms_{statistic}")) for statistic in ("p95", "min")]
    parts += [share_fraction, finite(flow.get("loss_fraction"))]
    values = [part for part in parts if part is not None]
    return challenge2021.network_score(*values) if len(values) == len(parts) else None


def power(flow: Mapping[str, Any]) -> float | None:
    """Kleinrock's power of a flow with these metrics.

    >>> round(power({"receive_rate_bps": 2e6, "one_way_delay_ms_p95": 100.0}), 4)
    2.9957
    """
    rate, delay = finite(flow.get("receive_rate_bps")), finite(flow.get("one_way_delay_ms_p95"))
    return math.log(rate / 1e6 / (delay / 1e3)) if rate and delay else None
