"""Test reports: JUnit XML and annotations of GitHub, to the byte."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tidegate.output.github import annotation
from tidegate.output.junit import Case, xml

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
