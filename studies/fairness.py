"""Every scheme beside every other one on one bottleneck: what is run for `docs/fairness.md`, and what is said of it.

`make fairness` (`python studies/fairness.py`, with names of schemes for the pairs that they are in) runs all of it and writes `studies/kept/fairness.csv`, from which the tables
and pictures of the page are made.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from rich.progress import track

import tidegate
from tidegate import Run, Scenario

RESULTS = Path(__file__).parent / "kept" / "fairness.csv"
SCHEMES = (
    "gcc",
    "gcc:libwebrtc-v1",
    "gcc-remb",
    "nada",
    "scream",
    "scream-v1",
    "tfrc",
    "tfrc-sp",
    "sprout",
    "sprout-ewma",
    "lookup_table",
    "rrb-simd",
    "tcp:newreno",
    "tcp:cubic",
)
"""Every scheme of the registry that adapts, GCC as it was in 2018, and two TCPs."""
RMCAT = ("gcc:libwebrtc-v1", "gcc", "nada", "scream", "scream-v1")
"""Those that the comparison of 2018 is about."""
ALONE = ""
"""Instead of a second flow."""
CAPACITY = 4e6
RTT_S = 0.1
QUEUES = (1, 4)
"""Of the bottleneck, in bandwidth-delay products."""
SECOND_S, BEGIN_S, END_S = 20, 60, 120
"""When the second flow comes, and what is counted."""
SEEDS = tuple(range(1, 11))
LOSS = 0.05
FAST = 0.8
"""Of the capacity: a scheme that receives that much for a second has found it."""


def _flow(name: str, scheme: str, start: int) -> dict[str, Any]:
    kind, _, algorithm = scheme.partition(":")
    table = {"name": name, "start": f"{start}s"}
    if kind == "tcp":
        return {**table, "tcp": {"algorithm": algorithm}}
    # the encoder could use twice the link, so that no flow is limited by its source
    return {**table, "media": {"controller": scheme, "video": {"max": "8Mbps"}}}


def scenario(first: str, second: str, queue: int, loss: float = 0.0) -> Scenario:
    """Two flows on one bottleneck, or one alone."""
    flows = [_flow("first", first, 0)] + ([_flow("second", second, SECOND_S)] if second else [])
    link: dict[str, Any] = {
        "name": "bottleneck",
        "capacity": f"{CAPACITY:.0f}bps",
        "delay": f"{RTT_S / 2}s",
        "queue": {"bytes": f"{queue * CAPACITY * RTT_S / 8:.0f}B"},
        "back": {"capacity": "infinite"},
    }
    if loss:
        link["loss"] = f"{loss:.0%}"
    times = {"duration": f"{END_S}s", "warmup": f"{BEGIN_S}s"}
    return Scenario.from_dict({"name": "fairness", **times, "links": [link], "flows": flows})


def time_to_capacity(run: Run) -> float:
    """When a flow alone first received most of the capacity for a second, s; the run's end if it never did."""
    table = run.table("series")
    t, rate = (np.asarray(table.to_numpy(name)) for name in ("t_s", "receive_rate_bps"))
    second = sliding_window_view(np.nan_to_num(rate), 5).mean(axis=1)
    fast = np.flatnonzero(second >= FAST * CAPACITY)
    return float(t[fast[0]] + 1) if fast.size else float(END_S)


@dataclass(frozen=True)
class Cell:
    """Means over the seeds of one pair, or of one flow alone."""

    first: str
    second: str
    queue: int
    loss: float
    """Of the link, for flows alone."""
    share: float
    """Of the first flow; in all that both received."""
    rate_bps: float
    """Of both."""
    wait_ms: float
    """Mean queueing delay, weighed by packets of both."""
    lost: float
    """Of the packets of both."""
    found_s: float
    """For flows alone: when most of the capacity was found."""

    @property
    def key(self) -> tuple[str, str, int, float]:
        """What was run."""
        return self.first, self.second, self.queue, self.loss


def cell(first: str, second: str, queue: int, loss: float) -> Cell:
    """Runs one pair with all seeds."""
    made = scenario(first, second, queue, loss)
    rows = []
    for seed in SEEDS:
        run = tidegate.run(made, seed=seed, record="summary" if second else "series")
        flows = run.summary["flows"]
        rates = [flow["receive_rate_bps"] for flow in flows]
        # a flow of which nothing arrived waits for nothing
        packets = [flow["packets_received"] for flow in flows]
        waits = [flow["queueing_delay_ms_mean"] or 0.0 for flow in flows]
        lost = sum(flow["lost_queue"] + flow["lost_wire"] for flow in flows)
        known = lost + sum(packets)
        # in the order of the fields of a cell
        rows.append(
            [
                rates[0] / max(sum(rates), 1.0),
                sum(rates),
                float(np.average(waits, weights=np.maximum(packets, 1))),
                lost / max(known, 1),
                0.0 if second else time_to_capacity(run),
            ]
        )
    return Cell(first, second, queue, loss, *(float(f"{mean:.5g}") for mean in np.mean(rows, axis=0)))


