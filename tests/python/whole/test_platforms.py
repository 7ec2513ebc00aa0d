"""Other systems than this: the package as Windows imports it, and the sentence of what is Linux's alone."""

from __future__ import annotations

import subprocess
import sys

from support import ROOT
from tidegate import Scenario, run

AS_ON_WINDOWS = """
import importlib, pkgutil, sys
# what Python and other packages import by the system is theirs: it comes before the system has another name
import asyncio, multiprocessing, subprocess, tempfile
import distributed, gymnasium, matplotlib.pyplot, numpy, optuna, platformdirs, pydantic, rich.console, simpy, typer
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
sys.platform = "win32"
import tidegate
for module in pkgutil.walk_packages(tidegate.__path__, "tidegate."):
    if module.name != "tidegate.shell._inside":  # a program inside of a network namespace
        importlib.import_module(module.name)
print(tidegate.run(tidegate.Scenario.load("home-broadband", {"duration": "2s"})).digest)
from tidegate.__main__ import script
sys.argv = ["tidegate", "shell", "home-broadband"]
script()
"""


def test_all_but_the_shell_works_without_modules_of_posix() -> None:
    command = [sys.executable, "-W", "ignore", "-c", AS_ON_WINDOWS]
    got = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert got.stdout.strip() == run(Scenario.load("home-broadband", {"duration": "2s"})).digest, got.stderr
    assert got.stderr.strip() == "tidegate: tidegate shell needs Linux: network namespaces and packet sockets"
    assert got.returncode == 2
