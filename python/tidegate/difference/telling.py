"""What differs, as lines of tables, and as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.difference.difference import Difference, Number
from tidegate.difference.sides import Place
from tidegate.results.stats import Interval

_WHERE = {"run": ("of",), "comparison": ("controller",), "sweep": ("settings",), "suite result": ("case", "controller")}
"""Columns that say which runs a number is of."""


def where_heads(difference: Difference) -> tuple[str, ...]:
    """The heads of the columns that say which runs a line is about."""
    return _WHERE[difference.a.kind]


def where(difference: Difference, parts: Sequence[str]) -> tuple[str, ...]:
    """The cells of these columns."""
    return (", ".join(parts),) if difference.a.kind == "sweep" else tuple(parts)


def heads(difference: Difference) -> tuple[str, ...]:
    """The heads of the table of numbers."""
    return ("", *where_heads(difference), "number", "A", "B", "unit", "B - A", "")


def cells(difference: Difference, one: Number) -> tuple[str, ...]:
    """A line of the table of numbers."""
    a, b = (one.metric.show(side.mean) if one.paired else one.metric.show_interval(side) for side in (one.a, one.b))
    return (one.word, *where(difference, one.where.parts), one.label, a, b, one.metric.unit, change(one), _share(one))


def change(one: Number) -> str:
    """The difference with its sign and interval, and what is to be known of it."""
    if one.same:
        return "same"
    mean, half = one.difference.mean, one.difference.half
    if math.isnan(mean):
        return "no value in B" if one.a.count else "no value in A"
    text = f"{mean * one.metric.scale:+.{one.metric.digits}f}"
    if half is not None:
        text += f" ± {one.metric.show(half)}"
    if one.one_sided:
        text += f", {one.one_sided} with one value"
    return text if one.paired else f"{text}, unpaired"


def _share(one: Number) -> str:
    if not one.a.mean or not math.isfinite(one.difference.mean) or one.same:
        return ""
    return f"{one.difference.mean / abs(one.a.mean):+.1%}"


def seeds(difference: Difference) -> str:
    """How the numbers were held against each other."""
    paired = {one.difference.count for one in difference.numbers if one.paired and one.difference.count}
    if not paired:
        return "unpaired: no seed is on both sides, so that their luck is another one, too"
    most = max(paired)
    if most == 1:
        return "one pair: nothing says how much of it is luck"
    return f"paired by {most} seeds: means of the differences with 95 % intervals"


def summed_up(difference: Difference, shown: Sequence[Number]) -> Iterator[str]:
    """What the table leaves out, and what is the same, a line each."""
    same = [one for one in difference.numbers if one.same]
    there = {id(one) for one in shown}
    small = [one for one in difference.numbers if not one.same and not one.matters and id(one) not in there]
    rest = [one for one in difference.numbers if one.matters and id(one) not in there]
    if rest:
        yield f"{_counted(len(rest), 'differs', 'differ')} less; --all shows more"
    if small:
        least = "1 ms, 0.2 s, 0.1 % or the last digit"
        yield f"{_counted(len(small), 'differs', 'differ')} by less than matters ({least}); --all shows more"
    equal, of = difference.runs
    told = [f"{len(same)} of {len(difference.numbers)} numbers are the same"] if same else []
    told += [f"{equal} of {of} runs are the same to the bit"] if of else []
    if told:
        yield "; ".join(told)


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} number {one}" if count == 1 else f"{count} numbers {several}"


def data(difference: Difference, *, every: bool = False) -> dict[str, Any]:
    """As plain data, numbers in the summary's own units.

    Args:
        difference: What differs.
        every: Also the numbers that are the same.
    """
    same, of = difference.runs
    return {
        "kind": difference.a.kind,
        "a": difference.a.title,
        "b": difference.b.title,
        "differs": difference.differs,
        "settings": [{"key": one.key, "a": one.a, "b": one.b} for one in difference.settings],
        "only_a": [_named(difference, place) for place in difference.only_a],
        "only_b": [_named(difference, place) for place in difference.only_b],
        "verdicts": [
            {**_named(difference, one.where.parts), "a": one.a, "b": one.b} for one in difference.answers
        ],
        "numbers": [
            {
                **_named(difference, one.where.parts),
                "metric": one.key,
                "a": _mean(one.a),
                "b": _mean(one.b),
                "difference": _mean(one.difference),
                "half_interval_95": one.difference.half,
                "paired": one.paired,
                "seeds": one.difference.count if one.paired else None,
                "chance": one.chance,
                "verdict": one.word or None,
                "same": one.same,
            }
            for one in difference.numbers
            if every or not one.same
        ],
        "numbers_same": sum(one.same for one in difference.numbers),
        "runs_same": same,
        "runs_paired": of,
    }  # fmt: skip


def _named(difference: Difference, parts: Place) -> dict[str, str]:
    return dict(zip(where_heads(difference), where(difference, parts), strict=True))


def _mean(one: Interval) -> float | None:
    return one.mean if math.isfinite(one.mean) else None
