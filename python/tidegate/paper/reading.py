"""Loads a `paper.toml` into claims that are ready to be judged, in the order of the document.

A table becomes a claim for each of its numbers. All mistakes are found before anything is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidegate.errors import InputError, did_you_mean
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
from tidegate.paper.turning import OURS, PRINTED, without_effect
from tidegate.query import Expression
from tidegate.scenario import toml
from tidegate.scenario.explain import Path as KeyPath
from tidegate.scenario.explain import Problem
from tidegate.scenario.source import Names, Source, names_of
from tidegate.units import show


def load(folder: Path) -> Document:
    """Reads the `paper.toml` of a folder.

    Raises:
        InputError: lists every problem with file, line, key, the text found and the text expected.
    """
    file = folder / PAPER_TOML
    source = Source.parse(toml.read(file), file, _ids)
    paper = source.fill(Paper)
    reader = _Reader(paper)
    paths: list[KeyPath] = [("claim", index) for index in range(len(paper.claim))]
    paths += [("table", index) for index in range(len(paper.table))]
    claims: dict[str, Claim] = {}
    places: dict[str, str] = {}
    for path in sorted(paths, key=source.lines.__getitem__):
        for claim in reader.claims(path):
            if claim.id in claims:
                reader.problems.append(Problem(path, f'the id "{claim.id}" is used already ({places[claim.id]})'))
            claims[claim.id] = claim
            places[claim.id] = source.where(path)
    gives = tuple(reader.gives())
    sweeps = dict(reader.sweeps())
    reader.check_headline(claims)
    reader.check_decided(claims)
    if not paths:
        reader.problems.append(Problem((), "the file makes no claim; expected [[claim]] or [[table]]"))
    if reader.problems:
        raise source.error(reader.problems)
    return Document(folder.resolve().name, folder, paper, tuple(claims.values()), gives, sweeps, places)


def _ids(data: Mapping[str, Any]) -> Names:
    return names_of(data, ("claim", "table"), "id")


class _Reader:
    """Makes claims from the tables of a file, and collects the problems."""

    def __init__(self, paper: Paper) -> None:
        self.paper = paper
        self.problems: list[Problem] = []

    def claims(self, path: KeyPath) -> Iterator[Claim]:
        kind, index = path
        if kind == "table":
            yield from self._table(self.paper.table[int(index)], path)
        else:
            yield self._claim(self.paper.claim[int(index)], path)

    def _claim(self, claim: NumberClaim | StatementClaim, path: KeyPath) -> Claim:
        judged: dict[str, Any] = {
            "quick": claim.quick,
            "kind": Kind(claim.kind or "result"),
            "unturned": claim.unturned or "",
        }
        if isinstance(claim, StatementClaim):
            judged |= self._rules(claim, path)
            agrees = self._rule(claim.agrees, (*path, "agrees"))
            in_words = claim.in_words or ""
            return Claim(claim.id, claim.where, claim.text, agrees=agrees, in_words=in_words, **judged)
        return Claim(
            claim.id,
            claim.where,
            claim.text,
            self._published(claim.published, (*path, "published")),
            claim.unit,
            claim.sigma,
            self._bound(claim.tolerance, claim.unit, claim.sigma, claim.published, (*path, "tolerance")),
            claim.measure,
            _digits(claim.published) if claim.digits is None else claim.digits,
            **judged,
            **self._rules(claim, path, claim.measure),
        )

    def _table(self, table: PublishedTable, path: KeyPath) -> Iterator[Claim]:
        heads = table.heads
        names = [head.name for head in heads]
        self._check_unique(names, (*path, "columns"))
        self._check_reason(table, path)
        for position, cells in enumerate(table.cells):
            cells_path = (*path, "cells", position)
            self._check_reason(cells, cells_path)
            self._check_names(cells.rows, list(table.rows), (*cells_path, "rows"))
            self._check_names(cells.columns, names, (*cells_path, "columns"))
        for row, numbers in table.rows.items():
            row_path = (*path, "rows", row)
            if len(numbers) != len(heads):
                self._add_problem(row_path, f"found {len(numbers)} numbers; expected {len(heads)}, one for each column")
                continue
            for column, (head, number) in enumerate(zip(heads, numbers, strict=True)):
                if not isinstance(number, str):
                    yield self._cell(table, path, row, head, number, (*row_path, column))

    def _cell(
        self, table: PublishedTable, path: KeyPath, row: str, head: Column, number: Any, cell_path: KeyPath
    ) -> Claim:
        levels: list[tuple[KeyPath, Any]] = [
            ((*path, "cells", position), cells)
            for position, cells in reversed(list(enumerate(table.cells)))
            if (cells.rows is None or row in cells.rows) and (cells.columns is None or head.name in cells.columns)
        ]
        levels += [((*path, "columns", cell_path[-1]), head), (path, table)]

        def nearest(key: str) -> tuple[KeyPath, Any]:
            """The innermost level that sets the key, with its path."""
            return next((pair for pair in levels if getattr(pair[1], key, None) is not None), ((), None))

        filled = {"row": row, "column": head.name}
        unit = head.unit or ""
        tolerance_path, with_tolerance = nearest("tolerance")
        if with_tolerance is None:
            self._add_problem((*path, "tolerance"), "is missing (in the table, its column or its cells)")
        # a reason and the rule that backs it belong together: both come from the level with the reason
        reason_path, with_reason = nearest("reason")
        trend_path, with_trend = nearest("trend")
        note_path, with_note = nearest("note")
        rules: dict[str, Any] = {
            "trend": self._trend(
                with_trend and with_trend.trend, (*trend_path, "trend"), _fill(table.measure, filled), **filled
            ),
            "trend_in_words": _fill((with_trend and with_trend.trend_in_words) or "", filled),
            "reason": self._phrase(with_reason and with_reason.reason, (*reason_path, "reason"), **filled),
            **self._backing(with_reason, reason_path, **filled),
            "note": self._phrase(with_note and with_note.note, (*note_path, "note"), **filled),
        }
        column = [cells[table.heads.index(head)] for cells in table.rows.values() if len(cells) == len(table.heads)]
        _, with_kind = nearest("kind")
        _, with_unturned = nearest("unturned")
        return Claim(
            f"{table.id}/{row}/{head.name}",
            table.where,
            f"{row}, {head.name}",
            self._published(number, cell_path),
            unit,
            None,
            with_tolerance
            and self._bound(with_tolerance.tolerance, unit, None, number, (*tolerance_path, "tolerance")),
            _fill(table.measure, filled),
            max(_digits(printed) for printed in column) if head.digits is None else head.digits,
            unturned=with_unturned.unturned if with_unturned else "",
            quick=nearest("quick")[1].quick,
            kind=Kind(with_kind.kind if with_kind else "result"),
            cell=(table.id, row, head.name),
            **rules,
        )

    def gives(self) -> Iterator[Phrase]:
        """Results of the stated settings that are not run, as phrases."""
        for index, setting in enumerate(self.paper.contradicted):
            phrase = self._phrase(setting.gives, ("contradicted", index, "gives"))
            if phrase is not None:
                yield phrase

    def sweeps(self) -> Iterator[tuple[str, Phrase]]:
        """Results with other values of unstated settings, as phrases by setting."""
        for index, setting in enumerate(self.paper.unstated):
            phrase = self._phrase(setting.gives, ("unstated", index, "gives"))
            if phrase is not None:
                yield setting.what, phrase

    def check_headline(self, claims: Mapping[str, Claim]) -> None:
        """Checks that the document's main claims are claims of the file."""
        for index, claim in enumerate(self.paper.headline):
            self._check_claim(claim, claims, ("headline", index), "the id of a claim")

    def check_decided(self, claims: Mapping[str, Claim]) -> None:
        """Checks that what a setting decides is open or fitted, and that a setting decides each claim that is open."""
        members: dict[str, list[Claim]] = {}
        for claim in claims.values():
            for name in claim.names:
                members.setdefault(name, []).append(claim)
        decided: set[str] = set()
        for index, setting in enumerate(self.paper.unstated):
            for position, name in enumerate(setting.decides):
                path = ("unstated", index, "decides", position)
                named = members.get(name, [])
                decided.update(claim.id for claim in named)
                self._check_claim(name, members, path, "the id of a claim or a table")
                if named and not any(claim.open or claim.kind is Kind.FITTED for claim in named):
                    self._add_problem(
                        path,
                        f"found {show(name)}, whose verdict does not depend on a setting; "
                        'give it a rule open, or kind = "fitted"',
                    )
        for kind, entries in (("claim", self.paper.claim), ("table", self.paper.table)):
            for index, entry in enumerate(entries):
                if any(claim.open and claim.id not in decided for claim in members.get(entry.id, ())):
                    self._add_problem(
                        (kind, index),
                        "its rule open says that an unstated setting decides it; name it in the decides of one",
                    )

    def _check_claim(self, name: str, ids: Mapping[str, object], path: KeyPath, expected: str) -> None:
        if name not in ids:
            hint = did_you_mean(name, ids) or f"; expected {expected}"
            self._add_problem(path, f"found {show(name)}; there is no such claim{hint}")

    def _rules(self, judged: Judged, path: KeyPath, measure: str | None = None) -> dict[str, Any]:
        self._check_reason(judged, path)
        return {
            "trend": self._trend(judged.trend, (*path, "trend"), measure),
            "trend_in_words": judged.trend_in_words or "",
            **self._backing(judged, path),
            "reason": self._phrase(judged.reason, (*path, "reason")),
            "note": self._phrase(judged.note, (*path, "note")),
        }

    def _backing(self, judged: Judged | None, path: KeyPath, **filled: str) -> dict[str, Expression | None]:
        """Rules that confirm a reason: `open`, which does so itself where no `because` is given, and `because`."""
        if judged is None:
            return {}
        opened = self._rule(judged.open, (*path, "open"), **filled)
        because = self._rule(judged.because, (*path, "because"), **filled)
        return {"open": opened, "because": because or opened}

    def _check_reason(self, judged: Judged, path: KeyPath) -> None:
        if judged.because is not None and judged.reason is None:
            self._add_problem((*path, "because"), "this rule has no reason to confirm; give reason as well")
        if judged.open is not None and judged.reason is None:
            self._add_problem((*path, "open"), "there is no reason, which says what setting decides; give it as well")

    def _trend(self, text: str | None, path: KeyPath, measure: str | None, **filled: str) -> Expression | None:
        """A weaker rule; that of a number has to speak of it."""
        rule = self._rule(text, path, **filled)
        if rule is not None and measure is not None and not {OURS, measure} & set(rule.names):
            self._add_problem(
                path,
                f"found {show(rule.text)}; the rule does not speak of the number that it judges; "
                f"compare {OURS} in it, or make it the because of a reason",
            )
        return rule

    def _rule(self, text: str | None, path: KeyPath, **filled: str) -> Expression | None:
        if text is None:
            return None
        try:
            rule = Expression(_fill(text, filled))
        except InputError as error:
            self._add_problem(path, str(error))
            return None
        if rule.kind != "truth":
            self._add_problem(path, f"found {show(text)}; expected a comparison, such as gcc.loss < 0.1")
        elif not set(rule.names) - PRINTED:
            self._add_problem(
                path, f"found {show(text)}; the rule names no measure, so that its verdict would not depend on a run"
            )
        elif idle := without_effect(rule):
            self._add_problem(
                path,
                f"found {show(rule.text)}; whatever the value of {idle[0]}, the rule compares the same numbers; "
                f"leave {idle[0]} out, or compare it with something else",
            )
        return rule

    def _phrase(self, text: str | None, path: KeyPath, **filled: str) -> Phrase | None:
        try:
            return None if text is None else Phrase.parse(_fill(text, filled))
        except InputError as error:
            self._add_problem(path, str(error))
            return None

    def _published(self, value: float | list[float], path: KeyPath) -> float | tuple[float, float]:
        if not isinstance(value, list):
            return value
        low, high = value
        if low >= high:
            self._add_problem(path, f"found [{low:g}, {high:g}]; expected [minimum, maximum]")
        return low, high

    def _bound(
        self, tolerance: Tolerance, unit: str, sigma: float | None, published: float | list[float], path: KeyPath
    ) -> Bound | None:
        share, amount, count = 0.0, 0.0, False
        for part in tolerance.parts:
            match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(.*?)\s*", part)
            number, suffix = (float(Decimal(match[1])), match[2]) if match else (0.0, "")
            if part.strip() == "count":
                count = True
            elif match is None:
                self._add_problem(
                    (*path, "within"), f'found {show(part)}; expected "5%", "0.5 {unit or ""}", "2 sigma" or "count"'
                )
            elif suffix == "sigma" and sigma is None:
                self._add_problem((*path, "within"), f"found {show(part)}; the claim has no sigma")
            elif suffix == "sigma":
                amount = max(amount, number * (sigma or 0.0))
            elif suffix == "%":
                share = max(share, number / 100)
            elif suffix == ("points" if unit == "%" else unit):
                amount = max(amount, number)
            else:
                expected_unit = "points" if unit == "%" else unit
                expected = (
                    f'"5%", or "0.5 {expected_unit}" in the unit of the number'
                    if expected_unit
                    else '"5%", or a plain "0.5"'
                )
                self._add_problem((*path, "within"), f"found {show(part)}; expected {expected}")
        bound = Bound(" or ".join(tolerance.parts), tolerance.why, share, amount, tolerance.wide or "", count)
        low, high = published if isinstance(published, list) else (published, published)
        if not low <= 0 <= high and bound.around(low)[0] <= 0 <= bound.around(high)[1]:
            printed = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            self._add_problem(
                (*path, "within"), f"found {show(bound.words)} of {printed}, so that even 0 would agree; expected less"
            )
        return bound

    def _check_unique(self, names: list[str], path: KeyPath) -> None:
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            self._add_problem(path, f"found {', '.join(repeated)} more than once; expected unique names")

    def _check_names(self, names: list[str] | None, allowed: list[str], path: KeyPath) -> None:
        for name in names or ():
            if name not in allowed:
                self._add_problem(path, f"found {show(name)}; available: {', '.join(allowed)}")

    def _add_problem(self, path: KeyPath, message: str) -> None:
        problem = Problem(path, message)
        if problem not in self.problems:  # a mistake of a table is one problem, not one for each cell
            self.problems.append(problem)


def _fill(text: str, filled: Mapping[str, str]) -> str:
    for key, value in filled.items():
        text = text.replace("{" + key + "}", value)
    return text


def _digits(value: Any) -> int:
    """Digits after the point of a number as the file has it.

    >>> _digits(0.25), _digits(7000.0), _digits([1, 2.5]), _digits("-")
    (2, 0, 1, 0)
    """
    if isinstance(value, list | tuple):
        return max(_digits(end) for end in value)
    if not isinstance(value, int | float):
        return 0
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    return max(0, -int(exponent))
