"""Plain words: names and first lines say which thing they mean. CONTRIBUTING.md has the rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from support.tree import texts

VAGUE = {"found", "known", "made", "one", "said", "shown", "told", "what", "who", "whose"}
"""Names that hold anything: a variable or an argument is called by the thing that it holds."""
VAGUE_TYPES = re.compile(r"\b(?:struct|enum|trait|type|class) (Answer|Asked|One|Rules|Said|Seen|Told|What)\b")
PUBLIC = {
    "python/tidegate/paper/claims.py": {"what": "a key of paper.toml"},
    "python/tidegate/results/quality.py": {"found": "an argument of a public function"},
    "python/tidegate/scenario/scenario.py": {"what": "an argument of `Scenario.load`"},
    "python/tidegate/suite/suite.py": {"what": "an argument of `Suite.load`"},
}
"""Vague names that users have in their code and files, with the reason why they stay."""
QUESTION = re.compile(r"(What|Who|Whose|Whom|Whoever|Whatever|Where|How|Which|That|Because)\b")
"""First words that make a reader wait for the subject. A predicate may begin with "Whether"."""
PEOPLE = re.compile(r"\b(whoever|nobody|somebody|everybody|anybody|whom)\b", re.IGNORECASE)
"""Words for people, which packets and flows are not."""
OF_PEOPLE: dict[str, str] = {
    "tests/python/whole/test_words.py": "this list",
    "crates/sim/tests/lte.rs": "walking users, some of whom leave",
}
"""Files where these words are about people, with the reason."""


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names of variables and arguments, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id.strip("_")
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg.strip("_")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """First lines of docstrings, with the lines of what they describe."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if text := ast.get_docstring(node):
            yield getattr(node, "lineno", 1), text.split("\n")[0]


def doc_comments(text: str) -> Iterator[tuple[int, str]]:
    """First lines of Rust's doc comments, with their lines."""
    for match in re.finditer(r"(?:^|\n)[ \t]*(?:[^/\s][^\n]*)?\n[ \t]*/// (\S[^\n]*)", text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def test_no_name_is_vague() -> None:
    names = [
        f"{file}:{line}: {name}"
        for file, text in texts({".py"})
        if file.startswith("python/tidegate/")
        for line, name in bound_names(ast.parse(text))
        if name in VAGUE and name not in PUBLIC.get(file, ())
    ]
    types = [
        f"{file}: {match[1]}"
        for file, text in texts({".rs", ".py"})
        if not file.startswith("tests/python/whole/test_words")
        for match in VAGUE_TYPES.finditer(text)
    ]
    assert names + types == []


@pytest.mark.parametrize(("kind", "folder"), [(".py", "python/tidegate/"), (".rs", "crates/")])
def test_first_lines_ask_nothing(kind: str, folder: str) -> None:
    questions = [
        f"{file}:{line}: {first}"
        for file, text in texts({kind})
        if file.startswith(folder)
        for line, first in (docstrings(ast.parse(text)) if kind == ".py" else doc_comments(text))
        if QUESTION.match(first)
    ]
    assert questions == []


def test_words_for_people_are_of_people() -> None:
    places = [
        f"{file}:{number}: {line.strip()}"
        for file, text in texts({".rs", ".py", ".pyi"})
        if file not in OF_PEOPLE
        for number, line in enumerate(text.splitlines(), start=1)
        if PEOPLE.search(line)
    ]
    assert places == []
    by_file = dict(texts({".rs", ".py", ".pyi"}))
    assert all(PEOPLE.search(by_file[file]) for file in OF_PEOPLE), "an exception that is none any more goes"


def test_the_rules_see_what_they_forbid() -> None:
    tree = ast.parse('"""What it is."""\ndef f(told, /, *, x=1):\n    """Where it is."""\n    for _found in x: pass\n')
    assert [name for _, name in bound_names(tree)] == ["told", "x", "found"]
    assert [text for _, text in docstrings(tree)] == ["What it is.", "Where it is."]
    assert list(doc_comments("\nfn a() {}\n\n    /// How it is.\n    /// Second line.\n    b: u8,\n")) == [
        (4, "How it is.")
    ]
    assert VAGUE_TYPES.search("pub struct Told {")
    assert not VAGUE_TYPES.search("struct SaidAgain;")
