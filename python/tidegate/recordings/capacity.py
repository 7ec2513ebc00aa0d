"""Capacity of a link from a recorded call: a lower bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.errors import InputError
from tidegate.runs import Run

WIDTH_S = 0.5
"""Of the pieces of time that are looked at: at 0.3 Mbit/s some 15 packets of 1200 bytes."""

STANDS_MS = 10.0
"""A queue stands where even the fastest packet of a piece took so much longer than the fastest of all: more than a
burst of 5 ms and stamps of a millisecond come to, less than what a controller lets build up."""

LEAST = 5
"""Packets of a piece whose spacing is measured."""


@dataclass(frozen=True)
class Capacity:
    """Steps of capacity, each from its time on."""

    t_s: npt.NDArray[np.float64]
    rate_bps: npt.NDArray[np.float64]
    duration_s: float
    stood: float
    """The part of the time in which a queue stood, so that the rate is what the link gave this flow."""

    def to_csv(self) -> str:
        """As a recorded network that scenarios take."""
        rows = [f"{t:.3f},{rate / 1e6:.6f}" for t, rate in zip(self.t_s, self.rate_bps, strict=True)]
        return "\n".join([f"# duration_s={self.duration_s:.3f}", "time_s,rate_mbps", *rows, ""])


def capacity(run: Run, flow: str | None = None) -> Capacity:
    """A lower bound of the capacity of the tightest link of a flow, in pieces of half a second.

    While a queue stands in front of a link, packets leave it back to back, so that bytes over the time between the
    first and the last arrival (the dispersion of the train) are what the link gave this flow; what others had beside it
    is not in it. Where none stands, the link gave at least as much as arrived, and is taken to give what it gave when
    one stood last (or, before that, first).

    Raises:
        InputError: when arrivals are not known, or too few.
    """
    wanted = flow or run.subject
    table = run.table("packets") if "packets" in run.tables else None
    if table is None:
        raise InputError(f"{run.name} has no packets")
    ours = (table.to_numpy("flow") == wanted) & (table.to_numpy("fate") == "arrived")
    sent, arrived, size = (table.to_numpy(name)[ours].astype(float) for name in ("sent_s", "arrived_s", "size"))
    if len(arrived) < LEAST or not np.isfinite(arrived - sent).all():
        raise InputError(f"{run.name}: {wanted}: the run does not have the times at which packets left and arrived")
    order = np.argsort(arrived, kind="stable")
    arrived, size, delay = arrived[order], size[order], ((arrived - sent) * 1000)[order]
    end = float(run.summary["duration_s"])
    edges = np.arange(0.0, end, WIDTH_S)
    first = np.searchsorted(arrived, edges)
    last = np.append(first[1:], len(arrived))
    rates, stands = np.zeros(len(edges)), np.zeros(len(edges), bool)
    for piece, (begin, stop) in enumerate(zip(first, last, strict=True)):
        span = arrived[stop - 1] - arrived[begin] if stop - begin >= LEAST else 0.0
        if span > 0:
            rates[piece] = size[begin + 1 : stop].sum() * 8 / span
            stands[piece] = delay[begin:stop].min() >= delay.min() + STANDS_MS
    if not stands.any():
        bound = np.maximum.accumulate(rates)
        bound = np.where(bound > 0, bound, rates.max())
    else:
        # what it gave when a queue stood last; before the first time, what it gave then
        held = np.maximum.accumulate(np.where(stands, np.arange(len(edges)), -1))
        held[held < 0] = int(np.argmax(stands))
        bound = np.where(stands, rates, np.maximum(rates[held], rates))
    return Capacity(edges, bound, end, float(stands.mean()))
