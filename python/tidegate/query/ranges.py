"""Values of a setting as people write them: separated by commas, with ranges among them."""

from __future__ import annotations

import itertools
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
_MIN_COUNT, _MAX_COUNT = 2, 1000  # values
_MAX_EXPONENT = 18  # decimal exponent, as of all quantities
_DIGITS = 2  # of a value, beyond those that tell it from its neighbour
_CLOSING = {"[": "]", "{": "}", "(": ")"}

RANGE = "2ms:50ms:5 (five values, evenly), log:100kbps:10Mbps:4 (equal ratios)"
"""Examples of ranges, for messages."""


@dataclass(frozen=True)
class End:
    """A number with its unit."""

    text: str
    """As it was written."""
    unit: str
    """The unit; empty for a bare number."""
    kind: type[Quantity] | None
    """The quantity that the unit is of; `None` for per cent and bare numbers."""
    size: Decimal
    """The number in base units."""

    @classmethod
    def parse(cls, text: str, context: str) -> Self:
        """Parses a number with its unit; `context` is the text that it is a part of, for messages.

        Raises:
            InputError: when it is not such a number.
        """
        match = _END.fullmatch(text)
        if match is None:
            raise InputError(f"{context}: {show(text)} is not a number with its unit; a range is {RANGE}")
        number, unit = Decimal(match[1]), match[2] or ""
        kind = next((kind for kind in _KINDS if unit in kind.units), None)
        if unit and unit != "%" and kind is None:
            raise InputError(f"{context}: there is no unit {show(unit)}; a range is {RANGE}")
        size = number * kind.units[unit] if kind else number
        if not all(abs(magnitude.adjusted()) <= _MAX_EXPONENT for magnitude in (number, size)):
            raise InputError(f"{context}: {text} is outside of the range of numbers")
        return cls(text, unit, kind, size)


@dataclass(frozen=True)
class Range:
    """The values between two ends."""

    text: str
    """As it was written."""
    low: End
    """The first end; it may be the larger one."""
    high: End
    """The last end."""
    count: str | None = None
    """The number of values, as it was written; `None` if the range means all values between its ends."""
    log: bool = False
    """Whether the steps are equal ratios."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `LOW:HIGH` or `LOW:HIGH:COUNT`, with `log` before or after them.

        Raises:
            InputError: when the text is not a range; says what was found and what would be right.
        """
        parts = [part.strip() for part in text.split(":")]
        log = "log" in {parts[0], parts[-1]}
        if log:
            parts.remove("log")
        if len(parts) not in {2, 3}:
            raise InputError(f"{text}: expected a range with its ends and a count: {RANGE}")
        low, high = (End.parse(part, text) for part in parts[:2])
        if bool(low.unit) != bool(high.unit):
            bare, unit = (low, high.unit) if high.unit else (high, low.unit)
            raise InputError(f"{text}: both ends need their unit: {bare.text}{unit}?")
        if low.kind is not high.kind or (low.kind is None and low.unit != high.unit):
            raise InputError(f"{text}: the units of {low.text} and {high.text} do not fit together")
        if low.size == high.size:
            raise InputError(f"{text}: both ends are equal; expected different ends")
        if log and min(low.size, high.size) <= 0:
            raise InputError(f"{text}: both ends of a log range must be above zero")
        return cls(text, low, high, parts[2] if len(parts) > 2 else None, log)  # noqa: PLR2004

    def rising(self) -> Self:
        """The same range with the smaller end first."""
        return self if self.low.size < self.high.size else replace(self, low=self.high, high=self.low)

    def values(self) -> Iterator[str]:
        """Spreads the range into values, both ends among them: evenly, or with `log` at equal ratios.

        Values between the ends are rounded to a hundredth of the distance between neighbours.

        Raises:
            InputError: when the range has no count, or an invalid one.
        """
        if self.count is None:
            raise InputError(f"{self.text}: expected a range with its ends and a count: {RANGE}")
        if not re.fullmatch(r"\d{1,9}", self.count) or not _MIN_COUNT <= int(self.count) <= _MAX_COUNT:
            expected = f"expected a whole number from {_MIN_COUNT} to {_MAX_COUNT}"
            raise InputError(f"{self.text}: found the count {show(self.count)}; {expected}")
        count, low, high = int(self.count), self.low.size, self.high.size
        if self.log:
            ratio = (high / low).ln() / (count - 1)
            sizes = [low * (ratio * number).exp() for number in range(count)]
        else:
            sizes = [low + (high - low) * number / (count - 1) for number in range(count)]
        closest = min(abs(after - before) for before, after in itertools.pairwise(sizes))
        if self.low.kind is not None and closest < 1:
            raise InputError(
                f"{self.text}: {count} values would be less than {self.low.kind(1)} apart; expected fewer values"
            )
        yield self.low.text  # both ends stay as they were typed
        for before, size, after in zip(sizes, sizes[1:], sizes[2:], strict=False):
            step = min(abs(size - before), abs(after - size))
            yield self._value(size, math.floor(step.log10()) - _DIGITS)
        yield self.high.text

    def _value(self, size: Decimal, exponent: int) -> str:
        """A size in base units, rounded to 10**place of them, in the unit of both ends, or one that fits."""
        kind, unit = self.low.kind, self.low.unit
        if kind is not None and unit != self.high.unit:
            return str(kind(int(_rounded(size, max(exponent, 0)))))
        unit_size = Decimal(kind.units[unit] if kind else 1)
        return f"{decimal_text(_rounded(size / unit_size, exponent - unit_size.adjusted()))}{unit}"


