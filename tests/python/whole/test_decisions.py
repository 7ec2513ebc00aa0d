"""The decisions of docs/design: numbered, short, listed in docs/DESIGN.md, and there wherever they are cited."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import DOCS, ROOT
from support.tree import texts

DESIGN_LINES = 150
"""Lines of docs/DESIGN.md."""
DECISION_LINES = 15
"""Lines of a decision, without its heading and blank lines."""
PARTS = ["Context", "Decision", "Consequence"]
CITING = {".rs", ".py", ".pyi", ".ts", ".md"}
"""Files that may cite decisions. Others have codes of linters that look alike (`D105`)."""


@dataclass(frozen=True)
class Decision:
    """A decision on a page."""

    number: int
    anchor: str
    title: str
    lines: list[str]
    """Its text without blank lines."""


def decisions(page: str) -> list[Decision]:
    """Finds the decisions on a page."""
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    listed = []
    for section in sections:
        heading, *text = section.splitlines()
        match = re.fullmatch(r'<a id="(\w+)"></a>D(\d+): (.+)', heading)
        assert match, f"not the heading of a decision: {heading}"
        listed.append(Decision(int(match[2]), match[1], match[3], [line for line in text if line.strip()]))
    return listed


def problems(page: str) -> list[str]:
    """Faults of the decisions on a page: anchor, order of numbers, length, parts."""
    faults = []
    last = 0
    for decision in decisions(page):
        name = f"D{decision.number}"
        if decision.anchor != name.lower():
            faults.append(f"{name}: its anchor is {decision.anchor}")
        if decision.number <= last:
            faults.append(f"{name}: it comes after D{last}")
        if len(decision.lines) > DECISION_LINES:
            faults.append(f"{name}: it has {len(decision.lines)} lines")
        if re.findall(r"^\*\*(\w+)\.\*\*", "\n".join(decision.lines), re.MULTILINE) != PARTS:
            faults.append(f"{name}: its parts are not {', '.join(PARTS)}")
        last = decision.number
    return faults


def spans(numbers: list[int]) -> str:
    """Writes numbers as the index does.

    >>> spans([1, 2, 3, 7])
    'D1 to D3, D7'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"D{run[0]}" if len(run) == 1 else f"D{run[0]} to D{run[-1]}" for run in runs)


def index() -> dict[str, str]:
    """The numbers that the index of docs/DESIGN.md gives for each page."""
    design = (DOCS / "DESIGN.md").read_text("utf-8")
    return dict(re.findall(r"^\| \[[^\]]+\]\(design/(\w+)\.md\) \| ([^|]+) \|", design, re.MULTILINE))


PAGES = {page.stem: page.read_text("utf-8") for page in sorted((DOCS / "design").glob("*.md"))}
NUMBERS = {name: [decision.number for decision in decisions(text)] for name, text in PAGES.items()}
KNOWN = {number for numbers in NUMBERS.values() for number in numbers}


def wrong_citations(text: str) -> list[str]:
    """Citations in a text of decisions that do not exist, or that stand on another page."""
    missing = [f"D{number}" for number in re.findall(r"\bD([1-9]\d*)\b", text) if int(number) not in KNOWN]
    misplaced = [
        f"design/{page}.md, D{number}"
        for page, number in re.findall(r"design/(\w+)\.md`?, D(\d+)", text)
        if int(number) in KNOWN and int(number) not in NUMBERS.get(page, [])
    ]
    return missing + misplaced


def test_the_design_stays_short() -> None:
    assert (DOCS / "DESIGN.md").read_text("utf-8").count("\n") <= DESIGN_LINES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_decisions_in_order_and_short(name: str) -> None:
    assert problems(PAGES[name]) == []


def test_each_number_is_given_once_and_none_is_left_out() -> None:
    numbers = sorted(number for page in NUMBERS.values() for number in page)
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_index_lists_each_page_with_its_numbers() -> None:
    assert index() == {name: spans(numbers) for name, numbers in NUMBERS.items()}


def test_cited_decisions_exist() -> None:
    cited = {name: wrong_citations(text) for name, text in texts(CITING) if ROOT / name != Path(__file__)}
    assert {name: wrong for name, wrong in cited.items() if wrong} == {}


def test_faults_are_found() -> None:
    parts = "".join(f"**{part}.** One line.\n\n" for part in PARTS)
    assert problems(f'# Page\n\n## <a id="d3"></a>D3: Title\n\n{parts}') == []
    assert problems(f'## <a id="d4"></a>D3: Title\n\n{parts}') == ["D3: its anchor is d4"]
    assert problems(f'## <a id="d3"></a>D3: Title\n\n{parts}## <a id="d2"></a>D2: Title\n\n{parts}') == [
        "D2: it comes after D3"
    ]
    assert problems(f'## <a id="d3"></a>D3: Title\n\n{parts}' + 13 * "line\n") == ["D3: it has 16 lines"]
    assert problems('## <a id="d3"></a>D3: Title\n\n**Decision.** One line.\n') == [
        "D3: its parts are not Context, Decision, Consequence"
    ]
    assert wrong_citations("`docs/design/controllers.md, D1`, D9999, D0, 0xD1, D2x") == ["D9999"]
    assert wrong_citations("docs/design/engine.md, D1") == ["design/engine.md, D1"]
    assert wrong_citations("`docs/design/engine.md`, D1") == ["design/engine.md, D1"]
