"""Controllers passed as classes: their names, the hash of their code, and whether other processes can import them."""

from __future__ import annotations

import ast
import hashlib
import itertools
import linecache
import pickle
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

_HIDDEN: dict[tuple[str, str], type[Any]] = {}
"""Classes that cannot be looked up in their module: defined in a function, or in a cell that was run again."""


def name_of(made_by: type[Any]) -> str:
    """`python:MODULE:CLASS`: the name of a class in scenarios, by which this process finds it again.

    A class that another one of the same name hides has a number, `python:__main__:Mine@2`.
    """
    where, name = made_by.__module__, made_by.__qualname__
    current = _attribute(where, name)
    if current is made_by:
        return f"python:{where}:{name}"
    for number in itertools.count(1 if current is None else 2):
        numbered = name if number == 1 else f"{name}@{number}"
        if _HIDDEN.setdefault((where, numbered), made_by) is made_by:
            break
    return f"python:{where}:{numbered}"


def class_of(where: str, name: str) -> type[Any] | None:
    """The class that [name_of][tidegate.control.classes.name_of] named, or that a notebook's cells define now."""
    current = _attribute(where, name) if where == "__main__" else None
    return current if isinstance(current, type) else _HIDDEN.get((where, name))


def attribute(module: Any, name: str) -> Any:
    """The attribute of a module under a dotted name; None if there is none."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _attribute(where: str, name: str) -> Any:
    return attribute(sys.modules.get(where), name)


def travels(made_by: type[Any]) -> bool:
    """Whether another process can import it: not from a notebook's cells, nor from inside a function."""
    where = made_by.__module__
    return _attribute(where, made_by.__qualname__) is made_by and _importable(where)


def _importable(where: str) -> bool:
    """Whether import finds a module anew: `__main__` is another one in each process."""
    top = where.partition(".")[0]
    return top != "__main__" and any(finder.find_spec(top, None) is not None for finder in sys.meta_path)


def text_of(made_by: type[Any]) -> str:
    """Source text of the class, or its name where the text cannot be found.

    The standard library finds the text of a function in a cell, and not that of a class.
    """
    code = next(_codes(made_by), None)
    lines = linecache.getlines(code.co_filename) if code is not None else []
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return made_by.__qualname__
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == made_by.__name__ and node.end_lineno is not None:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if code is not None and first <= code.co_firstlineno <= node.end_lineno:
                return "".join(lines[first - 1 : node.end_lineno])
    return made_by.__qualname__


def fingerprint(made_by: type[Any]) -> str:
    """SHA-256 of the code of a class and of the functions, classes and values that it names.

    The text alone would not do: a helper in another cell may change while the class stays as it is.
    """
    hashed = hashlib.sha256()
    for part in _parts(made_by, {}):
        hashed.update(repr(part).encode() + b"\n")
    return hashed.hexdigest()


def _codes(made_by: type[Any]) -> Iterator[CodeType]:
    for value in vars(made_by).values():
        inner = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(inner, FunctionType) and inner.__module__ == made_by.__module__:
            yield inner.__code__


def _parts(value: Any, visited: dict[int, object]) -> Iterator[Any]:
    """Simple values that make up `value`, for a hash of their `repr`.

    A value of another kind is represented by its pickle, and one that cannot be pickled by the name of its type alone.
    `visited` holds the visited objects by id, which keeps them alive: a new object may get the id of a freed one.
    """
    if isinstance(value, bool | int | float | str | bytes | None):
        yield value
        return
    if id(value) in visited:
        return
    visited[id(value)] = value
    if isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, type):
        yield from _class(value, visited)
    elif isinstance(value, FunctionType):
        yield from _function(value, visited)
    elif isinstance(value, staticmethod | classmethod | property):
        for name in ("__func__", "fget", "fset"):
            yield from _parts(getattr(value, name, None), visited)
    else:
        try:
            yield pickle.dumps(value)
        except Exception:  # noqa: BLE001
            yield type(value).__qualname__


def _class(made_by: type[Any], visited: dict[int, object]) -> Iterator[Any]:
    yield made_by.__qualname__
    if travels(made_by):
        return
    for key, member in sorted(vars(made_by).items()):
        if key not in _NOT_HASHED:
            yield key
            yield from _parts(member, visited)
    for base in made_by.__bases__:
        yield from _parts(base, visited)


_NOT_HASHED = frozenset(
    {"__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__static_attributes__"}
)


def _function(function: FunctionType, visited: dict[int, object]) -> Iterator[Any]:
    yield from _code(function.__code__)
    yield from _parts(function.__defaults__, visited)
    yield from _parts(function.__kwdefaults__, visited)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, visited)
        except ValueError:
            yield "empty"
    if not _importable(function.__module__):
        for name in sorted(set(_names(function.__code__))):
            if name in function.__globals__:
                yield name
                yield from _parts(function.__globals__[name], visited)


def _code(code: CodeType) -> Iterator[Any]:
    yield code.co_code
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield constant


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
