"""Real programs beside simulated controllers: sessions in namespaces of their own, some seconds each (make test-live).

Everything is sent within namespaces that the sessions make. Skips where they are forbidden.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import ROOT, need_namespaces

pytestmark = pytest.mark.slow

need_namespaces()

from tidegate import Comparison, Run, RunError, compare  # noqa: E402
from tidegate.shell import replay  # noqa: E402
from tidegate.suite import SuiteResult  # noqa: E402

EXAMPLE = str(ROOT / "docs" / "examples" / "rtp_cbr.py")
SENDER = f"program:{shlex.quote(sys.executable)} {shlex.quote(EXAMPLE)}"

LINK = """\
duration = "8s"
warmup = "4s"

[[links]]
name = "link"
capacity = "1Mbps"
delay = "20ms"
loss = "2%"
queue = { time = "200ms" }

[[flows]]
name = "call"
media = { controller = "gcc", video = { source = "ideal" }, audio = false }

[[flows]]
name = "cross"
udp = { rate = "200kbps", pattern = "poisson" }
"""


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A scenario's file."""
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    return file


def program(code: str) -> str:
    """A program in Python as a contender."""
    return f"program:{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def tidegate(folder: Path, *typed: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "tidegate", *typed]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout, check=False)


def test_a_constant_sender_has_the_numbers_of_a_simulated_one(link: Path) -> None:
    done = compare(["fixed:500kbps", SENDER], link, seeds=2)
    assert not done.failed
    simulated, live = (done.runs[label] for label in ("fixed:500kbps", SENDER))
    assert [run.seed for run in live] == [1, 2]
    for live_run, simulated_run in zip(live, simulated, strict=True):
        ours, theirs = live_run.metrics(), simulated_run.metrics()
        assert live_run.session is not None
        assert live_run.session["replay_differs"] is None
        # packets of 1000 bytes each 16 ms on one side, frames each 33 ms on the other; 4 s of them lose 2 % of 250
        assert ours["sending_rate_bps"] == pytest.approx(500_000, rel=0.02)
        assert ours["receive_rate_bps"] == pytest.approx(theirs["receive_rate_bps"], rel=0.05)
        assert ours["goodput_bps"] == pytest.approx(theirs["goodput_bps"], rel=0.08)
        assert ours["loss_fraction"] == pytest.approx(theirs["loss_fraction"], abs=0.03)
        assert ours["one_way_delay_ms_p50"] == pytest.approx(theirs["one_way_delay_ms_p50"], abs=5.0)
        assert ours["frames_rendered"] is None
        assert theirs["frames_rendered"] is not None
        # the competition is the same, packet for packet
        assert live_run.metrics("cross")["packets_sent"] == simulated_run.metrics("cross")["packets_sent"]


def test_a_comparison_with_a_program_is_one_like_any_other(tmp_path: Path, link: Path) -> None:
    leaves = "import os, pathlib, runpy\npathlib.Path(os.environ['TIDEGATE_FOLDER'], os.environ['TIDEGATE_SIDE']).write_text(os.environ['TIDEGATE_SEED'])\n"
    sender = program(leaves + f"runpy.run_path({EXAMPLE!r}, run_name='__main__')")
    done = tidegate(tmp_path, "compare", sender, "gcc", "--scenario", str(link), "--out", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert "1 session of programs in real time takes about 10 s" in done.stderr
    comparison = json.loads(done.stdout)
    assert comparison["controllers"] == [sender, "gcc"]
    (live,) = [run for run in comparison["runs"] if run["controller"] == sender]
    assert live["session"]["verdict"] in {"quiet", "noisy"}
    again = Comparison.load(tmp_path / "out")
    run = again.runs[sender][0]
    assert run.subject == "call"
    assert run.metrics("call.feedback")["packets_sent"] >= 4
    # what both programs left is kept with the run, and what is needed for its replay
    (folder,) = (tmp_path / "out" / "runs").glob("*/shared")
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"A": "1", "B": "1"}
    _, differs = replay(folder.parent, run.scenario, seed=1)
    assert differs is None
    for name in ("table.md", "report.html"):
        assert "program:" in (tmp_path / "out" / name).read_text()
    assert (tmp_path / "out" / "comparison.png").stat().st_size > 10_000
    assert tidegate(tmp_path, "report", "out").returncode == 0


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('no camera'); raise SystemExit(3)", "ended with exit code 3 after "),
        (
            "import time; time.sleep(60)",
            "side A sent nothing to 10.77.0.2 (TIDEGATE_PEER); the program printed nothing",
        ),
        ("pass", "of 8 s; expected a program that runs until SIGTERM; the program printed nothing"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9"),
    ],
)
def test_what_goes_wrong_with_a_program_is_told_and_the_others_stay(
    tmp_path: Path, link: Path, code: str, says: str
) -> None:
    done = tidegate(tmp_path, "compare", program(code), "gcc", "--scenario", str(link), "--out", "out")
    assert done.returncode == 1
    assert "1 of 2 controllers failed" in done.stderr
    assert says in done.stderr
    if "camera" in code:
        assert "the program printed last: 'no camera'" in done.stderr.replace('"', "'")
    assert "Traceback" not in done.stderr
    assert Comparison.load(tmp_path / "out").controllers == ["gcc"]


