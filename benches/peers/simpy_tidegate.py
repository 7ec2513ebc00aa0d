"""The work `thesis` in SimPy: the processes of docs/examples/thesis_simpy.py around tidegate's sender and receiver."""

import json
import sys
import time
from pathlib import Path

from engine import thesis

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs" / "examples"))
from thesis_simpy import manager

if __name__ == "__main__":
    scenario = thesis(float(sys.argv[1]))
    begun = time.perf_counter()
    run = manager("gcc", scenario.seed, scenario)
    ended = time.perf_counter()
    report = {"packets": run.metrics()["packets_received"], "hops_per_packet": 1, "run_s": ended - begun}
    print(json.dumps({**report, "digest": run.digest}))
