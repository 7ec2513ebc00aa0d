"""A session from outside: it is begun, waited for, and done again in virtual time for its results."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Self

from tidegate import _core
from tidegate.errors import InputError, RunError
from tidegate.runs import Run, engine_errors, run_of
from tidegate.scenario import Scenario, memory
from tidegate.scenario.lower import lower
from tidegate.shell._files import FAILED, PLACE, TOLD
from tidegate.shell._judging import Lateness, verdict
from tidegate.shell._network import ENDS
from tidegate.shell._scenario import with_programs
from tidegate.shell._streams import Stream, streams
from tidegate.shell.entering import announced

FILES = ("arrivals.csv", "fates.csv", TOLD)
"""What a session leaves in its folder beside a run's files."""

Realtime = Literal["auto", "off"]


@dataclass(frozen=True)
class Programs:
    """What runs at the ends: a program and its arguments, the user's shell at this terminal, or nobody."""

    a: Sequence[str] | Literal["shell"]
    """Where the scenario's call is sent from."""
    b: Sequence[str] | Literal["shell"] | None
    """Where it is received; None: nobody, until somebody comes by `tidegate shell --enter`."""
    more: Sequence[Sequence[str]] = ()
    """Further ones: C beside A, D beside B, and so on, up to H."""


@dataclass(frozen=True)
class Session:
    """A session that is over: the run, and what the clocks had to do with it."""

    run: Run
    """The same arrivals in virtual time: tables and metrics as of any run."""
    about: Mapping[str, Any]
    """What `session.json` holds."""
    differs: str | None
    """Where the replay differs from the session; None: each due time and each drop is the same, to the nanosecond."""
    streams: list[Stream]
    """The RTP streams that were seen, each with its losses and frames."""
    folder: Path
    """Where its files are, as long as the session's context lasts."""

    @property
    def lateness(self) -> Lateness:
        """How late packets were written."""
        return Lateness(**self.about["lateness"])

    @property
    def verdict(self) -> tuple[str, list[str]]:
        """`quiet` or `noisy`, and what speaks against it."""
        return verdict(self.about)

    def save(self, out: str | Path) -> Path:
        """Writes the run's folder with the session's files in it.

        Raises:
            OutputError: when it cannot be written, or something else is there.
        """
        captures = sorted(self.folder.glob("packets-*.pcapng"))
        return self.run.save(out, also=[*(self.folder / name for name in FILES), *captures])


def check_surroundings(*more: str) -> None:
    """Whether sessions can be had here.

    Args:
        more: Tools that are needed beyond those of every session.

    Raises:
        InputError: with the reason and what would help.
    """
    if sys.platform != "linux":
        raise InputError("tidegate shell needs Linux: network namespaces and packet sockets")
    missing = [name for name in ("unshare", "ip", *more) if shutil.which(name, path=search_path()) is None]
    if missing:
        packages = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2"}
        wanted = " and ".join(f"{name} (package {packages[name]})" for name in missing)
        raise InputError(f"tidegate shell needs {wanted}, which is not installed here")
    told = subprocess.run(  # noqa: S603
        [*unshare(os.geteuid()), "true"], capture_output=True, text=True, env=_environment(), check=False
    )
    if told.returncode:
        said = told.stderr.strip().splitlines()
        raise InputError(f"namespaces cannot be made here: {said[-1] if said else told.returncode}; {_remedy()}")


def _remedy() -> str:
    """What would help against namespaces that are forbidden."""

    def number(file: str) -> int | None:
        with suppress(OSError, ValueError):
            return int(Path(file).read_text(encoding="ascii"))
        return None

    if number("/proc/sys/user/max_user_namespaces") == 0:
        return "sysctl user.max_user_namespaces is 0; an administrator can raise it"
    if number("/proc/sys/kernel/unprivileged_userns_clone") == 0:
        return "an administrator can allow it with sysctl kernel.unprivileged_userns_clone=1"
    if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
        return "an administrator can allow it with sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    return "in a container it needs --privileged, or seccomp and /proc as on a host"


