"""Sprout once more, in dense matrices and without any shortcut: what the engine's is held against.

The receiver is written from keithw/sprout's `process.cc`, `sampledfunction.hh`, `processforecaster.cc` and `receiver.cc`;
likelihoods are those of `boost::math::poisson`, unscaled. `share` has both ends of its bulk program, too (`sproutconn.cc`,
`network.cc`, `sproutbt2.cc`), with the loops that poll.
"""

from __future__ import annotations

import math
from collections import deque
from functools import cache

import numpy as np

BINS, TICK, COUNTS, TICKS = 257, 0.020, 30, 8
WIDTH = 1000 / 256
RATES = np.array([0.0, *((np.arange(1, BINS) + 0.5) * WIDTH)])


def _cdf(x: float, sd: float) -> float:
    """A table of 32769 cells from -1000, each represented by its middle, the first one by its lower end."""
    width = 2000 / 32768
    cell = min(max(int((x + 1000) / width), 0), 32768)
    middle = (cell + 0.5) * width - 1000 if cell else -1000.0
    return 0.5 * math.erfc(-middle / (sd * math.sqrt(2)))


def _bin(rate: float) -> int:
    return min(max(int(rate / WIDTH), 0), BINS - 1)


@cache
def transition() -> np.ndarray:
    """From the row's bin to the column's."""
    sd = 200 * math.sqrt(TICK)
    leave = 1 - math.exp(-TICK)
    matrix = np.zeros((BINS, BINS))
    for old, rate in enumerate(RATES):
        last = _bin(rate + 5 * sd)
        for new in range(_bin(rate - 5 * sd), min(last + 1, BINS - 1) + 1):
            low = new * WIDTH if new else -1e6
            high = (new + 1) * WIDTH if new < BINS - 1 else 1e6
            matrix[old, new] = _cdf(high - rate, sd) - _cdf(low - rate, sd)
    matrix[0, 0] *= 1 - leave
    matrix[0, 1:] *= leave
    return matrix


def likelihood(count: int) -> np.ndarray:
    """The Poisson probability of `count` in a tick, by bin."""
    means = RATES * TICK
    with np.errstate(divide="ignore"):
        logs = np.where(means > 0, np.log(means), 0.0)
    probability = np.exp(count * logs - means - math.lgamma(count + 1))
    probability[0] = count == 0
    return probability


@cache
def tables() -> list[np.ndarray]:
    """Probabilities of the arrivals in one to eight ticks, `[count, bin]`."""
    tick = np.array([likelihood(count) for count in range(COUNTS)])
    beliefs = np.eye(BINS)
    arrived = [np.ones(1) for _ in range(BINS)]
    found = []
    for _ in range(TICKS):
        now = tick @ beliefs.T
        arrived = [np.convolve(before, now[:, start]) for start, before in enumerate(arrived)]
        found.append(np.array(arrived).T)
        beliefs = beliefs @ transition()
        beliefs /= beliefs.sum(axis=1, keepdims=True)
    return found


class Receiver:
    """`receiver.cc`; times are whole milliseconds."""

    def __init__(self, now: int = 0) -> None:
        self.belief = np.full(BINS, 1 / BINS)
        self.time = self.score = now
        self.count = 0.0

    def packet(self, size: int, time_to_next: int) -> None:
        self.count += size / 1400
        self.score = max(self.time + time_to_next, self.score)

    def tick(self) -> None:
        belief = self.belief @ transition()
        if self.time >= self.score or self.count > 0:
            belief = belief * likelihood(1 if 0 < self.count < 1 else int(self.count + 0.5))
            self.count = 0.0
        self.belief = belief / belief.sum()
        self.time += 20

    def forecast(self) -> list[int]:
        return [int(np.argmax(table @ self.belief >= 0.05)) for table in cumulated()]


@cache
def cumulated() -> list[np.ndarray]:
    return [np.cumsum(table, axis=0) for table in tables()]


