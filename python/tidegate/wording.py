"""Counts and lists of names in sentences; text of others that is safe on a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters that a terminal obeys or that hide what a line says: controls (C0 and C1, ECMA-48), separators of lines,
overrides of the direction of writing (Unicode TR 36, 3.2); and code points that are no characters."""


def printable(text: str) -> str:
    r"""Text in which control characters are shown as escapes; line feeds and tabs stay.

    >>> print(printable("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def one_line(text: str) -> str:
    r"""Text in which line feeds and tabs are shown as escapes, too, for a place that has one line.

    >>> print(one_line("a\nb"))
    a\nb
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


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