def search_path() -> str:
    """Where programs are: administrators' ones, too, which users' shells leave out."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": search_path()}


def unshare(uid: int) -> list[str]:
    """The command that begins a session: its namespaces, and init in them, which dies with it."""
    # --mount-proc: programs see their own processes. A user is mapped to itself: mapped to root, Chromium refuses to
    # run with its sandbox. --keep-caps: else the rights in the namespaces end with the next program
    user = [] if uid == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return ["unshare", *user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def user_shell() -> list[str]:
    """The shell of the user."""
    return [os.environ.get("SHELL") or "/bin/sh"]


@contextmanager
def session(
    scenario: Scenario,
    programs: Programs,
    *,
    call: str | None = None,
    seed: int | None = None,
    record: str | None = None,
    realtime: Realtime = "auto",
    pcap: bool = False,
) -> Iterator[Session]:
    """Runs programs on the links of a scenario, until they have ended or the scenario's duration is over.

    A context manager: the session's files are in a folder that lasts as long as the context.

    Args:
        scenario: Links and other flows; see [with_programs][tidegate.shell.with_programs].
        programs: What runs at the ends.
        call: The flow that the programs replace.
        seed: Instead of the scenario's.
        record: How much is kept, instead of the scenario's: summary, series or packets.
        realtime: `auto` takes a real-time priority where it may.
        pcap: Whether what each side's device saw is kept, for Wireshark.

    Raises:
        InputError: when the scenario or the surroundings do not allow it.
        RunError: when it failed.
    """
    check_surroundings()
    live = with_programs(scenario, call)
    made = lower(live, seed=seed, record="summary")
    memory.check(made)
    place = Path(tempfile.mkdtemp(prefix=PLACE))
    try:
        about = begin(place, live, programs, made.ir["seed"], realtime, pcap=pcap)
        # only the flows that there were: the others would be lines of zeros in every table
        seen = with_programs(scenario, call, max(1, len(about["flows"])))
        run, differs = replay(place, seen, seed=made.ir["seed"], record=record)
        yield Session(run, about, differs, streams(place), place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def begin(
    place: Path,
    live: Scenario,
    programs: Programs,
    seed: int,
    realtime: str = "auto",
    *,
    pcap: bool = False,
    sides: tuple[str, str] | None = None,
    times: tuple[float, float | None] = (0.0, None),
    told: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A session from its beginning to its files in `place`; returns what `session.json` holds.

    Args:
        place: An empty folder.
        live: The scenario with the programs' flows.
        programs: What runs at the ends.
        seed: Of all that is drawn.
        realtime: `auto` takes a real-time priority where it may.
        pcap: Whether what each side's device saw is kept.
        sides: The flow that stands for what A sends, and that of B; many of each, A-1 and B-1 and so on, by default.
        times: When the programs are started and asked to end, in seconds; None: with the session.
        told: What programs find in their environment beside what they always do. Then what they print is kept.

    Raises:
        InputError: when a program cannot be started.
        RunError: when the session failed.
    """
    if 2 + len(programs.more) > len(ENDS):
        raise InputError(f"found {2 + len(programs.more)} programs; expected at most {len(ENDS)}")
    everywhere = dict(zip(ENDS, (programs.a, programs.b, *programs.more), strict=False))
    ends = {name: end for name, end in everywhere.items() if end is not None}
    life, alive = os.pipe()
    job = {
        "folder": str(place),
        "scenario": live.to_toml(),
        "base": str(live.base.resolve()),
        "name": live.name,
        "seed": seed,
        "life": life,
        "realtime": realtime,
        "ends": list(everywhere),
        "pcap": pcap,
        "programs": {name: user_shell() if argv == "shell" else list(argv) for name, argv in ends.items()},
        "terminals": [name for name, argv in ends.items() if argv == "shell"],
        "sides": sides,
        "start_s": times[0],
        "stop_s": times[1],
        "told": dict(told or {}),
        "kept": told is not None,
    }
    file = place / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    with _for_the_session(alive) as stopped:
        command = [*unshare(os.geteuid()), sys.executable, "-P", "-m", "tidegate.shell._inside", str(file)]
        process = subprocess.Popen(command, env=_environment(), pass_fds=[life])  # noqa: S603
        os.close(life)
        stopped.begin()
        with announced(live.name, place, process.pid):
            process.wait()
    os.close(alive)
    written = place / TOLD
    if written.is_file():
        about: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
        about["interrupted"] = stopped.by
        if about["failed"]:
            raise InputError(about["failed"])
        return about
    failed = place / FAILED
    if failed.is_file():
        why = json.loads(failed.read_text(encoding="utf-8"))
        raise (InputError if why["kind"] == "input" else RunError)(f"{live.name}: {why['says']}")
    raise RunError(f"{live.name}: the session ended with {process.returncode} before it had results")


