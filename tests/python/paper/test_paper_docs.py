"""Pages on papers: their counts of claims are those of the papers' own pages."""

from __future__ import annotations

import os
import re

import pytest

from papers import PaperStudy
from support import ROOT
from tidegate.paper import document

PAGES = ("burmeister2001", "hermanns2013", "hoang2017", "lissah2019", "vardhan")
MARKED = re.compile(
    r"(?<=<!-- counts: written by the test `paper_docs` -->\n)(.*?)(?=<!-- end of counts -->)", re.DOTALL
)


@pytest.mark.parametrize("key", PAGES)
def test_a_page_has_the_counts_of_a_quick_run(key: str) -> None:
    path = ROOT / "docs" / f"{key}.md"
    text = path.read_text("utf-8")
    result = PaperStudy(key).result()
    counts = f"A quick run has {document.sentences(result)[0]}\n"
    if os.environ.get("TIDEGATE_BLESS"):
        path.write_text(MARKED.sub(lambda _: counts, text), "utf-8")
        return
    assert MARKED.findall(text) == [counts], f"TIDEGATE_BLESS=1 pytest {__file__} writes it"


@pytest.mark.parametrize("key", PAGES)
def test_no_other_line_of_a_page_counts_claims(key: str) -> None:
    text = MARKED.sub("", (ROOT / "docs" / f"{key}.md").read_text("utf-8"))
    assert re.findall(r"\b\d+ (?:of its |of \d+ )?(?:claims|verdicts|statements|results)\b", text) == []
