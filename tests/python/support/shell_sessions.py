"""Sessions of `tidegate shell`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support import environment


def shell(
    folder: Path, *typed: str, programs: tuple[str, ...], timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """A session of programs in Python."""
    ends = [word for text in programs for word in ("--", sys.executable, "-c", text)]
    command = [sys.executable, "-m", "tidegate", "shell", *typed, *ends]
    # each program prints all of its lines at its end, in one write: lines of two programs are not mixed
    env = environment(PYTHONUNBUFFERED="")
    return subprocess.run(
        command,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON of a session, after what the programs have printed."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{\n") :])
    return found
