"""Folders of results: they appear whole or not at all, and nothing in them that is somebody else's is lost.

A folder lists in `manifest.json` what tidegate wrote there, with hashes of the contents. Everything else in it is
*foreign*: what is not in the list, and what was changed since. A new result is completed in a folder beside the old
one, foreign files are linked into it, and the two are exchanged in one step; only then what was ours goes from the
old one. A process that is killed at any moment leaves the old result or the new one in its place, and a folder
`.NAME.tidegate-...` beside it, which the next run clears. Where the system cannot exchange two folders, two renames
do it; a kill between them leaves the old result as `.NAME.tidegate-old-...`, and the next run puts it back.
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

from tidegate._files import TEMPORARY, named, sha256, usual_mode, write_file
from tidegate.errors import OutputError

if sys.platform != "win32":
    import fcntl

MANIFEST = "manifest.json"
"""The list of what tidegate wrote into a folder."""

_ABOUT = "What tidegate wrote into this folder, by SHA-256. Other files here are yours and are kept."
_FORMAT = 1
_UNFINISHED = ".unfinished"
_NEW, _OLD = "new-", "old-"
_DEEPEST = 2  # folders between a result and one that it is a part of

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Manifest:
    """What tidegate wrote into a folder."""

    kind: str
    """The file that every result of this kind has."""
    files: Mapping[str, str]
    """SHA-256 by path in the folder, with slashes."""

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """That of a folder, if it has one that is whole."""
        try:
            data = json.loads((folder / MANIFEST).read_bytes())
            kind, files = data["kind"], data["files"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return None
        whole = data.get("format") == _FORMAT and isinstance(kind, str) and isinstance(files, dict)
        return cls(kind, files) if whole and all(isinstance(one, str) for one in files.values()) else None

    def write(self, folder: Path) -> None:
        """Puts it into a folder."""
        data = {"about": _ABOUT, "format": _FORMAT, "kind": self.kind, "files": dict(sorted(self.files.items()))}
        write_file(folder / MANIFEST, json.dumps(data, indent=1) + "\n")

    def has(self, folder: Path, name: str) -> bool:
        """Whether a file is ours, as it was written."""
        if name == MANIFEST:
            return True
        path = folder / name
        with suppress(OSError):
            return name in self.files and stat.S_ISREG(path.lstat().st_mode) and sha256(path) == self.files[name]
        return False


def check_folder(path: Path, kind: str, *, exchanged: bool = True) -> Path:
    """Whether a result may go to `path`, before any work is done; clears up after a run that was killed there.

    Args:
        path: Where it is to go.
        kind: A file that every result of this kind has.
        exchanged: Whether it is to take the place of what is there as a whole.

    Returns:
        The place, without symbolic links.

    Raises:
        OutputError: when it cannot be written, or what is there is not ours.
    """
    with named(path):
        place = path.resolve()
        parent = next(folder for folder in place.parents if folder.exists())
        if not parent.is_dir():
            raise OutputError(f"{path}: {parent} is no folder")
        # asking is better than os.access, which says yes to root on a read-only file system
        handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=parent)
        os.close(handle)
        Path(name).unlink()
        if parent == place.parent:
            with _alone(parent):
                _clear_leftovers(place)
        if place.is_dir():
            _check_ours(path, place, kind)
            if exchanged and place in (here := Path.cwd(), *here.parents):
                why = "is the folder that you are in, and cannot be exchanged"
                raise OutputError(f"{path}: {why}; choose one inside it")
        elif place.exists():
            raise OutputError(f"{path}: is a file; expected a folder, or nothing yet")
    return place


def _check_ours(path: Path, place: Path, kind: str) -> None:
    manifest = Manifest.read(place)
    if manifest is None:
        if not any(place.iterdir()):
            return
        if (place / MANIFEST).is_file() and (place / kind).is_file():
            why = f"its {MANIFEST} is damaged, so that nobody knows which of its files are yours"
            raise OutputError(f"{path}: {why}; choose another folder, or move this one away")
        if (place / kind).is_file():
            why = f"holds a result without a list of its files (no {MANIFEST}), as earlier versions wrote them"
            raise OutputError(f"{path}: {why}; choose another folder, or move this one away")
        why = f"there is something else in it (no {MANIFEST} of tidegate); choose an empty or a new folder"
        raise OutputError(f"{path}: {why}")
    if manifest.kind != kind:
        why = f"holds another kind of result ({manifest.kind}; this would be {kind}); choose an empty or a new folder"
        raise OutputError(f"{path}: {why}")


@contextmanager
def write_folder(path: Path, kind: str) -> Iterator[Path]:
    """A folder to fill that takes its place only when it is complete.

    Args:
        path: Its name in the end. An earlier result of the same kind there is replaced; foreign files stay, and
            one whose name the new result needs is kept as `NAME.kept-N`, which is logged as a warning.
        kind: A file that every result of this kind has.

    Raises:
        OutputError: when it cannot be written, or what is there is not ours.
    """
    place = check_folder(path, kind)
    with named(path):
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(place.parent):
            making = Path(tempfile.mkdtemp(prefix=_beside(place, _NEW), dir=place.parent))
            (making / _UNFINISHED).touch()
            held = _hold(making)
    try:
        yield making
        with named(path):
            names = sorted(name for name in _files(making) if name != _UNFINISHED)
            Manifest(kind, {name: sha256(making / name) for name in names}).write(making)
            with _alone(place.parent):
                _take_place(making, place, shown=path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            _clear(making, place)
        if held is not None:
            os.close(held)


def begin_folder(path: Path, kind: str) -> None:
    """A folder of ours to which files are added one by one, made if it is not there.

    Raises:
        OutputError: when it cannot be written, or what is there is not ours.
    """
    place = check_folder(path, kind, exchanged=False)
    with named(path):
        place.mkdir(parents=True, exist_ok=True)
        if Manifest.read(place) is None:
            Manifest(kind, {}).write(place)


def add_file(folder: Path, name: str, data: str | bytes) -> None:
    """Writes a file; in a folder of ours it is listed, and a foreign one of that name is kept.

    Raises:
        OutputError: when it cannot be written.
    """
    path = folder / name
    manifest = Manifest.read(folder)
    with named(path):
        if manifest is not None and path.is_file() and not manifest.has(folder, name):
            keep(path)
    write_file(path, data)
    if manifest is not None:
        _list(folder, {name: sha256(path)})


def _list(folder: Path, added: Mapping[str, str]) -> None:
    """Lists further files as ours, also in the manifest of the result that this one is a part of."""
    manifest = Manifest.read(folder)
    if manifest is None:
        return
    before = sha256(folder / MANIFEST)
    Manifest(manifest.kind, {**manifest.files, **added}).write(folder)
    for whole in folder.resolve().parents[:_DEEPEST]:
        part = folder.resolve().relative_to(whole).as_posix()
        outer = Manifest.read(whole)
        if outer is not None and outer.files.get(f"{part}/{MANIFEST}") == before:
            inner = {MANIFEST: sha256(folder / MANIFEST), **added}
            _list(whole, {f"{part}/{name}": content for name, content in inner.items()})
            return


def keep(path: Path) -> None:
    """Moves a foreign file out of the way, and says so."""
    kept = _free(path)
    path.rename(kept)
    _tell(path.parent, path.name, kept.name)


def _tell(folder: Path, name: str, kept: str) -> None:
    _LOG.warning("%s: %s is not as tidegate wrote it; it is kept as %s", folder, name, kept)


# --- the exchange ---------------------------------------------------------------------------------


def _take_place(making: Path, place: Path, shown: Path) -> None:
    """Puts the completed folder where it belongs, with what is foreign in the one that is there."""
    if not place.exists():
        usual_mode(making, 0o777)
        (making / _UNFINISHED).unlink()
        making.rename(place)
        return
    manifest = Manifest.read(place) or Manifest("", {})
    # what was ours, with what tells that it has not been changed meanwhile
    ours = {name: _stamp(place / name) for name in _files(place) if manifest.has(place, name)}
    _adopt(place, [name for name in _leaves(place) if name not in ours], making, shown)
    (making / _UNFINISHED).unlink()
    making.chmod(stat.S_IMODE(place.stat().st_mode))
    if not _exchange(making, place):
        old = place.with_name(f"{_beside(place, _OLD)}{secrets.token_hex(4)}")
        place.rename(old)
        try:
            making.rename(place)
        except OSError:
            old.rename(place)
            raise
        making = old
    # what cannot be cleared now is cleared by the next run
    with suppress(OSError):
        _clear(making, place, ours)


def _adopt(old: Path, names: Iterable[str], new: Path, shown: Path) -> None:
    """Links what is foreign in one folder into another, under another name where the name is taken."""
    moved: dict[Path, Path] = {}
    for name in names:
        source, target = old, new
        parts = Path(name).parts
        for number, part in enumerate(parts):
            source, wanted = source / part, target / part
            both_folders = _is_folder(source) and _is_folder(wanted)
            if source not in moved:
                moved[source] = wanted if both_folders or not os.path.lexists(wanted) else _free(wanted, source)
                if moved[source] != wanted:
                    _tell(shown, name, Path(*parts[:number], moved[source].name).as_posix())
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


def _clear(old: Path, place: Path, ours: Mapping[str, tuple[int, ...]] | None = None) -> None:
    """Removes a folder that was exchanged or never finished; what is foreign and only here goes to `place`."""
    if not _is_folder(old):
        return
    if (old / _UNFINISHED).exists():
        # never in its place: what is foreign here are links to what is there
        shutil.rmtree(old, ignore_errors=True)
        return
    manifest = Manifest.read(old) or Manifest("", {})
    there = {_inode(place / name) for name in _files(place)} if place.is_dir() else set()
    for name in list(_files(old)):
        path = old / name
        known = ours is not None and name in ours and ours[name] == _stamp(path)
        if (
            known
            or (ours is None and manifest.has(old, name))
            or _inode(path) in there
            or _is_copied(path, place / name)
        ):
            path.unlink()
            continue
        # somebody wrote it between our look and the exchange
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(target):
            target = _free(target)
            _tell(place, name, target.name)
        path.rename(target)
    for folder, _, _ in os.walk(old, topdown=False):
        Path(folder).rmdir()


def _is_copied(path: Path, target: Path) -> bool:
    every = [target, *target.parent.glob(f"{glob.escape(target.name)}.kept-*")]
    return any(one.is_file() and path.is_file() and filecmp.cmp(path, one, shallow=False) for one in every)


def _clear_leftovers(place: Path) -> None:
    """Puts back, or removes, what a killed run left beside a folder; nothing that a run at work needs."""
    beside = [one for one in _leftovers(place) if _is_folder(one)]
    for one in beside:
        if one.name.startswith(_beside(place, _OLD)) and not place.exists():
            one.rename(place)
    for one in beside:
        if _is_folder(one) and (held := _hold(one)) is not None:
            with suppress(OSError):
                _clear(one, place)
            os.close(held)


def _leftovers(place: Path) -> list[Path]:
    return sorted(place.parent.glob(f"{glob.escape(_beside(place, ''))}*"))


def _beside(place: Path, what: str) -> str:
    return f".{place.name}{TEMPORARY}{what}"


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two folders in one step; False where the system cannot."""
    if sys.platform != "linux":
        return False
    here, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2(2)
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if call(here, os.fsencode(one), here, os.fsencode(other), ctypes.c_uint(swap)) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
        return False
    raise OSError(code, os.strerror(code), str(other))


