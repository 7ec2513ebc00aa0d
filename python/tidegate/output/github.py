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
    title = _escaped(case.title).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={title}::{_escaped(case.message)}"


def _escaped(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\n", "%0A")
