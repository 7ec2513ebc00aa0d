"""Run the reference settings in ns-2 (and ns-3) and keep one CSV row a run.

    python collect.py [--only base,grid,...] [--jobs 2] [--ns3 PROGRAM] [--out tcp_reference.csv]

Every row names all its settings, so that one row can be run again by hand:
`ns tcp.tcl variant=Newreno rate_mbps=10 queue=33 ... `. Rows of experiments that are not run again are kept.
Columns are described in docs/reference-tcp.md.
"""

import argparse
import csv
import itertools
import math
import os
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent

COLUMNS = (
    "tool,variant,rate_mbps,one_way_ms,queue_packets,flows,delack,iw,seed,utilisation,loss_fraction,"
    "mean_qdelay_ms,p95_qdelay_ms,goodput_mbps,experiment,extra_ms,jitter_ms,random_loss,min_rto_s,bytes,"
    "from_s,to_s,retransmitted,timeouts,download_s,mathis_ratio"
).split(",")

# Settings of a run unless an experiment says otherwise; the names are those of tcp.tcl and tcp_ns3.cc.
DEFAULTS = {
    "variant": "Newreno",
    "rate_mbps": 10,
    "one_way_ms": 20,
    "extra_ms": "0",
    "queue": 33,
    "flows": 1,
    "delack": 0,
    "iw": 2,
    "min_rto": 0.2,
    "jitter_ms": 0,
    "loss": 0,
    "seed": 1,
    "from": 20,
    "to": 120,
    "bytes": 0,
    "trace": 1,
}
CLASSIC = ("Reno", "Newreno", "Sack1", "Linux/cubic")
SERVICE_MS = 1.2  # of 1500 bytes at 10 Mb/s
PACKET_BITS = 1500 * 8
HEADERS_BYTES = 100  # a packet no larger than this carries no data: SYN, FIN, ACK


def cross(**axes):
    """Every combination of the axes' values, the last axis varying fastest, as full settings."""
    lists = [value if isinstance(value, (list, tuple)) else [value] for value in axes.values()]
    return [{**DEFAULTS, **dict(zip(axes, combination))} for combination in itertools.product(*lists)]


EXPERIMENTS = {
    "base": cross(variant=("Tahoe", *CLASSIC, "Linux/reno"), delack=(0, 1), seed=(1, 2, 3, 4, 5)),
    "startup": cross(variant=CLASSIC, delack=(0, 1), iw=(2, 3, 10), **{"from": 0, "to": 10}),
    "download": cross(
        variant=CLASSIC, one_way_ms=(10, 20, 100), delack=(0, 1), iw=(2, 3, 10), bytes=50_000, **{"from": 0, "to": 30}
    ),
    "two_rtt": cross(
        variant=("Newreno", "Sack1", "Linux/cubic"),
        flows=2,
        extra_ms="0 40",
        jitter_ms=(0, SERVICE_MS),
        seed=(1, 2, 3, 4, 5),
        to=600,
    ),
    "same_rtt": cross(
        variant=CLASSIC, queue=(33, 100), flows=2, jitter_ms=(0, SERVICE_MS), seed=(1, 2, 3, 4, 5), to=300
    ),
    "mathis": cross(
        variant=("Reno", "Newreno", "Sack1"),
        delack=(0, 1),
        loss=(0.001, 0.005, 0.01, 0.02),
        seed=(1, 2, 3),
        rate_mbps=1000,
        one_way_ms=60,
        queue=100_000,
        to=3000,
        trace=0,
    ),
    "min_rto": cross(variant=CLASSIC, queue=(10, 33), min_rto=(0.2, 1))
    + cross(
        variant=("Reno", "Newreno", "Sack1"),
        loss=(0.01, 0.02),
        min_rto=(0.2, 1),
        seed=(1, 2, 3),
        rate_mbps=1000,
        one_way_ms=60,
        queue=100_000,
        to=3000,
        trace=0,
    ),
    "grid": cross(variant=CLASSIC, rate_mbps=(5, 10, 50), queue=(10, 33, 100), one_way_ms=(10, 20, 100))
    + cross(variant=CLASSIC, delack=1, queue=(10, 33, 100), one_way_ms=(10, 20, 100)),
}

