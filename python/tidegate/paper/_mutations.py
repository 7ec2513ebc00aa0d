"""Verdicts without the mechanism that a document is about, to see which of them turn.

If a verdict stays the same when, say, a congestion controller is replaced by a sender of constant rate, it is no
evidence for that controller. The verdicts come from runs of the paper's experiment with such changes. They are stored
beside the paper in `mutations.json`; the slow tests compute them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tidegate._inputs import JSON, parse_json
from tidegate._inputs import read as read_input
from tidegate.errors import InputError
from tidegate.paper.verdicts import Verdict
from tidegate.results.shapes import Shape, checked

FILE = "mutations.json"
"""Name of the file in a paper's folder."""

AS_RUN = "as run"
"""Name of the unchanged experiment, run with as many seeds as the changed ones."""


@dataclass(frozen=True)
class MutatedVerdict:
    """The verdict on a claim under a mutation."""

    verdict: Verdict
    measured: str
    """The measured numbers, in words."""


@dataclass(frozen=True)
class Mutations:
    """A paper's verdicts with its mechanism and without."""

    seeds: int
    """Number of seeds of each run."""
    changes: Mapping[str, str]
    """Descriptions of the mutations, by name."""
    verdicts: Mapping[str, Mapping[str, MutatedVerdict]]
    """Verdicts by claim, then by mutation; `AS_RUN` is among the mutations."""

    def turned_by(self, claim: str) -> list[str] | None:
        """Names of the mutations that change the verdict on a claim; `None` if the claim was not judged."""
        verdicts = self.verdicts.get(claim)
        if verdicts is None or verdicts[AS_RUN].verdict is Verdict.NOT_RUN:
            return None
        return [name for name in self.changes if verdicts[name].verdict is not verdicts[AS_RUN].verdict]

    def count(self, name: str, claims: Sequence[str]) -> tuple[int, int]:
        """Number of claims that turn under a mutation, and number of those that were judged."""
        turned_by = [names for claim in claims if (names := self.turned_by(claim)) is not None]
        return sum(name in names for names in turned_by), len(turned_by)


class _Stored(Shape):
    seeds: Annotated[int, Field(gt=0)]
    mutations: dict[str, str]
    claims: dict[str, list[Annotated[list[str], Field(min_length=2, max_length=2)]]]


def load(folder: Path) -> Mutations | None:
    """Loads the verdicts that are stored in a paper's folder; `None` if there are none.

    Raises:
        InputError: when the file cannot be used.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        data = checked(path, parse_json(read_input(path, JSON).data, JSON.limit), _Stored, "the file cannot be used")
        names = [AS_RUN, *data.mutations]
        verdicts = {
            claim: {
                name: MutatedVerdict(Verdict(verdict), measured)
                for name, (verdict, measured) in zip(names, row, strict=True)
            }
            for claim, row in data.claims.items()
        }
        return Mutations(data.seeds, data.mutations, verdicts)
    except ValueError as error:
        raise InputError(
            f"{path}: the file cannot be used: {error}; TIDEGATE_BLESS=1 make mutations writes it again"
        ) from None


def text(mutations: Mutations) -> str:
    """Text of the file, with one line a claim, so that a diff shows which claims changed."""

    def lines() -> Iterator[str]:
        for claim, row in mutations.verdicts.items():
            values: list[Any] = [[str(mutated.verdict), mutated.measured] for mutated in row.values()]
            yield f"  {json.dumps(claim)}: {json.dumps(values, ensure_ascii=False)}"

    head = json.dumps(dict(mutations.changes), indent=1, ensure_ascii=False)
    body = ",\n".join(lines())
    return f'{{"seeds": {mutations.seeds},\n"mutations": {head},\n"claims": {{\n{body}\n}}}}\n'
