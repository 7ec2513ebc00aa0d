"""Files of suites that build on another suite: `extends`, and the tables that add to it or replace parts of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from tidegate import _shipped
from tidegate._files import readable
from tidegate.errors import InputError, did_you_mean
from tidegate.scenario import toml
from tidegate.scenario.explain import Path as KeyPath
from tidegate.scenario.explain import Problem
from tidegate.scenario.source import Names, Source, names_of
from tidegate.suite.model import ExtendingTable, SuiteTable
from tidegate.wording import listed

_LISTS = ("cases", "rules")
_ABOUT = ("extends", "without")
_MOST = 20
"""Suites that build on each other in a row."""


@dataclass(frozen=True)
class Entry:
    """A case or a rule of a file."""

    data: Any
    """Its values."""
    source: Source
    """The file that it is in."""
    number: int
    """Its place in that file."""

    @property
    def name(self) -> object:
        """Its name, as far as it has one."""
        return self.data.get("name") if isinstance(self.data, dict) else None


@dataclass(frozen=True)
class Merged(Source):
    """The values of a suite's file with those of the suites that it extends."""

    text: str
    """The text of the file itself."""
    entries: Mapping[str, Sequence[Entry]]
    """Its cases and rules, with their origin; empty for a list that is none."""
    base: Merged | None = None
    """The suite that it extends."""

    @classmethod
    def read(cls, text: str, path: Path, before: tuple[Path, ...] = ()) -> Self:
        """Reads the text of a suite's file, and the files that it extends.

        Args:
            text: The text.
            path: Its file.
            before: The files that extend it.

        Raises:
            ScenarioError: names file, line and key of a wrong value.
        """
        own = Source.parse(text, path, _names)
        lists = {name: entries if isinstance(entries := own.data.get(name), list) else [] for name in _LISTS}
        entries = {
            name: [Entry(data, own, number) for number, data in enumerate(values)] for name, values in lists.items()
        }
        if "extends" not in own.data:
            if "without" in own.data:
                why = "is for a suite that extends another; expected the key extends with the name or file of that one"
                raise own.error([Problem(("without",), why, on_key=True)])
            return cls(own.path, own.data, own.lines, own.naming, text, entries)
        table = own.fill(ExtendingTable)
        base = cls._base(own, str(table.extends), (*before, path))
        wrong = [
            Problem(("without", name), _unknown(name, pattern, base))
            for name, patterns in (("cases", table.without.cases), ("rules", table.without.rules))
            for pattern in patterns
            if not any(fnmatchcase(str(entry.name), pattern) for entry in base.entries[name])
        ]
        if wrong:
            raise own.error(wrong)
        left = {"cases": table.without.cases, "rules": table.without.rules}
        merged = {name: _merged(base.entries[name], entries[name], left[name]) for name in _LISTS}
        if not merged["cases"]:
            raise own.error(
                [Problem(("without", "cases"), f"leaves no case of {base.path.stem}; expected at least one")]
            )
        data = {**base.data, **own.data, **{name: [entry.data for entry in merged[name]] for name in _LISTS}}
        return cls(own.path, data, own.lines, own.naming, text, merged, base)

    @classmethod
    def _base(cls, own: Source, name: str, chain: tuple[Path, ...]) -> Self:
        """The suite that a file extends."""
        try:
            path = _find(name, own.path.parent)
        except InputError as error:
            raise own.error([Problem(("extends",), str(error))]) from None
        if any(_same(path, earlier) for earlier in chain):
            ring = " -> ".join(str(member) for member in (*chain, path))
            ours = f'; extends = "{path.stem}" is the one that comes with tidegate'
            hint = ours if path.stem in _shipped.suites() and path.suffix == ".toml" else ""
            why = f"found {name}, but suites would extend each other without an end ({ring}){hint}"
            raise own.error([Problem(("extends",), f"{why}; expected a suite that does not extend this one")])
        if len(chain) >= _MOST:
            raise own.error([Problem(("extends",), f"found more than {_MOST} suites in a row; expected fewer")])
        base = cls.read(toml.read(path), path, chain)
        base.fill(SuiteTable)
        return base

    def where(self, path: KeyPath) -> str:
        """File and line of a key, which may be in a file that this one extends."""
        name, number = (*path[:2], None, None)[:2]
        if isinstance(name, str) and isinstance(number, int) and number < len(self.entries.get(name, ())):
            entry = self.entries[name][number]
            return entry.source.where((name, entry.number, *path[2:]))
        if self.base is not None and path[:1] and path[:1] not in self.lines:
            return self.base.where(path)
        return super().where(path)

    def folder(self, case: int) -> Path:
        """The folder that the scenario of a case is relative to."""
        return self.entries["cases"][case].source.path.parent

    def is_inherited(self, rule: int) -> bool:
        """Whether a rule is of a suite that this one extends."""
        return self.entries["rules"][rule].source.path != self.path

    def pruned(self, cases: Sequence[str]) -> Self:
        """The same without what inherited rules say of cases that are not there any more.

        A rule goes with the last of its cases; one that is written in this file stays, so that a wrong pattern in it is
        found.

        Args:
            cases: The names of the suite's cases.
        """
        rules = []
        for number, entry in enumerate(self.entries["rules"]):
            patterns = entry.data.get("cases", ["*"])
            kept = [pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in cases)]
            if not self.is_inherited(number) or kept == patterns:
                rules.append(entry)
            elif kept:
                rules.append(replace(entry, data={**entry.data, "cases": kept}))
        data = {**self.data, "rules": [entry.data for entry in rules]}
        return replace(self, data=data, entries={**self.entries, "rules": rules})

    def to_toml(self, folder: Path) -> str:
        """The suite as a file in a folder that extends no other: its own text where that says all.

        Args:
            folder: Files of scenarios are relative to it.
        """
        scenarios = [self._scenario(number, folder) for number in range(len(self.entries["cases"]))]
        written = [entry.data.get("scenario") for entry in self.entries["cases"]]
        if self.base is None and scenarios == written:
            return self.text
        cases = [
            {key: value if key != "scenario" else scenario for key, value in entry.data.items()}
            for entry, scenario in zip(self.entries["cases"], scenarios, strict=True)
        ]
        return toml.write({key: value for key, value in {**self.data, "cases": cases}.items() if key not in _ABOUT})

    def _scenario(self, case: int, folder: Path) -> str | None:
        """The scenario of a case, as a file in a folder has to name it."""
        name: str | None = self.entries["cases"][case].data.get("scenario")
        here = self.folder(case)
        if name is None or not (here / name).is_file() or here == _shipped.SUITES:
            return name
        return Path(os.path.relpath(here / name, folder)).as_posix()


