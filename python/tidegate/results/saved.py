"""Checks of saved results, before they are used."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tidegate._inputs import JSON, parse_json
from tidegate._inputs import read as read_input
from tidegate.errors import InputError
from tidegate.results.folders import MANIFEST, Manifest
from tidegate.results.metrics import METRICS

_WORDS = {
    "flow", "kind", "controller", "quality", "quality_network", "circuit_breaker", "ecn_check", "link", "member",
    "profile",
}  # fmt: skip
LARGEST = 1e100
"""Largest number of a result. Means and variances of such numbers are floats; the engine's largest is 2^64 ns."""

_LISTS = {"flows": ("flow", "kind"), "links": ("link",), "members": ("flow", "member", "profile")}


def read_json(path: Path) -> Any:
    """The contents of a JSON file.

    Raises:
        InputError: when it cannot be read or is no JSON.
    """
    data = read_input(path, JSON).data
    try:
        return parse_json(data, JSON.limit)
    except ValueError as error:
        raise InputError(f"{path}: the file is damaged: {error}") from None


def within(folder: Path, name: str) -> Path:
    """Path of a file or folder that a result names: it is in the folder of the result, also behind its links.

    Raises:
        InputError: when it is not.
    """
    path = folder / name
    if "\0" in name or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise InputError(f"{folder}: names {name}, which is not in this folder; a result is read from its own folder")
    return path


class Contents:
    """The files of a saved result, each checked against the manifest of its folder when it is used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _manifest(self) -> Manifest | None:
        manifest = Manifest.read(self.folder)
        if manifest is None and (self.folder / MANIFEST).exists():
            raise InputError(f"{self.folder / MANIFEST}: the file is damaged")
        return manifest

    def is_ours(self, name: str) -> bool:
        """Whether a file is a part of the result; without a manifest every file is."""
        return self._manifest is None or name in self._manifest.files

    def check(self) -> None:
        """Checks that all files that the manifest lists are there as they were written.

        Raises:
            InputError: when one is not.
        """
        for name in self._manifest.files if self._manifest is not None else ():
            if not self.file(name).exists():
                raise InputError(f"{self.folder / name}: is missing: {MANIFEST} lists it")

    def file(self, name: str) -> Path:
        """Path of a file that is unchanged since it was written; a missing or unlisted file is not checked.

        Raises:
            InputError: when the file was changed, or is not in the folder.
        """
        path, manifest = within(self.folder, name), self._manifest
        if manifest is not None and name in manifest.files and path.exists() and not manifest.has(self.folder, name):
            raise InputError(f"{path}: the file is damaged or was changed: its hash differs from the one in {MANIFEST}")
        return path


def check_summary(summary: Mapping[str, Any]) -> None:
    """Checks that the summary of a run has the types that runs write.

    Raises:
        InputError: names the first key of another type.
    """
    for key in ("flows", "links"):
        _expect(f"summary.{key}", summary.get(key), isinstance(summary.get(key), list), "a list")
    fairness = summary.get("fairness", {})
    _expect("summary.fairness", fairness, isinstance(fairness, dict), "metrics by name")
    _expect(
        "summary.fairness.flows", fairness.get("flows"), isinstance(fairness.get("flows", []), list), "names of flows"
    )
    for key in ("members", "sessions"):
        _expect(f"summary.{key}", summary.get(key), isinstance(summary.get(key, []), list), "a list")
    _expect("summary.flows", [], bool(summary["flows"]), "at least one flow")
    for key, value in summary.items():
        match value:
            case list() if key in {"warnings", "notes"}:
                for number, remark in enumerate(value):
                    valid = (
                        isinstance(remark, dict)
                        and {"key", "says"} <= remark.keys()
                        and all(map(_is_text, remark.values()))
                    )
                    _expect(f"summary.{key}[{number}]", remark, valid, "key and says, as text")
            case list() if key == "recordings":
                _check_recordings(value)
            case list() if key in {*_LISTS, "sessions"}:
                _check_list(key, value)
            case dict() if key == "fairness":
                _check_values(f"summary.{key}", value)
            case list() | dict():
                _expect(f"summary.{key}", value, valid=False, expected="a number")
            case _:
                _check_values("summary", {key: value})


def _check_recordings(entries: list[Any]) -> None:
    for number, recording in enumerate(entries):
        path = f"summary.recordings[{number}]"
        _expect(path, recording, isinstance(recording, dict), "the recording of a link")
        for name in ("link", "trace"):
            _expect(f"{path}.{name}", recording.get(name), _is_text(recording.get(name)), "text")
        for name in ("from_s", "used_s", "length_s"):
            valid = type(recording.get(name)) is float and 0 <= recording[name] < math.inf
            _expect(f"{path}.{name}", recording.get(name), valid, "seconds")


def _check_list(key: str, entries: list[Any]) -> None:
    names = _LISTS.get(key, ())
    for number, entry in enumerate(entries):
        path = f"summary.{key}[{number}]"
        _expect(path, entry, isinstance(entry, dict), "metrics by name")
        for name in names:
            _expect(f"{path}.{name}", entry.get(name), isinstance(entry.get(name), str), "text")
        _check_values(path, entry)
    if names:
        keys = [tuple(entry[name] for name in names if name != "kind") for entry in entries]
        _expect(f"summary.{key}", keys, len(set(keys)) == len(keys), "different names")


def _check_values(path: str, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name in _WORDS or name in {"digest", "name"}:
            _expect(f"{path}.{name}", value, value is None or isinstance(value, str), "text")
        elif isinstance(value, list) and name not in METRICS:
            _expect(f"{path}.{name}", value, _are_names_or_numbers(value), "names or numbers")
        else:
            _expect(f"{path}.{name}", value, _is_number(value), "a number or nothing")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_names_or_numbers(values: Iterable[Any]) -> bool:
    return all(
        isinstance(value, str) or _is_number(value) or (isinstance(value, list) and _are_names_or_numbers(value))
        for value in values
    )


def _is_number(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, float):
        return not math.isfinite(value) or abs(value) <= LARGEST
    # no measurement gives a larger whole number, and not every larger one has a float
    return isinstance(value, int) and abs(value) < 2**64


def _expect(path: str, value: Any, valid: bool, expected: str) -> None:
    if not valid:
        text = json.dumps(value) if not isinstance(value, float) or math.isfinite(value) else str(value)
        raise InputError(f"{path}: found {text[:60]}; expected {expected}")
