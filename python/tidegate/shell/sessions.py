"""Sessions from outside: begins one, waits for its end, and replays it in virtual time for its results."""

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
from tidegate.runs import Run, run_of
from tidegate.scenario import Scenario, memory
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.lower import lower
from tidegate.shell._files import FAILED, FOLDER_PREFIX, SUMMARY
from tidegate.shell._judging import Lateness, verdict
from tidegate.shell._network import ENDS
from tidegate.shell._scenario import with_programs
from tidegate.shell._streams import Stream, streams
from tidegate.shell.entering import announced

FILES = ("arrivals.csv", "fates.csv", SUMMARY)
"""Files of a session in its folder, beside those of a run."""

Realtime = Literal["auto", "off"]


@dataclass(frozen=True)
class Programs:
    """Programs at the ends: a program with its arguments, the user's shell at this terminal, or none."""

    a: Sequence[str] | Literal["shell"]
    """The end from which the scenario's call is sent."""
    b: Sequence[str] | Literal["shell"] | None
    """The end that receives it; None: empty, until a user enters it by `tidegate shell --enter`."""
    more: Sequence[Sequence[str]] = ()
    """Further programs: C beside A, D beside B, and so on, up to H."""


@dataclass(frozen=True)
class Session:
    """A session that is over: its run, and the lateness of its packets."""

    run: Run
    """The replay of its arrivals in virtual time, with tables and metrics as of any run."""
    about: Mapping[str, Any]
    """Contents of `session.json`."""
    differs: str | None
    """Difference of the replay from the session; None: each due time and each drop is the same, to the nanosecond."""
    streams: list[Stream]
    """RTP streams in the packets, each with its losses and frames."""
    folder: Path
    """Folder of its files, as long as the session's context lasts."""

    @property
    def lateness(self) -> Lateness:
        """Lateness of the packets written."""
        return Lateness(**self.about["lateness"])

    @property
    def verdict(self) -> tuple[str, list[str]]:
        """`quiet` or `noisy`, and the reasons against `quiet`."""
        return verdict(self.about)

    def save(self, out: str | Path) -> Path:
        """Writes the run's folder with the session's files in it.

        Raises:
            OutputError: when it cannot be written, or something else is there.
        """
        captures = sorted(self.folder.glob("packets-*.pcapng"))
        return self.run.save(out, also=[*(self.folder / name for name in FILES), *captures])


def check_environment(*more: str) -> None:
    """Checks that this machine can run sessions.

    Args:
        more: Required tools beyond those of every session.

    Raises:
        InputError: with the reason and what would help.
    """
    _check_platform()
    missing = [name for name in ("unshare", "ip", *more) if shutil.which(name, path=search_path()) is None]
    if missing:
        packages = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2"}
        wanted = " and ".join(f"{name} (package {packages[name]})" for name in missing)
        raise InputError(f"tidegate shell needs {wanted}, which is not installed here")
    probe = subprocess.run(  # noqa: S603
        [*unshare(os.geteuid()), "true"], capture_output=True, text=True, env=_environment(), check=False
    )
    if probe.returncode:
        lines = probe.stderr.strip().splitlines()
        raise InputError(
            f"network namespaces cannot be made here: {lines[-1] if lines else probe.returncode}; {_remedy()}"
        )


def _remedy() -> str:
    """Advice where namespaces are forbidden."""

    def number(file: str) -> int | None:
        with suppress(OSError, ValueError):
            return int(Path(file).read_text(encoding="ascii"))
        return None

    if number("/proc/sys/user/max_user_namespaces") == 0:
        return "sysctl user.max_user_namespaces is 0; an administrator can raise the limit"
    if number("/proc/sys/kernel/unprivileged_userns_clone") == 0:
        return "an administrator can allow namespaces with sysctl kernel.unprivileged_userns_clone=1"
    if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
        return "an administrator can allow namespaces with sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    return "in a container namespaces need --privileged, or seccomp and /proc as on a host"


