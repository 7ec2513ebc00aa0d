"""Whoever takes part in comparisons and suites: controllers by name, or as classes, with settings or without."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.control import classes, learned
from tidegate.errors import ControllerError, InputError
from tidegate.units import show

Scalar = bool | int | float | str
"""What a controller's setting may be."""

Contender = str | type[Any] | tuple[str | type[Any], Mapping[str, Scalar]]
"""A name with its parts, a class, or one of them with settings."""


def written(what: object) -> str | dict[str, Scalar]:
    """Whoever takes part as scenarios name it: text, or a table where there are settings of its own.

    Raises:
        InputError: says what it is, and what would be right.

    >>> written(("gcc", {"beta": 0.8}))
    {'name': 'gcc', 'beta': 0.8}
    """
    match what:
        case str():
            return what
        case type():
            return classes.name_of(what)
        case (str() | type() as one, Mapping() as settings):
            for key, value in settings.items():
                if not isinstance(key, str) or not isinstance(value, Scalar):
                    right = "expected a number, text, True or False"
                    raise ControllerError(f"{shown(one)}: {key}: found {show(repr(value))}; {right}")
                if key in {"name", "preset"}:
                    raise ControllerError(f"{shown(one)}: {key}: is a word of scenarios; call the setting otherwise")
            return {"name": str(written(one)), **settings}
    right = 'expected a name such as "gcc", a class, or one of them with settings: (Mine, {"k": 2})'
    if callable(getattr(type(what), "on_report", None)):
        name = type(what).__name__
        right = f'expected the class itself, {name}, or with settings: ({name}, {{"k": 2}})'
        raise ControllerError(f"controllers: found one {name} that is made already; {right}")
    raise ControllerError(f"controllers: found {show(repr(what))}; {right}")


def bare(name: str) -> bool:
    """Whether a controller's name has no preset and no settings behind it.

    >>> [bare(name) for name in ("gcc", "gcc:draft-02", "onnx:mine.onnx", "python:mine.py:Mine")]
    [True, False, True, True]
    """
    kind = name.partition(":")[0]
    return name.count(":") < (3 if kind == "python" else 2 if kind in learned.KINDS else 1)


def shown(what: Contender) -> str:
    """What tables call whoever takes part: a class by its name alone.

    >>> shown(("gcc", {"beta": 0.8}))
    'gcc:beta=0.8'
    """
    if isinstance(what, tuple):
        parts = ",".join(f"{key}={value}" for key, value in what[1].items())
        name = shown(what[0])
        return f"{name}{':' if bare(name) else ','}{parts}" if parts else name
    return what.__name__ if isinstance(what, type) else what


def contenders(what: object) -> dict[str, str | dict[str, Scalar]]:
    """Those who take part by what tables call them, as scenarios name them; classes of one name have numbers.

    Raises:
        InputError: when somebody is none, is named twice, or there is nobody.
    """
    if isinstance(what, str | type) or not isinstance(what, Iterable):
        one = what.__name__ if isinstance(what, type) else show(what if isinstance(what, str) else repr(what))
        raise InputError(f"controllers: found {one}; expected several, such as [{one}]")
    found: dict[str, str | dict[str, Scalar]] = {}
    for one in what:
        name = written(one)
        label = shown(one)
        if name in found.values():
            raise InputError(f"{label}: is named twice")
        free = (label if number == 1 else f"{label}@{number}" for number in itertools.count(1))
        found[next(one for one in free if one not in found)] = name
    if not found:
        raise InputError("name at least one controller, for example gcc")
    return found
