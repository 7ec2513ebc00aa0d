"""What can be said of a Python module from its text alone: nothing here imports or runs what it looks at."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from tidegate.errors import ControllerError, did_you_mean


def file_of(module: str) -> Path | None:
    """The file of a module that could be imported, looked for without importing the packages that it is in.

    Returns:
        None for one that has no text: a built-in one, or one in another language.

    Raises:
        ControllerError: when there is none of that name.
    """
    name, *rest = module.split(".")
    try:
        # of a name without a dot, this imports nothing
        spec = find_spec(name)
        for part in rest:
            name = f"{name}.{part}"
            spec = spec and PathFinder.find_spec(name, list(spec.submodule_search_locations or ()))
    except (ValueError, KeyError):
        return None  # the present program; a folder without __init__.py inside another one
    if spec is None:
        raise ControllerError(f"{module}: cannot be imported: No module named {name!r}")
    return Path(spec.origin) if spec.origin is not None and spec.origin.endswith(".py") else None


def no_class(shown: str, name: str, known: Iterable[str]) -> ControllerError:
    """The error for a module without a class of this name; `known` are those that it has."""
    return ControllerError(f"{shown}: there is no class {name} in it{did_you_mean(name, known)}")


def names(file: Path | None, shown: str) -> list[str] | None:
    """What a module's text gives a name to at its top level.

    Returns:
        None where only running it can tell: no text, `from x import *`, or names that are made up on demand.

    Raises:
        ControllerError: when it cannot be read, or is not Python.
    """
    if file is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read_bytes())
    except OSError as error:
        raise ControllerError(f"{shown}: cannot be read: {error.strerror}") from None
    except SyntaxError as error:
        place = f" (line {error.lineno})" if error.lineno else ""
        raise ControllerError(f"{shown}: cannot be imported: {type(error).__name__}: {error.msg}{place}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ControllerError(f"{shown}: cannot be imported: {type(error).__name__}: {error}") from None
    found = [name for statement in tree.body for name in _named(statement)]
    return None if "*" in found or "__getattr__" in found else found


def _named(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case _:
            # an assignment, or a block of statements such as `if` and `try`
            for node in ast.iter_child_nodes(statement):
                if isinstance(node, ast.stmt):
                    yield from _named(node)
                elif isinstance(node, ast.ExceptHandler | ast.match_case):
                    yield from (name for inner in node.body for name in _named(inner))
                else:
                    yield from (
                        one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
                    )
