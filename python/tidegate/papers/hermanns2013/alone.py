"""A sender alone in the network: Sprout's forecast, and bytes sent and received, tick by tick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.paper import Then
from tidegate.papers.hermanns2013.cells import Caller, variation_and_steps
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario

Floats = npt.NDArray[np.float64]

TICK_S = 0.02
"""Sprout's tick."""
SETTLED_S = 10.0
"""Start of all means: every sender begins at 0.3 Mb/s."""
LATER_S = 20.0
"""A later start of means, at which GCC's rate no longer rises."""
GREEDY: Mapping[str, Any] = {
    "flows.call.media.video": {"source": "greedy", "max": "15Mbps"},
    "flows.call.media.max_rate": "15Mbps",
}
"""Keys of a file transfer: it always has data, at more than Sprout's largest forecast (12 Mb/s)."""
FULL: Mapping[str, Any] = {
    "flows.call.media.video": {"source": "greedy", "max": "40Mbps"},
    "flows.call.media.max_rate": "40Mbps",
}
"""Keys of a sender at 40 Mb/s, more than LTE's best code in 5 MHz: what arrives is what the channel carries."""


@cache
def _shipped() -> Scenario:
    return Scenario.load("lte-one-call")


@dataclass(frozen=True)
class Ticks:
    """Ticks of Sprout's sender; arrays have a value for each tick."""

    at: Floats
    """Begin of the tick, s."""
    forecast: Floats
    """Bytes that may be in the network (the cumulative delivery forecast)."""
    allowed: Floats
    """Bytes that may be sent in the tick."""
    sent: Floats
    """Bytes that are sent in the tick."""
    openings: Floats
    """Number of times that the window opens; each lets a last packet go whole, of which a part had room."""

    @property
    def unused(self) -> float:
        """Share of the ticks in which at least another packet might have been sent."""
        settled = self.at >= SETTLED_S
        return float((self.allowed - self.sent > LARGEST)[settled].mean())

    @property
    def exceeded(self) -> float:
        """Share of the ticks in which more was sent than was allowed, and a packet for each time the window opens."""
        settled = self.at >= SETTLED_S
        return float((self.sent - self.allowed > LARGEST * self.openings)[settled].mean())

    @property
    def share_sent(self) -> float:
        """Bytes sent over bytes allowed, after `SETTLED_S`."""
        settled = self.at >= SETTLED_S
        return float(self.sent[settled].sum() / self.allowed[settled].sum())

    @property
    def mean(self) -> float:
        """Mean forecast after `SETTLED_S`, bytes."""
        return float(self.forecast[self.at >= SETTLED_S].mean())

    @property
    def by_seconds(self) -> Floats:
        """Mean forecast of each second after `SETTLED_S`, bytes."""
        settled = self.at >= SETTLED_S
        second = (self.at[settled] - SETTLED_S).astype(int)
        return np.bincount(second, self.forecast[settled]) / np.bincount(second)

    @property
    def interval_ms(self) -> float:
        """Median time between two ticks, ms."""
        return float(np.median(np.diff(self.at))) * 1e3


IP_UDP = 28
"""Bytes of IP and UDP headers, which Sprout's window does not count."""
LARGEST = 1232
"""Bytes of the largest packet as Sprout counts them: 1200 of payload, 32 of RTP with Sprout's stamp."""


