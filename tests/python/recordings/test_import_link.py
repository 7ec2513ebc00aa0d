"""Recorded calls over a link of ours: its truth beside what the recording saw."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tidegate
from support import ARRIVALS, Cli
from support import event_logs as log
from tidegate import InputError
from tidegate._inputs import SESSION
from tidegate.recordings import imported

COUNT, LOST = 300, {20, 21, 150}
LATER_S = 3.0
"""The session's clock is so much ahead of the run's: the call began 3 s after it."""

STEPS = """\
name = "steps"
duration = "8s"
record = "series"
links = [
  { name = "up", from = "left", to = "right", capacity = { schedule = [["0s", "2Mbps"], ["1s", "1Mbps"], ["4s", "500kbps"]] }, delay = "20ms" },
  { name = "down", from = "right", to = "left", capacity = "10Mbps", delay = "20ms" },
]
flows = [{ name = "call", media = { controller = "gcc" } }]
"""


def logged(lost: set[int]) -> bytes:
    """What a receiver's end and a sender's end saw, in one: packets every 10 ms, those that came 30 ms later."""
    sent = [log.Rtp(1000 + 10 * n, (65_400 + n) % 2**16, n, timestamp=3000 * n, marker=True) for n in range(COUNT)]
    return log.begin(990) + log.streams(0x1234, 0x1235) + log.rtp(sent, outgoing=True)


def received(lost: set[int]) -> bytes:
    came = [
        log.Rtp(1030 + 10 * n, (65_400 + n) % 2**16, n, timestamp=3000 * n, marker=True)
        for n in range(COUNT)
        if n not in lost
    ]
    return log.begin(990) + log.rtp(came, outgoing=False)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The folder of a session: that of a run, and what came in and what became of it."""
    folder = tmp_path / "session"
    tidegate.run(tidegate.Scenario.parse(STEPS)).save(folder)
    arrivals = [ARRIVALS]
    fates = ["number,at_ns,fate,written_ns"]
    for n in range(COUNT):
        # the packet is with the kernel 0.3 ms after its program stamped it; one was taken 5 ms late
        stamp, clamped = int((LATER_S + 0.01 * n) * 1e9) + 300_000, 5_000_000 if n == 7 else 0
        arrivals.append(
            f"{n},{stamp + clamped},{clamped},A,1,1080,0,17,10.77.0.1,5004,10.77.0.2,5004,4660,{(65_400 + n) % 2**16},{3000 * n},96,1"
        )
        fates.append(
            f"{n},{stamp + 30_000_000},{'queue' if n in LOST else 'arrives'},{'' if n in LOST else stamp + 30_000_000}"
        )
    arrivals.append(f"{COUNT},99,0,B,1,100,0,17,10.77.0.1,5004,10.77.0.2,5004,,,,,")
    (folder / "arrivals.csv").write_text("\n".join(arrivals) + "\n")
    (folder / "fates.csv").write_text("\n".join(fates) + "\n")
    return folder


def files(folder: Path, lost: set[int]) -> list[Path]:
    near, far = folder / "near.log", folder / "far.log"
    near.write_bytes(logged(lost))
    far.write_bytes(received(lost))
    return [near, far]


def test_the_link_s_truth_is_joined_by_the_clock_of_the_call(session: Path, tmp_path: Path, cli: Cli) -> None:
    run = imported(files(tmp_path, LOST), same_clock=True, link=session)
    told = " ".join(run.warnings)
    assert f"the link's times are the recording's plus {LATER_S + 0.0003:.6f} s" in told
    assert (
        f"outgoing: of {COUNT} packets of both the link dropped 3, the recording lost 3: packet by packet the same"
        in told
    )
    truth = run.table("truth")
    mine = truth.to_numpy("link") == "up"
    # what held when the call began is there from its beginning; the step at 4 s is one of the call at 1 s
    steps = np.append(True, np.diff(truth.to_numpy("capacity_bps")[mine]) != 0)
    assert truth.to_numpy("capacity_bps")[mine][steps].tolist() == [1e6, 5e5]
    assert np.allclose(truth.to_numpy("t_s")[mine][steps], [0.0, 1.0 - 0.0003])
    assert run.summary["links"][0]["link"] == "up"
    assert cli("import", "near.log", "far.log", "--same-clock", "--link", "session", "--out", "call").code == 0
    again = tidegate.Run.load(tmp_path / "call")
    assert again.table("truth").to_numpy("t_s").tolist() == truth.to_numpy("t_s").tolist()
    assert cli("report", "call").code == 0
    page = (tmp_path / "call" / "report.html").read_text("utf-8")
    assert "Capacity is the true capacity of link up" in page


