"""Captures as strangers have them: what is a call, what is in them twice, and where they were made."""

from __future__ import annotations

import json
import random
import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from support import shared
from support.captures import (
    COOKED,
    COUNT,
    LOST,
    PLAIN,
    PORT,
    A,
    B,
    address,
    call,
    counts,
    pcap,
    pcapng,
    read,
    remarks,
    rtp,
    udp,
)
from tidegate import InputError, Run
from tidegate.cli import main
from tidegate.output import html
from tidegate.recordings import imported

START = 1_700_000_000.0


# --- what is a call -------------------------------------------------------------------------------


def dns(n: int) -> bytes:
    return struct.pack("!HHHHHH", 0x8000 + 97 * n % 0x4000, 0x0100, 1, 0, 0, 0) + b"\7example\3com\0\0\1\0\1"


def netbios(n: int) -> bytes:
    return struct.pack("!HHHHHH", 0x8000 + n, 0x0110, 1, 0, 0, 0) + bytes(38)


def ntp(n: int) -> bytes:
    return bytes([0xA3, 2, 6, 0xEC]) + struct.pack("!II", 0x100, 0x200) + bytes(28) + struct.pack("!Q", n << 32)


def ike(n: int) -> bytes:
    return b"\x91\x22\x33\x44\x55\x66\x77\x88" + bytes(8) + bytes([33, 0x20, 34, 8]) + struct.pack("!II", n, 28)


def nfs(n: int) -> bytes:
    return struct.pack("!IIIIII", 0x80000000 + n, 0, 2, 100003, 3, 1) + bytes(40)


def esp(n: int) -> bytes:
    return struct.pack("!II", 0x80112233, n) + random.Random(n).randbytes(64)


def vpn(n: int) -> bytes:
    return bytes([0x80]) + random.Random(n).randbytes(80)


def game(n: int) -> bytes:
    """Numbers that go on, an id that stays, and between them what looks random."""
    return struct.pack("!BBH", 0x80, 5, n) + random.Random(n).randbytes(4) + b"\x77\x88\x99\xaa" + bytes(40)


