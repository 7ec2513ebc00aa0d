"""The process inside the namespaces: init of their processes, forwarder of their packets.

It is started by `unshare` (see `_session`) and is process 1 of a PID namespace: when it ends, however it does, the
kernel ends all that it has started. A pipe from the process outside tells it to end, or, by being closed, that there is
nobody any more to work for.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate import _core
from tidegate.errors import InputError, TidegateError
from tidegate.runs.jobs import engine_errors
from tidegate.scenario import Scenario
from tidegate.scenario.lower import lower
from tidegate.shell._files import FAILED, OUTPUT, READY, TOLD
from tidegate.shell._network import environment, inside, join, partner

_PATIENCE = 5.0
"""Seconds that a program has to end by itself when the other one has."""
_FAREWELL = 10.0
"""Seconds that a program has to end by SIGTERM when the session is over: pieces of libwebrtc's event log are of 5 s."""
_RTTIME = 50_000
"""Microseconds that a thread of real-time priority may compute without sleeping (RLIMIT_RTTIME)."""
_SLICE = 100_000
"""Nanoseconds: the least that the scheduler takes."""
_QUIET = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU, signal.SIGTTIN}
"""Signals of a terminal that are for the programs, not for us."""


@dataclass(eq=False)
class Program:
    """A program at one end."""

    name: str
    network: int
    argv: list[str]
    terminal: bool
    told: dict[str, str]
    """What it finds in its environment."""
    output: str | None
    """The file of what it prints; None: where we print."""
    pid: int | None = None
    status: int | None = None
    stopped: bool = False
    """Whether we have ended it."""
    ended: float | None = None
    """When it has, by the monotonic clock."""

    def start(self) -> None:
        """Starts it, in its network and without rights in the namespaces."""
        inside(self.network, self._spawn)

    def _spawn(self) -> None:
        _core.drop_rights()
        files: list[Any] = [] if self.terminal else [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        if self.output is not None:
            made = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            files += [(os.POSIX_SPAWN_OPEN, 1, self.output, made, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)]
        # a group of its own: Ctrl-C is for the session, which then ends its programs. A shell makes its own
        own: Any = {} if self.terminal else {"setpgroup": 0}
        self.pid = os.posix_spawnp(
            self.argv[0],
            self.argv,
            {**os.environ, **self.told},
            file_actions=files,
            setsigdef=[*_QUIET, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGPIPE],
            setsigmask=[],
            **own,
        )

    def end(self, number: int) -> None:
        """Sends it, and what it has started in its group, a signal."""
        if self.pid is None or self.status is not None:
            return
        self.stopped = True
        with suppress(ProcessLookupError):
            if self.terminal:
                # a shell at a terminal heeds no SIGTERM
                os.kill(self.pid, signal.SIGHUP if number == signal.SIGTERM else number)
            else:
                os.killpg(self.pid, number)


class Programs:
    """What is started, waited for and ended, in a thread of its own: that of the packets waits for nothing.

    Args:
        programs: They.
        start: Seconds from the session's beginning until they are started.
        stop: Seconds until they are asked to end; None: not before the session's end.
    """

    def __init__(self, programs: list[Program], start: float = 0.0, stop: float | None = None) -> None:
        self.all = programs
        self._times = (start, stop)
        self._cancelled = threading.Event()
        self.failed: str | None = None
        self.over, self._over = os.pipe()
        """Can be read when the session is to end."""
        self._go = threading.Event()
        self._done = threading.Event()
        # made now, with usual scheduling, which a thread has from the one that makes it
        threading.Thread(target=self._run, daemon=True).start()

    def go(self) -> None:
        """Starts them."""
        self._go.set()

    def finish(self) -> None:
        """Ends those that are still there, politely at first."""
        self._cancelled.set()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for one in self.all:
                one.end(number)
            if self._done.wait(_FAREWELL):
                return

    def stop(self) -> None:
        """Says that the session is to end."""
        os.write(self._over, b"x")

    def _run(self) -> None:
        self._go.wait()
        start, stop = self._times
        one = self.all[0]
        try:
            # one that has not begun when the session ends never does
            if not self._cancelled.wait(start):
                for one in self.all:
                    one.start()
                if stop is not None:
                    threading.Timer(stop - start, self._late).start()
                self._wait()
        except Exception as error:  # noqa: BLE001
            # whatever it is, without this the session would go on without its programs
            why = error.strerror if isinstance(error, OSError) else None
            self.failed = f"{one.argv[0]}: cannot be started: {why or error}"
            one.status = 127
        finally:
            self._done.set()
            self.stop()

    def _wait(self) -> None:
        """Until all have ended; whatever else loses its parent in here is ours, too."""
        while any(one.status is None for one in self.all):
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            for one in self.all:
                if one.pid == pid:
                    one.status = os.waitstatus_to_exitcode(status)
                    one.ended = time.monotonic()
                    left = [other for other in self.all if other.name == partner(one.name)]
                    if any(other.status is None and not other.terminal for other in left):
                        threading.Timer(_PATIENCE, self._late, [left]).start()

    def _late(self, which: list[Program] | None = None) -> None:
        for one in self.all if which is None else which:
            if not one.terminal:
                one.end(signal.SIGTERM)


def _priority(wanted: str) -> str:
    """Takes a real-time priority for this thread, if it may: what it has then."""
    if wanted == "off":
        return "default"
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_RTTIME, (_RTTIME, resource.getrlimit(resource.RLIMIT_RTTIME)[1]))
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return "fifo"
    return "slice" if _short_slice() else "default"


