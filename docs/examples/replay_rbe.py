"""Replays traces of aiortc's receive-side estimator through the receiving half of gcc-remb.

`python replay_rbe.py TRACE.csv ...` says of each trace how far the filter is off, and how many states and REMBs differ.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from tidegate import Arrived, receiver

NUMBERS = {"offset": "offset_ms", "threshold": "threshold", "num_deltas": "num_deltas"}
USAGES = ["NORMAL", "OVERUSING", "UNDERUSING"]
STATES = ["HOLD", "INCREASE", "DECREASE"]


def replay(path: Path) -> dict[str, float]:
    """The largest deviation of the filter's numbers, rows, states and REMBs that differ, REMBs said."""
    host = receiver("gcc-remb", preset="aiortc")
    told = {"deviation": 0.0, "rows": 0, "states": 0, "rembs": 0, "said": 0}
    last = {"offset": 0.0, "threshold": 12.5, "num_deltas": 0.0, "state": 0.0}  # before the first group
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            now_ns = int(row["arrival_ms"]) * 1_000_000
            urgency, _ = host.on_packet(now_ns, Arrived(number, int(row["size"]), int(row["abs_send_time_24"])))
            last.update(host.internals)
            off = [abs(last[ours] - float(row[theirs])) for ours, theirs in NUMBERS.items()]
            told["deviation"] = max(told["deviation"], *off)
            state = USAGES[int(last["state"])], STATES[int(last["rate_state"])]
            rate = host.internals.get("received_rate")
            incoming = float(row["incoming_bps"]) if row["incoming_bps"] else None
            told["states"] += state != (row["hypothesis"], row["rate_state"]) or rate != incoming
            said = [packet.bitrate_bps for packet in host.message(now_ns)] if urgency == "now" else []
            told["rembs"] += said != ([int(row["remb_bps"])] if row["remb_bps"] else [])
            told["said"] += len(said)
            told["rows"] += 1
    return told


if __name__ == "__main__":
    for name in sys.argv[1:]:
        told = replay(Path(name))
        print(
            f"{name}: {told['rows']} rows, off by {told['deviation']:.3g} at most; "
            f"{told['states']} states and {told['rembs']} of {told['said']} REMBs differ"
        )
