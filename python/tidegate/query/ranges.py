"""Values of a setting as people write them: at their commas, with ranges among them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Self

from tidegate.errors import InputError
from tidegate.units import Duration, Frequency, Quantity, Rate, Size, Speed, show

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_END = re.compile(rf"({_NUMBER})\s*([^\d\s:][^:]*?)?")
_BEGINNING = re.compile(rf"(?:log:\s*)?{_NUMBER}[^:]*:")
_KINDS: tuple[type[Quantity], ...] = (Duration, Rate, Size, Frequency, Speed)
_LEAST, _MOST = 2, 1000  # values
_LARGEST = 18  # decimal exponent, as of all quantities
_DIGITS = 2  # of a value, beyond those that tell it from its neighbour
_CLOSING = {"[": "]", "{": "}", "(": ")"}

RANGE = "2ms:50ms:5 (five values, evenly), log:100kbps:10Mbps:4 (equal ratios)"
"""How a range is written, for messages."""


@dataclass(frozen=True)
class End:
    """A number with its unit."""

    text: str
    """As it was written."""
    unit: str
    """Its unit; nothing where there is none."""
    kind: type[Quantity] | None
    """What the unit is of, where it is one of ours; percents and plain numbers have none."""
    size: Decimal
    """The number, in base units."""

    @classmethod
    def parse(cls, text: str, whole: str) -> Self:
        """Reads one; `whole` is what it is a part of, for messages.

        Raises:
            InputError: when it is none.
        """
        match = _END.fullmatch(text)
        if match is None:
            raise InputError(f"{whole}: {show(text)} is no number with its unit; a range is {RANGE}")
        number, unit = Decimal(match[1]), match[2] or ""
        kind = next((kind for kind in _KINDS if unit in kind.units), None)
        if unit and unit != "%" and kind is None:
            raise InputError(f"{whole}: no unit is called {show(unit)}; a range is {RANGE}")
        size = number * kind.units[unit] if kind else number
        if not all(abs(each.adjusted()) <= _LARGEST for each in (number, size)):
            raise InputError(f"{whole}: {text} is out of all bounds")
        return cls(text, unit, kind, size)


@dataclass(frozen=True)
class Range:
    """What lies between two values."""

    text: str
    """As it was written."""
    low: End
    """Where it begins; it may be the larger one."""
    high: End
    """Where it ends."""
    count: str | None = None
    """How many values are meant, as it was written; none where all between are."""
    log: bool = False
    """Whether its steps are ratios."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `LOW:HIGH`, `LOW:HIGH:COUNT`, and `log` in front of them or behind.

        Raises:
            InputError: says what was found and what would be right.
        """
        parts = [part.strip() for part in text.split(":")]
        log = "log" in {parts[0], parts[-1]}
        if log:
            parts.remove("log")
        if len(parts) not in {2, 3}:
            raise InputError(f"{text}: a range has two ends and a count: {RANGE}")
        low, high = (End.parse(part, text) for part in parts[:2])
        if bool(low.unit) != bool(high.unit):
            bare, unit = (low, high.unit) if high.unit else (high, low.unit)
            raise InputError(f"{text}: both ends need their unit: {bare.text}{unit}?")
        if low.kind is not high.kind or (low.kind is None and low.unit != high.unit):
            raise InputError(f"{text}: {low.text} and {high.text} are not of one kind")
        if low.size == high.size:
            raise InputError(f"{text}: both ends are the same")
        if log and min(low.size, high.size) <= 0:
            raise InputError(f"{text}: with log both ends must be above zero")
        return cls(text, low, high, parts[2] if len(parts) > 2 else None, log)  # noqa: PLR2004

    def rising(self) -> Self:
        """The same, the smaller end first."""
        return self if self.low.size < self.high.size else replace(self, low=self.high, high=self.low)

    def values(self) -> Iterator[str]:
        """So many values as it says, both ends among them: evenly, or with `log` at equal ratios.

        Values between the ends are rounded to a hundredth of their distance.

        Raises:
            InputError: when it has no count, or one that cannot be.
        """
        if self.count is None:
            raise InputError(f"{self.text}: a range has two ends and a count: {RANGE}")
        if not re.fullmatch(r"\d{1,9}", self.count) or not _LEAST <= int(self.count) <= _MOST:
            right = f"expected a whole number from {_LEAST} to {_MOST}"
            raise InputError(f"{self.text}: found the count {show(self.count)}; {right}")
        count, low, high = int(self.count), self.low.size, self.high.size
        if self.log:
            ratio = (high / low).ln() / (count - 1)
            sizes = [low * (ratio * number).exp() for number in range(count)]
        else:
            sizes = [low + (high - low) * number / (count - 1) for number in range(count)]
        yield self.low.text  # both ends stay as they were typed
        for before, size, after in zip(sizes, sizes[1:], sizes[2:], strict=False):
            step = min(abs(size - before), abs(after - size))
            yield self._value(size, math.floor(step.log10()) - _DIGITS)
        yield self.high.text

    def _value(self, size: Decimal, place: int) -> str:
        """A size in base units, rounded to 10**place of them, in the unit of both ends, or one that fits."""
        kind, unit = self.low.kind, self.low.unit
        if kind is not None and unit != self.high.unit:
            return str(kind(int(_rounded(size, max(place, 0)))))
        base = Decimal(kind.units[unit] if kind else 1)
        return f"{plain(_rounded(size / base, place - base.adjusted()))}{unit}"


def _rounded(value: Decimal, place: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(place), ROUND_HALF_EVEN) if value else value


def plain(number: Decimal) -> str:
    """A number without an exponent and without zeros at its end.

    >>> plain(Decimal("1.50")), plain(Decimal("2E+3")), plain(Decimal("0.00"))
    ('1.5', '2000', '0')
    """
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", ""} else text


def read(text: str) -> list[str | Range]:
    """Values at their commas, and ranges.

    Commas inside brackets, braces and quotes are part of a value. Quotes around a whole value are not, and what stands
    in them is taken as it is.

    Raises:
        InputError: when a value is missing, a bracket or a quote is not closed, or a range is wrong.
    """
    parts: list[str | Range] = []
    for part in _at_commas(text):
        if part[:1] == part[-1:] == '"' and len(part) > 1:
            parts.append(part[1:-1].replace('""', '"'))
        else:
            parts.append(Range.parse(part) if _BEGINNING.match(part) else part)
    return parts


def values(text: str) -> list[str]:
    """Values at their commas, ranges spread out: see [read][tidegate.query.ranges.read].

    >>> values('gcc,"fixed:rate=2Mbps,min=1",gcc:draft-02')
    ['gcc', 'fixed:rate=2Mbps,min=1', 'gcc:draft-02']
    >>> values("[2, 1, 1],[1, 1, 1]"), values("5ms,10ms:20ms:3")
    (['[2, 1, 1]', '[1, 1, 1]'], ['5ms', '10ms', '15ms', '20ms'])
    >>> values("2ms:50ms:5"), values("log:100kbps:10Mbps:4"), values("5%:0%:3")
    (['2ms', '14ms', '26ms', '38ms', '50ms'], ['100kbps', '464kbps', '2.15Mbps', '10Mbps'], ['5%', '2.5%', '0%'])
    """
    return [value for part in read(text) for value in ([part] if isinstance(part, str) else part.values())]


def _at_commas(text: str) -> Iterator[str]:
    open_: list[str] = []
    begun, quote = 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter == '"' and (open_ or not text[begun:place].strip() or text[place - 1] == '"'):
            quote = letter
        elif letter in _CLOSING:
            open_.append(_CLOSING[letter])
        elif open_ and letter == open_[-1]:
            open_.pop()
        elif letter == "," and not open_:
            yield _whole(text[begun:place])
            begun = place + 1
    if quote or open_:
        raise InputError(f"{quote or open_[-1]} is missing at the end")
    yield _whole(text[begun:])


def _whole(value: str) -> str:
    if not value.strip() or value.splitlines() != [value]:
        raise InputError("expected values with commas between them")
    return value.strip()