def test_losses_that_the_link_did_not_cause_are_told(session: Path, tmp_path: Path) -> None:
    run = imported(files(tmp_path, LOST | {99}), same_clock=True, link=session)
    assert "the link dropped 3, the recording lost 4: 1 differ" in " ".join(run.warnings)


def test_where_the_recording_tells_no_losses_none_are_compared(session: Path, tmp_path: Path) -> None:
    run = imported(files(tmp_path, LOST)[:1], link=session)
    told = " ".join(run.warnings)
    assert f"outgoing: of {COUNT} packets of both the link dropped 3, the recording does not have their fate" in told
    assert "the same" not in told


def test_a_scenario_has_a_capacity_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "steps.toml").write_text(STEPS)
    run = imported(files(tmp_path, LOST), same_clock=True, link=tmp_path / "steps.toml")
    truth = run.table("truth")
    mine = truth.to_numpy("link") == "up"
    at = np.searchsorted(truth.to_numpy("t_s")[mine], [0.4, 2.0], "right") - 1
    assert truth.to_numpy("capacity_bps")[mine][at].tolist() == [2e6, 1e6]
    assert "queues" not in run.tables
    assert set(run.summary["links"][0]) == {"link", "capacity_bps"}
    assert "time 0 is assumed to be the beginning of the recording" in " ".join(run.warnings)


def test_what_is_no_session_of_the_call_is_told(session: Path, tmp_path: Path) -> None:
    some = files(tmp_path, LOST)
    with pytest.raises(
        InputError, match=r"has no arrivals\.csv and fates\.csv; expected the folder of a tidegate shell"
    ):
        imported(some, link=tmp_path)
    text = (session / "arrivals.csv").read_text()
    (session / "arrivals.csv").write_text(text.replace(",A,1,", ",A,1,x"))
    assert imported(some, same_clock=True, link=session).tables
    (session / "arrivals.csv").write_text(text.replace(",0,A,", ",zero,A,"))
    with pytest.raises(InputError, match=r"arrivals\.csv:2: the file is damaged: found invalid literal"):
        imported(some, link=session)
    (session / "arrivals.csv").write_text("\n".join(text.splitlines()[:6]) + "\n")
    with pytest.raises(InputError, match="the session's packets are not those of the recording"):
        imported(some, link=session)


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("arrivals.csv", lambda text: text.replace(",A,", ",C,", 1), ':2: the file is damaged: found side "C"; expected'),
        ("arrivals.csv", lambda text: text.replace(",0,A,", f",{'9' * 400},A,", 1), ":2: the file is damaged: found a num"),
        ("arrivals.csv", lambda text: text.replace(",65401,", ",70000,"), ":3: the file is damaged: found sequence number"),
        ("arrivals.csv", lambda text: text.replace("ssrc", "x"), ":1: the file is damaged: found no column ssrc"),
        ("fates.csv", lambda text: text + "7\n", ":302: the file is damaged: found too few cells"),
        ("fates.csv", lambda text: text + '"' + "x" * 200_000, ":302: the file is damaged: found field larger than"),
        ("fates.csv", lambda text: text + "\n" * 400_000, ": found 400301 lines; expected at most 320000, or a larger"),
        ("fates.csv", lambda text: text + " " * SESSION.size, " is larger than 32MB, the limit of a session's table"),
        ("fates.csv", lambda text: "", ":1: the file is damaged: found no column number"),
    ],
)  # fmt: skip
def test_files_of_a_session_are_checked_row_by_row(
    session: Path, tmp_path: Path, cli: Cli, name: str, change: Callable[[str], str], why: str
) -> None:
    files(tmp_path, LOST)
    file = session / name
    file.write_text(change(file.read_text()))
    got = cli("import", "near.log", "far.log", "--link", "session", "--out", "call")
    assert (got.code, got.err.count("\n")) == (2, 1)
    assert got.err.startswith(f"tidegate: session/{name}{why}")
    assert not (tmp_path / "call").exists()


def test_a_larger_file_of_a_session_needs_a_limit(session: Path, tmp_path: Path, cli: Cli) -> None:
    files(tmp_path, LOST)
    with (session / "fates.csv").open("a") as file:
        file.writelines(f"{number},1,queue,{' ' * 90}\n" for number in range(1000, 330_000))
    assert cli("import", "near.log", "far.log", "--link", "session", "--out", "call").code == 2
    assert cli("import", "near.log", "far.log", "--link", "session", "--out", "call", "--limit", "40MB").code == 0
    assert "TIDEGATE_LIMIT" not in os.environ, "a limit holds for one call of the command line"


