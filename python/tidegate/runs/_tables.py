"""Tables of a run: in the engine's recording, in a folder, or in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate import _core
from tidegate._core import Table
from tidegate.control.contenders import as_typed
from tidegate.errors import InputError, RunError
from tidegate.results.saved import Contents

SIDES = ("sender", "receiver")
"""Sides of flows, for capture files."""


_CONTROLLERS = "flow_controller"
"""Column of `flows` with the engine's names of controllers."""

_EVENT_TIMES = ("t_s", "begin_s", "length_s")
"""Columns of times (s) of things that happened, which are known in every row; pictures draw them."""


def _as_typed(table: Table) -> Table:
    """The table with controllers' names as they were typed."""
    names = table.to_numpy(_CONTROLLERS).tolist()
    typed = [as_typed(name) for name in names]
    if typed == names:
        return table
    columns = [(name, table.to_numpy(name)) for name in table.columns]
    return Table.of(
        [
            (name, typed if name == _CONTROLLERS else values.tolist() if values.dtype.kind in "UO" else values)
            for name, values in columns
        ]
    )


def _check_finite(file: Path, column: str, times: npt.NDArray[Any]) -> None:
    finite = np.isfinite(times) if times.dtype.kind in "fiu" else np.zeros(len(times), bool)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{file}: {column} of row {row} is {times[row]}; expected a time in seconds")


class Fresh:
    """Tables of a recording in memory."""

    def __init__(self, recording: _core.Recording, capture: bool) -> None:
        self._recording, self._has_capture = recording, capture
        self.names, self.encoded = recording.table_names, recording.encoded

    def get(self, name: str) -> Table:
        table = self._recording.table(name)
        return _as_typed(table) if _CONTROLLERS in table.columns else table

    def capture(self, side: str) -> bytes | None:
        if not self._has_capture:
            return None
        try:
            return bytes(self._recording.pcapng(side))
        except ValueError as error:
            raise RunError(f"no capture file: {error}") from None

    def draws(self) -> Mapping[str, Any] | None:
        draws: Mapping[str, Any] = json.loads(self._recording.draws_json())
        return draws


class Saved(Contents):
    """Tables of a run in a folder."""

    def names(self) -> list[str]:
        return sorted(file.stem for file in self.folder.glob("*.parquet") if self.is_ours(file.name))

    def get(self, name: str) -> Table:
        file = self.file(f"{name}.parquet")
        try:
            table = _core.read_parquet(str(file))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read: {error}") from None
        for column in _EVENT_TIMES:
            if column in table.columns:
                _check_finite(file, column, table.to_numpy(column))
        return table

    def capture(self, side: str) -> bytes | None:
        return self._bytes(capture_file(side))

    def encoded(self, flow: str) -> bytes | None:
        return self._bytes(stream_file(flow))

    def _bytes(self, name: str) -> bytes | None:
        file = self.file(name)
        return file.read_bytes() if file.is_file() else None

    def draws(self) -> Mapping[str, Any] | None:
        return None


def capture_file(side: str) -> str:
    return f"packets-{side}.pcapng"


def stream_file(flow: str) -> str:
    return f"encoded-{flow}.h264"


class WithFiles:
    """Tables of a run with additional files, such as those of a session with programs.

    Args:
        tables: The run's tables.
        folder: Folder of its files.
        keeps: Object that keeps the folder alive.
    """

    def __init__(self, tables: Any, folder: Path, keeps: object) -> None:
        self._tables = tables
        self._folder = folder
        self._keeps = keeps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def file(self, name: str) -> Path:
        """Path of one of its files."""
        return self._folder / name


class Kept:
    """Tables of a run in memory, with all other contents of its folder."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        captures: Mapping[str, bytes | None] = MappingProxyType({}),
        encoded: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self._tables, self._captures, self._encoded = tables, captures, encoded

    def names(self) -> list[str]:
        return list(self._tables)

    def get(self, name: str) -> Table:
        return self._tables[name]

    def capture(self, side: str) -> bytes | None:
        return self._captures.get(side)

    def encoded(self, flow: str) -> bytes | None:
        return self._encoded.get(flow)

    def draws(self) -> Mapping[str, Any] | None:
        return None
