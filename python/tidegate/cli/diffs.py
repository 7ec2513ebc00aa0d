"""The command diff."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import AsJson
from tidegate.cli.terminal import print_json
from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate.difference import Difference

_SHOWN = 30  # lines of a table that nobody asked all of


def add_to(app: typer.Typer) -> None:
    """Puts the command on the command line."""
    app.command()(diff)


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
    from tidegate.difference import telling

    wanted = [word for word, _ in difference.KINDS.values()]
    results = opened(a, wanted), opened(b, wanted)
    kinds = [difference.Side.of(one) for one in results]
    if kinds[0].kind != kinds[1].kind:
        raise InputError(f"{a} holds a {kinds[0].kind}, and {b} a {kinds[1].kind}; expected two of one kind")
    found = difference.Difference(*kinds)
    if as_json:
        print_json(telling.data(found, every=every))
    else:
        _print(found, a, b, every=every)
    if exit_code and found.differs:
        raise typer.Exit(1)


def _print(found: Difference, a: Path, b: Path, *, every: bool) -> None:
    from tidegate.cli.tables import console, plain_table, print_table
    from tidegate.difference import telling

    to = console()
    to.print(f"A: {a}: {found.a.title}\nB: {b}: {found.b.title}", soft_wrap=True)
    if not found.differs:
        to.print("\nnothing differs", soft_wrap=True)
    wheres = telling.where_heads(found)
    _print_words(("setting", "A", "B"), [(one.key, one.a, one.b) for one in found.settings], every=every)
    answers = [(*one.where.parts, one.a, one.b) for one in found.answers]
    _print_words((*wheres, "verdict in A", "in B"), answers, every=every)
    for name, places in (("A", found.only_a), ("B", found.only_b)):
        if places:
            told = [", ".join(place) for place in places]
            rest = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN and not every else ""
            to.print(f"\nonly in {name}: {'; '.join(told if every else told[:_SHOWN])}{rest}", soft_wrap=True)
    numbers = found.numbers if every else [one for one in found.numbers if one.matters][:_SHOWN]
    if numbers:
        to.print(f"\n{telling.seeds(found)}\n", soft_wrap=True)
        table = plain_table(*telling.heads(found))
        for at in [*range(len(wheres) + 2), len(wheres) + 4]:
            table.columns[at].justify = "left"
        for one in numbers:
            table.add_row(*telling.cells(found, one))
        print_table(table, len(wheres) + 2)
    elif found.places and not found.numbers:
        to.print("\nno number is on either side")
    elif not found.places:
        to.print("\nno run of one side is like one of the other, so that no numbers can be compared")
    for number, line in enumerate(telling.summed_up(found, numbers)):
        to.print(f"{'' if number else chr(10)}{line}", soft_wrap=True)


def _print_words(heads: Sequence[str], lines: Sequence[Sequence[str]], *, every: bool) -> None:
    """A table of words, if there is a line of it."""
    from tidegate.cli.tables import console, plain_table, print_table

    if not lines:
        return
    table = plain_table(*heads)
    for column in table.columns:
        column.justify, column.no_wrap, column.overflow = "left", False, "fold"
    shown = lines if every else lines[:_SHOWN]
    for line in shown:
        table.add_row(*line)
    console().print()
    print_table(table)
    if len(shown) < len(lines):
        console().print(f"and {len(lines) - len(shown)} more; --all shows them")