STATS = """\
{"t": 1700000000.0, "report": {"O": {"type": "outbound-rtp", "id": "O", "kind": "video", "timestamp": 1700000000000.0, "ssrc": 1, "bytesSent": 0, "packetsSent": 0}}}
{"t": 1700000001.0, "report": {"O": {"type": "outbound-rtp", "id": "O", "kind": "video", "timestamp": 1700000001000.0, "ssrc": 1, "bytesSent": 99000, "packetsSent": 90}}}
{"t": 1700000002.0, "report": {"O": {"type": "outbound-rtp", "id": "O", "kind": "video", "timestamp": 1700000002000.0, "ssrc": 1, "bytesSent": 180000, "packetsSent": 170}}}
"""


def calls(folder: Path) -> dict[str, list[str]]:
    """The files of a short call in each format."""
    files(folder, LOST)
    (folder / "stats.jsonl").write_text(STATS)
    short = {"duration": "2s", "capture": True}
    (folder / "call.pcapng").write_bytes(tidegate.run(tidegate.Scenario.load("home-broadband", short)).pcapng("sender"))
    return {"event logs": ["near.log", "far.log"], "getStats": ["stats.jsonl"], "capture": ["call.pcapng"]}


CANARY = """\
import pathlib
pathlib.Path("ran").write_text("")
class Canary:
    def on_report(self, now_ns, report):
        return 1e6
Estimator = Canary
"""
FLOWS = {
    "foreign code": '{ name = "call", count = 2, media = { controller = "python:canary.py:Canary" } }',
    "foreign code, in a table": '{ media = { controller = { name = "python:canary.py:Canary", gain = 1 } } }',
    "a foreign estimator": '{ name = "call", media = { controller = "alphartc:canary.py" } }',
    "a model that is not there": '{ name = "call", media = { controller = "onnx:none.onnx" } }',
    "a name with a dot": '{ name = "a.call", media = {} }',
    "no name": "{ media = {} }",
    "programs": '{ name = "call", external = { program = true } }',
    "datagrams of others": '{ name = "call", external = {} }',
    "recorded frames that are not there": '{ name = "call", media = { video = { source = "frames", ladder = "x" } } }',
    "an encoder in the loop": '{ name = "call", media = { video = { source = "encoder", clip = "x.y4m" } } }',
    "TCP that begins when the recording is over": '{ name = "file", start = "6s", tcp = {} }',
}
MOVED = """
[[moves]]
time = "500ms"
link = "down"
key = "capacity"
value = "1Mbps"

[[moves]]
time = "7s"
flow = "call"
key = "running"
value = false
"""
KINDS = {
    "constant": '"3Mbps"',
    "steps": '{ schedule = [["0s", "2Mbps"], ["300ms", "0bps"], ["450ms", "1Mbps"]], period = "700ms" }',
    "recorded": '{ trace = "net.csv", offset = "random" }',
    "generated": "{ brownian = {} }",
    "of satellites": '{ leo = { median = "5Mbps", interval = "1s" } }',
    "drawn": """{ interval = "250ms", statuses = [
  { name = "good", capacity = "2Mbps", probability = 0.5 }, { name = "bad", capacity = "0bps", probability = 0.5 } ] }""",
}


@pytest.fixture
def scenarios(tmp_path: Path) -> dict[str, str]:
    """Scenarios by what is in them: shipped ones, and files that are written."""
    (tmp_path / "canary.py").write_text(CANARY)
    texts = {
        name: STEPS.replace('{ name = "call", media = { controller = "gcc" } }', flow) for name, flow in FLOWS.items()
    }
    texts["moves"] = STEPS + MOVED
    texts["a day of TCP"] = (
        STEPS.replace("8s", "86400s").replace("10Mbps", "1Gbps").replace('media = { controller = "gcc" }', "tcp = {}")
    )
    some = {
        "shipped": "home-broadband",
        "generated": "lte-generated",
        "satellites": "starlink",
        "couplings": "coupled-calls",
        "a session": "group-t4",
    }
    for number, (name, text) in enumerate(texts.items()):
        (tmp_path / f"{number}.toml").write_text(text)
        some[name] = f"{number}.toml"
    return some


