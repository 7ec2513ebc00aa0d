"""The process inside the namespaces: init of their processes, forwarder of their packets.

It is started by `unshare` (see `sessions.unshare`) and is process 1 of a PID namespace: when it ends, for any reason,
the kernel ends all processes that it has started. A pipe from the process outside tells it to end; if the pipe is
closed, the process outside is gone.
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
from tidegate.scenario import Scenario
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.lower import lower
from tidegate.shell._files import FAILED, OUTPUT, READY, SUMMARY
from tidegate.shell._network import environment, inside, join, partner

_PATIENCE = 5.0
"""Seconds that a program has to end by itself after its partner has ended."""
_FAREWELL = 10.0
"""Seconds that a program has to end by SIGTERM when the session is over: pieces of libwebrtc's event log are of 5 s."""
_RTTIME = 50_000
"""Microseconds that a thread of real-time priority may compute without sleeping (RLIMIT_RTTIME)."""
_SLICE = 100_000
"""Time slice in nanoseconds: the least that the scheduler accepts."""
_QUIET = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU, signal.SIGTTIN}
"""Signals of a terminal that are for the programs, not for us."""


@dataclass(eq=False)
class Program:
    """A program at one end."""

    name: str
    network: int
    argv: list[str]
    terminal: bool
    variables: dict[str, str]
    """Its further environment variables."""
    output: str | None
    """The file for its output; None: our own output."""
    pid: int | None = None
    status: int | None = None
    stopped: bool = False
    """Whether we have sent it a signal to end."""
    ended: float | None = None
    """Time at which it ended, by the monotonic clock, s."""

    def start(self) -> None:
        """Starts it, in its network and without rights in the namespaces; root's programs keep some elsewhere."""
        inside(self.network, self._spawn)

    def _spawn(self) -> None:
        _core.drop_rights()
        files: list[Any] = [] if self.terminal else [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        if self.output is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            files += [(os.POSIX_SPAWN_OPEN, 1, self.output, flags, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)]
        # a group of its own: Ctrl-C is for the session, which then ends its programs. A shell makes its group itself
        group: Any = {} if self.terminal else {"setpgroup": 0}
        self.pid = os.posix_spawnp(
            self.argv[0],
            self.argv,
            {**os.environ, **self.variables},
            file_actions=files,
            setsigdef=[*_QUIET, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGPIPE],
            setsigmask=[],
            **group,
        )

    def end(self, number: int) -> None:
        """Sends a signal to it and to the processes that it has started in its group."""
        if self.pid is None or self.status is not None:
            return
        self.stopped = True
        with suppress(ProcessLookupError):
            if self.terminal:
                # a shell at a terminal ignores SIGTERM
                os.kill(self.pid, signal.SIGHUP if number == signal.SIGTERM else number)
            else:
                os.killpg(self.pid, number)


class Programs:
    """Starts, awaits and ends the programs, in a thread of its own: the thread of the packets must never wait.

    Args:
        programs: The programs.
        start: Seconds from the session's beginning until the programs are started.
        stop: Seconds until they are asked to end; None: not before the session's end.
    """

    def __init__(self, programs: list[Program], start: float = 0.0, stop: float | None = None) -> None:
        self.all = programs
        self._times = (start, stop)
        self._cancelled = threading.Event()
        self.failed: str | None = None
        self.over, self._over = os.pipe()
        """A file descriptor that becomes readable when the session is to end."""
        self._go = threading.Event()
        self._done = threading.Event()
        # made now, with usual scheduling: a thread inherits it from the thread that makes it
        threading.Thread(target=self._run, daemon=True).start()

    def go(self) -> None:
        """Starts the programs."""
        self._go.set()

    def finish(self) -> None:
        """Ends the programs that still run: with SIGTERM, and later with SIGKILL."""
        self._cancelled.set()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for program in self.all:
                program.end(number)
            if self._done.wait(_FAREWELL):
                return

    def stop(self) -> None:
        """Asks the session to end."""
        os.write(self._over, b"x")

    def _run(self) -> None:
        self._go.wait()
        start, stop = self._times
        program = self.all[0]
        try:
            # a program that has not started when the session ends is never started
            if not self._cancelled.wait(start):
                for program in self.all:
                    program.start()
                if stop is not None:
                    threading.Timer(stop - start, self._late).start()
                self._wait()
        except Exception as error:  # noqa: BLE001
            # for any error, as otherwise the session would go on without its programs
            why = error.strerror if isinstance(error, OSError) else None
            self.failed = f"{program.argv[0]} cannot be started: {why or error}"
            program.status = 127
        finally:
            self._done.set()
            self.stop()

    def _wait(self) -> None:
        """Waits until all have ended; as init, it also reaps other processes that lose their parent."""
        while any(program.status is None for program in self.all):
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            for program in self.all:
                if program.pid == pid:
                    program.status = os.waitstatus_to_exitcode(status)
                    program.ended = time.monotonic()
                    partners = [peer for peer in self.all if peer.name == partner(program.name)]
                    if any(peer.status is None and not peer.terminal for peer in partners):
                        threading.Timer(_PATIENCE, self._late, [partners]).start()

    def _late(self, which: list[Program] | None = None) -> None:
        for program in self.all if which is None else which:
            if not program.terminal:
                program.end(signal.SIGTERM)


def _priority(wanted: str) -> str:
    """Takes a real-time priority for this thread if allowed; returns the scheduling that it got."""
    if wanted == "off":
        return "default"
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_RTTIME, (_RTTIME, resource.getrlimit(resource.RLIMIT_RTTIME)[1]))
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return "fifo"
    return "slice" if _short_slice() else "default"


