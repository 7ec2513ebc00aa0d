"""Calls of `docs/examples/calls` as their readers make them, by an ordinary user; part of `make test-live`.

What a program needs is installed into `.cache/calls` by the folder's own `install.sh`.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from real_calls import CALLS, estimate_of, last, said
from support import ROOT, need_namespaces, ordinary_user

pytestmark = pytest.mark.slow

need_namespaces()

from tidegate import Run  # noqa: E402
from tidegate.shell._judging import verdict  # noqa: E402

INSTALLED = ROOT / ".cache" / "calls"
STEP = 20.0
"""Seconds after which the link has 0.5 instead of 2 Mbit/s."""
LINK = [
    "--set",
    f'links.bottleneck.capacity.schedule=[["0s", "2Mbps"], ["{STEP:g}s", "500kbps"]]',
    # short enough to lose packets at the step
    "--set",
    "links.bottleneck.queue.bytes=30kB",
]


@dataclass(frozen=True)
class Surroundings:
    """Folder, user and environment of an ordinary user's calls."""

    folder: Path
    user: list[str]
    env: dict[str, str]


@pytest.fixture(scope="module")
def surroundings() -> Iterator[Surroundings]:
    # pytest's own folders are closed to other users
    with tempfile.TemporaryDirectory(prefix="tidegate-test-") as name:
        folder = Path(name)
        no_arguments: list[str] = []
        plain = (no_arguments, sys.executable, dict(os.environ))
        user, python, env = ordinary_user(folder) if os.geteuid() == 0 else plain
        yield Surroundings(folder, user, {**env, "PYTHON": python, "XDG_CACHE_HOME": str(INSTALLED / "cache")})


def installed(program: str, needs: str) -> Path:
    """The folder of a program, as its `install.sh` leaves it, in `.cache`; skips the test where it cannot be installed."""
    if shutil.which(needs) is None:
        pytest.skip(f"needs {needs}")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for path in (*CALLS.glob("*.py"), CALLS / "scenarios", CALLS / program):
        if path.is_dir():
            left_out = shutil.ignore_patterns("node_modules", ".venv", "peer", "__pycache__")
            shutil.copytree(path, INSTALLED / path.name, dirs_exist_ok=True, ignore=left_out)
        else:
            shutil.copy(path, INSTALLED)
    folder = INSTALLED / program
    made_of = [CALLS.joinpath(program).glob(names) for names in ("*lock*", "requirements.txt", "go.*", "*.go")]
    locks = [path.read_bytes() for paths in made_of for path in sorted(paths)]
    noted = folder / ".installed"
    if not noted.is_file() or noted.read_bytes() != b"".join(locks):
        done = subprocess.run([folder / "install.sh"], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"{program} cannot be installed here: {done.stderr.strip()[-200:]}")
        noted.write_bytes(b"".join(locks))
    # the clip, while we may write where it is kept
    env = {**os.environ, "XDG_CACHE_HOME": str(INSTALLED / "cache")}
    subprocess.run([sys.executable, INSTALLED / "clip.py"], check=True, env=env, capture_output=True, timeout=120)
    return folder


