"""`docs/scorecards.md`: it shows what was run, what was run comes out again, and every scheme is in it."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase

import pytest

import scorecards
from support import ROOT, check_table, markdown
from tidegate.suite import Suite, numbers
from tidegate.suite.scores import label

PAGE = ROOT / "docs/scorecards.md"
DATE, RANKS, CELLS = scorecards.read()


def test_every_scheme_and_every_case_is_there() -> None:
    cases = [case.name for case in Suite.load(scorecards.SUITE).cases]
    assert [(cell.case, cell.controller) for cell in CELLS] == [
        (case, scheme) for case in cases for scheme in scorecards.SCHEMES
    ]


def test_the_ranking_is_what_was_run() -> None:
    ranked = any(place.rank != "-" for place in RANKS)
    head = [
        "scheme",
        "cases passed",
        "rules met",
        *(["rank by power"] if ranked else []),
        *map(label, scorecards.SCORES),
    ]
    rows = []
    for place in RANKS:
        shown = [
            numbers.metric_of(name).show_interval(mean)
            for name, mean in zip(scorecards.SCORES, place.means, strict=True)
        ]
        if place.out:
            shown[2:] = ["-"] * len(shown[2:])
        counts = [f"{place.passed} of {place.of}", f"{place.met} of {place.rules}"]
        rows.append([place.controller, *counts, *([place.rank] if ranked else []), *shown])
    check_table(PAGE, "ranking", markdown(head, 1, rows))


def test_the_scorecard_is_what_was_run() -> None:
    rows = []
    for case in dict.fromkeys(cell.case for cell in CELLS):
        here = [cell for cell in CELLS if cell.case == case]
        told = {
            cell.controller: "yes" if cell.state == "pass" else "; ".join(cell.broken) or cell.state for cell in here
        }
        rows.append([case, *(told[scheme] for scheme in scorecards.SCHEMES)])
    check_table(PAGE, "scorecard", markdown(["case", *scorecards.SCHEMES], 1 + len(scorecards.SCHEMES), rows))


def test_the_sentences_follow() -> None:
    rules = {rule.name: rule for rule in Suite.load(scorecards.SUITE).rules}
    rows = [(rule, rules[rule].says, sentence) for sentence, rule in scorecards.sentences(CELLS, scorecards.SCHEMES)]
    check_table(PAGE, "sentences", markdown(["rule", "asks", "so"], 3, rows))


def test_the_date_is_that_of_the_record() -> None:
    check_table(PAGE, "date", f"Made on {DATE}.\n")


def again(chosen: list[scorecards.Cell]) -> None:
    """Runs some cells anew: they are what the record says."""
    for cell in chosen:
        result = scorecards.run([cell.controller], [cell.case])
        (now,) = scorecards.cells(result)
        assert now.line() == cell.line()


def test_some_cells_come_out_as_they_were() -> None:
    """After a change of a scheme, `make scorecards` runs all anew."""
    keys = [("5.1,delay=50ms", "gcc"), ("5.1,delay=100ms", "nada"), ("5.6,queue.time=300ms", "scream")]
    again([cell for cell in CELLS if (cell.case, cell.controller) in keys])


@pytest.mark.slow
def test_many_cells_come_out_as_they_were() -> None:
    """A tenth of them, another one for each date; those whose rules need no other case."""
    beside = {case for rule in Suite.load(scorecards.SUITE).rules if rule.relative_to for case in rule.cases}
    apart = [cell for cell in CELLS if not any(fnmatchcase(cell.case, one) for one in beside)]
    again(random.Random(DATE).sample(apart, len(CELLS) // 10))
