"""Sessions of real programs, as far as they need no namespaces: scenarios, replays, verdicts, wrong uses."""

from __future__ import annotations

import json
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import ARRIVALS, Cli
from tidegate import InputError, Scenario

if sys.platform != "linux":
    pytest.skip("sessions of real programs need Linux", allow_module_level=True)

from tidegate.scenario.lower import lower
from tidegate.shell import _network, replay, streams, verdict, with_programs
from tidegate.shell._scenario import standing_for

HOME = {"duration": "6s"}
SMALL = with_programs(Scenario.load("home-broadband", HOME), flows=1)


MOVED: dict[str, Any] = {
    "duration": "20s",
    "links": [{"name": "wifi", "delay": "10ms"}, {"name": "lte", "delay": "50ms"}],
    "flows": [{"name": "call", "media": {}}, {"name": "other", "media": {}}],
    "moves": [
        {"time": "5s", "flow": "call", "key": "path", "value": ["lte"], "signalled": False},
        {"time": "6s", "flow": "other", "key": "path", "value": ["lte"]},
        {"time": "7s", "link": "wifi", "key": "loss", "value": "100%"},
    ],
}


def test_programs_go_over_to_the_paths_of_the_call_that_they_replace() -> None:
    moves = with_programs(Scenario.from_dict(MOVED), flows=2).moves
    assert [(move.flow or move.link, move.value) for move in moves] == [
        ("A-1", ["lte"]),
        ("A-2", ["lte"]),
        ("B-1", ["lte.back"]),
        ("B-2", ["lte.back"]),
        ("other", ["lte"]),
        ("wifi", 1.0),
    ]
    standing = standing_for(Scenario.from_dict(MOVED), "call").live
    assert [(move.flow, move.value) for move in standing.moves[:2]] == [
        ("call", ["lte"]),
        ("call.feedback", ["lte.back"]),
    ]
    begins = {"time": "5s", "flow": "call", "key": "running", "value": True}
    with pytest.raises(InputError, match=r"moves\[1\]: found running of call; programs do that by themselves"):
        with_programs(Scenario.from_dict({**MOVED, "moves": [begins]}))


def test_programs_stand_where_the_call_was() -> None:
    scenario = Scenario.load("fq-codel-home")
    live = with_programs(scenario, flows=2)
    call, *others = scenario.flows
    assert [flow.name for flow in live.flows] == [*(flow.name for flow in others), "A-1", "B-1", "A-2", "B-2"]
    ends = {flow.name: (flow.from_, flow.to) for flow in live.flows}
    assert ends["A-1"] == ends["A-2"] == (call.from_, call.to)
    assert ends["B-1"] == (call.to, call.from_)
    lower(live)


def test_one_of_several_alike_is_replaced_and_any_flow_can_be() -> None:
    scenario = Scenario.load("rfc8867-5.7-short-tcp")
    names = [name for flow in scenario.flows for name in flow.names]
    live = with_programs(scenario, scenario.flows[-1].name, flows=1)
    remaining = [name for flow in live.flows for name in flow.names]
    assert len(remaining) == len(names) - 1 + 2
    lower(live)
    with pytest.raises(InputError, match="--call cal: home-broadband has no flow of this name; did you mean call"):
        with_programs(Scenario.load("home-broadband"), "cal")


def test_scenarios_of_other_drivers_are_refused() -> None:
    data = Scenario.load("home-broadband", HOME).to_dict()
    for name, wrong in {"fed": "fed is external", "A-7": "flows.A-7: the programs' flows are called"}.items():
        flow: dict[str, Any] = {"name": name, "from": "home", "to": "internet"}
        flow |= {"external": {}} if name == "fed" else {"tcp": {"algorithm": "cubic"}}
        with pytest.raises(InputError, match=wrong):
            with_programs(Scenario.from_dict({**data, "flows": [*data["flows"], flow]}))


