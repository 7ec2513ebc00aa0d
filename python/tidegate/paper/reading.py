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
    NumberClaim,
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
        kind, at = place
        if kind == "table":
            yield from self._table(self.paper.table[int(at)], place)
        else:
            yield self._claim(self.paper.claim[int(at)], place)

    def _claim(self, claim: NumberClaim | StatementClaim, place: KeyPath) -> Claim:
        judged: dict[str, Any] = {"quick": claim.quick, "kind": Kind(claim.kind or "result")}
        if isinstance(claim, StatementClaim):
            judged |= self._rules(claim, place)
            agrees = self._rule(claim.agrees, (*place, "agrees"))
            return Claim(claim.id, claim.where, claim.text, agrees=agrees, **judged)
        return Claim(
            claim.id,
            claim.where,
            claim.text,
            self._published(claim.published, (*place, "published")),
            claim.unit,
            claim.sigma,
            self._bound(claim.tolerance, claim.unit, claim.sigma, claim.published, (*place, "tolerance")),
            claim.measure,
            _digits(claim.published) if claim.digits is None else claim.digits,
            **judged,
            **self._rules(claim, place),
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
        levels: list[tuple[KeyPath, Any]] = [
            ((*place, "cells", position), cells)
            for position, cells in reversed(list(enumerate(table.cells)))
            if (cells.rows is None or row in cells.rows) and (cells.columns is None or head.name in cells.columns)
        ]
        levels += [((*place, "columns", at[-1]), head), (place, table)]

        def first(key: str) -> tuple[KeyPath, Any]:
            """The nearest level that has it."""
            return next((pair for pair in levels if getattr(pair[1], key, None) is not None), ((), None))

        filled = {"row": row, "column": head.name}
        unit = head.unit or ""
        tolerance_at, tolerant = first("tolerance")
        if tolerant is None:
            self._wrong((*place, "tolerance"), "is missing (in the table, its column or its cells)")
        # a reason and what backs it belong together: both are taken from where the reason stands
        reason_at, reasoned = first("reason")
        trend_at, trend = first("trend")
        rules: dict[str, Any] = {
            "trend": self._rule(trend and trend.trend, (*trend_at, "trend"), **filled),
            "reason": self._phrase(reasoned and reasoned.reason, (*reason_at, "reason"), **filled),
            "because": self._rule(reasoned and reasoned.because, (*reason_at, "because"), **filled),
        }
        column = [one[table.heads.index(head)] for one in table.rows.values() if len(one) == len(table.heads)]
        _, kind = first("kind")
        return Claim(
            f"{table.id}/{row}/{head.name}",
            table.where,
            f"{row}, {head.name}",
            self._published(number, at),
            unit,
            None,
            tolerant and self._bound(tolerant.tolerance, unit, None, number, (*tolerance_at, "tolerance")),
            _fill(table.measure, filled),
            max(_digits(one) for one in column) if head.digits is None else head.digits,
            quick=first("quick")[1].quick,
            kind=Kind(kind.kind if kind else "result"),
            group=".".join(map(str, (*reason_at, "reason"))) if reasoned else "",
            cell=(table.id, row, head.name),
            **rules,
        )

    def gives(self) -> Iterator[Phrase]:
        """What stated settings that were not run would give."""
        for at, one in enumerate(self.paper.contradicted):
            phrase = self._phrase(one.gives, ("contradicted", at, "gives"))
            if phrase is not None:
                yield phrase

    def _rules(self, one: Judged, place: KeyPath) -> dict[str, Any]:
        self._backed(one, place)
        return {
            "trend": self._rule(one.trend, (*place, "trend")),
            "because": self._rule(one.because, (*place, "because")),
            "reason": self._phrase(one.reason, (*place, "reason")),
        }

    def _backed(self, one: Judged, place: KeyPath) -> None:
        if one.because is not None and one.reason is None:
            self._wrong((*place, "because"), "backs a reason, and there is none; give reason")

    def _rule(self, text: str | None, place: KeyPath, **filled: str) -> Expression | None:
        if text is None:
            return None
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

    def _phrase(self, text: str | None, place: KeyPath, **filled: str) -> Phrase | None:
        try:
            return None if text is None else Phrase.read(_fill(text, filled))
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
