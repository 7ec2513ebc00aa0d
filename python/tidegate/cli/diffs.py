"""The command diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.options import AsJson
from tidegate.cli.terminal import print_json
from tidegate.errors import InputError
from tidegate.wording import one_line


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="Folder of a `run`, `compare`, `sweep` or `suite run`.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another folder of the same kind.")],
    every: Annotated[
        bool, typer.Option("--all", help="Print all numbers, also those that are equal or nearly equal.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if anything differs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the differences between two results: in settings, verdicts and numbers.

    Numbers are compared seed by seed, because the same seed gives the same random numbers; "B - A" is the mean of these
    differences with its 95 % interval. The largest differences come first. A line says better or worse only if chance
    does not explain the difference (Student's t, 5 % for all lines together).

    Example: tidegate diff out/before out/after
    """
    from tidegate import difference
    from tidegate.cli.folders import opened
    from tidegate.output.terminal import console, show

    wanted = [word for word, _ in difference.KINDS.values()]
    results = opened(a, wanted), opened(b, wanted)
    sides = [difference.Side.of(result) for result in results]
    if sides[0].kind != sides[1].kind:
        raise InputError(f"{a} holds a {sides[0].kind}, and {b} a {sides[1].kind}; expected two of the same kind")
    between = difference.Difference(*sides)
    named = ("A", a, between.a), ("B", b, between.b)
    if as_json:
        print_json(between.to_data(every=every))
    else:
        titles = [f"{name}: {one_line(str(folder))}: {one_line(side.title)}" for name, folder, side in named]
        console().print("\n".join([*titles, ""]), soft_wrap=True)
        show(between.document(), detail=every, hint="--all shows more")
    if exit_code and between.differs:
        raise typer.Exit(1)
