"""Tests and their results, and JUnit XML, the form in which CI systems read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

from tidegate.wording import printable


@dataclass(frozen=True)
class Case:
    """A test and its result."""

    group: str
    """The group of tests; JUnit calls it the class."""
    name: str
    """The name of the test."""
    state: Literal["passed", "failure", "error", "skipped"]
    """The result, in the words of JUnit."""
    message: str = ""
    """The reason, in a sentence."""
    text: str = ""
    """The reason at length."""
    verdict: str = ""
    """The result in the tool's own term, such as `worse`, which precedes the message."""
    title: str = ""
    """The headline of an annotation."""
    seconds: float | None = None
    """The time that it took, where it is known."""
    file: str = ""
    """The file that it is about, where there is one, such as a controller's."""
    line: int | None = None
    """The line in that file, where it is known."""


def xml(name: str, suites: Mapping[str, Sequence[Case]]) -> str:
    """Formats cases as JUnit XML.

    Args:
        name: The name of the whole check.
        suites: The cases of each test suite.
    """
    root = ET.Element("testsuites", name=printable(name))
    for suite, cases in suites.items():
        states = Counter(case.state for case in cases)
        counts = {"failures": states["failure"], "errors": states["error"], "skipped": states["skipped"]}
        attributes = {key: str(count) for key, count in {"tests": len(cases), **counts}.items()}
        if times := [case.seconds for case in cases if case.seconds is not None]:
            attributes["time"] = _time(sum(times))
        group = ET.SubElement(root, "testsuite", {"name": printable(suite), **attributes})
        for case in cases:
            about = {"classname": printable(case.group), "name": printable(case.name)}
            about |= {"file": printable(case.file)} if case.file else {}
            about |= {"time": _time(case.seconds)} if case.seconds is not None else {}
            test = ET.SubElement(group, "testcase", about)
            if case.state != "passed":
                message = f"{case.verdict}: {case.message}" if case.verdict else case.message
                outcome = ET.SubElement(test, case.state, message=printable(message))
                outcome.text = printable(case.text)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"
