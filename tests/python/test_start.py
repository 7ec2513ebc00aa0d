"""What the command line loads before it answers: little, where a person or a shell waits for nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support import ROOT

HEAVY = {"IPython", "matplotlib", "numpy", "pydantic", "rich", "tidegate.running", "tidegate.scenario"}

ASK = """\
import sys
from tidegate.cli import main
code = main(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


def asked(argv: list[str], **more: str) -> tuple[str, set[str]]:
    """What the command line says, and which modules are loaded then."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **more}
    got = subprocess.run(
        [sys.executable, "-c", ASK, *argv], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    code, *modules = got.stderr.split()
    assert code == "0"
    return got.stdout, set(modules)


@pytest.mark.parametrize(
    "argv", [["--version"], ["--help"], ["run", "--help"], ["compare", "--help"], ["trace", "generate", "--help"]]
)
def test_help_and_version_load_little(argv: list[str]) -> None:
    said, modules = asked(argv)
    assert "tidegate" in said
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
    said, modules = asked([], _TIDEGATE_COMPLETE="complete_bash", **words)
    assert said.split() == expected.split()
    assert not modules & HEAVY


def test_work_loads_what_it_needs() -> None:
    assert asked(["scenario", "list"])[1] >= {"pydantic", "rich", "tidegate.scenario"}
