"""Which verdicts turn without a paper's mechanism: made anew, and held against what is kept with the paper."""

from __future__ import annotations

import os
import re

import pytest

from paper_mutations import MUTATIONS, SEEDS, found
from support import ROOT
from tidegate.paper import Verdict, shipped
from tidegate.paper import _mutations as mutations
from tidegate.paper._mutations import AS_RUN, Mutations
from tidegate.paper.reading import load

MUST_TURN = {
    "hoang2017": {
        "constant": ["table-1", "loss-based", "minimum", "two-to-three-times", "stable-estimate", "goodput-trend"]
    },
    "burmeister2001": {
        "no suppression": ["reports-each", "reports-with-rtt", "rtt-shared", "table7/1.00/2"],
        "AVP": ["exactly-five", "patience", "newpred-128k", "table3/20 kbps, 0.01/avpf.mwt"],
        "interval": ["table1/20 kbps, senders 1, AVP 1,2/A1", "table3/20 kbps, 0.01/avp.mwt"],
    },
    "vardhan": {
        "constant": ["tfrc-shares", "tfrc-is-smooth", "slow-start-5348", "short-packets", "table4-tfrc/100/drop"],
        "no TCP": ["tcp-reduces", "table1/0.5 Mb/s/tcp.sent"],
    },
    "hermanns2013": {
        "gcc": ["false-congestion", "not-enough-data", "does-not-use-the-network", "rate-limited-sources"]
    },
    "lissah2019": {"none": ["formula"]},
    "scream_l4s": {"constant": ["fixed/25 ms/2 TCP", "varied-is-less"], "no L4S": ["low-delay"]},
}
"""Statements about the mechanism itself: a rule that still holds without it would be no rule."""


def kept(key: str) -> Mutations:
    got = mutations.load(shipped.FOLDER / key)
    assert got is not None, f"{key}: {mutations.FILE} is missing; TIDEGATE_BLESS=1 writes it"
    return got


@pytest.mark.parametrize("key", shipped.names())
def test_what_is_kept_is_of_this_paper(key: str) -> None:
    got = kept(key)
    assert got.about == {name: one.about for name, one in MUTATIONS[key].items()}
    assert got.seeds == SEEDS[key]
    known = {claim.id for claim in load(shipped.FOLDER / key).claims}
    assert set(got.answers) <= known, "claims that are gone; TIDEGATE_BLESS=1 writes the file anew"
    assert len(got.answers) > 0.5 * len(known)


@pytest.mark.parametrize(("key", "name"), [(key, name) for key, names in MUST_TURN.items() for name in names])
def test_statements_of_the_mechanism_turn_without_it(key: str, name: str) -> None:
    got = kept(key)
    for claim in MUST_TURN[key][name]:
        assert name in (got.turned_by(claim) or []), claim


def test_the_page_on_papers_has_the_counts() -> None:
    page = (ROOT / "docs" / "papers.md").read_text("utf-8")
    rows = re.findall(r"^\| (\w+) \| ([\w ]+) \| (\d+) of (\d+) \| (\d+) of (\d+) \|$", page, re.MULTILINE)
    assert rows == [
        (key, name, *map(str, got.count(name, list(got.answers))), *map(str, got.count(name, holding(key, got))))
        for key in shipped.names()
        for got in [kept(key)]
        for name in got.about
    ]


def holding(key: str, got: Mutations) -> list[str]:
    """Published numbers and statements that hold as they are run."""
    kinds = {claim.id: str(claim.kind) for claim in load(shipped.FOLDER / key).claims}
    holds = {Verdict.AGREES, Verdict.TREND}
    return [
        one for one, row in got.answers.items() if row[AS_RUN].verdict in holds and kinds[one] in {"result", "fitted"}
    ]


@pytest.mark.slow
@pytest.mark.mutation
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("key", shipped.names())
def test_made_anew_they_are_what_is_kept(key: str) -> None:
    got = found(key, print)
    for name in got.about:
        every, held = got.count(name, list(got.answers)), got.count(name, holding(key, got))
        print(f"{key}, {name}: {every[0]} of {every[1]} verdicts turn, {held[0]} of {held[1]} that hold")
    for claim in got.answers:
        print(f"  {'turned' if got.turned_by(claim) else 'not   '} {claim}")
    if os.environ.get("TIDEGATE_BLESS"):
        (shipped.FOLDER / key / mutations.FILE).write_text(mutations.text(got), "utf-8")
        return
    known = kept(key)
    different = [one for one in got.answers if got.turned_by(one) != known.turned_by(one)]
    # a change of the engine may move a number over a bound; more than a few mean something else
    assert len(different) <= max(2, 0.03 * len(got.answers)), f"{different}; TIDEGATE_BLESS=1 writes them anew"
