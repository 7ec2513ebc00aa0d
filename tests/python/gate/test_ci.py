"""docs/ci.md: its repository is made, its commands are run, and its gate fails if a controller became worse."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT
from tidegate.gate.rules import DEFAULT

PAGE = (ROOT / "docs" / "ci.md").read_text()
SMALLER = "--cases 5.1 --seeds 12 --jobs 1 "


def files() -> dict[str, str]:
    """Files of the repository that the page shows, by name."""
    listings = re.findall(r'^``` \{\.\w+ title="(.*?)"\}\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE)
    return dict(listings)


def steps() -> dict[str, str]:
    """The commands of its workflow by the names of their steps."""
    return dict(re.findall(r"- name: (.*)\n(?: +if: .*\n)? +run: (.*)\n", files()[".github/workflows/gate.yml"]))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, with its baselines."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo, which builds the controller in Rust")
    folder = tmp_path_factory.mktemp("repository")
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = sh((folder / "baselines.sh").read_text().replace("--suite smoke", f"{SMALLER}--suite smoke"), folder)
    assert done.returncode == 0, done.stderr
    return folder


def sh(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs commands as a step's shell does; `tidegate` is that of this Python."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": str(folder / "target"), "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        ["sh", "-e", "-c", commands], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def gate(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return sh(f"{steps()[name]} {SMALLER.partition('--seeds')[0]} --jobs 1", folder)


def test_the_page_has_a_whole_workflow() -> None:
    assert list(steps()) == ["Install", "Build", "The controller in Python", "The controller in Rust"]
    assert set(files()) == {
        "aimd.py", "Cargo.toml", "src/lib.rs", "backoff.py", "baselines.sh", ".github/workflows/gate.yml",
    }  # fmt: skip


def test_the_page_has_the_default_rules() -> None:
    assert tuple(re.findall(r"^\| `(.*?)` \|", PAGE, re.MULTILINE)) == DEFAULT


@pytest.mark.parametrize(
    ("step", "file", "old", "new"),
    [
        ("The controller in Python", "aimd.py", "down: float = 0.85", "down: float = 0.4"),
        ("The controller in Rust", "src/lib.rs", "1.0 - 0.5 *", "0.6 - 0.5 *"),
    ],
)
def test_each_gate_passes_what_is_the_same_and_fails_what_is_worse(
    repository: Path, step: str, file: str, old: str, new: str
) -> None:
    assert sh(steps()["Build"], repository).returncode == 0
    passed = gate(step, repository)
    assert passed.returncode == 0, passed.stderr
    assert "nothing is worse" in passed.stdout
    right = (repository / file).read_text()
    assert old in right
    (repository / file).write_text(right.replace(old, new))
    try:
        built = sh(steps()["Build"], repository)
        assert built.returncode == 0, built.stderr
        failed = gate(step, repository)
        assert failed.returncode == 1, failed.stdout
        python = {"aimd.py": "aimd.py", "src/lib.rs": "backoff.py"}[file]
        assert f"::error file={python},title=5.1 became worse::utilisation" in failed.stdout
        assert "5.1 over 100 s" in failed.stdout
        assert (repository / steps()[step].split()[6]).read_bytes().startswith(b"\x89PNG")
        assert 'failures="' in (repository / steps()[step].split()[4]).read_text()
    finally:
        (repository / file).write_text(right)