@pytest.mark.parametrize("name", ["lte-one-call", "lte-cell", "lte-driving"])
def test_programs_are_at_one_user_of_a_radio_network(name: str) -> None:
    scenario = Scenario.load(name)
    assert scenario.lte is not None
    before = {user.name: user for user in scenario.lte.users}
    live = with_programs(scenario, flows=1)
    assert live.lte is not None
    after = {user.name: user for user in live.lte.users}
    a, b = (next(flow for flow in live.flows if flow.name == f"{side}-1") for side in "AB")
    assert (a.from_, a.to) == (b.to, b.from_) == ("server", a.to)
    mine = after[a.to]
    assert not mine.several
    group = before[scenario.flows[0].to]
    assert (mine.place, mine.full_buffer) == (group.place, group.full_buffer)
    if not group.several:
        # its only user, whose simulated call is gone
        assert (mine.name, list(before)) == (group.name, list(after))
        assert all(flow.media is None for flow in live.flows)
    elif group.arrival is None:
        assert after[group.name].count == group.count - 1
    else:
        assert after[group.name] == group
    lower(live)


@pytest.mark.parametrize(
    ("end", "ends", "expected"),
    [
        ("A", "AB", ("A", "10.77.0.1", "10.77.0.2")),
        ("B", "ABCD", ("B", "10.77.0.2", "10.77.0.1")),
        ("C", "ABCD", ("A", "10.77.0.3", "10.77.0.4")),
        ("D", "ABCD", ("B", "10.77.0.4", "10.77.0.3")),
        ("C", "ABC", ("A", "10.77.0.3", "10.77.0.2")),
        ("H", "ABCDEFGH", ("B", "10.77.0.8", "10.77.0.7")),
    ],
)
def test_an_end_finds_its_side_its_address_and_its_peer(end: str, ends: str, expected: tuple[str, str, str]) -> None:
    variables = _network.environment(end, ends)
    assert tuple(variables[f"TIDEGATE_{key}"] for key in ("SIDE", "ADDRESS", "PEER")) == expected
    assert variables["TIDEGATE_END"] == end


def test_a_scenario_of_sessions_alone_has_no_place_for_programs() -> None:
    with pytest.raises(
        InputError, match="group-t2: programs can only replace a flow, and the scenario has only sessions"
    ):
        with_programs(Scenario.load("group-t2"))


def written(folder: Path, arrivals: list[str], fates: list[str], end: int = 5_000_000_000) -> Path:
    """The files of a session."""
    (folder / "arrivals.csv").write_text("\n".join([ARRIVALS, *arrivals, ""]))
    (folder / "fates.csv").write_text("\n".join(["number,at_ns,fate,written_ns", *fates, ""]))
    (folder / "session.json").write_text(json.dumps({"end_ns": end}))
    return folder


def packet(number: int, time: int, side: str, size: int) -> str:
    """A line of `arrivals.csv`."""
    return f"{number},{time},0,{side},1,{size},0,17,10.77.0.1,5004,10.77.0.2,6000,,,,,"


def test_a_replay_has_the_closed_form_and_tells_what_differs(tmp_path: Path) -> None:
    # 5 Mbit/s and 15 ms there, 50 Mbit/s and 15 ms back: 1250 bytes take 2 ms and 0.2 ms
    live = with_programs(Scenario.load("home-broadband", HOME))
    second = 1_000_000_000
    arrivals = [packet(0, second, "A", 1250), packet(1, second + 7, "A", 1250), packet(2, 2 * second, "B", 1250)]
    due = [second + 17_000_000, second + 19_000_000, 2 * second + 15_200_000]
    fates = [f"{number},{time},arrives,{time + 999}" for number, time in enumerate(due)]
    run, differs = replay(written(tmp_path, arrivals, fates), live)
    assert differs is None
    assert run.metrics("A-1")["packets_received"] == 2
    assert run.metrics("B-1")["one_way_delay_ms_mean"] == pytest.approx(15.2)
    # a nanosecond is a difference, and so is a drop
    for wrong in (f"0,{due[0] + 1},arrives,", f"0,{due[0]},queue,"):
        _, differs = replay(written(tmp_path, arrivals, [wrong, *fates[1:]]), live)
        assert differs is not None
        assert differs.startswith("packet 0: ")


