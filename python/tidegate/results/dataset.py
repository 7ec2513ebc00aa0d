"""The runs of a sweep or a suite as a Parquet data set: a row for each run, a column for each setting and number.

The folder `runs.parquet` has a folder for each controller (`controller=gcc`, as in Hive, percent-encoded), with files
of some thousand rows each. Polars, DuckDB, pandas and pyarrow read it without conversion. A file appears complete or
not at all. A continued sweep starts from the saved results by key (`results.sweeps`); rows that a killed process had
not written here yet are added by the next run.
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
from tidegate._files import TEMPORARY, atomic, table_written, writable
from tidegate.errors import InputError

FOLDER = "runs.parquet"
CONTROLLER, SEED, KEY = "controller", "seed", "key"
_FULL = 10_000  # rows from which on a file is not joined with others: some 8 MB of memory for its reader
_SOON = 5.0  # seconds after which rows are written, however few they are


@dataclass(frozen=True)
class Row:
    """The row of a run."""

    key: str
    """Hash of all that the run depends on."""
    controller: str
    """Controller of the subject."""
    words: Mapping[str, str]
    """Scenario, settings and digest of the run, by column."""
    seed: int
    """Seed of the run."""
    numbers: Mapping[str, float | None]
    """Metrics by name, in the summary's units."""


@dataclass
class Writer:
    """Writer of the rows, as runs end.

    Args:
        folder: Folder of the sweep or suite.
        words: Names of the text columns.
        numbers: Names of the number columns; NaN where a run has no number.
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
        """Returns the keys of the rows in the data set; deletes files with other columns or with unwanted rows.

        Args:
            wanted: Keys of the saved results. A run that has to be repeated is not among them, and its row is deleted.
        """
        root = self.folder / FOLDER
        present: set[str] = set()
        with writable(root):
            for unfinished in root.glob(f"*/.*{TEMPORARY}*"):
                unfinished.unlink(missing_ok=True)
            for _, file in parts(root):
                try:
                    table = _core.read_parquet(str(file))
                    keys = [str(key) for key in table.to_numpy(KEY)] if table.columns == self._columns else []
                except (OSError, ValueError):
                    keys = []
                if not keys or not set(keys) <= set(wanted) or not present.isdisjoint(keys):
                    file.unlink()
                    continue
                present.update(keys)
                self._sizes[file] = len(keys)
        self._since = time.monotonic()
        return present

    def add(self, row: Row) -> None:
        """Takes a row. It is written within seconds if more rows come, else by `close`."""
        self._waiting.setdefault(row.controller, []).append(row)
        if time.monotonic() - self._since > _SOON or len(self._waiting[row.controller]) >= _FULL:
            self.flush()

    def flush(self) -> None:
        """Writes the waiting rows.

        Raises:
            OutputError: when it cannot be written.
        """
        for controller, rows in self._waiting.items():
            columns: list[tuple[str, np.ndarray | list[str]]] = [(KEY, [row.key for row in rows])]
            columns += [(name, [row.words.get(name, "") for row in rows]) for name in self.words]
            columns.append((SEED, np.array([row.seed for row in rows], dtype=np.uint64)))
            for name in self.numbers:
                values = (row.numbers.get(name) for row in rows)
                columns.append(
                    (name, np.array([np.nan if value is None else value for value in values], dtype=np.float64))
                )
            self._write(controller, Table.of(columns))
        self._waiting.clear()
        self._since = time.monotonic()

    def close(self) -> None:
        """Writes the waiting rows, and joins small files into larger ones.

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
                batch, size = [files.pop()], self._sizes[files[-1]]
                while files and size < _FULL:
                    size += self._sizes[files[-1]]
                    batch.append(files.pop())
                self._join(unquote(folder.name.partition("=")[2]), batch)

    def _join(self, controller: str, files: list[Path]) -> None:
        tables = [_core.read_parquet(str(file)) for file in files]
        columns: list[tuple[str, np.ndarray | list[str]]] = []
        for name in self._columns:
            values = np.concatenate([table.to_numpy(name) for table in tables])
            columns.append((name, values if values.dtype.kind in "fu" else [str(value) for value in values]))
        # readers never see a row twice: a kill between the two steps loses rows, and the next run adds them again
        for file in files:
            with writable(file):
                file.unlink()
            del self._sizes[file]
        self._write(controller, Table.of(columns))

    def _write(self, controller: str, table: Table) -> None:
        folder = self.folder / FOLDER / f"{CONTROLLER}={quote(controller, safe='')}"
        with writable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"part-{uuid.uuid4().hex[:12]}.parquet"
            with table_written(folder), atomic(path) as unfinished:
                table.write_parquet(str(unfinished))
        self._sizes[path] = len(table)


def number_of(text: str) -> float | None:
    """Parses a setting that is a bare number; `None` for any other."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def parts(root: Path) -> Iterator[tuple[str, Path]]:
    """Files of a data set, each with its controller, in the order of their names."""
    for folder in sorted(root.glob(f"{CONTROLLER}=*")):
        for file in sorted(folder.glob("part-*.parquet")):
            yield unquote(folder.name.partition("=")[2]), file


def tables(folder: Path) -> Iterator[tuple[str, Table]]:
    """Tables of rows in the folder of a sweep or suite, or in a data set itself, each with its controller.

    Raises:
        InputError: when there are none, or a file is damaged.
    """
    root = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    files = list(parts(root))
    if not files:
        raise InputError(
            f"{folder}: the folder has no {FOLDER} with runs; expected a folder that `tidegate sweep` or `suite run` "
            "wrote (for a folder of an earlier version run the same command again, which adds the runs)"
        )
    for controller, file in files:
        try:
            yield controller, _core.read_parquet(str(file))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read: {error}; run the same command again to rewrite it") from None
