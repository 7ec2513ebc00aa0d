"""The runs of a sweep or a suite as a Parquet data set: a row a run, a column for each setting and each number.

The folder `runs.parquet` has a folder for each controller (`controller=gcc`, Hive's way, percent-encoded), in which
files hold some thousand rows each. Polars, DuckDB, pandas and pyarrow read it as it is. A file appears whole or not at
all. The results by key (`_sweep`) are what is resumed from; what a killed process had not written here yet is added
next time.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from tidegate import _core
from tidegate._core import Table
from tidegate._files import TEMPORARY, named, whole
from tidegate.errors import InputError, OutputError

FOLDER = "runs.parquet"
CONTROLLER, SEED, KEY = "controller", "seed", "key"
_FULL = 10_000  # rows of a file that is not joined with others: some 8 MB while it is read
_SOON = 5.0  # seconds after which rows are written, few as they are


@dataclass(frozen=True)
class Row:
    """A run."""

    key: str
    """Hash of all that it depends on."""
    controller: str
    """The controller of its subject."""
    words: Mapping[str, str]
    """Its scenario, settings and digest."""
    seed: int
    """Its seed."""
    numbers: Mapping[str, float | None]
    """Its metrics in the summary's own units."""


@dataclass
class Writer:
    """Writes rows as they come.

    Args:
        folder: Of the sweep or suite.
        words: Columns of text.
        numbers: Columns of numbers; not a number where a run has none.
    """

    folder: Path
    words: Sequence[str]
    numbers: Sequence[str]
    _waiting: dict[str, list[Row]] = field(default_factory=dict)
    _since: float = 0.0
    _sizes: dict[Path, int] = field(default_factory=dict)

    @property
    def _columns(self) -> list[str]:
        return [KEY, *self.words, SEED, *self.numbers]

    def begin(self, wanted: Collection[str]) -> set[str]:
        """The keys of the rows that are there; files with rows that nobody wants, or with others' columns, go away.

        Args:
            wanted: Keys of results that are kept: a run that is to be done again has no row yet.
        """
        root = self.folder / FOLDER
        there: set[str] = set()
        with named(root):
            for left in root.glob(f"*/.*{TEMPORARY}*"):
                left.unlink(missing_ok=True)
            for _, file in parts(root):
                try:
                    table = _core.read_parquet(str(file))
                    keys = [str(one) for one in table.to_numpy(KEY)] if table.columns == self._columns else []
                except (OSError, ValueError):
                    keys = []
                if not keys or not set(keys) <= set(wanted) or not there.isdisjoint(keys):
                    file.unlink()
                    continue
                there.update(keys)
                self._sizes[file] = len(keys)
        self._since = time.monotonic()
        return there

    def add(self, row: Row) -> None:
        """Takes a row, which is in a file some seconds later at most while others come, or after `close`."""
        self._waiting.setdefault(row.controller, []).append(row)
        if time.monotonic() - self._since > _SOON or len(self._waiting[row.controller]) >= _FULL:
            self.flush()

    def flush(self) -> None:
        """Writes what waits.

        Raises:
            OutputError: when it cannot be written.
        """
        for controller, rows in self._waiting.items():
            columns: list[tuple[str, np.ndarray | list[str]]] = [(KEY, [row.key for row in rows])]
            columns += [(name, [row.words.get(name, "") for row in rows]) for name in self.words]
            columns.append((SEED, np.array([row.seed for row in rows], dtype=np.uint64)))
            for name in self.numbers:
                values = (row.numbers.get(name) for row in rows)
                columns.append((name, np.array([np.nan if one is None else one for one in values], dtype=np.float64)))
            self._write(controller, Table.of(columns))
        self._waiting.clear()
        self._since = time.monotonic()

    def close(self) -> None:
        """Writes what waits, and joins small files into larger ones.

        Raises:
            OutputError: when it cannot be written.
        """
        self.flush()
        small: dict[Path, list[Path]] = {}
        for file, size in self._sizes.items():
            if size < _FULL:
                small.setdefault(file.parent, []).append(file)
        for folder, files in small.items():
            while len(files) > 1:
                some, size = [files.pop()], self._sizes[files[-1]]
                while files and size < _FULL:
                    size += self._sizes[files[-1]]
                    some.append(files.pop())
                self._join(unquote(folder.name.partition("=")[2]), some)

    def _join(self, controller: str, files: list[Path]) -> None:
        tables = [_core.read_parquet(str(file)) for file in files]
        columns: list[tuple[str, np.ndarray | list[str]]] = []
        for name in self._columns:
            values = np.concatenate([table.to_numpy(name) for table in tables])
            columns.append((name, values if values.dtype.kind in "fu" else [str(one) for one in values]))
        # readers never see a row twice: one that is killed in between leaves fewer, and the next run adds them
        for file in files:
            with named(file):
                file.unlink()
            del self._sizes[file]
        self._write(controller, Table.of(columns))

    def _write(self, controller: str, table: Table) -> None:
        folder = self.folder / FOLDER / f"{CONTROLLER}={quote(controller, safe='')}"
        with named(folder):
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / f"part-{uuid.uuid4().hex[:12]}.parquet"
            with whole(place) as making:
                try:
                    table.write_parquet(str(making))
                except ValueError as error:
                    raise OutputError(f"{folder}: cannot be written: {error}") from None
        self._sizes[place] = len(table)


def number_of(text: str) -> float | None:
    """The plain number that a setting is, if it is one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def parts(root: Path) -> Iterator[tuple[str, Path]]:
    """The files of a data set, each with its controller, in order of names."""
    for folder in sorted(root.glob(f"{CONTROLLER}=*")):
        for file in sorted(folder.glob("part-*.parquet")):
            yield unquote(folder.name.partition("=")[2]), file


def tables(folder: Path) -> Iterator[tuple[str, Table]]:
    """The rows of a sweep's or a suite's folder, or of a data set itself, some thousand at a time.

    Raises:
        InputError: when there are none, or a file is damaged.
    """
    root = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    found = list(parts(root))
    if not found:
        raise InputError(
            f"{folder}: has no {FOLDER} with runs in it; expected a folder that `tidegate sweep` or `suite run` wrote "
            "(the same command again adds the runs of an earlier version)"
        )
    for controller, file in found:
        try:
            yield controller, _core.read_parquet(str(file))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read: {error}; the same command again writes it anew") from None
