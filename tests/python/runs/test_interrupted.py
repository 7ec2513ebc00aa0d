"""Signals, closed streams, failures of one among several: nothing is lost, and no traceback is printed."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tidegate
from support import PLAIN, ROOT, Cli, begin, interrupt
from tidegate import Comparison, compare, scenario_for, sweep
from tidegate.errors import InputError, RunError

MINE = """\
import tidegate

class Mine(tidegate.Controller):
    def on_report(self, now_ns, report):
        {body}
"""
RUNNING = "open('running', 'w').close(); return 10**6"
BASE = ("compare", "--duration", "100000s", "--capacity", "5Mbps", "--out", "o", "python:mine.py:Mine", "gcc")


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("whole", [False, True], ids=["one process", "its whole group"])
def test_sigterm_is_ctrl_c(jobs: str, whole: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body=RUNNING))
    process = begin([*BASE, "--jobs", jobs], tmp_path, start_new_session=True)
    code, out, err = interrupt(process, tmp_path / "running", number=signal.SIGTERM, group=whole)
    assert (code, out, err) == (130, "", "tidegate: stopped; nothing was written\n")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["mine.py", "running"]


def test_sigterm_in_a_sweep_keeps_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN.replace('"4s"', '"20s"'))
    delays = ",".join(f"{ms}ms" for ms in range(1, 201))
    process = begin(["sweep", "x.toml", "--set", f"links.cable.delay={delays}", "--out", "o"], tmp_path)
    code, _, err = interrupt(process, tmp_path / "o" / "results", more_than=1, number=signal.SIGTERM)
    assert code == 130
    assert "runs are done and kept in o; the same command goes on from there" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_is_loading(number: signal.Signals, tmp_path: Path) -> None:
    # a module that is imported on the way tells that loading has begun, and takes its time
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "typer.py").write_text(
        "import time\nopen('loading', 'w').close()\ntime.sleep(60)\nraise AssertionError\n"
    )
    path = f"{tmp_path / 'slow'}{os.pathsep}{ROOT / 'python'}"
    process = begin(["version"], tmp_path, PYTHONPATH=path)
    code, out, err = interrupt(process, tmp_path / "loading", number=number, handled=False)
    assert (code, out, err) == (-number, "", "")


SCENARIO = PLAIN.replace('"4s"', '"40000s"')
VERBS = [
    ["run", "x.toml", "--out", "o"],
    ["compare", "gcc", "fixed", "--scenario", "x.toml", "--seeds", "2", "--out", "o"],
    ["compare", "python:mine.py:Mine", "gcc", "--scenario", "x.toml", "-j", "2", "--out", "o"],
    ["sweep", "x.toml", "--set", "links.cable.delay=10ms,20ms,30ms", "--seeds", "2", "--out", "o"],
    ["suite", "run", "smoke", "gcc", "--seeds", "200", "--out", "o"],
    ["scenario", "check", "x.toml"],
]


def loads_the_engine(process: subprocess.Popen[str]) -> bool:
    """Whether the command line has begun to load."""
    try:
        return "_core" in Path(f"/proc/{process.pid}/maps").read_text()
    except OSError:
        return True


def end_at(moment: float, number: signal.Signals, argv: list[str], folder: Path) -> None:
    """A signal so long after a command began: it ends by it, or in order where work was under way, and soon."""
    folder.mkdir()
    (folder / "x.toml").write_text(SCENARIO)
    (folder / "mine.py").write_text(MINE.format(body="return 10**6"))
    process = begin(argv, folder)
    while number is signal.SIGINT and not loads_the_engine(process):
        time.sleep(0.005)  # before that Ctrl-C is the interpreter's own matter
    time.sleep(moment)
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"{argv} goes on after {number.name} at {moment:.3f} s")
    said = f"{argv} after {number.name} at {moment:.3f} s: {process.returncode}, {out!r}, {err!r}"
    assert process.returncode in {-number, 130} | ({0} if argv[:2] == ["scenario", "check"] else set()), said
    assert "Traceback" not in err, said
    assert "Exception ignored" not in err, said
    if process.returncode == 130:
        assert err.startswith("tidegate: stopped"), said
    else:
        assert err == "", said
    shutil.rmtree(folder)


def end_at_random(count: int, seed: int, folder: Path) -> None:
    """Moments from the first line on until runs are under way, which they are for minutes."""
    draw = random.Random(seed)
    numbers = [signal.SIGINT, signal.SIGTERM]
    jobs = [(draw.uniform(0.0, 1.2), draw.choice(numbers), draw.choice(VERBS), folder / str(at)) for at in range(count)]
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda job: end_at(*job), jobs):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_signals_at_random_moments_end_every_command(tmp_path: Path) -> None:
    end_at_random(40, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_a_hundred_more_signals(seed: int, tmp_path: Path) -> None:
    end_at_random(100, seed, tmp_path)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    text = command.replace("tidegate", f"{sys.executable} -m tidegate")
    return subprocess.run(
        ["sh", "-c", text], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("command", ["version", "version --json", "run x.toml --out o", "--help"])
def test_a_closed_output_is_told(command: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    got = shell(f"tidegate {command} >&-", tmp_path)
    assert (got.returncode, got.stderr) == (
        1,
        "tidegate: standard output: is closed, so that results cannot be shown\n",
    )
    # what does not go there is done all the same
    assert (tmp_path / "o" / "run.json").is_file() == ("--out" in command)


def test_all_streams_closed(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    assert shell("tidegate run x.toml --out o <&- >&- 2>&-", tmp_path).returncode == 1
    assert tidegate.Run.load(tmp_path / "o").seed == 1
    assert shell("tidegate gibberish 2>&-", tmp_path).returncode == 2


def test_a_full_disk_behind_the_output(tmp_path: Path) -> None:
    got = shell("tidegate scenario schema > /dev/full", tmp_path)
    assert (got.returncode, got.stderr) == (1, "tidegate: No space left on device\n")


# --- one of several fails -------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", ["1", "2"])
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if now_ns > 10**9: raise ValueError('no')\n        return 10**6", "on_report raised ValueError: no"),
        (
            "return 10**6\n    def __init__(self):\n        1 / 0",
            "the constructor raised ZeroDivisionError: division by zero",
        ),
    ],
)
def test_the_others_are_kept_when_one_controller_fails(
    body: str, why: str, seeds: str, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body=body))
    argv = (
        "compare",
        "gcc",
        "python:mine.py:Mine",
        "fixed",
        "--duration",
        "3s",
        "--capacity",
        "2Mbps",
        "--seeds",
        seeds,
    )
    got = cli(*argv, "--out", "o")
    assert got.code == 1
    assert re.search(r"^tidegate: 1 of 3 controllers failed:\npython:mine\.py:Mine: ", got.err, re.MULTILINE), got.err
    assert why in got.err
    assert "Traceback" not in got.err
    head, *lines = (line for line in got.out.splitlines()[2:] if line)
    assert head.split()[:3] == ["gcc", "fixed", "python:mine.py:Mine"]
    delay = next(line for line in lines if line.startswith("one-way delay"))
    assert "failed" in delay
    again = Comparison.load(tmp_path / "o")
    assert list(again.runs) == ["gcc", "fixed"]
    assert why in again.failed["python:mine.py:Mine"]
    assert "`python:mine.py:Mine` failed: " in (tmp_path / "o" / "table.md").read_text()
    assert why in (tmp_path / "o" / "report.html").read_text()
    # the others are what they are without it
    alone = compare(["gcc", "fixed"], scenario_for(capacity="2Mbps", duration="3s"), seeds=int(seeds))
    digests = {name: [run.digest for run in some] for name, some in alone.runs.items()}
    assert {name: [run.digest for run in some] for name, some in again.runs.items()} == digests
    data = cli(*argv, "--json")
    assert data.code == 1
    assert set(json.loads(data.out)["failed"]) == {"python:mine.py:Mine"}


def test_when_all_fail_nothing_is_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body="raise ValueError('no')"))
    got = cli("compare", "python:mine.py:Mine", "python:mine.py:Mine:", "--duration", "2s", "--out", "o")
    assert got.code != 0
    assert not (tmp_path / "o").exists()
    with pytest.raises(RunError, match="on_report raised ValueError: no"):
        compare([f"python:{tmp_path}/mine.py:Mine"], scenario_for(capacity="2Mbps", duration="2s"))


def test_a_sweep_keeps_what_went_well_beside_a_controller_that_cannot_be_made(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body="return 1\n    def __init__(self):\n        1 / 0"))
    (tmp_path / "x.toml").write_text(PLAIN)
    got = cli("sweep", "x.toml", "--set", "flows.call.media.controller=python:mine.py:Mine,gcc", "--out", "o")
    assert got.code == 1
    assert "1 of 2 runs failed:" in got.err
    assert "the constructor raised ZeroDivisionError" in got.err
    assert (tmp_path / "o" / "summary.csv").is_file()


# --- what is asked for ----------------------------------------------------------------------------

WRONG_SEEDS = [
    ([1, 1], "seeds: found 1 twice; expected different seeds, since the same seed repeats the same run"),
    ([], "seeds: found none; expected at least one"),
    (0, "seeds: found 0; expected from 1 to 100000 seeds"),
    (True, "seeds: found True; expected the number of seeds, or a list of whole numbers"),
    ("12", "seeds: found '12'; expected the number of seeds, or a list of whole numbers"),
    (2.5, "seeds: found 2.5; expected the number of seeds, or a list of whole numbers"),
    ([1, True], "seeds[1]: found True; expected a whole number from 0 to 2^64 - 1"),
    ([1, -1], "seeds[1]: found -1; expected a whole number from 0 to 2^64 - 1"),
    ([1, "2"], "seeds[1]: found '2'; expected a whole number from 0 to 2^64 - 1"),
]


@pytest.mark.parametrize(("seeds", "message"), WRONG_SEEDS, ids=repr)
def test_wrong_seeds(seeds: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        compare(["gcc"], "home-broadband", seeds=seeds)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        sweep("home-broadband", {}, out=tmp_path / "o", seeds=seeds)  # type: ignore[arg-type]


def test_a_name_where_a_list_is_expected() -> None:
    with pytest.raises(InputError, match=r'^controllers: found "gcc"; expected a list, such as \["gcc"\]$'):
        compare("gcc")
