"""What Dask costs: overhead a run, efficiency on two workers, bytes a run, and the scheduler's work for each task.

    python benches/cluster.py            # about two minutes

Each line is one measurement on this machine, beside whatever else it does (the load is printed). Efficiency is the part of
the two workers' time in which they ran jobs: what is missing is overhead.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tidegate import Scenario
from tidegate.comparison.sweeping import Point, SweepJob
from tidegate.runs import engine
from tidegate.runs.dask import Cluster
from tidegate.scenario.lower import Lowered

WORKERS = 2
BUSY = 0.2  # seconds of a run


class Timed:
    """A sweep's job that says how long it took."""

    def __init__(self, job: SweepJob) -> None:
        self.job = job

    def __call__(self, tick):
        begun = time.perf_counter()
        row = self.job(tick)
        return time.perf_counter() - begun, row


def jobs(seconds: float, count: int) -> list[Timed]:
    """Runs of one scenario that take so long each, with the summaries that a sweep keeps."""
    duration = 100.0
    for _ in range(3):
        made = Lowered(Scenario.load("home-broadband", {"duration": f"{duration:.1f}s"}))
        took = statistics.median(Timed(SweepJob(Point({}, seed, made, "")))(lambda _: True)[0] for seed in range(1, 6))
        duration *= seconds / took
    return [Timed(SweepJob(Point({}, seed, made, ""))) for seed in range(1, count + 1)]


def measure(cluster: Cluster, name: str, work: list[Timed]) -> None:
    """One line."""
    idle = scheduler_seconds(cluster)
    time.sleep(3)
    idle = (scheduler_seconds(cluster) - idle) / 3
    sent, received, batches = cluster.sent, cluster.received, cluster.batches
    before = scheduler_seconds(cluster)
    begun = time.perf_counter()
    done = engine.run_all(work)
    wall = time.perf_counter() - begun
    busy = sum(took for took, _ in done)
    count = len(work)
    overhead = (wall * WORKERS - busy) / count
    scheduler = scheduler_seconds(cluster) - before - idle * wall
    batches = cluster.batches - batches
    print(
        f"{name:34} {count:5} runs of {busy / count * 1e3:6.1f} ms: wall {wall:6.2f} s, efficiency {busy / wall / WORKERS:6.1%}, "
        f"overhead {overhead * 1e3:5.2f} ms a run, scheduler {scheduler / batches * 1e6:6.0f} us a task ({count / batches:.0f} runs) "
        f"and {idle:.1%} of a core idle, {(cluster.sent - sent) / count:5.0f} B out, {(cluster.received - received) / count:5.0f} B back a run"
    )


def scheduler_seconds(cluster: Cluster) -> float:
    """Processor time of the process that the scheduler is in; of `LocalCluster` that is this one, which packs and unpacks, too."""
    return cluster.client.run_on_scheduler(time.process_time)


@contextmanager
def apart():
    """A scheduler and its workers in processes of their own, as a cluster has them."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:

        def begin(what, *argv):
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *argv],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)

        about = Path(folder) / "scheduler.json"
        begin("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(about))
        while not about.exists():
            time.sleep(0.1)
        for _ in range(WORKERS):
            begin("worker", "--scheduler-file", str(about), "--nthreads", "1", "--no-nanny")
        with Cluster(json.loads(about.read_text())["address"], patience=60) as cluster:
            cluster.client.wait_for_workers(WORKERS, timeout=60)
            yield cluster


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=200)
    count = options.parse_args().runs
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    slow, quick = jobs(BUSY, count), jobs(0.002, count * 10)
    with Cluster(workers=WORKERS) as cluster, engine.using(cluster):
        engine.run_all(slow[:8])
        measure(cluster, "runs of 0.2 s", slow)
        measure(cluster, "runs that cost next to nothing", quick)
    with apart() as cluster, engine.using(cluster):
        engine.run_all(slow[:8])
        measure(cluster, "0.2 s, a scheduler apart", slow)
        measure(cluster, "next to nothing, apart", quick)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
