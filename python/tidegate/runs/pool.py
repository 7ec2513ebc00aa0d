"""Many runs at once: in threads, since the engine releases the interpreter lock, or in processes.

A run depends on its scenario and seed only: with any number of workers it is the same bit for bit.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar

from tidegate._signals import noted
from tidegate.errors import RunError
from tidegate.output import progress as bars
from tidegate.runs._interpreter import safe_path
from tidegate.runs._worker import ProcessEnded, TimeLimitExceeded, Worker, tell

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

Tick = Callable[[float], bool]
"""Called with the fraction of simulated time that is done; raises `KeyboardInterrupt` to stop the run."""

Progress = bars.Progress

_BEAT = 0.1  # seconds between two looks at the progress
_GRACE = 1.0  # seconds for runs to stop by themselves


_limit: ContextVar[float | None] = ContextVar("tidegate time limit", default=None)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Ends every run inside that takes longer than this by the clock, which is an error of that run.

    A controller in Python that does not return can be ended in a process only: with a limit runs with such controllers
    are in processes.
    """
    before = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(before)


def time_limit() -> float | None:
    """The longest time of a run, in seconds; `None` without a limit."""
    return _limit.get()


class Job(Protocol[T_co]):
    """A piece of work."""

    def __call__(self, tick: Tick) -> T_co:
        """Does the work and returns its result; calls `tick` with its progress."""


