"""The page of `tidegate play` on the site, where it was built (`make page`); mkdocs calls this."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tidegate.scenario import Scenario
from tidegate.show import play

_MARK = "<!-- the page, where it was built -->"
_LOOK = "width: 100%; height: 46rem; border: 1px solid #8888"
_FRAME = f"""\
<iframe src="page.html" title="the page of tidegate play" loading="lazy" style="{_LOOK}"></iframe>

[The same on a page of its own](page.html){{: target="_blank" }}
"""
_NAME = "play/page.html"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The page itself, beside the one about it."""
    if play.is_built():
        content = play.page(play.payload(Scenario.load("home-broadband")))
        files.append(File.generated(config, _NAME, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Shows it there."""
    del page, config
    return markdown.replace(_MARK, _FRAME if files.get_file_from_path(_NAME) else "")
