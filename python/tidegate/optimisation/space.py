"""The space of a search: settings with their ranges or values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Self

from tidegate.errors import InputError, located
from tidegate.query import ranges
from tidegate.query.ranges import End, Range

_FORMS = "KEY=2ms:50ms, KEY=log:100kbps:10Mbps, KEY=gcc,nada"
_DIGITS = 3  # of a value, in addition to the first digit of the range's width


@dataclass(frozen=True)
class Setting:
    """One setting with its range or its values."""

    key: str
    """A key of the scenario, or `controller.NAME` for a setting of the controller."""
    text: str
    """Its range or values, as they were typed."""
    choices: tuple[str, ...] = ()
    """The values; empty for a range."""
    ends: Range | None = None
    """The ends of a range, the smaller one first."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `KEY=LOW:HIGH`, `KEY=log:LOW:HIGH` or `KEY=A,B,C`.

        If both ends are whole numbers without a unit, so are all values between them.

        Raises:
            InputError: when the text is not a setting; says what was found and what would be right.

        >>> Setting.parse("links.a.delay=2ms:50ms").value(12.3456)
        '12.35ms'
        """
        key, equals, text_of_values = (part.strip() for part in text.partition("="))
        if not equals or not key or not text_of_values:
            raise InputError(f"{text}: expected {_FORMS}")
        with located(key):
            match ranges.parse_values(text_of_values):
                case [Range(count=None) as ends]:
                    return cls(key, text_of_values, (), ends.rising())
            choices = tuple(dict.fromkeys(ranges.values(text_of_values)))
        if len(choices) < 2:  # noqa: PLR2004
            raise InputError(f"{text}: a single value leaves nothing to search; expected {_FORMS}")
        return cls(key, text_of_values, choices)

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return self.ends is not None and all(
            end.text.lstrip("+-").isdecimal() for end in (self.ends.low, self.ends.high)
        )

    @property
    def unit(self) -> str:
        """The unit of the range: that of its higher end."""
        return self.ends.high.unit if self.ends else ""

    @property
    def low(self) -> float:
        """The smaller end, in `unit`."""
        return self._in_unit(self.ends.low.size) if self.ends else math.nan

    @property
    def high(self) -> float:
        """The larger end, in `unit`."""
        return self._in_unit(self.ends.high.size) if self.ends else math.nan

    @property
    def log(self) -> bool:
        """Whether the range is logarithmic."""
        return self.ends is not None and self.ends.log

    def _in_unit(self, size: Decimal) -> float:
        assert self.ends is not None  # noqa: S101
        kind = self.ends.high.kind
        return float(size / kind.units[self.unit] if kind else size)

    def value(self, number: float | str) -> str:
        """Writes a number in `unit`, or one of the choices, as a value of a scenario."""
        if isinstance(number, str):
            return number
        if self.whole:
            return str(int(number))
        # rounded to a fixed resolution (_DIGITS), but not beyond the bounds of the range
        width = number if self.log else self.high - self.low
        exponent = math.floor(math.log10(width)) - _DIGITS
        rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(exponent), ROUND_HALF_EVEN)
        inside = min(max(rounded, Decimal(repr(self.low))), Decimal(repr(self.high)))
        return f"{ranges.decimal_text(inside)}{self.unit}"

    def number(self, value: str) -> float:
        """The number, in `unit`, of a value of a range."""
        return self._in_unit(End.parse(value, value).size)

    def distribution(self) -> Any:
        """The distribution from which Optuna chooses values."""
        from optuna import distributions

        if self.choices:
            return distributions.CategoricalDistribution(self.choices)
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), log=self.log)
        return distributions.FloatDistribution(self.low, self.high, log=self.log)


Values = Mapping[str, str]
"""One value for each setting, by key."""
