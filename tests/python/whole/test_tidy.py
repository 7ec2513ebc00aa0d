"""The tree stays readable: no file grows past its limit, and no word of our own comes back for one that the field has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest

import tidegate
from support import ROOT
from support.tree import texts

LIMIT = 600
"""Lines of a file of source code (CONTRIBUTING.md)."""

LONG = {"python/tidegate/_core.pyi": "the stub of the one extension module"}
"""Files that may be longer, with the reason."""

RETIRED = {
    "agenda": "the wakeup queue",
    "census": "packet accounting",
    "seat": "the host of a controller, or a member of a session",
    "mend": "to repair",
    "fork": "a replicator",
    "settle": "acknowledged, decided, known: whatever is meant",
}
"""Words of a private dialect, and the field's words."""

STAYS = {
    "tests/python/whole/test_tidy.py": dict.fromkeys(RETIRED, "this list"),
    "crates/python/src/gym.rs": {"fork": "of a process"},
    "fuzz/": {"fork": "of a process"},
    "python/tidegate/runs/pool.py": {"fork": "of a process"},
    "python/tidegate/shell/sessions.py": {"fork": "an option of unshare(1)"},
    "tests/python/gym/test_gym.py": {"fork": "of a process"},
    "tests/python/shell/test_shell_live.py": {"fork": "of a process"},
    "python/tidegate/papers/": {"settle": "into a steady state"},
    "tests/python/papers/test_hermanns2013.py": {"settle": "into a steady state"},
    "tests/python/papers/test_hoang2017.py": {"settle": "into a steady state"},
}
"""Where one may stay, with its meaning there."""

RETIRED_TYPES = {
    "Agenda": "WakeupQueue",
    "Census": "PacketAccount",
    "Excess": "OverloadLoss",
    "Experiment": "Scenario as data, Run while it goes; a paper's code alone is an experiment",
    "Fork": "Replicator",
    "Seat": "ControllerHost",
    "Wire": "Medium",
}
"""Names that no type of the Rust crates has any more, and what it is called."""

CODE = {".rs", ".py", ".pyi"}
TEXT = CODE | {".md", ".toml"}


def words(text: str) -> Iterator[str]:
    """The words of prose and of identifiers: `ReceiverSeat`, `mend_expiry` and `SEATS` have several or one."""
    for found in re.finditer(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text):
        yield found[0].lower()


def forms(word: str) -> set[str]:
    stem = word.removesuffix("e")
    return {word, f"{word}s", f"{stem}ed", f"{stem}ing"}


FORM_OF = {form: word for word in RETIRED for form in forms(word)}


def may_stay(file: str, word: str) -> bool:
    return any(file.startswith(place) and word in kept for place, kept in STAYS.items())


def test_no_file_is_longer_than_the_limit() -> None:
    lines = {file: text.count("\n") for file, text in texts(CODE)}
    assert len(lines) > 400, "the files are found"
    assert {file: n for file, n in lines.items() if n > LIMIT and file not in LONG} == {}
    assert all(lines[file] > LIMIT for file in LONG), "an exception that is none any more goes"


def test_no_retired_word_comes_back() -> None:
    found: dict[str, list[str]] = {}
    for file, text in texts(TEXT):
        for number, line in enumerate([file, *text.splitlines()]):
            for word in {FORM_OF[one] for one in words(line) if one in FORM_OF}:
                if not may_stay(file, word):
                    found.setdefault(f"{word}: {RETIRED[word]}", []).append(f"{file}:{number}")
    assert found == {}


def test_no_retired_type_comes_back() -> None:
    declared = re.compile(rf"\b(?:struct|enum|trait|type) ({'|'.join(RETIRED_TYPES)})\b")
    found = {f"{file}: {one[1]}" for file, text in texts({".rs"}) for one in declared.finditer(text)}
    assert found == set()
    assert declared.search("pub struct Seat {")
    assert not declared.search("pub struct SeatBelt {")


def test_no_merge_was_left_half_done() -> None:
    mark = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)
    assert [file for file, text in texts(TEXT) if mark.search(text)] == []
    assert mark.search("a\n" + "=" * 7 + "\nb")


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [tidegate.__version__]


def test_every_exception_is_needed() -> None:
    by_file = dict(texts(TEXT))
    for place, kept in STAYS.items():
        files = [text for file, text in by_file.items() if file.startswith(place)]
        for word in kept:
            assert any(FORM_OF.get(one) == word for text in files for one in words(text)), (place, word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ReceiverSeat", {"seat"}),
        ("let mend_expiry = 1;", {"mend"}),
        ("SETTLED", {"settle"}),
        ("forked, settling", {"fork", "settle"}),
        ("amend, recommend, seating-plan, workforce", {"seat"}),
        ("the agendas", {"agenda"}),
    ],
)
def test_words_are_found_in_identifiers_and_prose(text: str, expected: set[str]) -> None:
    assert {FORM_OF[word] for word in words(text) if word in FORM_OF} == expected


def test_each_file_of_rust_tests_belongs_to_a_program() -> None:
    """A file that no program names would never run, and nothing would say so."""
    lost = []
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        package = tomllib.loads(manifest.read_text("utf-8"))
        if package["package"].get("autotests", True):
            continue
        folder = manifest.parent / "tests"
        roots = {manifest.parent / program["path"] for program in package["test"]}
        named = {name for root in roots for name in re.findall(r"^mod (\w+);", root.read_text("utf-8"), re.MULTILINE)}
        lost += [str(file) for file in folder.glob("*.rs") if file not in roots and file.stem not in named]
        lost += [str(file) for file in folder.glob("*/main.rs") if file not in roots]
    assert lost == []
