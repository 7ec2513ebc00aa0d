"""Lazy imports: few modules where a person or a shell waits, and public names on first use."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import tidegate
from support import ROOT

HEAVY = {"IPython", "matplotlib", "numpy", "pydantic", "rich", "tidegate.runs", "tidegate.scenario"}

PROGRAM = """\
import sys
from tidegate.cli import main
code = main(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


def output_and_modules(argv: list[str], **more: str) -> tuple[str, set[str]]:
    """The output of the command line, and the modules that it imported."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **more}
    got = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    code, *modules = got.stderr.split()
    assert code == "0"
    return got.stdout, set(modules)


@pytest.mark.parametrize(
    "argv", [["--version"], ["--help"], ["run", "--help"], ["compare", "--help"], ["trace", "generate", "--help"]]
)
def test_help_and_version_load_little(argv: list[str]) -> None:
    output, modules = output_and_modules(argv)
    assert "tidegate" in output
    assert "tidegate._core" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("tidegate com", "compare"),
        ("tidegate run home", "home-broadband"),
        ("tidegate compare --seeds 3 gcc:dr", "gcc:draft-02"),
        ("tidegate paper hoa", "hoang2017"),
        ("tidegate compare gcc:draft-02,beta=0.9,k_u", "gcc:draft-02,beta=0.9,k_up="),
        ("tidegate compare gcc:draft-02,k_up=1,k_", "gcc:draft-02,k_up=1,k_down="),
        ("tidegate run home-broadband --set links.uplink.cap", "links.uplink.capacity="),
        ("tidegate compare --scenario home-broadband --set links.uplink.cap", "links.uplink.capacity="),
        ("tidegate sweep home-broadband --set flows.call.media.video.fp", "flows.call.media.video.fps="),
        ("tidegate run home-broadband --set links.downlink.cap", ""),
    ],
)
def test_completions_load_little(typed: str, expected: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    output, modules = output_and_modules([], _TIDEGATE_COMPLETE="complete_bash", **words)
    assert output.split() == expected.split()
    assert not modules & HEAVY


def test_work_loads_what_it_needs() -> None:
    assert output_and_modules(["scenario", "list"])[1] >= {"pydantic", "rich", "tidegate.scenario"}


def test_everything_that_is_exported_is_there() -> None:
    assert set(tidegate.__all__) <= set(dir(tidegate))
    for name in tidegate.__all__:
        assert getattr(tidegate, name) is not None
    assert tidegate.pool.run_all([]) == []
    with pytest.raises(AttributeError, match="module 'tidegate' has no attribute 'nothing'"):
        _ = tidegate.nothing  # type: ignore[attr-defined]


def test_type_checkers_see_the_same_names_as_python() -> None:
    """The package lists its names twice: imports for type checkers, and modules for lookups at run time."""
    (block, *_) = [part for part in ast.parse(inspect.getsource(tidegate)).body if isinstance(part, ast.If)]
    listed = {
        alias.name: part.module for part in block.body if isinstance(part, ast.ImportFrom) for alias in part.names
    }
    assert {*listed, "__version__"} == set(tidegate.__all__)
    for name, module in listed.items():
        assert module is not None
        # a module of a package is an attribute of it once it is imported, which `fromlist` does
        assert getattr(tidegate, name) is getattr(__import__(module, fromlist=[name]), name), name


def test_a_public_class_says_where_it_is() -> None:
    """A class is found under its name in the module that it names: pickle and help go by that."""
    modules = [
        tidegate,
        *(part for name in tidegate.__all__ if isinstance(part := getattr(tidegate, name), ModuleType)),
    ]
    classes = {
        part
        for module in modules
        for name in getattr(module, "__all__", vars(module))
        if inspect.isclass(part := getattr(module, name)) and part.__module__.startswith("tidegate")
    }
    assert len(classes) > 100
    assert [part for part in classes if getattr(import_module(part.__module__), part.__name__) is not part] == []


def test_threads_may_be_the_first_to_ask_for_parts() -> None:
    program = """
import sys
sys.setswitchinterval(1e-5)
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import tidegate
names = "report compare plot sweep Run SweepResult Comparison quality metrics pool live_world".split()
together = Barrier(len(names))
def ask(name):
    together.wait()
    return getattr(tidegate, name).__name__
with ThreadPoolExecutor(len(names)) as threads:
    print(list(threads.map(ask, names)))
"""
    # without the lock, five of six processes fail
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
