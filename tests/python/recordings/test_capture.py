"""Capture files as tshark reads them: a dissector that is not ours agrees with the record."""

from __future__ import annotations

import re
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
NETWORK = 'frame.interface_name != "announcements"'
OUT = "frame.packet_flags_direction == 2"  # draft-ietf-opsawg-pcapng section 4.3.1
RTPFB, TWCC = "205", "15"  # RFC 4585; draft-holmer-...-01
FORMATS = {"1": "NACK", TWCC: "TWCC", "11": "CCFB"}  # RFC 4585 section 6.2.1; RFC 8888
RETRANSMISSIONS = 0x72740000  # SSRC of the first flow's


def captured(feedback: str, *, both_ways: bool, folder: Path) -> tuple[Run, Path, Path]:
    """A run, and what its sending and its receiving ends have captured."""
    made = Scenario.from_dict(CALL).with_changes(
        {"flows.call.media.feedback": {"format": feedback}, "flows.call.media.both_ways": both_ways}
    )
    done = run(made, record="packets")
    saved = done.save(folder / "run")
    sender, receiver = (saved / f"packets-{side}.pcapng" for side in ("sender", "receiver"))
    assert (sender.read_bytes(), receiver.read_bytes()) == (done.pcapng("sender"), done.pcapng("receiver"))
    assert receiver.read_bytes() == Run.load(saved).pcapng()
    return done, sender, receiver


def tshark(file: Path, *fields: str, only: str = "") -> list[list[str]]:
    """The fields of each packet that the filter `only` lets through; the announcements say what is RTP."""
    argv = ["tshark", "-r", str(file), "-T", "fields"]
    argv += [word for layer in ("ip", "udp", "tcp") for word in ("-o", f"{layer}.check_checksum:TRUE")]
    argv += [word for field in fields for word in ("-e", field)]
    done = subprocess.run([*argv, "-Y", only], capture_output=True, text=True, check=True, timeout=120)
    return [line.split("\t") for line in done.stdout.splitlines()]


def contents(types: str, formats: str) -> str:
    """What a compound packet holds, as the record words it."""
    waiting = iter(formats.split(","))
    names = [FORMATS[next(waiting)] if kind == RTPFB else RTCP_TYPES[kind] for kind in types.split(",")]
    order = ["SR", "RR", "SDES", "BYE", "NACK", "TWCC", "CCFB"]
    return "+".join(sorted(set(names), key=order.index))


@pytest.mark.parametrize("feedback", ["twcc", "ccfb"])
@pytest.mark.parametrize("both_ways", [False, True])
def test_tshark_sees_what_we_recorded(feedback: str, both_ways: bool, tmp_path: Path) -> None:
    done, file, receiver = captured(feedback, both_ways=both_ways, folder=tmp_path)
    for side in (file, receiver):
        assert tshark(side, "frame.number", only=BAD) == []
        assert tshark(side, "frame.number", only=f"!rtp && !rtcp && !tcp && {NETWORK}") == [], "all is known"
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
    sent = packets.to_numpy("sent_s")[np.isin(packets.to_numpy("kind"), ["audio", "video", "retransmission"])]
    assert len(sent) > 0.95 * len(rtp), "all but those on the way at the end"
    assert {round(float(at), 9) for at in sent} <= set(times), "to the nanosecond"

    record = done.table("rtcp")
    fields = ("rtcp.pt", "rtcp.rtpfb.fmt", "ip.len", "frame.time_epoch")
    rtcp = [row for side in (file, receiver) for row in tshark(side, *fields, only=f"rtcp && {OUT}")]
    ours = Counter(zip(record.to_numpy("contents").tolist(), record.to_numpy("size").tolist(), strict=True))
    theirs = Counter((contents(types, formats), int(size)) for types, formats, size, _ in rtcp)
    assert theirs == ours, "the same packets, by what is in them and how long they are"
    kinds = {what for what, _ in theirs}
    assert any("SR" in what for what in kinds)
    assert any("RR" in what for what in kinds)
    # the other call has TWCC in any case
    assert {"NACK", "TWCC", feedback.upper()} <= {name for what in kinds for name in what.split("+")}


