"""What several test modules use."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

HALF_A_MEGABIT = """
[[rules]]
name = "rate"
says = "carries half a megabit"
metric = "receive_rate_bps"
at_least = 500_000
source = "here"
"""
"""A rule of suites, as several tests write one."""

NO_WIFI = """
[[cases]]
name = "wifi"
not_run = "no Wi-Fi node"
"""
"""A case of suites that is not run."""


@dataclass(frozen=True)
class Outcome:
    """What a command line came to."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


def example(name: str, folder: str = "docs/examples") -> ModuleType:
    """A program of the documentation, or of another folder, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


ARRIVALS = (
    "number,at_ns,clamped_ns,from,flow,size,ecn,protocol,address_a,port_a,address_b,port_b,"
    "ssrc,sequence,timestamp,payload_type,marker"
)
"""The first line of a session's `arrivals.csv`."""


def environment(**more: str) -> dict[str, str]:
    """Of a process that runs this tree's tidegate."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "python"), **more}


def as_script(folder: Path) -> list[str]:
    """The command line as its script begins it, without the present folder on its path; `folder` takes the script."""
    script = folder / "tidegate-script"
    script.write_text("from tidegate.__main__ import script\n\nif __name__ == '__main__':\n    script()\n")
    return [sys.executable, str(script)]


def need_namespaces() -> None:
    """Skips a module whose tests make sessions of real programs where there are none to be had, with the reason."""
    if sys.platform != "linux":
        pytest.skip("sessions of real programs need Linux", allow_module_level=True)
    from tidegate import InputError
    from tidegate.shell import check_environment

    try:
        check_environment()
    except InputError as reason:
        pytest.skip(str(reason), allow_module_level=True)


def begin(argv: Sequence[str], folder: Path, *, start_new_session: bool = False, **more: str) -> subprocess.Popen[str]:
    """Starts the command line in a process of its own, with `more` in its environment."""
    env = environment(**more)
    env.pop("TIDEGATE_DEBUG", None)
    return subprocess.Popen(
        [sys.executable, "-m", "tidegate", *argv],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
    )


def interrupt(
    process: subprocess.Popen[str],
    ready: Path,
    more_than: int = 0,
    number: signal.Signals = signal.SIGINT,
    *,
    group: bool = False,
    handled: bool = True,
) -> tuple[int, str, str]:
    """Ctrl-C, or another signal, for the process or its whole group, once the file `ready` is there, or a folder of that name holds more than so many results, and (if `handled`) the process has a handler for it; then what came of it.

    Never after a fixed time: on a busy machine a program may still be loading after any, or between two pieces of work, where a signal ends it.
    """
    end = time.monotonic() + 120
    while not (
        (len(list(ready.glob("*.json"))) > more_than if ready.is_dir() else ready.exists())
        and (not handled or handles(process, number))
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it never began"
        time.sleep(0.02)
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def handles(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal, by Linux' /proc; on other systems it is unknown, and counts as one."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return True
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    return caught is None or bool(int(caught[1], 16) >> (number - 1) & 1)


def shared() -> Path:
    """The folder of vectors and recordings beside the checkout; skips the test where it is absent."""
    places = [os.environ.get("TIDEGATE_SHARED"), str(ROOT.parent / "shared")]
    for place in filter(None, places):
        if Path(place).is_dir():
            return Path(place)
    pytest.skip("needs the shared folder (TIDEGATE_SHARED, or ../shared beside the checkout)")


def ordinary_user(folder: Path) -> tuple[list[str], str, dict[str, str]]:
    """For root: what makes a command one of user 1000, a Python that it may run, and its environment.

    The folder becomes its home. Skips the test where there is no such Python, or namespaces are forbidden.
    """
    folder.chmod(0o777)
    from tidegate.shell.sessions import unshare

    user = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]
    paths = os.pathsep.join([str(ROOT / "python"), *(path for path in sys.path if path.endswith("site-packages"))])
    env = {**os.environ, "PYTHONPATH": paths, "HOME": str(folder), "TMPDIR": str(folder)}
    for python in (sys.executable, "/usr/bin/python3"):
        # through a shell: setpriv itself may still execute what only root may
        tried = [*user, "sh", "-c", 'exec "$0" -c "import tidegate.runs"', python]
        if subprocess.run(tried, env=env, cwd=folder, capture_output=True, check=False).returncode == 0:
            break
    else:
        pytest.skip("no Python here that an ordinary user may run")
    if subprocess.run([*user, *unshare(1000), "true"], capture_output=True, check=False).returncode:
        pytest.skip("an ordinary user may not make namespaces here")
    return user, python, env


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


def jain(rates: Sequence[float]) -> float:
    """Jain's index of fairness (RFC 5166 section 2.3)."""
    return sum(rates) ** 2 / len(rates) / sum(rate * rate for rate in rates)


def markdown(head: Sequence[str], words: int, rows: Iterable[Sequence[Any]]) -> str:
    """A table whose first so many columns are words, and the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * words + "--:|" * (len(head) - words)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""])


def _with_table(page: Path, name: str, text: str) -> str:
    """A page of the documentation with `text` as the table of that name."""
    # up to the next mark and not beyond it
    marked = re.compile(rf"(<!-- table: {name} -->\n)[^<]*(<!-- end -->)")
    now = page.read_text("utf-8")
    assert marked.search(now), f"{page.name} has no place for the table {name}"
    return marked.sub(lambda match: f"{match[1]}\n{text}\n{match[2]}", now)


def write_table(page: Path, name: str, text: str) -> None:
    """Writes a table into its place in a page of the documentation."""
    page.write_text(_with_table(page, name, text), "utf-8")


def check_table(page: Path, name: str, text: str) -> None:
    """The table of that name in a page of the documentation is `text`; TIDEGATE_BLESS=1 writes it there."""
    if os.environ.get("TIDEGATE_BLESS") == "1":
        write_table(page, name, text)
    assert page.read_text("utf-8") == _with_table(page, name, text), (
        f"the table {name} in {page.name} is an old one (TIDEGATE_BLESS=1 writes it); now:\n{text}"
    )


def rotation() -> int:
    """A number that another commit changes: which part of what is too long for each run comes next.

    The number of commits; in a shallow clone, or without git, the day. TIDEGATE_ROTATION=N repeats another run's.
    """
    known = os.environ.get("TIDEGATE_ROTATION")
    if known is None:
        git = ["git", "-C", str(ROOT)]
        whole = subprocess.run(
            [*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=False
        )
        commits = subprocess.run([*git, "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False)
        day = str(datetime.now(tz=UTC).toordinal())
        # for processes of tests, too, which have to draw the same
        known = os.environ["TIDEGATE_ROTATION"] = commits.stdout.strip() if whole.stdout.strip() == "false" else day
    return int(known)
