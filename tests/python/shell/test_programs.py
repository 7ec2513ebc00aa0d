"""Real programs as contenders, as far as they need no namespaces: names, what they stand for, luck, retries, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import ARRIVALS, PLAIN, ROOT, Cli
from tidegate import Comparison, InputError, Run, Scenario, compare, run

if sys.platform != "linux":
    pytest.skip("sessions of real programs need Linux", allow_module_level=True)

from tidegate.errors import ControllerError, RunError
from tidegate.scenario.lower import lower
from tidegate.shell import Contender, LiveJob, Programs, _contender, attempt, beside, how_long, replay
from tidegate.shell._files import FOLDER_PREFIX
from tidegate.shell._scenario import standing_for
from tidegate.suite import Plan, Suite

LUCK = """\
duration = "4s"

[[links]]
name = "link"
capacity = "1Mbps"
delay = "20ms"
loss = "5%"
jitter = { normal = "3ms" }
queue = { time = "100ms" }

[[flows]]
name = "call"
media = { controller = "gcc" }

[[flows]]
name = "web"
start = "1s"
udp = { rate = "100kbps", pattern = "poisson" }
"""


def scenario(text: str, **changes: Any) -> Scenario:
    return Scenario.parse(text).with_changes(changes) if changes else Scenario.parse(text)


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("program:", "found no command; expected a program with its arguments"),
        ("program:sh 'x", "No closing quotation; expected a program with its arguments"),
        ("program:no-such-program at all", "no-such-program: the program does not exist"),
        ("program:./plain.txt", "./plain.txt: the file cannot be executed; chmod +x makes it executable"),
    ],
)
def test_commands_that_cannot_be_are_told_before_anything(
    label: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.txt").write_text("x")
    with pytest.raises(InputError) as error:
        Contender.of(label)
    assert says in str(error.value)
    for typed in (["compare", "gcc", label], ["suite", "run", "smoke", label, "--out", "out"]):
        outcome = cli(*typed)
        assert outcome.code == 2
        assert says in outcome.err
        assert not outcome.out


def test_what_a_program_is_made_of_is_in_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "call.sh").write_text("exit 0")
    before = Contender.of("program:sh call.sh").content
    assert Contender.of("program:sh call.sh").content == before
    assert Contender.of("program:sh call.sh --rate 1").content != before
    (tmp_path / "call.sh").write_text("exit 1")
    assert Contender.of("program:sh call.sh").content != before


def test_a_program_is_called_as_the_call_is_and_stands_where_it_was() -> None:
    stand = standing_for(scenario(LUCK, **{"flows.call.start": "500ms", "flows.call.stop": "3s"}), "call")
    assert stand.sides == ("call", "call.feedback")
    assert (stand.start, stand.stop) == (500_000_000, 3_000_000_000)
    flows = {flow.name: flow for flow in stand.live.flows}
    assert list(flows) == ["call", "call.feedback", "web"]
    assert (flows["call"].from_, flows["call"].to, flows["call"].start) == ("left", "right", 500_000_000)
    assert (flows["call.feedback"].from_, flows["call.feedback"].stop) == ("right", 3_000_000_000)
    both = standing_for(Scenario.load("rfc8867-5.3-congested-feedback"), "call")
    assert both.sides == ("call", "call.back")


@pytest.mark.parametrize(
    ("name", "call", "says"),
    [
        ("rfc8867-5.8-pause-resume", "pausing", "the flow pauses, but programs do not know when"),
        ("hundred-calls", "call", "the flow stands for 100 calls, but programs make one"),
        ("coupled-calls", "slides", "the flow is coupled with other flows, but programs cannot be coupled"),
        ("lte-one-call", "call", "the scenario has radio networks, in which programs cannot be compared"),
    ],
)
def test_calls_that_programs_cannot_make_are_refused(name: str, call: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        standing_for(Scenario.load(name), call)
    assert f"{name}: flows.{call}: " in str(error.value)
    assert says in str(error.value)


def test_a_program_is_no_controller_of_a_simulation() -> None:
    with pytest.raises(ControllerError, match="programs run by the wall clock, in compare and suite run only"):
        scenario(PLAIN, **{"flows.call.media.controller": "program:true"}).check()


END = 4_000_000_000


def written(folder: Path, sides: Sequence[str], *, size: int = 1000, **about: Any) -> dict[str, Any]:
    """The files of a session in which A sent packets of one size each 16 ms, and B one a second; what it says."""
    rows = [(time, "A", size) for time in range(0, END, 16_000_000)] if size else []
    rows += [(time, "B", 80) for time in range(0, END, 1_000_000_000)]
    lines = [
        f"{number},{time},0,{side},1,{size},0,17,10.77.0.1,5004,10.77.0.2,5004,,,,,"
        for number, (time, side, size) in enumerate(sorted(rows))
    ]
    (folder / "arrivals.csv").write_text("\n".join([ARRIVALS, *lines, ""]))
    (folder / "fates.csv").write_text("number,at_ns,fate,written_ns\n")
    late = {"count": len(rows), "p50_ms": 0.1, "p99_ms": 0.2, "worst_ms": 0.3}
    ended = {"argv": ["true"], "status": -15, "stopped": True, "ended_s": 4.0}
    summary: dict[str, Any] = {"end_ns": END, "sides": list(sides), "why": "over", "interrupted": None}
    summary |= {"packets": len(rows), "lateness": late, "clamped_by": late, "missed": 0, "unwritten": 0}
    summary |= {"programs": {"A": dict(ended), "B": dict(ended)}, **about}
    (folder / "session.json").write_text(json.dumps(summary))
    return summary


def played(folder: Path, stand: Any, *, seed: int) -> Run:
    """The replay of such a session."""
    written(folder, stand.sides)
    return replay(folder, stand.live, seed=seed)[0]


@dataclass
class Sessions:
    """Sessions that are not had: what would begin them, and what they would leave."""

    begun: list[dict[str, Any]]
    leaves: dict[str, Any]

    def begin(self, place: Path, live: Scenario, programs: Any, seed: int, **more: Any) -> dict[str, Any]:
        """Instead of a session."""
        self.begun.append({"live": live, "programs": programs, "seed": seed, **more})
        (place / "program-A.txt").write_text("a\nlast word\n")
        (place / "shared" / "log").write_text(str(seed))
        return written(place, more["sides"], **self.leaves)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    """Sessions that are not had."""
    fake = Sessions([], {})
    monkeypatch.setattr(_contender, "begin", fake.begin)
    monkeypatch.setattr(_contender, "check_environment", lambda *_: None)
    return fake


def test_each_session_is_told_its_seed_and_when_and_its_run_stands_beside_others(sessions: Sessions) -> None:
    live_scenario = scenario(LUCK, **{"flows.call.start": "500ms", "flows.call.stop": "3500ms"})
    done = compare(["gcc", "program:true one"], live_scenario, seeds=[3, 7])
    assert [job["seed"] for job in sessions.begun] == [3, 7]
    for job in sessions.begun:
        assert job["programs"] == Programs(("true", "one"), ("true", "one"))
        assert job["times"] == (0.5, 3.5)
        assert job["sides"] == ("call", "call.feedback")
        assert job["variables"]["TIDEGATE_SEED"] == str(job["seed"])
    assert len({job["variables"]["TIDEGATE_FOLDER"] for job in sessions.begun}) == 2
    mine, theirs = done.runs["program:true one"], done.runs["gcc"]
    for ours, their_run in zip(mine, theirs, strict=True):
        assert ours.seed == their_run.seed
        assert ours.controller == ours.metrics()["controller"] == "program:true one"
        assert ours.metrics("web")["packets_sent"] == their_run.metrics("web")["packets_sent"]
    assert mine[0].metrics("web")["packets_sent"] != mine[1].metrics("web")["packets_sent"]
    # what B sent is the call's feedback: 80 bytes a second, in the three seconds of the call
    assert mine[0].metrics()["feedback_rate_bps"] == pytest.approx(4 * 640 / 3)
    assert mine[0].metrics()["discarded_late"] is None
    rows = {row.key: row for row in done.table.rows}
    assert rows["receive_rate_bps"].cells["program:true one"].count == 2
    assert rows["frame_delay_ms_p95"].cells["program:true one"].count == 0
    assert "web:receive_rate_bps" in rows
    assert not [warning for warning in done.warnings if "noisy" in warning]


def test_a_noisy_session_is_marked_wherever_its_numbers_are(sessions: Sessions, tmp_path: Path) -> None:
    sessions.leaves = {"missed": 17}
    done = compare(["program:true", "gcc"], scenario(PLAIN), seeds=1)
    assert len(sessions.begun) == 4
    says = "seed 1 is noisy in all 4 sessions: 17 packets were lost because they came faster than tidegate read them"
    done.save(tmp_path / "out")
    again = Comparison.load(tmp_path / "out")
    for comparison in (done, again):
        assert any(says in warning for warning in comparison.warnings)
        assert says in comparison.table.to_markdown()
        (data,) = [run for run in comparison.to_data()["runs"] if run["controller"] == "program:true"]
        assert (data["session"]["verdict"], data["session"]["sessions"]) == ("noisy", 4)
    assert says in (tmp_path / "out" / "report.html").read_text()
    folder = tmp_path / "out" / "runs" / "program-true-seed1"
    assert (folder / "shared" / "log").read_text() == "1"
    assert (folder / "program-A.txt").read_text() == "a\nlast word\n"
    assert len((folder / "arrivals.csv").read_text().splitlines()) == 255


@pytest.mark.parametrize(
    ("leaves", "says"),
    [
        (
            {"size": 0},
            'program:true: side A sent nothing to 10.77.0.2 (TIDEGATE_PEER); the program printed last: "last word"',
        ),
        (
            {"status": 3, "ended_s": 1.25},
            "the program at side B ended with exit code 3 after 1.2 s of 4 s; the program printed nothing",
        ),
        ({"status": -11, "ended_s": 1.0}, "the program at side B was killed by signal 11 after 1.0 s of 4 s"),
        (
            {"status": 0, "ended_s": 2.0},
            "the program at side B ended with exit code 0 after 2.0 s of 4 s; expected a program that runs until",
        ),
        ({"why": "behind"}, "this machine is too slow for the session"),
    ],
)
def test_a_session_that_is_none_is_told(sessions: Sessions, leaves: dict[str, Any], says: str) -> None:
    if "status" in leaves:
        ended = {"argv": ["true"], "stopped": False, **leaves}
        leaves = {"programs": {"A": {**ended, "stopped": True}, "B": ended}}
    sessions.leaves = leaves
    done = compare(["program:true", "gcc"], scenario(PLAIN))
    assert list(done.runs) == ["gcc"]
    assert says in done.failed["program:true"]
    with pytest.raises(RunError) as error:
        compare(["program:true"], scenario(PLAIN))
    assert says in str(error.value)
    # a program that ends by itself in the last second, and anything after SIGTERM, is fine
    sessions.leaves = {
        "programs": {
            "A": {"stopped": False, "status": 0, "ended_s": 3.1},
            "B": {"stopped": True, "status": 9, "ended_s": 4},
        }
    }
    assert compare(["program:true"], scenario(PLAIN)).controllers == ["program:true"]


def test_what_a_killed_process_left_is_cleared(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    for name in (f"{FOLDER_PREFIX}{gone.pid}-abc", f"{FOLDER_PREFIX}{os.getpid()}-abc", f"{FOLDER_PREFIX}abc"):
        (tmp_path / name / "shared").mkdir(parents=True)
    compare(["program:true"], scenario(PLAIN))
    assert len(sessions.begun) == 1
    assert {f"{FOLDER_PREFIX}{os.getpid()}-abc", f"{FOLDER_PREFIX}abc"} <= {
        folder.name for folder in tmp_path.iterdir()
    }
    assert not (tmp_path / f"{FOLDER_PREFIX}{gone.pid}-abc").exists()


def test_ctrl_c_in_a_session_ends_the_comparison(sessions: Sessions) -> None:
    sessions.leaves = {"interrupted": "SIGINT"}
    with pytest.raises(KeyboardInterrupt):
        compare(["program:true"], scenario(PLAIN))
    assert len(sessions.begun) == 1


def test_a_program_has_the_luck_of_a_simulated_call_with_the_same_seed(tmp_path: Path) -> None:
    original = scenario(LUCK)
    live = played(tmp_path, standing_for(original, "call"), seed=5)
    for seed, alike in ((5, True), (6, False)):
        simulated = run(original, seed=seed)
        common = {name: draws for name, draws in simulated.draws.items() if not name.startswith("call")}
        assert {name.partition("/")[0] for name in common} >= {"link", "web"}
        shared = 0
        for name, theirs in common.items():
            ours = live.draws[name]
            both = min(len(ours["checkpoints"]), len(theirs["checkpoints"]))
            same = ours["checkpoints"][:both] == theirs["checkpoints"][:both]
            shared += both
            assert same == alike or not both, (name, seed)
        assert shared > 15
    # and the competition is the same packet for packet
    assert live.metrics("web")["packets_sent"] == run(original, seed=5).metrics("web")["packets_sent"]


def test_the_columns_are_those_of_a_call_and_what_nobody_knows_is_empty(tmp_path: Path) -> None:
    original = scenario(LUCK)
    stand = standing_for(original, "call")
    live = played(tmp_path, stand, seed=1)
    assert live.subject == "call"
    ours, theirs = live.metrics(), run(original).metrics()
    assert set(ours) == set(theirs)
    assert ours["kind"] == "program"
    assert ours["receive_rate_bps"] > 400_000
    # 1000 bytes on the wire are 972 behind the headers of IP and UDP
    assert ours["goodput_bps"] == pytest.approx(ours["receive_rate_bps"] * 0.972)
    assert all(ours[name] is None for name in ours if name.startswith(("frame", "freeze", "pli", "nack", "sender_d")))
    assert live.summary["fairness"]["flows"] == []


def test_a_program_shares_a_link_as_a_call_does(tmp_path: Path) -> None:
    text = LUCK.replace('udp = { rate = "100kbps", pattern = "poisson" }', "tcp = {}")
    live = played(tmp_path, standing_for(scenario(text), "call"), seed=1)
    assert sorted(live.summary["fairness"]["flows"]) == ["call", "web"]
    assert live.summary["fairness"]["jain_5s"] is None or 0 < live.summary["fairness"]["jain_5s"] <= 1


class Held:
    """A session that is over, whose clock was late by this much."""

    def __init__(self, late: float) -> None:
        self.late = late
        self.against = [f"{late} ms late"] if late > 5 else []
        self.judged = (bool(self.against), late)


@pytest.mark.parametrize(
    ("lates", "had", "kept"),
    [([1.0], 1, 1.0), ([9.0, 2.0], 2, 2.0), ([9.0, 7.0, 8.0, 6.5], 4, 6.5), ([9.0, 8.0, 7.0, 6.0, 1.0], 4, 6.0)],
)
def test_noisy_sessions_are_had_again_three_times_at_most_and_the_best_is_kept(
    lates: list[float], had: int, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining: Iterator[float] = iter(lates)
    monkeypatch.setattr(LiveJob, "_hold", lambda *_: Held(next(remaining)))
    monkeypatch.setattr(LiveJob, "_run", lambda _, held, tries: (tries, held.late))
    done: Any = LiveJob.of("program:true", scenario(PLAIN), "call", 1)()
    assert done == (had, kept)


def test_an_error_costs_the_others_nothing_and_ctrl_c_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_contender, "check_environment", lambda *_: None)
    jobs = [LiveJob.of("program:true", scenario(PLAIN), "call", seed) for seed in (1, 2, 3)]

    def hold(job: LiveJob, tell: Any) -> int:
        tell(0.5)
        if job.seed == 2:
            raise RunError("it failed")
        return job.seed

    monkeypatch.setattr(LiveJob, "__call__", hold)
    fractions: list[float] = []
    first, second, third = attempt(jobs, fractions.append)
    assert (first, third) == (1, 3)
    assert isinstance(second, RunError)
    assert fractions == pytest.approx([1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6, 1])

    def stop(_: LiveJob, __: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(LiveJob, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        attempt(jobs)


def test_how_long_it_takes_is_said_before() -> None:
    jobs = [LiveJob.of("program:true", scenario(PLAIN), "call", seed) for seed in range(1, 31)]
    assert how_long(jobs[:1]).startswith("1 session of programs in real time takes about 6 s, and more if")
    assert "30 sessions, one after the other, of programs in real time take about 3 min 0 s" in how_long(jobs)
    fractions: list[float] = []
    first, then = beside(fractions.append, [], jobs)
    assert first is not None
    assert then is not None
    first(1.0)
    then(0.5)
    assert fractions == [0.0, 0.5]


def test_contenders_of_compare_and_cases_that_do_not_fit(cli: Cli, tmp_path: Path) -> None:
    for typed, says in (
        (
            ["compare", "program:true", "--scenario", "hundred-calls"],
            "flows.call: the flow stands for 100 calls, but programs make one",
        ),
        (["compare", "program:true", "--scenario", "group-t2"], "no media flow has a controller to replace"),
        (
            ["compare", "program:true", "--media", "bars"],
            "makes its own video; a clip can only be fed to simulated calls",
        ),
        (
            ["run", "home-broadband", "--set", "flows.call.media.controller=program:true"],
            "a simulation needs a controller",
        ),
        (["compare", "program:true", "program:true"], "program:true: the contender is listed twice"),
    ):
        outcome = cli(*typed)
        assert outcome.code == 2, (typed, outcome.err)
        assert says in outcome.err
        assert "Traceback" not in outcome.err
    # what runs simulations again and again takes none
    with pytest.raises(ControllerError, match="a simulation needs a controller"):
        Plan.of(Suite.load("smoke"), ["program:true"], seeds=1, simulated=True)
    plan = Plan.of(Suite.load("smoke"), ["gcc", "program:true"], seeds=1)
    refused = {case: why for (case, _), why in plan.refused.items()}
    assert list(refused) == ["5.4"]
    assert "calls" in refused["5.4"]
    sessions = [point for point in plan.points if point.session is not None]
    assert [point.case.name for point in sessions] == ["5.1", "5.6", "fq-codel", "loss", "cell"]
    assert len(plan.sessions(tmp_path / "none")) == 5
    # another seed, program or scenario is another run
    keys = {point.key for point in Plan.of(Suite.load("smoke"), ["program:true", "program:false"], seeds=2).points}
    assert len(keys) == 20


def test_a_run_of_a_program_is_saved_with_its_files_and_read_back(tmp_path: Path) -> None:
    live = tmp_path / "session"
    (live / "shared" / "deep").mkdir(parents=True)
    (live / "shared" / "deep" / "log.txt").write_text("left by both")
    names = ["arrivals.csv", "shared/deep/log.txt"]
    recorded = played(live, standing_for(scenario(LUCK), "call"), seed=1)
    extra: Mapping[str, Any] = {"session": {"verdict": "noisy", "against": ["9 ms late"]}}
    recorded.with_files(live, names, extra).save(tmp_path / "one")
    again = Run.load(tmp_path / "one")
    assert again.session == extra["session"]
    assert again.digest == recorded.digest
    again.save(tmp_path / "two")
    assert (tmp_path / "two" / "shared" / "deep" / "log.txt").read_text() == "left by both"
    for wrong in ("../x", "/etc/passwd", "", 3):
        about = json.loads((tmp_path / "two" / "run.json").read_text())
        (tmp_path / "bad").mkdir(exist_ok=True)
        (tmp_path / "bad" / "run.json").write_text(json.dumps({**about, "files": [wrong]}))
        with pytest.raises(InputError, match=r"files\[1\]: found"):
            Run.load(tmp_path / "bad")


def test_the_example_says_what_it_is_for() -> None:
    source = (ROOT / "docs" / "examples" / "rtp_cbr.py").read_text()
    assert "program:python3 docs/examples/rtp_cbr.py" in source
    assert (
        "program:python3 docs/examples/rtp_cbr.py"
        in (compare.__doc__ or "") + (ROOT / "python" / "tidegate" / "cli" / "runs.py").read_text()
    )
    lower(scenario(PLAIN))