def _short_slice() -> bool:
    """Asks for a short time slice: the scheduler then lets the thread run sooner after it has slept.

    Any thread may do so. sched_setattr(2), in effect since Linux 6.12; Python has no function for it.
    """
    number = {"x86_64": 314, "aarch64": 274}.get(os.uname().machine)
    if number is None:
        return False
    # size, policy (SCHED_OTHER), flags, nice, priority, and the slice in nanoseconds where deadlines have their runtime
    attributes = struct.pack("IIQiIQQQ", 48, os.SCHED_OTHER, 0, 0, 0, _SLICE, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)


def _obey(life: int, programs: Programs) -> None:
    """Ends the session when the process outside asks for it, and this process when the one outside is gone."""
    while True:
        message = os.read(life, 1)
        if not message:
            os._exit(137)
        programs.stop()


def run(job: dict[str, Any]) -> None:
    """Runs a session, from making its networks to writing its files."""
    folder = Path(job["folder"])
    os.set_inheritable(job["life"], False)
    scenario = Scenario.parse(job["scenario"], Path(job["base"]) / f"{job['name']}.toml")
    run_input = lower(scenario, seed=job["seed"], record="summary")
    sides = join(job["ends"])
    networks = {end: network for side in sides.values() for end, network in side.ends.items()}
    programs = Programs(
        [
            Program(
                name,
                networks[name],
                argv,
                terminal=name in job["terminals"],
                variables={**environment(name, job["ends"]), **job["told"]},
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
            str(folder), json.dumps(run_input.ir), run_input.inputs.traces, run_input.inputs.python, job["pcap"], flows
        )
    began_unix = time.time()
    (folder / READY).write_text(json.dumps(networks), encoding="utf-8")
    threading.Thread(target=_obey, args=(job["life"], programs), daemon=True).start()
    priority = _priority(job["realtime"])
    lowered: list[str] = []

    def too_much(*_: object) -> None:
        # the kernel reports that we have computed too long without sleeping: from now on, other processes come first
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        lowered.append("a loop computed for 50 ms without sleeping")

    signal.signal(signal.SIGXCPU, too_much)
    programs.go()
    started = time.monotonic()
    ports = (sides["A"].socket.fileno(), sides["B"].socket.fileno(), programs.over)
    why = "interrupted"
    while why == "interrupted":
        why = shell.forward(*ports)
    lasted = time.monotonic() - started
    if priority == "fifo":
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    summary = json.loads(shell.summary_json())
    missed = summary["missed"] + sum(side.missed for side in sides.values())
    end = shell.finish()
    programs.finish()
    about = {
        **summary,
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
            program.name: {
                "argv": program.argv,
                "status": program.status,
                "stopped": program.stopped,
                "ended_s": None if program.ended is None else program.ended - started,
            }
            for program in programs.all
        },
    }
    (folder / SUMMARY).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def main(file: str) -> int:
    """Runs the job of a file; an error is left in the folder, for the process outside to report."""
    job = json.loads(Path(file).read_text(encoding="utf-8"))
    for number in _QUIET:
        signal.signal(number, signal.SIG_IGN)
    try:
        run(job)
    except (TidegateError, OSError) as error:
        kind = "input" if isinstance(error, InputError) else "system"
        failure = {"kind": kind, "says": str(error)}
        (Path(job["folder"]) / FAILED).write_text(json.dumps(failure), encoding="utf-8")
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    # threads may wait forever; the kernel ends the processes that they have started
    os._exit(code)