def test_each_side_has_what_passed_it(tmp_path: Path) -> None:
    done, sender, receiver = captured("twcc", both_ways=True, folder=tmp_path)
    of = {flow["flow"]: f"10.0.{number}" for number, flow in enumerate(done.summary["flows"])}
    for flow, net in of.items():
        metrics = done.metrics(flow)
        if metrics["kind"] != "media":
            continue
        counts = [
            len(tshark(file, "frame.number", only=f"rtp && ip.src == {net}.1 && {way}"))
            for file, way in ((sender, OUT), (receiver, f"!({OUT})"))
        ]
        assert counts == [metrics["packets_sent"], metrics["packets_received"]]
        assert tshark(sender, "frame.number", only=f"rtp && ip.src == {net}.1 && !({OUT})") == []
        (interface,) = {row[0] for row in tshark(receiver, "frame.interface_name", only=f"rtp && ip.src == {net}.1")}
        ends = {"call": "call.receiver", "other": "other.receiver"}
        # the other way of a call with both is received where the call is sent from
        assert interface == ends.get(flow, "call.sender")
    delays: dict[str, list[float]] = {}
    for file, place in ((sender, 0), (receiver, 1)):
        for number, at in tshark(file, "rtp.seq", "frame.time_epoch", only="rtp.ssrc == 0x101"):
            delays.setdefault(number, [0.0, 0.0])[place] = float(at)
    least = min(there - here for here, there in delays.values() if there)
    assert 0.020 < least < 0.021, "the cable's 20 ms"


def streams(file: Path) -> dict[int, dict[str, float]]:
    """What `tshark -q -z rtp,streams` prints, by SSRC: packets, lost, mean and largest jitter in ms."""
    argv = ["tshark", "-r", str(file), "-q", "-z", "rtp,streams"]
    told = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
    line = re.compile(r"(0x\w+)\s+\S+\s+(\d+)\s+(\d+) \([^)]*\)((?:\s+-?[\d.]+){6})")
    found = {}
    for ssrc, packets, lost, rest in line.findall(told):
        numbers = [float(number) for number in rest.split()]
        found[int(ssrc, 16)] = {
            "packets": int(packets), "lost": int(lost), "jitter_mean": numbers[4], "jitter_max": numbers[5],
        }  # fmt: skip
    return found


def test_tshark_counts_our_losses_and_our_jitter(tmp_path: Path) -> None:
    """Of a stream of audio its own statistics are RFC 3550's but for a quarter of a unit of its clock. Of video, where packets share a
    timestamp, tshark 4.0 weighs them in another way, so that there its fields go through RFC 3550 section 6.4.1."""
    speech = {"name": "speech", "media": {"controller": "fixed", "audio": {}, "video": False}}
    done = run(Scenario.from_dict({**CALL, "flows": [*CALL["flows"], speech]}))
    saved = done.save(tmp_path / "run")
    at_sender, at_receiver = (streams(saved / f"packets-{side}.pcapng") for side in ("sender", "receiver"))
    # the last of each are what is sent again, and the padding of its probes
    flows = {
        "call": (0x101, 0x102, RETRANSMISSIONS, 0x70640000),
        "other": (0x301, RETRANSMISSIONS + 2, 0x70640002),
        "speech": (0x402,),
    }
    assert sorted(at_receiver) == sorted(ssrc for some in flows.values() for ssrc in some)
    assert {one["lost"] for one in at_sender.values()} == {0}
    for flow, ssrcs in flows.items():
        metrics = done.metrics(flow)
        ours = metrics["lost_queue"] + metrics["lost_wire"]
        theirs = sum(at_receiver[ssrc]["lost"] for ssrc in ssrcs)
        assert theirs == ours > 3, flow
        assert sum(at_receiver[ssrc]["packets"] for ssrc in ssrcs) == metrics["packets_received"]
    speech_jitter = done.metrics("speech")
    assert speech_jitter["media_jitter_ms_mean"] > 1
    # neither mean has the first packet in it; the receiver's clock is in whole units of the timestamp, 1/48 ms
    assert at_receiver[0x402]["jitter_mean"] == pytest.approx(speech_jitter["media_jitter_ms_mean"], abs=0.25 / 48)
    assert at_receiver[0x402]["jitter_max"] == pytest.approx(speech_jitter["media_jitter_ms_max"], abs=2e-2)

    rows = tshark(saved / "packets-receiver.pcapng", "frame.time_epoch", "rtp.timestamp", only="rtp.ssrc == 0x301")
    transit = [1e3 * float(at) - int(stamp) / 90 for at, stamp in rows]
    jitter = [0.0]
    for before, after in pairwise(transit):
        jitter.append(jitter[-1] + (abs(after - before) - jitter[-1]) / 16)
    other = done.metrics("other")
    # the receiver's clock is in whole units of the timestamp, 1/90 ms
    assert sum(jitter) / (len(jitter) - 1) == pytest.approx(other["media_jitter_ms_mean"], abs=0.012)
    assert max(jitter) == pytest.approx(other["media_jitter_ms_max"], abs=0.012)
    assert at_receiver[0x301]["jitter_mean"] == pytest.approx(other["media_jitter_ms_mean"], rel=0.03)


