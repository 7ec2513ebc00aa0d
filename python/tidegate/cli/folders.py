"""Loading of results of any kind from their folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidegate.errors import InputError


def opened(folder: Path, wanted: Sequence[str]) -> Any:
    """Loads the result in a folder.

    Args:
        folder: A folder that a command wrote with `--out`.
        wanted: Accepted kinds: some of `run`, `comparison`, `sweep`, `search` and `suite result`.

    Raises:
        InputError: when the folder holds none of these, or is damaged.
    """
    from tidegate.comparison import COMPARISON_FILE, Comparison
    from tidegate.comparison.sweeping import SWEEP_FILE, SweepResult
    from tidegate.optimisation import OPTIMISE_FILE, SearchResult
    from tidegate.runs import RUN_FILE, Run
    from tidegate.suite import SUITE_FILE, SuiteResult

    kinds: dict[str, tuple[str, Any]] = {
        "comparison": (COMPARISON_FILE, Comparison.load),
        "run": (RUN_FILE, Run.load),
        "sweep": (SWEEP_FILE, SweepResult.load),
        "search": (OPTIMISE_FILE, SearchResult.load),
        "suite result": (SUITE_FILE, SuiteResult.load),
    }
    kind_found = next((kind for kind, (file, _) in kinds.items() if (folder / file).is_file()), None)
    if kind_found is not None and kind_found in wanted:
        return kinds[kind_found][1](folder)
    expected = " or ".join([", ".join(wanted[:-1]), wanted[-1]])
    if kind_found is not None:
        raise InputError(f"{folder} holds a {kind_found}; expected a {expected}")
    if not folder.is_dir():
        raise InputError(
            f"{folder}: {'is a file' if folder.exists() else 'there is no such folder'}; expected a {expected}"
        )
    raise InputError(f"{folder} does not hold a {expected} (no {', '.join(kinds[kind][0] for kind in wanted)})")
