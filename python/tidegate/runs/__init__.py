"""Runs of scenarios: one, or many at once on all cores."""

from tidegate.runs._tables import SIDES, Kept, capture_file
from tidegate.runs._versions import build, version, versions
from tidegate.runs.jobs import FolderJob, RunJob, attempt, execute, run, run_of
from tidegate.runs.result import RUN_FILE, Run

__all__ = [
    "RUN_FILE",
    "SIDES",
    "FolderJob",
    "Kept",
    "Run",
    "RunJob",
    "attempt",
    "build",
    "capture_file",
    "execute",
    "run",
    "run_of",
    "version",
    "versions",
]
