"""A document as data: what it says, where, what it leaves unstated, and how each of its claims is judged.

First the tables of a `paper.toml`, then the claims that [load][tidegate.paper.reading.load] makes of them.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.errors import InputError
from tidegate.query import Expression
from tidegate.scenario.model import Model, Name
from tidegate.scenario.shapes import OneOf
from tidegate.units import show

PAPER_TOML = "paper.toml"


Text = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Pair = Annotated[list[Number], Field(min_length=2, max_length=2)]
Published = Annotated[Pair | Number, OneOf("a number, or [least, largest]")]


class Tolerance(Model):
    """How far from the published number ours still agrees."""

    within: Annotated[
        Annotated[list[Text], Field(min_length=1)] | Text,
        OneOf('text such as "5%", "0.5 ms", "2 sigma" or "count", or a list of them'),
    ]
    """`"5%"` of the published number, an amount in its unit (`"0.5 ms"`; `"2 points"` where the unit is %),
    `"2 sigma"` of the document's own spread, or `"count"`: the 95 % interval of the mean of rare events of which one
    count is printed; of a list the widest."""
    why: Text
    """Why no more can be asked for, or no less."""

    @property
    def parts(self) -> list[str]:
        """Each of the bounds."""
        return [self.within] if isinstance(self.within, str) else list(self.within)


class Kind(enum.StrEnum):
    """What a claim is evidence of; each kind is counted apart."""

    RESULT = "result"
    """Something that the document found."""
    FITTED = "fitted"
    """The same, but settings that the document does not state were chosen so that it comes out: in sample."""
    SETTING = "setting"
    """A setting that the document states, read back from what was run."""
    OWN = "own"
    """Ours: the document does not say it."""


class Judged(Model):
    """What decides a claim beside its own bound."""

    kind: Literal["result", "fitted", "setting", "own"] | None = None
    """What it is evidence of; a result of the document by default."""
    trend: Text | None = None
    """A rule; where it holds, a claim that does not agree still has the *same trend*."""
    reason: Text | None = None
    """Why ours differs; `{gcc.loss}` is filled with what was measured."""
    because: Text | None = None
    """A rule that must hold for the reason to be believed."""
    quick: bool = True
    """Whether a quick run measures it."""


class NumberClaim(Judged):
    """A published number."""

    id: Name
    where: Text
    text: Text
    published: Published
    unit: str = ""
    sigma: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    tolerance: Tolerance
    measure: Text
    digits: Annotated[int, Field(ge=0, le=9)] | None = None


class StatementClaim(Judged):
    """Something that the document says in words."""

    id: Name
    where: Text
    text: Text
    agrees: Text
    """The rule that makes of the words something that can be false."""


class Column(Model):
    """One column of a published table."""

    name: Text
    unit: str | None = None
    tolerance: Tolerance | None = None
    digits: Annotated[int, Field(ge=0, le=9)] | None = None

    @property
    def title(self) -> str:
        """Its name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


class Cells(Judged):
    """What is different about some cells of a table; left out, `rows` or `columns` are all of them."""

    rows: list[Text] | None = None
    columns: list[Text] | None = None
    tolerance: Tolerance | None = None
    quick: bool | None = None  # type: ignore[assignment]


Cell = Annotated[Literal["-"] | Pair | Number, OneOf('a number, [least, largest], or "-"')]


class PublishedTable(Judged):
    """A table of numbers; `{row}` and `{column}` in measure, trend, because and reason name the cell."""

    id: Name
    where: Text
    text: Text
    row: Text
    """What the rows are, as the head of their column."""
    columns: Annotated[
        list[Annotated[Column | Text, OneOf("a name, or a table with a name")]],
        Field(min_length=1),
    ]
    rows: Annotated[dict[str, list[Cell]], Field(min_length=1)]
    unit: str = ""
    tolerance: Tolerance | None = None
    measure: Text
    cells: list[Cells] = Field(default_factory=list)

    @property
    def heads(self) -> list[Column]:
        """The columns, each as a table, with the table's unit where they have none of their own."""
        heads = (head if isinstance(head, Column) else Column(name=head) for head in self.columns)
        return [head.model_copy(update={"unit": self.unit}) if head.unit is None else head for head in heads]


class Unstated(Model):
    """Something that one has to know to run it, and that the document does not say."""

    what: Text
    chosen: Text
    why: Text
    fitted: bool = False
    """Whether it was chosen so that the document's numbers come out."""


