"""A report: one HTML file with numbers, charts and everything needed to make them again.

The file opens offline, in any browser of the last years, and asks the network for nothing: scripts,
styles and data are inside.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    """What a report is made of, for those who have runs but no :class:`tidegate.Comparison`."""

    runs: Mapping[str, Sequence[RunLike]]
    """Runs by controller, one a seed."""
    title: str | None = None
    command: str | None = None
    """The command line that made the runs."""
    scenario: str | None = None
    """The scenario as TOML."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """What made them: tidegate, Python, the platform."""
    attached: Mapping[str, bytes] = field(default_factory=dict)
    """Files that belong to them; PNG pictures are shown."""
    remarks: Remarks | None = None
    """Warnings and notes; of things without them those of their runs' summaries."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """Of a call that was recorded elsewhere: the files."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why a controller has no runs, by its name."""

    @property
    def controllers(self) -> list[str]:
        """The labels, in order."""
        return list(self.runs)


def document(source: Any) -> Document:
    """The report as data.

    Args:
        source: A :class:`tidegate.Comparison` (or a :class:`Source`), a :class:`tidegate.SweepResult`, or a single run.

    Raises:
        ValueError: If there is no run in it.
    """
    # by what sweeps alone have: a run that was imported has no scenario, and says so when it is asked for one
    return swept.document(source) if hasattr(source, "rows") else of_runs.document(_sourced(source))


def html(source: Any) -> str:
    """The report as one page; see [document][tidegate.show.report.document].

    Raises:
        ValueError: If there is no run in it.
    """
    return page(document(source))


def write(path: str | os.PathLike[str], source: Any) -> Path:
    """Writes the report to ``path``; the file appears whole or not at all.

    In the folder of a result it joins the files of that result; a file of that name which tidegate did not write is
    kept under another name.

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
    """Whether a file is such a page."""
    with path.open("rb") as file:
        return is_page(file.read(1000))


def _sourced(source: Any) -> Source:
    if isinstance(source, Source):
        return source
    runs = getattr(source, "runs", None)
    if runs is None:
        runs = {getattr(source, "controller", None) or view.controller_of(source): [source]}
    first = next((run for members in runs.values() for run in members), None)
    # what a run folder's run.json says; absent from things that only look like a run
    about = getattr(first, "about", {})
    said = ("title", "command", "attached", "remarks", "failed")
    return Source(
        dict(runs),
        scenario=about.get("scenario"),
        versions=dict(about.get("versions", {})),
        recorded=about.get("imported", {}),
        **{name: getattr(source, name) for name in said if hasattr(source, name)},
    )
