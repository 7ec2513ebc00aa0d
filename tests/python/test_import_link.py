"""Recorded calls over a link of ours: its truth beside what the recording saw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tidegate
from support import ARRIVALS, Cli
from support import event_logs as log
from tidegate import InputError
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
    assert f"+{LATER_S + 0.0003:.6f} s are added to the recording's times to get those of the link" in told
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
    assert "Capacity is the truth of link up" in page


def test_losses_that_the_link_did_not_cause_are_told(session: Path, tmp_path: Path) -> None:
    run = imported(files(tmp_path, LOST | {99}), same_clock=True, link=session)
    assert "the link dropped 3, the recording lost 4: 1 differ" in " ".join(run.warnings)


def test_where_the_recording_tells_no_losses_none_are_compared(session: Path, tmp_path: Path) -> None:
    run = imported(files(tmp_path, LOST)[:1], link=session)
    told = " ".join(run.warnings)
    assert (
        f"outgoing: of {COUNT} packets of both the link dropped 3, the recording does not tell what became of them"
        in told
    )
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
    assert "time 0 is taken to be the beginning of the recording" in " ".join(run.warnings)


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
    with pytest.raises(InputError, match=r"arrivals\.csv: is damaged: found invalid literal"):
        imported(some, link=session)
    (session / "arrivals.csv").write_text("\n".join(text.splitlines()[:6]) + "\n")
    with pytest.raises(InputError, match="its packets are not those of the recording"):
        imported(some, link=session)


STATS = """\
{"t": 1700000000000, "report": {"O": {"type": "outbound-rtp", "id": "O", "kind": "video", "timestamp": 1700000000000.0, "ssrc": 1, "bytesSent": 0, "packetsSent": 0}}}
{"t": 1700000001000, "report": {"O": {"type": "outbound-rtp", "id": "O", "kind": "video", "timestamp": 1700000001000.0, "ssrc": 1, "bytesSent": 99000, "packetsSent": 90}}}
{"t": 1700000002000, "report": {"O": {"type": "outbound-rtp", "id": "O", "kind": "video", "timestamp": 1700000002000.0, "ssrc": 1, "bytesSent": 180000, "packetsSent": 170}}}
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
"""
LINKS = {
    "shipped": "home-broadband",
    "generated": "lte-generated",
    "of satellites": "starlink",
    "coupled": "coupled-calls",
    "with TCP that begins later than the recording ends": "drop-and-download",
    "with code of somebody's": "code.toml",
    "moved": "moved.toml",
}


@pytest.mark.parametrize("format_", ["event logs", "getStats", "capture"])
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_every_format_over_every_kind_of_link(format_: str, link: str, tmp_path: Path, cli: Cli) -> None:
    named = calls(tmp_path)[format_]
    (tmp_path / "canary.py").write_text(CANARY)
    (tmp_path / "code.toml").write_text(STEPS.replace('"gcc"', '"python:canary.py:Canary"'))
    (tmp_path / "moved.toml").write_text(
        STEPS + '[[moves]]\ntime = "500ms"\nlink = "down"\nkey = "capacity"\nvalue = "1Mbps"\n'
    )
    done = cli("import", *named, "--link", link, "--out", "call")
    assert done.code == 0, done.err
    assert "capacity (Mbit/s)" in done.out
    assert "the capacity is that of the scenario" in done.err
    assert cli("import", *named, "--link", link, "--out", "call", "--json").code == 0
    assert cli("report", "call").code == 0
    assert not (tmp_path / "ran").exists(), "nobody's code runs"


def test_a_capacity_is_that_of_the_same_run_with_its_controller(tmp_path: Path) -> None:
    """Bin by bin; a constant sender in its place changes nothing of a generated link."""
    run = imported(files(tmp_path, LOST), same_clock=True, link="lte-generated")
    length = float(run.summary["duration_s"])
    own = tidegate.run(tidegate.Scenario.load("lte-generated"), record="series").table("truth")
    before = own.to_numpy("t_s") < length
    joined = run.table("truth")
    for column in ("t_s", "link", "capacity_bps"):
        assert sorted(joined.to_numpy(column)) == sorted(own.to_numpy(column)[before]), column
    (link, _) = run.summary["links"]
    mean = joined.to_numpy("capacity_bps")[joined.to_numpy("link") == link["link"]].mean()
    assert link["capacity_bps"] == mean


def test_links_without_a_capacity_of_their_own_are_refused(tmp_path: Path, cli: Cli) -> None:
    files(tmp_path, LOST)
    done = cli("import", "near.log", "--link", "lte-cell", "--out", "call")
    assert (done.code, done.out) == (2, "")
    assert "lte-cell: none of its links has a capacity of its own" in done.err
    assert not (tmp_path / "call").exists()
