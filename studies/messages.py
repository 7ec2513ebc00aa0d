"""Lists every text that a user can see, in source order: errors, warnings, notes, labels, help, definitions.

A text is a string with a space or a capital in it that is no docstring and no assertion. Values that are put in stand as
`{name}`. Tests and their modules are left out. For a reading in a row; the last line counts.

Example: python studies/messages.py python/tidegate/suite
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SENTENCE = re.compile(r"[A-Za-z]{2,}.*\s.*[A-Za-z]{2,}", re.DOTALL)
"""Two words at least: keys, formats and names of columns have one."""
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
TOML_KEYS = {"label", "definition", "help", "about", "text", "title", "describes", "shows", "claim", "why", "note"}
"""Keys of our own TOML files whose values are printed."""


def python(text: str) -> Iterator[tuple[int, str]]:
    """Texts of a Python file: strings and f-strings, adjacent ones joined, without docstrings and assertions."""
    tree = ast.parse(text)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert | ast.AnnAssign | ast.arg):
            hidden = [node] if isinstance(node, ast.Assert) else [node.annotation] if node.annotation else []
            skipped.update(child for part in hidden for child in ast.walk(part))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped.update(child for child in ast.walk(node) if child is not node and isinstance(child, ast.Constant))
    for node in ast.walk(tree):
        if node in skipped or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(
                    part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"  # type: ignore[misc, attr-defined]
                    for part in node.values
                ),
            )
        elif isinstance(node.value, str):
            yield node.lineno, node.value


def rust(text: str) -> Iterator[tuple[int, str]]:
    """Texts of a Rust file: strings outside of comments, attributes, assertions and the module of tests."""
    text = re.split(r"#\[cfg\((?:all\()?test", text)[0]
    bare = re.sub(r"^\s*//[^\n]*|^\s*#!?\[[^\n]*|\b(?:debug_)?assert\w*!\([^;]*;", _blank, text, flags=re.MULTILINE)
    for match in STRING.finditer(bare):
        yield bare.count("\n", 0, match.start()) + 1, re.sub(r"\\\n\s*", "", match[1]).replace('\\"', '"')


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def toml(text: str) -> Iterator[tuple[int, str]]:
    """Texts of a TOML file: the values of keys that are printed, each with the line where it begins."""

    def walk(value: Any, key: str = "") -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from walk(inner, name)
        elif isinstance(value, list):
            for inner in value:
                yield from walk(inner, key)
        elif isinstance(value, str) and key in TOML_KEYS:
            yield value

    for value in walk(tomllib.loads(text)):
        place = text.find(value[:20])
        yield text.count("\n", 0, max(place, 0)) + 1, value


READERS = {".py": python, ".rs": rust, ".toml": toml}


def texts(folders: list[str]) -> Iterator[tuple[str, int, str]]:
    """File, line and text of each message below the folders."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in listed.splitlines():
        if file.startswith("crates/") and ("/src/" not in file or file.endswith("tests.rs")):
            continue
        if reader := READERS.get(Path(file).suffix):
            for line, text in sorted(reader((ROOT / file).read_text("utf-8"))):
                if SENTENCE.search(text):
                    yield file, line, " ".join(text.split())


def main() -> None:
    """Prints them, a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="*", default=["crates", "python/tidegate"], help="folders with the texts (%(default)s)"
    )
    listed = list(texts(parser.parse_args().folders))
    for file, line, text in listed:
        print(f"{file}:{line}  {text}")
    print(f"{len(listed)} texts", file=sys.stderr)


if __name__ == "__main__":
    main()
