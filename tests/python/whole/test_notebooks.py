"""The notebooks of docs/examples: each runs from its first cell to its last, and shows what is kept in it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))
RIGHT = "write them again: TIDEGATE_BLESS=1 python -m pytest -m slow tests/python/whole/test_notebooks.py"


def executed(notebook: Path, folder: Path) -> Any:
    """The notebook with the outputs of a kernel of its own that works in `folder`."""
    libraries = {}
    for name, of in {
        "nbclient": "runs notebooks",
        "ipykernel": "is what they run in",
        "polars": "is used in them",
    }.items():
        reason = f"{name}, which {of}, is not installed (pip install 'tidegate[notebooks]')"
        libraries[name] = pytest.importorskip(name, reason=reason)
    nbformat = pytest.importorskip("nbformat")

    found = nbformat.read(notebook, as_version=4)
    about = {"metadata": {"path": str(folder)}}
    libraries["nbclient"].NotebookClient(found, timeout=240, kernel_name="python3", resources=about).execute()
    for cell in found.cells:
        cell.metadata.pop("execution", None)
    return found


def said(notebook: Any) -> list[str]:
    """What its cells came to, as text; pictures by their size, and nothing of a bar, which is there only on slow machines."""
    outputs = [
        one for cell in notebook["cells"] for one in cell.get("outputs", ()) if one["output_type"] != "display_data"
    ]
    return ["".join(one.get("data", one)["text/plain"]) for one in outputs]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries that run notebooks
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_shows_what_is_kept_in_it(notebook: Path, tmp_path: Path) -> None:
    kept = json.loads(notebook.read_text("utf-8"))
    found = executed(notebook, tmp_path)
    if os.environ.get("TIDEGATE_BLESS"):
        for cell in found.cells:
            cell["outputs"] = [one for one in cell.get("outputs", ()) if one["output_type"] != "display_data"]
            if cell["cell_type"] != "code":
                del cell["outputs"]
        pytest.importorskip("nbformat").write(found, notebook)
        return
    assert said(found) == said(kept), RIGHT
    pictures = [one for cell in found.cells for one in cell.get("outputs", ()) if "image/png" in one.get("data", {})]
    assert pictures


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries that run notebooks
def test_a_figure_is_shown_once_whatever_the_notebook_has_switched_on(tmp_path: Path) -> None:
    cells = [
        "import sys, tidegate\nrun = tidegate.run(tidegate.scenario_for(duration='5s'))",
        "tidegate.plot.time_series(run)",
        "figure = tidegate.plot.time_series(run)\n'matplotlib.pyplot' in sys.modules",
        "%matplotlib inline\ntidegate.plot.time_series(run)",
        "import matplotlib.pyplot as plt\nplt.get_fignums(), plt.rcParams['font.size']",
    ]
    plain: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {},
        "cells": [{**plain, "source": one} for one in cells],
    }
    file = tmp_path / "figures.ipynb"
    file.write_text(json.dumps(notebook))
    shown = [[*one.get("data", {})] for cell in executed(file, tmp_path).cells for one in cell.outputs]
    assert [sorted(one) for one in shown] == [
        ["image/png", "text/plain"],
        ["text/plain"],
        ["image/png", "text/plain"],
        ["text/plain"],
    ]
    said_last = [one["data"]["text/plain"] for cell in executed(file, tmp_path).cells[2::2] for one in cell.outputs]
    assert said_last == ["False", "([], 10.0)"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_is_kept_with_its_outputs_and_without_places_of_a_machine(notebook: Path) -> None:
    text = notebook.read_text("utf-8")
    kept = json.loads(text)
    for cell in kept["cells"]:
        if cell["cell_type"] == "code":
            assert cell["execution_count"] is not None
            assert all(one["output_type"] == "execute_result" for one in cell["outputs"]), (
                "errors, warnings or printed text"
            )
    assert not re.search(r"/(home|root|tmp|work|Users)/|[A-Z]:\\\\\\\\", re.sub(r'"image/png": "[^"]*"', "", text))
    assert len(text) < 600_000


def test_each_notebook_is_a_page_of_the_site_and_on_its_page() -> None:
    assert len(NOTEBOOKS) == 2
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    page = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    for notebook in NOTEBOOKS:
        assert f"notebooks/{notebook.stem}.md" in menu
        assert notebook.name in page