def search_path() -> str:
    """Search path for programs, with the administrators' folders, which users' shells leave out."""
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
        programs: Programs at the ends.
        call: The flow that the programs replace.
        seed: Seed, instead of the scenario's.
        record: Level of recording, instead of the scenario's: summary, series or packets.
        realtime: `auto` takes a real-time priority where it may.
        pcap: Whether the packets at each side's device are kept, for Wireshark.

    Raises:
        InputError: when the scenario or this machine does not allow it.
        RunError: when the session failed.
    """
    check_environment()
    live = with_programs(scenario, call)
    run_input = lower(live, seed=seed, record="summary")
    memory.check(run_input)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    try:
        about = begin(folder, live, programs, run_input.ir["seed"], realtime, pcap=pcap)
        # only flows that had packets: the others would be lines of zeros in every table
        used = with_programs(scenario, call, max(1, len(about["flows"])))
        run, differs = replay(folder, used, seed=run_input.ir["seed"], record=record)
        yield Session(run, about, differs, streams(folder), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def begin(
    folder: Path,
    live: Scenario,
    programs: Programs,
    seed: int,
    realtime: str = "auto",
    *,
    pcap: bool = False,
    sides: tuple[str, str] | None = None,
    times: tuple[float, float | None] = (0.0, None),
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Runs a session from its beginning to its files in `folder`; returns the contents of `session.json`.

    Args:
        folder: An empty folder.
        live: The scenario with the programs' flows.
        programs: Programs at the ends.
        seed: Seed of all random numbers.
        realtime: `auto` takes a real-time priority where it may.
        pcap: Whether the packets at each side's device are kept.
        sides: The flows of A and of B; by default each side has many, A-1 and B-1 and so on.
        times: Seconds at which the programs are started and asked to end; None: with the session.
        variables: Further environment variables of the programs. If given, their output is kept.

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
        "folder": str(folder),
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
        "told": dict(variables or {}),
        "kept": variables is not None,
    }
    file = folder / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    with _for_the_session(alive) as stopped:
        command = [*unshare(os.geteuid()), sys.executable, "-P", "-m", "tidegate.shell._inside", str(file)]
        process = subprocess.Popen(command, env=_environment(), pass_fds=[life])  # noqa: S603
        os.close(life)
        stopped.begin()
        with announced(live.name, folder, process.pid):
            process.wait()
    os.close(alive)
    written = folder / SUMMARY
    if written.is_file():
        about: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
        about["interrupted"] = stopped.by
        if about["failed"]:
            raise InputError(about["failed"])
        return about
    failed = folder / FAILED
    if failed.is_file():
        why = json.loads(failed.read_text(encoding="utf-8"))
        raise (InputError if why["kind"] == "input" else RunError)(f"{live.name}: {why['says']}")
    raise RunError(f"{live.name}: the session ended with exit code {process.returncode} before it had results")


class _for_the_session:  # noqa: N801
    """A context in which Ctrl-C and SIGTERM end the session in order, with its results."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, alive: int) -> None:
        self._alive = alive
        self._before: dict[int, Any] = {}
        self.by: str | None = None

    def __enter__(self) -> Self:
        """Ignores the signals at first: the process of the session inherits that, and keeps it."""
        if threading.current_thread() is not threading.main_thread():
            return self  # signals do not come here
        for number in self.SIGNALS:
            self._before[number] = signal.signal(number, signal.SIG_IGN)
        return self

    def begin(self) -> None:
        """Lets the signals end the session from now on."""
        for number in self._before:
            signal.signal(number, self._stop)

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.by = signal.Signals(number).name
        with suppress(BrokenPipeError):
            os.write(self._alive, b"x")

    def __exit__(self, *_: object) -> None:
        """Restores the handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _check_platform() -> None:
    if sys.platform != "linux":
        raise InputError("tidegate shell needs Linux: network namespaces and packet sockets")


def replay(
    folder: str | Path, live: Scenario, *, seed: int | None = None, record: str | None = None
) -> tuple[Run, str | None]:
    """Replays a session in virtual time from its records.

    Args:
        folder: Folder of the session, with `arrivals.csv`, `fates.csv` and `session.json`.
        live: The scenario with the programs' flows, as in the folder of a run.
        seed: Seed, instead of the scenario's.
        record: Level of recording.

    Returns:
        The run, and its difference from the session; None if each due time and each drop is the same.

    Raises:
        InputError: when a file is missing or damaged, and off Linux.
    """
    _check_platform()
    texts = {name: _text(Path(folder) / name) for name in FILES}
    end, sides = _end_of(Path(folder) / SUMMARY, texts[SUMMARY])
    run_input = lower(live, seed=seed, record=record)
    with engine_errors(live):
        recording, differs = _core.replay_session(
            texts["arrivals.csv"],
            texts["fates.csv"],
            end,
            json.dumps(run_input.ir),
            run_input.inputs.traces,
            run_input.inputs.python,
            sides,
        )
    return run_of(live, run_input, recording), differs


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: byte {error.start + 1}: found a byte that is not text; expected UTF-8") from None


def _end_of(file: Path, text: str) -> tuple[int, tuple[list[str], list[str]] | None]:
    """End of a session in nanoseconds of its model time, and the flows of its sides if they have other names.

    Raises:
        InputError: when the summary does not have them.
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
