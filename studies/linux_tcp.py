"""Linux's TCP through `tidegate shell`, on the paths of `tcp_stalls`: the oracle of `docs/tcp.md`'s standstills.

`python studies/linux_tcp.py --minutes 30` runs what is missing, a minute each, on a machine that does nothing else, and
adds a line for each run to `studies/kept/linux-tcp.csv`; it can be stopped and continued at any time. `sender` and
`receiver` are its two ends.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from rich.progress import track

from support import environment, jain
from tidegate import Run
from tidegate.shell._judging import verdict
from tidegate.show.view import Floats

RECORD = Path(__file__).parent / "kept" / "linux-tcp.csv"
DISCIPLINES = ("pie", "codel", "fq-codel", "drop-tail")
CELLS = [("cubic", flows, discipline) for flows in (16, 4, 1, 64) for discipline in DISCIPLINES] + [
    ("bbr", flows, discipline) for flows in (1, 16) for discipline in DISCIPLINES
]
"""Algorithm, flows and discipline, over 10 Mbit/s and 20 ms."""
RUNS = range(1, 4)
MBPS, DELAY_MS = 10, 20
SECONDS, WARMUP, BIN = 70, 10, 0.2
"""As in `tcp_stalls`: the length of a run, the part that rates leave out, and the bins of goodput, all in seconds."""
LOADED = 3.0
"""Seconds that the two programs have to begin."""
PORT = 5001
COLUMNS = (
    "kernel", "algorithm", "flows", "discipline", "run", "state", "longest_s", "goodput", "jain", "wait_ms", "drops"
)  # fmt: skip


def sender(algorithm: str, flows: int, seed: int) -> None:
    """Sends on so many connections, which begin within the first second, until the session ends."""
    luck = random.Random(seed)
    begins = sorted(time.monotonic() + 0.5 + luck.random() for _ in range(flows))
    chunk, waiting = bytes(65_536), selectors.DefaultSelector()
    end = begins[0] + SECONDS
    while (now := time.monotonic()) < end:
        while begins and begins[0] <= now:
            begins.pop(0)
            connection = socket.socket()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
            connection.setblocking(False)
            connection.connect_ex((os.environ["TIDEGATE_PEER"], PORT))
            waiting.register(connection, selectors.EVENT_WRITE)
        if not waiting.get_map():
            time.sleep(max(0.0, begins[0] - now))
            continue
        for key, _ in waiting.select(max(0.0, min([*begins, end]) - now)):
            with suppress(BlockingIOError):
                key.fileobj.send(chunk)  # type: ignore[union-attr]


def receiver(flows: int, path: Path) -> None:
    """Reads what comes in order on each connection, and writes the bytes of each bin."""
    bins = np.zeros((flows, round((SECONDS + 5) / BIN)))
    waiting, server, count, begin = selectors.DefaultSelector(), socket.create_server(("", PORT), backlog=flows), 0, 0.0
    waiting.register(server, selectors.EVENT_READ)
    last = time.monotonic() + LOADED + SECONDS
    while (now := time.monotonic()) < last:
        for key, _ in waiting.select(last - now):
            now = time.monotonic()
            if key.fileobj is server:
                begin = begin or now
                waiting.register(server.accept()[0], selectors.EVENT_READ, count)
                last = begin + SECONDS
                count += 1
            else:
                data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                bins[key.data, min(int((now - begin) / BIN), bins.shape[1] - 1)] += len(data)
                if not data:
                    waiting.unregister(key.fileobj)
    path.write_text(json.dumps(bins[:, : round(SECONDS / BIN)].tolist()))


def measure(algorithm: str, flows: int, discipline: str, number: int) -> dict[str, str]:
    """One run as a line of the record."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        back = {"capacity": "infinite", "delay": f"{DELAY_MS}ms", "discipline": "drop-tail"}
        link = {"capacity": f"{MBPS}Mbps", "delay": f"{DELAY_MS}ms", "discipline": discipline, "back": back}
        lines = [f'duration = "{SECONDS + 6}s"', f'warmup = "{WARMUP}s"', "[[links]]"]
        lines += [f"{key} = {_toml(value)}" for key, value in {"name": "link", **link}.items()]
        lines += ["[[flows]]", 'name = "call"', 'media = { controller = "gcc" }']
        (folder / "link.toml").write_text("\n".join(lines) + "\n", "utf-8")
        own = [sys.executable, str(Path(__file__).resolve())]
        ends = [
            "--", *own, "sender", algorithm, str(flows), str(number),
            "--", *own, "receiver", str(flows), str(folder / "bins.json"),
        ]  # fmt: skip
        command = [sys.executable, "-m", "tidegate", "shell", "link.toml", "--record", "summary", "--out", "out"]
        env = environment(PYTHONPATH=os.pathsep.join(sys.path))
        done = subprocess.run([*command, *ends], cwd=folder, env=env, capture_output=True, text=True, check=False)
        if not (folder / "bins.json").is_file():
            raise SystemExit(f"{algorithm} {flows} {discipline}: {done.stdout[-400:]}{done.stderr[-800:]}")
        bins = np.array(json.loads((folder / "bins.json").read_text()))
        metrics = Run.load(folder / "out").summary
        state, why = verdict(json.loads((folder / "out" / "session.json").read_text("utf-8")))
    for reason in why:
        print(f"{algorithm} {flows} {discipline} is noisy: {reason}", file=sys.stderr)
    begin = np.asarray(BIN * np.arange(bins.shape[1]), float)
    rates = bins[:, round(WARMUP / BIN) :].sum(axis=1) * 8 / (SECONDS - WARMUP)
    sent = [flow for flow in metrics["flows"] if flow["flow"].startswith("A")]
    packets = [flow["packets_received"] for flow in sent]
    waits = [flow["queueing_delay_ms_mean"] for flow in sent]
    return {
        "kernel": platform.release(),
        "algorithm": algorithm,
        "flows": str(flows),
        "discipline": discipline,
        "run": str(number),
        "state": state,
        "longest_s": ";".join(f"{longest_standstill(begin, row):.1f}" for row in bins),
        # of data in segments of 1448 bytes, for Linux's have time stamps
        "goodput": f"{rates.sum() / (MBPS * 1e6 * 1448 / 1500):.4f}",
        "jain": f"{jain(list(rates)):.4f}",
        "wait_ms": f"{np.average(waits, weights=packets):.2f}",
        "drops": str(next(link["dropped_queue"] for link in metrics["links"] if link["link"] == "link")),
    }


