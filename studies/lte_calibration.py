"""The radio network under full buffers, beside what is published and what ns-3's LTE module makes of the same cells.

Tables of `docs/lte.md`. A survey is no run, and leaves no digest.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kept import kept
from tidegate import Lte, lte

SEEDS = range(1, 7)
NS3 = Path(__file__).resolve().parents[1] / "benches" / "reference" / "lte_ns3.csv"
"""The file that `benches/reference/lte.sh` wrote: case, seed, user, geometry, ns-3's rate."""

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


@kept
def outcome(variant: str, case: int) -> dict[str, float]:
    """Ten users a cell, all with full buffers, over the seeds.

    `efficiency` is that of a cell, and `edge` the fifth percentile of users, in bits a second and hertz; `fairness` is
    Jain's index of the users' rates.
    """
    network = lte.full_buffers(10, case=case, **VARIANTS[variant])  # type: ignore[arg-type]
    surveys = [lte.survey(network, seed=seed, duration="4s") for seed in SEEDS]
    users = np.concatenate([survey.rate_bps for survey in surveys])
    return {
        "efficiency": float(np.mean([survey.cell_efficiency for survey in surveys])),
        "edge": float(np.quantile(np.concatenate([survey.user_efficiency for survey in surveys]), 0.05)),
        "fairness": float(users.sum() ** 2 / len(users) / (users**2).sum()),
    }


SHARES = {"5%": 0.05, "25%": 0.25, "50%": 0.5, "75%": 0.75, "95%": 0.95, "largest": 1.0}
"""Quantiles of the geometry, of which the table has all but the last."""


@kept
def geometry(case: int) -> dict[str, float]:
    """Quantiles of the mean SINR in dB of 8400 users, all cells sending."""
    network = Lte(case=case, users=[{"name": "user", "count": 2100}])
    users = [lte.survey(network, seed=seed, duration="1ms").geometry_db for seed in range(1, 5)]
    return dict(zip(SHARES, map(float, np.quantile(np.concatenate(users), list(SHARES.values()))), strict=True))


def geometry_table() -> str:
    """Quantiles of the geometry."""
    shares = list(SHARES)[:-1]
    lines = ["| case | " + " | ".join(shares) + " |", "|" + "---|" * (len(shares) + 1)]
    for case in (1, 3):
        cells = " | ".join(f"{geometry(case)[share]:.1f}" for share in shares)
        lines.append(f"| {case} | {cells} |")
    return "\n".join(lines) + "\n"


def efficiency_table() -> str:
    """Efficiencies of cells and of users at the edge, and fairness."""
    lines = ["| | case 1: cell | edge | fairness | case 3: cell | edge | fairness |", "|" + "---|" * 7]
    for variant in VARIANTS:
        digits = {"efficiency": 2, "edge": 3, "fairness": 2}
        cells = [f"{outcome(variant, case)[name]:.{places}f}" for case in (1, 3) for name, places in digits.items()]
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


@cache
def reference() -> tuple[dict[str, float], ...]:
    """Rates that ns-3 gave to each user."""
    with NS3.open() as file:
        return tuple({key: float(value) for key, value in row.items()} for row in csv.DictReader(file))


@kept
def rates(case: int, outer_loop: bool, seed: int) -> list[float]:
    """Rates of the users in the cells that ns-3 had, too, bit/s."""
    return [float(rate) for rate in lte.survey(still(case, outer_loop), seed=seed, duration="4s").rate_bps]


def beside(case: int, outer_loop: bool) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Rates of the same users in the same cells, in bit/s: ours and ns-3's."""
    ours, theirs = [], []
    for seed in sorted({row["seed"] for row in reference() if row["case"] == case}):
        ours += rates(case, outer_loop, int(seed))
        theirs += [row["rate_bps"] for row in reference() if (row["case"], row["seed"]) == (case, seed)]
    return np.array(ours), np.array(theirs)


def still(case: int, outer_loop: bool = True) -> Lte:
    """The network that ns-3 can do, too: one antenna, no fading, no moving users; five users a cell."""
    plain = {"antennas": "1x1", "fading": "none", "speed": "0km/h", "interferers": 0}
    return lte.full_buffers(5, case=case, outer_loop=outer_loop, **plain)


def ns3_table() -> str:
    """Cells and users beside ns-3's."""
    lines = ["| case | | cell | users' median | edge |", "|" + "---|" * 5]
    for case in (1, 3):
        runs = len({row["seed"] for row in reference() if row["case"] == case})
        ours, theirs = beside(case, outer_loop=True)
        without, _ = beside(case, outer_loop=False)
        for name, users in (("ours", ours), ("ours, no outer loop", without), ("ns-3", theirs)):
            median, edge = np.quantile(users, [0.5, 0.05]) / 1e7
            lines.append(f"| {case} | {name} | {users.sum() / 21 / runs / 1e7:.2f} | {median:.3f} | {edge:.3f} |")
    return "\n".join(lines) + "\n"


def published_table() -> str:
    """Values that others have published, and ours."""
    fair, turns = (outcome(variant, 1)["efficiency"] for variant in ("proportional fair", "round robin"))
    rows = [
        ("cell, case 1, 1x2, round robin, bit/s/Hz", f"about {PUBLISHED}", f"{turns:.2f}"),
        ("geometry, case 1, median, dB", "4 to 5", f"{geometry(1)['50%']:.1f}"),
        ("geometry, case 1, largest, dB", "17", f"{geometry(1)['largest']:.1f}"),
        ("proportional fair over round robin, case 1, 1x2, ten users", "1.4", f"{fair / turns:.2f}"),
    ]
    return "\n".join(["| | published | here |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


TABLES = {
    ("lte.md", "geometry"): geometry_table,
    ("lte.md", "efficiency"): efficiency_table,
    ("lte.md", "ns-3"): ns3_table,
    ("lte.md", "published"): published_table,
}
