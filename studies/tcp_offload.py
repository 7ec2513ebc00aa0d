"""Calls beside TCP whose host sends bursts (segmentation offload): a table of `docs/tcp.md`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from kept import kept
from support import markdown
from tcp_truth import play

ALGORITHMS = ("cubic", "bbr", "bbr3")
PATHS = tuple(product((10, 100, 500), ((40, "drop-tail"), (4, "drop-tail"), (40, "fq-codel"))))
"""Capacity in Mbit/s; round trip in ms, and the discipline of the queue."""
SEEDS = range(1, 4)


@kept
def beside(algorithm: str, mbps: int, rtt_ms: int, discipline: str, offload: bool, seed: int) -> list[float]:
    """A GCC call beside a TCP flow: rate (Mbit/s), loss (%), one-way delay (ms, 95th percentile), and the flow's share.

    The call may send 2.5 Mbit/s. A drop-tail queue holds 20 ms. Seconds 20 to 60.
    """
    delay = f"{rtt_ms / 2}ms"
    link: dict[str, Any] = {"capacity": f"{mbps}Mbps", "delay": delay, "discipline": discipline}
    if discipline == "drop-tail":
        link["queue"] = {"time": "20ms"}
    done = play(
        seed,
        duration="60s",
        warmup="20s",
        links=[{**link, "back": {"capacity": "infinite", "delay": delay}}],
        flows=[
            {"name": "call", "media": {"controller": "gcc"}},
            {"name": "tcp", "tcp": {"algorithm": algorithm, "offload": offload}},
        ],
    )
    call, tcp = done.metrics("call"), done.metrics("tcp")
    rate, loss, delay_ms = call["receive_rate_bps"], call["loss_fraction"], call["one_way_delay_ms_p95"]
    return [1e-6 * rate, 100 * loss, delay_ms, 1e-6 * tcp["goodput_bps"] / mbps * 1500 / 1460]


def table_of_calls() -> str:
    """A row for each path and algorithm: means over the seeds, without bursts → with them."""

    def rows() -> Iterator[list[object]]:
        for (mbps, (rtt_ms, discipline)), algorithm in product(PATHS, ALGORITHMS):
            runs = [
                np.mean([beside(algorithm, mbps, rtt_ms, discipline, offload, seed) for seed in SEEDS], axis=0)
                for offload in (False, True)
            ]
            formats = ("{:.2f}", "{:.2f}", "{:.1f}", "{:.2f}")
            cells = [
                "\u00a0→\u00a0".join(text.format(run[index]) for run in runs) for index, text in enumerate(formats)
            ]
            yield [f"{mbps} Mbit/s, {rtt_ms} ms, {discipline}", algorithm, *cells]

    measures = ["call (Mbit/s)", "loss (%)", "delay (ms)", "TCP's share"]
    return markdown(["path", "TCP", *measures], 2, rows())


TABLES = {("tcp.md", "offload"): table_of_calls}
