"""A result as data: a title, facts and blocks in the order in which a reader asks for them.

Results hand out a [Document][tidegate.output.document.Document]; renderers make a terminal's text, Markdown, a page, or
the cell of a notebook of it. Nothing here knows any of these forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from tidegate.output.chart import Chart
from tidegate.output.palette import Look
from tidegate.results.metrics import Metric
from tidegate.results.remarks import Remarks
from tidegate.results.stats import Interval

NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""

AGAIN = "again"
"""What pages call the section that says how to make a result again."""
SAME_BITS = "The same seeds give the same bits on every machine: equal runs have equal digests"

Tone: TypeAlias = Literal["", "strong", "code", "soft", "good", "odd", "bad", "label", "words", "small"]
"""How words are set apart: `good`, `odd` and `bad` judge, `label` is a name that may be broken, `words` is prose, and
`small` an aside that only pages have."""


@dataclass(frozen=True)
class Phrase:
    """Words that are set apart from those around them."""

    text: str
    """The words."""
    tone: Tone = ""
    """How they are set apart."""
    title: str = ""
    """An explanation, for a reader who points at them."""
    look: Look | None = None
    """The line and marker that stand for them in charts, drawn before them."""


@dataclass(frozen=True)
class Number:
    """A number of a metric, with its interval."""

    metric: Metric
    """Its unit and digits."""
    value: Interval
    """Mean and half the interval, in the summary's own units."""
    mark: Literal["", "best", "unsure", "out", "sure"] = ""
    """Whether it is the best of its row for certain or perhaps by luck, or is not compared; of a difference, whether
    its sign is `sure`."""
    instead: str = ""
    """Words instead of a number, where there is none for a reason."""
    title: str = ""
    """An explanation, for a reader who points at it."""
    shade: tuple[str, str] | None = None
    """Colours of ground and letters, in a map."""
    signed: bool = False
    """Whether it is a difference, which has a plus where it is more than nothing."""


@dataclass(frozen=True)
class Judged:
    """What stands in a cell that a judgement colours."""

    words: Sequence[Sentence]
    """A line each."""
    tone: Literal["", "good", "odd", "bad"]
    """The judgement."""
    title: str = ""
    """An explanation, for a reader who points at it."""
    opens: tuple[int, int] | None = None
    """Row and column under which the data of [Cells][tidegate.output.document.Cells] have what is behind it."""
    brief: str = ""
    """What terminals and notebooks say instead of the lines."""


@dataclass(frozen=True)
class Share:
    """A part of a whole: in per cent, with a bar where there is room for it."""

    part: float
    """Between 0 and 1."""

    def __str__(self) -> str:
        return f"{100 * self.part:.0f} %"


Words: TypeAlias = "str | Phrase"
Sentence: TypeAlias = "Words | Sequence[Words]"
"""Words in a row."""
Cell: TypeAlias = "str | int | Phrase | Number | Judged | Share | Items | Sequence[Words]"
"""What stands in a table."""


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    words: Sentence
    """What they say."""
    tone: Literal["", "soft", "legend"] = ""
    """`soft` for notes, `legend` for names in a row that say which line is whose."""
    detail: bool = False
    """Whether only whole documents have it, and short forms do not."""
    rest: bool = False
    """Whether it says what short forms leave out, so that whole documents do not have it."""


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[Sentence]
    """Its items."""


@dataclass(frozen=True)
class Pairs:
    """Names and what they mean."""

    pairs: Sequence[tuple[Sentence, Sentence]]


