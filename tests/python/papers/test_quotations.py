"""Statements of papers in the documents' own words."""

from __future__ import annotations

import re

import pytest

from support import shared
from tidegate.paper import shipped
from tidegate.paper.claims import Kind
from tidegate.paper.reading import load

DOCUMENTS = {
    "hoang2017": "hoang2017-rrtcc-simpy.txt",
    "lissah2019": "lissah2019-lookup-table-ns3.txt",
    "vardhan": "vardhan-tfrc-ns2.txt",
}


def words_of(text: str) -> str:
    return " ".join(re.sub(r"\*\*", "", text).split()).lower()


@pytest.mark.parametrize("key", DOCUMENTS)
def test_a_statement_of_the_document_is_quoted_as_it_stands(key: str) -> None:
    """What is left out in the middle is marked with dots; what tidegate says itself is of another kind."""
    document = words_of((shared() / "seeds" / DOCUMENTS[key]).read_text("utf-8"))
    claims = [
        claim
        for claim in load(shipped.FOLDER / key).claims
        if claim.kind in {Kind.RESULT, Kind.FITTED, Kind.QUOTED} and not claim.where.startswith("Table")
    ]
    assert len([claim for claim in claims if claim.cell is None]) >= 10
    changed = [
        claim.id
        for claim in claims
        if claim.cell is None and any(part.strip() not in document for part in words_of(claim.text).split("..."))
    ]
    assert changed == []
