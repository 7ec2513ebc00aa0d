"""Tests and what came out of them, and the form in which CI systems read them: JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET


@dataclass(frozen=True)
class Case:
    """A test and what came out of it."""

    group: str
    """What it is of: the class, in the words of JUnit."""
    name: str
    """What was asked."""
    state: Literal["passed", "failure", "error", "skipped"]
    """What came out."""
    message: str = ""
    """Why, in a sentence."""
    text: str = ""
    """Why, at length."""
    word: str = ""
    """What came out in a word of those who asked, to stand before the sentence."""
    title: str = ""
    """The headline of an annotation."""


def xml(name: str, suites: Mapping[str, Sequence[Case]]) -> str:
    """Cases as JUnit XML.

    Args:
        name: What was run.
        suites: The cases of each test suite.
    """
    root = ET.Element("testsuites", name=_printable(name))
    for suite, cases in suites.items():
        states = Counter(case.state for case in cases)
        counts = {"failures": states["failure"], "errors": states["error"], "skipped": states["skipped"]}
        about = {key: str(count) for key, count in {"tests": len(cases), **counts}.items()}
        group = ET.SubElement(root, "testsuite", {"name": _printable(suite), **about})
        for case in cases:
            test = ET.SubElement(group, "testcase", classname=_printable(case.group), name=_printable(case.name))
            if case.state != "passed":
                message = f"{case.word}: {case.message}" if case.word else case.message
                why = ET.SubElement(test, case.state, message=_printable(message))
                why.text = _printable(case.text)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """Text without characters that XML cannot have."""
    return "".join(char if char >= " " or char in "\n\t" else "?" for char in text)
