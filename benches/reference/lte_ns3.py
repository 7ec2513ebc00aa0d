"""Run ns-3's LTE module on the cells of studies/lte_calibration.py and write lte_ns3.csv; see lte.sh."""

import csv
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "studies"))

import lte_calibration  # noqa: E402

from tidegate import lte  # noqa: E402

SECONDS = 1.5  # of which ns-3 counts the last one


def rates(cache, case, seed):
    """What ns-3 gives to each user, in bit/s, and each user's geometry in dB."""
    cells = lte.survey(lte_calibration.still(case), seed=seed, duration="1ms")
    lines = [f"{len(cells.serving)} {cells.cells}"]
    for serving, gains in zip(cells.serving, cells.gains_db, strict=True):
        lines.append(f"{serving} " + " ".join(f"{gain:.4f}" for gain in gains))
    gains = cache / "gains.txt"
    gains.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [cache / "lte_ns3", gains, str(SECONDS)], capture_output=True, text=True, check=True, cwd=cache
    )
    return zip(cells.geometry_db, map(float, done.stdout.split()), strict=True)


def main(cache, *seeds):
    with (HERE / "lte_ns3.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["case", "seed", "user", "geometry_db", "rate_bps"])
        for case in (1, 3):
            for seed in map(int, seeds or ["1"]):
                for user, (geometry, rate) in enumerate(rates(Path(cache), case, seed)):
                    rows.writerow([case, seed, user, f"{geometry:.3f}", round(rate)])


if __name__ == "__main__":
    main(*sys.argv[1:])