def test_tshark_reads_the_feedback_as_we_wrote_it(tmp_path: Path) -> None:
    done, file, _ = captured("twcc", both_ways=False, folder=tmp_path)
    only = "rtcp.rtpfb.fmt == 15 && ip.src == 10.0.0.2"
    arrived = len(tshark(file, "frame.number", only=only))
    file = file.with_name("packets-receiver.pcapng")
    assert arrived <= len(tshark(file, "frame.number", only=f"{only} && {OUT}")) < arrived / 0.9
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
        file.write_bytes(done.pcapng("sender"))
        assert tshark(file, "frame.number", only=BAD) == []
        assert tshark(file, "ip.len", only="rtp") == [["65535"]] * 9


def test_the_filter_finds_what_is_wrong(tmp_path: Path) -> None:
    done, file, _ = captured("twcc", both_ways=False, folder=tmp_path)
    data = bytearray(done.pcapng("receiver"))
    # transport-wide feedback with padding: its length in words is made one too large
    place = data.index(bytes([0xAF, 205]))
    data[place + 3] += 1
    file.write_bytes(data)
    assert len(tshark(file, "frame.number", only=BAD)) == 1


def test_a_run_without_capture_has_none() -> None:
    done = run(Scenario.from_dict({**CALL, "capture": False, "duration": "10s", "flows": CALL["flows"][:1]}))
    with pytest.raises(InputError, match="set capture = true in the scenario"):
        done.pcapng()
    with pytest.raises(InputError, match="side: found both; expected sender or receiver"):
        done.pcapng("both")


def test_tshark_reads_the_rembs_of_the_second_placement(tmp_path: Path) -> None:
    """Application layer feedback (PSFB, FMT 15) with REMB in it, and receiver reports; of RTPFB requests for packets alone."""
    call = {"name": "call", "media": {"controller": "gcc-remb", "audio": {}}}
    done = run(Scenario.from_dict({**CALL, "flows": [call, CALL["flows"][1]]}), record="packets")
    file = done.save(tmp_path / "run") / "packets-receiver.pcapng"
    assert tshark(file, "frame.number", only=BAD) == []
    assert {row[0] for row in tshark(file, "rtcp.rtpfb.fmt", only="rtcp.rtpfb.fmt")} == {"1"}
    # each half to one and a half seconds (`RTCPSender::ComputeTimeUntilNextReport`)
    assert 14 <= len(tshark(file, "frame.number", only="rtcp.pt == 201 && ip.src == 10.0.0.2")) <= 28
    fields = ("frame.time_epoch", "rtcp.psfb.remb.fci.br_exp", "rtcp.psfb.remb.fci.br_mantissa")
    names = ("rtcp.psfb.remb.fci.ssrc", "rtcp.senderssrc")
    rows = tshark(file, *fields, *names, only="rtcp.psfb.fmt == 15 && ip.src == 10.0.0.2")
    table = done.table("internals")
    said = table.to_numpy("name").astype(str) == "remb_sent"
    values, times = table.to_numpy("value")[said], table.to_numpy("t_s")[said]
    assert len(rows) == len(values) > 19
    assert [int(row[2]) << int(row[1]) for row in rows] == values.tolist()
    assert np.allclose([float(row[0]) for row in rows], times, rtol=0, atol=1e-9)
    assert max(after - before for before, after in pairwise(times)) <= 1.0 + 1e-9
    # video 1, audio 2 and what is sent again of the first flow; the receiver speaks under an SSRC of its own
    streams = [{int(ssrc, 16) for ssrc in row[3].split(",")} for row in rows[1:]]
    assert all(0x101 in named and named <= {0x101, 0x102, RETRANSMISSIONS} for named in streams)
    assert {int(row[4].split(",")[-1], 16) for row in rows} != {0}
    data = tshark(file.with_name("packets-sender.pcapng"), "rtp.ext.profile", only="rtp && ip.src == 10.0.0.1")
    assert len(data) == done.metrics("call")["packets_sent"]


