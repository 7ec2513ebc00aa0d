"""The stub of the extension: it says what the extension says of itself, and of every value what it is.

`make test-python` also writes it again and compares.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from support import ROOT
from tidegate import _core

STUB = ast.parse((ROOT / "python" / "tidegate" / "_core.pyi").read_text("utf-8"))


def definitions(body: list[ast.stmt], owner: object) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef, object]]:
    """Each class and function with the object of its name; of a property that can be set, what reads it."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            actual = inspect.getattr_static(owner, node.name)
            actual = getattr(actual, "__func__", actual)  # of a static method
            yield node.name, node, actual
            if isinstance(node, ast.ClassDef):
                for name, member, object_ in definitions(node.body, actual):
                    yield f"{node.name}.{name}", member, object_


def test_docstrings_are_those_of_the_extension() -> None:
    stale = [
        name
        for name, node, actual in definitions(STUB.body, _core)
        if (written := ast.get_docstring(node)) is not None
        and name.split(".")[-1] not in {"__new__", "__getitem__"}  # Python tells those of a slot itself
        and written != inspect.cleandoc(getattr(actual, "__doc__", None) or "").strip()
    ]
    assert not stale, "make stubs"


def test_every_value_has_a_type() -> None:
    vague = {"Incomplete", "dict", "list", "tuple"}
    for name, node, _ in definitions(STUB.body, _core):
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.kwarg]
            annotations = [
                argument.annotation for argument in arguments if argument and argument.arg not in {"self", "cls"}
            ]
            assert all((*annotations, node.returns)), name
            written = {ast.unparse(annotation) for annotation in (*annotations, node.returns) if annotation}
            assert not written & vague, name
