"""The scenarios that come with tidegate."""

from __future__ import annotations

from pathlib import Path

from tidegate import _shipped
from tidegate._files import readable
from tidegate.errors import InputError, did_you_mean

FOLDER = _shipped.SCENARIOS
names = _shipped.scenarios
files = _shipped.scenario_files


def find(name: str | Path) -> Path:
    """The file of a scenario given by path, or by the name of one that ships with tidegate.

    Raises:
        InputError: when there is neither.
    """
    path = Path(name)
    shipped = FOLDER / f"{name}.toml"
    with readable(path):  # a name may be too long for any file
        if path.is_dir():
            raise InputError(f"{path}: is a folder; expected a scenario file")
        if path.exists():
            return path
        if isinstance(name, str) and "/" not in name and shipped.is_file():
            return shipped
    if path.suffix == ".toml" or len(path.parts) > 1:
        raise InputError(f"{path}: there is no such file")
    hint = did_you_mean(str(name), names())
    raise InputError(f"{name}: there is no such scenario{hint} (see tidegate scenario list)")
