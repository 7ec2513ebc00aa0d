"""Replays recordings of libwebrtc's congestion controller through `gcc:libwebrtc`, and says how far the answers differ.

`python replay_goog_cc.py PREFIX[:key=value,...] ...` reads PREFIX_packets.csv, PREFIX_rr.csv, PREFIX_targets.csv and
PREFIX_probes.csv. Keys: `one_way_ms` (25), `start_bps` (300000), `max_bps` (10000000), and settings of the controller.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import deque
from pathlib import Path
from typing import Any

from tidegate import LossReport, PacketResult, Report, controller
from tidegate.control import Limits, Sent

MS = 1_000_000
CLOSE = 1e-3  # a probe's rate, of the recorded one; its instant to a millisecond
RATES = ["target_bps", "stable_target_bps", "pacing_bps", "padding_bps"]


def rows(prefix: str, what: str) -> deque[dict[str, str]]:
    with Path(f"{prefix}_{what}.csv").open(newline="") as file:
        return deque(csv.DictReader(file))


class Replay:
    """A controller, what was recorded of one, and the worst difference so far."""

    def __init__(self, prefix: str, **options: Any) -> None:
        self.one_way_ns = int(options.pop("one_way_ms", 25)) * MS
        start, most = int(options.pop("start_bps", 300_000)), int(options.pop("max_bps", 10_000_000))
        self.packets, self.reports = rows(prefix, "packets"), rows(prefix, "rr")
        self.targets = deque(row for row in rows(prefix, "targets") if row["event"] in {"process", "feedback", "sent"})
        self.probes = rows(prefix, "probes")
        self.stable = start
        self.told: dict[str, float] = {**dict.fromkeys(RATES, 0.0), "answers": 0, "probes": 0, "wrong_probes": 0}
        limits = Limits(start_bps=start, max_bps=most)
        self.host = controller("gcc", "libwebrtc", limits=limits, **options)
        self.compare("process", 0)

    def compare(self, event: str, now_ns: int) -> None:
        """Compares the last answer with the recorded one of the same call, if that had one."""
        said = self.host.decision
        self.stable = int(self.host.internals.get("stable_target", self.stable))
        for probe in said.probes:
            row = self.probes.popleft() if self.probes else None
            same = row is not None and abs(now_ns - int(row["at_us"]) * 1000) <= MS
            same = same and row is not None and off(probe.rate_bps, int(row["target_bps"])) <= CLOSE
            self.told["probes"] += 1
            self.told["wrong_probes"] += not same
        here = [said.target_bps, self.stable, said.pacing_bps, said.padding_bps]
        while self.targets and self.targets[0]["event"] == event and int(self.targets[0]["time_us"]) * 1000 == now_ns:
            row = self.targets.popleft()
            for key, value in zip(RATES, here, strict=True):
                self.told[key] = max(self.told[key], off(value, int(row[key])))
            self.told["answers"] += 1

    def alarms(self, now_ns: int) -> None:
        while (at := self.host.decision.alarm_ns) is not None and at <= now_ns:
            self.host.on_alarm(at)
            self.compare("process", at)

    def run(self) -> dict[str, float]:
        """In each millisecond, as it was recorded: time passes, losses and a round trip, feedback, packets leave."""
        end_ns = int(self.packets[-1]["send_us"]) * 1000
        in_flight: deque[dict[str, str]] = deque()
        returning: deque[tuple[int, list[PacketResult]]] = deque()
        lost = 0
        for now_ns in range(0, end_ns + MS, MS):
            self.alarms(now_ns)
            if now_ns and now_ns % (50 * MS) == 0 and (packets := heard(in_flight, now_ns)):
                returning.append((now_ns + self.one_way_ns, [result(row) for row in packets]))
            while self.reports and int(self.reports[0]["time_us"]) * 1000 <= now_ns:
                row = self.reports.popleft()
                lost += int(row["lost"])
                expected = int(row["lost"]) + int(row["received"])
                loss = LossReport(0, cumulative_lost=lost, expected=expected)
                self.host.on_report(now_ns, Report(report_rtt_ns=int(row["rtt_us"]) * 1000, loss=loss))
                self.compare("rr", now_ns)
            while returning and returning[0][0] <= now_ns:
                self.host.on_report(now_ns, Report(returning.popleft()[1]))
                self.compare("feedback", now_ns)
            while self.packets and int(self.packets[0]["send_us"]) * 1000 <= now_ns:
                row = self.packets.popleft()
                in_flight.append(row)
                sent_ns = int(row["send_us"]) * 1000
                self.host.on_sent(sent_ns, Sent(int(row["seq"]), int(row["size"])))
                self.compare("sent", sent_ns)
        self.told["missing"] = sum(int(row["time_us"]) * 1000 <= end_ns for row in [*self.targets])
        self.told["missing_probes"] = len(self.probes)
        return self.told


def off(value: float, recorded: int) -> float:
    """By which part of the recorded value another one is off."""
    return abs(value - recorded) / recorded if recorded else float(value != 0)


def heard(in_flight: deque[dict[str, str]], now_ns: int) -> list[dict[str, str]]:
    """What a report that closes now tells of: all up to the newest packet that has arrived."""
    arrived = [0 <= int(row["arrival_us"]) * 1000 <= now_ns for row in in_flight]
    count = max((number for number, here in enumerate(arrived, 1) if here), default=0)
    return [in_flight.popleft() for _ in range(count)]


def result(row: dict[str, str]) -> PacketResult:
    arrival, probe = int(row["arrival_us"]), int(row["probe_id"])
    return PacketResult(
        int(row["seq"]),
        int(row["size"]),
        int(row["send_us"]) * 1000,
        None if arrival < 0 else arrival * 1000,
        probe=None if probe < 0 else probe,
    )


def option(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    return key, json.loads(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Replays recordings of libwebrtc's congestion controller, and says how far the answers differ.",
        epilog="Example: replay_goog_cc.py goog_cc_steps goog_cc_loss5:one_way_ms=40,start_bps=500000,max_bps=5000000",
    )
    parser.add_argument(
        "recordings",
        nargs="+",
        metavar="PREFIX[:KEY=VALUE,...]",
        help="PREFIX_packets.csv and so on; keys: one_way_ms, start_bps, max_bps, and the controller's settings",
    )
    for name in parser.parse_args().recordings:
        prefix, _, options = name.partition(":")
        try:
            told = Replay(prefix, **dict(option(part) for part in options.split(",") if part)).run()
        except (OSError, KeyError, ValueError) as error:
            parser.error(f"{name}: {error}")
        print(
            f"{prefix}: {told['answers']:.0f} answers ({told['missing']:.0f} missing), off by at most "
            + ", ".join(f"{told[key]:.2%} ({key.removesuffix('_bps')})" for key in RATES)
            + f"; of {told['probes']:.0f} probes {told['wrong_probes']:.0f} differ"
            + f" ({told['missing_probes']:.0f} missing)"
        )
