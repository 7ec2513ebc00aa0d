"""A process that does one job after the other, and what is known when it ends by itself."""

from __future__ import annotations

import signal
import sys
import traceback
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from typing import Any

from tidegate.errors import RunError
from tidegate.runs._interpreter import restore, safe_path


class ProcessEnded(RunError):
    """The process of a run went away: it used up the memory, or its controller ended it."""


class Worker:
    """A process, as the thread sees it that gives it jobs.

    Args:
        context: How processes begin.
        done: Where a job tells how far it is, by its number.
        stopped: Set when jobs are to stop.
    """

    def __init__(self, context: SpawnContext, done: Any, stopped: Any) -> None:
        self._connection, theirs = context.Pipe()
        # what the standard library knows of child processes is for one thread at a time, too
        with safe_path() as path:
            # what controllers print goes where their parent's would
            about = (theirs, done, stopped, sys.stdout is sys.stderr, path)
            self._process = context.Process(target=_serve, args=about, name="tidegate run")
            self._process.start()
        theirs.close()

    def is_alive(self) -> bool:
        """Whether it can take a job."""
        return not wait([self._process.sentinel], 0)

    def do(self, number: int, job: Any) -> Any:
        """Does a job and returns its result.

        Raises:
            ProcessEnded: when the process ended meanwhile; with the signal or the exit code.
        """
        try:
            self._connection.send((number, job))
            wait([self._connection, self._process.sentinel])
            # what it said before it ended is here, even if both are ready
            good, result = self._connection.recv() if self._connection.poll() else (False, None)
        except (EOFError, ConnectionError):
            good, result = False, None
        if good:
            return result
        if isinstance(result, BaseException):
            raise result
        self._process.join()
        raise ProcessEnded(f"the process of a run {_end(self._process.exitcode)}")

    def terminate(self) -> None:
        """Ends it at once."""
        self._process.terminate()

    def end(self, patience: float) -> None:
        """Lets it go; at once if it does not within so many seconds."""
        self._connection.close()
        self._process.join(patience)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()


def _end(code: int | None) -> str:
    """How a process ended, in words."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = "; the system does that to what uses up the memory" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"
    return f"ended with exit code {code}: its controller did that, or what the controller uses"


def _serve(connection: Connection, done: Any, stopped: Any, quiet: bool, path: str | None) -> None:
    """What the process does; `path` is what people's code finds in its environment (`_interpreter`)."""
    restore(path)
    if quiet:
        sys.stdout = sys.stderr
    # the parent decides what Ctrl-C means, and says so through `stopped`
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            number, job = connection.recv()
        except EOFError:
            return
        except Exception as error:  # noqa: BLE001
            connection.send((False, error))  # a job that only its sender knows how to make
            continue
        outcome = _outcome(number, job, done, stopped)
        try:
            connection.send(outcome)
        except Exception as error:  # noqa: BLE001
            connection.send((False, RunError(f"what came of a run cannot be handed over: {error}")))


def _outcome(number: int, job: Any, done: Any, stopped: Any) -> tuple[bool, Any]:
    try:
        return True, job(partial(tell, done, stopped, number))
    except BaseException as error:  # noqa: BLE001
        # where it was, for whoever looks for a bug: a traceback does not travel
        error.add_note(traceback.format_exc())
        return False, error


def tell(done: Any, stopped: Any, number: int, fraction: float) -> bool:
    """Notes how far a job is, by its number in `done`; stops it when `stopped` is set."""
    done[number] = fraction
    if stopped.is_set():
        raise KeyboardInterrupt
    return True