def _rounded(value: Decimal, exponent: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(exponent), ROUND_HALF_EVEN) if value else value


def decimal_text(number: Decimal) -> str:
    """Writes a number without an exponent and without trailing zeros.

    >>> decimal_text(Decimal("1.50")), decimal_text(Decimal("2E+3")), decimal_text(Decimal("0.00"))
    ('1.5', '2000', '0')
    """
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", ""} else text


def parse_values(text: str) -> list[str | Range]:
    """Splits text at its commas into values and ranges.

    Commas inside brackets, braces and quotes are part of a value. Quotes around a whole value are removed, and the text
    inside them is one value as it stands.

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
    """Splits text like [parse_values][tidegate.query.ranges.parse_values], and spreads the ranges.

    >>> values('gcc,"fixed:rate=2Mbps,min=1",gcc:draft-02')
    ['gcc', 'fixed:rate=2Mbps,min=1', 'gcc:draft-02']
    >>> values("[2, 1, 1],[1, 1, 1]"), values("5ms,10ms:20ms:3")
    (['[2, 1, 1]', '[1, 1, 1]'], ['5ms', '10ms', '15ms', '20ms'])
    >>> values("2ms:50ms:5"), values("log:100kbps:10Mbps:4"), values("5%:0%:3")
    (['2ms', '14ms', '26ms', '38ms', '50ms'], ['100kbps', '464kbps', '2.15Mbps', '10Mbps'], ['5%', '2.5%', '0%'])
    """
    return [value for part in parse_values(text) for value in ([part] if isinstance(part, str) else part.values())]


def _at_commas(text: str) -> Iterator[str]:
    closers: list[str] = []
    start, quote = 0, ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter == '"' and (closers or not text[start:index].strip() or text[index - 1] == '"'):
            quote = letter
        elif letter in _CLOSING:
            closers.append(_CLOSING[letter])
        elif closers and letter == closers[-1]:
            closers.pop()
        elif letter == "," and not closers:
            yield _stripped(text[start:index])
            start = index + 1
    if quote or closers:
        raise InputError(f"{quote or closers[-1]} is missing at the end")
    yield _stripped(text[start:])


def _stripped(value: str) -> str:
    if not value.strip() or value.splitlines() != [value]:
        raise InputError("expected values with commas between them")
    return value.strip()