OTHERS = {
    "DNS": (dns, 53),
    "NetBIOS": (netbios, 137),
    "NTP": (ntp, 123),
    "IKE": (ike, 500),
    "NFS": (nfs, 2049),
    "IPsec": (esp, 4500),
    "datagrams to port 7000": (vpn, 7000),
    "datagrams to port 7001": (game, 7001),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_protocols_are_no_call_whatever_their_first_bits(name: str, tmp_path: Path) -> None:
    payload, port = OTHERS[name]
    packets = [(START + n / 10, udp(A, "192.0.2.9", payload(n), ports=(port, port))) for n in range(200)]
    with pytest.raises(
        InputError, match=f"found no RTP but 200 {name}; expected a call: at least 3 packets of one SSRC"
    ):
        read(tmp_path, pcap(packets))
    # nor do they hide one
    speech = [(START + n / 50, udp(A, B, rtp(n, 0x1234567))) for n in range(9)]
    run = read(tmp_path, pcap(packets + speech))
    assert run.summary["flows"][0]["packets_sent"] == 9
    assert f"the call between {A} and {B}: 9 RTP packets in 1 stream" in remarks(run)
    assert f"left out of the capture: 200 {name}" in remarks(run)


def test_the_table_of_a_recording_has_its_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A capture of a sender whose feedback is encrypted has a table, too."""
    (tmp_path / "speech.pcap").write_bytes(pcap([(START + n / 50, udp(A, B, rtp(n, 7))) for n in range(51)]))
    assert main(["import", str(tmp_path / "speech.pcap"), "--out", str(tmp_path / "run")]) == 0
    table = capsys.readouterr().out
    assert re.search(r"^packets sent +51$", table, re.MULTILINE)
    assert re.search(r"^sending rate \(Mbit/s\) +0.08$", table, re.MULTILINE)
    assert "seed" not in table
    page = html.page(Run.load(tmp_path / "run").document())
    assert "<h1>speech, recorded</h1>" in page
    assert "In numbers" not in page
    assert "1 seed" not in page


def test_rtp_beside_others_on_one_port_stays_found(tmp_path: Path) -> None:
    mixed = [(packet.at, packet.ip()) for packet in call()]
    mixed += [(START + n / 40, udp(A, B, vpn(n))) for n in range(80)]
    run = read(tmp_path, pcap(mixed))
    assert [flow["packets_sent"] for flow in run.summary["flows"]] == [COUNT, COUNT]


def test_the_key_of_a_telephone_is_a_call_by_itself(tmp_path: Path) -> None:
    """RFC 4733 section 2.3: one timestamp, durations that grow, and an SSRC of a test tool that is not random."""

    def key(n: int, duration: int) -> bytes:
        return struct.pack("!BBHII", 0x80, 101, n, 17632, 14) + struct.pack("!BBH", 0, 10, duration)

    packets = [(START + n / 50, udp(A, B, key(n, 320 * n))) for n in range(8)]
    assert counts(read(tmp_path, pcap(packets)))[0][:2] == ("outgoing", 8)
    shrinking = [(START + n / 50, udp(A, B, key(n, 320 * (9 - n)))) for n in range(8)]
    with pytest.raises(InputError, match="found no RTP but 8 datagrams to port 5000"):
        read(tmp_path, pcap(shrinking))


@pytest.mark.parametrize("profile", [0xBEDE, 0x1000])
def test_header_extensions_tell_a_stream_whose_timestamps_stand_still(profile: int, tmp_path: Path) -> None:
    """Packets that look for the bandwidth before the first picture, from a server whose SSRC is 2."""

    def probe(n: int, profile: int) -> bytes:
        return struct.pack("!BBHII", 0x90, 96, n, 0, 2) + struct.pack("!HHI", profile, 1, 0x310001C2 + n) + bytes(900)

    packets = [(START + n / 1000, udp(A, B, probe(n, profile))) for n in range(13)]
    assert counts(read(tmp_path, pcap(packets)))[0][:2] == ("outgoing", 13)
    others = [(START + n / 1000, udp(A, B, probe(n, 0xBEDE if n < 12 else 1))) for n in range(13)]
    with pytest.raises(InputError, match="found no RTP but 13 datagrams to port 5000"):
        read(tmp_path, pcap(others))


def test_retransmissions_are_found_beside_what_they_repeat(tmp_path: Path) -> None:
    """Their timestamps are those of packets from half a minute before, in no order, and there are few of them."""
    video = [(START + n / 50, udp(A, B, rtp(n, 0x1234567, kind=96, stamp=1800 * n + 5_000_000))) for n in range(60)]
    repeated = [(START + n / 3, udp(A, B, rtp(n, 0xABCDEF0, kind=97, stamp=(n % 3 + 1) * 1_000_000))) for n in range(4)]
    alone = [
        (START + 1 / 7 + n / 7, udp(A, B, rtp(n, 0xBBBBBB0, kind=97, stamp=2_000_000 - 900_000 * n))) for n in range(2)
    ]
    run = read(tmp_path, pcap(video + repeated + alone))
    assert counts(run)[0][:2] == ("outgoing", 66)
    assert "66 RTP packets in 3 streams" in remarks(run)
    # what has no neighbours is no stream
    with pytest.raises(InputError, match="found no RTP but 4 datagrams to port 5000"):
        read(tmp_path, pcap(repeated))


def test_one_of_a_kind_is_not_said_in_the_plural(tmp_path: Path) -> None:
    packets = [(packet.at, packet.ip()) for packet in call()]
    run = read(tmp_path, pcap([*packets, (START, udp(A, B, vpn(1), ports=(7, 7)))]))
    assert "left out of the capture: 1 datagram to port 7" in remarks(run)


def test_one_ssrc_on_two_ports_is_two_streams(tmp_path: Path) -> None:
    packets = [
        (START + n / 50 + port / 1e7, udp(B, A, rtp(n + 1000 * (port - 6000), 7), ports=(port, port), hops=60))
        for n in range(50)
        for port in (6000, 6001)
    ]
    assert counts(read(tmp_path, pcap(packets))) == [("incoming", 100, 100, 0.0)]


def test_two_packets_are_a_call_only_where_the_user_says_so(tmp_path: Path) -> None:
    both = pcap([(START, udp(A, B, rtp(1, 7))), (START + 0.02, udp(B, A, rtp(1, 9)))])
    with pytest.raises(InputError, match=rf"found no RTP but 2 datagrams to port 5000.*pass --rtp {B}:5000"):
        read(tmp_path, both)
    for end in (A, B):
        run = read(tmp_path, both, rtp=f"{end}:5000")
        assert [flow["packets_sent"] for flow in run.summary["flows"]] == [1, 1]
    for wrong in ("here", "192.0.2.1", "192.0.2.1:70000"):
        with pytest.raises(InputError, match=f"rtp: found {wrong}; expected an address and a port"):
            read(tmp_path, both, rtp=wrong)
    three = pcap([(START + n / 50, udp(A, B, rtp(n, 7))) for n in range(3)])
    assert read(tmp_path, three).summary["flows"][0]["packets_sent"] == 3


def test_one_key_of_a_telephone_is_a_call(tmp_path: Path) -> None:
    """RFC 4733: all packets of an event have the timestamp of its beginning."""
    event = [(START + n / 50, udp(A, B, rtp(n, 0x1234567, 16, stamp=0x456789, kind=101))) for n in range(10)]
    assert read(tmp_path, pcap(event)).summary["flows"][0]["packets_sent"] == 10


# --- right numbers --------------------------------------------------------------------------------


def jitter(arrivals: list[tuple[float, int]], clock: int) -> list[float]:
    """RFC 3550 section 6.4.1, in ms."""
    transits = [1e3 * (at - START) - 1e3 * stamp / clock for at, stamp in arrivals]
    values = [0.0]
    for before, after in pairwise(transits):
        values.append(values[-1] + (abs(after - before) - values[-1]) / 16)
    return values[1:]


@pytest.mark.parametrize(
    ("kind", "clock"), [(0, 8000), (9, 8000), (96, 8000), (96, 16000), (96, 48000), (10, 44100), (96, 32000)]
)
def test_jitter_is_by_the_clock_of_the_payload_and_by_stream(kind: int, clock: int, tmp_path: Path) -> None:
    draw = random.Random(clock)
    packets: list[tuple[float, bytes]] = []
    expected: list[float] = []
    for ssrc, origin in ((0xAAAA0001, 0), (0xBBBB0002, 4_000_000_000)):
        arrivals = []
        for n in range(300):
            at, stamp = START + n / 50 + draw.uniform(0, 0.01), n * clock // 50
            arrivals.append((at, stamp))
            packets.append((at, udp(B, A, rtp(n, ssrc, stamp=origin + stamp, kind=kind), hops=60)))
        expected += jitter(arrivals, clock)
    metrics = read(tmp_path, pcap(packets)).metrics("incoming")
    # stamps of the capture are of doubles near 2e9 s
    assert metrics["media_jitter_ms_mean"] == pytest.approx(sum(expected) / len(expected), abs=1e-3)
    assert metrics["media_jitter_ms_max"] == pytest.approx(max(expected), abs=1e-3)


def test_a_clock_that_nothing_tells_gives_no_jitter(tmp_path: Path) -> None:
    packets = [(START + n / 50, udp(B, A, rtp(n, 7, stamp=1300 * n, kind=96), hops=60)) for n in range(100)]
    run = read(tmp_path, pcap(packets))
    assert "media_jitter_ms_mean" not in run.metrics("incoming")
    assert "the clock rate of 1 stream is not known" in remarks(run)


def test_a_session_description_tells_the_clock(tmp_path: Path) -> None:
    sdp = f"v=0\r\nc=IN IP4 {A}\r\nm=audio {PORT} RTP/AVP 96\r\na=rtpmap:96 L16/65000/1\r\n".encode()
    packets = [(START + n / 50, udp(B, A, rtp(n, 7, stamp=1300 * n, kind=96), hops=60)) for n in range(100)]
    invite = (START - 1, udp(A, B, b"INVITE sip:b@example.com SIP/2.0\r\n\r\n" + sdp, ports=(5060, 5060)))
    assert read(tmp_path, pcap([invite, *packets])).metrics("incoming")["media_jitter_ms_mean"] < 0.1


def test_a_later_call_may_describe_another_clock_for_the_same_port(tmp_path: Path) -> None:
    """Four calls of a test to one port: payload type 99 is L16 at 8 kHz, and then at 48 kHz."""
    rows = []
    for index, clock in enumerate((8_000, 48_000, 8_000, 16_000)):
        begin = START + 10 * index
        sdp = f"v=0\r\nm=audio {PORT} RTP/AVP 99\r\na=rtpmap:99 L16/{clock}\r\n".encode()
        rows.append((begin, udp(A, B, b"INVITE sip:b@example.com SIP/2.0\r\n\r\n" + sdp, ports=(5060, 5060))))
        step = clock // 50
        rows += [
            (begin + 1 + n / 50, udp(B, A, rtp(n, 70_000 + index, kind=99, stamp=step * n), hops=60))
            for n in range(100)
        ]
    run = read(tmp_path, pcap(rows))
    assert run.metrics("incoming")["media_jitter_ms_max"] < 0.1
    assert remarks(run, "warnings") == ""


@pytest.mark.parametrize("pace", [8_000, 48_000])
def test_a_description_that_the_timestamps_contradict_is_of_another_call(pace: int, tmp_path: Path) -> None:
    sdp = f"v=0\r\nm=audio {PORT} RTP/AVP 99\r\na=rtpmap:99 L16/8000\r\n".encode()
    invite = (START, udp(A, B, b"INVITE sip:b@example.com SIP/2.0\r\n\r\n" + sdp, ports=(5060, 5060)))
    speech = [
        (START + 1 + n / 50, udp(B, A, rtp(n, 70_000, kind=99, stamp=pace // 50 * n), hops=60)) for n in range(100)
    ]
    run = read(tmp_path, pcap([invite, *speech]))
    assert run.metrics("incoming")["media_jitter_ms_max"] < 0.1
    assert remarks(run, "warnings") == ""
    assert ("clock rates of streams are told by the pace of their timestamps: 48 kHz" in remarks(run)) == (pace > 8000)


def test_gaps_where_the_capture_was_made_are_told(tmp_path: Path) -> None:
    # one place at a sender: what is missing was lost before it, or not captured
    packets = [(START + n / 50, udp(A, B, rtp(n, 0x99999))) for n in range(100) if n % 10 != 5]
    run = read(tmp_path, pcap(packets))
    assert "10 of 100 sequence numbers (10.0 %) are missing at the place of capture" in remarks(run, "warnings")
    assert "loss_fraction" not in run.metrics("outgoing")


@pytest.mark.parametrize("hops", [59, 118, 250])
def test_a_lone_sender_whose_packets_passed_routers_is_far(hops: int, tmp_path: Path) -> None:
    data = pcap([(START + n / 50, udp(A, B, rtp(n, 0x99999), hops=hops)) for n in range(100) if n % 10 != 5])
    assert counts(read(tmp_path, data)) == [("incoming", 100, 90, 0.1)]
    assert counts(read(tmp_path, data, at="sender")) == [("outgoing", 90, None, None)]


def test_the_most_frequent_hop_limit_counts(tmp_path: Path) -> None:
    """Some packets took a path with another number of routers."""
    packets = [(START + n / 50, udp(A, B, rtp(n, 0x99999), hops=64 if n % 10 == 3 else 59)) for n in range(100)]
    assert counts(read(tmp_path, pcap(packets))) == [("incoming", 100, 100, 0.0)]


def test_the_user_says_where_the_capture_was_made(tmp_path: Path) -> None:
    data = pcap([(packet.at, packet.ip()) for packet in call()])
    assert counts(read(tmp_path, data, at="sender")) == PLAIN
    assert [row[:3] for row in counts(read(tmp_path, data, at="receiver"))] == [
        ("outgoing", 97, None),
        ("incoming", 100, 100),
    ]
    middle = counts(read(tmp_path, data, at="middle"))
    assert middle == [("outgoing", 100, 100, 0.0), ("incoming", 100, 97, 0.03)]
    with pytest.raises(InputError, match="at: found top; expected sender, receiver or middle"):
        read(tmp_path, data, at="top")


@pytest.mark.parametrize("near", [A, B])
@pytest.mark.parametrize("form", ["cooked", "flags"])
def test_the_direction_in_the_file_tells_the_near_end(form: str, near: str, tmp_path: Path) -> None:
    """All hop limits alike, as in one network; what comes in is marked so."""
    rows = [(packet.at, packet.source == near, udp(packet.source, packet.target, packet.payload)) for packet in call()]
    if form == "cooked":
        frames = [(at, bytes([0, 4 if leaves else 0]) + bytes(12) + b"\x08\0" + ip) for at, leaves, ip in rows]
        data = pcap(frames, COOKED)
    else:
        # a section a direction, each with its own flags
        parts = [
            pcapng([(at, 0, ip) for at, leaves, ip in rows if leaves == way], flags=2 if way else 1)
            for way in (True, False)
        ]
        data = b"".join(parts)
    run = read(tmp_path, data)
    assert f"the capture was made at {near} (by the direction that the file has" in remarks(run)
    assert run.metrics("outgoing")["packets_sent"] == (COUNT if near == A else COUNT - len(LOST))


@pytest.mark.parametrize("near", [A, B])
def test_the_round_trips_of_rtcp_tell_the_near_end(near: str, tmp_path: Path) -> None:
    """One way, in one network: B answers a sender report 30 ms after it came (RFC 3550 section 6.4.1)."""
    delay, waited = 0.02, 0.03
    packets = [(START + n / 50, udp(A, B, rtp(n, 7))) for n in range(100)]
    for second in (0.5, 1.5):
        seconds = round((2_208_988_800 + START + second) * 2**32)
        report = struct.pack("!BBHIQIII", 0x80, 200, 6, 7, seconds, 0, 1, 1)
        middle = seconds >> 16 & 0xFFFFFFFF
        block = struct.pack("!IIIIII", 7, 0, 10, 0, middle, round(waited * 65536))
        answer = struct.pack("!BBHI", 0x81, 201, 7, 9) + block
        round_trip = 2 * delay if near == A else 0.0
        packets.append((START + second, udp(A, B, report, ports=(5001, 5001))))
        packets.append((START + second + waited + round_trip, udp(B, A, answer, ports=(5001, 5001))))
    run = read(tmp_path, pcap(packets))
    assert f"the capture was made at {near} (by the round trips of RTCP)" in remarks(run)
    assert [flow["flow"] for flow in run.summary["flows"]] == ["outgoing" if near == A else "incoming"]


def test_a_sender_that_begins_anew(tmp_path: Path) -> None:
    """Neither the new origin of its timestamps nor that of its numbers is jitter or loss."""
    for number, origin in ((30_000, 3_000_000_000), (2_000, 3_000_000_000)):
        packets = [(START + n / 50, udp(B, A, rtp(n, 7), hops=60)) for n in range(100)]
        packets += [
            (START + 2 + n / 50, udp(B, A, rtp(number + n, 7, stamp=origin + 160 * n), hops=60)) for n in range(100)
        ]
        run = read(tmp_path, pcap(packets))
        assert counts(run) == [("incoming", 200, 200, 0.0)]
        assert run.metrics("incoming")["media_jitter_ms_max"] < 1e-3


def test_a_payload_type_has_a_clock_of_its_own(tmp_path: Path) -> None:
    packets, stamp = [], 0
    for n in range(200):
        kind, clock = (0, 8000) if n < 100 else (10, 44100)
        stamp += clock // 50
        packets.append((START + n / 50 + 0.001 * (n % 2), udp(B, A, rtp(n, 7, stamp=stamp, kind=kind), hops=60)))
    assert read(tmp_path, pcap(packets)).metrics("incoming")["media_jitter_ms_max"] == pytest.approx(1, abs=0.01)


def test_payload_types_that_begin_as_rtcp_does(tmp_path: Path) -> None:
    """With the marker, types from 72 to 79 are those of RTCP (RFC 5761 section 4); the stream tells."""
    for kind in (64, 72, 95):
        packets = [
            (START + n / 50, udp(B, A, rtp(n, 0x1234567, kind=kind | (0x80 if n % 3 == 0 else 0)), hops=60))
            for n in range(90)
        ]
        run = read(tmp_path, pcap(packets))
        assert counts(run) == [("incoming", 90, 90, 0.0)]
        assert "encrypted" not in remarks(run)


def test_a_group_of_receivers_is_no_place(tmp_path: Path) -> None:
    packets = [(START + n / 50, udp(A, "239.1.1.1", rtp(n, 7), hops=59)) for n in range(50)]
    assert f"the capture was made at {A}" in remarks(read(tmp_path, pcap(packets)))


# --- what cannot be read --------------------------------------------------------------------------


def test_extensions_that_do_not_parse_are_skipped(tmp_path: Path) -> None:
    """RFC 6904 encrypts their contents; the length stays."""
    draw = random.Random(2)
    packets = []
    for packet in call():
        head, rest = bytearray(packet.payload[:12]), packet.payload[12:]
        head[0] |= 0x10
        extension = b"\xbe\xde\0\4" + draw.randbytes(16)
        packets.append((packet.at, udp(packet.source, packet.target, bytes(head) + extension + rest, hops=packet.hops)))
    assert counts(read(tmp_path, pcap(packets))) == PLAIN


def test_what_was_cut_too_short_was_not_lost(tmp_path: Path) -> None:
    packets = []
    for n, packet in enumerate(call()):
        frame = packet.ip()
        packets.append((packet.at, frame[: 28 + 9] if n % 9 == 4 else frame))
    run = read(tmp_path, pcap(packets))
    incoming = run.metrics("incoming")
    assert incoming["loss_fraction"] == 0
    assert "could not be read, so that their fate is not known" in remarks(run, "warnings")


# --- dumps of RTP ---------------------------------------------------------------------------------


def test_rtpdump(tmp_path: Path) -> None:
    rows = [packet for packet in call() if packet.source == B]
    data = b"#!rtpplay1.0 192.0.2.1/5000\n" + struct.pack("!IIIHH", int(START), 0, 0, PORT, 0)
    for packet in rows:
        data += struct.pack("!HHI", 8 + len(packet.payload), len(packet.payload), round(1e3 * (packet.at - START)))
        data += packet.payload
    run = read(tmp_path, data, "call.rtpdump")
    assert counts(run) == PLAIN[1:]
    assert run.about["imported"]["begun_ms"] == pytest.approx(1e3 * START + 10, rel=0, abs=1)
    # a file that was cut
    assert counts(read(tmp_path, data[: len(data) // 2], "cut.rtpdump"))[0][0] == "incoming"
    with pytest.raises(InputError, match="the first line does not end"):
        read(tmp_path, b"#!rtpplay1.0 " + bytes(500), "wrong.rtpdump")


def test_headers_alone_have_the_sizes_of_the_packets(tmp_path: Path) -> None:
    """`rtpdump -F header` cuts packets, and says how long they were; a length of 0 is RTCP's."""
    data = b"#!rtpplay1.0 192.0.2.1/5000\n" + struct.pack("!IIIHH", int(START), 0, 0, PORT, 0)
    report = struct.pack("!BBHI", 0x80, 201, 1, 9)
    for n in range(50):
        data += struct.pack("!HHI", 20, 172, 20 * n) + rtp(n, 0x1234567)[:12]
        data += struct.pack("!HHI", 16, 0, 20 * n) + report if n % 10 == 0 else b""
    run = read(tmp_path, data, "headers.rtpdump")
    assert run.metrics("incoming")["bytes_received"] == 50 * (172 + 28)
    assert run.metrics("incoming")["packets_received"] == 50


def test_a_recording_of_janus_says_its_clock(tmp_path: Path) -> None:
    """In 60 ms the pace of the timestamps does not tell it."""
    for codec, known in (("opus", True), ("unheard-of", False)):
        about = json.dumps({"t": "a", "c": codec, "u": round(1e6 * START)}).encode()
        data = b"MJR00002" + struct.pack("!H", len(about)) + about
        for n in range(4):
            payload = rtp(n, 0x1234567, stamp=960 * n, kind=111)
            data += b"MEET" + struct.pack("!IH", 20 * n + n % 2, len(payload)) + payload
        metrics = read(tmp_path, data, "short.mjr").metrics("incoming")
        assert ("media_jitter_ms_max" in metrics) is known
        if known:
            assert metrics["media_jitter_ms_max"] == pytest.approx(
                1 / 16 + (1 - 1 / 16) / 16 + (1 - 31 / 256) / 16, abs=0.01
            )


def test_a_recording_of_janus(tmp_path: Path) -> None:
    about = json.dumps({"t": "a", "c": "pcmu", "s": round(1e6 * START) - 5, "u": round(1e6 * START)}).encode()
    data = b"MJR00002" + struct.pack("!H", len(about)) + about
    for packet in call():
        if packet.source == B:
            data += b"MEET" + struct.pack("!IH", round(1e3 * (packet.at - START)), len(packet.payload)) + packet.payload
    run = read(tmp_path, data, "call.mjr")
    assert counts(run) == PLAIN[1:]
    assert 1 < run.metrics("incoming")["media_jitter_ms_mean"] < 3
    with pytest.raises(InputError, match="an old Janus, which has no times of arrival"):
        read(tmp_path, b"MEETECHO" + bytes(100), "old.mjr")
    with pytest.raises(InputError, match="found a recording of data or text"):
        read(tmp_path, b"MJR00002\0\x0a" + b'{"t": "d"}', "data.mjr")


# --- the cases of others --------------------------------------------------------------------------

CASES: dict[str, tuple[dict[str, str], dict[str, tuple[float, float]]]] = {
    # name: options, metrics of the last flow with their tolerances
    "jitter-g711-8khz.pcap": ({}, {"media_jitter_ms_mean": (2.65, 0.02), "media_jitter_ms_max": (11.26, 0.02)}),
    "jitter-g711-30ms.pcap": ({}, {"media_jitter_ms_mean": (4.64, 0.02), "media_jitter_ms_max": (21.13, 0.02)}),
    "jitter-two-ssrcs.pcap": ({}, {"media_jitter_ms_max": (52.4, 1.0), "packets_received": (241, 0)}),
    "netbios-beside-g711.pcap": ({}, {"packets_sent": (9, 0)}),
    "netbios-beside-g711-cut62.pcap": ({}, {"packets_sent": (9, 0)}),
    "duplicates-phone-sll.pcap": ({}, {"packets_received": (151, 0), "receive_rate_bps": (19_200, 200)}),
    "duplicates-span-port.pcap": ({}, {"packets_received": (17, 0), "receive_rate_bps": (85_000, 100)}),
    "oneway-ttl59-14-lost.pcap": ({}, {"packets_sent": (354, 0), "packets_received": (340, 0)}),
    "oneway-vp9-279-lost.pcap": ({"at": "receiver"}, {"packets_sent": (595, 0), "packets_received": (316, 0)}),
    "report-crash-2-packets.pcap": ({"rtp": "192.0.2.2:35560"}, {"packets_received": (1, 0)}),
    "pppoe.pcap": ({}, {"packets_received": (105, 0)}),
    "gtp-u.pcap": ({}, {"packets_received": (105, 0)}),
    "pcapng-packet-blocks.pcapng": ({}, {"packets_received": (105, 0)}),
    "merged.pcap": ({}, {"packets_sent": (222, 0), "one_way_delay_ms_p95": (32.5, 0.2)}),
    "frag.pcap": ({}, {"packets_sent": (267, 0), "loss_fraction": (0, 0)}),
    "encext-r.pcap": ({}, {"packets_received": (445, 0), "loss_fraction": (0, 0)}),
    "simulcast-r.pcap": ({}, {"packets_received": (432, 0), "media_jitter_ms_max": (16.6, 0.2)}),
    "turn.pcap": ({}, {"packets_sent": (446, 0), "one_way_delay_ms_p95": (32.5, 0.2)}),
    "turn-channels.pcap": ({}, {"packets_received": (14, 0)}),
    "libwebrtc-vp8.rtpdump": ({}, {"packets_received": (2, 0)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases_of_others(name: str) -> None:
    options, expected = CASES[name]
    file = shared() / "cases" / "captures" / name
    run = imported([file], at=options.get("at"), rtp=options.get("rtp"))
    for metric, (value, tolerance) in expected.items():
        assert run.summary["flows"][-1][metric] == pytest.approx(value, abs=tolerance), metric


@pytest.mark.parametrize("name", ["nbns.pcap", "report-crash-2-packets.pcap"])
def test_cases_without_a_call(name: str) -> None:
    with pytest.raises(InputError, match="found no RTP but"):
        imported([shared() / "cases" / "captures" / name])


def test_addresses_are_of_four_bytes() -> None:
    assert address(A) == b"\xc0\0\2\1"
