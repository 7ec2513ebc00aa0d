"""Errors of tidegate, in one hierarchy, with messages for users."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, TypeVar

_MAX_PROBLEMS = 20
"""Lines of an error, the last of which counts the other problems: a screen of text."""

T = TypeVar("T")


def first_problems(problems: Sequence[T]) -> tuple[Sequence[T], int]:
    """The problems that an error lists one by one, and the number of others."""
    rest = len(problems) - _MAX_PROBLEMS
    return (problems, 0) if rest <= 0 else (problems[: _MAX_PROBLEMS - 1], rest + 1)


LIMIT_VARIABLE = "TIDEGATE_LIMIT"
"""Environment variable with a larger limit of files, such as `2GB`; processes that work for a command inherit it."""


class TidegateError(Exception):
    """Base of errors about the input, the environment or a run.

    The text is complete: it states the place, what is wrong there, and what is expected.
    """

    exit_code: ClassVar[int] = 1
    """Exit code of the command line."""


class InputError(TidegateError):
    """A wrong argument, file or setting: nothing was run."""

    exit_code = 2


class ScenarioError(InputError):
    """An invalid scenario; lists all problems at once, or the first of very many."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        """Takes the problems, one line or more each."""
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        listed, rest = first_problems(self.problems)
        super().__init__("\n".join([*listed, *([f"{rest} more problems"] if rest else [])]))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[tuple[str, ...]]]:
        """Pickles the problems."""
        return type(self), (self.problems,)


class TraceError(InputError):
    """A recorded network that cannot be read."""


class ControllerError(InputError):
    """A controller that does not exist, or settings that it refuses."""


class OutputError(TidegateError):
    """A result that cannot be written, or must not replace a file."""


class RunError(TidegateError):
    """A run that could not be finished; `__cause__` holds the exception of a Python controller."""


@contextmanager
def located(where: str) -> Iterator[None]:
    """Puts `where` before the message of an InputError inside.

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


class Refusals:
    """Errors of several inputs, raised together, so that a user can correct all of them at once.

    >>> refusals = Refusals()
    >>> for text in ("1s", "soon", "late"):
    ...     with refusals.of_input():
    ...         if not text.endswith("s"):
    ...             raise InputError(f"{text}: expected a time")
    >>> refusals.raise_all()
    Traceback (most recent call last):
    ...
    tidegate.errors.InputError: soon: expected a time
    late: expected a time
    """

    def __init__(self) -> None:
        """Has no error yet."""
        self._errors: list[InputError] = []

    @contextmanager
    def of_input(self) -> Iterator[None]:
        """Keeps an InputError inside for later."""
        try:
            yield
        except InputError as error:
            self._errors.append(error)

    def raise_all(self) -> None:
        """Raises the error, or one of all of them, if there are any.

        Raises:
            InputError: with the text of each error, or of the first of very many.
        """
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            texts, rest = first_problems(list(dict.fromkeys(map(str, self._errors))))
            raise InputError("\n".join([*texts, *([f"{rest} more problems"] if rest else [])]))


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`; did you mean X?` if a candidate is close to `word`, else an empty text.

    >>> did_you_mean("gccc", ["fixed", "gcc"])
    '; did you mean gcc?'
    >>> did_you_mean("zebra", ["fixed", "gcc"])
    ''
    """
    names = {name.lower(): name for name in candidates}
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"; did you mean {names[close[0]]}?" if close else ""
