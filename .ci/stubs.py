"""Writes the stub of the extension: what it says of itself, and what `crates/python/beside.pyi` adds.

`maturin generate-stubs` reads signatures and docstrings from the built extension. Here names become those that people
write (`int` for `SupportsIndex`), what every object has is left out, and a member of a class of `beside.pyi` takes the
place of the generated one.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ROOT / "crates" / "python" / "beside.pyi"
NATIVE = {"__eq__", "__hash__", "__ne__", "__reduce__", "__repr__"}
"""Methods that every object has, with these signatures."""
SHORTER = {
    "SupportsFloat | SupportsIndex": "float",
    "SupportsIndex": "int",
    "str | PathLike[str]": "str",
}
"""What people write for what PyO3 takes as an argument."""


class Plain(ast.NodeTransformer):
    """Makes generated nodes what one would write by hand."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.body = [member for member in node.body if getattr(member, "name", "") not in NATIVE]
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        arguments = node.args
        if len(arguments.posonlyargs) == 1:
            arguments.args = arguments.posonlyargs + arguments.args
            arguments.posonlyargs = []
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.kwarg):
            if argument and argument.annotation:
                text = ast.unparse(written(argument.annotation))
                for long, short in SHORTER.items():
                    text = text.replace(long, short)
                text = re.sub(r"SupportsGetItem\[int, ", "Sequence[", text)
                argument.annotation = ast.parse(text, mode="eval").body
        if node.returns:
            node.returns = ast.Name("Self") if node.name == "__new__" else written(node.returns)
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = node.value.value.strip()
        return node


def written(annotation: ast.expr) -> ast.expr:
    """The annotation that is in a string, where it is in one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def inserted(generated: list[ast.stmt], beside: list[ast.stmt]) -> list[ast.stmt]:
    """`generated`, where `beside` has something else by a name with that, and with the docstring where it has none."""
    others: dict[str, list[ast.stmt]] = {}
    for node in beside:
        others.setdefault(getattr(node, "name", ""), []).append(node)
    result: list[ast.stmt] = []
    for node in generated:
        instead = others.pop(getattr(node, "name", ""), None)
        if instead is None:
            result.append(node)
        elif isinstance(node, ast.ClassDef) and isinstance(instead[0], ast.ClassDef):
            node.body = inserted(node.body, instead[0].body)
            result.append(node)
        else:
            if isinstance(instead[0], ast.FunctionDef) and not ast.get_docstring(instead[0]):
                instead[0].body = node.body
            result += instead
    return [*(node for nodes in others.values() for node in nodes), *result]


def merged(generated: ast.Module, beside: ast.Module) -> ast.Module:
    """All of both, with the names of what the extension has."""
    definitions = [node for node in generated.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    definitions = [node for node in definitions if node.name != "__getattr__"]
    doc, *rest = beside.body
    imports = [node for node in rest if isinstance(node, ast.ImportFrom | ast.Import)]
    body = inserted(definitions, [node for node in rest if node not in imports])
    public = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    public |= {node.target.id for node in body if isinstance(node, ast.AnnAssign) and not node.value}
    return ast.Module([doc, *imports, *ast.parse(f"__all__ = {sorted(public)}").body, *body], [])


def main() -> None:
    """Writes what comes of the file that is the first argument into the second."""
    generated = Plain().visit(ast.parse(Path(sys.argv[1]).read_text("utf-8")))
    text = ast.unparse(ast.fix_missing_locations(merged(generated, ast.parse(BESIDE.read_text("utf-8")))))
    Path(sys.argv[2]).write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
