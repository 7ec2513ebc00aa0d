"""Every shipped scheme on `rmcat`: what is run for `docs/scorecards.md`, and what is said of it.

`make scorecards` (`python studies/scorecards.py`) runs all of it and writes `studies/kept/scorecards.csv`, from which
the tables and sentences of the page are made.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

from tidegate.control.registry import registry
from tidegate.suite import Plan, Suite, SuiteResult, verdicts
from tidegate.suite.model import RuleTable
from tidegate.suite.scores import SCORED, scores

RECORD = Path(__file__).parent / "kept" / "scorecards.csv"
SUITE = "rmcat"
SCHEMES = tuple(registry())
"""All that is in the registry, by its default preset."""
SCORES = tuple(name for name, _ in SCORED)
FIELDS = ("case", "controller", "state", "rules", "broken", *SCORES)


@dataclass(frozen=True)
class Cell:
    """A line of the record."""

    case: str
    controller: str
    state: str
    rules: int
    """How many rules are for it."""
    broken: tuple[str, ...]
    """Those that are not met, each `NAME VALUE`."""
    means: tuple[float | None, ...]
    """Over seeds, of each number in `SCORES`."""

    def line(self) -> list[str]:
        """As it stands in the file."""
        numbers = ["" if mean is None else f"{mean:.9g}" for mean in self.means]
        return [self.case, self.controller, self.state, str(self.rules), "; ".join(self.broken), *numbers]


def run(schemes: Sequence[str] = SCHEMES, cases: Sequence[str] = (), out: str | Path | None = None) -> SuiteResult:
    """The suite for some schemes, with its own number of seeds."""
    with tempfile.TemporaryDirectory() as scratch, Progress() as bar:
        task = bar.add_task(SUITE, total=1.0)
        plan = Plan.of(Suite.load(SUITE), schemes, cases=cases)
        return plan.run(out or Path(scratch) / "out", progress=lambda done: bar.update(task, completed=done))


def cells(result: SuiteResult) -> Iterator[Cell]:
    """The lines of the record that a result makes."""
    for cell in result.cells:
        broken = tuple(f"{check.rule.name} {check.shown}" for check in cell.broken)
        intervals = [result.interval(cell.case, cell.controller, name, of) for name, of in SCORED]
        means = tuple(interval.mean if interval.count else None for interval in intervals)
        yield Cell(cell.case, cell.controller, cell.state, len(cell.checks), broken, means)


def read() -> tuple[str, list[tuple[str, ...]], list[Cell]]:
    """The record: when it was made, the ranking, its cells."""
    with RECORD.open(newline="") as file:
        lines = list(csv.reader(file))
    date = lines[0][1]
    until = lines.index([])
    ranks = [tuple(line) for line in lines[1:until]]
    cells = []
    for line in lines[until + 2 :]:
        case, controller, state, rules, broken, *numbers = line
        means = tuple(float(number) if number else None for number in numbers)
        parts = tuple(broken.split("; ")) if broken else ()
        cells.append(Cell(case, controller, state, int(rules), parts, means))
    return date, ranks, cells


def write(result: SuiteResult, date: str) -> None:
    """Writes the record."""
    with RECORD.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["made", date])
        for score in scores(result):
            rank = "-" if score.rank is None else str(score.rank)
            means = [f"{score.means[name]:.9g}" for name in SCORES]
            out.writerow([rank, score.controller, str(score.passed), str(score.of), score.out, *means])
        out.writerow([])
        out.writerow(FIELDS)
        out.writerows(cell.line() for cell in cells(result))


def sentences(record: Sequence[Cell], schemes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What follows, each sentence with the rule that it follows from."""
    suite = Suite.load(SUITE)
    for rule in suite.rules:
        asked = {
            scheme: [cell for cell in record if cell.controller == scheme and _asked(cell, rule)] for scheme in schemes
        }
        breaking = {
            scheme: sum(any(check.split(" ")[0] == rule.name for check in cell.broken) for cell in cells)
            for scheme, cells in asked.items()
        }
        absent = [scheme for scheme in schemes if not asked[scheme]]
        never = [scheme for scheme in schemes if asked[scheme] and not breaking[scheme]]
        most = max(schemes, key=lambda scheme: breaking[scheme])
        if not breaking[most]:
            kept = f"All that could run keep it ({_listed(never)})" if absent else "All keep it"
            yield f"{kept}.", rule.name
            continue
        kept = (
            f"{_listed(never)} {'keeps' if len(never) == 1 else 'keep'} it everywhere"
            if never
            else "none keeps it everywhere"
        )
        cases = len(asked[most])
        others = ", ".join(f"{scheme} {count}" for scheme, count in breaking.items() if count and scheme != most)
        often = f"in {breaking[most]} of {cases} cases" if cases > 1 else "in its one case"
        worst = f"{most} breaks it {'most often, ' if cases > 1 else ''}{often}"
        yield f"{kept[:1].upper()}{kept[1:]}; {worst}{f' ({others})' if others else ''}.", rule.name


def _asked(cell: Cell, rule: RuleTable) -> bool:
    """Whether the rule is for it, and it was run."""
    return bool(cell.rules) and verdicts.applies(rule, cell.case, cell.controller)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "out", nargs="?", help="a folder that keeps the suite's result, so that a run that was stopped goes on"
    )
    write(run(out=parser.parse_args().out), dt.datetime.now(tz=dt.UTC).date().isoformat())
