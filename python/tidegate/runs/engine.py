"""Engines that do many runs: their interface, and the choice among them.

An engine gets jobs and returns their results in order. There are two: the pool of this machine (`pool`), and Dask
(`dask`). An engine is chosen once, around all code that does runs, which needs no argument for it:

    with engine.using(Cluster("tcp://10.0.0.5:8786")):
        compare(["gcc", "nada"], seeds=100)

A run is the same bit for bit on each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from tidegate.runs import pool
from tidegate.runs.pool import Job, Progress

T = TypeVar("T")

Keep = Callable[[int, Any], Any]
"""Called with the number and the result of each job as it ends; its return value replaces the result."""


class How(TypedDict, total=False):
    """Options of `run_all`."""

    workers: int | None
    """Number of jobs at once, where the engine has a choice."""
    processes: bool
    """Whether jobs are busy in Python, so that threads would wait for each other."""
    progress: Progress | None
    """Called with the fraction done, some ten times a second."""
    keep_going: bool
    """Whether an error is returned in its place, rather than raised at once."""
    keep: Keep | None
    """Called in the caller's thread for each result as it comes. Files are written here, since a job may run on another
    machine."""
    together: Sequence[Hashable]
    """A key for each job, where those of one key fail together; with a time limit, see `pool.run_all`."""


class Engine(Protocol):
    """Interface of an engine."""

    def run_all(self, jobs: Sequence[Job[T]], **how: Unpack[How]) -> list[T | BaseException]:
        """Does all jobs and returns their results in order.

        Raises:
            KeyboardInterrupt: when the person asks to stop; no job is running then.
            RunError: when a process of a run ended.
        """


POOL: Engine = pool
"""The default engine: threads or processes of this machine."""

_chosen: ContextVar[Engine] = ContextVar("tidegate engine", default=POOL)


@contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """Makes this engine do all runs inside."""
    before = _chosen.set(engine)
    try:
        yield engine
    finally:
        _chosen.reset(before)


def current() -> Engine:
    """The engine that was chosen."""
    return _chosen.get()


def run_all(jobs: Sequence[Job[T]], **how: Unpack[How]) -> list[T | BaseException]:
    """Does all jobs by the engine that was chosen; see [Engine][tidegate.runs.engine.Engine].

    A job whose class says `here = True` needs this machine (its encoders, its cache), and is done by the pool.
    """
    chosen = POOL if any(getattr(job, "here", False) for job in jobs) else current()
    return chosen.run_all(jobs, **how)
