"""Processes that go away: what is lost is their run, and no other one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import PLAIN, Cli
from tidegate import pool
from tidegate.errors import RunError
from tidegate.runs._worker import ProcessEnded, TimeLimitExceeded
from tidegate.runs.pool import limited, time_limit

ENDS = """\
import os, signal, time
from tidegate import Controller

class Ends(Controller):
    def __init__(self, seed: int = 0) -> None:
        super().__init__()

    def on_report(self, now_ns, report):
        {body}
"""


@dataclass(frozen=True)
class Job:
    """Something small that a process can be sent."""

    do: Callable[[], Any]

    def __call__(self, tick: pool.Tick) -> Any:
        return self.do()


def seven() -> int:
    return 7


def leave() -> None:
    os._exit(5)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wrong() -> None:
    raise RunError("no")


def nothing_to_send() -> Any:
    return lambda: 1


def test_the_others_go_on() -> None:
    jobs = [Job(function) for function in (seven, leave, seven, killed, wrong, seven, nothing_to_send, seven)]
    done = pool.run_all(jobs, workers=2, processes=True, keep_going=True)
    assert [result for result in done if isinstance(result, int)] == [7, 7, 7, 7]
    assert [type(done[number]) for number in (1, 3, 4)] == [ProcessEnded, ProcessEnded, RunError]
    assert (
        str(done[1])
        == "the process of a run ended with exit code 5: its controller, or a library that the controller uses, ended it"
    )
    assert str(done[3]) == "the process of a run was ended by SIGKILL; the system ends processes that use up the memory"
    assert str(done[4]) == "no"
    assert "test_worker.py" in "".join(getattr(done[4], "__notes__", [])), "where it was raised"
    assert "the result of a run cannot be sent" in str(done[6])


def test_without_keeping_going_the_first_is_raised() -> None:
    started = time.monotonic()
    with pytest.raises(ProcessEnded, match="exit code 5"):
        pool.run_all([Job(leave)] * 200, workers=2, processes=True)
    assert time.monotonic() - started < 60


@pytest.fixture
def controllers(tmp_path: Path) -> Callable[[str], None]:
    (tmp_path / "net.toml").write_text(PLAIN)

    def write(body: str) -> None:
        (tmp_path / "ends.py").write_text(ENDS.format(body=body))

    return write


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("os._exit(3)", "ended with exit code 3: its controller, or a library that the controller uses, ended it"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "was ended by SIGKILL; the system ends processes that use up the memory",
        ),
        ("os.abort()", "was ended by SIGABRT"),
    ],
)
def test_a_comparison_keeps_the_others(cli: Cli, controllers: Callable[[str], None], body: str, why: str) -> None:
    controllers(body)
    names = ["fixed:300kbps", "python:ends.py:Ends", "fixed:400kbps"]
    got = cli("compare", *names, "--scenario", "net.toml", "--seeds", "2", "-j", "2", "--out", "o")
    assert got.code == 1
    # after a warning: seeds change little on this network
    assert got.err.endswith(f"tidegate: 1 of 3 controllers failed:\n{names[1]}: the process of a run {why}\n")
    assert "fixed:400kbps" in got.out
    kept = sorted(path.name for path in Path("o/runs").iterdir())
    assert kept == [f"fixed-{rate}kbps-seed{seed}" for rate in (300, 400) for seed in (1, 2)]


def test_a_sweep_keeps_the_others_and_goes_on(cli: Cli, controllers: Callable[[str], None]) -> None:
    controllers("os._exit(3)")
    argv = ["sweep", "net.toml", "--set", "flows.call.media.controller=fixed,python:ends.py:Ends", "--seeds", "2"]
    got = cli(*argv, "-j", "2", "--out", "o")
    assert got.code == 1
    assert got.err.startswith("tidegate: 2 of 4 runs failed:\nflows.call.media.controller=python:")
    assert got.err.count("the process of a run ended with exit code 3") == 2
    assert len(list(Path("o/results").glob("*.json"))) == 2
    again = cli(*argv, "-j", "2", "--out", "o")
    assert "2 of 4 runs existed already" in again.err


def slow() -> None:
    time.sleep(30)


@pytest.mark.parametrize("processes", [False, True])
def test_a_job_beyond_its_time_limit_is_an_error_of_that_job(*, processes: bool) -> None:
    def ticking(tick: pool.Tick) -> None:
        while tick(0.25):
            time.sleep(0.01)

    endless: Any = Job(slow) if processes else ticking
    began = time.monotonic()
    with limited(0.5):
        late, fine = pool.run_all([endless, Job(seven)], workers=1, processes=processes, keep_going=True)
    assert isinstance(late, TimeLimitExceeded)
    stood = "; it made no progress in the last 0.25 s, as with an endless loop in a controller"
    place = stood if processes else " at 25 % of its simulated time"
    assert str(late) == f"the run took longer than the time limit of 0.5 s, and was ended{place}"
    assert fine == 7
    assert time.monotonic() - began < 20
    assert time_limit() is None


def test_the_start_of_a_process_is_no_part_of_its_run() -> None:
    """A process takes longer to start than this limit."""
    with limited(0.2):
        assert pool.run_all([Job(seven)], processes=True) == [7]


CLOCK = """\
import time
from tidegate import Controller

class Clock(Controller):
    def on_report(self, now_ns, report):
        if now_ns > 1_000_000_000:
            time.sleep(60)
"""


CHOICE = "flows.call.media.controller=python:clock.py:Clock"


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "python:clock.py:Clock", "fixed", "--scenario", "plain.toml", "--jobs", "1"],
        ["sweep", "plain.toml", "--set", f"{CHOICE},fixed", "--out", "out"],
        ["suite", "run", "one.toml", "python:clock.py:Clock", "fixed", "--out", "out"],
        [
            "optimise",
            f"{CHOICE},fixed",
            "--scenario",
            "plain.toml",
            "--for",
            "utilisation",
            "--tries",
            "2",
            "--out",
            "out",
        ],
    ],
)
def test_commands_with_many_runs_end_those_that_take_too_long(command: list[str], tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "clock.py").write_text(CLOCK)
    (tmp_path / "plain.toml").write_text(PLAIN)
    (tmp_path / "one.toml").write_text('seeds = 1\n[[cases]]\nname = "a"\nscenario = "plain.toml"\n')
    began = time.monotonic()
    done = cli(*command, "--time-limit", "2s")
    assert time.monotonic() - began < 45  # in a thread it would sleep on
    assert done.code == (0 if command[0] == "optimise" else 1), done.err  # a search goes on with its other tries
    assert "the run took longer than the time limit of 2 s, and was ended" in done.err
    assert "fixed" in done.out
    for wrong, said in (("0s", "expected a time above zero"), ("2", "needs a unit")):
        refused = cli(*command, "--time-limit", wrong)
        assert refused.code == 2
        assert f"--time-limit: found {wrong}" in refused.err or said in refused.err
    assert "the option is for runs on this machine" in cli(*command, "--time-limit", "2s", "--engine", "dask").err
