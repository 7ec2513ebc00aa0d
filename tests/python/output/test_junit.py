"""Test reports: JUnit XML and annotations of GitHub, to the byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from tidegate.output.github import annotation
from tidegate.output.junit import Case, xml
from tidegate.suite.tables import line_of

CASES = [
    Case("short.steps", "rate < -5%", "passed"),
    Case(
        "short.steps", "loss > 1%", "failure", "0 to 5 %,\nfor sure", "at length: 5 > 1", "worse", "steps, today: worse"
    ),
    Case("short.tcp", "loss > 1%", "skipped", "0 to 1 %", verdict="undecided", title="tcp is undecided"),
    Case("short.tcp", "runs", "error", "no \x07 link", title="tcp failed", seconds=1.25, file="mine,1.py"),
]


def test_cases_are_counted_and_say_why() -> None:
    assert (
        xml("check", {"short: gcc": CASES, "nothing": []})
        == """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="check">
  <testsuite name="short: gcc" tests="4" failures="1" errors="1" skipped="1" time="1.250">
    <testcase classname="short.steps" name="rate &lt; -5%" />
    <testcase classname="short.steps" name="loss &gt; 1%">
      <failure message="worse: 0 to 5 %,&#10;for sure">at length: 5 &gt; 1</failure>
    </testcase>
    <testcase classname="short.tcp" name="loss &gt; 1%">
      <skipped message="undecided: 0 to 1 %" />
    </testcase>
    <testcase classname="short.tcp" name="runs" file="mine,1.py" time="1.250">
      <error message="no \\x07 link" />
    </testcase>
  </testsuite>
  <testsuite name="nothing" tests="0" failures="0" errors="0" skipped="0" />
</testsuites>
"""
    )


def test_what_xml_cannot_have_is_never_written() -> None:
    evil = '<a> & "b" \x00\x1b]0;\x07\n\t'
    root = ET.fromstring(xml(evil, {evil: [Case(evil, evil, "failure", evil, evil, evil)]}))
    (suite,) = root
    (test,) = suite
    assert root.get("name") == suite.get("name") == test.get("name") == '<a> & "b" \\x00\\x1b]0;\\x07\n\t'
    assert test[0].text == '<a> & "b" \\x00\\x1b]0;\\x07\n\t'


def test_annotations_are_escaped_as_githubs_toolkit_does_it() -> None:
    assert [annotation(case) for case in CASES[1:]] == [
        "::error title=steps%2C today%3A worse::0 to 5 %25,%0Afor sure",
        "::warning title=tcp is undecided::0 to 1 %25",
        r"::error file=mine%2C1.py,title=tcp failed::no \x07 link",
    ]


def test_a_line_stands_beside_its_file_alone() -> None:
    case = Case("a", "b", "failure", "worse", title="t", file="mine.py", line=7)
    assert annotation(case) == "::error file=mine.py,line=7,title=t::worse"
    assert annotation(replace(case, line=None)) == "::error file=mine.py,title=t::worse"
    assert annotation(replace(case, file="")) == "::error title=t::worse"


def test_the_line_of_a_controller_is_that_of_its_class(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n\nclass Other: ...\n\nclass Mine:\n    k = 1\n\nclass Estimator: ...\n")
    names = (f"python:{file}:Mine", f"python:{file}:Mine:k=2", f"python:{file}:Gone", f"alphartc:{file}", "gcc")
    assert [line_of(name) for name in (*names, f"alphartc:{file}:k=2")] == [5, 5, None, 8, None, 8]
    file.write_text("class Mine:\n    x = (\n")
    assert line_of(f"python:{file}:Mine") == 2
    file.unlink()
    assert line_of(f"python:{file}:Mine") is None
