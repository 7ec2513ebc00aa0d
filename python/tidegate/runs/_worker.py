"""A process that runs jobs one after the other, and the reason when it ends by itself."""

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

_BEGUN = None
"""In place of whether a job succeeded: it begins now, with all that it needs imported."""
_LATE = "late"
"""In place of whether a job succeeded: there is no answer in time."""


class ProcessEnded(RunError):
    """The process of a run ended: it used up the memory, or its controller ended it."""


class TimeLimitExceeded(RunError):
    """A run took longer than it may, and was ended."""

    stuck: bool = False
    """Whether the run made no progress in the second half of its time, as in an endless loop of a controller."""

    @classmethod
    def of(cls, limit: float, fraction: float, *, stuck: bool = False) -> TimeLimitExceeded:
        """The error of a run that was ended, by its limit in seconds and the fraction of the run that was done."""
        where = f" at {100 * fraction:.0f} % of its simulated time" if fraction > 0 else ""
        hint = f"; it made no progress in the last {limit / 2:g} s, as with an endless loop in a controller"
        error = cls(
            f"the run took longer than the time limit of {limit:g} s, and was ended{where}{hint if stuck else ''}"
        )
        error.stuck = stuck
        return error


class Worker:
    """Handle of a process, for the thread that gives it jobs.

    Args:
        context: Start method of processes.
        done: Fraction of each job that is done, by the job's number.
        stopped: Event that is set when jobs have to stop.
    """

    def __init__(self, context: SpawnContext, done: Any, stopped: Any) -> None:
        self._connection, theirs = context.Pipe()
        # the standard library's table of child processes is for one thread at a time, too
        with safe_path() as path:
            # output of controllers goes where the parent's would
            about = (theirs, done, stopped, sys.stdout is sys.stderr, path)
            self._process = context.Process(target=_serve, args=about, name="tidegate run")
            self._process.start()
        theirs.close()
        self._done = done

    def is_alive(self) -> bool:
        """Whether the process can take a job."""
        return not wait([self._process.sentinel], 0)

    def do(self, number: int, job: Any, limit: float | None = None) -> Any:
        """Runs a job and returns its result.

        Args:
            number: Its number.
            job: The job.
            limit: The longest time that it may take, in seconds, without the start of the process and its imports.

        Raises:
            ProcessEnded: when the process ended meanwhile; with the signal or the exit code.
            TimeLimitExceeded: when it takes longer than it may; the process is ended.
        """
        try:
            self._connection.send((number, job))
            good, result = self._answer()
            if good is _BEGUN:
                good, result = self._answer(None if limit is None else limit / 2)
                at_half = self._done[number]
                if good is _LATE and limit is not None:
                    good, result = self._answer(limit / 2)
                if good is _LATE and limit is not None:
                    self.kill()
                    fraction = self._done[number]
                    raise TimeLimitExceeded.of(limit, fraction, stuck=fraction == at_half)
        except (EOFError, ConnectionError):
            good, result = False, None
        if good:
            return result
        if isinstance(result, BaseException):
            raise result
        self._process.join()
        raise ProcessEnded(f"the process of a run {_end(self._process.exitcode)}")

    def _answer(self, limit: float | None = None) -> tuple[Any, Any]:
        """Whether a job succeeded, and its result; waits for at most `limit` seconds."""
        if not wait([self._connection, self._process.sentinel], limit):
            return _LATE, None
        # an answer sent before the end is still there, even if both are ready
        answer: tuple[Any, Any] = self._connection.recv() if self._connection.poll() else (False, None)
        return answer

    def kill(self) -> None:
        """Kills the process, and waits for its end."""
        self._process.kill()
        self._process.join()

    def terminate(self) -> None:
        """Ends the process at once."""
        self._process.terminate()

    def end(self, patience: float) -> None:
        """Ends the process; kills it if it has not ended after `patience` seconds."""
        self._connection.close()
        self._process.join(patience)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()


def _end(code: int | None) -> str:
    """The end of a process in words, from its exit code."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = "; the system ends processes that use up the memory" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"
    return f"ended with exit code {code}: its controller, or a library that the controller uses, ended it"


def _serve(connection: Connection, done: Any, stopped: Any, quiet: bool, path: str | None) -> None:
    """Main loop of the process; `path` is the environment variable of `_interpreter` for users' code."""
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
            connection.send((False, error))  # a job that this process cannot unpickle
            continue
        connection.send((_BEGUN, None))
        outcome = _outcome(number, job, done, stopped)
        try:
            connection.send(outcome)
        except Exception as error:  # noqa: BLE001
            connection.send((False, RunError(f"the result of a run cannot be sent: {error}")))


def _outcome(number: int, job: Any, done: Any, stopped: Any) -> tuple[bool, Any]:
    try:
        return True, job(partial(tell, done, stopped, number))
    except BaseException as error:  # noqa: BLE001
        # a traceback cannot be pickled, but helps to find the bug
        error.add_note(traceback.format_exc())
        return False, error


def tell(done: Any, stopped: Any, number: int, fraction: float) -> bool:
    """Stores the progress of a job in `done`, and stops the job when `stopped` is set."""
    done[number] = fraction
    if stopped.is_set():
        raise KeyboardInterrupt
    return True
