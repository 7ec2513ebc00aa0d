"""Measured numbers, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from statistics import median
from typing import Any, Generic, TypeAlias, TypeVar

from tidegate.output import csv
from tidegate.results.stats import Interval

T = TypeVar("T")


@dataclass(frozen=True)
class Measure:
    """A measured number with its unit."""

    value: Interval
    """The mean over seeds with its 95 % interval."""
    unit: str = ""
    """The unit, as in the paper's file."""
    about: str = ""
    """A description in a few words."""
    lacks: str = ""
    """Why it could not be measured here, and what to install; claims that refer to it are then not run."""

    def __post_init__(self) -> None:
        """Replaces a value whose mean is not finite by an empty interval."""
        interval = self.value if math.isfinite(self.value.mean) else Interval.of([])
        # NumPy scalars become Python numbers
        half = None if interval.half is None else float(interval.half)
        object.__setattr__(self, "value", Interval(float(interval.mean), half, int(interval.count)))

    @classmethod
    def of(cls, values: Iterable[float | None], unit: str = "", about: str = "") -> Measure:
        """The mean over seeds with its interval; seeds without a value are left out.

        >>> Measure.of([1.0, 2.0, 3.0], "s").value
        Interval(mean=2.0, half=2.484..., count=3)
        """
        return cls(Interval.of(values), unit, about)

    @classmethod
    def median(cls, values: Iterable[float | None], unit: str = "", about: str = "") -> Measure:
        """The median over seeds of a statistic of each, such as a maximum, with its interval.

        Of normal numbers the interval of a median is the square root of pi / 2 times as wide as that of a mean.

        >>> Measure.median([1.0, 2.0, 6.0], "s").value
        Interval(mean=2.0, half=8.23..., count=3)
        """
        present = [float(value) for value in values if value is not None and math.isfinite(value)]
        interval = Interval.of(present)
        if not present:
            return cls(interval, unit, about)
        half = None if interval.half is None else math.sqrt(math.pi / 2) * interval.half
        return cls(Interval(median(present), half, len(present)), unit, about)

    @classmethod
    def exact(cls, value: float, unit: str = "", about: str = "") -> Measure:
        """A number that does not depend on a seed: a count of something fixed, a closed form.

        >>> Measure.exact(3.0).value
        Interval(mean=3.0, half=0.0, count=1)
        """
        return cls(Interval(value, 0.0, 1), unit, about)

    @classmethod
    def not_taken(cls, lacks: str, unit: str = "") -> Measure:
        """A measure without a value, because something is not installed.

        >>> Measure.not_taken("PyAV is needed: pip install av", "dB").show()
        'no value'
        """
        return cls(Interval.of([]), unit, lacks=lacks)

    def show(self, digits: int = 0) -> str:
        """Mean, interval and unit, with at least three significant digits.

        >>> Measure.of([0.1, 0.2, 0.3], "s").show(), Measure.exact(6244, "packets").show()
        ('0.200 ± 0.248 s', '6244 packets')

        What floats lose is no interval:

        >>> Measure(Interval(50.0, 1e-14, 3), "ms").show()
        '50 ms'
        """
        number = self.number(digits)
        return f"{number} {self.unit}" if self.unit and self.value.count else number

    def number(self, digits: int = 0) -> str:
        """Mean and interval without the unit, as `show` prints them."""
        value = self.value
        if not value.count:
            return "no value"
        places = decimals(value.mean, digits)
        if not value.half or value.half < _ROUNDING * abs(value.mean):
            return f"{value.mean:.{places}f}"
        # two significant digits of the half-width, but at most nine decimals
        places = max(places, min(9, 1 - math.floor(math.log10(value.half))))
        return f"{value.mean:.{places}f} ± {value.half:.{places}f}"


