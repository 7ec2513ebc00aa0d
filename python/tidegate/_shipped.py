"""What comes with tidegate as files: scenarios, suites and papers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SCENARIOS = _HERE / "scenarios"
"""Where scenarios are."""

SUITES = _HERE / "suites"
"""Where suites are."""

PAPERS = _HERE / "papers"
"""Where papers are."""


def scenario_files() -> Iterator[Path]:
    """The files of the scenarios."""
    return SCENARIOS.glob("*.toml")


def scenarios() -> list[str]:
    """The names of the scenarios, in order."""
    return sorted(path.stem for path in scenario_files())


def papers() -> list[str]:
    """The keys of the papers, in order."""
    return sorted(path.parent.name for path in PAPERS.glob("*/paper.toml"))


def suites() -> list[str]:
    """The names of the suites, in order."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))
