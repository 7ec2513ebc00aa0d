"""Many runs at once: over threads, since the engine releases the interpreter lock, or over processes.

Whatever the number of workers, every run is the same bit for bit: it depends on its scenario and seed
only.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from tidegate._signals import noted
from tidegate.output import progress as bars
from tidegate.runs._interpreter import safe_path
from tidegate.runs._worker import ProcessEnded, Worker, tell

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

Tick = Callable[[float], bool]
"""Told the fraction of simulated time that is done; raises `KeyboardInterrupt` to stop the run."""

Progress = bars.Progress

_BEAT = 0.1  # seconds between two looks at the progress
_HAS_MASKS = hasattr(signal, "pthread_sigmask")  # not on Windows
_GRACE = 1.0  # seconds that runs have to stop by themselves


class Job(Protocol[T_co]):
    """One piece of work."""

    def __call__(self, tick: Tick) -> T_co:
        """Does the work and returns its result; tells `tick` how far it is."""


def cores() -> int:
    """How many runs go at once by default."""
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
) -> list[T | BaseException]:
    """Does all jobs and returns their results in order.

    Args:
        jobs: The work; with `processes`, everything in it has to be picklable.
        workers: How many at once; one a core by default.
        processes: Whether to use processes, for controllers that are busy in Python.
        progress: Told the fraction done.
        keep_going: Whether an error is returned in its place, rather than raised at once.
        keep: Called in this thread with the number of a job and its result as it comes; what it returns stands in the
            list instead.

    Raises:
        KeyboardInterrupt: when the person asks to stop; running jobs are stopped first.
        RunError: when a process of a run went away.
    """
    if not jobs:
        return []
    count = max(1, min(workers or cores(), len(jobs)))
    with noted() as asked, ExitStack() as at_the_end:
        team = _Processes(count, len(jobs)) if processes else _Team(count, [0.0] * len(jobs), threading.Event())
        at_the_end.callback(team.stop)
        # callbacks rather than `wait`, which looks at every one of a hundred thousand futures each time
        ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        missing = {team.executor.submit(team.work, number, job): number for number, job in enumerate(jobs)}
        for future in missing:
            future.add_done_callback(ended.put)
        outcomes: list[Any] = [None] * len(jobs)
        told = 0.0
        while missing:
            done = {missing.pop(future): future for future in taken(ended)}
            # what is finished is kept also where it was the last thing before the person had enough
            for number, future in done.items():
                error = future.exception()
                outcomes[number] = error or (future.result() if keep is None else keep(number, future.result()))
            if asked.is_set():
                raise KeyboardInterrupt
            if progress is not None and (not missing or time.monotonic() - told >= _BEAT):
                progress(sum(team.done[:]) / len(jobs))
                told = time.monotonic()
            errors = [future.exception() for future in done.values()]
            # SIGTERM for a whole group reaches the processes, too, and maybe before us
            if any(isinstance(error, ProcessEnded) for error in errors) and asked.wait(_BEAT):
                raise KeyboardInterrupt
            if not keep_going and (failed := next((error for error in errors if error is not None), None)):
                raise failed
        if progress is not None:
            progress(1.0)
        return outcomes


def taken(ended: queue.SimpleQueue[T]) -> list[T]:
    """What came within a beat."""
    found: list[T] = []
    with suppress(queue.Empty):
        found.append(ended.get(timeout=_BEAT))
        while True:
            found.append(ended.get_nowait())
    return found


class _Team:
    """Threads that do a job each.

    Args:
        count: How many.
        done: The part of each job that is done.
        stopped: Set when jobs are to stop.
        initializer: Called in each thread before its first job.
    """

    def __init__(self, count: int, done: Any, stopped: Any, initializer: Callable[[], None] | None = None) -> None:
        self.executor = ThreadPoolExecutor(count, thread_name_prefix="tidegate", initializer=initializer)
        self.done, self.stopped = done, stopped
        self.busy: set[int] = set()

    def work(self, number: int, job: Job[Any]) -> Any:
        """Does a job."""
        thread = threading.get_ident()
        self.busy.add(thread)
        try:
            result = self._do(number, job)
        finally:
            self.busy.discard(thread)
        self.done[number] = 1.0
        return result

    def _do(self, number: int, job: Job[Any]) -> Any:
        return job(partial(tell, self.done, self.stopped, number))

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
        # a controller in Python that does not come back: Ctrl-C reaches the main thread only
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


class _Processes(_Team):
    """A thread for each process: it hands over jobs, waits for answers, and begins another process where one ended."""

    def __init__(self, count: int, jobs: int) -> None:
        # a forked child would inherit the locks of threads that it does not have
        self.context = multiprocessing.get_context("spawn")
        with safe_path():  # they begin a process that keeps track of them
            super().__init__(count, self.context.Array("d", jobs), self.context.Event(), _block_interrupts)
        self.workers: dict[int, Worker] = {}

    def _do(self, number: int, job: Job[Any]) -> Any:
        if self.stopped.is_set():
            raise KeyboardInterrupt
        thread = threading.get_ident()
        worker = self.workers.get(thread)
        if worker is None or not worker.is_alive():
            worker = self.workers[thread] = Worker(self.context, self.done, self.stopped)
        return worker.do(number, job)

    def stop(self) -> None:
        """Stops all jobs, and ends the processes."""
        super().stop()
        for worker in self.workers.values():
            worker.end(_GRACE)

    def _break(self, thread: int) -> None:
        # a controller in Python that does not come back; it has written nothing that matters
        if thread in self.workers:
            self.workers[thread].terminate()


def _block_interrupts() -> None:
    # processes that begin here inherit what is blocked: Ctrl-C, which a terminal sends to all, is not for them
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
