"""Radio networks without packets: rates of users with full buffers, and traces of these rates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate import _core
from tidegate._core import Trace
from tidegate.errors import InputError, located
from tidegate.scenario.lower import check_seed
from tidegate.scenario.population import lower_radio, members_of
from tidegate.scenario.radio import Lte, Users
from tidegate.units import Duration, Speed

_SHORTEST, _LONGEST = 10**6, 86_400 * 10**9  # ns


@dataclass(frozen=True)
class Survey:
    """The signal of each user of a radio network, and the rate of those with a full buffer."""

    lte: Lte
    """Settings of the network."""
    serving: npt.NDArray[np.uint32]
    """The cell that serves each user at the beginning, shape (users,)."""
    geometry_db: npt.NDArray[np.float64]
    """Mean SINR of each user at the beginning if all cells send, without fast fading; dB, shape (users,)."""
    gains_db: npt.NDArray[np.float64]
    """Gain from each cell to each user; dB, shape (users, cells)."""
    rate_bps: npt.NDArray[np.float64]
    """Mean rate of each user's full buffer without the headers of MAC and RLC, bit/s, shape (users,); 0 for others."""

    @property
    def cells(self) -> int:
        """Number of cells."""
        return 3 * self.lte.sites

    @property
    def cell_efficiency(self) -> float:
        """Spectral efficiency of a cell: bit/s per hertz, the mean over all cells."""
        return float(self.rate_bps.sum()) / self.cells / self._hertz

    @property
    def user_efficiency(self) -> npt.NDArray[np.float64]:
        """Spectral efficiency of each user: bit/s per hertz, shape (users,)."""
        return self.rate_bps / self._hertz

    @property
    def _hertz(self) -> float:
        return float(self.lte.bandwidth.removesuffix("MHz")) * 1e6


def survey(lte: Lte, *, seed: int, duration: Duration | str, warmup: Duration | str = "1s") -> Survey:
    """Runs a radio network whose only traffic is that of full buffers.

    Args:
        lte: The network; its users with `full_buffer`, if any.
        seed: The same seed gives the same run.
        duration: Simulated time after the warm-up.
        warmup: Time that the schedulers run before the measurement.

    Raises:
        InputError: when a value is wrong.

    >>> from tidegate import Lte, Users
    >>> found = survey(Lte(users=[Users(count=21, full_buffer=True)]), seed=1, duration="1s", warmup="100ms")
    >>> found.gains_db.shape
    (21, 21)
    """
    begin, end = _times(duration, warmup)
    serving, geometry, served, gains = _call(_core.lte_survey, lte, seed, begin, end)
    rate = served * 8e9 / (end - begin)
    return Survey(lte, serving, geometry, gains.reshape(len(serving), -1), rate)


def trace(
    *,
    seed: int,
    duration: Duration | str,
    case: int = 1,
    bandwidth: str = "10MHz",
    antennas: str = "1x2",
    speed: Speed | str = "3km/h",
    users: int = 1,
) -> Trace:
    """Generates the rate of a user with a full buffer in an LTE network of 21 cells, all of which always send.

    Args:
        seed: The same seed gives the same user.
        duration: Length of the trace.
        case: 3GPP case 1 or 3.
        bandwidth: 5MHz or 10MHz.
        antennas: 1x1, 1x2 or 2x2.
        speed: Speed of the users.
        users: Mean number of users with a full buffer per cell, this one included.

    Raises:
        InputError: when a value is wrong.
    """
    begin, end = _times(duration, "1s")
    if not 1 <= users <= 100:  # noqa: PLR2004
        raise InputError(f"users: found {users}; expected from 1 to 100 users per cell")
    everyone = Users(name="user", count=21 * users, full_buffer=True)
    network = Lte(case=case, bandwidth=bandwidth, antennas=antennas, speed=speed, users=[everyone])
    generated: Trace = _call(Trace.generate_lte, network, seed, begin, end)
    return generated


def _times(duration: Duration | str, warmup: Duration | str) -> tuple[int, int]:
    with located("warmup"):
        begin = Duration.parse(warmup)
    with located("duration"):
        length = Duration.parse(duration)
    if not _SHORTEST <= length <= _LONGEST:
        raise InputError(f'duration: found "{length}"; expected from 1ms to {Duration(_LONGEST)}')
    if begin > _LONGEST:
        raise InputError(f'warmup: found "{begin}"; expected at most {Duration(_LONGEST)}')
    return int(begin), int(begin + length)


def _call(function: Any, lte: Lte, seed: int, begin: int, end: int) -> Any:
    check_seed("seed", seed)
    radio_input = lower_radio(lte, {group.name: members_of(group, lte.name, seed, end) for group in lte.users})
    try:
        return function(json.dumps(radio_input), seed, begin, end)
    except ValueError as error:
        raise InputError(str(error)) from None


def full_buffers(per_cell: int = 10, **keys: Any) -> Lte:
    """Network for calibrations: `per_cell` users per cell on average, all with full buffers.

    >>> full_buffers(case=3).users[0].count
    210
    """
    sites = keys.get("sites", 7)
    return Lte(users=[Users(name="user", count=3 * sites * per_cell, full_buffer=True)], **keys)


__all__ = ["Survey", "full_buffers", "survey", "trace"]
