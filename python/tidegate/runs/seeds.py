"""Which seeds are asked for: how many, or which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tidegate.errors import InputError
from tidegate.scenario.lower import check_seed

_MOST_SEEDS = 100_000


def seeds_from(count: int, first: int = 1) -> list[int]:
    """The seeds `first`, `first` + 1 and so on.

    Raises:
        InputError: when there are none, or too many.
    """
    if not 1 <= count <= _MOST_SEEDS:
        raise InputError(f"seeds: found {count}; expected from 1 to {_MOST_SEEDS}")
    return list(range(first, first + count))


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds that were asked for: how many, counted from 1, or which.

    Raises:
        InputError: when there are none, too many, one twice, or something that is no seed.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return seeds_from(seeds)
    if isinstance(seeds, bool | str) or not isinstance(seeds, Iterable):
        raise InputError(f"seeds: found {seeds!r}; expected how many, or a list of whole numbers")
    chosen: list[Any] = list(seeds)
    if not chosen:
        raise InputError("seeds: found none; expected at least one")
    known: set[Any] = set()
    for number, seed in enumerate(chosen):
        check_seed(f"seeds[{number}]", seed)
        if seed in known:
            raise InputError(f"seeds: {seed} is named twice; the same luck again says nothing new")
        known.add(seed)
    return [int(seed) for seed in chosen]
