"""Where many runs are done: the contract of an engine, and which of them is at work.

An engine gets jobs and gives their results in order. There are two: the pool of this machine (`pool`), and Dask
(`dask`). Whoever chooses one says so once, around everything that is run, and whoever has runs to do asks nobody:

    with engine.using(Cluster("tcp://10.0.0.5:8786")):
        compare(["gcc", "nada"], seeds=100)

A run is the same bit for bit on each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from tidegate.runs import pool
from tidegate.runs.pool import Job, Progress

T = TypeVar("T")

Keep = Callable[[int, Any], Any]
"""Told the number of a job and its result as soon as it is there; what it returns stands in the list instead."""


class How(TypedDict, total=False):
    """How jobs are done."""

    workers: int | None
    """How many at once, where the engine has a choice."""
    processes: bool
    """Whether jobs are busy in Python, so that threads would wait for each other."""
    progress: Progress | None
    """Told the fraction done, some ten times a second."""
    keep_going: bool
    """Whether an error is returned in its place, rather than raised at once."""
    keep: Keep | None
    """Called in the caller's thread for each result as it comes. Whoever writes files does it here: a job may be done
    where the files are not."""


class Engine(Protocol):
    """Something that does jobs."""

    def run_all(self, jobs: Sequence[Job[T]], **how: Unpack[How]) -> list[T | BaseException]:
        """Does all jobs and returns their results in order.

        Raises:
            KeyboardInterrupt: when the person asks to stop; nothing of the work is under way then.
            RunError: when a process of a run went away.
        """


POOL: Engine = pool
"""The engine where nobody chose another one: threads or processes of this machine."""

_chosen: ContextVar[Engine] = ContextVar("tidegate engine", default=POOL)


@contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """All that is run inside is run by this engine."""
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
