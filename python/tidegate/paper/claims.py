"""A document as data: its claims, how each is judged, and the settings that it leaves unstated.

First the tables of a `paper.toml`, then the claims that [load][tidegate.paper.reading.load] makes from them.
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
Published = Annotated[Pair | Number, OneOf("a number, or [minimum, maximum]")]


class Tolerance(Model):
    """Largest distance from the published number at which ours still agrees."""

    within: Annotated[
        Annotated[list[Text], Field(min_length=1)] | Text,
        OneOf('text such as "5%", "0.5 ms", "2 sigma" or "count", or a list of them'),
    ]
    """`"5%"` of the published number, an amount in its unit (`"0.5 ms"`; `"2 points"` where the unit is %),
    `"2 sigma"` of the document's own spread, or `"count"` where the number is one count of rare events: the 95 %
    interval of their mean. The widest bound of a list holds."""
    why: Text
    """Why the tolerance is neither smaller nor larger."""
    wide: Text | None = None
    """Why the tolerance may hold the number without the document's mechanism as well, if it does."""

    @property
    def parts(self) -> list[str]:
        """The bounds as a list."""
        return [self.within] if isinstance(self.within, str) else list(self.within)


class Kind(enum.StrEnum):
    """Kind of evidence that a claim gives; each kind is counted separately."""

    RESULT = "result"
    """A result of the document."""
    FITTED = "fitted"
    """A result of the document over fitted settings: unstated ones were chosen so that ours comes out the same."""
    SETTING = "setting"
    """A setting that the document states, read back from what was run."""
    OWN = "own"
    """A claim of ours, which the document does not make."""
    QUOTED = "quoted"
    """A result of other work, which the document quotes."""


class Judged(Model):
    """Keys that decide a claim, besides its own bound."""

    kind: Literal["result", "fitted", "setting", "own", "quoted"] | None = None
    """Kind of evidence; a result of the document by default."""
    trend: Text | None = None
    """A rule. If it holds, a claim that does not agree still has the *same trend*."""
    trend_in_words: Text | None = None
    """The same rule as a sentence for the reader."""
    reason: Text | None = None
    """Why ours differs; the measured value replaces `{gcc.loss}`."""
    because: Text | None = None
    """A rule that confirms the reason if it holds."""
    open: Text | None = None
    """A rule that holds if the verdict hangs on a setting that the document does not state: with some of its values the
    claim agrees, with others it does not. The verdict is *cannot be told* then; the rule confirms the reason."""
    unturned: Text | None = None
    """Why no number of ours turns the rule that holds, if none does: an exact count of 0, say."""
    note: Text | None = None
    """What to know of a claim that agrees: that it does so by luck, say; the measured value replaces `{gcc.loss}`."""
    quick: bool = True
    """Whether a quick run measures the claim."""


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
    """A claim that the document makes in words."""

    id: Name
    where: Text
    text: Text
    agrees: Text
    """A rule that holds if the statement is true, and can fail."""
    in_words: Text | None = None
    """The same rule as a sentence for the reader."""


class Column(Model):
    """One column of a published table."""

    name: Text
    unit: str | None = None
    tolerance: Tolerance | None = None
    digits: Annotated[int, Field(ge=0, le=9)] | None = None
    unturned: Text | None = None

    @property
    def title(self) -> str:
        """The column's name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


class Cells(Judged):
    """Keys for some cells of a table; without `rows` or `columns`, for all rows or all columns."""

    rows: list[Text] | None = None
    columns: list[Text] | None = None
    tolerance: Tolerance | None = None
    quick: bool | None = None  # type: ignore[assignment]


Cell = Annotated[Literal["-"] | Pair | Number, OneOf('a number, [minimum, maximum], or "-"')]


class PublishedTable(Judged):
    """A table of numbers; `{row}` and `{column}` in measure, trend, because and reason name the cell."""

    id: Name
    where: Text
    text: Text
    row: Text
    """Head of the column that names the rows."""
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
        """The columns as tables; a column without a unit has the table's."""
        heads = (head if isinstance(head, Column) else Column(name=head) for head in self.columns)
        return [head.model_copy(update={"unit": self.unit}) if head.unit is None else head for head in heads]


class Unstated(Model):
    """A setting that a run needs and the document does not state."""

    what: Text
    chosen: Text
    why: Text
    fitted: bool = False
    """Whether the value was chosen so that the document's numbers come out."""
    decides: list[Text] = Field(default_factory=list)
    """Ids of the claims and tables whose verdicts are others with other values of the setting. Each is fitted, or has a
    rule `open`; the first screen shows the setting if one of them is a main claim of the document."""
    gives: Text | None = None
    """Results with other values; the measured value replaces `{measure}`."""


class Contradicted(Model):
    """A stated setting that is not run, because the document's own numbers contradict it."""

    what: Text
    stated: Text
    run: Text
    gives: Text
    """Result of a run with the stated setting; the measured value replaces `{measure}`."""