SCENARIOS = ["shipped", "generated", "satellites", "couplings", "a session", *FLOWS, "moves", "a day of TCP"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_of_any_flows_has_the_capacity_of_its_links(
    name: str, scenarios: dict[str, str], tmp_path: Path, cli: Cli
) -> None:
    files(tmp_path, LOST)
    done = cli("import", "near.log", "far.log", "--link", scenarios[name], "--out", "call")
    assert done.code == 0, done.err
    assert "the capacity is that of the scenario" in done.err
    assert not (tmp_path / "ran").exists(), "no foreign code runs"


@pytest.mark.parametrize("format_", ["event logs", "getStats", "capture"])
@pytest.mark.parametrize("name", ["shipped", "foreign code"])
def test_every_format_has_the_capacity_of_a_scenario(
    format_: str, name: str, scenarios: dict[str, str], tmp_path: Path, cli: Cli
) -> None:
    argv = ["import", *calls(tmp_path)[format_], "--link", scenarios[name], "--out", "call"]
    done = cli(*argv)
    assert done.code == 0, done.err
    assert "capacity (Mbit/s)" in done.out
    remarks = tidegate.Run.load("call").remarks
    assert "the capacity is that of the scenario" in remarks.notes[-1]
    assert done.err == "".join(f"tidegate: {kind.lower()}: {sentence}\n" for kind, sentence in remarks.labelled)
    table = tidegate.Run.load("call").table("truth")
    assert set(table.to_numpy("controller")) == {"recorded"}
    again = cli(*argv, "--json")
    assert (again.code, again.err) == (0, done.err)
    assert all(set(link) <= {"link", "capacity_bps"} for link in json.loads(again.out)["links"])
    assert cli("report", "call").code == 0
    assert not (tmp_path / "ran").exists(), "no foreign code runs"


def own_links(kind: str, folder: Path) -> tidegate.Scenario:
    """A scenario that tries what a capacity could depend on: seeds, moves, a warm-up, a loss, TCP beside a call."""
    (folder / "net.csv").write_text("time_s,rate_bps\n0,2e6\n5,1e6\n9,4e6\n14,5e5\n20,1e6\n")
    text = f"""\
duration = "8s"
warmup = "1s"
seed = 7
seeds = {{ b = 3, call = 5 }}
links = [
  {{ name = "a", to = "middle", capacity = {KINDS[kind]}, delay = "20ms" }},
  {{ name = "b", from = "middle", capacity = {KINDS[kind]}, back = {{ capacity = "900kbps" }} }},
]
flows = [{{ name = "call", media = {{ both_ways = true }} }}, {{ name = "file", start = "1s", tcp = {{}} }}]
"""
    if kind != "drawn":
        text += '[[moves]]\ntime = "1500ms"\nlink = "a"\nkey = "capacity"\nvalue = "700kbps"\n'
    (folder / "own.toml").write_text(text)
    return tidegate.Scenario.load(folder / "own.toml")


@pytest.mark.parametrize("kind", KINDS)
def test_a_capacity_is_that_of_a_run_with_all_flows(kind: str, tmp_path: Path) -> None:
    """Bin by bin, to the bit; the mean is over the recording, whatever the scenario's warm-up."""
    scenario = own_links(kind, tmp_path)
    call = imported(files(tmp_path, LOST), same_clock=True, link=tmp_path / "own.toml")
    own = tidegate.run(scenario, record="series").table("truth")
    before = own.to_numpy("t_s") < float(call.summary["duration_s"])
    joined = call.table("truth")

    def rows(table: tidegate.Table, keep: np.ndarray) -> list[tuple[str, float, float]]:
        columns = (table.to_numpy(name)[keep].tolist() for name in ("link", "t_s", "capacity_bps"))
        return sorted(zip(*columns, strict=True))

    assert rows(joined, np.ones(len(joined), bool)) == rows(own, before)
    names, rates = joined.to_numpy("link"), joined.to_numpy("capacity_bps")
    assert [link["link"] for link in call.summary["links"]] == ["a", "a.back", "b", "b.back"]
    for link in call.summary["links"]:
        assert link["capacity_bps"] == rates[names == link["link"]].mean()


def test_a_radio_network_s_capacity_is_not_known_and_that_is_told(tmp_path: Path) -> None:
    data = tidegate.Scenario.load("lte-one-call").to_dict()
    data["links"][0]["capacity"] = "2Mbps"
    (tmp_path / "radio.toml").write_text(tidegate.Scenario.from_dict(data).to_toml())
    call = imported(files(tmp_path, LOST), same_clock=True, link=tmp_path / "radio.toml")
    assert [link["link"] for link in call.summary["links"]] == ["internet", "internet.back"]
    assert "the capacity of lte is not known" in " ".join(call.warnings)


def test_links_without_a_capacity_of_their_own_are_refused(tmp_path: Path, cli: Cli) -> None:
    files(tmp_path, LOST)
    done = cli("import", "near.log", "--link", "lte-cell", "--out", "call")
    assert (done.code, done.out) == (2, "")
    assert "lte-cell: no link of the scenario has a capacity of its own" in done.err
    assert not (tmp_path / "call").exists()