@pytest.mark.parametrize(
    ("arrival", "says"),
    [
        ("0,1", "arrivals.csv: line 2: found 2 cells; expected 17"),
        (packet(0, 1, "C", 100), 'arrivals.csv: line 2: from: found "C"; expected A or B'),
        (packet(3, 1, "A", 100), "arrivals.csv: line 2: number: found 3; expected 0"),
        (packet(0, 9_000_000_000, "A", 100), "packet 0 arrives at 9"),
    ],
)
def test_damaged_sessions_are_told_with_their_line(tmp_path: Path, arrival: str, says: str) -> None:
    live = with_programs(Scenario.load("home-broadband", HOME))
    with pytest.raises(InputError) as error:
        replay(written(tmp_path, [arrival], []), live)
    assert says in str(error.value)
    (tmp_path / "fates.csv").unlink()
    with pytest.raises(InputError, match=r"fates\.csv cannot be read: No such file"):
        replay(tmp_path, live)


CELLS = st.one_of(
    st.sampled_from(
        ["", "0", "-1", "1", "nan", "9" * 19, "9" * 30, "A", "arrives", "queue", "\x00", "1.5", "\n", '"', ","]
    ),
    st.integers(-(2**65), 2**65).map(str),
    st.text(max_size=8),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["arrivals.csv", "fates.csv"]), line=st.integers(0, 3), cell=st.integers(0, 14), content=CELLS
)
def test_whatever_is_in_a_cell_a_replay_says_a_line_or_works(
    tmp_path: Path, name: str, line: int, cell: int, content: str
) -> None:
    live = SMALL
    times = [1_000_000_000, 1_000_000_007, 2_000_000_000]
    arrivals = [packet(number, time, "A", 1250) for number, time in enumerate(times)]
    fates = [f"{number},{time + 20_000_000},arrives," for number, time in enumerate(times)]
    file = written(tmp_path, arrivals, fates) / name
    lines = file.read_text().split("\n")
    cells = lines[line].split(",")
    cells[cell % len(cells)] = content
    lines[line] = ",".join(cells)
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    # each command that reads it gives an answer, or an error that the command line says in a line with exit code 2
    for command in (lambda: replay(tmp_path, live), lambda: streams(tmp_path)):
        try:
            command()
        except InputError as error:
            assert name in str(error) or str(error).startswith("home-broadband: "), error
            assert error.exit_code == 2


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 2000), bytes_=st.binary(max_size=6), cut=st.booleans())
def test_whatever_bytes_a_session_holds_a_replay_says_a_line_or_works(
    tmp_path: Path, number: int, bytes_: bytes, cut: bool
) -> None:
    written(tmp_path, [packet(0, 1, "A", 100)], ["0,2,arrives,"])
    for name in ("arrivals.csv", "fates.csv", "session.json"):
        file = tmp_path / name
        original = file.read_bytes()
        position = number % len(original)
        file.write_bytes(original[:position] + bytes_ + (b"" if cut else original[position + len(bytes_) :]))
        for command in (lambda: replay(tmp_path, SMALL), lambda: streams(tmp_path)):
            with suppress(InputError):
                command()
        file.write_bytes(original)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "session.json: Expecting property name"),
        ("[]", "session.json: end_ns: found null; expected nanoseconds"),
        ('{"end_ns": "soon"}', 'session.json: end_ns: found "soon"; expected nanoseconds'),
        ('{"end_ns": 9223372036854775808}', "session.json: end_ns: found 9223372036854775808; expected nanoseconds"),
        ('{"end_ns": 7000000000}', "ends at 7"),
    ],
)
def test_a_damaged_session_file_is_told(tmp_path: Path, text: str, says: str) -> None:
    written(tmp_path, [], [])
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(InputError) as error:
        replay(tmp_path, SMALL)
    assert says in str(error.value)
    (tmp_path / "session.json").write_bytes(b'{"end_ns": \xff}')
    with pytest.raises(InputError, match=r"session\.json: byte 12: found a byte that is not text"):
        replay(tmp_path, SMALL)