def _short_slice() -> bool:
    """Asks for a short time slice, which any thread may: the scheduler then lets it run sooner after it has slept.

    sched_setattr(2), heeded since Linux 6.12; Python has no function for it.
    """
    number = {"x86_64": 314, "aarch64": 274}.get(os.uname().machine)
    if number is None:
        return False
    # size, policy (SCHED_OTHER), flags, nice, priority, and the slice in nanoseconds where deadlines have their runtime
    asked = struct.pack("IIQiIQQQ", 48, os.SCHED_OTHER, 0, 0, 0, _SLICE, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, asked, 0) == 0)


def _obey(life: int, programs: Programs) -> None:
    """Ends the session when the process outside says so, and everything when it has gone."""
    while True:
        said = os.read(life, 1)
        if not said:
            os._exit(137)
        programs.stop()


def run(job: dict[str, Any]) -> None:
    """A session from its networks to its files."""
    folder = Path(job["folder"])
    os.set_inheritable(job["life"], False)
    scenario = Scenario.parse(job["scenario"], Path(job["base"]) / f"{job['name']}.toml")
    made = lower(scenario, seed=job["seed"], record="summary")
    sides = join(job["ends"])
    networks = {end: network for side in sides.values() for end, network in side.ends.items()}
    programs = Programs(
        [
            Program(
                name,
                networks[name],
                argv,
                terminal=name in job["terminals"],
                told={**environment(name, job["ends"]), **job["told"]},
                output=str(folder / OUTPUT.format(name)) if job["kept"] else None,
            )
            for name, argv in job["programs"].items()
        ],
        job["start_s"],
        job["stop_s"],
    )
    flows = ([job["sides"][0]], [job["sides"][1]]) if job["sides"] else None
    with engine_errors(scenario):
        shell = _core.Shell(
            str(folder), json.dumps(made.ir), made.inputs.traces, made.inputs.python, job["pcap"], flows
        )
    began_unix = time.time()
    (folder / READY).write_text(json.dumps(networks), encoding="utf-8")
    threading.Thread(target=_obey, args=(job["life"], programs), daemon=True).start()
    priority = _priority(job["realtime"])
    lowered: list[str] = []

    def too_much(*_: object) -> None:
        # the kernel says that we have computed for long without sleeping: others come first from now on
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        lowered.append("it computed for 50 ms without sleeping")

    signal.signal(signal.SIGXCPU, too_much)
    programs.go()
    begun = time.monotonic()
    ports = (sides["A"].socket.fileno(), sides["B"].socket.fileno(), programs.over)
    why = "interrupted"
    while why == "interrupted":
        why = shell.forward(*ports)
    lasted = time.monotonic() - begun
    if priority == "fifo":
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    told = json.loads(shell.summary_json())
    missed = sum(side.missed for side in sides.values())
    end = shell.finish()
    programs.finish()
    about = {
        **told,
        "sides": job["sides"],
        "missed": missed,
        "end_ns": end,
        "began_unix_s": began_unix,
        "lasted_s": lasted,
        "why": why,
        "realtime": priority,
        "lowered": lowered,
        "failed": programs.failed,
        "programs": {
            one.name: {
                "argv": one.argv,
                "status": one.status,
                "stopped": one.stopped,
                "ended_s": None if one.ended is None else one.ended - begun,
            }
            for one in programs.all
        },
    }
    (folder / TOLD).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def main(file: str) -> int:
    """Runs the job of a file; what goes wrong is left in the folder, for the process outside to say."""
    job = json.loads(Path(file).read_text(encoding="utf-8"))
    for number in _QUIET:
        signal.signal(number, signal.SIG_IGN)
    try:
        run(job)
    except (TidegateError, OSError) as error:
        kind = "input" if isinstance(error, InputError) else "system"
        told = {"kind": kind, "says": str(error)}
        (Path(job["folder"]) / FAILED).write_text(json.dumps(told), encoding="utf-8")
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    # threads may wait for what never comes; the kernel ends what they have started
    os._exit(code)