def called(surroundings: Surroundings, folder: Path, *options: str, in_time: bool = True) -> Path:
    """A call's folder; skips the test where the machine was not quiet for three calls.

    Unless it must be in time, packets may have been late: what was lost is as exact then.
    """
    out = surroundings.folder / "call"
    why: list[str] = []
    for _ in range(3):
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run(
            [*surroundings.user, folder / "run.sh", folder.parent / "scenarios" / "steps.toml", "--out", out, *options],
            cwd=surroundings.folder,
            env=surroundings.env,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "all due times and drops are the same in the replay" in done.stdout
        about = json.loads((out / "session.json").read_text())
        state, why = verdict(about)
        if state == "quiet" or (not in_time and not about["missed"] and not about["unwritten"]):
            return out
    pytest.skip(f"this machine is noisy: {why}")


def missing(out: Path) -> tuple[set[int], set[int]]:
    """Sequence numbers of A's media: those that the link dropped, and those that were under way at the end, by the session's files."""
    with (out / "fates.csv").open(newline="") as fates:
        fate = {row["number"]: row["fate"] for row in csv.DictReader(fates)}
    with (out / "arrivals.csv").open(newline="") as arrivals:
        media = [row for row in csv.DictReader(arrivals) if row["from"] == "A" and row["ssrc"]]
    gone = {int(row["sequence"]) for row in media if fate.get(row["number"], "arrives") != "arrives"}
    return gone, {int(row["sequence"]) for row in media if row["number"] not in fate}


@pytest.fixture(scope="module")
def wrtc(surroundings: Surroundings) -> Path:
    return called(surroundings, installed("wrtc", "npm"), "--duration", "40s", *LINK)


def test_libwebrtc_in_node_follows_the_link(wrtc: Path) -> None:
    a, b = said(wrtc, "A"), said(wrtc, "B")
    about: dict[str, Any] = json.loads((wrtc / "session.json").read_text())
    times = np.array([event["unix_s"] - about["began_unix_s"] for event in a])
    estimates = np.array([estimate_of(event) for event in a])
    assert a[-1]["connected_s"] < 5
    assert b[-1]["connected_s"] < 5
    before = [event for event in b if event["unix_s"] - about["began_unix_s"] < STEP][-1]
    assert before["frames"] >= 0.8 * 25 * (before["time_s"] - before["connected_s"])
    assert estimates[(times > STEP - 5) & (times < STEP)].max() > 1e6
    assert estimates[(times > STEP) & (times < STEP + 5)].min() < 0.6e6
    assert last(b[-1]["report"], "framesDecoded") == pytest.approx(b[-1]["frames"], abs=30)


def check_losses(call: Path, names: str, out: Path) -> None:
    """Checks that the recordings of a call, by the pattern of their names, lack the packets that the link lost."""
    gone, under_way = missing(call)
    assert len(gone) >= 5
    files = sorted(str(path) for path in call.glob(names))
    assert len(files) == 2
    typed = ["import", *files, "--same-clock", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", *typed], check=False, timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    table = Run.load(out).table("packets")
    numbers, fate, sent, arrived = (table[name] for name in ("rtp_sequence", "fate", "sent_s", "arrived_s"))
    # what was under way when the recordings ended has been lost for one of them only
    lost_numbers = [int(number) for number in numbers[fate == "lost"] if int(number) not in under_way]
    # packets sent within the largest delay before the end may have arrived after it
    untold = fate == "unknown"
    assert np.all(sent[untold] > np.nanmax(arrived) - np.nanmax(arrived - sent) - 0.002)
    assert sorted(lost_numbers) == sorted(gone - {int(number) for number in numbers[untold]})
    assert len(lost_numbers) >= 5


def test_an_imported_call_has_lost_what_the_link_has(wrtc: Path, tmp_path: Path) -> None:
    check_losses(wrtc, "packets-?.pcapng", tmp_path / "imported")


@pytest.mark.parametrize(("program", "needs"), [("chromium", "chromium"), ("pion", "go"), ("aiortc", "pip")])
def test_other_programs_call_and_their_recordings_have_lost_what_the_link_has(
    surroundings: Surroundings, tmp_path: Path, program: str, needs: str
) -> None:
    folder = installed(program, needs)
    if program == "pion":
        # the clip at its rates, while we may write where it is kept
        env = {**os.environ, "XDG_CACHE_HOME": str(INSTALLED / "cache")}
        subprocess.run([sys.executable, folder / "ladder.py"], check=True, env=env, capture_output=True, timeout=300)
    if program == "aiortc":
        # its environment has the Python that runs these tests, which may be root's alone
        surroundings = Surroundings(surroundings.folder, [], {**os.environ, "XDG_CACHE_HOME": str(INSTALLED / "cache")})
        surroundings.env["PYTHON"] = sys.executable
    # the default link, which loses beside what its queue drops
    out = called(surroundings, folder, "--duration", "15s", "--set", "links.bottleneck.loss=3%", in_time=False)
    a, b = said(out, "A"), said(out, "B")
    assert a[-1]["connected_s"] < 10
    assert b[-1]["connected_s"] < 10
    # frames wait for what is sent again, and on a busy machine an encoder leaves some out
    assert b[-1]["frames"] >= 0.4 * 25 * (b[-1]["time_s"] - b[-1]["connected_s"])
    assert last(b[-1]["report"], "framesDecoded") == pytest.approx(b[-1]["frames"], abs=30)
    assert 50e3 < estimate_of(a[-1]) < 4e6
    check_losses(out, "packets-?.pcapng", tmp_path / "captures")
    if program == "chromium":
        check_losses(out, "event-log-?.log", tmp_path / "logs")