@dataclass(frozen=True)
class Quantity(Generic[T]):
    """A number that each run gives, with its unit and its heading in tables."""

    take: Callable[[T], float]
    """Computes the number from a run; NaN if the run has none."""
    unit: str = ""
    about: str = ""
    """A description in a few words."""
    head: str = ""
    """Heading of its column in tables."""

    def over(self, runs: Iterable[T]) -> Measure:
        """The measure over runs, one run a seed.

        >>> Quantity(len, "letters").over(["ab", "abcd"]).show(), Quantity(len).over([]).show()
        ('3 ± 13 letters', 'no value')
        """
        return Measure.of(map(self.take, runs), self.unit, self.about)

    def less(self, runs: Iterable[T], others: Iterable[T], about: str = "") -> Measure:
        """Mean difference of pairs of runs with the same seed: the value of the first less that of the second.

        >>> Quantity(float, "s").less([3, 5], [1, 3]).show()
        '2 s'
        """
        pairs = zip(runs, others, strict=True)
        return Measure.of((self.take(run) - self.take(paired) for run, paired in pairs), self.unit, about)


_ROUNDING = 1e-9
"""Half-width, as a share of the mean, below which values differ only by what sums of floats lose."""


def decimals(value: float, minimum: int = 0) -> int:
    """Number of decimals that show three significant digits, at least `minimum`; no more for a whole number.

    >>> decimals(0.01234), decimals(12.34), decimals(6244.0), decimals(2.5, 3)
    (4, 1, 0, 3)
    """
    if value == round(value):
        return minimum
    return max(minimum, min(9, 2 - math.floor(math.log10(abs(value)))), 0)


CellValue: TypeAlias = "str | float | int | Interval | Measure | None"


@dataclass(frozen=True)
class Table:
    """A table of ours; those of the document are not among them."""

    name: str
    """The name of its files."""
    title: str
    columns: Sequence[str]
    """Headings of the columns, with units."""
    rows: Sequence[Sequence[CellValue]]

    @classmethod
    def of(cls, name: str, title: str, rows: Iterable[Mapping[str, Any]]) -> Table:
        """A table from rows, each a mapping of all column headings to cells.

        >>> Table.of("loss", "Loss", [{"": "gcc", "loss (%)": 2}, {"": "nada", "loss (%)": 1}]).columns
        ['', 'loss (%)']
        """
        cells = list(rows)
        return cls(name, title, list(cells[0]), [list(row.values()) for row in cells])

    def __post_init__(self) -> None:
        """Checks that each row has a cell for each column, and the types of the cells."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: found a row of {len(row)} cells; expected {len(self.columns)}")
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
        """A row for each label, a column for each quantity of its runs; `head` is the heading of the labels.

        >>> Table.of_quantities("a", "A", "who", {"nada": ["ab"]}, [Quantity(len, head="letters")]).columns
        ['who', 'letters']
        """
        columns = list(quantities)
        rows: list[list[CellValue]] = [
            [label, *(quantity.over(labelled) for quantity in columns)] for label, labelled in runs.items()
        ]
        return cls(name, title, [head, *(quantity.head for quantity in columns)], rows)

    def to_csv(self) -> str:
        """CSV with all digits; after a column of intervals stands a second one with their half-widths."""
        indices = range(len(self.columns))
        wide = [any(isinstance(row[index], Interval | Measure) for row in self.rows) for index in indices]
        heads = zip(self.columns, wide, strict=True)
        rows = (zip(map(_digits, row), wide, strict=True) for row in self.rows)
        return csv.lines(
            (name for head, two in heads for name in (head, f"{head}: half_interval_95")[: 1 + two]),
            ([text for texts, two in cells for text in texts[: 1 + two]] for cells in rows),
        )


def _digits(cell: CellValue) -> tuple[str, str]:
    """A cell with all its digits, and the half-width of its interval."""
    value = cell.value if isinstance(cell, Measure) else cell
    if isinstance(value, Interval):
        return repr(value.mean) if value.count else "", "" if value.half is None else repr(value.half)
    return "" if value is None else str(value), ""
