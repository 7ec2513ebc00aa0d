"""Imports inside the Python package point down: by the table of docs/DESIGN.md, and without circles of modules."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tidegate
from support import ROOT

PACKAGE = ROOT / "python" / "tidegate"


def order() -> dict[str, int]:
    """The row of the table for each module and package."""
    text = (ROOT / "docs" / "DESIGN.md").read_text(encoding="utf-8")
    table = text.partition("| in `python/tidegate` |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name: number for number, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}


def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def statements(node: ast.AST, *, types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports anywhere in a module; those that only a type checker sees where `types` says so."""
    unseen = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.If) and unseen and not types:
        for child in node.orelse:
            yield from statements(child, types=types)
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for part in ast.iter_child_nodes(node):
        yield from statements(part, types=types)


def imported(source: str, *, types: bool = False) -> set[str]:
    """The modules of tidegate that a module's text imports."""
    found = set()
    for one in statements(ast.parse(source), types=types):
        if isinstance(one, ast.Import):
            found |= {alias.name for alias in one.names}
        elif one.module is not None:
            assert one.level == 0, "imports are written out"
            # a module of a package, or a name in one
            names = {alias.name: f"{one.module}.{alias.name}" for alias in one.names}
            found |= {full if full in MODULES or full == "tidegate._core" else one.module for full in names.values()}
    return {name for name in found if name.partition(".")[0] == "tidegate"}


def layer(name: str) -> str:
    """The package or module at the top of tidegate that a module belongs to."""
    return name.split(".")[1] if "." in name else name


def above(name: str, other: str, rows: dict[str, int]) -> str | None:
    """What is wrong with an import of `other` by the module `name`, if anything is."""
    mine = layer(name)
    if layer(other) == mine:
        return None
    if other == "tidegate":
        whole = f"{name} imports a public name from tidegate, which imports everything"
        return None if mine in {"papers", "cli"} else whole
    return None if rows[layer(other)] < rows[mine] else f"{name} imports {other}, which stands above it"


def test_a_private_module_is_imported_by_its_own_package_alone() -> None:
    wrong = [
        f"{name} imports {other}"
        for name, file in sorted(MODULES.items())
        for other in sorted(imported(file.read_text(encoding="utf-8")))
        if any(part.startswith("_") for part in other.split(".")[2:]) and layer(other) != layer(name)
    ]
    assert wrong == []


def test_modules_import_only_what_stands_below_them() -> None:
    """For type checkers, too: a reader of a package needs only those below it."""
    rows = order()
    wrong = [
        problem
        for name in sorted(set(MODULES) - {"tidegate"})
        for other in sorted(imported(MODULES[name].read_text(encoding="utf-8"), types=True))
        if (problem := above(name, other, rows))
    ]
    assert wrong == []


def test_an_import_that_points_up_is_named() -> None:
    rows = {"units": 0, "scenario": 1, "cli": 2}
    assert (
        above("tidegate.units", "tidegate.scenario", rows)
        == "tidegate.units imports tidegate.scenario, which stands above it"
    )
    assert above("tidegate.scenario.links", "tidegate.units", rows) is None
    assert above("tidegate.cli.runs", "tidegate", rows) is None
    assert above("tidegate.units", "tidegate", rows) is not None


FORMS = {f"tidegate.output.{form}" for form in ("html", "svg", "markup", "markdown", "terminal")}
"""What makes HTML, Markdown or a terminal's text of documents."""
MAY = {"cli": {"tidegate.output.terminal"}, "tidegate.show.report": {"tidegate.output.html"}}
"""Which of them a package or a module may import."""


def forms(source: str, name: str) -> set[str]:
    """The forms that a module's text imports and has no business with, and rich."""
    rich = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in statements(ast.parse(source), types=True)
        for alias in node.names
    }
    may = MAY.get(name, set()) | MAY.get(layer(name), set())
    return (imported(source) & FORMS) - may | {other for other in rich if other.partition(".")[0] == "rich"}


def test_no_package_of_a_verb_imports_html_markdown_or_rich() -> None:
    wrong = {
        name: found
        for name, file in sorted(MODULES.items())
        if layer(name) != "output" and (found := forms(file.read_text(encoding="utf-8"), name))
    }
    assert wrong == {}


def test_a_form_where_it_has_no_business_is_named() -> None:
    source = "def work():\n    from tidegate.output import html\n    from rich.table import Table\n    import rich\n"
    assert forms(source, "tidegate.gate.checking") == {"tidegate.output.html", "rich.table", "rich"}
    assert forms("from tidegate.output.terminal import show", "tidegate.gate") == {"tidegate.output.terminal"}
    assert forms("from tidegate.output.terminal import show", "tidegate.cli.gates") == set()
    assert forms("from tidegate.output.html import page", "tidegate.show.report") == set()
    assert forms("from tidegate.output.html import page", "tidegate.show.report._runs") == {"tidegate.output.html"}
    assert forms("from tidegate.output.document import Table", "tidegate.gate.document") == set()


def test_no_module_hides_a_public_name() -> None:
    """Once every module is imported, each name of `tidegate.__all__` is what it was."""
    public = {name: getattr(tidegate, name) for name in tidegate.__all__}
    for name in MODULES:
        if not name.endswith("__main__") and "papers." not in name:
            importlib.import_module(name)
    assert {name: getattr(tidegate, name) for name in tidegate.__all__} == public


def test_the_table_has_all_that_there_is_and_no_more() -> None:
    there = {layer(name) for name in MODULES} - {"tidegate"}
    assert set(order()) == there | {"_core"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: imported(file.read_text(encoding="utf-8")) - {name} for name, file in MODULES.items()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not() -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from tidegate.cli import inspection
else:
    import tidegate.units
def work():
    from tidegate import _core
    from tidegate.media import judge
    from tidegate.errors import InputError
"""
    # tidegate.media gives a function of the name of its module, and the module is what is counted
    assert imported(source) == {"tidegate.units", "tidegate._core", "tidegate.media.judge", "tidegate.errors"}
