"""Files that come with tidegate: scenarios, suites and papers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SCENARIOS = _HERE / "scenarios"
"""Folder of the scenarios."""

SUITES = _HERE / "suites"
"""Folder of the suites."""

PAPERS = _HERE / "papers"
"""Folder of the papers."""


def scenario_files() -> Iterator[Path]:
    """Files of the scenarios."""
    return SCENARIOS.glob("*.toml")


def scenarios() -> list[str]:
    """Names of the scenarios, sorted."""
    return sorted(path.stem for path in scenario_files())


def papers() -> list[str]:
    """Keys of the papers, sorted."""
    return sorted(path.parent.name for path in PAPERS.glob("*/paper.toml"))


def suites() -> list[str]:
    """Names of the suites, sorted."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))
