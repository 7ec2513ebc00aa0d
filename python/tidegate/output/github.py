"""Results of tests as annotations of GitHub: workflow commands, a line each.

They are escaped like those of GitHub's own toolkit; see
https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
"""

from __future__ import annotations

from tidegate.output.junit import Case
from tidegate.wording import printable


def annotation(case: Case) -> str:
    """A case that did not pass: a warning if it was skipped, else an error.

    >>> annotation(Case("rmcat", "rate", "skipped", "5 % to 4 %", title="5.1: undecided"))
    '::warning title=5.1%3A undecided::5 %25 to 4 %25'
    """
    kind = "warning" if case.state == "skipped" else "error"
    line = "" if case.line is None else f"line={case.line},"
    place = f"file={_property(case.file)},{line}" if case.file else ""
    return f"::{kind} {place}title={_property(case.title)}::{_escaped(case.message)}"


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _escaped(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\n", "%0A")
