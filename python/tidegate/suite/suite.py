"""A suite: many networks, and what is asked of a controller on each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self

from tidegate.errors import InputError, did_you_mean
from tidegate.scenario import toml
from tidegate.scenario.explain import Path as KeyPath
from tidegate.scenario.explain import Problem
from tidegate.suite import verdicts
from tidegate.suite.cases import Case, expand
from tidegate.suite.inheritance import Merged, changes, find
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
    """The text of its file, with what it takes over from the suite that it extends."""
    source: Merged | None = None
    """Its file as it was read; `None` for the suite of a result."""

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
        source = Merged.read(text, path)
        table = source.fill(SuiteTable)
        problems: list[Problem] = []
        cases: list[Case] = []
        for number, case in enumerate(table.cases):
            try:
                cases += expand(case, source.folder(number), None if traces is None else Path(traces))
            except InputError as error:
                problems += [Problem(("cases", number), line) for line in str(error).split("\n")]
        problems += _repeated(cases, table)
        if not problems:
            source = source.pruned([case.name for case in cases])
            table = source.fill(SuiteTable)
            problems += _rule_problems(table, cases, source)
        if problems:
            raise source.error(problems)
        return cls(path.stem, table, tuple(cases), source.to_toml(path.parent), source)

    @classmethod
    def of_saved(cls, name: str, text: str, cases: tuple[Case, ...]) -> Self:
        """The suite of a result: its text, and those of its cases that were run.

        Raises:
            InputError: lists every problem of the text.
        """
        source = Merged.read(text, Path(f"{name}.toml"))
        table = source.fill(SuiteTable)
        wrong = [
            Problem(("rules", number, key), message)
            for number, rule in enumerate(table.rules)
            for key, message in verdicts.problems(rule)
        ]
        if wrong:
            raise source.error(wrong)
        return cls(name, table, cases, text)

    @property
    def extends(self) -> str:
        """Its differences from the suite that it extends, in words; empty for one that stands alone."""
        if self.source is None or self.source.base is None:
            return ""
        return "; ".join([f"extends {self.table.extends}", *changes(self.source)])

    def to_toml(self, folder: str | Path = "") -> str:
        """The suite as a file that extends no other and gives the same results.

        Args:
            folder: The folder of that file: files of scenarios are relative to it.
        """
        return self.text if self.source is None else self.source.to_toml(Path(folder))

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
        return replace(self, cases=chosen)

    @property
    def hardly_judged(self) -> str:
        """Cases with less than a third of the rules of the case that has most, as a sentence; may be empty.

        Rules name their cases by patterns, so that few of them are for a case of another name: it passes easily.
        """
        names = {
            case.name: [rule.name for rule in self.rules if verdicts.is_for_case(rule, case.name)]
            for case in self.cases
            if not case.not_run
        }
        most = max(map(len, names.values()), default=0)
        few = [f"{case} ({', '.join(rules) or 'none'})" for case, rules in names.items() if 3 * len(rules) < most]
        return f"few of {most} rules are for {'; '.join(few)}: rules name their cases by patterns" if few else ""


def _repeated(cases: list[Case], table: SuiteTable) -> Iterator[Problem]:
    for key, names in (("cases", [case.name for case in cases]), ("rules", [rule.name for rule in table.rules])):
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield Problem((key,), f"{name} is given twice; expected unique names")


def _rule_problems(table: SuiteTable, cases: list[Case], source: Merged) -> Iterator[Problem]:
    names = [case.name for case in cases]
    flows = {flow.name for case in cases if case.scenario is not None for flow in case.scenario.flows}
    for number, rule in enumerate(table.rules):
        prefix: KeyPath = ("rules", number)
        for pattern in rule.cases:
            if not any(fnmatchcase(name, pattern) for name in names):
                yield Problem((*prefix, "cases"), f"found {pattern}, which matches no case")
        if rule.relative_to is not None and rule.relative_to not in names:
            if source.is_inherited(number):
                why = f"the rule {rule.name} is relative to {rule.relative_to}, which is no case here"
                yield Problem(("extends",), f"{why}; expected that case, or {rule.name} in without.rules")
                continue
            yield Problem(
                (*prefix, "relative_to"),
                f"found {rule.relative_to}{did_you_mean(rule.relative_to, names)}; expected a case",
            )
        yield from (Problem((*prefix, key), message) for key, message in verdicts.problems(rule, flows))
