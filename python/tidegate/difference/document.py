"""The document of what differs between two results."""

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
    from tidegate.difference.sides import Place

_SHOWN = 30
"""Lines of a table, and places in a sentence, that short forms have."""
_LEAST = "1 ms, 0.2 s, 0.1 % or the last digit"
_WORDS = {"better": Phrase("better", "good"), "worse": Phrase("worse", "bad")}


def document(difference: Difference) -> Document:
    """What there is to say of two results; what is the same, or as good as that, is a detail."""
    a, b = difference.a, difference.b
    settings = [(setting.key, setting.a, setting.b) for setting in difference.settings]
    verdicts = [(*answer.where.parts, answer.a, answer.b) for answer in difference.answers]
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
    """A table of words, if there is a line of it."""
    if not lines:
        return []
    columns = [Column(head, left=True) for head in heads]
    rows = [Row(line, detail=at >= _SHOWN) for at, line in enumerate(lines)]
    more = len(lines) - _SHOWN
    return [Table(columns, rows, "prose"), *_rest(f"{counted(more, noun)} more" if more > 0 else "")]


def _only(name: str, places: Sequence[Place]) -> list[Block]:
    """Runs that one side alone has."""
    if not places:
        return []
    names = [", ".join(place) for place in places]
    begin, more = f"only in {name}: ", len(names) - _SHOWN
    if more <= 0:
        return [Paragraph(begin + "; ".join(names))]
    return [
        *_rest(f"{begin}{'; '.join(names[:_SHOWN])} and {more} more"),
        Paragraph(begin + "; ".join(names), detail=True),
    ]


def _rest(words: str) -> list[Block]:
    """What short forms leave out, if they do."""
    return [Paragraph(words, "soft", rest=True)] if words else []


# --- numbers --------------------------------------------------------------------------------------


def _numbers(difference: Difference) -> list[Block]:
    """Every number: those that matter, of which short forms have the first ones, and all others as details."""
    shown = [number for number in difference.numbers if number.matters][:_SHOWN]
    blocks: list[Block] = []
    if difference.numbers:
        rows = [_row(difference, number, detail=number not in shown) for number in difference.numbers]
        wheres = difference.heads
        heads = ("", *wheres, "number", "A", "B", "unit", "B - A", "")
        left = {*range(len(wheres) + 2), len(wheres) + 4}
        columns = [Column(head, left=at in left) for at, head in enumerate(heads)]
        blocks += [Paragraph(_pairs(difference), detail=not shown), Table(columns, rows, stub=len(wheres) + 2)]
    elif difference.places:
        blocks.append(Paragraph("no number is on either side"))
    if not difference.places:
        why = "no run of one side is like one of the other, so that no numbers can be compared"
        blocks.append(Paragraph(why))
    return [*blocks, *_rest("; ".join(_left_out(difference, len(shown)))), *_same(difference)]


def _row(difference: Difference, number: Number, *, detail: bool) -> Row:
    about = number.metric
    a, b = (about.show(side.mean) if number.paired else about.show_interval(side) for side in (number.a, number.b))
    where = difference.cells(number.where.parts)
    word: Sentence = _WORDS.get(number.word, number.word)
    return Row([word, *where, number.label, a, b, about.unit, _change(number), _share(number)], detail=detail)


def _change(number: Number) -> str:
    """The difference with its sign and interval, and what is to be known of it."""
    if number.same:
        return "same"
    if math.isnan(number.difference.mean):
        return "no value in B" if number.a.count else "no value in A"
    text = number.metric.show_interval(number.difference, signed=True)
    if number.one_sided:
        text += f", {number.one_sided} with one value"
    return text if number.paired else f"{text}, unpaired"


def _share(number: Number) -> str:
    if not number.a.mean or not math.isfinite(number.difference.mean) or number.same:
        return ""
    return f"{number.difference.mean / abs(number.a.mean):+.1%}"


def _pairs(difference: Difference) -> str:
    """How the numbers were held against each other."""
    pairs = {number.difference.count for number in difference.numbers if number.paired and number.difference.count}
    if not pairs:
        return "unpaired: no seed is on both sides, so that their luck is another one, too"
    if max(pairs) == 1:
        return "one pair: nothing says how much of it is luck"
    return f"paired by {max(pairs)} seeds: means of the differences with 95 % intervals"


def _left_out(difference: Difference, shown: int) -> list[str]:
    """Which numbers short forms leave out, though they differ."""
    differing = [number for number in difference.numbers if not number.same]
    less = sum(number.matters for number in differing) - shown
    small = sum(not number.matters for number in differing)
    counts = ((less, "less"), (small, f"by less than matters ({_LEAST})"))
    return [f"{count} {'number differs' if count == 1 else 'numbers differ'} {how}" for count, how in counts if count]


def _same(difference: Difference) -> list[Block]:
    """What is the same, if anything was compared."""
    same = sum(number.same for number in difference.numbers)
    equal, of = difference.runs
    parts = [f"{same} of {len(difference.numbers)} numbers are the same"] if same else []
    parts += [f"{equal} of {of} runs are the same to the bit"] if of else []
    return [Paragraph("; ".join(parts))] if parts else []
