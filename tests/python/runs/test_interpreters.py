"""No file of the present folder is run because it has the name of a module that tidegate imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support import PLAIN, ROOT, as_script, environment

DECOYS = (
    "json", "resource", "multiprocessing", "queue", "random", "socket", "struct", "logging", "csv", "numpy", "pydantic",
    "tidegate", "typing", "threading", "subprocess", "distributed", "dask", "signal", "selectors", "pickle",
)  # fmt: skip
MINE = """\
import os
from tidegate import Controller

class Mine(Controller):
    def on_limits(self, now_ns, limits):
        with open("environment", "a") as file:
            file.write(repr(os.environ.get("PYTHONSAFEPATH")) + chr(10))
        return limits.start_bps

    def on_report(self, now_ns, report):
        return 300e3
"""


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """A folder with files that leave a mark when they are run."""
    for name in DECOYS:
        (tmp_path / f"{name}.py").write_text(f'open({str(tmp_path / "ran")!r}, "a").write("{name} ")\n')
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "plain.toml").write_text(PLAIN)
    return tmp_path


def run(folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command line in that folder."""
    (folder / "bin").mkdir(exist_ok=True)
    command = [*as_script(folder / "bin"), *argv]
    return subprocess.run(
        command, cwd=folder, env=environment(**more), capture_output=True, text=True, check=False, timeout=120
    )


def check(folder: Path, *argv: str, code: Sequence[int] = (0,)) -> None:
    done = run(folder, *argv)
    assert done.returncode in code, done.stderr
    ran = folder / "ran"
    assert not ran.exists(), ran.read_text()


MANY = ["python:mine.py:Mine", "gcc", "--scenario", "plain.toml", "--seeds", "2", "-j", "2"]


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "plain.toml"],
        ["compare", *MANY, "--out", "out"],
        ["sweep", "plain.toml", "--set", "flows.call.media.controller=python:mine.py:Mine,gcc", "--seeds", "2", "-j", "2", "--out", "out"],
        ["suite", "run", "smoke", "python:mine.py:Mine", "--seeds", "1", "--cases", "5.1*", "-j", "2", "--out", "out"],
        ["report", "nothing"],
    ],
    ids=lambda argv: argv[0],
)  # fmt: skip
def test_no_file_of_the_present_folder_is_run(argv: list[str], decoys: Path) -> None:
    check(decoys, *argv, code=(0, 2) if argv[0] == "report" else (0,))


@pytest.mark.slow
def test_nor_by_workers_of_dask(decoys: Path) -> None:
    check(decoys, "compare", *MANY, "--engine", "dask", "--out", "out")
    assert set((decoys / "environment").read_text().split()) == {"None"}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_controllers_find_the_environment_as_it_was(jobs: str, decoys: Path) -> None:
    check(decoys, "compare", "python:mine.py:Mine", "--scenario", "plain.toml", "--seeds", "2", "-j", jobs)
    assert (decoys / "environment").read_text().split() == ["None", "None"]
    (decoys / "environment").unlink()
    argv = ["compare", "python:mine.py:Mine", "--scenario", "plain.toml", "--seeds", "2", "-j", jobs]
    assert run(decoys, *argv, PYTHONSAFEPATH="yes").returncode == 0
    assert (decoys / "environment").read_text().split() == ["'yes'", "'yes'"]


def test_a_controller_s_own_folder_is_searched_by_every_worker(tmp_path: Path) -> None:
    """`import helper` beside the controller's file means the same in this process and in others."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "helper.py").write_text("RATE = 300e3\n")
    text = MINE.replace("300e3", "helper.RATE").replace("import os\n", "import os\nimport helper\n")
    (folder / "mine.py").write_text(text)
    (tmp_path / "plain.toml").write_text(PLAIN)
    outputs = []
    for jobs in ("1", "2"):
        argv = ["compare", "python:mine/mine.py:Mine", "--scenario", "plain.toml", "--seeds", "2", "-j", jobs, "--json"]
        done = run(tmp_path, *argv)
        outputs.append((done.returncode, done.stdout))
    assert outputs[0] == outputs[1]


def begun(tree: ast.AST) -> list[ast.AST]:
    """Lists in a module's text that begin an interpreter: those with `sys.executable`."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.List | ast.Tuple)
        and any(isinstance(one, ast.Attribute) and one.attr == "executable" for one in node.elts)
    ]


def test_every_interpreter_that_is_begun_is_begun_without_the_present_folder() -> None:
    places = []
    for file in (ROOT / "python" / "tidegate").rglob("*.py"):
        text = file.read_text("utf-8")
        for node in begun(ast.parse(text)):
            assert isinstance(node, ast.List | ast.Tuple)
            options = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            places.append((file.name, "-P" in options))
        if "multiprocessing.get_context" in text or "LocalCluster(" in text:
            places.append((file.name, "runs._interpreter import" in text))
    assert places, "there are some"
    assert [name for name, safe in places if not safe] == []


def test_the_environment_is_given_back() -> None:
    from tidegate.runs import _interpreter

    before = dict(os.environ)
    with _interpreter.safe_path() as value:
        assert os.environ["PYTHONSAFEPATH"] == "1"
        assert value == before.get("PYTHONSAFEPATH")
    assert dict(os.environ) == before
    os.environ |= _interpreter.variables()
    _interpreter.forget()
    assert dict(os.environ) == before


def test_python_m_searches_the_current_folder(tmp_path: Path) -> None:
    """As SECURITY.md says of it; the script, which is called as `tidegate`, does not."""
    ran = tmp_path / "ran"
    (tmp_path / "json.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    (tmp_path / "plain.toml").write_text(PLAIN)
    assert run(tmp_path, "scenario", "check", "plain.toml").returncode == 0
    assert not ran.exists()
    command = [sys.executable, "-m", "tidegate", "scenario", "check", "plain.toml"]
    subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=False, timeout=60)
    assert ran.exists()
