"""From a `paper.toml` to claims that are ready to be judged, in the order of the document.

Tables of numbers are taken apart into single ones; whatever is wrong is found before anything is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidegate.errors import InputError
from tidegate.paper.claims import (
    PAPER_TOML,
    Bound,
    Claim,
    Column,
    Document,
    Judged,
    Kind,
    Paper,
    Phrase,
    PublishedTable,
    StatementClaim,
    Tolerance,
)
from tidegate.query import Expression
from tidegate.scenario import toml
from tidegate.scenario.explain import Path as KeyPath
from tidegate.scenario.explain import Problem
from tidegate.scenario.source import Names, Source, names_of
from tidegate.units import show


def load(folder: Path) -> Document:
    """Reads the `paper.toml` of a folder.

    Raises:
        InputError: names file, line, key, what was found and what would be right; lists every problem.
    """
    path = folder / PAPER_TOML
    source = Source.parse(toml.read(path), path, _ids)
    paper = source.fill(Paper)
    reader = _Reader(paper)
    places: list[KeyPath] = [("claim", at) for at in range(len(paper.claim))]
    places += [("table", at) for at in range(len(paper.table))]
    claims: dict[str, Claim] = {}
    known: dict[str, str] = {}
    for place in sorted(places, key=lambda one: source.lines[one]):
        for claim in reader.claims(place):
            if claim.id in claims:
                reader.problems.append(Problem(place, f'"{claim.id}" is there already ({known[claim.id]})'))
            claims[claim.id] = claim
            known[claim.id] = source.where(place)
    gives = tuple(reader.gives())
    if not places:
        reader.problems.append(Problem((), "makes no claim; expected [[claim]] or [[table]]"))
    if reader.problems:
        raise source.error(reader.problems)
    return Document(folder.resolve().name, folder, paper, tuple(claims.values()), gives, known)


def _ids(data: Mapping[str, Any]) -> Names:
    return names_of(data, ("claim", "table"), "id")


_PRINTED = {"published", "sigma"}
"""What rules of a number can speak of, and nobody measures."""


class _Reader:
    """Turns what is written into claims, and notes what is wrong with it."""

    def __init__(self, paper: Paper) -> None:
        self.paper = paper
        self.problems: list[Problem] = []

    def claims(self, place: KeyPath) -> Iterator[Claim]:
        if place[0] == "table":
            yield from self._table(self.paper.table[int(place[1])], place)
            return
        claim = self.paper.claim[int(place[1])]
        if isinstance(claim, StatementClaim):
            rules = self._rules(claim, place, {})
            agrees = self._rule(claim.agrees, (*place, "agrees"), {})
            kind = Kind(claim.kind or "result")
            yield Claim(claim.id, claim.where, claim.text, agrees=agrees, quick=claim.quick, kind=kind, **rules)
            return
        yield Claim(
            claim.id,
            claim.where,
            claim.text,
            self._published(claim.published, (*place, "published")),
            claim.unit,
            claim.sigma,
            self._bound(claim.tolerance, claim.unit, claim.sigma, claim.published, (*place, "tolerance")),
            claim.measure,
            _digits(claim.published) if claim.digits is None else claim.digits,
            quick=claim.quick,
            kind=Kind(claim.kind or "result"),
            **self._rules(claim, place, {}),
        )

    def _table(self, table: PublishedTable, place: KeyPath) -> Iterator[Claim]:
        heads = table.heads
        names = [head.name for head in heads]
        self._unique(names, (*place, "columns"))
        self._backed(table, place)
        for position, cells in enumerate(table.cells):
            at = (*place, "cells", position)
            self._backed(cells, at)
            self._known(cells.rows, list(table.rows), (*at, "rows"))
            self._known(cells.columns, names, (*at, "columns"))
        for row, numbers in table.rows.items():
            where = (*place, "rows", row)
            if len(numbers) != len(heads):
                self._wrong(where, f"found {len(numbers)} numbers; expected {len(heads)}, one a column")
                continue
            for column, (head, number) in enumerate(zip(heads, numbers, strict=True)):
                if not isinstance(number, str):
                    yield self._cell(table, place, row, head, number, (*where, column))

    def _cell(self, table: PublishedTable, place: KeyPath, row: str, head: Column, number: Any, at: KeyPath) -> Claim:
        special = [
            (place_of, cells)
            for place_of, cells in (((*place, "cells", n), cells) for n, cells in enumerate(table.cells))
            if (cells.rows is None or row in cells.rows) and (cells.columns is None or head.name in cells.columns)
        ]
        levels: list[tuple[KeyPath, Any]] = [*reversed(special), ((*place, "columns", at[-1]), head), (place, table)]

        def first(key: str) -> tuple[KeyPath, Any]:
            found = (((*level, key), getattr(one, key, None)) for level, one in levels)
            return next((pair for pair in found if pair[1] is not None), ((), None))

        filled = {"row": row, "column": head.name}
        unit = table.unit if head.unit is None else head.unit
        tolerance_at, tolerance = first("tolerance")
        if tolerance is None:
            self._wrong((*place, "tolerance"), "is missing (in the table, its column or its cells)")
        # a reason and what backs it belong together: both are taken from where the reason stands
        reason_at, reason = first("reason")
        backed = next((one for level, one in levels if (*level, "reason") == reason_at), None)
        trend_at, trend = first("trend")
        rules: dict[str, Any] = {
            "trend": None if trend is None else self._rule(trend, trend_at, filled),
            "reason": None if reason is None else self._phrase(reason, reason_at, filled),
            "because": None
            if backed is None or backed.because is None
            else self._rule(backed.because, (*reason_at[:-1], "because"), filled),
        }
        column = [one[table.heads.index(head)] for one in table.rows.values() if len(one) == len(table.heads)]
        return Claim(
            f"{table.id}/{row}/{head.name}",
            table.where,
            f"{row}, {head.name}",
            self._published(number, at),
            unit,
            None,
            None if tolerance is None else self._bound(tolerance, unit, None, number, tolerance_at),
            _fill(table.measure, filled),
            max(_digits(one) for one in column) if head.digits is None else head.digits,
            quick=first("quick")[1],
            kind=Kind(first("kind")[1] or "result"),
            group="" if reason is None else ".".join(map(str, reason_at)),
            cell=(table.id, row, head.name),
            **rules,
        )

    def gives(self) -> Iterator[Phrase]:
        """What stated settings that were not run would give."""
        for at, one in enumerate(self.paper.contradicted):
            phrase = self._phrase(one.gives, ("contradicted", at, "gives"), {})
            if phrase is not None:
                yield phrase

    def _rules(self, one: Judged, place: KeyPath, filled: Mapping[str, str]) -> dict[str, Any]:
        self._backed(one, place)
        return {
            "trend": None if one.trend is None else self._rule(one.trend, (*place, "trend"), filled),
            "because": None if one.because is None else self._rule(one.because, (*place, "because"), filled),
            "reason": None if one.reason is None else self._phrase(one.reason, (*place, "reason"), filled),
        }

    def _backed(self, one: Judged, place: KeyPath) -> None:
        if one.because is not None and one.reason is None:
            self._wrong((*place, "because"), "backs a reason, and there is none; give reason")

    def _rule(self, text: str, place: KeyPath, filled: Mapping[str, str]) -> Expression | None:
        try:
            rule = Expression(_fill(text, filled))
        except InputError as error:
            self._wrong(place, str(error))
            return None
        if rule.kind != "truth":
            self._wrong(place, f"found {show(text)}; expected a comparison, such as gcc.loss < 0.1")
        elif not set(rule.names) - _PRINTED:
            self._wrong(place, f"found {show(text)}; it speaks of no measure, and would be a verdict by hand")
        return rule

    def _phrase(self, text: str, place: KeyPath, filled: Mapping[str, str]) -> Phrase | None:
        try:
            return Phrase.read(_fill(text, filled))
        except InputError as error:
            self._wrong(place, str(error))
            return None

    def _published(self, value: float | list[float], place: KeyPath) -> float | tuple[float, float]:
        if not isinstance(value, list):
            return value
        low, high = value
        if low >= high:
            self._wrong(place, f"found [{low:g}, {high:g}]; expected [least, largest]")
        return low, high

    def _bound(
        self, tolerance: Tolerance, unit: str, sigma: float | None, published: float | list[float], place: KeyPath
    ) -> Bound | None:
        share, amount, count = 0.0, 0.0, False
        for part in tolerance.parts:
            match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(.*?)\s*", part)
            number, of = (float(Decimal(match[1])), match[2]) if match else (0.0, "")
            if part.strip() == "count":
                count = True
            elif match is None:
                self._wrong(
                    (*place, "within"), f'found {show(part)}; expected "5%", "0.5 {unit or ""}", "2 sigma" or "count"'
                )
            elif of == "sigma" and sigma is None:
                self._wrong((*place, "within"), f"found {show(part)}; the claim gives no sigma")
            elif of == "sigma":
                amount = max(amount, number * (sigma or 0.0))
            elif of == "%":
                share = max(share, number / 100)
            elif of == ("points" if unit == "%" else unit):
                amount = max(amount, number)
            else:
                right = "points" if unit == "%" else unit
                words = f'"5%", or "0.5 {right}" in the unit of the number' if right else '"5%", or a plain "0.5"'
                self._wrong((*place, "within"), f"found {show(part)}; expected {words}")
        bound = Bound(" or ".join(tolerance.parts), tolerance.why, share, amount, count)
        low, high = published if isinstance(published, list) else (published, published)
        if not low <= 0 <= high and bound.around(low)[0] <= 0 <= bound.around(high)[1]:
            printed = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            self._wrong(
                (*place, "within"), f"{show(bound.words)} of {printed}: nothing at all would agree; expected less"
            )
        return bound

    def _unique(self, names: list[str], place: KeyPath) -> None:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            self._wrong(place, f"{', '.join(twice)}: is named twice")

    def _known(self, names: list[str] | None, known: list[str], place: KeyPath) -> None:
        for name in names or ():
            if name not in known:
                self._wrong(place, f"found {show(name)}; there are {', '.join(known)}")

    def _wrong(self, place: KeyPath, message: str) -> None:
        problem = Problem(place, message)
        if problem not in self.problems:  # one slip of a table is one problem, not one a cell
            self.problems.append(problem)


def _fill(text: str, filled: Mapping[str, str]) -> str:
    for key, value in filled.items():
        text = text.replace("{" + key + "}", value)
    return text


def _digits(value: Any) -> int:
    """Digits after the point of a number as it is written.

    >>> _digits(0.25), _digits(7000.0), _digits([1, 2.5]), _digits("-")
    (2, 0, 1, 0)
    """
    if isinstance(value, list | tuple):
        return max(_digits(one) for one in value)
    if not isinstance(value, int | float):
        return 0
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    return max(0, -int(exponent))
