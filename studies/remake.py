"""Measures studies again and writes their kept numbers and their tables in docs: `make studies STUDY="today avpf"`."""

from __future__ import annotations

import argparse
from functools import partial

from rich.progress import Progress, TaskID

from kept import FOLDER, Study
from papers import PAPERS, PaperStudy
from support import DOCS, write_table

_MODULES = sorted(path.stem for path in FOLDER.parent.glob("*.py") if "\n@kept\n" in path.read_text("utf-8"))
STUDIES: dict[str, Study | PaperStudy] = {name: Study(name) for name in _MODULES} | PAPERS
"""All that keep their numbers, by name."""


def _show(bar: Progress, task: TaskID, done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)


def main() -> None:
    """Remakes those that are named; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], metavar="STUDY", help=", ".join(STUDIES))
    for name in parser.parse_args().studies or STUDIES:
        with Progress() as bar:
            task = bar.add_task(name, total=None)
            tables = STUDIES[name].remake(partial(_show, bar, task))
        for (page, table), text in tables.items():
            write_table(DOCS / page, table, text)


if __name__ == "__main__":
    main()