# --- who else is at work --------------------------------------------------------------------------


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps other processes and threads from clearing or exchanging folders in `folder` meanwhile."""
    if sys.platform == "win32":
        yield
        return
    handle = None
    try:
        with suppress(OSError):  # a folder that cannot be read, a file system without locks
            handle = os.open(folder, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _hold(folder: Path) -> int | None:
    """A lock on a folder that ends with the process, as a handle to be closed; None if somebody has it."""
    if sys.platform == "win32":
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


# --- looking around -------------------------------------------------------------------------------


def _files(folder: Path) -> Iterator[str]:
    """Everything in a folder that is no folder, as paths with slashes; links are not followed."""
    for top, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(top) / name).is_symlink()]
        for name in (*files, *links):
            yield (Path(top) / name).relative_to(folder).as_posix()


def _leaves(folder: Path) -> Iterator[str]:
    """The same with the folders that are empty."""
    yield from _files(folder)
    for top, folders, files in os.walk(folder):
        if not folders and not files and Path(top) != folder:
            yield Path(top).relative_to(folder).as_posix()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _inode(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.lstat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _free(path: Path, beside: Path | None = None) -> Path:
    """A name that is free there, and in the folder of `beside`."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.kept-{number}")
        if not os.path.lexists(kept) and not (beside is not None and os.path.lexists(beside.with_name(kept.name))):
            return kept
        number += 1