@dataclass(frozen=True)
class Code:
    """A command or a file, as it is typed."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A picture as a file has it."""

    data: bytes
    """PNG or SVG."""
    caption: Sentence = ""
    alt: str = ""
    kind: Literal["png", "svg+xml"] = "png"
    file: str = ""
    """Where the same picture lies beside the document, for forms that hold no pictures."""

    @property
    def says(self) -> str:
        """What stands for it where no picture is shown."""
        return self.alt or plain(self.caption)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    head: Words
    """What stands over it, without unit."""
    metric: Metric | None = None
    """What its numbers are, if they are all of one metric: its unit goes into the head, its definition explains it."""
    left: bool = False
    """Whether its words stand at the left."""
    title: str = ""
    """An explanation of the head."""
    detail: bool = False
    """Whether only whole documents have it, and short forms do not."""

    @property
    def unit(self) -> str:
        """The unit as it stands behind the head; nothing where its numbers have none."""
        return f" ({self.metric.unit})" if self.metric and self.metric.unit else ""


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    cells: Sequence[Cell]
    """A cell for each column; a row with one cell alone is a heading of those below it."""
    metric: Metric | None = None
    """What its numbers are, if they are all of one metric: its unit and definition."""
    detail: bool = False
    """Whether only whole documents have it, and short forms do not."""
    kind: Literal["", "first", "sum", "group", "words"] = ""
    """The row that counts most, the sum of those above, the heading of those below, or prose in all cells."""
    below: str = ""
    """A sentence over the whole width under it."""


@dataclass(frozen=True)
class Table:
    """A table whose first column says what its rows are."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    kind: Literal["", "headline", "numbers", "scores", "prose", "map", "document", "many", "shares"] = ""
    """A style of pages: compared or many numbers, means of contenders, prose, a map in colours, shares."""
    abreast: int = 0
    """At most so many columns beside the first in one table of a page of paper; any number by default."""
    stub: int = 1
    """How many of the first columns say what a row is."""
    turned: int = 0
    """Terminals have metrics as rows where there are at most so many rows."""
    most: int = 0
    """Rows that are shown; all by default."""
    below: str = ""
    """What the sentences below rows are, as the head of a column in forms that have them in one."""

    def only(self, places: Sequence[int]) -> Table:
        """Some of its columns; rows that have not a cell for each column stay as they are."""
        rows = [
            replace(row, cells=[row.cells[place] for place in places]) if len(row.cells) == len(self.columns) else row
            for row in self.rows
        ]
        return replace(self, columns=[self.columns[place] for place in places], rows=rows)

    @property
    def brief(self) -> Table:
        """It without what whole documents alone have."""
        shown = self.only([place for place, column in enumerate(self.columns) if not column.detail])
        return replace(shown, rows=[row for row in shown.rows if not row.detail])

    @property
    def has_units(self) -> bool:
        """Whether rows have units of their own."""
        return any(row.metric is not None and row.metric.unit for row in self.rows)

    @property
    def marks(self) -> set[str]:
        """The marks that some of its numbers have and a reader has to be told: `best`, `unsure`."""
        given = {str(cell.mark) for row in self.rows for cell in row.cells if isinstance(cell, Number)}
        return given & {"best", "unsure"}


@dataclass(frozen=True)
class Drawing:
    """A chart under its title."""

    chart: Chart
    title: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Timeline:
    """Charts over time, which all zoom together, and distributions: drawn by the page's script from `data`."""

    data: Mapping[str, Any]
    """What the script draws from."""
    columns: Sequence[tuple[str, Look | None]]
    """The contenders side by side."""
    quantities: Sequence[tuple[str, str, str]]
    """What is drawn, from top to bottom: its key, its title, an explanation."""
    seeds: Sequence[int]
    """The seeds to choose from."""


@dataclass(frozen=True)
class Distribution:
    """The distribution of delay, drawn by the page's script from the timeline's data."""

    title: str
    caption: str


@dataclass(frozen=True)
class Cells:
    """A table whose cells a reader opens."""

    table: Table
    data: Callable[[int], Mapping[str, Any]]
    """What the page's script shows of opened cells, in at most so many bytes; `note` says what was left out."""
    how: str = ""
    """How cells are opened, where they can be."""
    closed: str = ""
    """What is said where they cannot."""


@dataclass(frozen=True)
class Details:
    """Blocks that a reader opens."""

    title: str
    blocks: Sequence[Block]
    open: bool = False
    bulk: bool = False
    """Whether it is a long list that pages fold away and texts leave out."""


