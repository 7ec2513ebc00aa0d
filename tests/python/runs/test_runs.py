"""Runs, comparisons and sweeps against the engine."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from support import PLAIN, Cli
from tidegate import Controller, Queue, Run, Scenario, compare, pool, run, scenario_for, sweep, trace
from tidegate._files import file_names, write_file
from tidegate.errors import InputError, OutputError, RunError
from tidegate.results.folders import check_folder, write_folder
from tidegate.runs import RunJob
from tidegate.runs.pool import Tick
from tidegate.scenario import lower as lowering
from tidegate.scenario.lower import Lowered
from tidegate.scenario.variants import with_controller
from tidegate.show import view


@pytest.fixture(scope="module")
def small() -> Scenario:
    return Scenario.parse(PLAIN)


@pytest.fixture(scope="module")
def once(small: Scenario) -> Run:
    return run(small)


def test_a_run_repeats_itself(small: Scenario, once: Run) -> None:
    assert run(small).digest == once.digest
    assert run(small, seed=2).digest != once.digest
    assert run(small.with_changes({"description": "x"})).digest == once.digest


@pytest.mark.parametrize("seed", ["x", 1.5, {}, True, -1, 2**64])
def test_what_is_no_seed_is_said(small: Scenario, seed: Any) -> None:
    with pytest.raises(InputError, match=r"^seed: found .*; expected a whole number from 0 to 2\^64 - 1$"):
        run(small, seed=seed)


def test_a_run_says_what_happened(once: Run) -> None:
    metrics = once.metrics()
    assert (once.subject, once.flows, once.seed) == ("call", ["call"], 1)
    # 10 ms of cable; 2 Mbit/s is never exceeded, and a call that begins at 300 kbit/s sends some of it
    assert metrics["one_way_delay_ms_min"] >= 10.0
    assert 100_000 < metrics["receive_rate_bps"] < 2_000_000
    assert metrics["packets_received"] + metrics["lost_queue"] + metrics["lost_wire"] <= metrics["packets_sent"]
    with pytest.raises(InputError, match=r"^cal: the run has no such flow; did you mean call\?$"):
        once.metrics("cal")
    with pytest.raises(KeyError, match="truht: the run has no such table; did you mean truth"):
        once.table("truht")
    truth = once.table("truth")
    assert set(truth.to_numpy("capacity_bps")[truth.to_numpy("link") == "cable"]) == {2_000_000.0}


def test_a_run_survives_its_folder(once: Run, tmp_path: Path) -> None:
    folder = once.save(tmp_path / "a" / "run")
    again = Run.load(folder)
    assert (again.digest, again.seed, again.summary) == (once.digest, once.seed, once.summary)
    assert sorted(again.tables) == sorted(once.tables)
    for name in once.tables:
        for column in once.table(name).columns:
            np.testing.assert_array_equal(again.table(name).to_numpy(column), once.table(name).to_numpy(column))
    about = json.loads((folder / "run.json").read_text())
    assert about["versions"]["tidegate"] == tidegate.__version__
    assert len(about["scenario_hash"]) == 64
    assert run(again.scenario, seed=again.seed).digest == once.digest, "a run can be made again from its folder"
    once.save(folder)
    assert Run.load(folder).digest == once.digest, "an earlier run is replaced"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["run"], "nothing half-written is left"


def test_a_damaged_run(once: Run, tmp_path: Path) -> None:
    folder = once.save(tmp_path / "run")
    # as earlier versions wrote it, without hashes
    (folder / "manifest.json").unlink()
    (folder / "truth.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"truth.parquet: cannot be read: "):
        Run.load(folder).table("truth")
    one_second = np.array([1.0])
    wrong: dict[str, Any] = {"t_s": np.array([np.nan]), "begin_s": np.array([np.inf]), "length_s": ["long"]}
    for column, value in wrong.items():
        columns: dict[str, Any] = dict.fromkeys(wrong, one_second) | {"flow": ["call"], column: value}
        tidegate.Table.of(list(columns.items())).write_parquet(str(folder / "without_picture.parquet"))
        with pytest.raises(InputError, match=rf"without_picture.parquet: {column} of row 0 is .*; expected a time"):
            Run.load(folder).table("without_picture")
    (folder / "run.json").write_text('{"format": 1}')
    with pytest.raises(
        InputError, match=r"run\.json: the file is damaged: without base, digest, name, scenario, seed, summary"
    ):
        Run.load(folder)
    (folder / "run.json").write_text("[]")
    with pytest.raises(InputError, match="is not a run of this version of tidegate"):
        Run.load(folder)


class Steady(Controller):
    """Says the same always."""

    def __init__(self, rate: int = 800_000) -> None:
        self.rate = rate

    def on_limits(self, now_ns: int, limits: tidegate.Limits) -> tidegate.Decision:
        assert now_ns >= 0
        assert limits.min_bps == 30_000
        return tidegate.Decision(self.rate, pacing_bps=self.rate)

    def on_report(self, now_ns: int, report: tidegate.Report) -> tidegate.Decision:
        self.internals["packets"] = len(report.packets)
        return tidegate.Decision(self.rate, pacing_bps=self.rate)


def test_a_controller_in_python(small: Scenario) -> None:
    mine = small.with_changes({"flows.call.media.video": {"source": "ideal"}})
    data = mine.to_dict()
    data["flows"][0]["media"]["controller"] = Steady
    got = run(Scenario.from_dict(data))
    same = run(mine.with_changes({"flows.call.media.controller": "fixed:800kbps"}))
    targets = set(got.table("decisions").to_numpy("target_bps"))
    assert targets == {800_000.0}
    assert got.metrics()["packets_sent"] == same.metrics()["packets_sent"]
    assert "packets" in set(got.table("internals").to_numpy("name"))


def test_the_same_controller_twice_with_other_settings(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import tidegate\nclass Mine(tidegate.Controller):\n    def __init__(self, rate=1):\n        self.rate = rate\n"
        "    def on_limits(self, now_ns, limits):\n        return self.rate\n"
        "    def on_report(self, now_ns, report):\n        return self.rate\n"
    )
    done = compare(
        [f"python:{tmp_path}/mine.py:Mine:rate={rate}" for rate in (300_000, 600_000)],
        scenario_for(capacity="5Mbps", duration="3s"),
        seeds=2,
        processes=True,
    )
    for (_, runs), rate in zip(done.runs.items(), (300_000, 600_000), strict=True):
        for one in runs:
            assert set(one.table("decisions").to_numpy("target_bps")) == {rate}


def test_threads_processes_and_order_change_nothing() -> None:
    lte = scenario_for(duration="3s", cross=["tcp:cubic@1s"])
    digests = [
        [one.digest for runs in done.runs.values() for one in runs]
        for done in (
            compare(["gcc", "fixed"], lte, seeds=3, workers=1),
            compare(["gcc", "fixed"], lte, seeds=3, workers=3),
            compare(["gcc", "fixed"], lte, seeds=3, processes=True, workers=2),
        )
    ]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests[0])) == 6
    backwards = compare(["fixed", "gcc"], lte, seeds=[3, 2, 1])
    assert [one.digest for runs in backwards.runs.values() for one in runs] == [
        *reversed(digests[0][3:]),
        *reversed(digests[0][:3]),
    ]


def test_all_controllers_see_the_same_network() -> None:
    done = compare(["gcc", "fixed"], scenario_for(duration="3s"), seeds=2)
    first, second = (runs[0].table("truth") for runs in done.runs.values())
    for column in ("t_s", "capacity_bps"):
        np.testing.assert_array_equal(first.to_numpy(column), second.to_numpy(column))
    other = done.runs["gcc"][1].table("truth")
    assert not np.array_equal(first.to_numpy("capacity_bps"), other.to_numpy("capacity_bps"))


def test_a_comparison_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    argv = ("compare", "gcc", "fixed", "--duration", "4s", "--cross", "tcp:cubic@2s", "--seeds", "2", "--out", "o")
    got = cli(*argv)
    assert (got.code, got.err) == (0, "")
    assert "receive rate of tcp" in got.out
    names = {path.relative_to(tmp_path / "o").as_posix() for path in (tmp_path / "o").rglob("*")}
    assert {"table.md", "table.csv", "comparison.png", "report.html", "scenario.toml", "comparison.json"} <= names
    assert {f"runs/{one}-seed{seed}/run.json" for one in ("gcc", "fixed") for seed in (1, 2)} <= names
    again = tidegate.Comparison.load(tmp_path / "o")
    assert again.table.to_csv() == (tmp_path / "o" / "table.csv").read_text()
    rows = {(row["metric"], row["controller"]): row for row in csv.DictReader(io.StringIO(again.table.to_csv()))}
    # fixed sends 1 Mbit/s of RTP; with headers and the ramp of the encoder it is about that on the wire
    assert 0.7e6 < float(rows["receive_rate_bps", "fixed"]["mean"]) < 1.2e6
    machine = cli(*argv[:-2], "--json")
    data = json.loads(machine.out)
    assert machine.err == ""
    digests = {(one["controller"], one["seed"]): one["digest"] for one in data["runs"]}
    assert digests == {(name, run.seed): run.digest for name, runs in again.runs.items() for run in runs}
    (tmp_path / "o" / "report.html").unlink()
    assert cli("report", "o").code == 0
    assert (tmp_path / "o" / "report.html").stat().st_size > 10_000
    for _ in range(2):
        single = cli("report", "o/runs/gcc-seed1", "--out", "one.html")
        assert (single.code, single.err) == (0, "")


def test_each_controller_has_a_folder_of_its_own(cli: Cli, tmp_path: Path) -> None:
    text = (
        "import tidegate\nclass A(tidegate.Controller):\n"
        "    def on_limits(self, now_ns, limits):\n        return RATE\n"
        "    def on_report(self, now_ns, report):\n        return RATE\n"
    )
    rates = {"v1/ctl.py": 300_000, "v1-ctl.py": 900_000, "aimd é.py": 500_000, "aimd ü.py": 700_000}
    (tmp_path / "v1").mkdir()
    for name, rate in rates.items():
        (tmp_path / name).write_text(text.replace("RATE", str(rate)))
    argv = [f"python:{name}:A" for name in rates]
    got = cli("compare", *argv, "--capacity", "2Mbps", "--duration", "2s", "--out", "o", "--jobs", "1")
    assert (got.code, got.err) == (0, "")
    assert len(list((tmp_path / "o" / "runs").iterdir())) == 4
    again = tidegate.Comparison.load(tmp_path / "o")
    for label, rate in zip(argv, rates.values(), strict=True):
        (one,) = again.runs[label]
        assert set(one.table("decisions").to_numpy("target_bps")) == {rate}
    assert again.table.to_csv() == (tmp_path / "o" / "table.csv").read_text()


def test_no_run_takes_the_place_of_another(once: Run, small: Scenario, tmp_path: Path) -> None:
    twice = tidegate.Comparison(small, {"gcc": [once, once]})
    with pytest.raises(InputError, match=r"^gcc has two runs with seed 1; expected one run per seed$"):
        twice.save(tmp_path / "o")
    assert not (tmp_path / "o").exists()
    # labels beyond what a file system takes as a name
    long = file_names("x" * 400 + end for end in "ab")
    assert max(map(len, long.values())) < 200
    assert len(set(long.values())) == 2


def test_a_sweep_goes_on_where_it_was_left(small: Scenario, tmp_path: Path) -> None:
    grid = {"links.cable.delay": ["10ms", "20ms"], "flows.call.media.controller": ["gcc", "fixed"]}
    done = sweep(small, grid, out=tmp_path / "s", seeds=2)
    assert (len(done.rows), done.resumed, done.failed) == (8, 0, [])
    files = sorted((tmp_path / "s" / "results").iterdir())
    assert len(files) == 8
    files[3].unlink()
    files[5].write_text("{")
    stamps = {file: file.stat().st_mtime_ns for file in files if file not in {files[3], files[5]}}
    again = sweep(small, grid, out=tmp_path / "s", seeds=2)
    assert again.resumed == 6
    assert again.to_csv() == done.to_csv()
    assert {file: file.stat().st_mtime_ns for file in stamps} == stamps
    # more of the same: only what is new is run, and another spelling is the same run
    more = sweep(small, {**grid, "links.cable.delay": ["0.02s", "10ms"]}, out=tmp_path / "s", seeds=3)
    assert (len(more.rows), more.resumed) == (12, 8)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s" / "summary.csv").read_text())))
    assert len(rows) == 12
    assert all(float(row["one_way_delay_ms_min"]) >= 10 for row in rows)
    for row in rows[:4]:
        same = small.with_changes({key: row[key] for key in grid})
        assert run(same, int(row["seed"]), "summary").digest == row["digest"]
    assert (tmp_path / "s" / "summary.md").read_text().count("\n|") == 1 + 4


def test_a_sweep_tells_of_failures_and_keeps_the_rest(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import tidegate\nclass Mine(tidegate.Controller):\n    def on_report(self, now_ns, report):\n"
        "        raise ValueError('no')\n"
    )
    (tmp_path / "x.toml").write_text(PLAIN)
    got = cli("sweep", "x.toml", "--set", "flows.call.media.controller=gcc,python:mine.py:Mine", "--out", "o")
    assert got.code == 1
    assert "1 of 2 runs failed:" in got.err
    assert "on_report raised ValueError: no" in got.err
    assert len(list((tmp_path / "o" / "results").iterdir())) == 1


# --- the pool -------------------------------------------------------------------------------------


class Wait:
    """A job that waits for others, or until it is stopped."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self.barrier = barrier

    def __call__(self, tick: Tick) -> int:
        self.barrier.wait(timeout=20)
        return threading.get_ident()


