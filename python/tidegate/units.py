"""Times, rates, sizes and fractions: integers in base units, written with their unit.

1 kb is 1000 bit and 1 kB is 1000 bytes, as everywhere in tidegate. A number without its unit is
refused, because a later reader could not know which unit was meant.

>>> Rate.parse("2.5Mbps")
Rate('2.5Mbps')
>>> int(Rate.parse("2.5Mbps"))
2500000
>>> str(Duration(20_000_000))
'20ms'
>>> Size.parse("64 kB") == 64_000
True
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from itertools import islice
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from tidegate.errors import InputError

_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s].*?)?\s*\Z", re.ASCII)
_LARGEST = 10**18  # well inside the engine's 64-bit integers, and beyond any sensible value
WIDEST = 10_000  # bits of a whole number that is shown with decimal digits; Python writes at most 4300 digits
_SHOWN = 80  # characters of a value in a message; each entry of a list takes one at least, so later ones are never seen
_LONGEST = 24  # characters of a number; more would not add precision


def show(value: object) -> str:
    """Formats a value as in TOML, shortened to 80 characters.

    >>> show("20"), show(20), show(True), show([1, 2])
    ('"20"', '20', 'true', '[1, 2]')
    """
    match value:
        case bool():
            text = "true" if value else "false"
        case Quantity():
            text = f'"{value}"'
        case str():
            text = json.dumps(value, ensure_ascii=False)  # TOML escapes the same characters as JSON
        case dict():
            text = "{" + ", ".join(f"{key} = {show(item)}" for key, item in islice(value.items(), _SHOWN)) + "}"
        case list() | tuple():
            text = "[" + ", ".join(show(item) for item in islice(value, _SHOWN)) + "]"
        case int() if value.bit_length() > WIDEST:
            text = hex(value)  # Python refuses to write thousands of decimal digits
        case _:
            text = str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _parsed(parse: Callable[[object], Any], written: core_schema.SerSchema) -> CoreSchema:
    """Builds a pydantic schema that validates with `parse` and reports its messages."""

    def validate(value: object) -> Any:
        try:
            return parse(value)
        except InputError as error:
            raise PydanticCustomError("tidegate", "{why}", {"why": str(error)}) from None

    return core_schema.no_info_plain_validator_function(validate, serialization=written)


class Quantity(int):
    """A non-negative whole number of base units that is written with a unit.

    >>> Duration("20ms") == Duration(20_000_000)
    True
    """

    noun: ClassVar[str]
    example: ClassVar[str]
    units: ClassVar[dict[str, int]]
    """Valid units, each with its size in base units."""
    display_units: ClassVar[tuple[str, ...]]
    """Units for output, largest first."""
    usual: ClassVar[tuple[str, ...]]
    """Units to suggest for a number without one."""

    def __new__(cls, value: int | str = 0) -> Self:
        """Makes a quantity from a number of base units, or from text with a unit."""
        return cls.parse(value) if isinstance(value, str) else super().__new__(cls, value)

    @classmethod
    def parse(cls, text: object) -> Self:
        """Parses a number with its unit; returns a value of this type unchanged.

        Raises:
            InputError: states the value found and the values expected.

        >>> Duration.parse("20")
        Traceback (most recent call last):
        ...
        tidegate.errors.InputError: found "20"; a time needs a unit, for example "20ms" or "20s"
        """
        if isinstance(text, cls):
            return text
        if not isinstance(text, str):
            raise InputError(f"found {show(text)}; {cls._needs(text)}")
        match = _NUMBER.match(text)
        if match is None or len(match[1]) > _LONGEST:
            raise InputError(f"found {show(text)}; expected a {cls.noun}, for example {cls.example}")
        number, unit = match[1], match[2]
        if unit is None:
            raise InputError(f"found {show(text)}; {cls._needs(number)}")
        if unit not in cls.units:
            raise InputError(f"found {show(text)}; {cls._unknown_unit(unit)}")
        value = Decimal(number) * cls.units[unit]
        if value < 0:
            raise InputError(f"found {show(text)}; a {cls.noun} cannot be negative")
        if value > _LARGEST:
            raise InputError(f"found {show(text)}; the largest {cls.noun} is {cls(_LARGEST)}")
        rounded = int(value.to_integral_value())
        if rounded == 0 and value != 0:
            raise InputError(f"found {show(text)}; the smallest {cls.noun} above zero is {cls(1)}")
        return cls(rounded)

    @classmethod
    def _needs(cls, number: object) -> str:
        if isinstance(number, int | float | str) and not isinstance(number, bool | Quantity):
            right = " or ".join(f'"{number}{unit}"' for unit in cls.usual)
            return f"a {cls.noun} needs a unit, for example {right}"
        return f"expected a {cls.noun}, for example {cls.example}"

    @classmethod
    def _unknown_unit(cls, unit: str) -> str:
        # the first name of each unit
        names = {size: name for name, size in reversed(cls.units.items())}
        listing = ", ".join(names[size] for size in sorted(names, reverse=True))
        similar = [name for name in names.values() if name.lower() in {unit.lower(), f"{unit.lower()}ps"}]
        hint = f"; did you mean {similar[0]}?" if similar else ""
        return f"no unit of {cls.noun} is called {show(unit)}; available: {listing}{hint}"

    def __str__(self) -> str:
        for unit in self.display_units:
            if self >= self.units[unit]:
                number = (Decimal(int(self)) / self.units[unit]).normalize()
                return f"{number:f}{unit}"
        return f"0{self.usual[-1]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Makes pydantic validate and serialize it as text with a unit."""
        del source, handler
        return _parsed(cls.parse, core_schema.to_string_ser_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """JSON Schema, for editors."""
        del schema, handler
        units = "|".join(re.escape(unit) for unit in cls.units)
        return {
            "type": "string",
            "pattern": rf"^\s*\d[\d_]*(\.\d*)?([eE][+-]?\d+)?\s*({units})\s*$",
            "description": f"a {cls.noun} with its unit ({', '.join(cls.display_units)})",
            "examples": [cls.example.strip('"')],
        }


class Duration(Quantity):
    """A time or a length of time, in nanoseconds."""

    noun = "time"
    example = '"20ms"'
    units: ClassVar[dict[str, int]] = {
        "ns": 1,
        "us": 10**3,
        "µs": 10**3,
        "ms": 10**6,
        "s": 10**9,
        "min": 60 * 10**9,
        "h": 3600 * 10**9,
    }
    display_units = ("s", "ms", "us", "ns")
    usual = ("ms", "s")

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return self / 1e9


class Rate(Quantity):
    """A rate in bit/s."""

    noun = "rate"
    example = '"2.5Mbps"'
    units: ClassVar[dict[str, int]] = {
        f"{prefix}{unit}": factor
        for unit in ("bps", "bit/s", "b/s")
        for prefix, factor in {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}.items()
    }
    display_units = ("Gbps", "Mbps", "kbps", "bps")
    usual = ("kbps", "Mbps")


class Size(Quantity):
    """A size in bytes."""

    noun = "size"
    example = '"1200B"'
    units: ClassVar[dict[str, int]] = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
    display_units = ("GB", "MB", "kB", "B")
    usual = ("B", "kB")


class Frequency(Quantity):
    """A frequency, in thousandths of an event per hour.

    >>> Frequency("2/s").per_second
    2.0
    """

    noun = "frequency"
    example = '"2/s"'
    units: ClassVar[dict[str, int]] = {"/s": 3_600_000, "/min": 60_000, "/h": 1_000}
    display_units = ("/s", "/min", "/h")
    usual = ("/s", "/min")

    @property
    def per_second(self) -> float:
        """Events per second."""
        return self / self.units["/s"]


class Speed(Quantity):
    """A speed in metres per hour.

    >>> Speed("1m/s") == Speed("3.6km/h")
    True
    """

    noun = "speed"
    example = '"3km/h"'
    units: ClassVar[dict[str, int]] = {"km/h": 1_000, "m/s": 3_600}
    display_units = ("km/h",)
    usual = ("km/h", "m/s")


class Fraction(float):
    """A share of a whole: `"5%"` or `0.05`.

    >>> Fraction.parse("5%"), Fraction.parse(0.05)
    (0.05, 0.05)
    """

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parses a fraction between 0 and 1.

        Raises:
            InputError: states the value found and the values expected.
        """
        right = 'expected a fraction, for example "5%" or 0.05'
        if isinstance(value, str):
            match = _NUMBER.match(value)
            if match is None or len(match[1]) > _LONGEST or match[2] != "%":
                raise InputError(f"found {show(value)}; {right}")
            number = float(Decimal(match[1]) / 100)
        elif isinstance(value, int | float) and not isinstance(value, bool | Quantity):
            # a file may hold whole numbers that are too large for a float
            number = float(value) if abs(value) < 2**64 else math.inf
        else:
            raise InputError(f"found {show(value)}; {right}")
        if not 0 <= number <= 1:
            hint = f'; did you mean "{value}%"?' if 1 < number <= 100 else ""  # noqa: PLR2004
            hint = "" if isinstance(value, str) else hint
            raise InputError(f"found {show(value)}; a fraction lies between 0 and 1{hint}")
        return cls(number)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Makes pydantic validate it as a number or a percentage."""
        del source, handler
        return _parsed(cls.parse, core_schema.plain_serializer_function_ser_schema(float))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """JSON Schema, for editors."""
        del schema, handler
        return {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": r"^\s*\d[\d_]*(\.\d*)?([eE][+-]?\d+)?\s*%\s*$"},
            ],
            "description": "a fraction between 0 and 1, or a percentage",
            "examples": ["5%", 0.05],
        }


def seconds(value: float) -> Duration:
    """Converts seconds to a time, to the nearest nanosecond.

    >>> seconds(0.02)
    Duration('20ms')
    """
    return Duration.parse(f"{value!r}s")


def bits_per_second(value: float) -> Rate:
    """Converts bit/s to a rate.

    >>> bits_per_second(2.5e6)
    Rate('2.5Mbps')
    """
    return Rate.parse(f"{value!r}bps")