def test_tshark_reads_tcp_with_its_options_as_we_wrote_it(tmp_path: Path) -> None:
    # slow start that overflows the queue, so that acknowledgements have gaps to tell of
    tcp = {"workload": {"file": "600kB"}, "algorithm": "cubic", "hystart": False}
    made = Scenario.from_dict({**CALL, "flows": [{"name": "file", "tcp": tcp}]})
    done = run(made, record="packets")
    file = tmp_path / "sender.pcapng"
    file.write_bytes(done.pcapng("sender"))
    assert tshark(file, "frame.number", only=BAD) == []
    options = ("mss_val", "wscale.shift", "sack_perm", "sack.count", "sack_le", "sack_re")
    fields = ("ip.src", "ip.len", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.flags", "tcp.window_size")
    rows = tshark(file, *fields, *(f"tcp.options.{name}" for name in options), only="tcp")
    there, back = ([row[1:] for row in rows if row[0] == f"10.0.0.{host}"] for host in (1, 2))
    # RFC 9293, RFC 7323 and RFC 2018: 6 MiB need a shift by 7
    assert there[0] == ["52", "0", "0", "0", "0x0002", "65535", "1460", "0", "0402", "", "", ""]
    assert back[0] == ["52", "0", "1", "0", "0x0012", "65535", "1460", "7", "0402", "", "", ""]
    assert {row[4] for row in (*there[1:], *back[1:])} == {"0x0010"}
    assert {(row[1], row[5]) for row in back[1:]} == {("1", str(6 << 20))}, "one number for the SYN; 6 MiB"
    # all bytes once, and some again
    segments = {(int(row[1]), int(row[1]) + int(row[3])) for row in there[1:]}
    assert sorted(segments) == [(1 + at, min(1 + at + 1460, 600_001)) for at in range(0, 600_000, 1460)]
    assert len(there) - 1 > len(segments)
    assert max(int(row[2]) for row in back) == 600_001
    blocks = [[tuple(map(int, edge.split(","))) for edge in row[10:]] for row in back if row[9]]
    assert max(len(left) for left, _ in blocks) == 3
    starts, ends = ({segment[place] for segment in segments} for place in (0, 1))
    assert all(set(left) <= starts and set(right) <= ends for left, right in blocks)
    # as large as the record says: 4 + 8 bytes a block
    assert {int(row[0]) - 40 for row in back[1:]} == {0, 12, 20, 28}
    table = done.table("packets")
    kinds, sizes, fates = (table.to_numpy(name) for name in ("kind", "size", "fate"))
    acks = Counter(sizes[(kinds == "ack") & (fates == "arrived")].tolist())
    assert Counter(int(row[0]) for row in back) == acks
    assert Counter(int(row[0]) for row in there) == Counter(sizes[kinds == "data"].tolist())


def test_tshark_reads_header_extensions_and_ecn_as_we_wrote_them(tmp_path: Path) -> None:
    call = {"controller": "gcc", "audio": {}, "ecn": "ect1", "feedback": {"format": "twcc"}}
    done = run(Scenario.from_dict({**CALL, "flows": [{"name": "call", "media": call}]}), record="packets")
    file = tmp_path / "sender.pcapng"
    file.write_bytes(done.pcapng("sender"))
    assert tshark(file, "frame.number", only=BAD) == []
    assert {tuple(row) for row in tshark(file, "ip.dsfield.ecn", only="rtp")} == {("1",)}, "ECT(1), RFC 3168"
    assert {tuple(row) for row in tshark(file, "ip.dsfield.ecn", only="rtcp")} == {("0",)}
    fields = ("rtp.ssrc", "frame.time_epoch", *(f"rtp.ext.rfc5285.{name}" for name in ("id", "data")))
    rows = [
        (int(ssrc, 16), float(at), dict(zip(ids.split(","), data.split(","), strict=True)))
        for ssrc, at, ids, data in tshark(file, *fields, only="rtp")
    ]
    # transport-wide sequence numbers are 5 and go over both streams
    numbers = [int(elements["5"], 16) for _, _, elements in rows]
    assert {(after - before) % 65536 for before, after in pairwise(numbers)} == {1}
    # abs-send-time is 3: 2^-18 s modulo 64 s of a clock with an offset, rounded down to microseconds and then to that
    late = np.array([at - int(elements["3"], 16) / 2**18 for _, at, elements in rows])
    apart = (late - late[0] + 32) % 64 - 32
    assert 2**-19 < np.ptp(apart) < 2**-18 + 1e-6 + 1e-9
    # marks are 6: start, end and template, the frame's number, and behind that a structure
    marks = [bytes.fromhex(elements["6"]) for ssrc, _, elements in rows if ssrc == 0x101]
    assert all(("6" in elements) == (ssrc in {0x101, RETRANSMISSIONS}) for ssrc, _, elements in rows)
    frames = done.table("frames")
    video = frames.to_numpy("video")
    key, known = (frames.to_numpy(name)[video] for name in ("key", "frame"))
    at_start, at_end = ([int.from_bytes(each[1:3]) for each in marks if each[0] & bit] for bit in (0x80, 0x40))
    assert at_start[: len(known)] == known.tolist(), "each frame begins once"
    assert at_end[: len(known)] == known.tolist(), "and ends once"
    keys = {int.from_bytes(each[1:3]) for each in marks if each[0] & 0x3F == 0}
    assert keys == set(known[key].tolist())
    assert {len(each) for each in marks} == {3, 9}
    assert [int.from_bytes(each[1:3]) for each in marks if len(each) == 9] == sorted(keys)