def test_the_only_one_that_fails_is_an_error(link: Path) -> None:
    with pytest.raises(RunError, match="ended with exit code 3"):
        compare([program("raise SystemExit(3)")], link)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_in_order(tmp_path: Path, link: Path, number: signal.Signals) -> None:
    up = "import os, time; open(os.environ['UP'] + os.environ['TIDEGATE_SIDE'], 'w'); time.sleep(99)"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "UP": str(tmp_path / "up-")}
    typed = ["suite", "run", str(suite(tmp_path, link)), "gcc", program(up), "--out", "out", "--seeds", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", *typed], env=env, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    try:
        end = time.monotonic() + 90
        while not all((tmp_path / f"up-{side}").exists() for side in "AB"):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "1 of 2 runs are done and kept in out; the same command goes on from there" in err


def suite(folder: Path, link: Path) -> Path:
    """A suite of one case that programs can take part in, and one that they cannot."""
    rules = (("receive_rate_bps", "at_least = 300000"), ("frame_delay_ms_p95", "at_most = 5000"))
    text = f'description = "d"\nsource = "ours"\n\n[[cases]]\nname = "link"\nscenario = "{link}"\n'
    for metric, limit in rules:
        text += f'\n[[rules]]\nname = "{metric}"\nsays = "s"\nmetric = "{metric}"\n{limit}\nsource = "ours"\n'
    (folder / "suite.toml").write_text(text)
    return folder / "suite.toml"


def test_a_suite_has_programs_beside_controllers_and_goes_on_where_it_was(tmp_path: Path, link: Path) -> None:
    file = suite(tmp_path, link)
    with file.open("a") as more:
        more.write('\n[[cases]]\nname = "two"\nscenario = "rfc8867-5.2-two-flows"\nset = { duration = "5s" }\n')
    typed = ["suite", "run", str(file), "gcc", SENDER, "--out", "out", "--seeds", "1"]
    done = tidegate(tmp_path, *typed)
    assert done.returncode == 0, done.stderr
    result = SuiteResult.load(tmp_path / "out")
    cell = result.cell("link", SENDER)
    assert cell.state == "pass"
    # nothing is known of its frames
    assert [one.rule.name for one in cell.checks] == ["receive_rate_bps"]
    assert len(result.cell("link", "gcc").checks) == 2
    assert result.cell("two", SENDER).state == "not run"
    assert "calls" in result.cell("two", SENDER).why
    # what it could have had is what the call could have had
    shares = [
        result.rows["link", one][1]["measures"]["series"]["flows"]["call"]["share_bps"] for one in ("gcc", SENDER)
    ]
    assert shares[0] == shares[1]
    assert min(shares[0]) > 300_000
    (folder,) = (tmp_path / "out" / "sessions").iterdir()
    assert Run.load(folder).session is not None
    started = time.monotonic()
    again = tidegate(tmp_path, *typed)
    assert again.returncode == 0, again.stderr
    assert "3 of 3 runs existed already" in again.stderr
    assert "wall clock" not in again.stderr
    assert time.monotonic() - started < 60
