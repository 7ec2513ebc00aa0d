"""Folders of results: which kind one holds, and the result that is in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidegate.errors import InputError


def opened(folder: Path, wanted: Sequence[str]) -> Any:
    """The result in a folder.

    Args:
        folder: What a command wrote with `--out`.
        wanted: Which kinds of results will do, of `run`, `comparison`, `sweep`, `search` and `suite result`.

    Raises:
        InputError: when it holds none of these, or it is damaged.
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
    found = next((kind for kind, (file, _) in kinds.items() if (folder / file).is_file()), None)
    if found is not None and found in wanted:
        return kinds[found][1](folder)
    right = " or ".join([", ".join(wanted[:-1]), wanted[-1]])
    if found is not None:
        raise InputError(f"{folder}: holds a {found}; expected a {right}")
    if not folder.is_dir():
        raise InputError(
            f"{folder}: {'is a file' if folder.exists() else 'there is no such folder'}; expected a {right}"
        )
    raise InputError(f"{folder}: holds no {right} (no {', '.join(kinds[kind][0] for kind in wanted)})")
