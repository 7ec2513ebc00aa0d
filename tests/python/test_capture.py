"""Capture files as tshark reads them: a dissector that is not ours agrees with the record."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate import InputError, Run, Scenario, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark (the package is called tshark)"),
]

CALL: dict[str, Any] = {
    "duration": "20s",
    "capture": True,
    "links": [{"name": "cable", "capacity": "3Mbps", "delay": "20ms", "loss": "1%", "queue": {"packets": 40}}],
    "flows": [
        {"name": "call", "media": {"controller": "gcc", "audio": {}}},
        {"name": "download", "start": "8s", "stop": "14s", "tcp": {}},
        {"name": "other", "from": "right", "to": "left", "start": "1s", "media": {"controller": "gcc", "audio": False}},
    ],
}
RTCP_TYPES = {"200": "SR", "201": "RR", "202": "SDES", "203": "BYE"}  # RFC 3550 section 12.1
BAD = "_ws.malformed || _ws.expert.severity >= error || rtcp.length_check.bad || rtcp.rtpfb.transportcc_bad"
RTPFB, TWCC, CCFB = "205", "15", "11"  # RFC 4585; draft-holmer-...-01; RFC 8888


def captured(feedback: str, *, both_ways: bool, folder: Path) -> tuple[Run, Path]:
    made = Scenario.from_dict(CALL).with_changes(
        {"flows.call.media.feedback": {"format": feedback}, "flows.call.media.both_ways": both_ways}
    )
    done = run(made, record="packets")
    file = done.save(folder / "run") / "packets.pcapng"
    assert file.read_bytes() == done.pcapng()
    return done, file


def tshark(file: Path, *fields: str, only: str = "") -> list[list[str]]:
    """The fields of each packet that the filter `only` lets through."""
    argv = ["tshark", "-r", str(file), "-d", "udp.port==5004,rtp", "-d", "udp.port==5005,rtcp", "-T", "fields"]
    argv += [word for field in fields for word in ("-e", field)]
    done = subprocess.run([*argv, "-Y", only], capture_output=True, text=True, check=True, timeout=120)
    return [line.split("\t") for line in done.stdout.splitlines()]


def contents(types: str, formats: str) -> str:
    """What a compound packet holds, as the record words it."""
    waiting = iter(formats.split(","))
    names = [
        {TWCC: "TWCC", CCFB: "CCFB"}[next(waiting)] if kind == RTPFB else RTCP_TYPES[kind] for kind in types.split(",")
    ]
    order = ["SR", "RR", "SDES", "BYE", "TWCC", "CCFB"]
    return "+".join(sorted(set(names), key=order.index))


@pytest.mark.parametrize("feedback", ["twcc", "ccfb"])
@pytest.mark.parametrize("both_ways", [False, True])
def test_tshark_sees_what_we_recorded(feedback: str, both_ways: bool, tmp_path: Path) -> None:
    done, file = captured(feedback, both_ways=both_ways, folder=tmp_path)
    assert tshark(file, "frame.number", only=BAD) == []
    assert tshark(file, "frame.number", only="!rtp && !rtcp") == [], "TCP has no bytes here, all else is RTP or RTCP"
    media = [flow for flow in done.summary["flows"] if flow["kind"] == "media"]
    assert len(media) == (3 if both_ways else 2)

    rtp = tshark(file, "rtp.ssrc", "rtp.seq", "frame.time_epoch", "ip.src", "ip.len", only="rtp")
    assert len(rtp) == sum(flow["packets_sent"] for flow in media) > 2000
    assert sum(int(row[4]) for row in rtp) == sum(flow["bytes_sent"] for flow in media)
    assert len({row[3] for row in rtp}) == len(media), "each flow has a sender of its own"
    for ssrc in {row[0] for row in rtp}:
        numbers = [int(row[1]) for row in rtp if row[0] == ssrc]
        assert {(after - before) % 65536 for before, after in pairwise(numbers)} == {1}, (
            "nothing is missing between sender and wire"
        )
    times = [float(row[2]) for row in rtp]
    assert times == sorted(times)
    packets = done.table("packets")
    sent = packets.to_numpy("sent_s")[np.isin(packets.to_numpy("kind"), ["audio", "video"])]
    assert len(sent) > 0.95 * len(rtp), "all but those on the way at the end"
    assert {round(float(at), 9) for at in sent} <= set(times), "to the nanosecond"

    record = done.table("rtcp")
    rtcp = tshark(file, "rtcp.pt", "rtcp.rtpfb.fmt", "ip.len", "frame.time_epoch", only="rtcp")
    ours = Counter(zip(record.to_numpy("contents").tolist(), record.to_numpy("size").tolist(), strict=True))
    theirs = Counter((contents(types, formats), int(size)) for types, formats, size, _ in rtcp)
    assert theirs == ours, "the same packets, by what is in them and how long they are"
    kinds = {what for what, _ in theirs}
    assert any("SR" in what for what in kinds)
    assert any("RR" in what for what in kinds)
    # the other call has TWCC in any case
    assert {"TWCC", feedback.upper()} <= {name for what in kinds for name in what.split("+")}


def test_tshark_reads_the_feedback_as_we_wrote_it(tmp_path: Path) -> None:
    done, file = captured("twcc", both_ways=False, folder=tmp_path)
    names = ("statuscount", "baseseq", "pktcount", "recv_delta.padding")
    fields = (f"rtcp.rtpfb.transportcc.{name}" for name in names)
    rows = tshark(file, *fields, only="rtcp.rtpfb.fmt == 15 && ip.src == 10.0.0.2")
    counts, bases, numbers = ([int(row[place]) for row in rows] for place in range(3))
    # the last byte of padding counts it (RFC 3550 section 6.4.1)
    assert {row[3] for row in rows} == {"", "0x0001", "0x0002", "0x0003"}
    assert numbers == [number % 256 for number in range(len(rows))]
    # reports follow each other without a gap: together they tell of every packet once
    assert bases[0] == 0
    assert bases[1:] == [(base + count) % 65536 for base, count in zip(bases, counts, strict=True)][:-1]
    sent = done.metrics("call")["packets_sent"]
    assert 0.97 * sent < sum(counts) <= sent


def test_the_largest_packet_is_one(tmp_path: Path) -> None:
    changes = {"flows.sender.media.payload": "65483B", "flows.sender.media.packets": 9, "capture": True}
    for overhead in ("28B", "0B"):
        done = run(Scenario.load("thesis-network").with_changes({**changes, "flows.sender.media.overhead": overhead}))
        file = tmp_path / "largest.pcapng"
        file.write_bytes(done.pcapng())
        assert tshark(file, "frame.number", only=BAD) == []
        assert tshark(file, "ip.len", only="rtp") == [["65535"]] * 9


def test_the_filter_finds_what_is_wrong(tmp_path: Path) -> None:
    done, file = captured("twcc", both_ways=False, folder=tmp_path)
    data = bytearray(done.pcapng())
    # transport-wide feedback with padding: its length in words is made one too large
    place = data.index(bytes([0xAF, 205]))
    data[place + 3] += 1
    file.write_bytes(data)
    assert len(tshark(file, "frame.number", only=BAD)) == 1


def test_a_run_without_capture_has_none() -> None:
    done = run(Scenario.from_dict({**CALL, "capture": False, "duration": "10s", "flows": CALL["flows"][:1]}))
    with pytest.raises(InputError, match="set capture = true in the scenario"):
        done.pcapng()