class Contradicted(Model):
    """A stated setting that was not run, because the document's own numbers contradict it."""

    what: Text
    stated: Text
    run: Text
    gives: Text
    """What the stated one gives; `{measure}` is filled with what was measured."""


class Paper(Model):
    """A document whose numbers are run again."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    title: Text
    authors: Annotated[list[Text], Field(min_length=1)]
    year: Annotated[int, Field(ge=1900, le=2200)]
    kind: Text
    """What it is: a thesis, an Internet-Draft, slides."""
    source: Text
    """Where it can be found."""
    about: Text
    """What it does, and what is run again of it."""
    figure: Text | None = None
    """The document's main figure, by the name of the drawing that stands for it."""
    unstated: list[Unstated] = Field(default_factory=list)
    contradicted: list[Contradicted] = Field(default_factory=list)
    claim: list[Annotated[NumberClaim | StatementClaim, OneOf("published (a number) or agrees (a rule)")]] = Field(
        default_factory=list
    )
    table: list[PublishedTable] = Field(default_factory=list)


# --- claims, ready to be judged -------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """How far ours may be off."""

    words: str
    """As the paper's file says it."""
    why: str
    share: float = 0.0
    """Of the published number."""
    amount: float = 0.0
    """In its unit."""
    count: bool = False
    """Whether the number is a count of rare events, whose mean may be anything in its 95 % interval."""

    def around(self, published: float) -> tuple[float, float]:
        """The least and the largest number that still agree.

        >>> Bound("5%", "", 0.05).around(100.0)
        (95.0, 105.0)
        >>> [round(end, 2) for end in Bound("count", "", count=True).around(1.0)]
        [0.01, 5.56]
        """
        wide = max(self.share * abs(published), self.amount)
        low, high = poisson_interval(published) if self.count else (published, published)
        return min(low, published - wide), max(high, published + wide)


def poisson_interval(count: float) -> tuple[float, float]:
    """The 95 % interval of the mean of which one count is known, of events that are rare and independent.

    The exact one is of chi-squared quantiles (Garwood 1936); this is Wilson and Hilferty's approximation of them, which
    is off by some 0.02.

    >>> [round(end, 2) for end in poisson_interval(0)], [round(end, 1) for end in poisson_interval(25)]
    ([0.0, 3.67], [16.2, 36.9])
    """

    def end(mean: float, sigmas: float) -> float:
        return mean * (1 - 1 / (9 * mean) + sigmas / (3 * math.sqrt(mean))) ** 3

    sigmas = 1.959964  # of a normal distribution, two-sided 95 %
    return max(0.0, end(count, -sigmas)) if count > 0 else 0.0, end(count + 1, sigmas)


@dataclass(frozen=True)
class Phrase:
    """Text with expressions in braces."""

    parts: tuple[str | Expression, ...]

    @classmethod
    def read(cls, text: str) -> Phrase:
        """Takes the braces apart.

        Raises:
            InputError: when what is in them is no expression.
        """
        pieces = re.split(r"\{([^{}]*)\}", " ".join(text.split()))
        if any(brace in piece for piece in pieces[::2] for brace in "{}"):
            raise InputError(f"found {show(text)}; a brace is not closed, or not opened")
        return cls(tuple(Expression(piece) if at % 2 else piece for at, piece in enumerate(pieces)))


@dataclass(frozen=True)
class Claim:
    """One thing that the document says, and what decides whether it is so here."""

    id: str
    where: str
    text: str
    published: float | tuple[float, float] | None = None
    """The number, or the least and the largest; `None` for a statement."""
    unit: str = ""
    sigma: float | None = None
    bound: Bound | None = None
    measure: str | None = None
    digits: int = 0
    """Digits after the point that the document prints."""
    agrees: Expression | None = None
    trend: Expression | None = None
    because: Expression | None = None
    reason: Phrase | None = None
    group: str = ""
    """Where its reason stands, which cells of a table share."""
    quick: bool = True
    kind: Kind = Kind.RESULT
    cell: tuple[str, str, str] | None = None
    """Table, row and column, for a number of a table."""


@dataclass(frozen=True)
class Document:
    """A paper with its claims in their order."""

    key: str
    folder: Path
    paper: Paper
    claims: tuple[Claim, ...]
    gives: tuple[Phrase, ...] = ()
    """What each contradicted setting gives."""
    places: Mapping[str, str] = field(default_factory=dict)
    """File and line of each claim."""

    @property
    def printed(self) -> dict[str, float]:
        """The document's single numbers by the measure that each is held against."""
        claims = self.claims
        return {one.measure: one.published for one in claims if one.measure and isinstance(one.published, int | float)}
