"""Both placements of GCC on ten shipped scenarios: the table of `docs/placements.md`."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Literal

import numpy as np

import tidegate
from gcc_experiments import RecordedFlow
from kept import kept

STEPS, HOME, OUTAGES = "rfc8867-5.1-variable-capacity", "home-broadband", "cell-with-outages"
SCENARIOS = (
    "congested-uplink",
    "deep-buffer-3g",
    HOME,
    "lossy-wifi",
    "lte-generated",
    OUTAGES,
    "satellite",
    STEPS,
    "rfc8867-5.3-congested-feedback",
    "tcp-joins",
)
PRESETS = ("draft-02", "hoang2017")
DRAFT, THESIS = ([f"{placement}:{preset}" for placement in ("gcc", "gcc-remb")] for preset in PRESETS)
"""The controller at the sender, and the one at the receiver."""
SEEDS = (1, 2, 3)
COLUMNS = {
    "rate (kb/s)": ("receive_rate_bps", 1e-3, 0),
    "delay p95 (ms)": ("one_way_delay_ms_p95", 1, 0),
    "loss (%)": ("loss_fraction", 100, 2),
    "feedback (kb/s)": ("feedback_rate_bps", 1e-3, 1),
    "feedback (%)": ("feedback_overhead", 100, 2),
}
"""Metrics of the call under test with scale and digits, means over seeds."""
FULL_BPS = 1.52e6
"""All there is to send."""


def play(name: str, controller: str, seed: int = 1, record: Literal["summary", "packets"] = "packets") -> RecordedFlow:
    """The call under test in a run of a scenario."""
    (run,) = tidegate.compare([controller], name, seeds=[seed], record=record).runs[controller]
    return RecordedFlow(run, str(run.summary["flows"][0]["flow"]))


@kept
def call(name: str, controller: str, seed: int) -> Mapping[str, float]:
    """Metrics of the call under test."""
    flow = play(name, controller, seed, "summary")
    metrics = flow.run.metrics(flow.flow)
    return {metric: metrics[metric] for metric, *_ in COLUMNS.values()}


def mean(name: str, controller: str, metric: str) -> float:
    """A metric averaged over the seeds."""
    return fmean(call(name, controller, seed)[metric] for seed in SEEDS)


@kept
def fall(controller: str, seed: int) -> Mapping[str, float]:
    """Numbers of the fall of the capacity to 0.6 Mbit/s at 60 s.

    `before_bps` is the target before it, `falls_s` how long after it the target begins to fall, `below_s` how long until it is
    below the new capacity, `queueing_ms` the peak of the queue in ten seconds.
    """
    flow = play(STEPS, controller, seed)
    return {
        "before_bps": flow.target(60.0),
        "falls_s": flow.falls(0.97 * FULL_BPS, 60.0),
        "below_s": flow.falls(0.6e6, 60.0),
        "queueing_ms": flow.queueing(60.0, 70.0)[1],
    }


@kept
def growth(controller: str) -> Mapping[str, float]:
    """Mean times between steps up of the loss-based rate, and between the receiver's RTCP packets."""
    flow = play(HOME, controller)
    times, rates = flow.noted_at("loss_based")
    rtcp = flow.run.table("rtcp")
    back = rtcp.to_numpy("from_receiver").astype(bool)
    return {
        "step_s": float(np.diff(times[1:][np.diff(rates) > 1]).mean()),
        "rtcp_s": float(np.diff(rtcp.to_numpy("t_s")[back]).mean()),
    }


@kept
def least(controller: str, note: str) -> float:
    """The least rate noted under a name where there are outages, bit/s."""
    return float(play(OUTAGES, controller).noted(note).min())


@kept
def overuse(controller: str) -> Mapping[str, int]:
    """Packets whose verdict is over-use, and updates of the rate in Decrease."""
    flow = play(STEPS, controller)
    return {
        "packets": int((flow.noted("state") == 1).sum()),
        "updates": int((flow.noted("rate_state") == 2).sum()),
    }


def table() -> str:
    """In Markdown."""
    lines = ["| scenario | controller | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * len(COLUMNS)]
    for name in SCENARIOS:
        for controller in (*DRAFT, *THESIS):
            cells = [
                f"{mean(name, controller, metric) * scale:.{digits}f}" for metric, scale, digits in COLUMNS.values()
            ]
            lines.append(f"| {name} | {controller} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TABLES = {("placements.md", "placements"): table}


def further() -> None:
    """Asks for numbers that tests look at."""
    for controller in DRAFT:
        growth(controller)
        for seed in SEEDS:
            fall(controller, seed)
    for controller, note in zip(DRAFT, ("delay_based", "remb_sent"), strict=True):
        least(controller, note)
    for controller in THESIS:
        overuse(controller)
