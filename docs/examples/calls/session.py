"""A call of two real programs through `tidegate shell`: what the folders' `run.sh` begin.

Both ends run the same program, which learns from TIDEGATE_SIDE whether it sends (A) or receives (B). It finds

CALL_CLIP    the pictures to send: a YUV4MPEG2 file, 4:2:0; that of clip.py where this variable names no other
CALL_FOLDER  an empty folder that both ends see, for signalling, and for stats-SIDE.jsonl, which is moved to the
             session's folder in the end, with any other file in it that is named for its side: NAME-SIDE.SUFFIX

besides what every program in a session finds (TIDEGATE_ADDRESS, TIDEGATE_PEER).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

try:
    import clip
except ModuleNotFoundError as missing:
    if missing.name != "tidegate":
        raise
    sys.exit(f"{sys.executable} has no tidegate: install it there, or say where it is, as in PYTHON=.venv/bin/python")

HELP = """\
Further options are those of tidegate shell, such as --duration 30s, --seed 2, --set KEY=VALUE, --realtime off.

Example: run.sh ../scenarios/steps.toml --out call && tidegate report call
"""


def main(typed: Sequence[str]) -> int:
    """Runs `PROGRAM [ARGUMENTS] -- SCENARIO [OPTIONS]` and gives the exit code of the session."""
    at = typed.index("--")
    program, options = typed[:at], typed[at + 1 :]
    parser = argparse.ArgumentParser(
        prog="run.sh",
        description="A call of two real programs on the links of a scenario.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("scenario", help="scenario file, or a name from tidegate scenario list")
    parser.add_argument("--out", type=Path, default=Path("call"), help="folder for captures, statistics and the run")
    known, more = parser.parse_known_args(options)
    if "--" in more:
        parser.error("found a program after --; both ends run the program of this folder")
    with tempfile.TemporaryDirectory(prefix="tidegate-call-") as folder:
        shell = ["shell", known.scenario, *more, "--pcap", "--out", str(known.out)]
        told = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "tidegate", *shell, "--", *program, "--", *program],
            env={**os.environ, "CALL_FOLDER": folder, "CALL_CLIP": os.environ.get("CALL_CLIP") or str(clip.made())},
            check=False,
        )
        if (known.out / "session.json").is_file():
            for file in sorted([*Path(folder).glob("*-A.*"), *Path(folder).glob("*-B.*")]):
                shutil.move(file, known.out / file.name)
    return told.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
