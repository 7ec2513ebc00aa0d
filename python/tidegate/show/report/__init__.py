"""Reports: one HTML file with numbers, charts and everything needed to reproduce them.

The file opens offline in any recent browser and loads nothing from the network: scripts, styles and data are inside.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate._files import first_bytes
from tidegate.output.document import Document
from tidegate.output.files import write_page
from tidegate.output.html import is_page, page
from tidegate.results.remarks import Remarks
from tidegate.show import view
from tidegate.show.report import _runs as of_runs
from tidegate.show.report import _swept as swept
from tidegate.show.report._runs import LINKS
from tidegate.show.view import RunLike

__all__ = ["LINKS", "Source", "document", "html", "write"]


@dataclass(frozen=True)
class Source:
    """The input of a report, for runs without a :class:`tidegate.Comparison`."""

    runs: Mapping[str, Sequence[RunLike]]
    """Runs by controller, one a seed."""
    title: str | None = None
    command: str | None = None
    """The command line that made the runs."""
    scenario: str | None = None
    """The scenario as TOML."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of tidegate, Python and the platform."""
    attached: Mapping[str, bytes] = field(default_factory=dict)
    """Files that belong to the runs; PNG pictures are shown."""
    remarks: Remarks | None = None
    """Warnings and notes; without them, those in the summaries of the runs."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """The files of a call that was recorded elsewhere."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The reasons why controllers have no runs, by controller."""
    against: str = ""
    """Label from whose runs the differences of the others are shown, where these are variants of it."""

    @property
    def controllers(self) -> list[str]:
        """The labels, in order."""
        return list(self.runs)


def document(source: Any) -> Document:
    """Makes the document of a report.

    Args:
        source: A :class:`tidegate.Comparison` (or a :class:`Source`), a :class:`tidegate.SweepResult`, or a single run.

    Raises:
        ValueError: If there is no run in it.
    """
    # only sweeps have `rows`; `scenario` would not do, since an imported run raises an error on access to it
    return swept.document(source) if hasattr(source, "rows") else of_runs.document(_as_source(source))


def html(source: Any) -> str:
    """Formats the report as one page; see [document][tidegate.show.report.document].

    Raises:
        ValueError: If there is no run in it.
    """
    return page(document(source))


def write(path: str | os.PathLike[str], source: Any) -> Path:
    """Writes the report to ``path``, completely or not at all.

    In the folder of a result it becomes one of its files. If a file of that name exists that tidegate did not write,
    that file is kept under another name.

    Args:
        path: The HTML file to write.
        source: A :class:`tidegate.Comparison` (or a :class:`Source`), a :class:`tidegate.SweepResult`, or a single run.

    Returns:
        The path.

    Raises:
        ValueError: If there is no run in ``source``.
        OutputError: If the file cannot be written.
    """
    target = Path(path)
    write_page(target, document(source))
    return target


def is_report(path: Path) -> bool:
    """Whether a file is a report that tidegate wrote."""
    return is_page(first_bytes(path))


def _as_source(source: Any) -> Source:
    if isinstance(source, Source):
        return source
    runs = getattr(source, "runs", None)
    if runs is None:
        runs = {getattr(source, "controller", None) or view.controller_of(source): [source]}
    first = next((run for members in runs.values() for run in members), None)
    # the contents of a run folder's run.json; objects that only look like a run have none
    metadata = getattr(first, "about", {})
    optional = ("title", "command", "attached", "remarks", "failed")
    return Source(
        dict(runs),
        scenario=metadata.get("scenario"),
        versions=dict(metadata.get("versions", {})),
        recorded=metadata.get("imported", {}),
        against=next(iter(runs)) if getattr(source, "variants", {}) else "",
        **{name: getattr(source, name) for name in optional if hasattr(source, name)},
    )
