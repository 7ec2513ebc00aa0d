"""Files: written whole or not at all, told apart by their contents, and named after what is in them."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import InputError, OutputError, TidegateError

_LONGEST_NAME = 150  # bytes of a file name; the least limit of usual file systems is 255
TEMPORARY = ".tidegate-"
"""In the names of what is being written, between the name that it will have and something random."""


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turns an error of the system inside it into one that names `path`.

    Raises:
        OutputError: for an OSError.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def readable(path: Path | str, error: type[TidegateError] = InputError) -> Iterator[None]:
    """Turns an error of the system inside it into one that names `path`, as its reader calls it.

    Raises:
        InputError: for an OSError; or `error` instead.
    """
    try:
        yield
    except FileNotFoundError:
        raise error(f"{path}: there is no such file") from None
    except OSError as found:
        raise error(f"{path}: cannot be read: {found.strerror or found}") from None


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, hexadecimal.

    Raises:
        OSError: when it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Another name in the same folder, to be written to inside; the file then takes the name `path`, or goes away.

    Raises:
        OSError: when it cannot be written; what was there before is still there.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}{TEMPORARY}", dir=path.parent)
    os.close(handle)
    making = Path(name)
    try:
        yield making
        with making.open("rb") as file:
            os.fsync(file.fileno())
        usual_mode(making, 0o666)
        making.replace(path)
    except BaseException:
        making.unlink(missing_ok=True)
        raise


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
        with whole(path) as making:
            making.write_bytes(content)


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
    """Gives what was made for its owner alone the usual rights: `mode` without those that umask takes away."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)


def file_name(label: str) -> str:
    """A controller's label as part of a file name.

    >>> file_name("gcc:draft-02,k_up=0.01")
    'gcc-draft-02-k_up-0.01'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-.") or "controller"


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """A file name for each label, different ones for different labels, also where capitals do not count.

    >>> file_names(["gcc:a", "gcc-a", "GCC:a", "fixed"])
    {'gcc:a': 'gcc-a', 'gcc-a': 'gcc-a-2', 'GCC:a': 'GCC-a-3', 'fixed': 'fixed'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        first = file_name(label)[:_LONGEST_NAME]
        tries = (first if number == 1 else f"{first}-{number}" for number in itertools.count(1))
        found[label] = next(name for name in tries if name.lower() not in taken)
        taken.add(found[label].lower())
    return found