def find(name: str | Path) -> Path:
    """The file of a suite given by path, or by the name of one that ships with tidegate.

    Raises:
        InputError: when there is neither.
    """
    return _find(name, Path(), see=" (see tidegate suite list)")


def _find(name: str | Path, folder: Path, see: str = "") -> Path:
    path = folder / name
    ours = _shipped.SUITES / f"{name}.toml"
    with readable(path):  # a name may be too long for any file
        if path.is_file():
            return path
        if isinstance(name, str) and "/" not in name and ours.is_file():
            return ours
    if path.suffix == ".toml" or len(Path(name).parts) > 1:
        raise InputError(
            f"{path}: {'is a folder; expected a suite file' if path.is_dir() else 'there is no such file'}"
        )
    hint = did_you_mean(str(name), _shipped.suites()) or f"; available: {', '.join(_shipped.suites())}"
    raise InputError(f"{name} is not a suite{hint}{see}")


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()


def _merged(base: Sequence[Entry], own: Sequence[Entry], without: Sequence[str]) -> list[Entry]:
    """The entries of a base that stay, those of a file in place of the ones of their names, and its others."""
    added = list(own)
    entries = []
    for entry in base:
        if any(fnmatchcase(str(entry.name), pattern) for pattern in without):
            continue
        instead = next((other for other in added if other.name == entry.name), None)
        if instead is not None:
            added.remove(instead)
        entries.append(instead or entry)
    return [*entries, *added]


def _unknown(kind: str, pattern: str, base: Merged) -> str:
    """The problem of a name in `without`."""
    names = [str(entry.name) for entry in base.entries[kind]]
    family = pattern.partition(",")[0]
    if kind == "cases" and family != pattern and family in names:
        return (
            f"found {pattern}, which is one combination of the case {family}; expected {family}, which goes as a whole"
        )
    hint = did_you_mean(pattern, names) or f"; available: {', '.join(names[:20]) or 'none'}"
    return f"found {pattern}, which matches no {kind.removesuffix('s')} of {base.path.stem}{hint}"


def _names(data: Mapping[str, Any]) -> Names:
    return names_of(data, _LISTS, "name")


def changes(merged: Merged) -> Iterator[str]:
    """Differences of a file from the suite that it extends, in words: `adds case home`, `replaces rule low-delay`."""
    if merged.base is None:
        return
    for kind in _LISTS:
        noun = kind.removesuffix("s")
        own = [str(entry.name) for entry in merged.entries[kind] if entry.source.path == merged.path]
        before, after = ({str(entry.name) for entry in source.entries[kind]} for source in (merged.base, merged))
        for verb, names in (
            ("adds", [name for name in own if name not in before]),
            ("replaces", [name for name in own if name in before]),
            ("leaves out", sorted(before - after)),
        ):
            if names:
                yield f"{verb} {noun if len(names) == 1 else kind} {listed(names, most=6)}"