class _for_the_session:  # noqa: N801
    """While a session is on, Ctrl-C and SIGTERM end it in order, with its results."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, alive: int) -> None:
        self._alive = alive
        self._before: dict[int, Any] = {}
        self.by: str | None = None

    def __enter__(self) -> Self:
        """Ignores them: the process that begins the session is to do so, too, for good."""
        if threading.current_thread() is not threading.main_thread():
            return self  # signals do not come here
        for number in self.SIGNALS:
            self._before[number] = signal.signal(number, signal.SIG_IGN)
        return self

    def begin(self) -> None:
        """From now on they end the session."""
        for number in self._before:
            signal.signal(number, self._stop)

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.by = signal.Signals(number).name
        with suppress(BrokenPipeError):
            os.write(self._alive, b"x")

    def __exit__(self, *_: object) -> None:
        """As it was."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def replay(
    folder: str | Path, live: Scenario, *, seed: int | None = None, record: str | None = None
) -> tuple[Run, str | None]:
    """A session once more in virtual time, from what it wrote down.

    Args:
        folder: That of the session, with `arrivals.csv`, `fates.csv` and `session.json`.
        live: The scenario with the programs' flows; that of a run which was written.
        seed: Instead of the scenario's.
        record: How much is kept.

    Returns:
        The run, and where it differs from the session; None if each due time and each drop is the same.

    Raises:
        InputError: when a file is missing or damaged.
    """
    texts = {name: _text(Path(folder) / name) for name in FILES}
    end, sides = _end_of(Path(folder) / TOLD, texts[TOLD])
    made = lower(live, seed=seed, record=record)
    with engine_errors(live):
        recording, differs = _core.replay_session(
            texts["arrivals.csv"],
            texts["fates.csv"],
            end,
            json.dumps(made.ir),
            made.inputs.traces,
            made.inputs.python,
            sides,
        )
    return run_of(live, made, recording), differs


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: byte {error.start + 1}: found what is no text; expected UTF-8") from None


def _end_of(file: Path, text: str) -> tuple[int, tuple[list[str], list[str]] | None]:
    """When a session ended, in nanoseconds of its model time; and the flows of its sides, where they have other names.

    Raises:
        InputError: when it does not say so.
    """
    try:
        about = json.loads(text)
    except ValueError as error:
        raise InputError(f"{file}: {error}; expected JSON") from None
    end = about.get("end_ns") if isinstance(about, dict) else None
    if not isinstance(end, int) or isinstance(end, bool) or not 0 <= end < 2**63:
        raise InputError(f"{file}: end_ns: found {json.dumps(end)[:40]}; expected nanoseconds below 2^63")
    match about.get("sides"):
        case None:
            return end, None
        case [str(a), str(b)]:
            return end, ([a], [b])
        case found:
            raise InputError(f"{file}: sides: found {json.dumps(found)[:40]}; expected the flows of A and B")