NS3_VARIANTS = ("TcpNewReno", "TcpNewReno/nosack", "TcpLinuxReno", "TcpCubic", "TcpCubic/nohystart")
# With 0.2 s, ns-3.37 times out again and again while it waits for a retransmission over a long queue (one CUBIC flow,
# 10 Mb/s, 100 ms, 10 packets: 26 timeouts and 11 % loss, none and 0.05 % with 1 s), so ns-3 keeps its own default.
NS3_MIN_RTO = {"min_rto": 1}
NS3_EXPERIMENTS = {
    "base": cross(variant=NS3_VARIANTS, delack=(0, 1), seed=(1, 2, 3), **NS3_MIN_RTO),
    "download": cross(
        variant=("TcpNewReno", "TcpCubic"),
        one_way_ms=(10, 20, 100),
        delack=(0, 1),
        iw=(2, 3, 10),
        bytes=50_000,
        **{"from": 0, "to": 30},
        **NS3_MIN_RTO,
    ),
    "two_rtt": cross(
        variant=("TcpNewReno", "TcpCubic"), flows=2, extra_ms="0 40", seed=(1, 2, 3), to=300, **NS3_MIN_RTO
    ),
    "same_rtt": cross(
        variant=("TcpNewReno", "TcpCubic"), queue=(33, 100), flows=2, seed=(1, 2, 3), to=300, **NS3_MIN_RTO
    ),
    "bbr": cross(
        variant="TcpBbr",
        rate_mbps=(5, 10, 50),
        queue=(33, 400),
        one_way_ms=(10, 20, 100),
        iw=10,
        seed=(1, 2, 3),
        **NS3_MIN_RTO,
    ),
    "grid": cross(
        variant=("TcpNewReno", "TcpCubic"),
        rate_mbps=(5, 10),
        queue=(10, 33, 100),
        one_way_ms=(10, 20, 100),
        **NS3_MIN_RTO,
    ),
}


class Bottleneck:
    """Statistics of the traced queue over [begin, end), fed with one ns-2 trace line at a time."""

    def __init__(self, begin, end):
        self.begin, self.end = begin, end
        self.arrivals = self.drops = self.sent_bytes = 0
        self.waits = []
        self.last_data_received = None
        # Times of entry in order. A drop-tail queue is first in, first out; a packet's id would not do, as ns-3 gives
        # a retransmission the id of its original.
        self._entered = deque()

    def line(self, words):
        event, time = words[0], float(words[1])
        inside = self.begin <= time < self.end
        if event == "+":
            self._entered.append(time)
            self.arrivals += inside
        elif event == "-":
            entered = self._entered.popleft()
            if inside:
                self.waits.append(time - entered)
                self.sent_bytes += int(words[5])
        elif event == "d":
            # ns-2 writes "+" for a packet before it finds the queue full, so the newest entry is the one dropped
            self._entered.pop()
            self.drops += inside
        elif event == "r" and int(words[5]) > HEADERS_BYTES:
            self.last_data_received = time