def longest_standstill(begin: Floats, goodput: Floats) -> float:
    """The longest time between two bins with goodput, from the beginning of one to that of the next or of the last bin.

    `begin` (s) are the beginnings of the bins; without any goodput it is the time from the first to the last.
    """
    alive = begin[goodput > 0]
    return float(np.diff(np.append(alive if len(alive) else begin[:1], begin[-1])).max())


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def record() -> list[dict[str, str]]:
    """The lines of the runs so far."""
    if not RECORD.is_file():
        return []
    with RECORD.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def missing() -> Iterator[tuple[str, int, str, int]]:
    """The runs of which the record has no quiet one."""
    quiet = (row for row in record() if row["state"] == "quiet")
    have = {(row["algorithm"], int(row["flows"]), row["discipline"], int(row["run"])) for row in quiet}
    return ((*cell, number) for number in RUNS for cell in CELLS if (*cell, number) not in have)


def main() -> None:
    """Is one of the ends, or adds runs to the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=48, help="about how long to go on (default 48)")
    parser.add_argument("end", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    match arguments.end:
        case ["sender", algorithm, flows, seed]:
            sender(algorithm, int(flows), int(seed))
        case ["receiver", flows, path]:
            receiver(int(flows), Path(path))
        case _:
            runs = list(missing())[: max(1, int(arguments.minutes * 60 / (SECONDS + LOADED)))]
            for run in track(runs, "sessions"):
                row = measure(*run)
                begins = not RECORD.is_file()
                with RECORD.open("a", encoding="utf-8", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    if begins:
                        writer.writeheader()
                    writer.writerow(row)


if __name__ == "__main__":
    main()