def test_each_limit_makes_a_session_noisy() -> None:
    quiet: dict[str, Any] = {
        "lateness": {"p99_ms": 5.0},
        "clamped_by": {"p99_ms": None},
        **dict.fromkeys(("missed", "unwritten", "unstamped"), 0),
    }
    assert verdict(quiet) == ("quiet", [])
    wrongs: list[dict[str, Any]] = [
        {"lateness": {"p99_ms": 5.01}},
        {"clamped_by": {"p99_ms": 5.01}},
        *({key: 1} for key in ("missed", "unwritten", "unstamped")),
    ]
    for wrong in wrongs:
        kind, against = verdict({**quiet, **wrong})
        assert kind == "noisy"
        assert len(against) == 1


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ([], "found no scenario; expected tidegate shell SCENARIO"),
        (["home-broadband", "--", "true", "--"], "found an empty program; expected tidegate shell SCENARIO"),
        (["home-broadband", *["--", "true"] * 9], "found 9 programs; expected at most 8"),
        (
            ["home-broadband", "--pcap", "--", "true", "--", "true"],
            "--pcap: no folder is given for the files; add --out DIR",
        ),
        (["home-broadband", "--seed", "-1", "--", "true", "--", "true"], "--seed"),
        (["home-broadband", "--set", "links.uplink.delay", "--", "true", "--", "true"], "expected KEY=VALUE"),
        (["home-broadband", "--set", "links.x.delay=1ms", "--", "true", "--", "true"], "links.x"),
        (["--enter", "absent"], "--enter absent: there is no session of this name; no session is running"),
        (["--enter", "absent:X"], "--enter absent:X: found end X; expected a letter from A to H"),
        (["home-broadbant", "--", "true", "--", "true"], "did you mean home-broadband"),
        (
            ["home-broadband", "--call", "x", "--", "true", "--", "true"],
            "--call x: home-broadband has no flow of this name",
        ),
        (["home-broadband", "--record", "x", "--", "true", "--", "true"], "--record: found x; expected"),
        (
            ["home-broadband", "--realtime", "x", "--", "true", "--", "true"],
            "--realtime: found x; expected auto or off",
        ),
        (["home-broadband", "--duration", "x", "--", "true", "--", "true"], "duration"),
        (["home-broadband", "--out", "/proc/x", "--", "true", "--", "true"], "/proc/x"),
    ],
)
def test_wrong_uses_are_told_and_nothing_is_started(
    cli: Cli, typed: list[str], says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tidegate.shell.check_environment", lambda *_: None)
    outcome = cli("shell", *typed)
    assert outcome.code in {1, 2}
    assert says in outcome.err
    assert "Traceback" not in outcome.err
    assert not outcome.out


def test_what_is_missing_is_named_with_its_package(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tidegate.shell.sessions.search_path", lambda: str(tmp_path))
    outcome = cli("shell", "home-broadband", "--", "true", "--", "true")
    assert outcome.code == 2
    assert "unshare (package util-linux) and ip (package iproute2)" in outcome.err


def test_elsewhere_than_on_linux_it_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.shell.sessions.sys", SimpleNamespace(platform="darwin"))
    outcome = cli("shell", "home-broadband", "--", "true", "--", "true")
    assert outcome.code == 2
    assert "tidegate shell needs Linux: network namespaces and packet sockets" in outcome.err


def test_a_folder_with_something_else_is_left_alone(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tidegate.shell.check_environment", lambda *_: None)
    (tmp_path / "mine.txt").write_text("mine")
    outcome = cli("shell", "home-broadband", "--out", str(tmp_path), "--", "true", "--", "true")
    assert outcome.code == 1
    assert "the folder holds other files" in outcome.err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_forbidden_namespaces_are_told_with_what_would_help(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "unshare"
    fake.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr("tidegate.shell.sessions.search_path", lambda: f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")
    outcome = cli("shell", "home-broadband", "--", "true", "--", "true")
    assert outcome.code == 2
    assert "network namespaces cannot be made here: unshare: unshare failed: Operation not permitted; " in outcome.err


def test_streams_are_told_apart_with_their_losses_and_frames(tmp_path: Path) -> None:
    arrivals, fates = [], []
    # two packets a frame, sequence numbers past their end; in frame 3 one is lost, the last one is under way
    for number in range(40):
        rtp = f"7,{(65530 + number) % 65536},{number // 2 * 3000},96,{number % 2}"
        arrivals.append(f"{number},{number * 1_000_000},0,A,2,1000,0,17,10.77.0.1,5004,10.77.0.2,6000,{rtp}")
        fates += [f"{number},{number * 1_000_000 + 5},{'queue' if number == 7 else 'arrives'},"] if number < 39 else []
    # bytes that look like RTP by chance
    for number in range(40, 80):
        rtp = f"9,{number * 7919 % 65536},{number},13,0"
        arrivals.append(f"{number},{number * 1_000_000},0,B,1,100,0,17,10.77.0.1,5004,10.77.0.2,6000,{rtp}")
    (stream,) = streams(written(tmp_path, arrivals, fates))
    assert (stream.flow, stream.ssrc, stream.payload_type) == ("A-2", 7, 96)
    assert (stream.packets, stream.lost, stream.frames, stream.whole_frames) == (40, 1, 20, 18)
    assert stream.rate_bps == pytest.approx(40 * 8000 / 0.039)
    assert str(stream).startswith(
        "A-2 SSRC 0x00000007 (payload type 96): 40 packets, 1 lost, 8205 kbit/s, 18 of 20 frames"
    )


def test_a_flood_of_ssrcs_hides_no_stream_and_fills_no_memory(tmp_path: Path) -> None:
    row = "{number},{number}000,0,A,1,500,0,17,10.77.0.1,5004,10.77.0.2,6000,{ssrc},{sequence},{sequence},96,0"
    arrivals, sequence = [], 0
    for number in range(30_000):
        # one packet in ten is of a stream, the others have an SSRC each
        genuine = number % 10 == 0
        sequence += genuine
        arrivals.append(row.format(number=number, ssrc=7 if genuine else 100 + number, sequence=sequence))
    written(tmp_path, arrivals, [f"{number},{number}005,arrives," for number in range(30_000)])
    tracemalloc.start()
    (stream,) = streams(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (stream.ssrc, stream.packets, stream.lost) == (7, 3000, 0)
    # fates take 100 bytes a packet; 27 000 streams would be another 20 MB
    assert peak < 12e6


def test_a_registry_that_others_may_write_to_is_not_read(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tidegate.shell.check_environment", lambda *_: None)
    (tmp_path / "tidegate").mkdir()
    (tmp_path / "tidegate").chmod(0o777)
    outcome = cli("shell", "--enter", "x")
    assert outcome.code == 2
    assert "another user owns the folder or may write to it" in outcome.err


def test_what_a_killed_session_left_is_cleared_and_nothing_else(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tidegate.shell.check_environment", lambda *_: None)
    registry, abandoned, mine = tmp_path / "tidegate", tmp_path / "tidegate-session-1", tmp_path / "mine"
    for folder in (registry, abandoned, mine):
        folder.mkdir(mode=0o700)
    gone = 2**22 + 1  # more than any process has on Linux (proc(5): pid_max)
    for name, folder in {"one": abandoned, "two": mine}.items():
        (registry / f"{name}.json").write_text(json.dumps({"pid": gone, "place": str(folder)}))
    (registry / "three.json").write_text("{")
    outcome = cli("shell", "--enter", "one")
    assert outcome.code == 2
    assert "--enter one: there is no session of this name; no session is running" in outcome.err
    assert not abandoned.exists()
    assert mine.exists()
    assert [file.name for file in registry.iterdir()] == ["three.json"]
