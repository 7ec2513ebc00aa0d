"""JSON Schema of scenario files, for completion and checks in editors."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tidegate.scenario.model import Model
from tidegate.scenario.scenario import Scenario

FILE = Path(__file__).with_name("scenario.schema.json")
"""File of the shipped schema."""


def schema() -> dict[str, Any]:
    """The schema as plain data."""
    definitions = Scenario.model_json_schema(by_alias=True, mode="validation")
    definitions.pop("title", None)
    tables = {table.__name__: table for table in _tables(Model)}
    _describe(definitions, Scenario)
    for name, definition in definitions["$defs"].items():
        if name in tables:
            _describe(definition, tables[name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tidegate scenario",
        **definitions,
    }


def text() -> str:
    """The schema as the text of a file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _tables(cls: type[Model]) -> Iterator[type[Model]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _tables(subclass)


def _describe(definition: dict[str, Any], cls: type[Model]) -> None:
    """Puts the docstring of each key of a table into the table's schema.

    pydantic can do so (`use_attribute_docstrings`), but does it whenever a table's class is created, which takes half
    of the start-up time.
    """
    descriptions = _descriptions(cls)
    for name, field in cls.model_fields.items():
        if name in descriptions and field.description is None:
            node = definition["properties"][field.alias or name]
            node["description"] = descriptions[name]
            definition["properties"][field.alias or name] = dict(sorted(node.items()))


def _descriptions(cls: type) -> dict[str, str]:
    """Docstrings of a class's attributes by name, inherited ones included."""
    bases, direct = _documented_classes(cls.__module__).get(cls.__name__, ((), {}))
    namespace = vars(sys.modules[cls.__module__])
    descriptions: dict[str, str] = {}
    for base in reversed(bases):
        if isinstance(namespace.get(base), type) and issubclass(namespace[base], Model):
            descriptions |= _descriptions(namespace[base])
    return descriptions | direct


@cache
def _documented_classes(module: str) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """Names of bases and docstrings of attributes of each class in a module, by the class's name."""
    classes = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ClassDef):
            descriptions = {}
            for statement, following in pairwise(node.body):
                match statement, following:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        descriptions[name] = inspect.cleandoc(text)
            classes[node.name] = (tuple(base.id for base in node.bases if isinstance(base, ast.Name)), descriptions)
    return classes
