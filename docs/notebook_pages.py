"""Pages of the site from the notebooks in docs/examples, with the outputs that are kept in them; mkdocs calls this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page and its pictures for each notebook."""
    for notebook in sorted((Path(config.docs_dir) / "examples").glob("*.ipynb")):
        # pictures stand beside the page, in a folder of its name
        resources: dict[str, Any] = {"unique_key": notebook.stem, "output_files_dir": notebook.stem}
        text, made = MarkdownExporter().from_filename(str(notebook), resources)
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
        for name, data in made["outputs"].items():
            files.append(File.generated(config, f"notebooks/{name}", content=data))
    return files
