"""Files of recordings, as bytes."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate import _core
from tidegate.errors import InputError
from tidegate.recordings._getstats import looks_like

GETSTATS = "getStats"
_GZIP = b"\x1f\x8b"
_MOST = 2 << 30
"""Bytes of a file, unpacked: what is read of it takes several times as much."""


@dataclass(frozen=True)
class File:
    """A file that was read."""

    path: Path
    data: bytes
    """What it holds; unpacked, where it was packed by gzip."""
    format: str
    """`event log`, `capture` or `getStats`."""

    @property
    def about(self) -> Mapping[str, str]:
        """Its name, and the hash of what it holds."""
        return {"file": self.path.name, "format": self.format, "sha256": hashlib.sha256(self.data).hexdigest()}


def read(path: Path) -> File:
    """Reads a recording.

    Raises:
        InputError: when it cannot be read, or is none that can be imported.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            data = file.read(_MOST + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: cannot be unpacked by gzip: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _MOST:
        raise InputError(f"{path}: is larger than {_MOST >> 30} GiB; cut it into pieces")
    if looks_like(data):
        return File(path, data, GETSTATS)
    try:
        return File(path, data, _core.recording_format(data))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
