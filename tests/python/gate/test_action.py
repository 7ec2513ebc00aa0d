"""The action for workflows: its steps on a repository with a controller that stays, becomes worse, or breaks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.workflow import Job, action

SUITE = """
description = "A rate that one has to find."

[[cases]]
name = "home"
scenario = "home-broadband"
set = { duration = "6s" }
"""
CONTROLLER = """
from tidegate import Controller

class Steady(Controller):
    SHARE = 0.9

    def on_limits(self, now_ns, limits):
        return 1_000_000

    def on_report(self, now_ns, report):
        return int(self.SHARE * 1_000_000)
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a controller, a suite and a baseline."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "suite.toml").write_text(SUITE)
    (folder / "steady.py").write_text(CONTROLLER)
    command = "-m tidegate check baseline.json python:steady.py:Steady --suite suite.toml --seeds 20 --write"
    subprocess.run([sys.executable, *command.split()], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def job(repository: Path, tmp_path: Path) -> Job:
    workspace = tmp_path / "workspace"
    shutil.copytree(repository, workspace)
    (tmp_path / "temporary").mkdir()
    return Job(workspace, tmp_path / "temporary")


def checked(job: Job, **given: str) -> int:
    return job.do({"baseline": "baseline.json", **given}, ("Check",))


def test_a_controller_that_stays_passes(job: Job) -> None:
    assert checked(job) == 0, job.log
    junit = job.workspace / "tidegate-check" / "junit.xml"
    assert job.outputs["check"] == {"exit-code": "0", "junit": "tidegate-check/junit.xml", "picture": ""}
    assert 'failures="0"' in junit.read_text()
    assert "nothing is worse" in job.summary
    assert "::error" not in job.log


def test_a_controller_that_became_worse_fails(job: Job) -> None:
    file = job.workspace / "steady.py"
    file.write_text(CONTROLLER.replace("SHARE = 0.9", "SHARE = 0.5"))
    assert checked(job) == 1, job.log
    assert job.outputs["check"]["exit-code"] == "1"
    assert (job.workspace / job.outputs["check"]["picture"]).read_bytes().startswith(b"\x89PNG")
    assert 'failures="1"' in (job.workspace / job.outputs["check"]["junit"]).read_text()
    assert "::error file=steady.py,line=4,title=" in job.log
    assert "::error" not in job.summary
    assert "worse" in job.summary


def test_rules_and_arguments_are_those_of_the_inputs(job: Job) -> None:
    (job.workspace / "steady.py").write_text(CONTROLLER.replace("SHARE = 0.9", "SHARE = 0.5"))
    assert checked(job, rules="loss > +5pp\n\n  utilisation < -60%\n", arguments="--jobs 1 --cases 'ho*'") == 0, job.log
    assert checked(job, rules="utilisation < -20%", arguments="", controller="python:steady.py:Steady", out="o p") == 1
    assert job.outputs["check"]["picture"] == "o p/before-after.png"


@pytest.mark.parametrize(
    ("old", "new", "code", "reason"),
    [
        ("return int(self.SHARE * 1_000_000)", "raise RuntimeError('no rate')", 1, "no rate"),
        ("from tidegate import", "import library_of_mine\nfrom tidegate import", 2, "library_of_mine"),
    ],
)
def test_a_controller_that_breaks_fails_with_its_reason(job: Job, old: str, new: str, code: int, reason: str) -> None:
    (job.workspace / "steady.py").write_text(CONTROLLER.replace(old, new))
    assert checked(job) == code, job.log
    assert job.outputs["check"]["exit-code"] == str(code)
    assert reason in job.summary
    assert re.search(rf"::error file=steady\.py.*{reason}", job.log), job.log
    assert reason in (job.workspace / job.outputs["check"]["junit"]).read_text()


def test_the_cached_wheel_is_of_these_sources(job: Job) -> None:
    steps = ("Identify the sources of tidegate",)
    assert job.do({"baseline": "baseline.json"}, steps) == 0, job.log
    first = job.outputs["sources"]["hash"]
    assert re.fullmatch(r"[0-9a-f]{32}", first)
    cache = next(step["with"] for step in action()["runs"]["steps"] if "uses" in step)
    assert job.value(cache["key"], {}).endswith(first)
    install = next(step for step in action()["runs"]["steps"] if step["name"] == "Install tidegate")
    assert cache["path"] == install["env"]["BUILT"]


def test_a_wheel_that_is_missing_is_said(job: Job) -> None:
    assert job.do({"baseline": "baseline.json", "wheel": "./tidegate-*.whl"}, ("Install tidegate",)) == 2
    assert "::error title=tidegate is not installed::./tidegate-*.whl: the input `wheel` names a file" in job.log
