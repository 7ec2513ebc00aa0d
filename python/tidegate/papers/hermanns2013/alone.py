"""One sender alone in the network: what Sprout's forecast allows, what is sent and what arrives, tick by tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.paper import Then
from tidegate.papers.hermanns2013.cells import Caller, unrest
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario

Floats = npt.NDArray[np.float64]

TICK_S = 0.02
"""Sprout's."""
SETTLED_S = 10.0
"""What comes before is left out of means: everybody begins at 0.3 Mb/s."""
GREEDY: Mapping[str, Any] = {
    "flows.call.media.video": {"source": "greedy", "max": "15Mbps"},
    "flows.call.media.max_rate": "15Mbps",
}
"""A file transfer: always something to send, and more than Sprout can ever forecast (12 Mb/s)."""


@cache
def _shipped() -> Scenario:
    return Scenario.load("lte-one-call")


@dataclass(frozen=True)
class Ticks:
    """A sender's ticks, as Sprout's sender has them."""

    at: Floats
    """When each begins, s."""
    forecast: Floats
    """Bytes that may be in the network (the cumulative delivery forecast)."""
    allowed: Floats
    """Bytes that may be sent in it."""
    sent: Floats
    """Bytes that are sent in it."""

    @property
    def unused(self) -> float:
        """Share of the ticks in which at least one more packet might have been sent."""
        settled = self.at >= SETTLED_S
        return float((self.allowed - self.sent > LARGEST)[settled].mean())

    @property
    def mean(self) -> float:
        """Mean forecast once settled, bytes."""
        return float(self.forecast[self.at >= SETTLED_S].mean())

    @property
    def by_seconds(self) -> Floats:
        """Mean forecast in each second once settled, bytes."""
        settled = self.at >= SETTLED_S
        second = (self.at[settled] - SETTLED_S).astype(int)
        return np.bincount(second, self.forecast[settled]) / np.bincount(second)

    @property
    def every(self) -> float:
        """Time between two ticks, median, ms."""
        return float(np.median(np.diff(self.at))) * 1e3


LARGEST = 1260
"""Bytes of the largest packet: 1200 of payload, 32 of RTP with Sprout's stamp, 28 of IP and UDP."""


@dataclass(frozen=True)
class Alone:
    """A sender alone."""

    rate: Floats
    """Bit/s in each second."""
    arrived: Floats
    """Bytes that arrive in each tick of 20 ms."""
    delays: Floats
    """Delay of each packet sent once settled that arrived, from the wire, ms."""
    frame_ms: float
    """Median time between two frames, ms."""
    waiting: float
    """Mean time at the sender, ms."""
    ticks: Ticks | None
    """Sprout's."""
    digest: str

    @property
    def mean(self) -> float:
        """Mean rate once settled, bit/s."""
        return float(self.settled.mean())

    @property
    def settled(self) -> Floats:
        """The rate of each second once settled, bit/s."""
        return self.rate[int(SETTLED_S) :]

    @property
    def came(self) -> Floats:
        """Bytes that arrive in each second once settled."""
        by_seconds: Floats = self.arrived.reshape(-1, round(1 / TICK_S)).sum(axis=1)
        return by_seconds[int(SETTLED_S) :]

    @property
    def variation(self) -> float:
        """Coefficient of variation of the rate of each second once settled."""
        return unrest(self.settled)[0]

    @property
    def steps(self) -> float:
        """Mean change from one second to the next, of the mean rate, once settled."""
        return unrest(self.settled)[1]

    @property
    def network(self) -> float:
        """Mean delay from the wire, ms."""
        return float(self.delays.mean())

    def within(self, ms: float) -> float:
        """Share of the packets that take no longer."""
        return float((self.delays <= ms).mean())

    @property
    def received(self) -> float:
        """Mean bytes in a tick in which something arrives, once settled."""
        settled = self.arrived[round(SETTLED_S / TICK_S) :]
        return float(settled[settled > 0].mean())

    @property
    def empty(self) -> float:
        """Share of the ticks in which nothing arrives, once settled."""
        return float((self.arrived[round(SETTLED_S / TICK_S) :] == 0).mean())

    @classmethod
    def of(cls, run: Run) -> Alone:
        """Of a run that has recorded packets."""
        end = run.scenario.duration.seconds
        packets = run.table("packets")
        media = (packets.to_numpy("kind") == "video") & (packets.to_numpy("fate") != "under way")
        sent, arrived, size = (packets.to_numpy(name)[media] for name in ("sent_s", "arrived_s", "size"))
        came = np.isfinite(arrived)
        seconds = np.arange(end + 1)
        captured = run.table("frames").to_numpy("captured_s")
        rate, _ = np.histogram(sent, seconds, weights=size * 8.0)
        ticks = np.arange(round(end / TICK_S) + 1) * TICK_S
        waited = run.metrics("call")["sender_delay_ms_mean"]
        return cls(
            rate=rate,
            arrived=np.histogram(arrived[came], ticks, weights=size[came].astype(float))[0],
            delays=(arrived - sent)[came & (sent >= SETTLED_S)] * 1e3,
            frame_ms=float(np.median(np.diff(captured))) * 1e3 if len(captured) > 1 else np.nan,
            waiting=np.nan if waited is None else float(waited),
            ticks=_ticks(run, sent, size),
            digest=run.digest,
        )


def _ticks(run: Run, sent: Floats, size: Floats) -> Ticks | None:
    internals = run.table("internals")
    name, at, value = (internals.to_numpy(column) for column in ("name", "t_s", "value"))
    window, queue = name == "window_bytes", name == "queue_bytes"
    if not window.any():
        return None
    # of several at one instant the last holds
    begin, last = np.unique(at[window][::-1], return_index=True)
    forecast, there = value[window][::-1][last], value[queue][::-1][last]
    went, _ = np.histogram(sent, np.append(begin, np.inf), weights=size.astype(float))
    return Ticks(begin, forecast, np.maximum(forecast - there, 0.0), went)


def job(caller: Caller, seed: int) -> Then[Run, Alone]:
    """A sender alone, in the place that the seed puts it."""
    return Then(RunJob(_shipped().with_changes(caller.keys), seed, "packets"), Alone.of)
