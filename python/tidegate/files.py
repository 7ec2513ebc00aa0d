"""Writing results: whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import OutputError


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
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            _usual_mode(Path(name), 0o666)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def write_folder(path: Path, mark: str) -> Iterator[Path]:
    """A folder to fill that takes its name only when it is complete.

    Args:
        path: Its name in the end. An earlier result of the same kind there is replaced.
        mark: A file that every result of this kind has.

    Raises:
        OutputError: when it cannot be written, or something else is there.
    """
    check_folder(path, mark)
    with named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield making
        with named(path):
            _usual_mode(making, 0o777)
            if path.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
                path.replace(old / "it")
                making.replace(path)
                shutil.rmtree(old, ignore_errors=True)
            else:
                making.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def check_folder(path: Path, mark: str) -> None:
    """Whether a result may go to `path`, before any work is done.

    Raises:
        OutputError: when it cannot be written, or something else is there.
    """
    with named(path):
        if path.is_dir():
            if any(path.iterdir()) and not (path / mark).is_file():
                why = f"there is something else in it (no {mark}); choose an empty or a new folder"
                raise OutputError(f"{path}: {why}")
        elif path.exists() or path.is_symlink():
            raise OutputError(f"{path}: is a file; expected a folder, or nothing yet")
        parent = next(folder for folder in path.absolute().parents if folder.exists())
        if not parent.is_dir():
            raise OutputError(f"{path}: {parent} is no folder")
        # asking is better than os.access, which says yes to root on a read-only file system
        handle, name = tempfile.mkstemp(prefix=".tidegate.", dir=parent)
        os.close(handle)
        Path(name).unlink()


def _usual_mode(path: Path, mode: int) -> None:
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)
