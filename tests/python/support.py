"""What several test modules use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a command line came to."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


def begin(argv: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Starts the command line in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    env.pop("TIDEGATE_DEBUG", None)
    return subprocess.Popen(
        [sys.executable, "-m", "tidegate", *argv],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(process: subprocess.Popen[str], ready: Path | None, more_than: int = 1) -> tuple[int, str, str]:
    """Ctrl-C once enough is done (or after a moment), then what came of it."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if ready is not None and ready.is_dir() and len(list(ready.glob("*.json"))) > more_than:
            break
        if ready is None and end - time.monotonic() < 57:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def shared() -> Path:
    """The folder of vectors and recordings beside the checkout; skips the test where it is absent."""
    places = [os.environ.get("TIDEGATE_SHARED"), str(ROOT.parent / "shared")]
    for place in filter(None, places):
        if Path(place).is_dir():
            return Path(place)
    pytest.skip("needs the shared folder (TIDEGATE_SHARED, or ../shared beside the checkout)")


PLAIN = """\
duration = "4s"

[[links]]
name = "cable"
capacity = "2Mbps"
delay = "10ms"

[[flows]]
name = "call"
media = { controller = "gcc" }
"""
"""A small scenario that works."""
