"""Options that choose where runs are computed, for all commands with many runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Literal

import typer

from tidegate.cli.terminal import say
from tidegate.errors import InputError, located

EngineName = Annotated[
    Literal["pool", "dask"] | None,
    typer.Option(
        "--engine", help="Where to compute runs: pool (this machine's cores; the default) or dask; see docs/cluster.md."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask's scheduler, such as tcp://10.0.0.5:8786; by default --engine dask starts -j processes here.",
    ),
]


TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        help="End a run that takes longer than this by the clock, such as 60s: it counts as failed.",
    ),
]


def engine_of(
    name: str | None, scheduler: str | None, jobs: int | None, time_limit: str | None = None
) -> AbstractContextManager[None]:
    """Computes all runs in its context where `--engine` and `--scheduler` say, each for at most `--time-limit`.

    Raises:
        InputError: when the time limit is none. In the context also when the options do not go together, no scheduler
            answers, or workers have another tidegate.
    """
    return _engine_of(name, scheduler, jobs, None if time_limit is None else _seconds(time_limit))


def _seconds(time_limit: str) -> float:
    from tidegate.units import Duration

    with located("--time-limit"):
        seconds = Duration.parse(time_limit) / 1e9
    if seconds <= 0:
        raise InputError(f"--time-limit: found {time_limit}; expected a time above zero, such as 60s")
    return seconds


@contextmanager
def _engine_of(name: str | None, scheduler: str | None, jobs: int | None, time_limit: float | None) -> Iterator[None]:
    if time_limit is not None:
        if name == "dask" or scheduler is not None:
            raise InputError("--time-limit: the option is for runs on this machine; leave --engine and --scheduler out")
        from tidegate.runs import pool

        with pool.limited(time_limit):
            yield
        return
    if name == "pool" and scheduler is not None:
        raise InputError(f"--scheduler {scheduler}: the option is only valid with --engine dask")
    if name != "dask" and scheduler is None:
        yield
        return
    if jobs is not None and scheduler is not None:
        raise InputError(f"-j {jobs}: the cluster decides the number of runs at once; leave -j out")
    from tidegate.runs import engine
    from tidegate.runs.dask import Cluster
    from tidegate.wording import counted

    with Cluster(scheduler, workers=jobs) as cluster, engine.using(cluster):
        say(f"Dask: {counted(cluster.workers, 'worker')} at {cluster.address}")
        yield
