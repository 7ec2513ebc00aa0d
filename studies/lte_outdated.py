"""What outdated CQI cost a proportional fair scheduler: a model of a cell that shares no code with the engine.

Users with Rayleigh fading on two antennas and independent subbands; a report is a channel whose correlation with the one that
is sent over is J0(2 pi fD tau) (Clarke 1968), with tau from 6 to 10 ms: reports come every 5 ms and are 6 ms old when used
(3GPP TR 36.814, table A.2.2-1). Interference stays as it is on average.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

THRESHOLD_DB = np.array(
    [-6.936, -5.147, -3.180, -1.253, 0.761, 2.699, 4.693, 6.525, 8.573, 10.366, 12.289, 14.173, 15.888, 17.814, 19.829]
)
"""SINR at which each CQI fails one time in ten (Vienna simulator, as in `link_adaptation.rs`)."""
EFFICIENCY = np.array(
    [
        0.1523,
        0.2344,
        0.3770,
        0.6016,
        0.8770,
        1.1758,
        1.4766,
        1.9141,
        2.4063,
        2.7305,
        3.3223,
        3.9023,
        4.5234,
        5.1152,
        5.5547,
    ]
)
"""Bits a resource element of each CQI (TS 36.213 table 7.2.3-1)."""
LOW, HIGH = np.arange(29) // 2, np.minimum((np.arange(29) + 1) // 2, 14)
SCHEME_DB, SCHEME = (THRESHOLD_DB[LOW] + THRESHOLD_DB[HIGH]) / 2, (EFFICIENCY[LOW] + EFFICIENCY[HIGH]) / 2
USERS, SUBBANDS, TRIES, WAVELENGTH_M = 10, 10, 4, 0.15
GEOMETRY_DB = ([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1], [-6, -2.7, 0.3, 3.8, 8.8, 15.1, 17])
"""Quantiles of the mean SINR in case 1 (the table of `docs/lte.md`)."""


def bessel(x: float) -> float:
    """J0, as the mean of cos(x sin a)."""
    angles = (np.arange(2000) + 0.5) * math.pi / 2000
    return float(np.cos(x * np.sin(angles)).mean())


def correlation(kmh: float, tau_s: float) -> float:
    """Of the fading now and `tau_s` later at a speed, at 2 GHz."""
    return bessel(2 * math.pi * kmh / 3.6 / WAVELENGTH_M * tau_s)


def _fading(luck: np.random.Generator, *shape: int) -> npt.NDArray[np.complex128]:
    made: npt.NDArray[np.complex128] = luck.standard_normal((*shape, 2)) + 1j * luck.standard_normal((*shape, 2))
    return made / math.sqrt(2)


def _power(fading: npt.NDArray[np.complex128]) -> Floats:
    power: Floats = (np.abs(fading) ** 2).sum(axis=-1)
    return power


def _effective(sinr: Any) -> float:
    """One SINR for several subbands, by their capacity."""
    return float(2 ** np.log2(1 + sinr).mean() - 1)


def efficiency(kmh: float, seed: int, ttis: int) -> float:
    """Bits a resource element of a cell at a speed."""
    luck = np.random.default_rng(seed)
    mean = 10 ** (np.interp(luck.random(USERS), *GEOMETRY_DB) / 10)[:, None]
    rho = [correlation(kmh, (6 + age) * 1e-3) for age in range(5)]
    average, offset = np.full(USERS, 1e-3), np.zeros(USERS)
    bits = used = 0.0
    for tti in range(ttis):
        told = _fading(luck, USERS, SUBBANDS)
        known = rho[tti % 5]
        true = known * told + math.sqrt(1 - known**2) * _fading(luck, USERS, SUBBANDS)
        cqi = np.searchsorted(THRESHOLD_DB, 10 * np.log10(mean * _power(told))) - 1
        rate = np.where(cqi >= 0, EFFICIENCY[cqi], 0.0)
        reported = np.where(cqi >= 0, 10 ** (THRESHOLD_DB[cqi] / 10), 1e-3)
        chosen = (rate / average[:, None]).argmax(axis=0)
        given = np.zeros(USERS)
        for user in np.unique(chosen):
            mine = chosen == user
            given[user] = rate[user, mine].sum()
            wanted = 10 * math.log10(_effective(reported[user, mine])) + offset[user]
            scheme = max(int(np.searchsorted(SCHEME_DB, wanted)) - 1, 0)
            heard = 0.0
            for tries in range(TRIES):
                # 8 ms later the channel is another one
                channel = true[user, mine] if tries == 0 else _fading(luck, int(mine.sum()))
                heard += _effective(mean[user] * _power(channel))
                used += mine.sum()
                excess = 10 * math.log10(heard) - SCHEME_DB[scheme]
                failure = 0.5 - 0.5 * math.erf((excess / 0.39 + 1.281552) / math.sqrt(2))
                decoded = luck.random() >= failure
                if tries == 0:
                    # the outer loop: one failure weighs nine successes
                    offset[user] += 0.05 if decoded else -0.45
                if decoded:
                    bits += mine.sum() * SCHEME[scheme]
                    break
        average += (given - average) / 100
    return float(bits / used)
