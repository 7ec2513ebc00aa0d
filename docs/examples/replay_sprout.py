"""Replays series of ticks through Sprout's receiver and compares its forecasts with those of the original.

`python replay_sprout.py TRACE.csv ...`; columns: bytes_received_this_tick, time_to_next_ms, forecast1 to forecast8.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from tidegate import sprout


def replay(path: Path) -> tuple[int, list[int]]:
    """The number of ticks, and those whose forecasts differ."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    came = [int(row["bytes_received_this_tick"]) for row in rows]
    silences = [int(row["time_to_next_ms"]) for row in rows]
    expected = np.array([[int(row[f"forecast{tick}"]) for tick in range(1, 9)] for row in rows])
    found = sprout.forecasts(came, time_to_next_ms=silences)
    return len(rows), np.flatnonzero((found != expected).any(axis=1)).tolist()


if __name__ == "__main__":
    off = 0
    for name in sys.argv[1:]:
        ticks, differ = replay(Path(name))
        off += len(differ)
        where = f", first in tick {differ[0]}" if differ else ""
        print(f"{name}: {ticks} ticks, {len(differ)} forecasts differ{where}")
    sys.exit(bool(off))
