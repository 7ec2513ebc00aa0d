"""The command diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import AsJson
from tidegate.cli.terminal import print_json
from tidegate.errors import InputError


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="What `run`, `compare`, `sweep` or `suite run` wrote.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another folder of the same kind.")],
    every: Annotated[
        bool, typer.Option("--all", help="Print all numbers, also those that are the same or as good as that.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 when anything differs.")] = False,
    as_json: AsJson = False,
) -> None:
    """What differs between two results: in their settings, in their verdicts, and in their numbers.

    Numbers are held against each other seed by seed, since the same seed is the same luck, and B less A is the mean of
    these differences with its 95 % interval. What differs most stands first. A line says better or worse where luck
    does not explain the difference: Student's t, 5 % for all lines together.

    Example: tidegate diff out/before out/after
    """
    from tidegate import difference
    from tidegate.cli.folders import opened
    from tidegate.output.terminal import console, show

    wanted = [word for word, _ in difference.KINDS.values()]
    results = opened(a, wanted), opened(b, wanted)
    kinds = [difference.Side.of(one) for one in results]
    if kinds[0].kind != kinds[1].kind:
        raise InputError(f"{a} holds a {kinds[0].kind}, and {b} a {kinds[1].kind}; expected two of one kind")
    between = difference.Difference(*kinds)
    if as_json:
        print_json(between.to_data(every=every))
    else:
        console().print(f"A: {a}: {between.a.title}\nB: {b}: {between.b.title}\n", soft_wrap=True)
        show(between.document(), detail=every, hint="--all shows more")
    if exit_code and between.differs:
        raise typer.Exit(1)
