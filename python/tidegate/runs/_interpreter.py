"""Keeps the current folder off the module path of interpreters that tidegate starts: it may hold any `json.py`.

`-P` on a command line does so, and `PYTHONSAFEPATH` where a library writes the command line. Programs of users must not
inherit the variable: they find the environment as it was.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable with the effect of `-P`, in Python 3.11 and newer."""
_environment = threading.Lock()


@contextmanager
def safe_path() -> Iterator[str | None]:
    """Makes interpreters that start inside leave the current folder off their path.

    Yields the variable's previous value, for [restore][] in the new process. One thread at a time, since all threads
    share the environment.
    """
    with _environment:
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            yield before
        finally:
            restore(before)


_OURS = "TIDEGATE_SET_PYTHONSAFEPATH"
"""Marks that [variables][] set the other variable, in processes that a library starts with a table of variables."""


def variables() -> dict[str, str]:
    """Variables for a library to set in interpreters that it starts; code in these calls [forget][]."""
    return {} if SAFE_PATH in os.environ else {SAFE_PATH: "1", _OURS: "1"}


def forget() -> None:
    """Removes the variables of [variables][] from this process's environment."""
    if os.environ.pop(_OURS, None) is not None:
        os.environ.pop(SAFE_PATH, None)


def restore(before: str | None) -> None:
    """Resets the variable to its previous value."""
    if before is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = before
