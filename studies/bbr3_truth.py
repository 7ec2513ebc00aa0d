"""BBR version 3 beside CUBIC, and under random loss: tables of `docs/tcp.md`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kept import kept
from support import markdown
from tcp_truth import QUEUES, bottleneck, play, starts

SEEDS = range(1, 21)
LOSSES = (0, 0.001, 0.005, 0.01, 0.02, 0.05)
"""Probabilities that a packet is lost at random."""
RATES = (10, 50)
"""Capacities in Mbit/s of the link with random losses."""


@kept
def beside(other: str, queue: int, seed: int) -> Sequence[float]:
    """Of BBRv3 beside another algorithm: share of the goodput, loss and mean wait in ms; seconds 60 to 240."""
    names = ("bbr3", other)
    done = play(
        seed,
        duration="240s",
        warmup="60s",
        links=[bottleneck(queue)],
        flows=[
            {"name": name, "start": start, "tcp": {"algorithm": name, "recovery": "rack"}}
            for name, start in zip(names, starts(seed), strict=True)
        ],
    )
    mine, theirs = (done.metrics(name) for name in names)
    share = mine["goodput_bps"] / (mine["goodput_bps"] + theirs["goodput_bps"])
    return share, mine["loss_fraction"], mine["queueing_delay_ms_mean"]


@kept
def under_loss(algorithm: str, mbps: int, loss: float, seed: int) -> float:
    """Share of a link that a flow carries when packets are lost at random; seconds 20 to 120.

    The round trip is 40 ms, and the queue has four bandwidth-delay products.
    """
    packets = round(4 * mbps * 1e6 * 0.04 / 12_000)
    link = {**bottleneck(packets), "capacity": f"{mbps}Mbps"}
    done = play(
        seed,
        duration="120s",
        warmup="20s",
        links=[{**link, "loss": loss, "back": {"loss": 0}}],
        flows=[{"name": "tcp", "tcp": {"algorithm": algorithm, "recovery": "rack"}}],
    )
    return float(done.metrics()["goodput_bps"] / (mbps * 1e6 * 1460 / 1500))


def beside_all(other: str, queue: int) -> Sequence[Sequence[float]]:
    """The same of 20 seeds."""
    return [beside(other, queue, seed) for seed in SEEDS]


def carried(algorithm: str, mbps: int, loss: float) -> float:
    """The mean over five seeds."""
    return float(np.mean([under_loss(algorithm, mbps, loss, seed) for seed in range(1, 6)]))


def table_beside_cubic() -> str:
    """BBR version 3 beside CUBIC, by the length of the queue."""
    head = ["queue, bandwidth-delay products", "packets", "BBRv3's share, %", "minimum", "maximum"]
    rows = []
    for products, queue in QUEUES.items():
        share, loss, wait = np.transpose(beside_all("cubic", queue))
        percent = (f"{100 * number:.0f}" for number in (share.mean(), share.min(), share.max()))
        rows.append((products, queue, *percent, f"{100 * loss.mean():.2f}", f"{wait.mean():.0f}"))
    return markdown([*head, "BBRv3's loss, %", "BBRv3's wait, ms"], 0, rows)


def table_of_losses() -> str:
    """Shares of a link that flows carry under random loss."""
    head = ["Mbit/s", "algorithm", *(f"{100 * loss:g} %" for loss in LOSSES)]
    rows = [
        (mbps, algorithm, *(f"{100 * carried(algorithm, mbps, loss):.0f}" for loss in LOSSES))
        for mbps in RATES
        for algorithm in ("bbr", "bbr3", "cubic")
    ]
    return markdown(head, 2, rows)


TABLES = {("tcp.md", "bbr3"): table_beside_cubic, ("tcp.md", "bbr3 losses"): table_of_losses}
