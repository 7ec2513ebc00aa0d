"""A result as data: a title, facts and blocks, in the order in which a reader needs them.

Results return a [Document][tidegate.output.document.Document]; renderers turn it into a terminal's text, Markdown, a
page, or the cell of a notebook. This module does not depend on any of these forms.
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
"""The mark of a missing value."""

AGAIN = "again"
"""The `id` of the section that says how to reproduce a result."""
SAME_BITS = "The same seed gives the same bits on every machine: equal runs have equal digests"

Tone: TypeAlias = Literal["", "strong", "code", "soft", "good", "odd", "bad", "label", "words", "small"]
"""The style of words: `good`, `odd` and `bad` judge, `label` is a name that may be broken into lines, `words` is prose,
and `small` an aside that only pages have."""


@dataclass(frozen=True)
class Phrase:
    """Words with a style of their own."""

    text: str
    """The words."""
    tone: Tone = ""
    """Their style."""
    title: str = ""
    """An explanation, for a reader who points at them."""
    look: Look | None = None
    """The line and marker of their contender in charts, drawn before them."""


@dataclass(frozen=True)
class Number:
    """A number of a metric, with its interval."""

    metric: Metric
    """The metric, with unit and digits."""
    value: Interval
    """Mean and half-width of its interval, in the units of the summary."""
    mark: Literal["", "best", "unsure", "out", "sure"] = ""
    """`best`: the best of its row; `unsure`: the best mean, perhaps by chance; `out`: not compared; `sure`: a
    difference whose sign is certain."""
    replacement: str = ""
    """A text that is shown in place of the number, such as `failed`."""
    title: str = ""
    """An explanation, for a reader who points at it."""
    shade: tuple[str, str] | None = None
    """Colours of background and letters, in a map."""
    signed: bool = False
    """Whether a plus sign precedes positive numbers, as in differences."""


@dataclass(frozen=True)
class Judged:
    """The content of a cell that is coloured by a judgement."""

    words: Sequence[Sentence]
    """The lines of the cell."""
    tone: Literal["", "good", "odd", "bad"]
    """The judgement."""
    title: str = ""
    """An explanation, for a reader who points at it."""
    opens: tuple[int, int] | None = None
    """Row and column of its details in the data of [Cells][tidegate.output.document.Cells]."""
    brief: str = ""
    """A shorter text for terminals and notebooks, instead of the lines."""


@dataclass(frozen=True)
class Share:
    """A share in per cent, with a bar on pages."""

    part: float
    """Between 0 and 1."""

    def __str__(self) -> str:
        return f"{100 * self.part:.0f} %"


Words: TypeAlias = "str | Phrase"
Sentence: TypeAlias = "Words | Sequence[Words]"
"""A text, in pieces where its style changes."""
Cell: TypeAlias = "str | int | Phrase | Number | Judged | Share | Items | Sequence[Words]"
"""The content of a cell of a table."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text."""

    words: Sentence
    """Its text."""
    tone: Literal["", "soft", "legend"] = ""
    """`soft` for notes, `legend` for a row of names with their lines."""
    detail: bool = False
    """Whether only whole documents have it, and short forms do not."""
    rest: bool = False
    """Whether only short forms have it, such as a count of the lines that they leave out."""


@dataclass(frozen=True)
class Items:
    """A bulleted list."""

    items: Sequence[Sentence]
    """A text for each bullet."""


@dataclass(frozen=True)
class Pairs:
    """Names with their meanings or values."""

    pairs: Sequence[tuple[Sentence, Sentence]]


@dataclass(frozen=True)
class Code:
    """A command or a file, as it is typed."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A picture, as the bytes of its file."""

    data: bytes
    """PNG or SVG."""
    caption: Sentence = ""
    alt: str = ""
    kind: Literal["png", "svg+xml"] = "png"
    file: str = ""
    """The name of the same picture's file beside the document, for forms that cannot embed pictures."""

    @property
    def says(self) -> str:
        """The text that replaces the picture where none is shown."""
        return self.alt or plain_text(self.caption)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    head: Words
    """Its head, without the unit."""
    metric: Metric | None = None
    """The metric of all its numbers, if they share one: its unit goes into the head, its definition explains it."""
    left: bool = False
    """Whether its cells are aligned to the left."""
    title: str = ""
    """An explanation of the head."""
    detail: bool = False
    """Whether only whole documents have it, and short forms do not."""

    @property
    def unit(self) -> str:
        """The unit in brackets, to follow the head; empty where its numbers have none."""
        return f" ({self.metric.unit})" if self.metric and self.metric.unit else ""


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    cells: Sequence[Cell]
    """A cell for each column; a row with only one cell is a heading of the rows below it."""
    metric: Metric | None = None
    """The metric of all its numbers, if they share one: it gives the unit and the definition."""
    detail: bool = False
    """Whether only whole documents have it, and short forms do not."""
    kind: Literal["", "first", "sum", "group", "words"] = ""
    """`first`: the row that counts most; `sum`: the sum of the rows above; `group`: the heading of the rows below;
    `words`: prose in all cells."""
    below: str = ""
    """A sentence across the whole table below the row."""


