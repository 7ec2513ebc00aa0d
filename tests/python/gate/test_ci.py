"""docs/ci.md: its repository is made, its commands are run, and its gate fails if a controller became worse."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import ROOT
from support.workflow import Job, action
from tidegate.gate.rules import DEFAULT

PAGE = (ROOT / "docs" / "ci.md").read_text()
SMALLER = "--cases 5.1 --seeds 12 --jobs 1 "


def files() -> dict[str, str]:
    """Files of the repository that the page shows, by name."""
    listings = re.findall(r'^``` \{\.\w+ title="(.*?)"\}\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE)
    return dict(listings)


def steps() -> dict[str, dict[str, Any]]:
    """The steps of its workflow by their names."""
    workflow = yaml.safe_load(files()[".github/workflows/gate.yml"])
    return {step["name"]: step for step in workflow["jobs"]["gate"]["steps"] if "name" in step}


def rows(comment: str) -> list[str]:
    """The lines of the table behind a comment, without its head."""
    table = PAGE.partition(f"<!-- {comment}")[2].partition("|---")[2].partition("\n\n")[0]
    return table.splitlines()[1:]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, with its baselines."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo, which builds the controller in Rust")
    folder = tmp_path_factory.mktemp("repository")
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = sh((folder / "baselines.sh").read_text().replace("--suite smoke", f"{SMALLER}--suite smoke"), folder)
    assert done.returncode == 0, done.stderr
    return folder


def sh(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs commands as a step's shell does; `tidegate` is that of this Python."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": str(folder / "target"), "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        ["sh", "-e", "-c", commands], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def gate(name: str, folder: Path, temporary: Path) -> tuple[int, Job]:
    """Does the action's check as a step of the workflow asks for it, on the case of `SMALLER`."""
    job = Job(folder, temporary)
    inputs = {**steps()[name]["with"], "arguments": f"{SMALLER.partition('--seeds')[0]} --jobs 1 --time-limit 60s"}
    return job.do(inputs, ("Check",)), job


def test_the_page_has_a_whole_workflow() -> None:
    assert list(steps()) == ["Build", "The controller in Python", "The controller in Rust"]
    assert {step["uses"] for step in steps().values() if "uses" in step} == {"./tidegate/action"}
    assert set(files()) == {
        "aimd.py", "Cargo.toml", "src/lib.rs", "backoff.py", "baselines.sh", ".github/workflows/gate.yml", ".gitlab-ci.yml",
    }  # fmt: skip


def test_the_page_has_every_input_of_the_action() -> None:
    stated = [tuple(cell.strip() for cell in line.split("|")[1:4]) for line in rows("the inputs of action/action.yml")]

    def default(about: dict[str, Any]) -> str:
        return "required" if about.get("required") else f"`{about['default']}`" if about["default"] else ""

    inputs = action()["inputs"].items()
    assert stated == [(f"`{name}`", default(about), about["description"].strip()) for name, about in inputs]


def test_the_job_for_gitlab_runs_the_check_and_reports_it(repository: Path, tmp_path: Path) -> None:
    job = yaml.safe_load(files()[".gitlab-ci.yml"])["gate"]
    install, folder, command = job["script"]
    assert install.startswith("pip install ")
    workspace = tmp_path / "gitlab"
    shutil.copytree(repository, workspace)
    assert sh(folder, workspace).returncode == 0
    done = sh(f"{command} {SMALLER}", workspace)
    assert done.returncode == 0, done.stderr
    report = workspace / job["artifacts"]["reports"]["junit"]
    assert "<testsuites" in report.read_text()
    assert report.parent.name in job["artifacts"]["paths"]


def test_the_page_has_the_default_rules() -> None:
    assert tuple(line.split("`")[1] for line in rows("the default rules")) == DEFAULT


@pytest.mark.parametrize(
    ("step", "file", "old", "new"),
    [
        ("The controller in Python", "aimd.py", "down: float = 0.85", "down: float = 0.4"),
        ("The controller in Rust", "src/lib.rs", "1.0 - 0.5 *", "0.6 - 0.5 *"),
    ],
)
def test_each_gate_passes_what_is_the_same_and_fails_what_is_worse(
    repository: Path, tmp_path: Path, step: str, file: str, old: str, new: str
) -> None:
    build = steps()["Build"]["run"]
    assert sh(build, repository).returncode == 0
    code, job = gate(step, repository, tmp_path)
    assert code == 0, job.log
    assert "nothing is worse" in job.summary
    right = (repository / file).read_text()
    assert old in right
    (repository / file).write_text(right.replace(old, new))
    try:
        built = sh(build, repository)
        assert built.returncode == 0, built.stderr
        code, job = gate(step, repository, tmp_path)
        assert code == 1, job.log
        python = {"aimd.py": "aimd.py", "src/lib.rs": "backoff.py"}[file]
        assert re.search(rf"::error file={python},line=\d+,title=5.1 became worse::utilisation", job.log), job.log
        assert "5.1 over 100 s" in job.summary
        outputs = job.outputs["check"]
        assert (repository / outputs["picture"]).read_bytes().startswith(b"\x89PNG")
        assert 'failures="' in (repository / outputs["junit"]).read_text()
    finally:
        (repository / file).write_text(right)
