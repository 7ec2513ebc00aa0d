"""Contenders of comparisons and suites: controllers by name or as classes, with or without settings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, overload

from tidegate.control import classes, learned
from tidegate.errors import ControllerError, InputError
from tidegate.units import show

Scalar = bool | int | float | str
"""Types of a controller's setting."""

Contender = str | type[Any] | tuple[str | type[Any], Mapping[str, Scalar]]
"""A name with its parts, or a class; alone, or in a pair with settings."""
_HERE = "/./"
"""Mark in a controller's path between the folder of the command and the file as typed; it does not change the path."""


def written(contender: object) -> str | dict[str, Scalar]:
    """A contender in the form that scenarios take: text, or a table where it has settings of its own.

    Raises:
        InputError: says what was found, and what is expected.

    >>> written(("gcc", {"beta": 0.8}))
    {'name': 'gcc', 'beta': 0.8}
    """
    match contender:
        case str():
            return contender
        case type():
            return classes.name_of(contender)
        case (str() | type() as base, Mapping() as settings):
            for key, value in settings.items():
                if not isinstance(key, str) or not isinstance(value, Scalar):
                    right = "expected a number, text, True or False"
                    raise ControllerError(f"{table_label(base)}: {key}: found {show(repr(value))}; {right}")
                if key in {"name", "preset"}:
                    raise ControllerError(
                        f"{table_label(base)}: {key}: is reserved for scenarios; give the setting another name"
                    )
            return {"name": str(written(base)), **settings}
    right = 'expected a name such as "gcc", a class, or one of them with settings: (Mine, {"k": 2})'
    if callable(getattr(type(contender), "on_report", None)):
        name = type(contender).__name__
        right = f'expected the class itself, {name}, or with settings: ({name}, {{"k": 2}})'
        raise ControllerError(f"controllers: found an instance of {name}; {right}")
    raise ControllerError(f"controllers: found {show(repr(contender))}; {right}")


def bare(name: str) -> bool:
    """Whether a controller's name has no preset and no settings behind it.

    >>> [bare(name) for name in ("gcc", "gcc:draft-02", "onnx:mine.onnx", "python:mine.py:Mine")]
    [True, False, True, True]
    """
    kind = name.partition(":")[0]
    return name.count(":") < (3 if kind == "python" else 2 if kind in learned.KINDS else 1)


def table_label(contender: Contender) -> str:
    """The label of a contender in tables; a class has its bare name.

    >>> table_label(("gcc", {"beta": 0.8}))
    'gcc:beta=0.8'
    """
    if isinstance(contender, tuple):
        parts = ",".join(f"{key}={value}" for key, value in contender[1].items())
        name = table_label(contender[0])
        return f"{name}{':' if bare(name) else ','}{parts}" if parts else name
    return contender.__name__ if isinstance(contender, type) else contender


def contenders(chosen: object) -> dict[str, str | dict[str, Scalar]]:
    """The contenders as scenarios name them, by the labels that tables give them; classes of one name have numbers.

    Raises:
        InputError: when one of them is no controller or is named twice, or the list is empty.
    """
    if isinstance(chosen, str | type) or not isinstance(chosen, Iterable):
        only = (
            chosen.__name__ if isinstance(chosen, type) else show(chosen if isinstance(chosen, str) else repr(chosen))
        )
        raise InputError(f"controllers: found {only}; expected a list, such as [{only}]")
    by_label: dict[str, str | dict[str, Scalar]] = {}
    for contender in chosen:
        name = written(contender)
        label = table_label(contender)
        if name in by_label.values():
            raise InputError(f"{label}: the contender is listed twice")
        numbered = (label if number == 1 else f"{label}@{number}" for number in itertools.count(1))
        by_label[next(candidate for candidate in numbered if candidate not in by_label)] = name
    if not by_label:
        raise InputError("name at least one controller, for example gcc")
    return by_label


@overload
def anchored(controller: str) -> str: ...
@overload
def anchored(controller: Contender | Mapping[str, Any]) -> str | dict[str, Any]: ...
def anchored(controller: Contender | Mapping[str, Any]) -> str | dict[str, Any]:
    """A controller as scenarios name it; a file relative to the current folder gets its absolute path."""
    if isinstance(controller, Mapping):
        return {**controller, "name": anchored(str(controller.get("name", "")))}
    if not isinstance(controller, str):
        return anchored(written(controller))
    match = re.fullmatch(r"(python):([^:]+\.py)(:.*)|(onnx|alphartc):([^:]+)(:.*)?", controller)
    if match is None:
        return controller
    kind, file, rest = match.groups()[:3] if match[1] else match.groups()[3:]
    return f"{kind}:{file if Path(file).is_absolute() else f'{Path.cwd()}{_HERE}{file}'}{rest or ''}"


def as_typed(text: str) -> str:
    """A text that names controllers with these as typed: without the folders that [anchored][] added.

    >>> as_typed("python:/home/me/./mine.py:Mine"), as_typed("python:/lib/mine.py:Mine"), as_typed("gcc")
    ('python:mine.py:Mine', 'python:/lib/mine.py:Mine', 'gcc')
    """
    return re.sub(rf"\b(python|onnx|alphartc):/[^:\n]*?{re.escape(_HERE)}", r"\1:", text)
