"""What can go wrong, as one hierarchy; every message is written for the person who reads it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar


class TidegateError(Exception):
    """Anything that tidegate reports about its input, its surroundings or a run.

    The text is complete: it names what was wrong, where, and what would be right.
    """

    exit_code: ClassVar[int] = 1
    """What the command line exits with."""


class InputError(TidegateError):
    """A wrong argument, file or setting: nothing was run."""

    exit_code = 2


class ScenarioError(InputError):
    """A scenario that does not say what it has to; lists every problem at once."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        """Takes the problems, one line or more each."""
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[tuple[str, ...]]]:
        """How it travels between processes."""
        return type(self), (self.problems,)


class TraceError(InputError):
    """A recorded network that cannot be read."""


class ControllerError(InputError):
    """A controller that does not exist, or settings that it refuses."""


class OutputError(TidegateError):
    """A result that cannot be written, or a place where it must not be."""


class RunError(TidegateError):
    """A run that could not be finished; `__cause__` holds the exception of a Python controller."""


@contextmanager
def located(where: str) -> Iterator[None]:
    """Puts `where` before the message of what is wrong with an input inside it.

    >>> with located("--duration"):
    ...     raise InputError("found 20; a time needs a unit")
    Traceback (most recent call last):
    ...
    tidegate.errors.InputError: --duration: found 20; a time needs a unit
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` if something known is close to `word`, else nothing.

    >>> did_you_mean("gccc", ["fixed", "gcc"])
    '; did you mean gcc?'
    >>> did_you_mean("zebra", ["fixed", "gcc"])
    ''
    """
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"; did you mean {names[close[0]]}?" if close else ""
