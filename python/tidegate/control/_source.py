"""Facts about a Python module from its text alone: it is neither imported nor run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from tidegate._inputs import CODE
from tidegate._inputs import read as read_input
from tidegate.errors import ControllerError, did_you_mean


def file_of(module: str) -> Path | None:
    """The file of a module that could be imported; the packages around it are not imported for that.

    Returns:
        None for a module without Python text: a built-in one, or one in another language.

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


def no_class(label: str, name: str, class_names: Iterable[str]) -> ControllerError:
    """The error for a module without a class of this name; `class_names` are those that it has."""
    return ControllerError(f"{label}: the module has no class {name}{did_you_mean(name, class_names)}")


def names(file: Path | None, label: str) -> list[str] | None:
    """Names that a module's text binds at its top level.

    Returns:
        None where only running it can tell: there is no text, or it has `from x import *` or `__getattr__`.

    Raises:
        ControllerError: when it cannot be read, or is not Python.
    """
    if file is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(read_input(file, CODE, ControllerError).data)
    except SyntaxError as error:
        position = f" (line {error.lineno})" if error.lineno else ""
        raise ControllerError(f"{label}: cannot be imported: {type(error).__name__}: {error.msg}{position}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ControllerError(f"{label}: cannot be imported: {type(error).__name__}: {error}") from None
    bound = [name for statement in tree.body for name in _bound_names(statement)]
    return None if "*" in bound or "__getattr__" in bound else bound


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case _:
            # an assignment, or a block of statements such as `if` and `try`
            for node in ast.iter_child_nodes(statement):
                if isinstance(node, ast.stmt):
                    yield from _bound_names(node)
                elif isinstance(node, ast.ExceptHandler | ast.match_case):
                    yield from (name for inner in node.body for name in _bound_names(inner))
                else:
                    yield from (
                        target.id
                        for target in ast.walk(node)
                        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
                    )
