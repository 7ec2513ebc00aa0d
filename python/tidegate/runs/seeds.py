"""Lists of seeds, from a number or a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tidegate.errors import InputError
from tidegate.scenario.lower import check_seed

_MAX_SEEDS = 100_000


def seeds_from(count: int, first: int = 1) -> list[int]:
    """The seeds `first`, `first` + 1 and so on.

    Raises:
        InputError: when `count` is less than 1, or too large.
    """
    if not 1 <= count <= _MAX_SEEDS:
        raise InputError(f"seeds: found {count}; expected from 1 to {_MAX_SEEDS} seeds")
    return list(range(first, first + count))


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds from a number (1, 2 and so on) or a list.

    Raises:
        InputError: when there are none, too many or equal ones, or an element is no seed.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return seeds_from(seeds)
    if isinstance(seeds, bool | str) or not isinstance(seeds, Iterable):
        raise InputError(f"seeds: found {seeds!r}; expected the number of seeds, or a list of whole numbers")
    chosen: list[Any] = list(seeds)
    if not chosen:
        raise InputError("seeds: found none; expected at least one")
    unique: set[Any] = set()
    for number, seed in enumerate(chosen):
        check_seed(f"seeds[{number}]", seed)
        if seed in unique:
            raise InputError(
                f"seeds: found {seed} twice; expected different seeds, since the same seed repeats the same run"
            )
        unique.add(seed)
    return [int(seed) for seed in chosen]