def forecasts(bytes_per_tick: list[int], time_to_next_ms: list[int]) -> np.ndarray:
    """As `tidegate.sprout.forecasts`."""
    receiver, rows = Receiver(), []
    for came, silence in zip(bytes_per_tick, time_to_next_ms, strict=True):
        if came:
            receiver.packet(came, silence)
        receiver.tick()
        rows.append(receiver.forecast())
    return np.array(rows)


class Sender:
    """`sproutconn.cc` and `sproutbt2.cc`: packets are cut to what the window leaves."""

    def __init__(self) -> None:
        self.next = self.queue = self.heard_at = self.transmit_at = 0
        self.forecast: list[int] | None = None
        self.tick = 7
        self.recent: deque[tuple[int, int]] = deque()

    def hear(self, now: int, forecast: list[int], received_or_lost: int) -> None:
        self.forecast, self.heard_at, self.tick = forecast, now, 0
        self.queue = self.next - received_or_lost

    def window(self, now: int) -> int:
        if self.forecast is None:
            return 0
        while self.tick < min((now - self.heard_at) // 20, 7):
            self.queue = max(0, self.queue - 1440 * self.forecast[self.tick])
            self.tick += 1
        ahead = self.forecast[min(self.tick + 5, 7)] - self.forecast[self.tick]
        return max(0, 1440 * ahead - self.queue)

    def flight(self, now: int) -> list[tuple[int, int, int, int]]:
        """What leaves now: sequence, payload, throwaway, time to next."""
        left = self.window(now)
        sent: list[tuple[int, int, int, int]] = []
        if left == 0 and now < self.transmit_at:
            return sent
        while True:
            size = min(1440, left)
            left -= size
            self.recent.append((self.next, now))
            while self.recent[0][1] < now - 10:
                self.recent.popleft()
            sent.append((self.next, size + 2, self.next - self.recent[0][0], 0 if left else 50))
            self.next += size + 2 + 50
            self.queue += size + 2
            if left == 0:
                break
        self.transmit_at = now + 50
        return sent


def share(kbps: int, delay_ms: int, seconds: int = 30) -> float:
    """The part of a constant link that the original's bulk program uses after ten seconds; a millisecond a step."""
    sender, receiver = Sender(), None
    waiting: deque[list[int]] = deque()
    there: deque[tuple[int, list[int]]] = deque()
    back: deque[tuple[int, list[int], int]] = deque()
    arrived: list[tuple[int, int]] = []
    before, credit, used, said_at, sender_woke, receiver_woke, told = 0, 0.0, 0, 0, -99, -99, -1
    for now in range(seconds * 1000):
        credit = credit + kbps / 8 if waiting else kbps / 8
        while waiting and credit >= waiting[0][0]:
            packet = waiting.popleft()
            credit -= packet[0]
            there.append((now + delay_ms, packet))
        heard = False
        while there and there[0][0] <= now:
            wire, sequence, size, throwaway, silence = there.popleft()[1]
            receiver = receiver or Receiver(now)
            while receiver.time + 20 < now:
                receiver.tick()
            receiver.packet(size, silence)
            arrived.append((sequence, size))
            before = max(before, sequence - throwaway)
            used += wire if now >= 10_000 else 0
            heard = True
        if receiver and (heard or now - receiver_woke >= 10):
            receiver_woke = now
            while receiver.time + 20 < now:
                receiver.tick()
            if now >= said_at and receiver.time != told:
                said_at, told = now + 20, receiver.time
                arrived = [one for one in arrived if one[0] >= before]
                back.append((now + delay_ms, receiver.forecast(), before + sum(size for _, size in arrived)))
        heard = False
        while back and back[0][0] <= now:
            sender.hear(now, *back.popleft()[1:])
            heard = True
        if heard or now - sender_woke >= 10 or now >= sender.transmit_at:
            sender_woke = now
            # its own header, that of its encryption, and UDP and IP below
            waiting.extend([size + 60, sequence, size, *rest] for sequence, size, *rest in sender.flight(now))
    return used * 8 / (seconds - 10) / kbps / 1000
