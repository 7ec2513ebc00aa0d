"""Where runs are done: the options of all commands that do many."""

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
        "--engine", help="Where runs are done: pool, this machine's cores (the default), or dask; see docs/cluster.md."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Of Dask, such as tcp://10.0.0.5:8786. Without it, --engine dask starts -j processes of this machine.",
    ),
]


@contextmanager
def engine_of(name: str | None, scheduler: str | None, jobs: int | None) -> Iterator[None]:
    """All that is run inside is run where `--engine` and `--scheduler` say.

    Raises:
        InputError: when they do not go together, nobody answers, or workers are not what is here.
    """
    if name == "pool" and scheduler is not None:
        raise InputError(f"--scheduler {scheduler}: goes with --engine dask")
    if name != "dask" and scheduler is None:
        yield
        return
    if jobs is not None and scheduler is not None:
        raise InputError(f"-j {jobs}: how many runs go at once is the cluster's to say; leave it out")
    from tidegate.runs import engine
    from tidegate.runs.dask import Cluster
    from tidegate.wording import counted

    with Cluster(scheduler, workers=jobs) as cluster, engine.using(cluster):
        say(f"Dask: {counted(cluster.workers, 'worker')} at {cluster.address}")
        yield
