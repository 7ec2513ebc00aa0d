"""Which verdicts turn when the mechanism that a document is about is taken away.

A verdict that stays what it is when, say, a congestion controller becomes a sender of constant rate is no evidence
for that controller. What turns was found by running the paper's experiment changed, and is kept with the paper in
`mutations.json`; the slow tests make it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.errors import InputError
from tidegate.paper.verdicts import Verdict

FILE = "mutations.json"
"""In the folder of a paper."""

AS_RUN = "as run"
"""The experiment as it is, with as many seeds as the changed ones had."""


@dataclass(frozen=True)
class Answer:
    """What became of a claim."""

    verdict: Verdict
    ours: str
    """What was measured, in words."""


@dataclass(frozen=True)
class Mutations:
    """A paper's verdicts with its mechanism and without."""

    seeds: int
    """With how many seeds each was run."""
    about: Mapping[str, str]
    """What each mutation changes, by its name."""
    answers: Mapping[str, Mapping[str, Answer]]
    """By claim, then by mutation; `AS_RUN` is one of them."""

    def turned_by(self, claim: str) -> list[str] | None:
        """The mutations under which the verdict is another one; `None` where the claim was not judged."""
        known = self.answers.get(claim)
        if known is None or known[AS_RUN].verdict is Verdict.NOT_RUN:
            return None
        return [name for name in self.about if known[name].verdict is not known[AS_RUN].verdict]

    def count(self, name: str, claims: Sequence[str]) -> tuple[int, int]:
        """Of so many judged claims, and how many of them turn under a mutation."""
        turned = [by for one in claims if (by := self.turned_by(one)) is not None]
        return sum(name in by for by in turned), len(turned)


def load(folder: Path) -> Mutations | None:
    """What is kept with a paper; `None` where nothing is.

    Raises:
        InputError: when the file cannot be used.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text("utf-8"))
        names = [AS_RUN, *data["mutations"]]
        answers = {
            claim: {name: Answer(Verdict(verdict), ours) for name, (verdict, ours) in zip(names, row, strict=True)}
            for claim, row in data["claims"].items()
        }
        return Mutations(int(data["seeds"]), dict(data["mutations"]), answers)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: cannot be used ({type(error).__name__}: {error}); the slow tests write it") from None


def text(found: Mutations) -> str:
    """The file: a line a claim, so that a change shows as a change of lines."""

    def lines() -> Iterator[str]:
        for claim, row in found.answers.items():
            values: list[Any] = [[str(one.verdict), one.ours] for one in row.values()]
            yield f"  {json.dumps(claim)}: {json.dumps(values, ensure_ascii=False)}"

    head = json.dumps(dict(found.about), indent=1, ensure_ascii=False)
    body = ",\n".join(lines())
    return f'{{"seeds": {found.seeds},\n"mutations": {head},\n"claims": {{\n{body}\n}}}}\n'
