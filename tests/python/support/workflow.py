"""Steps of the action for workflows, done as a runner does them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support import ROOT

ACTION = ROOT / "action"


def action() -> dict[str, Any]:
    """The action's file."""
    loaded: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text())
    return loaded


@dataclass
class Job:
    """A job's folder and its outputs, as the runner of a workflow keeps them."""

    workspace: Path
    temporary: Path
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""
    summary: str = ""

    def value(self, text: str, inputs: Mapping[str, str]) -> str:
        """A text of the action with the values of its expressions."""

        def insert(match: re.Match[str]) -> str:
            match match[1].split("."):
                case ["inputs", name]:
                    return inputs[name]
                case ["steps", step, "outputs", name]:
                    return self.outputs.get(step, {}).get(name, "")
                case ["runner", "temp"]:
                    return str(self.temporary)
                case ["runner", name]:
                    return {"os": "Linux", "arch": "X64"}[name]
                case other:
                    raise AssertionError(f"an expression that the test does not know: {other}")

        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", insert, text)

    def do(self, given: Mapping[str, str], steps: tuple[str, ...]) -> int:
        """Does these steps of the action; the exit code is that of the first that fails."""
        inputs = {name: given.get(name, about.get("default", "")) for name, about in action()["inputs"].items()}
        assert set(given) <= set(inputs)
        for step in action()["runs"]["steps"]:
            skipped = "if" in step and step["if"] == "inputs.wheel == ''" and inputs["wheel"]
            if step["name"] not in steps or skipped or "uses" in step:
                continue
            code = self._run(step, inputs)
            if code:
                return code
        return 0

    def _run(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> int:
        assert step["shell"] == "bash"
        files = {name: self.temporary / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "python"), "GITHUB_ACTION_PATH": str(ACTION)}
        env |= {name: str(file) for name, file in files.items()}
        env |= {name: self.value(text, inputs) for name, text in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        self.log += done.stdout
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        self.outputs[step.get("id", step["name"])] = dict(line.split("=", 1) for line in lines)
        return done.returncode