@dataclass(frozen=True)
class Alone:
    """Summary of a run with a single sender."""

    rate: Floats
    """Rate sent in each second, bit/s."""
    arrived: Floats
    """Bytes that arrive in each tick of 20 ms."""
    delays: Floats
    """Delays from the wire to arrival of packets sent after `SETTLED_S`, ms."""
    frame_ms: float
    """Median time between two frames, ms."""
    waiting: float
    """Mean time of a packet at the sender, ms."""
    ticks: Ticks | None
    """Sprout's ticks; `None` for another controller."""
    digest: str

    @property
    def mean(self) -> float:
        """Mean rate after `SETTLED_S`, bit/s."""
        return float(self.settled.mean())

    @property
    def settled(self) -> Floats:
        """Rate of each second after `SETTLED_S`, bit/s."""
        return self.rate[int(SETTLED_S) :]

    @property
    def arrived_by_seconds(self) -> Floats:
        """Bytes that arrive in each second after `SETTLED_S`."""
        by_seconds: Floats = self.arrived.reshape(-1, round(1 / TICK_S)).sum(axis=1)
        return by_seconds[int(SETTLED_S) :]

    @property
    def carried(self) -> float:
        """Mean rate that arrives after `SETTLED_S`, bit/s."""
        return float(self.arrived_by_seconds.mean()) * 8

    @property
    def variation(self) -> float:
        """Coefficient of variation of the rates of seconds after `SETTLED_S`."""
        return variation_and_steps(self.settled)[0]

    @property
    def later(self) -> float:
        """Coefficient of variation of the rates of seconds after `LATER_S`."""
        return variation_and_steps(self.rate[int(LATER_S) :])[0]

    @property
    def steps(self) -> float:
        """Mean change of the rate from second to second after `SETTLED_S`, as a share of the mean rate."""
        return variation_and_steps(self.settled)[1]

    @property
    def network(self) -> float:
        """Mean delay from the wire to arrival, ms."""
        return float(self.delays.mean())

    def within(self, ms: float) -> float:
        """Share of the packets with a delay of at most so many milliseconds."""
        return float((self.delays <= ms).mean())

    @property
    def received(self) -> float:
        """Mean bytes of a tick in which data arrive, after `SETTLED_S`."""
        settled = self.arrived[round(SETTLED_S / TICK_S) :]
        return float(settled[settled > 0].mean())

    @property
    def empty(self) -> float:
        """Share of the ticks in which no data arrive, after `SETTLED_S`."""
        return float((self.arrived[round(SETTLED_S / TICK_S) :] == 0).mean())

    @classmethod
    def from_run(cls, run: Run) -> Alone:
        """Summarises a run that has recorded packets."""
        end = run.scenario.duration.seconds
        packets = run.table("packets")
        media = (packets.to_numpy("kind") == "video") & (packets.to_numpy("fate") != "under way")
        sent, arrived, size = (packets.to_numpy(name)[media] for name in ("sent_s", "arrived_s", "size"))
        delivered = np.isfinite(arrived)
        seconds = np.arange(end + 1)
        captured = run.table("frames").to_numpy("captured_s")
        rate, _ = np.histogram(sent, seconds, weights=size * 8.0)
        ticks = np.arange(round(end / TICK_S) + 1) * TICK_S
        sender_delay = run.metrics("call")["sender_delay_ms_mean"]
        return cls(
            rate=rate,
            arrived=np.histogram(arrived[delivered], ticks, weights=size[delivered].astype(float))[0],
            delays=(arrived - sent)[delivered & (sent >= SETTLED_S)] * 1e3,
            frame_ms=float(np.median(np.diff(captured))) * 1e3 if len(captured) > 1 else np.nan,
            waiting=np.nan if sender_delay is None else float(sender_delay),
            ticks=_ticks(run, sent, size - IP_UDP),
            digest=run.digest,
        )


def _ticks(run: Run, sent: Floats, size: Floats) -> Ticks | None:
    internals = run.table("internals")
    name, times, values = (internals.to_numpy(column) for column in ("name", "t_s", "value"))
    order = np.argsort(sent, kind="stable")
    sent, size = sent[order], size[order]
    window, queue = name == "window_bytes", name == "queue_bytes"
    if not window.any():
        return None
    # of several forecasts at one time the last holds; what was sent at once by an earlier one, it counts as queued
    begins, last = np.unique(times[window][::-1], return_index=True)
    forecast, room = values[window][::-1][last], np.maximum(values[window] - values[queue], 0.0)
    newest = room[::-1][last]
    earlier = np.add.reduceat(room, np.searchsorted(times[window], begins)) - newest
    at_once = np.array([size[first:end].sum() for first, end in _at_times(sent, begins)])
    sent_in_tick, _ = np.histogram(sent, np.append(begins, np.inf), weights=size.astype(float))
    openings = np.diff(np.searchsorted(times[window], np.append(begins, np.inf)))
    return Ticks(begins, forecast, newest + np.minimum(earlier, at_once), sent_in_tick, openings)


def _at_times(sent: Floats, times: Floats) -> Iterator[tuple[int, int]]:
    """First and end of the packets sent at each of these times."""
    firsts, ends = (np.searchsorted(sent, times, side) for side in ("left", "right"))
    return zip(firsts.tolist(), ends.tolist(), strict=True)


def job(caller: Caller, seed: int) -> Then[Run, Alone]:
    """Job of a sender alone; the seed decides its position."""
    return Then(RunJob(_shipped().with_changes(caller.keys), seed, "packets"), Alone.from_run)
