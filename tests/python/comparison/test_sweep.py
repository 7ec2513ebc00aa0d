"""A sweep resumes from the contents of its results, not from their names."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from support import PLAIN, Cli, begin
from tidegate import Controller, InputError, Limits, OutputError, Scenario, SweepResult, runs, sweep
from tidegate.comparison import sweeping
from tidegate.results import Results

GRID = {"links.cable.delay": ["10ms", "20ms"]}


@pytest.fixture
def small() -> Scenario:
    return Scenario.parse(PLAIN.replace('"4s"', '"1s"'))


def results(out: Path) -> list[Path]:
    return sorted(path for path in (out / "results").iterdir() if path.suffix == ".json")


def test_a_result_under_the_name_of_another_is_not_taken(small: Scenario, tmp_path: Path) -> None:
    out = tmp_path / "s"
    done = sweep(small, GRID, out=out, seeds=2)
    first, second, *_ = results(out)
    shutil.copy(first, second)
    again = sweep(small, GRID, out=out, seeds=2)
    assert again.resumed == 3
    assert again.to_csv() == done.to_csv()
    # files that were there before stay
    assert second.with_name(f"{second.name}.kept-1").read_bytes() == first.read_bytes()
    # a result with a changed number
    first.write_text(first.read_text().replace('"packets_sent": ', '"packets_sent": 1'))
    again = sweep(small, GRID, out=out, seeds=2)
    assert again.resumed == 3
    assert again.to_csv() == done.to_csv()
    assert sweep(small, GRID, out=out, seeds=2).resumed == 4


def test_another_engine_runs_anew(small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "s"
    assert sweep(small, GRID, out=out).resumed == 0
    assert sweep(small, GRID, out=out).resumed == 2
    assert len(runs.build()) == 16
    monkeypatch.setattr(sweeping, "build", lambda: "another")
    assert sweep(small, GRID, out=out).resumed == 0


def test_other_code_of_a_controller_runs_anew(tmp_path: Path) -> None:
    code = (
        "import tidegate\nimport {helper}\nclass Mine(tidegate.Controller):\n"
        "    def on_limits(self, now_ns, limits):\n        return {rate}\n"
        "    def on_report(self, now_ns, report):\n        return {rate}\n"
    )
    helper = f"helper_{os.getpid()}"
    sys.path.insert(0, str(tmp_path))
    try:
        (tmp_path / f"{helper}.py").write_text("RATE = 1\n")
        (tmp_path / "mine.py").write_text(code.format(helper=helper, rate=400_000))
        mine = Scenario.parse(PLAIN.replace('"gcc"', f'"python:{tmp_path}/mine.py:Mine"').replace('"4s"', '"1s"'))
        out = tmp_path / "s"
        first = sweep(mine, {}, out=out)
        assert sweep(mine, {}, out=out).resumed == 1
        # the same file with other contents has another key
        (tmp_path / "mine.py").write_text(code.format(helper=helper, rate=1_400_000))
        second = sweep(mine, {}, out=out)
        assert second.resumed == 0
        assert second.rows[0]["digest"] != first.rows[0]["digest"]
        # so has a changed module that it imports
        (tmp_path / f"{helper}.py").write_text("RATE = 12\n")
        assert sweep(mine, {}, out=out).resumed == 0
    finally:
        sys.path.remove(str(tmp_path))


def test_other_contents_of_a_trace_run_anew(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_s,rate_mbps\n0,1\n1,2\n")
    (tmp_path / "x.toml").write_text(PLAIN.replace('"2Mbps"', '{ trace = "t.csv" }').replace('"4s"', '"1s"'))
    assert sweep(tmp_path / "x.toml", {}, out=tmp_path / "s").resumed == 0
    assert sweep(tmp_path / "x.toml", {}, out=tmp_path / "s").resumed == 1
    trace.write_text("time_s,rate_mbps\n0,1\n1,3\n")
    assert sweep(tmp_path / "x.toml", {}, out=tmp_path / "s").resumed == 0


def test_a_plan_may_grow_and_another_one_is_refused(small: Scenario, tmp_path: Path) -> None:
    out = tmp_path / "s"
    sweep(small, GRID, out=out, seeds=[1, 2])
    before = (out / "summary.csv").read_bytes()
    hint = "choose another folder, or repeat all earlier combinations and seeds and add to them"
    for grid, seeds, why in (
        (GRID, [2, 3], "its seed 1 is not in this plan"),
        ({"links.cable.delay": ["20ms", "30ms"]}, [1, 2], "1 of its 2 combinations are not in this plan"),
        ({"links.cable.capacity": ["1Mbps"]}, [1, 2], "2 of its 2 combinations are not in this plan"),
    ):
        with pytest.raises(OutputError) as caught:
            sweep(small, grid, out=out, seeds=seeds)
        assert str(caught.value) == f"{out}: the folder holds a sweep with another plan: {why}; {hint}"
    with pytest.raises(OutputError, match="another plan"):
        sweep(small.with_changes({"duration": "2s"}), GRID, out=out, seeds=2)
    assert (out / "summary.csv").read_bytes() == before
    # another spelling, more values, more seeds
    more = sweep(small, {"links.cable.delay": ["0.03s", "0.02s", "10ms"]}, out=out, seeds=3)
    assert (len(more.rows), more.resumed) == (9, 4)


def test_what_a_killed_run_left_is_cleared(small: Scenario, tmp_path: Path) -> None:
    out = tmp_path / "s"
    sweep(small, GRID, out=out)
    key = results(out)[0].stem
    leftovers = [out / "results" / f".{key}.json.tidegate-abcd1234", out / ".summary.csv.tidegate-abcd1234"]
    foreign = [out / "results" / ".mine.tidegate-notes", out / ".notes"]
    for path in (*leftovers, *foreign):
        path.write_text("half")
    sweep(small, GRID, out=out)
    assert not any(path.exists() for path in leftovers)
    assert all(path.exists() for path in foreign)


def test_two_sweeps_in_one_folder(small: Scenario, tmp_path: Path) -> None:
    out = tmp_path / "s"
    with (
        Results(out).prepared({}, [], []),
        pytest.raises(
            OutputError, match="s: another process is using the folder; wait for its end, or choose another folder"
        ),
    ):
        sweep(small, GRID, out=out)
    assert len(sweep(small, GRID, out=out).rows) == 2


def test_a_killed_sweep_goes_on(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN.replace('"4s"', '"20s"'))
    argv = ["sweep", "x.toml", "--set", "links.cable.delay=" + ",".join(f"{ms}ms" for ms in range(1, 40)), "--out", "o"]
    process = begin(argv, tmp_path)
    while not (tmp_path / "o" / "results").is_dir() or len(results(tmp_path / "o")) < 3:
        assert process.poll() is None
    process.kill()
    process.communicate()
    times = {path: path.stat().st_mtime_ns for path in results(tmp_path / "o")}
    done = begin([*argv, "--json"], tmp_path)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    assert json.loads(out)["resumed"] == len(times)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert [path.name for path in (tmp_path / "o").rglob("*tidegate-*")] == []


def test_wrong_sweeps_are_refused_before_anything_is_written(small: Scenario, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        sweeping.sweep(small, {"links.cable.dealy": ["1ms"]}, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()


MINE = """
from tidegate import Controller

