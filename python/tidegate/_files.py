"""Files: atomic writes, hashes of contents, and file names from labels."""

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

_LONGEST_NAME = 150  # bytes of a file name; the lowest limit of usual file systems is 255
TEMPORARY = ".tidegate-"
"""Part of the name of an incomplete file, between its final name and a random suffix."""


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turns an OSError while writing inside into an error that names `path`.

    Raises:
        OutputError: for an OSError.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def table_written(path: Path) -> Iterator[None]:
    """Turns the error of a table's writer inside into one that names `path` once, with the reason alone.

    Raises:
        OutputError: for a ValueError or OSError.
    """
    with writable(path):
        try:
            yield
        except ValueError as error:
            # such as PATH: ValueError: External: No space left on device (os error 28)
            why = re.sub(r" \(os error \d+\)$", "", str(error).rpartition(": ")[2])
            raise OutputError(f"{path}: cannot be written: {why}") from None


@contextmanager
def readable(path: Path | str, error: type[TidegateError] = InputError) -> Iterator[None]:
    """Turns an OSError while reading inside into an error that names `path`.

    Raises:
        InputError: for an OSError; or `error` instead.
    """
    try:
        yield
    except FileNotFoundError:
        raise error(f"{path}: there is no such file") from None
    except OSError as cause:
        raise error(f"{path}: cannot be read: {cause.strerror or cause}") from None


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, hexadecimal.

    Raises:
        OSError: when it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder to write to; the file is then renamed to `path`, or removed on errors.

    Raises:
        OSError: when it cannot be written; an earlier file is unchanged.
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
        OutputError: when it cannot be written; an earlier file is unchanged.
    """
    content = data.encode() if isinstance(data, str) else data
    with writable(path):
        if path.exists() and not path.is_file():
            # a device or a pipe cannot be replaced, only written to
            with path.open("wb") as file:
                file.write(content)
            return
        with atomic(path) as making:
            making.write_bytes(content)


def check_target(path: Path, kind: str, is_one: Callable[[Path], bool], *, force: bool) -> None:
    """Checks that a file may be written: it does not exist, is empty, or is of the same kind.

    Args:
        path: The file.
        kind: Kind of the new file, such as `csv trace`.
        is_one: Whether an existing file is of that kind.
        force: Whether to allow it anyhow.

    Raises:
        OutputError: when a file of another kind would be lost.
    """
    with writable(path):
        if force or not path.is_file() or not path.stat().st_size or is_one(path):
            return
    raise OutputError(
        f"{path}: the file exists already and is not a {kind}; give another name, or --force to replace it"
    )


def first_bytes(path: Path, count: int = 1000) -> bytes:
    """The first bytes of a file, which tell its kind.

    Raises:
        OSError: when it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(count)


def usual_mode(path: Path, mode: int) -> None:
    """Gives a file that only its owner can access the usual rights: `mode` minus the umask."""
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
    """A file name for each label; names differ for different labels, also on file systems that ignore case.

    >>> file_names(["gcc:a", "gcc-a", "GCC:a", "fixed"])
    {'gcc:a': 'gcc-a', 'gcc-a': 'gcc-a-2', 'GCC:a': 'GCC-a-3', 'fixed': 'fixed'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        first = file_name(label)[:_LONGEST_NAME]
        tries = (first if number == 1 else f"{first}-{number}" for number in itertools.count(1))
        names[label] = next(name for name in tries if name.lower() not in taken)
        taken.add(names[label].lower())
    return names
