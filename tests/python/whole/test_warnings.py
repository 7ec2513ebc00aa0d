"""What a run warns of: on the command line, in its results, and not where there is nothing to warn of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tidegate
from support import Cli
from tidegate.results.metrics import METRICS
from tidegate.show import report

ROOM = "375 bytes are too few for a packet of 1500 bytes: it is accepted only while the link is empty"


def slow(folder: Path, queue: str = "", service: str = "fifo", rate: str = "5kbps") -> Path:
    """A link of 10 kb/s, on which a packet of 1500 bytes takes 1.2 s, and packets at `rate`."""
    file = folder / "slow.toml"
    file.write_text(
        f"""\
duration = "30s"
sending_jitter = "off"

[[links]]
name = "cable"
capacity = "10kbps"
delay = "10ms"
{queue}
service = "{service}"

[[flows]]
name = "big"
udp = {{ rate = "{rate}", packet_size = "1500B" }}
""",
        "utf-8",
    )
    return file


@pytest.mark.parametrize("service", ["fifo", "managed"])
@pytest.mark.parametrize(
    "queue", ["", 'queue = { time = "0ms" }', 'queue = { bytes = "1499B", counts_in_service = false }']
)
def test_a_queue_holds_one_packet_whatever_its_limit(tmp_path: Path, queue: str, service: str) -> None:
    """300 ms at 10 kb/s are 375 bytes: a packet of 1500 went into no such queue, and all were lost on an idle link."""
    # a packet every 2.4 s has left after 1.2 s: the link is idle whenever one comes
    run = tidegate.run(slow(tmp_path, queue, service))
    flow = run.metrics()
    assert (flow["packets_sent"], flow["packets_received"], flow["loss_fraction"]) == (13, 12, 0)
    assert flow["one_way_delay_ms_max"] == pytest.approx(1210, abs=1e-6)
    assert len(run.warnings) == 1
    # every 0.8 s: one that comes after 1.6 s finds the link empty, the one before it does not
    flow = tidegate.run(slow(tmp_path, queue, service, rate="15kbps")).metrics()
    assert flow["one_way_delay_ms_max"] == pytest.approx(1210, abs=1e-6), "nothing waits"
    assert (flow["packets_sent"], flow["packets_received"]) == (38, 18)


def test_room_for_one_packet_is_enough(tmp_path: Path) -> None:
    """The same network without a warning: a queue of just 1500 bytes does the same."""
    tight = tidegate.run(slow(tmp_path, rate="15kbps"))
    just = tidegate.run(slow(tmp_path, 'queue = { bytes = "1500B" }', rate="15kbps"))
    assert (tight.digest, tight.warnings, just.warnings) == (just.digest, [f"links.cable.queue: {ROOM}"], [])


def test_warnings_are_told(tmp_path: Path, cli: Cli) -> None:
    """With file and line on standard error, and in everything that is written."""
    file = slow(tmp_path)
    told = cli("run", str(file), "--json")
    assert told.err == f"tidegate: warning: {file}:4: links.cable.queue: {ROOM}\n"
    assert json.loads(told.out)["warnings"] == [{"key": "links.cable.queue", "says": ROOM}]
    assert "warnings" not in METRICS

    told = cli("run", str(file), "--set", 'links.cable.back.queue={time="0s"}', "--out", "out")
    assert told.err == f"tidegate: warning: links.cable.queue: {ROOM}\n", "nothing comes back"
    saved = tidegate.Run.load(tmp_path / "out")
    assert saved.warnings == [f"links.cable.queue: {ROOM}"]
    assert f"links.cable.queue: {ROOM}" in report.html(saved)

    swept = cli("sweep", str(file), "--set", "links.cable.queue.time=0ms,300ms,2s", "--out", "swept")
    assert sorted(swept.err.splitlines())[:2] == [
        f"tidegate: warning: {file}:4: links.cable.queue: {ROOM.replace('375', number)}" for number in ("0", "375")
    ]
    assert swept.err.count("warning: ") == 2


def test_a_way_back_that_nobody_wrote_says_whose_it_is(tmp_path: Path, cli: Cli) -> None:
    """Its line is that of the link: it has what the way there has, until `back` says otherwise."""
    file = slow(tmp_path)
    file.write_text(file.read_text("utf-8").partition("[[flows]]")[0] + CALL, "utf-8")
    hint = "for another one write back = { queue = ... } in this table"
    inherited = f": the backward direction of cable has the forward direction's queue ({hint}): links.cable.back.queue: 375 bytes"

    def told(*changes: str) -> str:
        lines = cli("run", str(file), *changes, "--json").err.splitlines()
        (line,) = [one for one in lines if "links.cable.back.queue: " in one]
        return line

    assert told().startswith(f"tidegate: warning: {file}:4{inherited} are too few for ")
    assert "queue: 250 bytes" in told("--set", 'links.cable.back.queue={time="200ms"}')
    assert inherited not in told("--set", 'links.cable.back.queue={time="200ms"}')
    assert inherited in told("--set", "links.cable.back.delay=20ms"), "a way back with other settings of its own"


CALL = """\
[[flows]]
name = "call"
media = { controller = "gcc", both_ways = true }
"""


def test_a_comparison_tells_each_warning_once(tmp_path: Path, cli: Cli) -> None:
    """Of all its runs, in the terminal and in the table."""
    told = cli("compare", "fixed:300kbps", "fixed:200kbps", "--capacity", "1Mbps", "--queue", "0ms", "--duration", "2s",
               "--seeds", "2", "--out", "out")  # fmt: skip
    line, seed = (line for line in told.err.splitlines() if "warning: " in line or "note: " in line)
    assert seed.startswith("tidegate: note: seed: ")
    assert line.startswith("tidegate: warning: links.bottleneck.queue: 0 bytes are too few for a packet of ")
    assert line.partition("warning: ")[2] in (tmp_path / "out" / "table.md").read_text("utf-8")
    assert tidegate.Comparison.load(tmp_path / "out").warnings == [
        line.partition("warning: ")[2],
        seed.partition("note: ")[2],
    ]
    assert "warning" not in cli("compare", "fixed:300kbps", "--capacity", "1Mbps", "--duration", "2s").err
