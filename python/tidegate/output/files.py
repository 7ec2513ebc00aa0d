"""Documents as files, for those who know no form: in the folder of a result they become a part of it."""

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
    """Writes what words and tables can say of a document as Markdown, without how to make its result again.

    Raises:
        OutputError: when it cannot be written.
    """
    add_file(path.parent, path.name, markdown(document, again=False))
