"""Links of the documentation: files and headings that exist, in a clone and on GitHub."""

from __future__ import annotations

import pkgutil
import re
import subprocess
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import pytest

from support import ROOT, example


def kept() -> set[Path]:
    """The files of the repository, and their folders: what a clone has."""
    got = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip("no git here: which files are kept is not known")
    files = {(ROOT / name).resolve() for name in got.stdout.split("\0") if name}
    return files | {folder for file in files for folder in file.parents}


def pages() -> list[Path]:
    """Every page of Markdown that is kept."""
    return sorted(file for file in kept() if file.suffix == ".md")


def prose(text: str) -> str:
    """Without code, in which brackets are no links."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


def anchors(text: str) -> set[str]:
    """Anchors of headings.

    GitHub makes them of the text: lower case, no punctuation, a hyphen for each space. A heading of a decision begins with
    one of its own, `<a id="d12"></a>`, for GitHub and the site alike.
    """
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", "", text, flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for explicit, heading in re.findall(r'^#+ +(?:<a id="([\w-]+)"></a>)?(.*?) *#*$', text, re.MULTILINE):
        if explicit:
            found.add(explicit)
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        own = base = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while own in found:
            number += 1
            own = f"{base}-{number}"
        found.add(own)
    return found


def dead(page: Path, there: Callable[[Path], bool] = Path.exists) -> list[str]:
    """Relative links of a page that lead nowhere."""
    text = prose(page.read_text("utf-8"))
    links = re.findall(r"\]\(<?([^)\s>]+)", text) + re.findall(r"^\[[^\]]+\]: +(\S+)", text, re.MULTILINE)
    found = []
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (page.parent / name).resolve() if name else page
        if not there(target):
            found.append(f"{link}: there is no such file")
        elif anchor and anchor not in anchors(target.read_text("utf-8")):
            found.append(f"{link}: {target.name} has no such heading")
    return found


def test_links_lead_to_files_and_headings_that_are_kept() -> None:
    every, files = pages(), kept()
    assert {ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "DESIGN.md"} <= set(every)
    assert {page.name: wrong for page in every if (wrong := dead(page, files.__contains__))} == {}


def test_pages_have_nothing_that_only_the_site_understands() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        found = re.findall(r"^(?:===|!!!|\?\?\?) .*|.*--8<--.*", page.read_text("utf-8"), re.MULTILINE)
        assert found == [], page.name


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text('# One & two: `three`\n\n## Again\n\n## Again\n\n## <a id="d7"></a>D7: Title\n')
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[a](other.md#one--two-three) [b](other.md#again-1) [c](#top) [d](https://example.org/x)\n"
        "`[e](f.md)`\n```\n[g](h.md)\n```\n[i](gone.md) [j](other.md#again-2) ![k](gone.png)\n"
        "[l](other.md#d7) [m](other.md#d7-title) [n](other.md#d8)\n"
    )
    assert dead(page) == [
        "gone.md: there is no such file",
        "other.md#again-2: other.md has no such heading",
        "gone.png: there is no such file",
        "other.md#d8: other.md has no such heading",
    ]


#: What a page calls by its path from the top of the repository.
NAMED = re.compile(r"`((?:benches|crates|docs|fuzz|papers|python|scenarios|tests|\.ci)/[\w./-]+)`")


def test_files_that_pages_name_are_there() -> None:
    missing = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages()
        for name in NAMED.findall(page.read_text("utf-8"))
        if "KEY" not in name and not (ROOT / name).exists()
    }
    assert missing == set()


IMPORT = re.compile(r"\bfrom (tidegate[\w.]*) import ([\w ,]*)|\bimport (tidegate(?:\.\w+)+)")
DOTTED = re.compile(r"(?<![\w/.])tidegate(?:\.[A-Za-z_]\w*)+")
METADATA = {"tidegate.observation", "tidegate.start", "tidegate.terms"}
"""Keys of an ONNX model's metadata, and no names of Python's."""


def imports(module: str, names: str) -> None:
    """Imports names from a module; private ones are for type checkers to find."""
    package = import_module(module)
    for name in [part.split()[0] for part in names.split(",") if part.strip()]:
        if not name.startswith("_") and not hasattr(package, name):
            import_module(f"{module}.{name}")


def works(use: Callable[[], object]) -> bool:
    try:
        use()
    except AttributeError:
        return False
    except ImportError as error:  # all is well where only an extra is not installed
        return not (error.name or "").startswith("tidegate")
    return True


def unresolved(text: str) -> list[str]:
    """Names of the package that a text uses and Python does not find: in imports, and dotted ones anywhere."""
    uses: dict[str, Callable[[], object]] = {
        match[0].strip(): partial(imports, match[1] or match[3], match[2] or "") for match in IMPORT.finditer(text)
    }
    for name in DOTTED.findall(IMPORT.sub("", text)):
        if "._" not in name and name not in METADATA:
            uses[name] = partial(pkgutil.resolve_name, name)
    return [name for name, use in uses.items() if not works(use)]


def test_names_of_the_package_that_a_text_uses_are_there() -> None:
    """Pages, notebooks, examples and docstrings: whatever type checkers and doctests do not read."""
    texts = [file for file in kept() if file.suffix in {".md", ".ipynb", ".py", ".rs"}]
    tests = ROOT / "tests"
    assert {
        str(file.relative_to(ROOT)): problems
        for file in texts
        if tests not in file.parents and (problems := unresolved(file.read_text("utf-8")))
    } == {}


def test_names_that_are_not_there_are_found() -> None:
    assert unresolved("`tidegate.plot.sweep`, tidegate.rooms(3), tidegate.show.plot.nothing") == [
        "tidegate.rooms",
        "tidegate.show.plot.nothing",
    ]
    # an attribute of the package, and no module of that name
    assert unresolved('"from tidegate.plot import sweep\\n"') == ["from tidegate.plot import sweep"]
    assert unresolved("import tidegate.metrics") == ["import tidegate.metrics"]
    assert unresolved("from tidegate.show.plot import sweep, nothing") == [
        "from tidegate.show.plot import sweep, nothing"
    ]
    assert unresolved("from tidegate import plot, Run as R\nimport tidegate.show.report") == []


def test_the_reference_is_what_the_program_knows() -> None:
    for name, text in example("gen_reference", "docs").pages().items():
        assert (ROOT / "docs" / "reference" / name).read_text("utf-8") == text, f"{name} is old: make docs writes it"
