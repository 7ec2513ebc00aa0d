"""TCP beside ns-2, ns-3 and Mathis's formula, through scenarios: tables of `docs/tcp.md`."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from kept import kept
from support import ROOT, markdown
from tidegate import Run, Scenario, run

REFERENCE = ROOT / "benches" / "reference" / "tcp_reference.csv"
TWINS = {
    "tahoe": ("ns-2", "Tahoe"),
    "reno": ("ns-2", "Reno"),
    "newreno": ("ns-2", "Newreno"),
    "sack": ("ns-2", "Sack1"),
    # ns-2's is an older CUBIC with another beta; of ns-3's, the one without HyStart, which is over before second 20
    "cubic": ("ns-3", "TcpCubic/nohystart"),
}
"""Simulator and variant that an algorithm is held against."""
COLUMNS = {"utilisation": "utilisation", "loss": "loss_fraction", "mean": "mean_qdelay_ms", "p95": "p95_qdelay_ms"}
"""The reference's columns for the measures of one flow."""
ACKS = {True: "every second", False: "each"}
"""The segments that are acknowledged, by `delayed_ack`."""


@cache
def reference() -> list[dict[str, str]]:
    """Rows of the other simulators."""
    with REFERENCE.open() as file:
        return list(csv.DictReader(file))


def twin(algorithm: str, experiment: str, column: str, **where: float) -> float:
    """The mean over seeds of a column that the other simulator measured."""
    rows = [
        row
        for row in reference()
        if (row["tool"], row["variant"], row["experiment"]) == (*TWINS[algorithm], experiment)
        and all(float(row[key]) == value for key, value in where.items())
    ]
    if column == "share":
        goodputs = [[float(rate) for rate in row["goodput_mbps"].split(";")] for row in rows]
        return float(np.mean([first / (first + second) for first, second in goodputs]))
    return float(np.mean([float(row[column]) for row in rows]))


def base(algorithm: str, delayed_ack: bool) -> dict[str, float]:
    """The measures of one flow in the other simulator."""
    return {measure: twin(algorithm, "base", column, delack=delayed_ack) for measure, column in COLUMNS.items()}


# --- runs -----------------------------------------------------------------------------------------


def play(seed: int | None = None, **data: Any) -> Run:
    """Runs a scenario."""
    return run(Scenario.from_dict(data), seed, "summary")


def bottleneck(packets: int) -> dict[str, Any]:
    """10 Mbit/s and 20 ms behind a queue of so many packets of 1500 B."""
    return {"name": "link", "capacity": "10Mbps", "delay": "20ms", "queue": {"packets": packets}}


def starts(seed: int) -> list[str]:
    """Starts of two flows within the first second."""
    return [f"{start:.3f}ms" for start in np.random.default_rng(seed).uniform(0, 1000, 2)]