class Mine(Controller):
    def __init__(self, k: float = 1.0) -> None:
        super().__init__()
        self.k = k

    def on_limits(self, now_ns, limits):
        return int(self.k * 400_000)

    def on_report(self, now_ns, report):
        return None
"""


def received(result: SweepResult) -> list[float]:
    """The receive rate of each run's call."""
    return [row["summary"]["flows"][0]["receive_rate_bps"] for row in result.rows]


def test_a_setting_of_a_class_of_ones_own_is_swept_on_a_network(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "plain.toml").write_text(PLAIN)
    argv = ["--controller", "python:mine.py:Mine", "--set", "controller.k=0.5,1,2", "--out", "out"]
    done = cli("sweep", "plain.toml", *argv)
    assert done.code == 0, done.err
    rates = received(SweepResult.load("out"))
    assert rates == pytest.approx([200e3, 400e3, 800e3], rel=0.15)
    # the long keys do the same
    long = cli(
        "sweep", "plain.toml", "--set", "flows.call.media.controller=python:mine.py:Mine",
        "--set", "flows.call.media.controller.k=0.5,1,2", "--out", "long",
    )  # fmt: skip
    assert long.code == 0, long.err
    assert received(SweepResult.load("long")) == rates


def test_so_it_is_from_python(tmp_path: Path) -> None:
    class Mine(Controller):
        def __init__(self, k: float = 1.0) -> None:
            super().__init__()
            self.k = k

        def on_limits(self, now_ns: int, limits: Limits) -> int:
            return int(self.k * 400_000)

        def on_report(self, now_ns: int, report: object) -> None:
            """Changes nothing."""

    done = sweep(Scenario.parse(PLAIN), {"controller.k": ["0.5", "2"]}, controller=Mine, out=tmp_path / "out")
    assert received(done) == pytest.approx([200e3, 800e3], rel=0.15)


def test_a_sweep_is_on_a_recorded_network_too(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "net.csv").write_text(
        "time_s,rate_mbps\n" + "".join(f"{second},{1 + second % 2}\n" for second in range(60))
    )
    argv = ["--set", "controller.beta=0.7,0.9", "--set", "duration=5s", "--out", "out"]
    for network in (["--link", "net.csv"], ["home-broadband", "--link", "net.csv"]):
        done = cli("sweep", *network, "--controller", "gcc", *argv[:-1], f"out{len(network)}")
        assert done.code == 0, done.err
        assert "net" in done.out
    assert "no scenario is given" in cli("sweep", *argv).err
