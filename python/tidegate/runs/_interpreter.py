"""Interpreters that tidegate begins look for no modules in the present folder, where anybody's `json.py` may lie.

`-P` on a command line says so, and `PYTHONSAFEPATH` where somebody else writes the command line. What people run must
not inherit that: their programs find the environment as it was.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable that does what `-P` does, in Python 3.11 and newer."""
_environment = threading.Lock()


@contextmanager
def safe_path() -> Iterator[str | None]:
    """While it is on, interpreters begin without the present folder on their path.

    Yields what the variable was, for [restore][] in the new process. One thread at a time: the environment is the whole
    process's.
    """
    with _environment:
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            yield before
        finally:
            restore(before)


_OURS = "TIDEGATE_SET_PYTHONSAFEPATH"
"""Beside the other variable where processes are begun by a library that hands over a table of variables."""


def variables() -> dict[str, str]:
    """What a library that begins interpreters is to set in their environment; [forget][] is for what runs in them."""
    return {} if SAFE_PATH in os.environ else {SAFE_PATH: "1", _OURS: "1"}


def forget() -> None:
    """Takes out of this process's environment what [variables][] put there."""
    if os.environ.pop(_OURS, None) is not None:
        os.environ.pop(SAFE_PATH, None)


def restore(before: str | None) -> None:
    """Gives the variable the value that it had."""
    if before is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = before
