"""The files of the repository."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from support import ROOT


def tracked() -> list[str]:
    """Paths of the repository's files; skips the test outside of a clone."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a clone: git does not know which files are the project's")
    return [file for file in listed.stdout.splitlines() if (ROOT / file).is_file()]


def texts(suffixes: Collection[str]) -> Iterator[tuple[str, str]]:
    """Path and text of each file with one of these suffixes, without the fuzz corpora."""
    for file in tracked():
        if Path(file).suffix in suffixes and not file.startswith("fuzz/corpus/"):
            yield file, (ROOT / file).read_text("utf-8")
