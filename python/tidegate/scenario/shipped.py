"""The scenarios that come with tidegate."""

from __future__ import annotations

from pathlib import Path

from tidegate import _shipped
from tidegate.errors import InputError, did_you_mean

FOLDER = _shipped.SCENARIOS
names = _shipped.scenarios
files = _shipped.scenario_files


def find(what: str | Path) -> Path:
    """The file of a scenario given by path, or by the name of one that ships with tidegate.

    Raises:
        InputError: when there is neither.
    """
    path = Path(what)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; expected a scenario file")
    if path.exists():
        return path
    ours = FOLDER / f"{what}.toml"
    if isinstance(what, str) and "/" not in what and ours.is_file():
        return ours
    if path.suffix == ".toml" or len(path.parts) > 1:
        raise InputError(f"{path}: there is no such file")
    hint = did_you_mean(str(what), names())
    raise InputError(f"{what}: no such scenario{hint} (see tidegate scenario list)")