def cores() -> int:
    """Number of runs at once by default."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def run_all(
    jobs: Sequence[Job[T]],
    *,
    workers: int | None = None,
    processes: bool = False,
    progress: Progress | None = None,
    keep_going: bool = False,
    keep: Callable[[int, T], Any] | None = None,
    together: Sequence[Hashable] | None = None,
) -> list[T | BaseException]:
    """Does all jobs and returns their results in order.

    Args:
        jobs: The work; with `processes`, everything in it has to be picklable.
        workers: Number of jobs at once; one per core by default.
        processes: Whether to use processes, for controllers that are busy in Python.
        progress: Called with the fraction done.
        keep_going: Whether an error is returned in its place, rather than raised at once.
        keep: Called in this thread with the number of a job and its result as it ends; its return value replaces
            the result.
        together: A key for each job, where those of one key fail together, such as the seeds of one case: when a
            run stands still until the time limit, the others of its key are not begun, which would take as long each.

    Raises:
        KeyboardInterrupt: when the person asks to stop; running jobs are stopped first.
        RunError: when a process of a run ended, or a run took longer than its time limit (see `limited`).
    """
    if not jobs:
        return []
    count = max(1, min(workers or cores(), len(jobs)))
    with noted() as asked, ExitStack() as at_the_end:
        team = _Processes(count, len(jobs)) if processes else _Team(count, [0.0] * len(jobs), threading.Event())
        at_the_end.callback(team.stop)
        team.together = together
        # callbacks, since each call of `wait` looks at all of the (maybe a hundred thousand) futures
        ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        missing = {team.executor.submit(team.work, number, job): number for number, job in enumerate(jobs)}
        for future in missing:
            future.add_done_callback(ended.put)
        outcomes: list[Any] = [None] * len(jobs)
        shown_at = 0.0
        while missing:
            done = {missing.pop(future): future for future in taken(ended)}
            # a finished result is kept, even if the person has asked to stop meanwhile
            for number, future in done.items():
                error = future.exception()
                outcomes[number] = error or (future.result() if keep is None else keep(number, future.result()))
            if asked.is_set():
                raise KeyboardInterrupt
            if progress is not None and (not missing or time.monotonic() - shown_at >= _BEAT):
                progress(sum(team.done[:]) / len(jobs))
                shown_at = time.monotonic()
            errors = [future.exception() for future in done.values()]
            # SIGTERM for a process group may reach the processes before this one
            if any(isinstance(error, ProcessEnded) for error in errors) and asked.wait(_BEAT):
                raise KeyboardInterrupt
            if not keep_going and (failed := next((error for error in errors if error is not None), None)):
                raise failed
        if progress is not None:
            progress(1.0)
        return outcomes


def taken(ended: queue.SimpleQueue[T]) -> list[T]:
    """Items that arrive within a beat."""
    items: list[T] = []
    with suppress(queue.Empty):
        items.append(ended.get(timeout=_BEAT))
        while True:
            items.append(ended.get_nowait())
    return items


class _Team:
    """Threads that each run one job at a time.

    Args:
        count: Number of threads.
        done: Fraction of each job that is done.
        stopped: Event that is set when jobs have to stop.
        initializer: Called in each thread before its first job.
    """

    def __init__(self, count: int, done: Any, stopped: Any, initializer: Callable[[], None] | None = None) -> None:
        self.limit = time_limit()
        self.executor = ThreadPoolExecutor(count, thread_name_prefix="tidegate", initializer=initializer)
        self.done, self.stopped = done, stopped
        self.busy: set[int] = set()
        self.together: Sequence[Hashable] | None = None
        self._stuck: set[Hashable] = set()
        """Keys of `together` of which a run stood still until the time limit."""

    def work(self, number: int, job: Job[Any]) -> Any:
        """Runs a job.

        Raises:
            RunError: when it fails, or is not begun since a run with which it fails together stood still.
        """
        key = None if self.together is None else self.together[number]
        if key in self._stuck:
            raise RunError("the run was not begun: another seed made no progress until the time limit")
        thread = threading.get_ident()
        self.busy.add(thread)
        try:
            result = self._do(number, job)
        except TimeLimitExceeded as error:
            if error.stuck and key is not None:
                self._stuck.add(key)
                raise TimeLimitExceeded(f"{error}; no further seed of it was begun") from None
            raise
        finally:
            self.busy.discard(thread)
        self.done[number] = 1.0
        return result

    def _do(self, number: int, job: Job[Any]) -> Any:
        return job(partial(self._tell, number, time.monotonic()))

    def _tell(self, number: int, began: float, fraction: float) -> bool:
        if self.limit is not None and time.monotonic() - began > self.limit:
            raise TimeLimitExceeded.of(self.limit, fraction)
        return tell(self.done, self.stopped, number, fraction)

    def stop(self) -> None:
        """Stops all jobs, and waits for them."""
        self.stopped.set()
        self.executor.shutdown(wait=False, cancel_futures=True)
        end = time.monotonic() + _GRACE
        while self.busy and time.monotonic() < end:
            time.sleep(_BEAT / 10)
        for thread in tuple(self.busy):
            self._break(thread)
        self.executor.shutdown(wait=True)

    def _break(self, thread: int) -> None:
        # a controller in Python that does not return: Ctrl-C reaches the main thread only
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


class _Processes(_Team):
    """A thread per process, which sends it jobs, waits for answers, and replaces it when it has ended."""

    def __init__(self, count: int, jobs: int) -> None:
        # a forked child would inherit the locks of threads that it does not have
        self.context = multiprocessing.get_context("spawn")
        with safe_path():  # the array and the event start a process that tracks resources
            super().__init__(count, self.context.Array("d", jobs), self.context.Event(), _block_interrupts)
        self.workers: dict[int, Worker] = {}

    def _do(self, number: int, job: Job[Any]) -> Any:
        if self.stopped.is_set():
            raise KeyboardInterrupt
        thread = threading.get_ident()
        worker = self.workers.get(thread)
        if worker is None or not worker.is_alive():
            worker = self.workers[thread] = Worker(self.context, self.done, self.stopped)
        return worker.do(number, job, self.limit)

    def stop(self) -> None:
        """Stops all jobs, and ends the processes."""
        super().stop()
        for worker in self.workers.values():
            worker.end(_GRACE)

    def _break(self, thread: int) -> None:
        # a controller in Python that does not return; its process has written nothing of value
        if thread in self.workers:
            self.workers[thread].terminate()


def _block_interrupts() -> None:
    # processes that start here inherit the blocked Ctrl-C, which a terminal sends to all processes
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
