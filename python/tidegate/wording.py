"""Counts and lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    Args:
        number: The number.
        noun: The singular.
        plural: The plural; the singular with an s by default.

    >>> counted(1, "run"), counted(2, "run"), counted(0, "try", "tries")
    ('1 run', '2 runs', '0 tries')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """A list of names as text; only the first `most` names if there are more.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a', 'a, b and c', 'a, b and 2 more')
    """
    parts = [*names] if most is None or len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
