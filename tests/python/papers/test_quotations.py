"""Statements of papers in the documents' own words."""

from __future__ import annotations

import re

import pytest

from support import shared
from tidegate.paper import shipped
from tidegate.paper.claims import Kind
from tidegate.paper.reading import load

DOCUMENTS = {
    "burmeister2001": "burmeister2001-avpf-ns2.txt",
    "hermanns2013": "hermanns2013-sprout-lte.txt",
    "hoang2017": "hoang2017-rrtcc-simpy.txt",
    "lissah2019": "lissah2019-lookup-table-ns3.txt",
    "vardhan": "vardhan-tfrc-ns2.txt",
}


def letters(text: str) -> str:
    """A text without capitals, spaces, marks of emphasis, quotation marks, and heads and feet of a draft's pages."""
    text = re.sub(r"Burmeister et al\..*?Simulations - ", "", text)
    return re.sub(r"[\s*\\\u201c\u201d\u2019']", "", text).casefold()


@pytest.mark.parametrize("key", DOCUMENTS)
def test_a_statement_of_the_document_is_quoted_as_it_stands(key: str) -> None:
    """What is left out in the middle is marked with dots; what tidegate says itself is of another kind, and settings may be formulas."""
    document = letters((shared() / "seeds" / DOCUMENTS[key]).read_text("utf-8"))
    quoted = [
        claim
        for claim in load(shipped.FOLDER / key).claims
        if claim.cell is None and claim.kind not in {Kind.OWN, Kind.SETTING} and not claim.where.startswith("Table")
    ]
    assert len(quoted) >= 10
    changed = {claim.id: part for claim in quoted for part in claim.text.split("...") if letters(part) not in document}
    assert changed == {}
