"""BBR and CUBIC under random loss: a table of `docs/tcp.md`."""

from __future__ import annotations

import numpy as np

from kept import kept
from support import markdown
from tcp_truth import bottleneck, play

LOSSES = (0, 0.001, 0.005, 0.01, 0.02, 0.05)
"""Probabilities that a packet is lost at random."""
RATES = (10, 50)
"""Capacities in Mbit/s of the link with random losses."""


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


def carried(algorithm: str, mbps: int, loss: float) -> float:
    """The mean over five seeds."""
    return float(np.mean([under_loss(algorithm, mbps, loss, seed) for seed in range(1, 6)]))


def table_of_losses() -> str:
    """Shares of a link that flows carry under random loss."""
    head = ["Mbit/s", "algorithm", *(f"{100 * loss:g} %" for loss in LOSSES)]
    rows = [
        (mbps, algorithm, *(f"{100 * carried(algorithm, mbps, loss):.0f}" for loss in LOSSES))
        for mbps in RATES
        for algorithm in ("bbr", "bbr3", "cubic")
    ]
    return markdown(head, 2, rows)


TABLES = {("tcp.md", "bbr3 losses"): table_of_losses}
