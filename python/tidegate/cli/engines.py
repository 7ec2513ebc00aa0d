"""Options that choose where runs are computed, for all commands with many runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import typer

from tidegate.cli.terminal import say
from tidegate.errors import InputError

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


@contextmanager
def engine_of(name: str | None, scheduler: str | None, jobs: int | None) -> Iterator[None]:
    """Computes all runs in its context where `--engine` and `--scheduler` say.

    Raises:
        InputError: when the options do not go together, no scheduler answers, or workers have another tidegate.
    """
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