def all_keys() -> list[tuple[str, str, int, float]]:
    """Every pair in both orders, every scheme alone, and those of 2018 alone over a link that loses."""
    pairs = [(*pair, queue, 0.0) for queue in QUEUES for pair in product(SCHEMES, (*SCHEMES, ALONE))]
    return [*pairs, *((scheme, ALONE, QUEUES[0], LOSS) for scheme in RMCAT)]


def read() -> dict[tuple[str, str, int, float], Cell]:
    """What was written last."""
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    text = {"first", "second"}
    kinds = {field.name: (str if field.name in text else float) for field in fields(Cell)} | {"queue": int}
    made: list[dict[str, Any]] = [{name: kinds[name](value) for name, value in row.items()} for row in rows]
    cells = [Cell(**row) for row in made]
    return {cell.key: cell for cell in cells}


def write(cells: Iterable[Cell]) -> None:
    """Keeps them."""
    names = [field.name for field in fields(Cell)]
    with RESULTS.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(names)
        out.writerows([getattr(cell, name) for name in names] for cell in cells)


def matrix(value: Callable[[Cell], float], queue: int) -> np.ndarray:
    """A value of all pairs, the first flow's scheme in rows."""
    cells = read()
    return np.array([[value(cells[a, b, queue, 0.0]) for b in SCHEMES] for a in SCHEMES])


def rows(value: Callable[[Cell], float], queue: int) -> list[list[str]]:
    """The same as rows of a table."""
    return [
        [name, *(f"{number:.0f}" for number in line)] for name, line in zip(SCHEMES, matrix(value, queue), strict=True)
    ]


@dataclass(frozen=True)
class Claim:
    """What the comparison of 2018 found, and the rule that says whether it is so here."""

    said: str
    rule: str
    gcc: str
    holds: bool
    measured: str


def _each(name: str, values: Sequence[float], unit: str) -> str:
    return f"{name} " + ", ".join(f"{value:.3g}" for value in values) + unit


def claims(gcc: str, scream: str) -> list[Claim]:
    """With GCC and SCReAM of one age: what was said, the rule, and what was measured."""
    cells = read()
    schemes = (gcc, "nada", scream)

    def late(scheme: str) -> list[float]:
        return [100 - 100 * cells[scheme, scheme, queue, 0.0].share for queue in QUEUES]

    def alone(scheme: str, value: Callable[[Cell], float]) -> list[float]:
        return [value(cells[scheme, ALONE, queue, 0.0]) for queue in QUEUES]

    def least(value: Callable[[Cell], float]) -> bool:
        others = zip(alone(gcc, value), alone("nada", value), strict=True)
        return all(mine < min(both) for mine, both in zip(alone(scream, value), others, strict=True))

    def kept(scheme: str) -> float:
        clean, lossy = (cells[scheme, ALONE, QUEUES[0], loss].rate_bps for loss in (0.0, LOSS))
        return 100 * lossy / clean

    keeps = {scheme: kept(scheme) for scheme in schemes}
    finds = {scheme: alone(scheme, lambda cell: cell.found_s)[0] for scheme in schemes}
    waits = {scheme: alone(scheme, lambda cell: cell.wait_ms) for scheme in schemes}
    used = {scheme: [100 * rate / CAPACITY for rate in alone(scheme, lambda cell: cell.rate_bps)] for scheme in schemes}
    told = [
        (
            "GCC is fair",
            "the second of two flows has 40 to 60 % in both queues",
            all(40 <= x <= 60 for x in late(gcc)),
            _each(gcc, late(gcc), " %"),
        ),
        (
            "GCC is robust against loss",
            "at 5 % random loss GCC keeps 80 % of its rate, and a larger share than the others",
            keeps[gcc] >= 80 and keeps[gcc] == max(keeps.values()),
            "; ".join(_each(scheme, [value], " %") for scheme, value in keeps.items()),
        ),
        (
            "GCC is slow",
            "GCC alone needs the longest time to reach 80 % of the capacity",
            finds[gcc] == max(finds.values()),
            "; ".join(_each(scheme, [value], " s") for scheme, value in finds.items()),
        ),
        (
            "NADA has a late-comer effect",
            "the second of two flows has more than 60 % in both queues",
            all(x > 60 for x in late("nada")),
            _each("nada", late("nada"), " %"),
        ),
        (
            "SCReAM has the shortest queue",
            "SCReAM alone has the shortest mean wait in both queues",
            least(lambda cell: cell.wait_ms),
            "; ".join(_each(scheme, value, " ms") for scheme, value in waits.items()),
        ),
        (
            "SCReAM uses less",
            "SCReAM alone has the lowest rate in both queues",
            least(lambda cell: cell.rate_bps),
            "; ".join(_each(scheme, value, " %") for scheme, value in used.items()),
        ),
    ]
    return [Claim(said, rule, gcc, bool(holds), measured) for said, rule, holds, measured in told]


def main(*schemes: str) -> None:
    """Runs every pair with one of these, or all."""
    wanted = [key for key in all_keys() if not schemes or {*schemes} & {*key[:2]}]
    kept = read() if schemes else {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda key: cell(*key), wanted)
        kept |= {result.key: result for result in track(made, "pairs", total=len(wanted))}
    write(kept[key] for key in all_keys())


if __name__ == "__main__":
    main(*sys.argv[1:])
