"""Values of a setting as people write them: at their commas, and ranges spread out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from tidegate.errors import InputError
from tidegate.units import Duration, Frequency, Quantity, Rate, Size, Speed, show

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_END = re.compile(rf"({_NUMBER})\s*([^\d\s:][^:]*?)?\s*")
_BEGINNING = re.compile(rf"(?:log:\s*)?{_NUMBER}[^:]*:")
_KINDS: tuple[type[Quantity], ...] = (Duration, Rate, Size, Frequency, Speed)
_LEAST, _MOST = 2, 1000  # values
_LARGEST = 18  # decimal exponent, as of all quantities
_DIGITS = 2  # of a value, beyond those that tell it from its neighbour

RANGE = "2ms:50ms:5 (five values, evenly), log:100kbps:10Mbps:4 (equal ratios)"
"""How a range is written, for messages."""


@dataclass(frozen=True)
class End:
    """One end of a range."""

    number: Decimal
    """As it was written."""
    unit: str
    """As it was written; nothing where there is none."""
    kind: type[Quantity] | None
    """What the unit is of, where it is one of ours; percents and plain numbers have none."""

    @property
    def size(self) -> Decimal:
        """In base units."""
        return self.number * self.kind.units[self.unit] if self.kind else self.number


@dataclass(frozen=True)
class Ends:
    """What lies between two values."""

    low: End
    """Where it begins; it may be the larger one."""
    high: End
    """Where it ends."""
    log: bool
    """Whether its steps are ratios."""

    @classmethod
    def parse(cls, text: str, low: str, high: str, *, log: bool) -> Ends:
        """Two ends; `text` is what was typed, for messages.

        Raises:
            InputError: when they are not two ends of one thing.
        """
        one, other = end(low, text), end(high, text)
        if bool(one.unit) != bool(other.unit):
            bare, unit = (low, other.unit) if other.unit else (high, one.unit)
            raise InputError(f"{text}: both ends need their unit: {bare.strip()}{unit}?")
        if one.kind is not other.kind or (one.kind is None and one.unit != other.unit):
            raise InputError(f"{text}: {low.strip()} and {high.strip()} are not of one kind")
        if one.size == other.size:
            raise InputError(f"{text}: both ends are the same")
        if log and min(one.size, other.size) <= 0:
            raise InputError(f"{text}: with log both ends must be above zero")
        return cls(one, other, log)

    def rising(self) -> Ends:
        """The same, the smaller end first."""
        return self if self.low.size < self.high.size else Ends(self.high, self.low, self.log)

    def value(self, size: Decimal, place: int) -> str:
        """A size in base units, rounded to 10**place of them, in the unit of both ends, or one that fits."""
        kind, unit = self.low.kind, self.low.unit
        if kind is not None and unit != self.high.unit:
            return str(kind(int(_rounded(size, max(place, 0)))))
        base = Decimal(kind.units[unit] if kind else 1)
        return f"{plain(_rounded(size / base, place - base.adjusted()))}{unit}"


def end(value: str, text: str = "") -> End:
    """A number with its unit; `text` is what it is a part of, for messages.

    Raises:
        InputError: when it is none.
    """
    whole = text or value
    match = _END.fullmatch(value.strip())
    if match is None:
        raise InputError(f"{whole}: {show(value.strip())} is no number with its unit; a range is {RANGE}")
    unit = match[2] or ""
    kind = next((kind for kind in _KINDS if unit in kind.units), None)
    if unit and unit != "%" and kind is None:
        raise InputError(f"{whole}: no unit is called {show(unit)}; a range is {RANGE}")
    found = End(Decimal(match[1]), unit, kind)
    if not all(abs(number.adjusted()) <= _LARGEST for number in (found.number, found.size)):
        raise InputError(f"{whole}: {value.strip()} is out of all bounds")
    return found


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


def is_range(text: str) -> bool:
    """Whether a value is meant as a range: two numbers and a count.

    >>> [is_range(text) for text in ("2ms:50ms:5", "log:1:10:3", "gcc:draft-02", "fixed:2Mbps", "1s:2s", "2ms:x:5")]
    [True, True, False, False, True, True]
    """
    return _BEGINNING.match(text) is not None


def spread(text: str) -> list[str]:
    """The values of a range: `LOW:HIGH:COUNT` evenly, `log:LOW:HIGH:COUNT` at equal ratios, both ends among them.

    Units are kept, and ends may have different ones of one kind. Values between the ends are rounded to a hundredth
    of their distance.

    Args:
        text: The range.

    Raises:
        InputError: says what was found and what would be right.

    >>> spread("2ms:50ms:5")
    ['2ms', '14ms', '26ms', '38ms', '50ms']
    >>> spread("log:100kbps:10Mbps:4")
    ['100kbps', '464kbps', '2.15Mbps', '10Mbps']
    >>> spread("0.1:0.4:4"), spread("5%:0%:3")
    (['0.1', '0.2', '0.3', '0.4'], ['5%', '2.5%', '0%'])
    """
    kind, _, rest = text.partition(":")
    log = kind.strip() == "log"
    parts = (rest if log else text).split(":")
    if len(parts) != 3:  # noqa: PLR2004
        raise InputError(f"{text}: a range has two ends and a count: {RANGE}")
    ends = Ends.parse(text, parts[0], parts[1], log=log)
    if not re.fullmatch(r"\s*\d{1,9}\s*", parts[2]) or not _LEAST <= int(parts[2]) <= _MOST:
        found = show(parts[2].strip())
        raise InputError(f"{text}: found the count {found}; expected a whole number from {_LEAST} to {_MOST}")
    return list(_values(ends, int(parts[2]), parts[0].strip(), parts[1].strip()))


def _values(ends: Ends, count: int, first: str, last: str) -> Iterator[str]:
    low, high = ends.low.size, ends.high.size
    if ends.log:
        ratio = (high / low).ln() / (count - 1)
        sizes = [low * (ratio * number).exp() for number in range(count)]
    else:
        sizes = [low + (high - low) * number / (count - 1) for number in range(count)]
    yield first  # both ends stay as they were typed
    for before, size, after in zip(sizes, sizes[1:], sizes[2:], strict=False):
        step = min(abs(size - before), abs(after - size))
        yield ends.value(size, math.floor(step.log10()) - _DIGITS)
    yield last


def values(text: str) -> list[str]:
    """Values at their commas, ranges spread out.

    Commas inside brackets, braces and quotes are part of a value. Quotes around a whole value are not, and what stands
    in them is taken as it is.

    Args:
        text: What was typed behind `KEY=`.

    Raises:
        InputError: when a value is missing, a bracket or a quote is not closed, or a range is wrong.

    >>> values('gcc,"fixed:rate=2Mbps,min=1",gcc:draft-02')
    ['gcc', 'fixed:rate=2Mbps,min=1', 'gcc:draft-02']
    >>> values("[2, 1, 1],[1, 1, 1]"), values("5ms,10ms:20ms:3")
    (['[2, 1, 1]', '[1, 1, 1]'], ['5ms', '10ms', '15ms', '20ms'])
    """
    found: list[str] = []
    for one in _at_commas(text):
        if one[:1] == one[-1:] == '"' and len(one) > 1:
            found.append(one[1:-1].replace('""', '"'))
        else:
            found += spread(one) if is_range(one) else [one]
    return found


_CLOSING = {"[": "]", "{": "}", "(": ")"}


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


__all__ = ["RANGE", "End", "Ends", "end", "is_range", "plain", "spread", "values"]
