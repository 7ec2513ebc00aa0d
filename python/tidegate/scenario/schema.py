"""The JSON Schema of scenario files, for editors that complete and check while one types."""

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
"""The schema as it is shipped."""


def schema() -> dict[str, Any]:
    """As data."""
    made = Scenario.model_json_schema(by_alias=True, mode="validation")
    made.pop("title", None)
    tables = {one.__name__: one for one in _tables(Model)}
    _describe(made, Scenario)
    for name, definition in made["$defs"].items():
        if name in tables:
            _describe(definition, tables[name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tidegate scenario",
        **made,
    }


def text() -> str:
    """As a file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _tables(cls: type[Model]) -> Iterator[type[Model]]:
    for one in cls.__subclasses__():
        yield one
        yield from _tables(one)


def _describe(definition: dict[str, Any], cls: type[Model]) -> None:
    """Puts what is written below each key of a table into the table's schema.

    pydantic would do so (`use_attribute_docstrings`), but whenever a table's class is made: half of the time that it
    takes to begin.
    """
    said = _said(cls)
    for name, field in cls.model_fields.items():
        if name in said and field.description is None:
            node = definition["properties"][field.alias or name]
            node["description"] = said[name]
            definition["properties"][field.alias or name] = dict(sorted(node.items()))


def _said(cls: type) -> dict[str, str]:
    """What is written below each attribute of a class, with those that it inherits."""
    bases, own = _written(cls.__module__).get(cls.__name__, ((), {}))
    here = vars(sys.modules[cls.__module__])
    found: dict[str, str] = {}
    for base in reversed(bases):
        if isinstance(here.get(base), type) and issubclass(here[base], Model):
            found |= _said(here[base])
    return found | own


@cache
def _written(module: str) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """Of each class in a module the names of its bases, and what is written below its attributes."""
    found = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ClassDef):
            said = {}
            for one, below in pairwise(node.body):
                match one, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        said[name] = inspect.cleandoc(text)
            found[node.name] = (tuple(base.id for base in node.bases if isinstance(base, ast.Name)), said)
    return found
