"""TFRC under random loss beside ns-2's, whose equation has another timeout: the table `ns2` of `docs/tfrc-behaviour.md`."""

from __future__ import annotations

import csv
import math
import statistics

from gcc_experiments import Experiment, Row
from kept import kept
from support import ROOT
from tfrc_experiments import greedy, path, run_all, scenario
from tidegate import Flow

RATES = ROOT / "benches" / "reference" / "tfrc_ns2.csv"
LOSSES = (0.01, 0.05, 0.1)
SEEDS = range(1, 11)
SECONDS = 300
BITS = 1500 * 8
"""Of a packet: the equation is in packets, whatever of them is payload."""


def ns2(loss: float, least: str) -> list[float]:
    """Rates of ns-2 in kb/s, with this least timeout in the equation."""
    with RATES.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (float(row["loss"]), row["least_rto_s"]) == (loss, least)]
    return [float(row["rate_kbps"]) for row in rows]


@kept
def ours(loss: float, rto_rtts: int) -> list[float]:
    """Rates in kb/s with the rules of RFC 3448, which are ns-2's, and t_RTO of so many round trips."""
    media = greedy(f"tfrc:rfc3448,rto_rtts={rto_rtts}")
    case = scenario(
        path(f"{100 * loss:g}%", "10Mbps"), 30 + SECONDS, Flow(name="call", media=media), warmup=30, record="summary"
    )
    return [run.summary["flows"][0]["packets_sent"] * BITS / SECONDS / 1e3 for run in run_all(case, SEEDS)]


def error(rates: list[float]) -> float:
    """The standard error of their mean."""
    return statistics.stdev(rates) / math.sqrt(len(rates))


def rows() -> list[Row]:
    """Means over the seeds, a row for each loss."""
    table = []
    for loss in LOSSES:
        default, four = statistics.fmean(ns2(loss, "default")), statistics.fmean(ns2(loss, "0.4"))
        ours_four, ours_three = statistics.fmean(ours(loss, 4)), statistics.fmean(ours(loss, 3))
        numbers = {
            "ns-2 (kb/s)": default,
            "ns-2, t_RTO = 4 R (kb/s)": four,
            "ours, 4 R (kb/s)": ours_four,
            "ours, 3 R (kb/s)": ours_three,
            "4 R / ns-2": ours_four / default,
            "4 R / ns-2 with 4 R": ours_four / four,
            "3 R / ns-2": ours_three / default,
        }
        table.append(Row(f"{100 * loss:g} % lost", numbers))
    return table


NS2 = Experiment(
    "ns2",
    {
        "ns-2 (kb/s)": 1,
        "ns-2, t_RTO = 4 R (kb/s)": 1,
        "ours, 4 R (kb/s)": 1,
        "ours, 3 R (kb/s)": 1,
        "4 R / ns-2": 0.01,
        "4 R / ns-2 with 4 R": 0.01,
        "3 R / ns-2": 0.01,
    },
    rows,
)

TABLES = {("tfrc-behaviour.md", NS2.name): NS2.text}
