"""Folders of results: they appear complete or not at all, and no foreign file in them is lost.

`manifest.json` lists the files that tidegate wrote into a folder, with hashes of their contents. Any other file in it
is *foreign*: a file that is not in the list, or one that was changed since. A new result is completed in a temporary
folder beside the old one, foreign files are linked into it, and the two are exchanged in one step. Only then our files
of the old result are deleted. A process that is killed at any moment leaves the old or the new result in its place, and
a folder `.NAME.tidegate-...` beside it, which the next run removes. Where the system cannot exchange two folders, two
renames replace the exchange; a kill between them leaves the old result as `.NAME.tidegate-old-...`, and the next run
puts it back.
"""

from __future__ import annotations

import ctypes
import errno
import filecmp
import glob
import json
import logging
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tidegate._files import TEMPORARY, sha256, usual_mode, writable, write_file
from tidegate._inputs import JSON, parse_json
from tidegate._inputs import read as read_input
from tidegate.errors import InputError, OutputError

if sys.platform != "win32":
    import fcntl

MANIFEST = "manifest.json"
"""Name of the list of the files that tidegate wrote into a folder."""

_ABOUT = "What tidegate wrote into this folder, by SHA-256. Other files here are yours and are kept."
_FORMAT = 1
_UNFINISHED = ".unfinished"
_NEW, _OLD = "new-", "old-"
_DEEPEST_PATH = 200  # folders in each other; Python makes them by recursion
_DEEPEST = 2  # levels between a result and the result that it is a part of

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Manifest:
    """The list of the files that tidegate wrote into a folder."""

    kind: str
    """Name of the file that every result of this kind has."""
    files: Mapping[str, str]
    """SHA-256 by path in the folder, with slashes."""

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Loads the manifest of a folder; `None` if there is none, or it is damaged."""
        try:
            data = parse_json(read_input(folder / MANIFEST, JSON).data, JSON.limit)
            kind, files = data["kind"], data["files"]
        except (InputError, ValueError, KeyError, TypeError):
            return None
        complete = data.get("format") == _FORMAT and isinstance(kind, str) and isinstance(files, dict)
        return cls(kind, files) if complete and all(isinstance(content, str) for content in files.values()) else None

    def write(self, folder: Path) -> None:
        """Writes the manifest into a folder."""
        data = {"about": _ABOUT, "format": _FORMAT, "kind": self.kind, "files": dict(sorted(self.files.items()))}
        write_file(folder / MANIFEST, json.dumps(data, indent=1) + "\n")

    def has(self, folder: Path, name: str) -> bool:
        """Whether a file is ours and unchanged."""
        if name == MANIFEST:
            return True
        path = folder / name
        with suppress(OSError):
            return name in self.files and stat.S_ISREG(path.lstat().st_mode) and sha256(path) == self.files[name]
        return False


def check_folder(path: Path, kind: str, *, exchanged: bool = True) -> Path:
    """Checks before any work that a result can be written to `path`; clears up after a run that was killed there.

    Args:
        path: Folder of the result.
        kind: Name of the file that every result of this kind has.
        exchanged: Whether the result will replace the whole folder.

    Returns:
        The path without symbolic links.

    Raises:
        OutputError: when the result cannot be written, or the folder is not ours.
    """
    with writable(path):
        destination = _resolved(path)
        parent = next((folder for folder in destination.parents if folder.exists()), destination)
        if not parent.is_dir():
            raise OutputError(f"{path}: {parent} is not a folder")
        # creating a file is a better test than os.access, which says yes to root on a read-only file system, and knows
        # whether the names that are needed are too long
        handle, name = tempfile.mkstemp(prefix=_temporary_name(destination, _NEW), dir=parent)
        os.close(handle)
        Path(name).unlink()
        if parent == destination.parent:
            with _exclusive(parent):
                _clear_leftovers(destination)
        if destination.is_dir():
            _check_ours(path, destination, kind)
            if exchanged and destination in (current := Path.cwd(), *current.parents):
                why = "this is the current folder, which cannot be replaced"
                raise OutputError(f"{path}: {why}; choose a folder inside it")
        elif destination.exists():
            raise OutputError(f"{path}: found a file; expected a folder, or no file of this name")
    return destination


def _resolved(path: Path) -> Path:
    """The path without symbolic links.

    Raises:
        OSError: when it cannot exist: a link leads to itself, or a name is too long.
        OutputError: when it is too deep.
    """
    if len(path.parts) > _DEEPEST_PATH:
        raise OutputError(f"{path.parts[0]}/...: has {len(path.parts)} folders; expected at most {_DEEPEST_PATH}")
    with suppress(FileNotFoundError, NotADirectoryError):
        path.stat()
    return path.resolve()


def _check_ours(path: Path, destination: Path, kind: str) -> None:
    manifest = Manifest.read(destination)
    if manifest is None:
        if not any(destination.iterdir()):
            return
        if (destination / MANIFEST).is_file() and (destination / kind).is_file():
            why = f"{MANIFEST} is damaged, so tidegate cannot tell which files in the folder are yours"
            raise OutputError(f"{path}: {why}; choose another folder, or move this folder away")
        if (destination / kind).is_file():
            why = f"the folder holds a result of an earlier version, without a list of its files ({MANIFEST})"
            raise OutputError(f"{path}: {why}; choose another folder, or move this folder away")
        why = f"the folder holds other files (it has no {MANIFEST} of tidegate); choose an empty or a new folder"
        raise OutputError(f"{path}: {why}")
    if manifest.kind != kind:
        why = f"the folder holds another kind of result ({manifest.kind}, not {kind}); choose an empty or a new folder"
        raise OutputError(f"{path}: {why}")


@contextmanager
def write_folder(path: Path, kind: str) -> Iterator[Path]:
    """Yields a temporary folder to fill, which is moved to `path` only when it is complete.

    Args:
        path: Final folder of the result. An earlier result of the same kind there is replaced. Foreign files stay; a
            foreign file whose name the new result needs is renamed to `NAME.kept-N`, with a warning in the log.
        kind: Name of the file that every result of this kind has.

    Raises:
        OutputError: when the result cannot be written, or the folder is not ours.
    """
    destination = check_folder(path, kind)
    with writable(path):
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(destination.parent):
            draft = Path(tempfile.mkdtemp(prefix=_temporary_name(destination, _NEW), dir=destination.parent))
            (draft / _UNFINISHED).touch()
            held = _try_lock(draft)
    try:
        yield draft
        with writable(path):
            names = sorted(name for name in _files(draft) if name != _UNFINISHED)
            Manifest(kind, {name: sha256(draft / name) for name in names}).write(draft)
            with _exclusive(destination.parent):
                _put_in_place(draft, destination, typed=path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
    except OutputError as error:
        # the draft is gone when the message is read
        raise OutputError(str(error).replace(str(draft), str(path))) from None
    finally:
        with suppress(OSError):
            _clear(draft, destination)
        if held is not None:
            os.close(held)


def begin_folder(path: Path, kind: str) -> None:
    """Makes a folder of ours to which files are added one by one, unless it exists.

    Raises:
        OutputError: when it cannot be written, or the folder is not ours.
    """
    destination = check_folder(path, kind, exchanged=False)
    with writable(path):
        destination.mkdir(parents=True, exist_ok=True)
        if Manifest.read(destination) is None:
            Manifest(kind, {}).write(destination)


def add_file(folder: Path, name: str, data: str | bytes) -> None:
    """Writes a file. In a folder of ours it is listed in the manifest, and a foreign file of that name is kept.

    Raises:
        OutputError: when it cannot be written.
    """
    path = folder / name
    manifest = Manifest.read(folder)
    with writable(path):
        if manifest is not None and path.is_file() and not manifest.has(folder, name):
            keep(path)
    write_file(path, data)
    if manifest is not None:
        _add_to_manifests(folder, {name: sha256(path)})


def _add_to_manifests(folder: Path, added: Mapping[str, str]) -> None:
    """Lists new files as ours, also in the manifest of the result that this one is a part of."""
    manifest = Manifest.read(folder)
    if manifest is None:
        return
    before = sha256(folder / MANIFEST)
    Manifest(manifest.kind, {**manifest.files, **added}).write(folder)
    for outer_folder in folder.resolve().parents[:_DEEPEST]:
        inner_path = folder.resolve().relative_to(outer_folder).as_posix()
        outer_manifest = Manifest.read(outer_folder)
        if outer_manifest is not None and outer_manifest.files.get(f"{inner_path}/{MANIFEST}") == before:
            contents = {MANIFEST: sha256(folder / MANIFEST), **added}
            _add_to_manifests(outer_folder, {f"{inner_path}/{name}": content for name, content in contents.items()})
            return


def keep(path: Path) -> None:
    """Renames a foreign file to `NAME.kept-N`, and logs a warning."""
    new_path = _free_name(path)
    path.rename(new_path)
    _warn_kept(path.parent, path.name, new_path.name)


def _warn_kept(folder: Path, name: str, new_name: str) -> None:
    _LOG.warning("%s: %s is not as tidegate wrote it; it is kept as %s", folder, name, new_name)


# --- the exchange ---------------------------------------------------------------------------------


def _put_in_place(draft: Path, destination: Path, typed: Path) -> None:
    """Puts the completed folder in its place, together with the foreign files of the folder that it replaces."""
    if not destination.exists():
        usual_mode(draft, 0o777)
        (draft / _UNFINISHED).unlink()
        draft.rename(destination)
        return
    manifest = Manifest.read(destination) or Manifest("", {})
    # our files, each with a stamp that shows whether it was changed meanwhile
    ours = {name: _stamp(destination / name) for name in _files(destination) if manifest.has(destination, name)}
    _adopt(destination, [name for name in _leaves(destination) if name not in ours], draft, typed)
    (draft / _UNFINISHED).unlink()
    draft.chmod(stat.S_IMODE(destination.stat().st_mode))
    if not _exchange(draft, destination):
        old = destination.with_name(f"{_temporary_name(destination, _OLD)}{secrets.token_hex(4)}")
        destination.rename(old)
        try:
            draft.rename(destination)
        except OSError:
            old.rename(destination)
            raise
        draft = old
    # files that cannot be deleted now are deleted by the next run
    with suppress(OSError):
        _clear(draft, destination, ours)


def _adopt(old: Path, names: Iterable[str], new: Path, typed: Path) -> None:
    """Links foreign files of one folder into another, under a new name where the name is in use."""
    moved: dict[Path, Path] = {}
    for name in names:
        source, target = old, new
        parts = Path(name).parts
        for number, part in enumerate(parts):
            source, wanted = source / part, target / part
            both_folders = _is_folder(source) and _is_folder(wanted)
            if source not in moved:
                moved[source] = wanted if both_folders or not os.path.lexists(wanted) else _free_name(wanted, source)
                if moved[source] != wanted:
                    _warn_kept(typed, name, Path(*parts[:number], moved[source].name).as_posix())
            target = moved[source]
            if _is_folder(source):
                target.mkdir(exist_ok=True)
        if not _is_folder(source):
            _link(source, target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (OSError, NotImplementedError):
        # a file system without hard links
        shutil.copy2(source, target, follow_symlinks=False)


def _clear(old: Path, destination: Path, ours: Mapping[str, tuple[int, ...]] | None = None) -> None:
    """Removes a folder that was exchanged or never finished; moves foreign files that only it has to `destination`."""
    if not _is_folder(old):
        return
    if (old / _UNFINISHED).exists():
        # never moved into place: its foreign files are links to files that are still in place
        shutil.rmtree(old, ignore_errors=True)
        return
    manifest = Manifest.read(old) or Manifest("", {})
    present = {_inode(destination / name) for name in _files(destination)} if destination.is_dir() else set()
    for name in list(_files(old)):
        path = old / name
        unchanged = ours is not None and name in ours and ours[name] == _stamp(path)
        if (
            unchanged
            or (ours is None and manifest.has(old, name))
            or _inode(path) in present
            or _is_copied(path, destination / name)
        ):
            path.unlink()
            continue
        # written by another program between our check and the exchange
        target = destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(target):
            target = _free_name(target)
            _warn_kept(destination, name, target.name)
        path.rename(target)
    for folder, _, _ in os.walk(old, topdown=False):
        Path(folder).rmdir()


def _is_copied(path: Path, target: Path) -> bool:
    candidates = [target, *target.parent.glob(f"{glob.escape(target.name)}.kept-*")]
    return any(
        candidate.is_file() and path.is_file() and filecmp.cmp(path, candidate, shallow=False)
        for candidate in candidates
    )


def _clear_leftovers(destination: Path) -> None:
    """Puts back or removes folders that a killed run left beside a result, but none that a running process uses."""
    leftovers = [folder for folder in _leftovers(destination) if _is_folder(folder)]
    for folder in leftovers:
        if folder.name.startswith(_temporary_name(destination, _OLD)) and not destination.exists():
            folder.rename(destination)
    for folder in leftovers:
        if _is_folder(folder) and (held := _try_lock(folder)) is not None:
            with suppress(OSError):
                _clear(folder, destination)
            os.close(held)


def _leftovers(destination: Path) -> list[Path]:
    return sorted(destination.parent.glob(f"{glob.escape(_temporary_name(destination, ''))}*"))


def _temporary_name(destination: Path, suffix: str) -> str:
    return f".{destination.name}{TEMPORARY}{suffix}"


def _exchange(draft: Path, target: Path) -> bool:
    """Exchanges two folders in one step; False where the system cannot."""
    if sys.platform != "linux":
        return False
    at_current_folder, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2(2)
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if call(at_current_folder, os.fsencode(draft), at_current_folder, os.fsencode(target), ctypes.c_uint(swap)) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
        return False
    raise OSError(code, os.strerror(code), str(target))


# --- locks against other processes ----------------------------------------------------------------


def lock(handle: int, *, wait: bool) -> None:
    """Locks an open folder until its handle is closed or the process ends; Windows has no such locks.

    Raises:
        BlockingIOError: another process has locked it, and this one should not wait.
        OSError: the file system has no locks.
    """
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Prevents other processes and threads from clearing or exchanging folders in `folder` meanwhile."""
    if sys.platform == "win32":
        yield
        return
    handle = None
    try:
        with suppress(OSError):  # a folder that cannot be read, a file system without locks
            handle = os.open(folder, os.O_RDONLY)
            lock(handle, wait=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _try_lock(folder: Path) -> int | None:
    """Locks a folder until the returned handle is closed or the process ends; `None` if another process has it."""
    if sys.platform == "win32":
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle, wait=False)
    except OSError:
        os.close(handle)
        return None
    return handle


# --- looking around -------------------------------------------------------------------------------


def _files(folder: Path) -> Iterator[str]:
    """Files and links below a folder, as relative paths with slashes; links are not followed."""
    for top, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(top) / name).is_symlink()]
        for name in (*files, *links):
            yield (Path(top) / name).relative_to(folder).as_posix()


def _leaves(folder: Path) -> Iterator[str]:
    """Files, links and empty folders below a folder, as relative paths with slashes."""
    yield from _files(folder)
    for top, folders, files in os.walk(folder):
        if not folders and not files and Path(top) != folder:
            yield Path(top).relative_to(folder).as_posix()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _inode(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def _stamp(path: Path) -> tuple[int, ...]:
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _free_name(path: Path, beside: Path | None = None) -> Path:
    """Path `NAME.kept-N` that is free in the folder of `path`, and by name also in the folder of `beside`."""
    number = 1
    while True:
        candidate = path.with_name(f"{path.name}.kept-{number}")
        if not os.path.lexists(candidate) and not (
            beside is not None and os.path.lexists(beside.with_name(candidate.name))
        ):
            return candidate
        number += 1
