"""Numbers that were measured, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Generic, TypeAlias, TypeVar

from tidegate.output import csv
from tidegate.results.stats import Interval

T = TypeVar("T")


@dataclass(frozen=True)
class Measure:
    """One number that was measured."""

    value: Interval
    """Its mean with the 95 % interval over seeds."""
    unit: str = ""
    """The unit, as the paper's file has it."""
    about: str = ""
    """What it is, in a few words."""
    lacks: str = ""
    """Why it could not be taken here, and what to install: claims that speak of it are then not run."""

    def __post_init__(self) -> None:
        """Makes a measure without a value of a mean that is not finite."""
        one = self.value if math.isfinite(self.value.mean) else Interval.of([])
        # plain numbers, whatever kind they came as
        half = None if one.half is None else float(one.half)
        object.__setattr__(self, "value", Interval(float(one.mean), half, int(one.count)))

    @classmethod
    def of(cls, values: Iterable[float | None], unit: str = "", about: str = "") -> Measure:
        """The mean over seeds with its interval; seeds without a value are left out.

        >>> Measure.of([1.0, 2.0, 3.0], "s").value
        Interval(mean=2.0, half=2.484..., count=3)
        """
        return cls(Interval.of(values), unit, about)

    @classmethod
    def exact(cls, value: float, unit: str = "", about: str = "") -> Measure:
        """A number that does not depend on a seed: a count of something fixed, a closed form.

        >>> Measure.exact(3.0).value
        Interval(mean=3.0, half=0.0, count=1)
        """
        return cls(Interval(value, 0.0, 1), unit, about)

    @classmethod
    def not_taken(cls, lacks: str, unit: str = "") -> Measure:
        """A measure that was not taken, because something is not installed.

        >>> Measure.not_taken("PyAV is needed: pip install av", "dB").show()
        'no value'
        """
        return cls(Interval.of([]), unit, lacks=lacks)

    def show(self, digits: int = 0) -> str:
        """Mean, interval and unit in at least three digits that count.

        >>> Measure.of([0.1, 0.2, 0.3], "s").show(), Measure.exact(6244, "packets").show()
        ('0.200 ± 0.248 s', '6244 packets')
        """
        number = self.number(digits)
        return f"{number} {self.unit}" if self.unit and self.value.count else number

    def number(self, digits: int = 0) -> str:
        """The same without the unit."""
        value = self.value
        if not value.count:
            return "no value"
        places = decimals(value.mean, digits)
        if not value.half or value.count < SHOWN_FROM:
            return f"{value.mean:.{places}f}"
        # two digits of the half-width that count, as far as the number goes
        places = max(places, min(9, 1 - math.floor(math.log10(value.half))))
        return f"{value.mean:.{places}f} ± {value.half:.{places}f}"


@dataclass(frozen=True)
class Quantity(Generic[T]):
    """Something that is measured of each run."""

    take: Callable[[T], float]
    """Its value of a run; NaN where the run has none."""
    unit: str = ""
    about: str = ""
    """What it is, in a few words."""
    head: str = ""
    """Heading of its column in tables."""

    def over(self, runs: Iterable[T]) -> Measure:
        """The measure of runs, one a seed.

        >>> Quantity(len, "letters").over(["ab", "abcd"]).show(), Quantity(len).over([]).show()
        ('3 letters', 'no value')
        """
        return Measure.of(map(self.take, runs), self.unit, self.about)

    def less(self, runs: Iterable[T], others: Iterable[T], about: str = "") -> Measure:
        """How much less the second ones have, run by run on the same luck.

        >>> Quantity(float, "s").less([3, 5], [1, 3]).show()
        '2 s'
        """
        pairs = zip(runs, others, strict=True)
        return Measure.of((self.take(run) - self.take(other) for run, other in pairs), self.unit, about)


SHOWN_FROM = 3
"""Values from which on an interval is shown: of two it is 12.7 standard errors wide either way, and says nothing."""


def decimals(value: float, least: int = 0) -> int:
    """How many digits after the point give three that count; none for a whole number.

    >>> decimals(0.01234), decimals(12.34), decimals(6244.0), decimals(2.5, 3)
    (4, 1, 0, 3)
    """
    if value == round(value):
        return least
    return max(least, min(9, 2 - math.floor(math.log10(abs(value)))), 0)


CellValue: TypeAlias = "str | float | int | Interval | Measure | None"


@dataclass(frozen=True)
class Table:
    """A table of ours, beside those that stand in the document."""

    name: str
    """The name of its files."""
    title: str
    columns: Sequence[str]
    """Headings of the columns, with units."""
    rows: Sequence[Sequence[CellValue]]

    @classmethod
    def of(cls, name: str, title: str, rows: Iterable[Mapping[str, Any]]) -> Table:
        """A table of rows that each have all cells by the heading of their column.

        >>> Table.of("loss", "Loss", [{"": "gcc", "loss (%)": 2}, {"": "nada", "loss (%)": 1}]).columns
        ['', 'loss (%)']
        """
        cells = list(rows)
        return cls(name, title, list(cells[0]), [list(row.values()) for row in cells])

    def __post_init__(self) -> None:
        """Checks its shape."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: found {len(row)} cells; expected {len(self.columns)}")
            for cell in row:
                if not isinstance(cell, str | Real | Interval | Measure | None):
                    raise TypeError(f"table {self.name}: found {cell!r}; expected text, a number or a Measure")

    @classmethod
    def of_quantities(
        cls,
        name: str,
        title: str,
        head: str,
        runs: Mapping[str, Iterable[T]],
        quantities: Iterable[Quantity[T]],
    ) -> Table:
        """A row for each label, a column for each quantity of its runs; `head` is that of the labels.

        >>> Table.of_quantities("a", "A", "who", {"nada": ["ab"]}, [Quantity(len, head="letters")]).columns
        ['who', 'letters']
        """
        columns = list(quantities)
        rows: list[list[CellValue]] = [
            [label, *(quantity.over(of_label) for quantity in columns)] for label, of_label in runs.items()
        ]
        return cls(name, title, [head, *(quantity.head for quantity in columns)], rows)

    def to_csv(self) -> str:
        """As CSV with all digits; a column of intervals has a second one with half their width."""
        wide = [any(isinstance(row[at], Interval | Measure) for row in self.rows) for at in range(len(self.columns))]
        heads = zip(self.columns, wide, strict=True)
        rows = (zip(map(_digits, row), wide, strict=True) for row in self.rows)
        return csv.lines(
            (name for head, two in heads for name in (head, f"{head}: half_interval_95")[: 1 + two]),
            ([text for texts, two in cells for text in texts[: 1 + two]] for cells in rows),
        )


def _digits(cell: CellValue) -> tuple[str, str]:
    """A cell with all its digits, and half the width of its interval."""
    value = cell.value if isinstance(cell, Measure) else cell
    if isinstance(value, Interval):
        return repr(value.mean) if value.count else "", "" if value.half is None else repr(value.half)
    return "" if value is None else str(value), ""
