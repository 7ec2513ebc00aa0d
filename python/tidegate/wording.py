"""Counts and lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things, with its noun.

    Args:
        number: How many.
        noun: The noun for one of them.
        plural: The noun for any other number; with an s by default.

    >>> counted(1, "run"), counted(2, "run"), counted(0, "try", "tries")
    ('1 run', '2 runs', '0 tries')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names in a row, of many the first ones.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a', 'a, b and c', 'a, b and 2 more')
    """
    shown = [*names] if most is None or len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
