"""Compact numbers for the scripts of pages: whole steps, each as its difference from the previous one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def pack(values: Floats, step: float) -> list[int | None]:
    """Rounds values to multiples of ``step``, as differences from the last finite one; ``None`` for values not finite.

    >>> import numpy as np
    >>> pack(np.array([1.0, 1.2, np.nan, 1.1]), 0.1)
    [10, 2, None, -1]
    """
    packed: list[int | None] = []
    last = 0
    for value in values.tolist():
        if math.isfinite(value):
            now = round(value / step)
            packed.append(now - last)
            last = now
        else:
            packed.append(None)
    return packed


def unpack(packed: Sequence[int | None], step: float) -> Floats:
    """Undoes :func:`pack`, for tests and for programs that read a report."""
    finite = np.array([difference is not None for difference in packed], bool)
    return np.where(finite, np.cumsum([difference or 0 for difference in packed]) * step, np.nan)
