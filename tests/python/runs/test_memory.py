"""The summary level streams: an hour of a hundred flows in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support import ROOT

IN_A_PROCESS = """\
import json, resource, sys, time
import tidegate

def hundred(duration):
    media = {"controller": "gcc", "video": {"min": "50kbps", "max": "300kbps"}, "start_rate": "100kbps"}
    return tidegate.Scenario.from_dict({
        "duration": duration,
        "links": [{"name": "link", "capacity": "30Mbps", "delay": "20ms"}],
        "flows": [
            {"name": "call", "count": 50, "start_step": "100ms", "media": media},
            {"name": "tcp", "count": 25, "start_step": "100ms", "tcp": {}},
            {"name": "udp", "count": 25, "udp": {"rate": "100kbps", "pattern": "poisson"}},
        ],
    })

def peak():
    # MiB. On Linux ru_maxrss counts what the process was before it became this program, a copy of its parent
    if sys.platform == "linux":
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        return int(status["VmHWM"].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

tidegate.run(hundred("60s"), record="summary")
minute = peak()
begun = time.perf_counter()
done = tidegate.run(hundred(sys.argv[1]), record="summary")
took = time.perf_counter() - begun
json.dump({
    "minute": minute,
    "peak": peak(),
    "took": took,
    "flows": len(done.flows),
    "packets": sum(flow["packets_sent"] for flow in done.summary["flows"]),
    "carried": done.summary["links"][0]["carried_bps"],
}, sys.stdout)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_hour_of_a_hundred_flows_stays_small() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    argv = [sys.executable, "-c", IN_A_PROCESS, "3600s"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    print(
        f"\n{seen['flows']} flows, an hour: {seen['packets'] / 1e6:.1f} million packets in {seen['took']:.1f} s; "
        f"at most {seen['peak']:.0f} MiB, after a minute's run {seen['minute']:.0f} MiB"
    )
    assert seen["flows"] == 100
    # full-size packets would make 9 million on a full link, and most of ours are smaller
    assert seen["packets"] > 5e6
    assert seen["carried"] > 25e6
    assert seen["peak"] < 200, "MiB, the interpreter and its libraries included"
    # an hour has 3600 numbers a flow for the metrics by the second, and nothing else that grows
    assert seen["peak"] - seen["minute"] < 30