class Paper(Model):
    """A document whose numbers are run again."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    title: Text
    authors: Annotated[list[Text], Field(min_length=1)]
    year: Annotated[int, Field(ge=1900, le=2200)]
    kind: Text
    """Kind of document: a thesis, an Internet-Draft, slides."""
    source: Text
    """Address or place of the document."""
    about: Text
    """The document's subject, and the part of it that is run again."""
    headline: list[Text] = Field(default_factory=list)
    """Ids of the claims of the document's abstract or conclusion; the first screen has them before all others."""
    figure: Text | None = None
    """Name of the drawing that reproduces the document's main figure."""
    unstated: list[Unstated] = Field(default_factory=list)
    contradicted: list[Contradicted] = Field(default_factory=list)
    claim: list[Annotated[NumberClaim | StatementClaim, OneOf("published (a number) or agrees (a rule)")]] = Field(
        default_factory=list
    )
    table: list[PublishedTable] = Field(default_factory=list)


# --- claims, ready to be judged -------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """Largest deviation at which a number of ours still agrees."""

    words: str
    """The bound as the paper's file states it."""
    why: str
    share: float = 0.0
    """Allowed deviation as a share of the published number."""
    amount: float = 0.0
    """Allowed deviation in the number's unit."""
    wide: str = ""
    """Why it may hold the number without the document's mechanism as well."""
    count: bool = False
    """Whether the number is a count of rare events, so that any mean in its 95 % interval agrees."""

    def around(self, published: float) -> tuple[float, float]:
        """The smallest and the largest number that still agree.

        >>> Bound("5%", "", 0.05).around(100.0)
        (95.0, 105.0)
        >>> [round(end, 2) for end in Bound("count", "", count=True).around(1.0)]
        [0.01, 5.56]
        """
        margin = max(self.share * abs(published), self.amount)
        low, high = poisson_interval(published) if self.count else (published, published)
        return min(low, published - margin), max(high, published + margin)


def poisson_interval(count: float) -> tuple[float, float]:
    """The 95 % interval of the mean number of rare, independent events, from one count of them.

    The exact interval has chi-squared quantiles as its ends (Garwood 1936). This one uses Wilson and Hilferty's
    approximation of them, which is off by about 0.02.

    >>> [round(end, 2) for end in poisson_interval(0)], [round(end, 1) for end in poisson_interval(25)]
    ([0.0, 3.67], [16.2, 36.9])
    """

    def end(mean: float, sigmas: float) -> float:
        return mean * (1 - 1 / (9 * mean) + sigmas / (3 * math.sqrt(mean))) ** 3

    sigmas = 1.959964  # of a normal distribution, two-sided 95 %
    return max(0.0, end(count, -sigmas)) if count > 0 else 0.0, end(count + 1, sigmas)


@dataclass(frozen=True)
class Phrase:
    """Text with expressions in braces, taken apart."""

    parts: tuple[str | Expression, ...]

    @classmethod
    def parse(cls, text: str) -> Phrase:
        """Parses a text with expressions in braces.

        Raises:
            InputError: when the text in a pair of braces is no expression.
        """
        pieces = re.split(r"\{([^{}]*)\}", " ".join(text.split()))
        if any(brace in piece for piece in pieces[::2] for brace in "{}"):
            raise InputError(f"found {show(text)}; a brace has no partner; expected {{ and }} in pairs")
        return cls(tuple(Expression(piece) if index % 2 else piece for index, piece in enumerate(pieces)))


@dataclass(frozen=True)
class Claim:
    """A single claim of the document, and the rules that decide whether it holds here."""

    id: str
    where: str
    text: str
    published: float | tuple[float, float] | None = None
    """The number, or the smallest and the largest; `None` for a statement."""
    unit: str = ""
    sigma: float | None = None
    bound: Bound | None = None
    measure: str | None = None
    digits: int = 0
    """Digits after the point that the document prints."""
    agrees: Expression | None = None
    in_words: str = ""
    """The rule of `agrees` as a sentence for the reader."""
    trend: Expression | None = None
    trend_in_words: str = ""
    because: Expression | None = None
    open: Expression | None = None
    reason: Phrase | None = None
    unturned: str = ""
    """Why no number of ours turns the rule that holds; empty if one does."""
    note: Phrase | None = None
    """What to know of the claim if it agrees."""
    quick: bool = True
    kind: Kind = Kind.RESULT
    cell: tuple[str, str, str] | None = None
    """Table, row and column of a number in a table."""

    @property
    def names(self) -> set[str]:
        """Its id, and that of its table."""
        return {self.id} if self.cell is None else {self.id, self.cell[0]}


@dataclass(frozen=True)
class Document:
    """A paper with its claims in the order of its file."""

    key: str
    folder: Path
    paper: Paper
    claims: tuple[Claim, ...]
    gives: tuple[Phrase, ...] = ()
    """Result of a run with each contradicted setting."""
    sweeps: Mapping[str, Phrase] = field(default_factory=dict)
    """Results with other values of unstated settings, by setting."""
    places: Mapping[str, str] = field(default_factory=dict)
    """File and line of each claim."""

    @property
    def printed(self) -> dict[str, float]:
        """The document's single numbers, by the measure that each is compared with."""
        return {
            claim.measure: claim.published
            for claim in self.claims
            if claim.measure and isinstance(claim.published, int | float)
        }
