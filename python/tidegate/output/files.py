"""Documents as files: in the folder of a result they become a part of it. Callers need to know no renderer."""

from __future__ import annotations

from pathlib import Path

from tidegate.output.document import Document
from tidegate.output.html import page
from tidegate.output.markdown import markdown
from tidegate.results.folders import add_file


def write_page(path: Path, document: Document) -> None:
    """Writes a document as a page.

    Raises:
        OutputError: when it cannot be written.
    """
    add_file(path.parent, path.name, page(document))


def write_text(path: Path, document: Document) -> None:
    """Writes a document as Markdown, without the section that says how to reproduce its result.

    Raises:
        OutputError: when it cannot be written.
    """
    add_file(path.parent, path.name, markdown(document, again=False))
