"""Calls in captures behind links, tunnels, fragments, TURN and TCP."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from support.captures import (
    COOKED,
    COUNT,
    ETHERNET,
    LOST,
    PLAIN,
    PORT,
    RAW,
    A,
    B,
    Passed,
    address,
    call,
    counts,
    datagram,
    ipv4,
    pcap,
    pcapng,
    read,
    remarks,
    rtp,
    udp,
)
from tidegate import InputError

START = 1_700_000_000.0
MACS = bytes(range(12))


def ethernet(kind: int, payload: bytes) -> bytes:
    return MACS + struct.pack("!H", kind) + payload


# --- what wraps it --------------------------------------------------------------------------------


def gtp(ip: bytes) -> bytes:
    return udp(
        "198.51.100.1",
        "198.51.100.2",
        bytes([0x32, 255, 0, 4 + len(ip)]) + bytes(4) + b"\0\1\0\0" + ip,
        ports=(2152, 2152),
    )


def vxlan(ip: bytes) -> bytes:
    return udp("198.51.100.1", "198.51.100.2", b"\x08\0\0\0\0\0\x2a\0" + ethernet(0x0800, ip), ports=(41000, 4789))


def geneve(ip: bytes) -> bytes:
    return udp(
        "198.51.100.1", "198.51.100.2", b"\1\0\x65\x58\0\0\x2a\0" + bytes(4) + ethernet(0x0800, ip), ports=(41000, 6081)
    )


def radio(ip: bytes, qos: bool = True) -> bytes:
    head = bytes([0x88 if qos else 0x08, 1, 0, 0]) + bytes(18) + b"\0\0" + (bytes(2) if qos else b"")
    return head + b"\xaa\xaa\x03\0\0\0\x08\0" + ip


TUNNEL = ("198.51.100.1", "198.51.100.2")
WRAPPERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "ethernet": (ETHERNET, lambda ip: ethernet(0x0800, ip)),
    "two VLANs": (ETHERNET, lambda ip: ethernet(0x88A8, b"\0\1\x81\0\0\2\x08\0" + ip)),
    "PPPoE": (ETHERNET, lambda ip: ethernet(0x8864, struct.pack("!BBHHH", 0x11, 0, 1, 2 + len(ip), 0x21) + ip)),
    "MPLS": (ETHERNET, lambda ip: ethernet(0x8847, b"\0\1\0\x40\0\2\1\x40" + ip)),
    "MPLS pseudowire": (ETHERNET, lambda ip: ethernet(0x8847, b"\0\2\1\x40" + bytes(4) + ethernet(0x0800, ip))),
    "GRE": (RAW, lambda ip: ipv4(*TUNNEL, b"\x20\0\x08\0\0\0\0\7" + ip, protocol=47)),
    "GRE with Ethernet": (RAW, lambda ip: ipv4(*TUNNEL, b"\0\0\x65\x58" + ethernet(0x0800, ip), protocol=47)),
    "ERSPAN": (RAW, lambda ip: ipv4(*TUNNEL, b"\x10\0\x88\xbe\0\0\0\1" + bytes(8) + ethernet(0x0800, ip), protocol=47)),
    "IP in IP": (RAW, lambda ip: ipv4(*TUNNEL, ip, protocol=4)),
    "VXLAN": (RAW, vxlan),
    "Geneve": (RAW, geneve),
    "GTP-U": (RAW, gtp),
    "PPP": (9, lambda ip: b"\xff\x03\0\x21" + ip),
    "PPP, compressed": (9, lambda ip: b"\x21" + ip),
    "802.11": (105, radio),
    "radiotap": (127, lambda ip: b"\0\0\x09\0\0\0\0\0\0" + radio(ip, qos=False)),
    "cooked": (COOKED, lambda ip: bytes(14) + b"\x08\0" + ip),
    "loopback": (0, lambda ip: b"\2\0\0\0" + ip),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_what_wraps_a_call_is_taken_off(name: str, tmp_path: Path) -> None:
    link, wrap = WRAPPERS[name]
    run = read(tmp_path, pcap([(packet.at, wrap(packet.ip())) for packet in call()], link))
    assert counts(run) == PLAIN
    plain = read(tmp_path, pcap([(packet.at, packet.ip()) for packet in call()]))
    for metric in ("receive_rate_bps", "media_jitter_ms_mean", "media_jitter_ms_max"):
        assert run.metrics("incoming")[metric] == plain.metrics("incoming")[metric]


@pytest.mark.parametrize("kind", [6, 2])
def test_packet_blocks_of_pcapng_old_and_new(kind: int, tmp_path: Path) -> None:
    rows = [(packet.at, 0, packet.ip()) for packet in call()]
    assert counts(read(tmp_path, pcapng(rows, kind=kind))) == PLAIN


def test_packets_without_times_are_told(tmp_path: Path) -> None:
    rows = [(packet.at, 0, packet.ip()) for packet in call()]
    with pytest.raises(InputError, match="Simple Packet Block"):
        read(tmp_path, pcapng(rows, kind=3))


def channel(payload: bytes, *, pad: bool = False) -> bytes:
    return struct.pack("!HH", 0x4001, len(payload)) + payload + (bytes(-len(payload) % 4) if pad else b"")


def indication(payload: bytes, kind: int) -> bytes:
    peer = struct.pack("!HHBBHI", 0x0012, 8, 0, 1, 4000, 5)
    data = struct.pack("!HH", 0x0013, len(payload)) + payload + bytes(-len(payload) % 4)
    return struct.pack("!HHI", kind, len(peer) + len(data), 0x2112A442) + bytes(12) + peer + data


@pytest.mark.parametrize("form", ["channels", "padded channels", "indications"])
def test_a_call_through_turn(form: str, tmp_path: Path) -> None:
    packets = []
    for packet in call():
        # an odd length, so that padding shows
        payload = packet.payload[:-1]
        kind = 0x16 if packet.source == A else 0x17
        wrapped = (
            indication(payload, kind) if form == "indications" else channel(payload, pad=form == "padded channels")
        )
        packets.append((packet.at, udp(packet.source, packet.target, wrapped, ports=(3478, 3478), hops=packet.hops)))
    run = read(tmp_path, pcap(packets))
    assert counts(run) == PLAIN
    assert f"{2 * COUNT - len(LOST)} datagrams of the call went through a TURN server" in remarks(run)


def fragments(packet: Passed, number: int) -> list[bytes]:
    whole = datagram(packet.payload)
    parts = [whole[:64], whole[64:128], whole[128:]]
    places = [0x2000, 0x2008, 0x0010]
    return [
        ipv4(packet.source, packet.target, part, hops=packet.hops, place=place, id_=number)
        for part, place in zip(parts, places, strict=True)
    ]


def test_fragments_are_put_together(tmp_path: Path) -> None:
    draw = random.Random(4)
    packets = []
    for number, packet in enumerate(call()):
        parts = fragments(packet, number)
        draw.shuffle(parts)
        packets += [(packet.at + n / 1e4, part) for n, part in enumerate(parts)]
    run = read(tmp_path, pcap(packets))
    assert counts(run) == PLAIN
    # each fragment has a header of IP
    assert run.metrics("outgoing")["bytes_sent"] == COUNT * (3 * 20 + 8 + 172)


def test_first_fragments_alone_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    """A capture filter by ports has no others."""
    packets = [(packet.at, fragments(packet, number)[0]) for number, packet in enumerate(call())]
    run = read(tmp_path, pcap(packets))
    assert counts(run) == PLAIN
    assert "first IP fragments without the others" in remarks(run)


def ipv6(packet: Passed, payload: bytes, following: int) -> bytes:
    """A packet of IPv6 whose addresses end like those of `packet`."""
    ends = [bytes(12) + address(end) for end in (packet.source, packet.target)]
    return struct.pack("!IHBB", 6 << 28, len(payload), following, packet.hops) + b"".join(ends) + payload


def test_ipv6_with_extension_headers_and_fragments(tmp_path: Path) -> None:
    options = bytes([17, 0]) + bytes(6)
    packets = []
    for number, packet in enumerate(call()):
        whole = datagram(packet.payload)
        if number % 2:
            packets.append((packet.at, ipv6(packet, options + whole, 0)))
            continue
        for place, part in ((1, whole[:64]), (64, whole[64:])):
            head = struct.pack("!BBHI", 17, 0, place, number)
            packets.append((packet.at, ipv6(packet, head + part, 44)))
    assert counts(read(tmp_path, pcap(packets))) == PLAIN
    # and inside IPv4
    inside = [(at, ipv4(*TUNNEL, ip, protocol=41)) for at, ip in packets]
    assert counts(read(tmp_path, pcap(inside))) == PLAIN


def segments(
    stream: bytes, flow: tuple[str, str, int], times: list[tuple[int, float]], draw: random.Random
) -> list[tuple[float, bytes]]:
    """TCP that carries a stream: cut anywhere, some of it out of order, some of it twice. `times` has when each byte is ready."""
    source, target, hops = flow
    sent, offset, begin = [], 0, 2**32 - 5000
    while offset < len(stream):
        size = draw.choice([100, 180, 400])
        at = next(time for end, time in times if end >= min(offset + size, len(stream)))
        head = struct.pack("!HHIIBBHHH", PORT, PORT, (begin + offset) % 2**32, 0, 0x50, 0x18, 9999, 0, 0)
        frame = ipv4(source, target, head + stream[offset : offset + size], protocol=6, hops=hops)
        late = 0.002 if draw.random() < 0.1 else 0.0
        sent.append((at + late, frame))
        if draw.random() < 0.1:
            sent.append((at + 0.05, frame))
        offset += size
    return sent


FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "RFC 4571": lambda payload: struct.pack("!H", len(payload)) + payload,
    "RTSP": lambda payload: b"$\0" + struct.pack("!H", len(payload)) + payload,
    "TURN": lambda payload: channel(payload, pad=True),
}


@pytest.mark.parametrize("form", FRAMES)
def test_rtp_over_tcp(form: str, tmp_path: Path) -> None:
    draw = random.Random(form)
    packets = []
    for source, target, hops in ((A, B, 64), (B, A, 60)):
        stream, times = b"", []
        if form == "RTSP":
            stream = b"RTSP/1.0 200 OK\r\nCSeq: 4\r\nContent-Length: 5\r\n\r\nv=0\r\n"
        for packet in call():
            if packet.source == source:
                stream += FRAMES[form](packet.payload[:-1])
                times.append((len(stream), packet.at))
        packets += segments(stream, (source, target, hops), times, draw)
    run = read(tmp_path, pcap(packets))
    assert counts(run) == PLAIN
    assert "went through TCP" in remarks(run)


def test_a_message_is_there_when_all_before_it_is(tmp_path: Path) -> None:
    """TCP hands over nothing that stands behind a gap."""
    packets = []
    for n in range(20):
        payload = FRAMES["RFC 4571"](rtp(n, 0x1234567))
        head = struct.pack("!HHIIBBHHH", PORT, PORT, 1000 + n * len(payload), 0, 0x50, 0x18, 9999, 0, 0)
        # the first segment comes last but nine
        at = 0.21 if n == 0 else n / 50
        packets.append((call()[0].at + at, ipv4(B, A, head + payload, protocol=6, hops=60)))
    run = read(tmp_path, pcap(packets))
    assert run.about["imported"]["begun_ms"] == pytest.approx(1e3 * call()[0].at + 210, rel=0, abs=1)


def test_segments_that_were_not_captured_were_not_lost(tmp_path: Path) -> None:
    draw = random.Random(6)
    stream, times = b"", []
    for packet in call():
        if packet.source == B:
            stream += FRAMES["RTSP"](packet.payload)
            times.append((len(stream), packet.at))
    sent = segments(stream, (B, A, 60), times, draw)
    run = read(tmp_path, pcap([row for n, row in enumerate(sent) if n % 15 != 8]))
    assert run.metrics("incoming")["loss_fraction"] == 0
    assert "could not be read, so that their fate is not known" in remarks(run, "warnings")


def test_other_tcp_is_no_call(tmp_path: Path) -> None:
    draw = random.Random(1)
    stream = draw.randbytes(300_000)
    with pytest.raises(InputError, match=r"found no RTP but \d+ TCP"):
        read(tmp_path, pcap(segments(stream, (A, B, 64), [(len(stream), START)], draw)))