@dataclass(frozen=True)
class Beside:
    """Blocks side by side, where there is room."""

    blocks: Sequence[Block]
    kind: Literal["pair", "columns", "maps"] = "columns"


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    title: str
    blocks: Sequence[Block]
    id: str = ""
    level: Literal[2, 3] = 2
    detail: bool = False
    """Whether only whole documents have it, and short forms do not."""


Block: TypeAlias = (
    "Paragraph | Items | Pairs | Code | Picture | Table | Cells | Drawing | Timeline | Distribution | Details | Beside "
    "| Section"
)


@dataclass(frozen=True)
class Document:
    """A result as data."""

    title: str
    """What it is of."""
    answer: Sequence[Block]
    """What every form of it has."""
    more: Sequence[Block] = ()
    """What else whole documents have, in the order in which a reader asks for it."""
    facts: Sequence[str] = ()
    """How much was run, by which version: a few words each."""
    about: str = ""
    """What the title is about, in a sentence."""
    failures: Sequence[tuple[str, str]] = ()
    """Who or what failed, and why."""
    remarks: Remarks = field(default_factory=Remarks)
    """Warnings, which forms show beside the title, and notes, which they show after the answer."""
    settings: Sequence[tuple[str, str]] = ()
    """What was chosen or varied, and its values."""
    opening: Sequence[Block] = ()
    """What pages show before the answer: pictures, and numbers that are of no use without them."""


def notes(*sentences: str, detail: bool = False) -> list[Block]:
    """A paragraph of small print; nothing where there is no sentence.

    Args:
        sentences: What it says; empty ones are left out.
        detail: Whether only whole documents have it.
    """
    said = " ".join(sentence for sentence in sentences if sentence)
    return [Paragraph(said, "soft", detail)] if said else []


def brief(blocks: Iterable[Block], *, detail: bool = False) -> Iterator[Block]:
    """Blocks that short forms have and words and tables can say, one after the other.

    Args:
        blocks: The answer of a document.
        detail: Whether to have what whole documents alone have, too.
    """
    for block in blocks:
        match block:
            case Section() if not block.detail or detail:
                yield from brief(block.blocks, detail=detail)
            case Beside():
                yield from brief(block.blocks, detail=detail)
            case Cells():
                yield from brief([block.table], detail=detail)
            case Table() if detail or not is_empty(block):
                yield block
            case Paragraph() if not (block.rest if detail else block.detail):
                yield block
            case Items() | Pairs() | Code():
                yield block


def is_empty(table: Table) -> bool:
    """Whether short forms have no row of a table."""
    return all(row.detail for row in table.rows)


def definitions(metrics: Iterable[Metric]) -> Details:
    """What numbers mean."""
    unique = {metric.name: metric for metric in metrics}
    return Details("What the numbers mean", [Pairs([(begun(m.label), m.definition) for m in unique.values()])])


def again(
    commands: Mapping[str, str], *blocks: Block, versions: Mapping[str, str], text: tuple[str, str] = ("", "")
) -> Section:
    """How to make a result again.

    Args:
        commands: What was typed, by what it does.
        blocks: What else there is to say: seeds, digests.
        versions: What it was made with.
        text: What was run, as a file, and what that is.
    """
    made: list[Block] = []
    for said, command in commands.items():
        if command:
            made += [Paragraph(said), Code(command)]
    made += blocks
    if versions:
        made.append(Details("Versions", [Pairs([(name, str(value)) for name, value in versions.items()])]))
    if text[1]:
        made.append(Details(text[0], [Code(text[1])]))
    return Section("Make it again", made, AGAIN)


def begun(text: str) -> str:
    """Text as the beginning of a sentence.

    >>> begun("receive rate")
    'Receive rate'
    """
    return text[:1].upper() + text[1:]


def plain(words: Sentence) -> str:
    """Words without what sets them apart."""
    if isinstance(words, str):
        return words
    if isinstance(words, Phrase):
        return words.text if words.tone != "small" else ""
    return "".join(map(plain, words))
