"""The dumbbell of benches/README.md for SimPy, whatever its links are made of.

`simpy_lean.py` and `simpy_idiomatic.py` bring the link; sources, wiring and measurement are the same here.
"""

import json
import sys
import time
from dataclasses import dataclass

import simpy

PACKET_BYTES = 1200
INTERVAL_S = 0.0096  # 1200 bytes every 9.6 ms are 1 Mb/s


@dataclass(slots=True)
class Packet:
    flow: int
    size: int
    pair: int
    sent_s: float


def cbr(env, link, flow, pair, start_s):
    """A constant-rate source: one packet every INTERVAL_S from start_s on."""
    yield env.timeout(start_s)
    while True:
        link.send(Packet(flow, PACKET_BYTES, pair, env.now))
        yield env.timeout(INTERVAL_S)


def main(link):
    """Run the work named by key=value arguments over links made by link(env, rate, delay_s, queue, out)."""
    work = {"cbr": 10, "tcp": 0, "pairs": 10, "rate_mbps": 20, "queue": 100, "duration_s": 600}
    for setting in sys.argv[1:]:
        key, _, value = setting.partition("=")
        if key not in work:
            sys.exit(f"{sys.argv[0]}: no such setting: {key}")
        work[key] = float(value) if key in ("rate_mbps", "duration_s") else int(value)
    if work["tcp"]:
        sys.exit("SimPy has no TCP")

    begun = time.perf_counter()
    env = simpy.Environment()
    received = [0] * work["cbr"]

    def deliver(packet):
        received[packet.flow] += 1

    down = [link(env, 1e9, 0.001, 1000, deliver) for _ in range(work["pairs"])]
    bottleneck = link(env, work["rate_mbps"] * 1e6, 0.020, work["queue"], lambda packet: down[packet.pair].send(packet))
    up = [link(env, 1e9, 0.001, 1000, bottleneck.send) for _ in range(work["pairs"])]
    for flow in range(work["cbr"]):
        pair = flow % work["pairs"]
        env.process(cbr(env, up[pair], flow, pair, INTERVAL_S * flow / work["cbr"]))

    running = time.perf_counter()
    env.run(until=work["duration_s"])
    ended = time.perf_counter()
    if sum(received) == 0:
        sys.exit("no packet arrived")
    print(
        json.dumps(
            {
                "packets": bottleneck.sent,
                "drops": bottleneck.drops,
                "hops_per_packet": 3,
                "setup_s": running - begun,
                "run_s": ended - running,
            }
        )
    )