@dataclass(frozen=True)
class Table:
    """A table whose first column says what its rows are."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    kind: Literal["", "headline", "numbers", "scores", "prose", "map", "document", "many", "shares"] = ""
    """The style on pages: compared or many numbers, means of contenders, prose, a map in colours, shares."""
    abreast: int = 0
    """The largest number of columns beside the first in one table of a printed page; 0: no limit."""
    stub: int = 1
    """The number of leading columns that identify a row."""
    turned: int = 0
    """The largest number of rows for which terminals swap rows and columns."""
    most: int = 0
    """The number of rows that are shown; 0: all."""
    below: str = ""
    """The head of the column that holds the sentences below rows, in forms that put them into one."""

    def only(self, places: Sequence[int]) -> Table:
        """The table with only the columns at these indices; rows without a cell for each column stay as they are."""
        rows = [
            replace(row, cells=[row.cells[index] for index in places]) if len(row.cells) == len(self.columns) else row
            for row in self.rows
        ]
        return replace(self, columns=[self.columns[index] for index in places], rows=rows)

    @property
    def brief(self) -> Table:
        """The table without the rows and columns that only whole documents have."""
        reduced = self.only([index for index, column in enumerate(self.columns) if not column.detail])
        return replace(reduced, rows=[row for row in reduced.rows if not row.detail])

    @property
    def has_units(self) -> bool:
        """Whether any row has a unit."""
        return any(row.metric is not None and row.metric.unit for row in self.rows)

    @property
    def marks(self) -> set[str]:
        """The marks of its numbers that need an explanation: `best`, `unsure`."""
        found_marks = {str(cell.mark) for row in self.rows for cell in row.cells if isinstance(cell, Number)}
        return found_marks & {"best", "unsure"}


@dataclass(frozen=True)
class Drawing:
    """A chart under its title."""

    chart: Chart
    title: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Timeline:
    """Charts over time that zoom together, and distributions: drawn by the page's script from `data`."""

    data: Mapping[str, Any]
    """The input of the page's script."""
    columns: Sequence[tuple[str, Look | None]]
    """The contenders, a column each."""
    quantities: Sequence[tuple[str, str, str]]
    """The quantities from top to bottom: key, title, explanation."""
    seeds: Sequence[int]
    """The seeds that a reader can choose."""


@dataclass(frozen=True)
class Distribution:
    """The distribution of delay, drawn by the page's script from the timeline's data."""

    title: str
    caption: str


@dataclass(frozen=True)
class Cells:
    """A table whose cells a reader can open."""

    table: Table
    data: Callable[[int], Mapping[str, Any]]
    """Makes the details of all cells for the page's script, in at most the given number of bytes; their `note` says
    what did not fit."""
    how: str = ""
    """A sentence on how to open cells."""
    closed: str = ""
    """A sentence for pages without scripts, where cells cannot be opened."""


@dataclass(frozen=True)
class Details:
    """Blocks that pages fold away until a reader opens them."""

    title: str
    blocks: Sequence[Block]
    open: bool = False
    bulk: bool = False
    """Whether it is a long list that texts leave out."""


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
    """The headline."""
    answer: Sequence[Block]
    """The blocks that every form has."""
    more: Sequence[Block] = ()
    """Further blocks of whole documents, in the order in which a reader needs them."""
    facts: Sequence[str] = ()
    """The number of runs, the version and the like: a few words each."""
    about: str = ""
    """A sentence that explains the title."""
    failures: Sequence[tuple[str, str]] = ()
    """The names of failed parts, with the reasons."""
    remarks: Remarks = field(default_factory=Remarks)
    """Warnings, shown beside the title, and notes, shown after the answer."""
    settings: Sequence[tuple[str, str]] = ()
    """The settings that were chosen or varied, with their values."""
    opening: Sequence[Block] = ()
    """Blocks that pages show before the answer: pictures, and numbers that need them."""


def notes(*sentences: str, detail: bool = False) -> list[Block]:
    """A paragraph of small print, in a list; an empty list where there is no sentence.

    Args:
        sentences: The sentences; empty ones are left out.
        detail: Whether only whole documents have it.
    """
    text = " ".join(sentence for sentence in sentences if sentence)
    return [Paragraph(text, "soft", detail)] if text else []


def brief(blocks: Iterable[Block], *, detail: bool = False) -> Iterator[Block]:
    """The blocks of short forms that need no page: texts and tables, without the sections around them.

    Args:
        blocks: The answer of a document.
        detail: Whether to include the blocks that only whole documents have.
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
    """Whether a table has no row in short forms."""
    return all(row.detail for row in table.rows)


def definitions(metrics: Iterable[Metric]) -> Details:
    """Definitions of metrics, each once."""
    unique = {metric.name: metric for metric in metrics}
    return Details("What the numbers mean", [Pairs([(capitalised(m.label), m.definition) for m in unique.values()])])


def again(
    commands: Mapping[str, str], *blocks: Block, versions: Mapping[str, str], text: tuple[str, str] = ("", "")
) -> Section:
    """A section that says how to reproduce a result.

    Args:
        commands: The commands, by a sentence that says what each does.
        blocks: Further blocks: seeds, digests.
        versions: The versions of programs that made the result.
        text: A title, and the text of the file that was run.
    """
    contents: list[Block] = []
    for purpose, command in commands.items():
        if command:
            contents += [Paragraph(purpose), Code(command)]
    contents += blocks
    if versions:
        contents.append(Details("Versions", [Pairs([(name, str(value)) for name, value in versions.items()])]))
    if text[1]:
        contents.append(Details(text[0], [Code(text[1])]))
    return Section("Make it again", contents, AGAIN)


def capitalised(text: str) -> str:
    """Text with a capital, as the beginning of a sentence.

    >>> capitalised("receive rate")
    'Receive rate'
    """
    return text[:1].upper() + text[1:]


def plain_text(words: Sentence) -> str:
    """Words without their styles; asides (`small`) are left out."""
    if isinstance(words, str):
        return words
    if isinstance(words, Phrase):
        return words.text if words.tone != "small" else ""
    return "".join(map(plain_text, words))
