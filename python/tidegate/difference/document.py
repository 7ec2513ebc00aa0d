"""The document of the differences between two results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.output.document import (
    Block,
    Column,
    Document,
    Paragraph,
    Phrase,
    Row,
    Section,
    Sentence,
    Table,
    definitions,
)
from tidegate.wording import counted

if TYPE_CHECKING:
    from tidegate.difference.difference import Difference, Number
    from tidegate.difference.sides import Scope

_MAX_LINES = 30
"""The largest number of lines of a table, and of scopes in a sentence, in short forms."""
_NEGLIGIBLE = "below 1 ms, 0.2 s, 0.1 % or the last digit"
_WORDS = {"better": Phrase("better", "good"), "worse": Phrase("worse", "bad")}


def document(difference: Difference) -> Document:
    """Makes the document; numbers that are the same, or differ too little to matter, are details."""
    a, b = difference.a, difference.b
    settings = [(setting.key, setting.a, setting.b) for setting in difference.settings]
    verdicts = [(*change.scopes.parts, change.a, change.b) for change in difference.verdicts]
    parts: list[tuple[str, list[Block]]] = [
        ("", [] if difference.differs else [Paragraph("nothing differs")]),
        ("Settings", _of_words(("setting", "A", "B"), settings, "setting")),
        ("Verdicts", _of_words((*difference.heads, "verdict in A", "in B"), verdicts, "verdict")),
        ("Only on one side", [*_only("A", difference.only_a), *_only("B", difference.only_b)]),
        ("Numbers", _numbers(difference)),
    ]
    return Document(
        f"Two {a.kind}s side by side",
        [Section(title, blocks) for title, blocks in parts if blocks],
        [definitions(number.metric for number in difference.numbers)] if difference.numbers else [],
        [f"A: {a.title}", f"B: {b.title}"],
    )


def _of_words(heads: Sequence[str], lines: Sequence[Sequence[str]], noun: str) -> list[Block]:
    """A table of words, in a list; an empty list where it would have no line."""
    if not lines:
        return []
    columns = [Column(head, left=True) for head in heads]
    rows = [Row(line, detail=index >= _MAX_LINES) for index, line in enumerate(lines)]
    more = len(lines) - _MAX_LINES
    return [Table(columns, rows, "prose"), *_rest(f"{counted(more, noun)} more" if more > 0 else "")]


def _only(name: str, scopes: Sequence[Scope]) -> list[Block]:
    """Paragraphs on the scopes that only one side has."""
    if not scopes:
        return []
    names = [", ".join(scope) for scope in scopes]
    begin, more = f"only in {name}: ", len(names) - _MAX_LINES
    if more <= 0:
        return [Paragraph(begin + "; ".join(names))]
    return [
        *_rest(f"{begin}{'; '.join(names[:_MAX_LINES])} and {more} more"),
        Paragraph(begin + "; ".join(names), detail=True),
    ]


def _rest(words: str) -> list[Block]:
    """A paragraph of short forms on what they leave out, in a list; an empty list without words."""
    return [Paragraph(words, "soft", rest=True)] if words else []


# --- numbers --------------------------------------------------------------------------------------


def _numbers(difference: Difference) -> list[Block]:
    """A table of all numbers: short forms have the first that matter; all others are details."""
    first = [number for number in difference.numbers if number.matters][:_MAX_LINES]
    blocks: list[Block] = []
    if difference.numbers:
        rows = [_row(difference, number, detail=number not in first) for number in difference.numbers]
        scope_heads = difference.heads
        heads = ("", *scope_heads, "number", "A", "B", "unit", "B - A", "")
        texts = {*range(len(scope_heads) + 2), len(scope_heads) + 4}
        columns = [Column(head, left=index in texts) for index, head in enumerate(heads)]
        blocks += [Paragraph(_pairing(difference), detail=not first), Table(columns, rows, stub=len(scope_heads) + 2)]
    elif difference.common:
        blocks.append(Paragraph("neither side has numbers"))
    if not difference.common:
        blocks.append(Paragraph("no numbers can be compared: A and B have no run in common"))
    return [*blocks, *_rest("; ".join(_omitted(difference, len(first)))), *_same(difference)]


def _row(difference: Difference, number: Number, *, detail: bool) -> Row:
    quantity = number.metric
    a, b = (
        quantity.show(side.mean) if number.paired else quantity.show_interval(side) for side in (number.a, number.b)
    )
    scope = difference.cells(number.scopes.parts)
    word: Sentence = _WORDS.get(number.word, number.word)
    return Row([word, *scope, number.label, a, b, quantity.unit, _change(number), _share(number)], detail=detail)


def _change(number: Number) -> str:
    """The difference with its sign and interval, or a remark where there is none."""
    if number.same:
        return "same"
    if math.isnan(number.difference.mean):
        return "no value in B" if number.a.count else "no value in A"
    text = number.metric.show_interval(number.difference, signed=True)
    if number.one_sided:
        text += f", {counted(number.one_sided, 'seed')} with a value on one side only"
    return text if number.paired else f"{text}, unpaired"


def _share(number: Number) -> str:
    """The difference as a part of A, in per cent."""
    if not number.a.mean or not math.isfinite(number.difference.mean) or number.same:
        return ""
    return f"{number.difference.mean / abs(number.a.mean):+.1%}"


def _pairing(difference: Difference) -> str:
    """A sentence on how the numbers were compared."""
    pairs = {number.difference.count for number in difference.numbers if number.paired and number.difference.count}
    if not pairs:
        return "unpaired: A and B have no seed in common, so that their numbers also differ by chance"
    if max(pairs) == 1:
        return "one pair: a single seed cannot show which part of a difference is chance"
    return f"paired by seed ({max(pairs)} seeds): means of the differences with 95 % intervals"


def _omitted(difference: Difference, first: int) -> list[str]:
    """Counts of the numbers that differ, but that short forms leave out after the first."""
    differing = [number for number in difference.numbers if not number.same]
    less = sum(number.matters for number in differing) - first
    small = sum(not number.matters for number in differing)
    counts = ((less, "less"), (small, f"too little to matter ({_NEGLIGIBLE})"))
    return [f"{count} {'number differs' if count == 1 else 'numbers differ'} {how}" for count, how in counts if count]


def _same(difference: Difference) -> list[Block]:
    """A paragraph on the numbers and runs that are the same, in a list; an empty list where nothing was compared."""
    same = sum(number.same for number in difference.numbers)
    equal, paired = difference.runs
    parts = [f"{same} of {len(difference.numbers)} numbers are the same"] if same else []
    parts += [f"{equal} of {paired} runs are identical to the bit"] if paired else []
    return [Paragraph("; ".join(parts))] if parts else []
