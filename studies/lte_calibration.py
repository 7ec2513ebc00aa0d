"""The radio network under full buffers, beside what is published and what ns-3's LTE module makes of the same cells.

`python studies/lte_calibration.py` prints the tables of docs/lte.md.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidegate import Lte, lte

SEEDS = range(1, 7)
NS3 = Path(__file__).resolve().parents[1] / "benches" / "reference" / "lte_ns3.csv"
"""What `benches/reference/lte.sh` wrote: case, seed, user, geometry, ns-3's rate."""

PUBLISHED = 1.1
"""bit/s/Hz/cell in case 1 with 1x2, control symbols taken off, under the calibration's round robin; see docs/lte.md."""

VARIANTS = {
    "round robin": {"scheduler": "rr"},
    "proportional fair": {"scheduler": "pf"},
    "proportional fair, 2x2": {"scheduler": "pf", "antennas": "2x2"},
    "proportional fair, 1x1": {"scheduler": "pf", "antennas": "1x1"},
    "proportional fair, 30 km/h": {"scheduler": "pf", "speed": "30km/h"},
    "proportional fair, 5 MHz": {"scheduler": "pf", "bandwidth": "5MHz"},
    "proportional fair, tilted": {"scheduler": "pf", "tilt": True},
}


@cache
def surveys(variant: str, case: int) -> tuple[lte.Survey, ...]:
    """Ten users a cell, all with full buffers, over the seeds."""
    network = lte.full_buffers(10, case=case, **VARIANTS[variant])  # type: ignore[arg-type]
    return tuple(lte.survey(network, seed=seed, duration="4s") for seed in SEEDS)


def efficiency(variant: str, case: int) -> float:
    """Bits a second, hertz and cell."""
    return float(np.mean([one.cell_efficiency for one in surveys(variant, case)]))


def edge(variant: str, case: int) -> float:
    """Bits a second and hertz of the user below whom are 5 % of all."""
    return float(np.quantile(np.concatenate([one.user_efficiency for one in surveys(variant, case)]), 0.05))


def fairness(variant: str, case: int) -> float:
    """Jain's index of the users' rates."""
    rates = np.concatenate([one.rate_bps for one in surveys(variant, case)])
    return float(rates.sum() ** 2 / len(rates) / (rates**2).sum())


@cache
def geometry(case: int) -> npt.NDArray[np.float64]:
    """Mean SINR in dB of 8400 users, all cells sending."""
    found = [
        lte.survey(Lte(case=case, users=[{"name": "user", "count": 2100}]), seed=seed, duration="1ms").geometry_db
        for seed in range(1, 5)
    ]
    return np.concatenate(found)


def geometry_table() -> str:
    """Quantiles of the geometry."""
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    lines = ["| case | " + " | ".join(f"{share:.0%}" for share in shares) + " |", "|" + "---|" * (len(shares) + 1)]
    for case in (1, 3):
        cells = " | ".join(f"{value:.1f}" for value in np.quantile(geometry(case), shares))
        lines.append(f"| {case} | {cells} |")
    return "\n".join(lines) + "\n"


def efficiency_table() -> str:
    """Efficiencies of cells and of users at the edge, and fairness."""
    lines = ["| | case 1: cell | edge | fairness | case 3: cell | edge | fairness |", "|" + "---|" * 7]
    for variant in VARIANTS:
        cells = [f"{make(variant, case):.{3 if make is edge else 2}f}" for case in (1, 3) for make in _COLUMNS]
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


_COLUMNS = (efficiency, edge, fairness)


@cache
def reference() -> tuple[dict[str, float], ...]:
    """What ns-3 gave to each user."""
    with NS3.open() as file:
        return tuple({key: float(value) for key, value in row.items()} for row in csv.DictReader(file))


def beside(case: int, outer_loop: bool) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Rates of the same users in the same cells, in bit/s: ours and ns-3's."""
    ours, theirs = [], []
    for seed in sorted({row["seed"] for row in reference() if row["case"] == case}):
        rows = [row for row in reference() if (row["case"], row["seed"]) == (case, seed)]
        ours.append(lte.survey(still(case, outer_loop), seed=int(seed), duration="4s").rate_bps)
        theirs.append(np.array([row["rate_bps"] for row in rows]))
    return np.concatenate(ours), np.concatenate(theirs)


def still(case: int, outer_loop: bool = True) -> Lte:
    """The network that ns-3 can do, too: one antenna, nothing fades, nobody moves; five users a cell."""
    plain = {"antennas": "1x1", "fading": "none", "speed": "0km/h", "interferers": 0}
    return lte.full_buffers(5, case=case, outer_loop=outer_loop, **plain)


def ns3_table() -> str:
    """Cells and users beside ns-3's."""
    lines = ["| case | | cell | users' median | edge |", "|" + "---|" * 5]
    for case in (1, 3):
        runs = len({row["seed"] for row in reference() if row["case"] == case})
        ours, theirs = beside(case, outer_loop=True)
        without, _ = beside(case, outer_loop=False)
        for name, rates in (("ours", ours), ("ours, no outer loop", without), ("ns-3", theirs)):
            median, edge = np.quantile(rates, [0.5, 0.05]) / 1e7
            lines.append(f"| {case} | {name} | {rates.sum() / 21 / runs / 1e7:.2f} | {median:.3f} | {edge:.3f} |")
    return "\n".join(lines) + "\n"


def published_table() -> str:
    """What others have, and we."""
    gain = efficiency("proportional fair", 1) / efficiency("round robin", 1)
    rows = [
        ("cell, case 1, 1x2, round robin, bit/s/Hz", f"about {PUBLISHED}", f"{efficiency('round robin', 1):.2f}"),
        ("geometry, case 1, median, dB", "4 to 5", f"{np.median(geometry(1)):.1f}"),
        ("geometry, case 1, largest, dB", "17", f"{geometry(1).max():.1f}"),
        ("proportional fair over round robin, case 1, 1x2, ten users", "1.4", f"{gain:.2f}"),
    ]
    return "\n".join(["| | published | here |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


TABLES = {"geometry": geometry_table, "efficiency": efficiency_table, "ns-3": ns3_table, "published": published_table}


if __name__ == "__main__":
    for name, make in TABLES.items():
        print(f"{name}\n\n{make()}")
