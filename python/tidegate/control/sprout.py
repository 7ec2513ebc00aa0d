"""Sprout's forecasts as a plain function: what the receivers of `sprout` and `sprout-ewma` make of a series of ticks.

>>> forecasts([11200] * 3)  # eight packets of 1400 bytes in each tick of 20 ms
array([[ 3,  7, 12, 17, 21, 26, 30, 35],
       [ 3,  8, 13, 19, 24, 29, 35, 40],
       [ 3,  9, 14, 20, 25, 31, 36, 42]], dtype=uint32)
>>> forecasts([11200, -1])
Traceback (most recent call last):
...
ValueError: bytes_per_tick[1]: found -1; expected a whole number of at least 0
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tidegate import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Whole = Sequence[int] | NDArray[np.integer[Any]]

LONGEST_MS = 65_535
"""The original's field for a silence has 16 bits."""


def forecasts(
    bytes_per_tick: Whole,
    *,
    time_to_next_ms: int | Whole = 20,
    controller: Literal["sprout", "sprout-ewma"] = "sprout",
    **settings: float,
) -> NDArray[np.uint32]:
    """Packets that the link will have delivered 20, 40, ... 160 ms after the end of each tick.

    The receiver begins without knowledge at the first tick, as keithw/sprout does.

    Args:
        bytes_per_tick: What came in each tick of 20 ms, shape (ticks,); 0: nothing came.
        time_to_next_ms: How long the sender says that it will be silent at most, with what came in a tick: one number,
            or one for each tick, from 0 to 65535. An empty tick that begins before that says nothing of the link.
        controller: Which of the two.
        settings: Settings of the controller other than its preset's: `confidence`, `packet`, `average_weight`.

    Returns:
        Cumulative packets, shape (ticks, 8).

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    ticks = _whole("bytes_per_tick", bytes_per_tick, 2**53)
    silences = time_to_next_ms
    if isinstance(silences, int):
        silences = np.full(len(ticks), silences)
    return _core.sprout_forecasts(
        controller, json.dumps(settings), ticks, _whole("time_to_next_ms", silences, LONGEST_MS)
    )


def _whole(name: str, values: Whole, most: int) -> list[int]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name}: found {array.ndim} dimensions; expected one, the ticks")
    bounds = f"of at least 0{'' if most > LONGEST_MS else f' and at most {most}'}"
    whole: list[int] = []
    for index, value in enumerate(array.tolist()):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or value != value // 1 or not 0 <= value <= most:
            raise ValueError(f"{name}[{index}]: found {value}; expected a whole number {bounds}")
        whole.append(int(value))
    return whole
