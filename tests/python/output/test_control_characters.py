"""Names of a stranger's result are text: no control character of them reaches a terminal, in whatever form."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from support import begin
from tidegate.cli.completing import complete_keys
from tidegate.cli.terminal import print_json, say
from tidegate.output import github, junit, markdown, progress, terminal
from tidegate.output.document import (
    Code,
    Column,
    Document,
    Items,
    Judged,
    Number,
    Pairs,
    Paragraph,
    Phrase,
    Row,
    Section,
    Table,
)
from tidegate.output.html import page
from tidegate.results.metrics import metric
from tidegate.results.stats import Interval

RATE = metric("receive_rate_bps")
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
EVIL = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), 0x2066, 0x2069]))
EVIL += "\x1b]0;title\x07 \x1b[2J <script>alert(1)</script> \udcff"


def everywhere(text: str) -> Document:
    """A document with a text in each place that has one."""
    rows = [
        Row([text, text, text], detail=False),
        Row([text, Number(RATE, Interval(1e6, None, 1), replacement=text), Number(RATE, Interval(1e6, 1.0, 2))], RATE),
        Row([Judged([text], "bad", text), Items([text]), Phrase(text, "good")]),
        Row([text, text, text], RATE, kind="words"),
    ]
    blocks = [
        Table([Column(text), Column(Phrase(text)), Column(text)], rows, kind)
        for kind in ("numbers", "prose", "headline")
    ]
    return Document(
        text,
        [Section(text, [*blocks, Paragraph(text), Items([text]), Pairs([(text, text)]), Code(text)])],
        [],
        [text],
        failures=[(text, text)],
    )


def test_a_terminal_gets_no_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show(everywhere(EVIL), detail=True)
    say(EVIL)
    out, err = capsys.readouterr()
    assert not RAW.findall(out)
    assert not RAW.findall(err)
    for shown in (r"\x1b[2J", r"\x9b", r"\u202e", r"\u2028", r"\udcff"):
        assert shown in out
        assert shown in err


def test_a_name_makes_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show(Document("x", [Table([Column("a\nb")], [Row(["c\nd"])], "prose"), Items(["e\nf"])]), detail=True)
    assert capsys.readouterr().out.split("\n") == ["a\\nb", "c\\nd", "", "e\\nf", ""]


def test_json_escapes_them_as_json_does(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({EVIL: EVIL})
    assert not RAW.findall(capsys.readouterr().out)


def test_tests_and_annotations_show_them() -> None:
    case = junit.Case(EVIL, EVIL, "failure", EVIL, EVIL, EVIL, EVIL)
    text = junit.xml(EVIL, {EVIL: [case]})
    assert not RAW.findall(text)
    ET.fromstring(text.encode())
    assert not RAW.findall(github.annotation(case))
    assert len(github.annotation(case).splitlines()) == 1


def test_a_progress_bar_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.progress_bar(True, "\x1b]0;owned\x07") as report:
        assert report is not None
        report(0.5)
    drawn = screen.getvalue()
    assert r"\x1b]0;owned\x07" in drawn
    assert "\x1b]0;" not in drawn


def test_pages_and_markdown_have_no_markup_of_theirs() -> None:
    text = "\x1b[2J <script>alert(1)</script> <img src=x onerror=y> | [a](javascript:b)"
    body = page(everywhere(text)).partition("<main>")[2].partition("</main>")[0]
    assert "<script>alert" not in body
    assert "<img" not in body
    prose = re.sub(r"```.*?```", "", markdown.markdown(everywhere(text)), flags=re.DOTALL)
    assert "<script>" not in prose
    assert "<img" not in prose
    assert not RAW.findall(prose)


def test_completions_leave_them_out(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('[[links]]\nname = "a\\u001b[2J"\n[[links]]\nname = "plain"\n')
    typed = SimpleNamespace(params={"scenario": str(tmp_path / "x.toml")}, args=[])
    keys = complete_keys(typed, "links.")  # type: ignore[arg-type]
    assert "links.plain.delay=" in keys
    assert not any(RAW.findall(key) for key in keys)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_without_our_characters_gets_question_marks(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.trace").write_text("".join(f"{at}\n" for at in range(3000)))
    process = begin(["trace", "show", "x.trace"], tmp_path, PYTHONIOENCODING=encoding)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1].strip("?") == ""
