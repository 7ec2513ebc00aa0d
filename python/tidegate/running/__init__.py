"""Running a scenario: one run or many at once, on all cores."""

from tidegate.running.recorded import (
    RUN_FILE,
    SIDES,
    FolderJob,
    Run,
    RunJob,
    build,
    engine_errors,
    finite,
    run,
    run_of,
    version,
    versions,
)

__all__ = [
    "RUN_FILE",
    "SIDES",
    "FolderJob",
    "Run",
    "RunJob",
    "build",
    "engine_errors",
    "finite",
    "run",
    "run_of",
    "version",
    "versions",
]