def percentile(values, fraction):
    """Nearest-rank percentile of a non-empty list."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


def run(tool, program, settings):
    """One run of the program; its CSV row. RuntimeError if the program fails or reports nothing."""
    command = [*program, *(f"{key}={value}" for key, value in settings.items())]
    begin, end = settings["from"], settings["to"]
    queue = Bottleneck(begin, end)
    flows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        for line in child.stdout:
            words = line.split()
            if words[0] == "flow":
                flows.append(dict(zip(words[2::2], map(float, words[3::2]))))
            elif words[0] in "+-dr" and len(words) == 12:
                queue.line(words)
    if child.returncode != 0 or len(flows) != settings["flows"]:
        raise RuntimeError(f"failed with status {child.returncode}: {' '.join(command)}")

    span = end - begin
    payload = flows[0].get("payload", 1450 if settings["variant"].startswith("Linux/") else 1460)
    row = {
        "tool": tool,
        "variant": settings["variant"],
        "rate_mbps": settings["rate_mbps"],
        "one_way_ms": settings["one_way_ms"],
        "queue_packets": settings["queue"],
        "flows": settings["flows"],
        "delack": settings["delack"],
        "iw": settings["iw"],
        "seed": settings["seed"],
        "extra_ms": settings["extra_ms"].replace(" ", ";"),
        "jitter_ms": settings["jitter_ms"],
        "random_loss": settings["loss"],
        "min_rto_s": settings["min_rto"],
        "bytes": settings["bytes"],
        "from_s": begin,
        "to_s": end,
        "goodput_mbps": ";".join(f"{flow['acked'] * payload * 8 / span / 1e6:.4f}" for flow in flows),
        "retransmitted": ";".join(f"{flow['retransmitted']:.0f}" for flow in flows if "retransmitted" in flow),
        "timeouts": ";".join(f"{flow['timeouts']:.0f}" for flow in flows),
    }
    if settings["bytes"]:
        row["goodput_mbps"] = ""
        row["download_s"] = f"{queue.last_data_received - flows[0]['start']:.6f}"
    elif settings["trace"]:
        row["utilisation"] = f"{queue.sent_bytes * 8 / (settings['rate_mbps'] * 1e6 * span):.5f}"
        row["loss_fraction"] = f"{queue.drops / queue.arrivals:.6f}"
        row["mean_qdelay_ms"] = f"{1e3 * sum(queue.waits) / len(queue.waits):.3f}"
        row["p95_qdelay_ms"] = f"{1e3 * percentile(queue.waits, 0.95):.3f}"
    else:
        sent, arrived = (sum(flow[key] for flow in flows) for key in ("sent", "arrived"))
        row["utilisation"] = f"{arrived * PACKET_BITS / (settings['rate_mbps'] * 1e6 * span):.6f}"
        row["loss_fraction"] = f"{1 - arrived / sent:.6f}"
    if settings["loss"] and not settings["bytes"]:
        rtt = 2e-3 * settings["one_way_ms"]
        predicted = math.sqrt(1.5 / settings["loss"]) / rtt  # packets a second
        row["mathis_ratio"] = f"{flows[0]['acked'] / span / predicted:.4f}"
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="comma-separated experiments (default: all): " + ", ".join(EXPERIMENTS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--ns3", help="run the ns-3 settings with this program (built from tcp_ns3.cc) instead of ns-2")
    parser.add_argument("--out", type=Path, default=HERE / "tcp_reference.csv")
    args = parser.parse_args()

    tool, program, experiments = "ns-2", ["ns", str(HERE / "tcp.tcl")], EXPERIMENTS
    if args.ns3:
        tool, program, experiments = "ns-3", [args.ns3], NS3_EXPERIMENTS
    chosen = args.only.split(",") if args.only else list(experiments)
    unknown = set(chosen) - set(experiments)
    if unknown:
        parser.error(f"no such experiment for {tool}: {', '.join(sorted(unknown))}")

    kept = []
    if args.out.exists():
        with args.out.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["tool"] != tool or row["experiment"] not in chosen]
    with ThreadPoolExecutor(args.jobs) as pool, args.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
        for name in chosen:
            rows = pool.map(lambda settings: run(tool, program, settings), experiments[name])
            for count, row in enumerate(rows, 1):
                writer.writerow({**row, "experiment": name})
                file.flush()
                print(f"\r{name}: {count} of {len(experiments[name])}", end="", file=sys.stderr)
            print(file=sys.stderr)


if __name__ == "__main__":
    main()
