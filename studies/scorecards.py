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
from tidegate.results.stats import Interval
from tidegate.suite import Plan, Suite, SuiteResult, verdicts
from tidegate.suite.model import RuleTable
from tidegate.suite.scores import SCORED, scores

RECORD = Path(__file__).parent / "kept" / "scorecards.csv"
SUITE = "rmcat"
SCHEMES = tuple(registry())
"""All that is in the registry, by its default preset."""
SCORES = tuple(name for name, _ in SCORED)
NUMBERS = tuple(column for name in SCORES for column in (name, f"{name}_half"))
"""Of each number the mean and half of its 95 % interval over seeds."""
FIELDS = ("case", "controller", "state", "rules", "broken", *NUMBERS)


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
    means: tuple[Interval, ...]
    """Over seeds, of each number in `SCORES`."""

    def line(self) -> list[str]:
        """As it stands in the file."""
        return [self.case, self.controller, self.state, str(self.rules), "; ".join(self.broken), *_texts(self.means)]


@dataclass(frozen=True)
class Place:
    """A line of the ranking in the record."""

    controller: str
    rank: str
    """A dash for none."""
    passed: int
    of: int
    met: int
    rules: int
    out: str
    """Why its delays are not compared."""
    means: tuple[Interval, ...]
    """Over cases, with intervals over seeds, of each number in `SCORES`."""

    def line(self) -> list[str]:
        """As it stands in the file."""
        counts = map(str, (self.passed, self.of, self.met, self.rules))
        return [self.rank, self.controller, *counts, self.out, *_texts(self.means)]


def _texts(means: Sequence[Interval]) -> list[str]:
    return [text for mean in means for text in (_text(mean.mean if mean.count else None), _text(mean.half))]


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def _intervals(texts: Sequence[str]) -> tuple[Interval, ...]:
    """The numbers of a line; how many seeds they are of is not kept."""
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return tuple(
        Interval(float(mean), float(half) if half else None, 1) if mean else Interval.of([]) for mean, half in pairs
    )


def run(schemes: Sequence[str] = SCHEMES, cases: Sequence[str] = (), out: str | Path | None = None) -> SuiteResult:
    """The suite for some schemes, with its own number of seeds."""
    with tempfile.TemporaryDirectory() as scratch, Progress() as bar:
        task = bar.add_task(SUITE, total=1.0)
        plan = Plan.of(Suite.load(SUITE), schemes, cases=cases)
        return plan.run(out or Path(scratch) / "out", progress=lambda done: bar.update(task, completed=done))


def cells(result: SuiteResult) -> Iterator[Cell]:
    """The lines of the record that a result makes."""
    for cell in result.cells:
        broken = tuple(f"{check.rule.name} {check.shown_interval}" for check in cell.broken)
        means = tuple(result.interval(cell.case, cell.controller, name, of) for name, of in SCORED)
        yield Cell(cell.case, cell.controller, cell.state, len(cell.checks), broken, means)


def read() -> tuple[str, list[Place], list[Cell]]:
    """The record: when it was made, the ranking, its cells."""
    with RECORD.open(newline="") as file:
        lines = list(csv.reader(file))
    until = lines.index([])
    places = []
    for rank, controller, passed, of, met, rules, out, *numbers in lines[1:until]:
        counts = (int(passed), int(of), int(met), int(rules))
        places.append(Place(controller, rank, *counts, out, _intervals(numbers)))
    cells = []
    for case, controller, state, asked, broken, *numbers in lines[until + 2 :]:
        parts = tuple(broken.split("; ")) if broken else ()
        cells.append(Cell(case, controller, state, int(asked), parts, _intervals(numbers)))
    return lines[0][1], places, cells


def write(result: SuiteResult, date: str) -> None:
    """Writes the record."""
    with RECORD.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["made", date])
        for score in scores(result):
            rank = "-" if score.rank is None else str(score.rank)
            counts = (score.passed, score.of, score.met, score.rules)
            out.writerow(
                Place(score.controller, rank, *counts, score.out, tuple(score.means[name] for name in SCORES)).line()
            )
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
