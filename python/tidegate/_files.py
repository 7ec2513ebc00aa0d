"""Files: written whole or not at all, and told apart by their contents."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
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


def sha256(path: Path) -> str:
    """Hash of a file's contents; what goes wrong is the system's error."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def check_target(path: Path, what: str, is_one: Callable[[Path], bool], *, force: bool) -> None:
    """Whether a file that a person named may be written: it is not there, is empty, or is of the same kind.

    Args:
        path: The file.
        what: What is to be written there, such as `csv trace`.
        is_one: Whether a file is such a thing.
        force: Whether the person wants it anyhow.

    Raises:
        OutputError: when something else would be lost.
    """
    with named(path):
        if force or not path.is_file() or not path.stat().st_size or is_one(path):
            return
    raise OutputError(f"{path}: is there already, and is no {what}; give another name, or --force to replace it")


def usual_mode(path: Path, mode: int) -> None:
    """Gives what was made for its owner alone the rights that the system would have given it."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)