def pair(seed: int, tcp: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A flow from `a` and one from `b`, whose way is longer."""
    ends = zip(("short", "long"), "ab", starts(seed), strict=True)
    return [{"name": name, "from": begin, "to": "end", "start": start, "tcp": tcp} for name, begin, start in ends]


def ratio(done: Run) -> float:
    """Goodput of the flow with the shorter way over that of the other."""
    short, long = (done.metrics(name)["goodput_bps"] for name in ("short", "long"))
    return float(short / long)


@kept
def one_flow(algorithm: str, delayed_ack: bool, sending_jitter: str) -> dict[str, float]:
    """Measures of one flow over the bottleneck with 33 packets; seconds 20 to 120.

    CUBIC finds losses by RFC 6675, as ns-3 does, which it is compared with.
    """
    recovery = "rfc6675" if algorithm == "cubic" else None
    done = play(
        duration="120s",
        warmup="20s",
        sending_jitter=sending_jitter,
        links=[bottleneck(33)],
        flows=[{"name": "tcp", "tcp": {"algorithm": algorithm, "recovery": recovery, "delayed_ack": delayed_ack}}],
    )
    metrics = done.metrics()
    return {
        "utilisation": done.summary["links"][0]["carried_bps"] / 10e6,
        "loss": metrics["loss_fraction"],
        "mean": metrics["queueing_delay_ms_mean"],
        "p95": metrics["queueing_delay_ms_p95"],
    }


@kept
def two_rtts(algorithm: str, delayed_ack: bool, sending_jitter: str, seed: int) -> float:
    """Goodput of a flow with 40 ms of round trip over that of one with 120 ms; seconds 20 to 600."""
    done = play(
        seed,
        duration="600s",
        warmup="20s",
        sending_jitter=sending_jitter,
        links=[
            {"name": "near", "from": "a", "to": "router"},
            {"name": "far", "from": "b", "to": "router", "delay": "40ms"},
            {**bottleneck(33), "from": "router", "to": "end"},
        ],
        flows=pair(seed, {"algorithm": algorithm, "delayed_ack": delayed_ack}),
    )
    return ratio(done)


def shares(algorithm: str, delayed_ack: bool, sending_jitter: str) -> list[float]:
    """That ratio of each seed."""
    return [two_rtts(algorithm, delayed_ack, sending_jitter, seed) for seed in range(1, 6)]


NS2_PHASE = {
    39_999: (1.81, 1.40, 1.96),
    40_000: (2.58, 2.14, 3.16),
    40_001: (3.42, 2.85, 4.37),
    40_050: (3.66, 3.30, 3.90),
}
"""By the longer way in microseconds: ns-2.35's ratio of the goodputs of two NewReno flows beside noise, mean of eight seeds, least and
most. tcp.tcl's dumbbell with a Poisson source of 1000 bytes and 0.1 Mbit/s, measured once (its table was in docs/tcp.md)."""


@kept
def phase(longer_us: int, ways: str, seed: int) -> float:
    """The same of ours over `ways` to the bottleneck of such a capacity: 67 packets, least timeout 0.2 s, seconds 20 to 300."""
    ends = {"a": "0ms", "b": f"{longer_us}us", "c": "0ms"}
    noise = {"rate": "0.1Mbps", "packet_size": "1000B", "pattern": "poisson"}
    done = play(
        seed,
        duration="300s",
        warmup="20s",
        sending_jitter="off",
        links=[
            *(
                {"name": f"way-{end}", "from": end, "to": "router", "capacity": ways, "delay": delay}
                for end, delay in ends.items()
            ),
            {**bottleneck(67), "from": "router", "to": "end"},
        ],
        flows=[
            *pair(seed, {"algorithm": "newreno", "delayed_ack": False, "min_rto": "200ms", "hystart": False}),
            {"name": "noise", "from": "c", "to": "end", "udp": noise},
        ],
    )
    return ratio(done)


def beside_noise(longer_us: int, ways: str) -> list[float]:
    """That ratio of each seed."""
    return [phase(longer_us, ways, seed) for seed in range(1, 9)]


LOSSES = (0.001, 0.005, 0.01, 0.02)


@kept
def over_mathis(algorithm: str, delayed_ack: bool, loss: float) -> float:
    """Goodput over MSS/RTT * sqrt(1.5/p) (Mathis, Semke, Mahdavi, Ott 1997, an ACK a packet); 3000 s."""
    done = play(
        duration="3000s",
        links=[{"name": "link", "capacity": "1Gbps", "delay": "60ms", "loss": loss, "back": {"loss": 0}}],
        flows=[{"name": "tcp", "tcp": {"algorithm": algorithm, "delayed_ack": delayed_ack}}],
    )
    return float(done.metrics()["goodput_bps"] / (1460 * 8 / 0.120 * math.sqrt(1.5 / loss)))


QUEUES = {0.5: 17, 1: 33, 4: 133, 16: 533}
"""Packets of 1500 bytes in a queue of so many bandwidth-delay products of 10 Mbit/s and 40 ms."""


@kept
def beside_cubic(algorithm: str, queue: int, seed: int) -> Sequence[float]:
    """Of an algorithm beside CUBIC its share of the goodput, its loss and its mean wait in ms; seconds 60 to 240."""
    names = (algorithm, "cubic")
    done = play(
        seed,
        duration="240s",
        warmup="60s",
        links=[bottleneck(queue)],
        flows=[
            {"name": name, "start": start, "tcp": {"algorithm": name}}
            for name, start in zip(names, starts(seed), strict=True)
        ],
    )
    mine, other = (done.metrics(name) for name in names)
    share = mine["goodput_bps"] / (mine["goodput_bps"] + other["goodput_bps"])
    return share, mine["loss_fraction"], mine["queueing_delay_ms_mean"]


def all_beside_cubic(algorithm: str, queue: int) -> Sequence[Sequence[float]]:
    """The same of 20 seeds."""
    return [beside_cubic(algorithm, queue, seed) for seed in range(1, 21)]


# --- tables ---------------------------------------------------------------------------------------


def table_of_one_flow() -> str:
    """One flow under each algorithm, its twin below it where the settings are the same."""
    head = ("algorithm", "ACKs", "jitter", "beside", "utilisation, %", "loss, %", "wait, mean, ms", "p95, ms")

    def cells(flow: Mapping[str, float]) -> tuple[str, ...]:
        utilisation, loss = f"{100 * flow['utilisation']:.2f}", f"{100 * flow['loss']:.4f}"
        return utilisation, loss, f"{flow['mean']:.2f}", f"{flow['p95']:.2f}"

    rows: list[tuple[str, ...]] = []
    # the defaults of a scenario first: they differ most from what the others measure
    for delayed_ack, jitter in ((True, "auto"), (False, "auto"), (True, "off"), (False, "off")):
        for algorithm, (tool, variant) in TWINS.items():
            rows.append((algorithm, ACKS[delayed_ack], jitter, "", *cells(one_flow(algorithm, delayed_ack, jitter))))
            if jitter == "off":
                rows.append(("", "", "", f"{tool} {variant}", *cells(base(algorithm, delayed_ack))))
    return markdown(head, 4, rows)


def table_of_shares() -> str:
    """Two flows with different round trips."""
    head = ("algorithm", "ACKs", "jitter", "ratio, mean", "each seed", "share, %", "ns-2's share, %")
    rows = []
    for algorithm, delayed_ack, jitter in (
        ("newreno", False, "auto"),
        ("newreno", False, "off"),
        ("newreno", True, "auto"),
        ("sack", False, "auto"),
        ("sack", False, "off"),
        ("cubic", False, "auto"),
    ):
        ratios = shares(algorithm, delayed_ack, jitter)
        share = np.mean([ratio / (1 + ratio) for ratio in ratios])
        theirs = ""
        if algorithm != "cubic" and not delayed_ack:
            theirs = f"{100 * twin(algorithm, 'two_rtt', 'share', jitter_ms=1.2 if jitter == 'auto' else 0):.1f}"
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        rows.append(
            (algorithm, ACKS[delayed_ack], jitter, f"{np.mean(ratios):.2f}", each, f"{100 * share:.1f}", theirs)
        )
    return markdown(head, 3, rows)


def table_of_mathis() -> str:
    """Goodput under random loss over the formula's."""
    head = ("algorithm", "ACKs", *(f"p = {100 * loss:g} %" for loss in LOSSES))
    rows: list[tuple[str, ...]] = []
    for algorithm, delayed_ack in (("reno", False), ("newreno", False), ("sack", False), ("newreno", True)):
        acks = ACKS[delayed_ack]
        rows.append((algorithm, acks, *(f"{over_mathis(algorithm, delayed_ack, loss):.3f}" for loss in LOSSES)))
        theirs = (twin(algorithm, "mathis", "mathis_ratio", random_loss=loss, delack=delayed_ack) for loss in LOSSES)
        rows.append((" ".join(TWINS[algorithm]), acks, *(f"{ratio:.3f}" for ratio in theirs)))
    return markdown(head, 2, rows)


def table_beside_cubic(algorithm: str, name: str) -> str:
    """An algorithm of this name in the text beside CUBIC, by the length of the queue."""
    head = ["queue, bandwidth-delay products", "packets", f"{name}'s share, %", "minimum", "maximum"]
    rows = []
    for products, queue in QUEUES.items():
        share, loss, wait = np.transpose(all_beside_cubic(algorithm, queue))
        percent = (f"{100 * number:.0f}" for number in (share.mean(), share.min(), share.max()))
        rows.append((products, queue, *percent, f"{100 * loss.mean():.2f}", f"{wait.mean():.0f}"))
    return markdown([*head, f"{name}'s loss, %", f"{name}'s wait, ms"], 0, rows)


def table_of_phase() -> str:
    """Two NewReno flows beside noise, with ways that differ by microseconds."""

    def cell(mean: float, least: float, most: float) -> str:
        return f"{mean:.2f} ({least:.2f} to {most:.2f})"

    def here(longer_us: int, ways: str) -> str:
        ratios = beside_noise(longer_us, ways)
        return cell(float(np.mean(ratios)), min(ratios), max(ratios))

    rows = [(f"{us / 1000:g}", "1 Gbit/s", cell(*theirs), here(us, "1Gbps")) for us, theirs in NS2_PHASE.items()]
    rows.append(("40", "infinite", "", here(40_000, "infinite")))
    head = [
        "delay of the longer path, ms",
        "capacity before the bottleneck",
        "ratio in ns-2: mean (minimum to maximum)",
        "here",
    ]
    return markdown(head, 0, rows)


TABLES = {
    ("tcp.md", "one flow"): table_of_one_flow,
    ("tcp.md", "shares"): table_of_shares,
    ("tcp.md", "mathis"): table_of_mathis,
    ("tcp.md", "bbr"): partial(table_beside_cubic, "bbr", "BBR"),
    ("tcp.md", "bbr3"): partial(table_beside_cubic, "bbr3", "BBRv3"),
    ("tcp.md", "phase"): table_of_phase,
}
