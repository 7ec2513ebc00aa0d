"""A suite: many networks, and what is asked of a controller on each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from tidegate.suite import verdicts
from tidegate.suite.cases import Case, expand
from tidegate.suite.model import RuleTable, SuiteTable


@dataclass(frozen=True, repr=False)
class Suite:
    """Cases and rules, read from a file and checked."""

    name: str
    """Its name; the file's."""
    table: SuiteTable
    """Contents of its file."""
    cases: tuple[Case, ...]
    """Its cases, in order."""
    text: str
    """The text of its file."""

    def __repr__(self) -> str:
        return f"<tidegate Suite {self.name}: {len(self.cases)} cases, {len(self.rules)} rules>"

    @property
    def rules(self) -> list[RuleTable]:
        """Limits that a controller has to keep."""
        return self.table.rules

    @classmethod
    def load(cls, what: str | Path, *, traces: str | Path | None = None) -> Self:
        """Reads a suite's file, or one that tidegate ships, by its name.

        Args:
            what: A path, or a name from `tidegate suite list`.
            traces: A folder of recorded networks, for suites that take windows of them.

        Raises:
            InputError: names file, line, key, what was found and what would be right; lists every problem.

        >>> len(Suite.load("rfc8868").cases)
        123
        """
        path = find(what)
        return cls.parse(toml.read(path), path, traces=traces)

    @classmethod
    def parse(cls, text: str, path: str | Path = "suite.toml", *, traces: str | Path | None = None) -> Self:
        """Reads the text of a suite's file; `path` names it in errors and anchors its scenarios.

        Raises:
            InputError: lists every problem.
        """
        path = Path(path)
        source = Source.parse(text, path, _names)
        table = source.fill(SuiteTable)
        problems: list[Problem] = []
        cases: list[Case] = []
        for number, case in enumerate(table.cases):
            try:
                cases += expand(case, path.parent, None if traces is None else Path(traces))
            except InputError as error:
                problems += [Problem(("cases", number), line) for line in str(error).split("\n")]
        problems += _repeated(cases, table)
        if not problems:
            problems += _rule_problems(table, cases)
        if problems:
            raise source.error(problems)
        return cls(path.stem, table, tuple(cases), text)

    @classmethod
    def of_saved(cls, name: str, text: str, cases: tuple[Case, ...]) -> Self:
        """The suite of a result: its text, and those of its cases that were run.

        Raises:
            InputError: lists every problem of the text.
        """
        source = Source.parse(text, Path(f"{name}.toml"), _names)
        table = source.fill(SuiteTable)
        wrong = [
            Problem(("rules", number, key), message)
            for number, rule in enumerate(table.rules)
            for key, message in verdicts.problems(rule)
        ]
        if wrong:
            raise source.error(wrong)
        return cls(name, table, cases, text)

    def only(self, patterns: tuple[str, ...]) -> Self:
        """The suite with those cases alone that a pattern of their names fits.

        Raises:
            InputError: when a pattern fits no case.
        """
        if not patterns:
            return self
        for pattern in patterns:
            if not any(fnmatchcase(case.name, pattern) for case in self.cases):
                names = [case.name for case in self.cases]
                hint = did_you_mean(pattern, names) or f"; available: {', '.join(names[:20])}"
                raise InputError(f"cases: found {pattern}, which matches no case of {self.name}{hint}")
        chosen = tuple(case for case in self.cases if any(fnmatchcase(case.name, glob) for glob in patterns))
        return type(self)(self.name, self.table, chosen, self.text)


def find(name: str | Path) -> Path:
    """The file of a suite given by path, or by the name of one that ships with tidegate.

    Raises:
        InputError: when there is neither.
    """
    path = Path(name)
    ours = _shipped.SUITES / f"{name}.toml"
    with readable(path):  # a name may be too long for any file
        if path.is_file():
            return path
        if isinstance(name, str) and "/" not in name and ours.is_file():
            return ours
    if path.suffix == ".toml" or len(path.parts) > 1:
        raise InputError(
            f"{path}: {'is a folder; expected a suite file' if path.is_dir() else 'there is no such file'}"
        )
    hint = did_you_mean(str(name), _shipped.suites()) or f"; available: {', '.join(_shipped.suites())}"
    raise InputError(f"{name} is not a suite{hint} (see tidegate suite list)")


def _names(data: Mapping[str, Any]) -> Names:
    return names_of(data, ("cases", "rules"), "name")


def _repeated(cases: list[Case], table: SuiteTable) -> Iterator[Problem]:
    for key, names in (("cases", [case.name for case in cases]), ("rules", [rule.name for rule in table.rules])):
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield Problem((key,), f"{name} is given twice; expected unique names")


def _rule_problems(table: SuiteTable, cases: list[Case]) -> Iterator[Problem]:
    names = [case.name for case in cases]
    flows = {flow.name for case in cases if case.scenario is not None for flow in case.scenario.flows}
    for number, rule in enumerate(table.rules):
        prefix: KeyPath = ("rules", number)
        for pattern in rule.cases:
            if not any(fnmatchcase(name, pattern) for name in names):
                yield Problem((*prefix, "cases"), f"found {pattern}, which matches no case")
        if rule.relative_to is not None and rule.relative_to not in names:
            yield Problem(
                (*prefix, "relative_to"),
                f"found {rule.relative_to}{did_you_mean(rule.relative_to, names)}; expected a case",
            )
        yield from (Problem((*prefix, key), message) for key, message in verdicts.problems(rule, flows))
