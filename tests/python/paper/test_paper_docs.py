"""Pages on papers: their counts of claims are those of the papers' own pages."""

from __future__ import annotations

import os
import re

import pytest

from papers import PaperStudy
from support import ROOT
from tidegate.output.document import Section, Table, plain_text
from tidegate.paper import document, shipped, words
from tidegate.paper.reading import load

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


@pytest.mark.parametrize("key", PAGES)
def test_a_reason_stands_only_beside_cells_of_its_own_numbers(key: str) -> None:
    result = PaperStudy(key).result()
    ((_, (rows, _)),) = document._differences(result).items()
    assert isinstance(rows, Table)
    assert {row.cells[-1] for row in rows.rows} == {words.reason(j) for j in words.differences(result.judgements)}


def test_what_is_not_sure_is_text_and_a_rule_is_a_sentence_before_its_code() -> None:
    result = PaperStudy("hermanns2013").result()
    (statements,) = [block for block in document._statements(result) if isinstance(block, Section)]
    (table,) = statements.blocks
    assert isinstance(table, Table)
    judged = [judgement for judgement in result.judgements if not judgement.claim.cell]
    assert any(map(words.doubtful, judged))
    for judgement, row in zip(judged, table.rows, strict=True):
        rule, verdict = (plain_text(row.cells[index]) for index in (2, 4))  # type: ignore[arg-type]
        assert (words.NOT_SURE in verdict) == words.doubtful(judgement)
        if judgement.claim.agrees is not None:
            assert rule == f"{judgement.claim.in_words}: {judgement.claim.agrees.text}"


@pytest.mark.parametrize("key", shipped.names())
def test_every_rule_has_a_sentence(key: str) -> None:
    claims = load(shipped.FOLDER / key).claims
    assert [claim.id for claim in claims if claim.agrees is not None and not claim.in_words] == []
    assert [claim.id for claim in claims if claim.trend is not None and not claim.trend_in_words] == []
