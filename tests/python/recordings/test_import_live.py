"""A session's own captures, imported with its own link. Everything is sent within namespaces that the session makes."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

# skips where sessions are forbidden, with the reason
from support.shell_sessions import shell
from tidegate import Run
from tidegate.recordings import imported

pytestmark = pytest.mark.slow

# 3 packets of 1000 bytes a frame, 30 frames a second: 720 kbit/s, over 2 and then 0.5 Mbit/s; the other end says
# something now and then, so that both directions have packets
CALL = """
import os, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((os.environ["TIDEGATE_ADDRESS"], 5004))
peer = (os.environ["TIDEGATE_PEER"], 5004); s.setblocking(False)
first = os.environ["TIDEGATE_SIDE"] == "A"
if first: s.sendto(bytes([0, 1]) + bytes(18), peer)
begun = time.monotonic(); number = 65000 if first else 10
for frame in range(180):
    while time.monotonic() < begun + frame / 30: time.sleep(0.001)
    for part in range(3 if first else 1):
        number = (number + 1) % 65536
        marker = 128 if part == 2 or not first else 0
        head = struct.pack(">BBHII", 128, 96 | marker, number, 3000 * frame, 77 if first else 78)
        s.sendto(head + bytes(988 if first else 88), peer)
time.sleep(1.5)
"""

STEPS = """
name = "steps"
duration = "12s"
links = [
  { name = "up", from = "left", to = "right", capacity = { schedule = [["0s", "2Mbps"], ["3s", "500kbps"]] }, delay = "20ms", queue = { bytes = "20kB" }, loss = "2%" },
  { name = "down", from = "right", to = "left", capacity = "10Mbps", delay = "20ms" },
]
flows = [{ name = "call", media = { controller = "gcc" } }]
"""


@pytest.mark.timeout(120)
def test_a_session_s_captures_have_exactly_its_links_losses(tmp_path: Path) -> None:
    (tmp_path / "steps.toml").write_text(STEPS)
    done = shell(tmp_path, "steps.toml", "--out", "run", "--pcap", "--record", "series", programs=(CALL, CALL))
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "run"
    files = [folder / "packets-A.pcapng", folder / "packets-B.pcapng"]
    with (folder / "fates.csv").open() as file:
        fates = {row["number"]: row["fate"] for row in csv.DictReader(file)}
    with (folder / "arrivals.csv").open() as file:
        rtp = [row for row in csv.DictReader(file) if row["ssrc"] == "77"]
    dropped = {int(row["sequence"]) for row in rtp if fates[row["number"]] not in {"arrives", "arrives marked"}}
    run = imported(files, same_clock=True, link=folder)
    table = run.table("packets")
    mine = (table.to_numpy("flow") == "outgoing") & (table.to_numpy("kind") != "rtcp")
    assert mine.sum() == 540
    lost = mine & (table.to_numpy("fate") == "lost")
    assert len(dropped) > 20, "by the queue and by the wire"
    # whether the last packets sent would still have arrived was not observed
    unknown = set(table.to_numpy("rtp_sequence")[mine & (table.to_numpy("fate") == "unknown")].astype(int).tolist())
    assert unknown <= {(65000 + number) % 65536 for number in range(510, 541)}
    assert set(table.to_numpy("rtp_sequence")[lost].astype(int).tolist()) == dropped - unknown
    told = " ".join(run.warnings)
    counts = f"the link dropped {len(dropped - unknown)}, the recording lost {lost.sum()}: packet by packet the same"
    assert f"outgoing: of {540 - len(unknown)} packets of both {counts}" in told
    assert re.search(r"left out of the capture: [^:]*\b1 STUN\b", told)
    truth = run.table("truth")
    up = truth.to_numpy("link") == "up"
    rates = truth.to_numpy("capacity_bps")[up]
    changes = np.append(True, np.diff(rates) != 0)
    assert rates[changes].tolist() == [2e6, 5e5]
    # the step is where the queue begins to stand
    (_, step) = truth.to_numpy("t_s")[up][changes].tolist()
    delay = (table.to_numpy("arrived_s") - table.to_numpy("sent_s")) * 1000
    before = mine & (table.to_numpy("sent_s") < step - 0.1) & np.isfinite(delay)
    after = mine & (table.to_numpy("sent_s") > step + 1.5) & np.isfinite(delay)
    assert (np.median(delay[before]) < 60, np.median(delay[after]) > 200) == (True, True)
    queues = run.table("queues")
    held = queues.to_numpy("bytes")[(queues.to_numpy("link") == "up") & (queues.to_numpy("t_s") > step + 1.5)]
    assert 15_000 < held.max() <= 20_000
    frames = run.metrics("outgoing")
    assert frames["frames_sent"] in {179, 180}, "the last one may be on its way"
    assert 0 < frames["frames_whole"] < 180
    run.save(tmp_path / "call")
    assert Run.load(tmp_path / "call").digest == run.digest
