"""Replays feedback that ns3-rmcat's NADA controller had through ours, and compares the rate after each update.

`python replay_nada.py PACKETS.csv UPDATES.csv`; columns of the first: seq, send_us, size, arrival_us (empty: lost); of
the second: now_us, r_ref_bps and others. Feedback tells of what had arrived 25 ms before.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import tidegate
from tidegate import Limits, PacketResult, Report

ON_ITS_WAY_US = 25_000
ALLOWED = 1e-6


def replay(packets: Path, updates: Path, preset: str = "ns3-rmcat") -> tuple[int, float]:
    """The number of updates, and by which part of it a reference rate is off at most."""
    with packets.open(newline="") as file:
        # what is lost is in no feedback of ns3-rmcat's
        waiting = [
            (int(row["arrival_us"]), PacketResult(int(row["seq"]), int(row["size"]), int(row["send_us"]) * 1000,
                                                  int(row["arrival_us"]) * 1000))
            for row in csv.DictReader(file) if row["arrival_us"]
        ]  # fmt: skip
    with updates.open(newline="") as file:
        rows = [(int(row["now_us"]), float(row["r_ref_bps"])) for row in csv.DictReader(file)]
    limits = Limits(min_bps=150_000, max_bps=1_500_000, start_bps=150_000)
    ours = tidegate.controller("nada", preset, limits=limits)
    told, most = 0, 0.0
    for now, rate in rows:
        until = told
        while until < len(waiting) and waiting[until][0] <= now - ON_ITS_WAY_US:
            until += 1
        ours.on_report(now * 1000, Report(packets=[packet for _, packet in waiting[told:until]]))
        told = until
        most = max(most, abs(ours.internals["r_ref_bps"] / rate - 1))
    return len(rows), most


if __name__ == "__main__":
    count, off = replay(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{count} updates, off by {off:.1e} at most")
    sys.exit(off > ALLOWED)
