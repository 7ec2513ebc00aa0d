"""Sprout's receiver once more, in dense matrices and without any shortcut: what the engine's is held against.

Written from keithw/sprout's `process.cc`, `sampledfunction.hh`, `processforecaster.cc` and `receiver.cc`; likelihoods are those
of `boost::math::poisson`, unscaled.
"""

from __future__ import annotations

import math
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


def forecasts(bytes_per_tick: list[int], time_to_next_ms: list[int]) -> np.ndarray:
    """As `tidegate.sprout.forecasts`."""
    belief = np.full(BINS, 1 / BINS)
    rows, score_ms = [], 0
    for tick, (came, silence) in enumerate(zip(bytes_per_tick, time_to_next_ms, strict=True)):
        if came:
            score_ms = max(score_ms, 20 * tick + silence)
        belief = belief @ transition()
        count = came / 1400
        if 20 * tick >= score_ms or count > 0:
            belief = belief * likelihood(1 if 0 < count < 1 else int(count + 0.5))
        belief = belief / belief.sum()
        cumulated = [np.cumsum(table @ belief) for table in tables()]
        rows.append([int(np.argmax(line >= 0.05)) for line in cumulated])
    return np.array(rows)