def test_jobs_run_at_once() -> None:
    barrier = threading.Barrier(3)
    found = pool.run_all([Wait(barrier)] * 3, workers=3)
    assert len(set(found)) == 3


def test_the_first_error_stops_the_others() -> None:
    stopped = threading.Event()

    def endless(tick: Tick) -> None:
        try:
            for _ in range(2000):
                tick(0.5)
                time.sleep(0.01)
        except KeyboardInterrupt:
            stopped.set()
            raise

    def fails(tick: Tick) -> None:
        raise RunError("at 1 s: no")

    with pytest.raises(RunError, match="at 1 s: no"):
        pool.run_all([endless, fails], workers=2)
    assert stopped.is_set()


def test_progress_reaches_the_end_and_never_goes_back() -> None:
    told: list[float] = []

    def job(tick: Tick) -> None:
        for step in range(10):
            tick(step / 10)
            time.sleep(0.03)

    pool.run_all([job] * 4, workers=2, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 3


# --- files ----------------------------------------------------------------------------------------


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "result"

    def fill(text: str, *, fail: bool) -> None:
        with write_folder(target, "mark") as making:
            (making / "mark").write_text(text)
            assert making != target
            if fail:
                raise RuntimeError

    with pytest.raises(RuntimeError):
        fill("one", fail=True)
    assert list(target.parent.iterdir()) == []
    fill("two", fail=False)
    with pytest.raises(RuntimeError):
        fill("three", fail=True)
    assert (target / "mark").read_text() == "two"
    fill("four", fail=False)
    assert (target / "mark").read_text() == "four"
    assert [path.name for path in target.parent.iterdir()] == ["result"]


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_file(file, "one")
    before = os.umask(0o022)
    os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o666 & ~before
    with pytest.raises(OutputError, match="cannot be written"):
        write_file(tmp_path / "no" / "x", "two")
    with pytest.raises(OutputError, match="found a file; expected a folder"):
        check_folder(file, "mark")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


# --- put together on the command line -------------------------------------------------------------


def test_another_flow_of_the_same_media_in_a_word() -> None:
    """It has the sources and limits of the subject, another controller, and times of its own."""
    one = scenario_for(base="two-calls", beside="nada@20s-60s")
    first, last = one.flows[0], one.flows[-1]
    assert (last.name, last.start, last.stop) == ("beside", 20 * 10**9, 60 * 10**9)
    assert first.media is not None
    assert last.media is not None
    assert last.media.controller == "nada"
    assert last.media.model_copy(update={"controller": first.media.controller}) == first.media
    assert first == Scenario.load("two-calls").flows[0]
    run = tidegate.run(scenario_for(capacity="3Mbps", duration="10s", beside="tcp:cubic@2s"))
    assert [flow["flow"] for flow in run.summary["flows"]] == ["call", "beside"]
    assert run.summary["flows"][1]["controller"] == "cubic"


def test_several_flows_beside_the_subject(cli: Cli) -> None:
    """Each `--with` is one."""
    got = cli(
        "compare",
        "fixed",
        "--capacity",
        "3Mbps",
        "--duration",
        "3s",
        "--with",
        "nada",
        "--with",
        "tcp:newreno@1s",
        "--json",
    )
    flows = json.loads(got.out)["runs"][0]["summary"]["flows"]
    assert [(flow["flow"], flow["controller"]) for flow in flows] == [
        ("call", "fixed"),
        ("beside", "nada"),
        ("beside2", "newreno"),
    ]


def test_cross_traffic_in_a_word() -> None:
    made = scenario_for(
        capacity="10Mbps",
        delay="30ms",
        queue="100p",
        cross=["tcp", "tcp:newreno@2s-5s", "udp:poisson:1Mbps@1s", "web*10", "media:fixed:2Mbps@3s"],
        duration="20s",
        media_source="greedy",
    )
    plain = {flow.name: flow for flow in made.flows}
    assert list(plain) == ["call", "tcp", "tcp2", "udp", "web", "media"]
    assert (made.links[0].delay, made.links[0].queue) == (30_000_000, Queue(packets=100))
    tcp, udp, web = plain["tcp2"], plain["udp"].udp, plain["web"]
    assert tcp.tcp is not None
    assert (tcp.tcp.algorithm, tcp.start, tcp.stop) == ("newreno", 2 * 10**9, 5 * 10**9)
    assert udp is not None
    assert (udp.pattern, udp.rate) == ("poisson", 10**6)
    assert web.count == 10
    media = plain["media"].media
    assert media is not None
    assert media.controller == "fixed:2Mbps"
    assert plain["call"].media is not None
    assert plain["call"].media.video is not False
    assert plain["call"].media.video.source == "greedy"
    assert scenario_for(beside="tcp").flows[-1].tcp is not None
    before = scenario_for(base="tcp-joins", delay="5ms", queue="64kB")
    assert (before.links[0].delay, before.links[0].queue) == (5_000_000, Queue(bytes="64kB"))


TWO_CALLS = (
    PLAIN
    + """
[[flows]]
name = "subject"
start = "1s"
media = { controller = "gcc" }
"""
)


def sources(scenario: Scenario) -> dict[str, str]:
    """The video source of each media flow."""
    return {flow.name: flow.media.video.source for flow in scenario.flows if flow.media and flow.media.video}


def test_the_subject_is_one_flow_for_everybody(cli: Cli, tmp_path: Path) -> None:
    made = Scenario.parse(TWO_CALLS)
    assert sources(scenario_for(base=made, media_source="greedy")) == {"call": "statistical", "subject": "greedy"}
    replaced = with_controller(made, "fixed:1Mbps")
    assert [flow.media.controller for flow in replaced.flows if flow.media] == ["gcc", "fixed:1Mbps"]
    done = run(replaced)
    assert done.subject == view.subject_of(done) == "subject"
    assert done.metrics()["controller"] == view.controller_of(done) == "fixed"
    swept = sweep(made, {"flows.subject.media.controller": ["fixed:1Mbps"]}, out=tmp_path / "sweep")
    assert next(csv.DictReader(io.StringIO(swept.to_csv())))["flow"] == "subject"

    # several alike that are called so
    several = made.with_changes({"flows.subject.count": 2})
    assert sources(scenario_for(base=several, media_source="ideal")) == {"call": "statistical", "subject": "ideal"}
    assert run(several).subject == "subject-1"

    # who is called so is meant, and is not passed over in silence
    file = tmp_path / "tcp.toml"
    file.write_text(TWO_CALLS.rpartition("media = ")[0] + "tcp = {}", encoding="utf-8")
    assert run(Scenario.load(file)).subject == "subject"
    for asked in (("compare", "gcc"), ("compare", "gcc", "--media-source", "greedy")):
        answer = cli(*asked, "--scenario", str(file))
        assert answer.code == 2
        assert 'the subject "subject" is a flow of kind tcp and has no ' in answer.err


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the calls that lower a scenario or load a trace, from now on, in this process."""
    names: list[str] = []

    def noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            names.append(name)
            return original(*arguments, **keywords)

        return call

    monkeypatch.setattr(lowering, "_lower", noting("scenario", lowering._lower))
    monkeypatch.setattr(trace, "load_with_sha256", noting("trace", trace.load_with_sha256))
    return names


def recorded(folder: Path) -> Scenario:
    """A scenario whose link is a recorded one, of 12 kB/s."""
    (folder / "cable.trace").write_text("".join(f"{k}\n" for k in range(0, 1000, 125)), encoding="utf-8")
    text = PLAIN.replace('capacity = "2Mbps"', 'capacity = { trace = "cable.trace" }')
    (folder / "cable.toml").write_text(text, encoding="utf-8")
    return Scenario.load(folder / "cable.toml")


def test_a_combination_is_lowered_once_whatever_the_number_of_seeds(cli: Cli, tmp_path: Path, loads: list[str]) -> None:
    scenario = recorded(tmp_path)
    compared = compare(["gcc", "fixed:1Mbps"], scenario, seeds=3)
    assert (loads.count("scenario"), loads.count("trace")) == (2, 1)
    loads.clear()
    result = sweep(scenario, {"links.cable.delay": ["10ms", "30ms"]}, seeds=3, out=tmp_path / "one")
    assert (loads.count("scenario"), loads.count("trace")) == (2, 1)
    # as if it had been lowered for itself
    assert [row["digest"] for row in result.rows[:3]] == [done.digest for done in compared.runs["gcc"]]
    assert run(scenario, seed=2).digest == compared.runs["gcc"][1].digest
    assert len({done.digest for done in compared.runs["gcc"]}) == 3
    loads.clear()
    assert cli("compare", "gcc", "fixed:1Mbps", "--scenario", "cable.toml", "--seeds", "3").code == 0
    assert (loads.count("scenario"), loads.count("trace")) == (2, 1)
    loads.clear()
    delays = "links.cable.delay=10ms,30ms"
    assert cli("sweep", "cable.toml", "--set", delays, "--seeds", "3", "--out", "two").code == 0
    assert (loads.count("scenario"), loads.count("trace")) == (2, 1)


def test_runs_of_one_scenario_share_it_in_another_process_too(tmp_path: Path, loads: list[str]) -> None:
    scenario = recorded(tmp_path)
    lowered = Lowered(scenario)
    digests = [RunJob(lowered, seed, "summary")(quiet).digest for seed in (1, 2)]
    loads.clear()
    sent = [pickle.dumps(RunJob(lowered, seed, "summary")) for seed in (1, 2)]
    assert len(sent[0]) < 2 * len(pickle.dumps(scenario)), "what was read goes along"
    arrived = [pickle.loads(data) for data in sent]
    assert not loads, "an error would be one of the pool and not of the run"
    assert [job(quiet).digest for job in arrived] == digests
    assert (loads.count("scenario"), loads.count("trace")) == (1, 1)
    # others push it out, and it is read again
    others = [pickle.loads(pickle.dumps(Lowered(scenario))) for _ in range(lowering._MAX_LOWERED)]
    assert all(lowered_again.inputs.traces for lowered_again in others)
    assert pickle.loads(sent[0])(quiet).digest == digests[0]


def quiet(_: float) -> bool:
    return True


def test_trace_commands(cli: Cli, tmp_path: Path) -> None:
    made = cli("trace", "generate", "lte.trace", "--duration", "20s", "--seed", "3")
    assert (made.code, made.err) == (0, "")
    again = cli("trace", "generate", "again.trace", "--duration", "20s", "--seed", "3")
    assert again.code == 0
    assert (tmp_path / "lte.trace").read_bytes() == (tmp_path / "again.trace").read_bytes()
    shown = json.loads(cli("trace", "show", "lte.trace", "--json").out)
    assert shown["format"] == "mahimahi"
    assert shown["duration_s"] == pytest.approx(20, abs=0.5)
    assert cli("trace", "convert", "lte.trace", "lte.csv").code == 0
    back = json.loads(cli("trace", "show", "lte.csv", "--json").out)
    assert back["mean_rate_bps"] == pytest.approx(shown["mean_rate_bps"], rel=0.02)
    # over a file of the same kind as usual, over another one when asked
    assert cli("trace", "generate", "again.trace", "--duration", "10s").code == 0
    (tmp_path / "again.trace").write_text("duration = '4s'\n")
    refused = cli("trace", "generate", "again.trace", "--duration", "10s")
    assert (refused.code, refused.err.count("give another name, or --force")) == (1, 1)
    assert (tmp_path / "again.trace").read_text() == "duration = '4s'\n"
    assert cli("trace", "generate", "again.trace", "--duration", "10s", "--force").code == 0
    words = cli("trace", "show", "lte.trace").out
    assert "mean" in words
    assert "means of 1s" in words
    played = cli("compare", "fixed", "--link", "lte.trace", "--duration", "3s", "--json")
    assert played.code == 0
    assert json.loads(played.out)["scenario"] == "lte"


def test_looking_things_up(cli: Cli) -> None:
    assert "home-broadband" in cli("scenario", "list").out
    assert len(json.loads(cli("scenario", "list", "--json").out)) == len(tidegate.scenario.shipped.names())
    assert cli("scenario", "show", "satellite").out.startswith('description = "One video call over a geo')
    assert "good (2 one-way links, 1 flows, 60s)" in cli("scenario", "check", "home-broadband").out
    listed = cli("controllers").out
    assert "gcc" in listed
    assert "fixed" in listed
    details = json.loads(cli("controllers", "fixed", "--json").out)
    assert details["settings"][0]["name"] == "rate"
    assert "bit/s" in cli("controllers", "fixed").out
    assert tidegate.__version__ in cli("version").out
    for command in ("run", "compare", "sweep", "report", "controllers", "version"):
        assert "Example: tidegate" in cli(command, "--help").out
