"""Enters a session from another terminal, by its name."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidegate.errors import InputError, did_you_mean
from tidegate.shell._files import FOLDER_PREFIX, READY
from tidegate.shell._network import ENDS, environment


def _registry() -> Path:
    """The folder that lists a user's sessions; no other user may write there."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "tidegate" if runtime else Path(tempfile.gettempdir()) / f"tidegate-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise InputError(f"{folder}: another user owns the folder or may write to it; expected a folder of yours alone")
    return folder


def alive(pid: int) -> bool:
    """Whether a process of ours has this number."""
    with suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def _sessions() -> dict[str, dict[str, Any]]:
    sessions = {}
    for file in sorted(_registry().glob("*.json")):
        with suppress(OSError, ValueError):
            session = json.loads(file.read_text(encoding="utf-8"))
            if alive(session["pid"]):
                sessions[file.stem] = session
            else:
                # it was killed and cannot be completed: its files are removed, as it would have done itself
                folder = Path(session["place"])
                if folder.name.startswith(FOLDER_PREFIX):
                    shutil.rmtree(folder, ignore_errors=True)
                file.unlink()
    return sessions


def names() -> list[str]:
    """Names of the running sessions."""
    return list(_sessions())


@contextmanager
def announced(name: str, folder: Path, pid: int) -> Iterator[str]:
    """Lists a session while it runs, under its scenario's name, with a number if that name is in use."""
    taken = names()
    free = next(
        candidate
        for candidate in (name, *(f"{name}-{number}" for number in range(2, 10_000)))
        if candidate not in taken
    )
    file = _registry() / f"{free}.json"
    file.write_text(json.dumps({"pid": pid, "place": str(folder)}), encoding="utf-8")
    try:
        yield free
    finally:
        file.unlink(missing_ok=True)


def command(name: str) -> tuple[list[str], dict[str, str]]:
    """The command that runs another one in a session, and the environment for it.

    Args:
        name: Name of the session, for its end B; with `:A` behind it end A, and so on.

    Raises:
        InputError: when there is no such session.
    """
    wanted, _, end = name.partition(":")
    if end and end not in list(ENDS):
        raise InputError(f"--enter {name}: found end {end}; expected a letter from {ENDS[0]} to {ENDS[-1]}")
    sessions = _sessions()
    if wanted not in sessions:
        hint = (
            did_you_mean(wanted, sessions) or f"; available: {', '.join(sessions)}"
            if sessions
            else "; no session is running"
        )
        raise InputError(f"--enter {name}: there is no session of this name{hint}")
    session = sessions[wanted]
    try:
        # unshare waits for the process inside, its one child
        children = Path(f"/proc/{session['pid']}/task/{session['pid']}/children").read_text(encoding="ascii").split()
        inside = int(children[0])
        networks = json.loads((Path(session["place"]) / READY).read_text(encoding="utf-8"))
    except (OSError, IndexError, ValueError):
        raise InputError(f"--enter {name}: the session is beginning or ending; try again in a second") from None
    end = end or "B"
    if end not in networks:
        right = " or ".join(f"{wanted}:{letter}" for letter in networks)
        raise InputError(f"--enter {name}: found end {end}; expected {right}")
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    network = f"--net=/proc/{inside}/fd/{networks[end]}"
    entering = ["nsenter", f"--target={inside}", *user, "--mount", "--pid", network, "--"]
    without_rights = [sys.executable, "-P", "-m", "tidegate.shell._entered"]
    return [*entering, *without_rights], environment(end, list(networks))
