"""Writing files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import OutputError

TEMPORARY = ".tidegate-"
"""In the names of what is being written, between the name that it will have and something random."""


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turns what the system says about `path` into a sentence."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_file(path: Path, data: str | bytes) -> None:
    """Writes a file under another name in the same folder, then renames it.

    Raises:
        OutputError: when it cannot be written; what was there before is still there.
    """
    content = data.encode() if isinstance(data, str) else data
    with named(path):
        if path.exists() and not path.is_file():
            # a device or a pipe cannot be replaced, only written to
            with path.open("wb") as file:
                file.write(content)
            return
        handle, name = tempfile.mkstemp(prefix=f".{path.name}{TEMPORARY}", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            usual_mode(Path(name), 0o666)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def usual_mode(path: Path, mode: int) -> None:
    """Gives what was made for its owner alone the rights that the system would have given it."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)
