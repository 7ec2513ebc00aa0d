"""Remarks on an imported call: what makes its numbers doubtful, and what only says how they were made."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DOUBTS = re.compile(
    r"packets arrive before they leave|in one direction only|could not be read|not in the sender's recording"
)
"""Parts of remarks of `crates/recordings` that are reasons to doubt numbers."""


def apart(remarks: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns doubts and notes.

    >>> apart(["the call between a and b", "outgoing: 3 packets that arrived are not in the sender's recording"])[0]
    ["outgoing: 3 packets that arrived are not in the sender's recording"]
    """
    listed = list(remarks)
    doubts = [remark for remark in listed if _DOUBTS.search(remark)]
    return doubts, [remark for remark in listed if remark not in doubts]
