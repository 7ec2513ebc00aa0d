"""Into a session from another terminal, by its name."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidegate.errors import InputError, did_you_mean
from tidegate.shell._files import PLACE, READY
from tidegate.shell._network import ENDS, environment


def _registry() -> Path:
    """The folder in which a user's sessions are listed; nobody else may write there."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "tidegate" if runtime else Path(tempfile.gettempdir()) / f"tidegate-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = folder.lstat()
    if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.getuid() or told.st_mode & 0o022:
        raise InputError(f"{folder}: belongs to somebody else, or others may write there; expected a folder of yours")
    return folder


def alive(pid: int) -> bool:
    """Whether there is a process of ours of that number."""
    with suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def _sessions() -> dict[str, dict[str, Any]]:
    found = {}
    for file in sorted(_registry().glob("*.json")):
        with suppress(OSError, ValueError):
            one = json.loads(file.read_text(encoding="utf-8"))
            if alive(one["pid"]):
                found[file.stem] = one
            else:
                # it was killed: its files, which nothing can finish any more, are cleared as it would have done
                place = Path(one["place"])
                if place.name.startswith(PLACE):
                    shutil.rmtree(place, ignore_errors=True)
                file.unlink()
    return found


def names() -> list[str]:
    """The sessions that are on."""
    return list(_sessions())


@contextmanager
def announced(name: str, place: Path, pid: int) -> Iterator[str]:
    """Lists a session while it is on, under its scenario's name, with a number if there is one of that name."""
    taken = names()
    free = next(one for one in (name, *(f"{name}-{number}" for number in range(2, 10_000))) if one not in taken)
    file = _registry() / f"{free}.json"
    file.write_text(json.dumps({"pid": pid, "place": str(place)}), encoding="utf-8")
    try:
        yield free
    finally:
        file.unlink(missing_ok=True)


def command(name: str) -> tuple[list[str], dict[str, str]]:
    """What goes into a session: a command before that of the program, and the environment.

    Args:
        name: The session's; its end B, or with `:A` behind it end A, and so on.

    Raises:
        InputError: when there is no such session.
    """
    wanted, _, end = name.partition(":")
    if end and end not in list(ENDS):
        raise InputError(f"--enter {name}: found end {end}; expected a letter from {ENDS[0]} to {ENDS[-1]}")
    known = _sessions()
    if wanted not in known:
        hint = did_you_mean(wanted, known) or f"; there are {', '.join(known)}" if known else "; there is none"
        raise InputError(f"--enter {name}: no such session{hint}")
    one = known[wanted]
    try:
        # unshare waits for the process inside, its one child
        children = Path(f"/proc/{one['pid']}/task/{one['pid']}/children").read_text(encoding="ascii").split()
        inside = int(children[0])
        networks = json.loads((Path(one["place"]) / READY).read_text(encoding="utf-8"))
    except (OSError, IndexError, ValueError):
        raise InputError(f"--enter {name}: the session is beginning or ending; try again in a second") from None
    end = end or "B"
    if end not in networks:
        right = " or ".join(f"{wanted}:{one}" for one in networks)
        raise InputError(f"--enter {name}: found end {end}; expected {right}")
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    network = f"--net=/proc/{inside}/fd/{networks[end]}"
    entering = ["nsenter", f"--target={inside}", *user, "--mount", "--pid", network, "--"]
    return entering, environment(end, list(networks))
