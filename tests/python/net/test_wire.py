"""Packets as Python values, and the rules of compounds in the bytes of runs."""

from __future__ import annotations

import array
import copy
import pickle
import struct
from collections.abc import Iterator
from typing import Any

import pytest

import tidegate
from tidegate import Scenario, wire

BLOCK = wire.ReportBlock(1, 2, -3, 4, 5, 6, 7)
SSRC_ITEMS = [(1, [(1, b"a@b")])]
PACKETS: list[Any] = [
    wire.SenderReport(1, 2**64 - 1, 3, 4, 5, [BLOCK], b""),
    wire.ReceiverReport(1, [BLOCK, BLOCK], b"abcd"),
    wire.Sdes(SSRC_ITEMS),
    wire.Bye([1, 2], b"gone"),
    wire.Bye([1], None),
    wire.App(31, 1, b"NAME", b"data"),
    wire.Nack(1, 2, [(3, 0x8001)]),
    wire.Pli(1, 2),
    wire.Sli(1, 2, [(8191, 1, 63)]),
    wire.Fir(1, [(2, 3)]),
    wire.Remb(1, 250_000, [2]),
    wire.Ccfb(1, [(2, 3, [None, (3, 77)])], 9),
    wire.EcnFeedback(1, 2, 2**32 - 1, 4, 5, 65535, 7, 8, 9),
    wire.ExtendedReport(1, [(13, 0, bytes(20)), (4, 0, bytes(8)), (13, 0, bytes(4))]),
    wire.Unknown(False, 17, 205, b"1234"),
    wire.Twcc(1, 2, 3, 4, 5, [4, None, -9, "untimed"]),
]
RTP = wire.Rtp(96, 1, 2, 3, True, [4], [(5, b"xy")], b"payload", 0)


@pytest.mark.parametrize("packet", [*PACKETS, BLOCK, RTP], ids=lambda packet: type(packet).__name__)
def test_packets_are_values(packet: Any) -> None:
    again = eval(repr(packet), vars(wire))
    for twin in (again, copy.deepcopy(packet), *(pickle.loads(pickle.dumps(packet, n)) for n in range(6))):
        assert (type(twin), twin, hash(twin)) == (type(packet), packet, hash(packet))
    assert len({packet, again, wire.Pli(8, 9)}) == 2


def test_what_is_printed_is_python() -> None:
    assert repr(wire.Bye([1], b"x")) == "Bye(ssrcs=[1], reason=b'x')"
    assert repr(wire.Ccfb(1, [(2, 3, [None, (3, 77)])], 9)) == (
        "Ccfb(sender_ssrc=1, streams=[(2, 3, [None, (3, 77)])], report_timestamp=9)"
    )


def test_any_buffer_is_decoded() -> None:
    data = wire.encode(PACKETS)
    spread = memoryview(bytes(byte for value in data for byte in (value, 0)))[::2]
    for buffer in (bytearray(data), memoryview(data), array.array("B", data), array.array("I", data), spread):
        assert wire.decode(buffer) == PACKETS
    assert wire.decode_rtp(bytearray(wire.encode_rtp(RTP))) == RTP
    with pytest.raises(TypeError, match="a bytes-like object is required"):
        wire.decode([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: wire.Pli(2**32, 1),
            ValueError,
            "Pli.sender_ssrc must be a whole number from 0 to 4294967295, found 4294",
        ),
        (lambda: wire.Pli(-1, 1), ValueError, "Pli.sender_ssrc must be a whole number from 0 to .*, found -1"),
        (lambda: wire.Pli(1, "2"), TypeError, "Pli.media_ssrc must be a whole number from .*, found '2'"),  # type: ignore[arg-type]
        (
            lambda: wire.Nack(1, 2, [(3, 0), (3, 65536)]),
            ValueError,
            r"Nack.pairs\[1\]\[1\] must be .* to 65535, found 65536",
        ),
        (lambda: wire.Nack(1, 2, [(3,)]), TypeError, r"Nack.pairs\[0\] must be a tuple of 2"),  # type: ignore[list-item]
        (lambda: wire.Twcc(1, 2, 3, 4, 5, [1, 40_000]), ValueError, r"Twcc.packets\[1\] must be None, a delta"),
        (
            lambda: wire.Ccfb(1, [(2, 3, [(256, 1)])], 4),
            ValueError,
            r"Ccfb.streams\[0\]\[2\]\[0\]\[0\] must be .* to 255",
        ),
        (lambda: wire.App(1, 2, "NAME", b""), TypeError, "App.name must be bytes, found 'NAME'"),  # type: ignore[arg-type]
        (lambda: wire.ReceiverReport(1, [1], b""), TypeError, r"blocks\[0\] must be a ReportBlock, found 1"),  # type: ignore[list-item]
        (lambda: wire.TwccBuilder(1, 2, 256), ValueError, "TwccBuilder.feedback_count must be .* to 255"),
        (lambda: wire.TwccBuilder(1, 2).build(0, [(-1, 5)]), ValueError, r"build.arrivals\[0\]\[0\] must be"),
    ],
)
def test_a_value_out_of_range_names_its_field(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (wire.Ccfb(1, [(2, 3, [(4, 77)])], 9), "cannot write 4 as ECN field: it must be from 0 to 3"),
        (wire.App(32, 1, b"NAME", b""), "cannot write 32 as APP subtype: it must be from 0 to 31"),
        (wire.Bye([0] * 32, None), "cannot write 32 as number of BYE SSRCs"),
        (wire.ReceiverReport(1, [BLOCK] * 32, b""), "cannot write 32 as number of report blocks"),
        (wire.Twcc(1, 2, 3, 2**24, 5, [4]), "cannot write 16777216 as TWCC reference time"),
    ],
)
def test_what_does_not_fit_its_bits_is_refused(packet: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wire.encode([packet])


@pytest.mark.parametrize(("lost", "carried"), [(2**23 - 1, 2**23 - 1), (2**23, 2**23 - 1), (-(2**31), -(2**23))])
def test_cumulative_lost_is_clamped_as_documented(lost: int, carried: int) -> None:
    report = wire.ReceiverReport(1, [wire.ReportBlock(1, 2, lost, 4, 5, 6, 7)], b"")
    (decoded,) = wire.decode(wire.encode([report]))
    assert isinstance(decoded, wire.ReceiverReport)
    assert decoded.blocks[0].cumulative_lost == carried
    assert "clamped" in (wire.ReportBlock.cumulative_lost.__doc__ or "")


def test_feedback_from_arrivals() -> None:
    builder = wire.TwccBuilder(1, 2)
    (feedback,) = builder.build(7, [(7, 64_000_000), (9, 65_000_000), (10, 64_800_000)])
    assert feedback == wire.Twcc(1, 2, 7, 1, 0, [0, None, 4, -1])
    # a step of more than 32767 deltas begins another one
    far = builder.build(11, [(11, 10**9), (12, 10**10)])
    assert [(packet.base_sequence, packet.feedback_count) for packet in far] == [(11, 1), (12, 2)]
    assert (repr(builder), builder.feedback_count) == ("TwccBuilder(sender_ssrc=1, media_ssrc=2, feedback_count=3)", 3)
    assert wire.decode(wire.encode(far)) == far


def rtcp_of(run: tidegate.Run) -> Iterator[bytes]:
    """The RTCP datagrams of a capture, without IPv4 and UDP."""
    data, offset = run.pcapng(), 0
    while offset < len(data):
        kind, length = struct.unpack_from("<II", data, offset)
        if kind == 6:  # an enhanced packet block
            (captured,) = struct.unpack_from("<I", data, offset + 20)
            datagram = data[offset + 28 + 28 : offset + 28 + captured]
            if 200 <= datagram[1] <= 206:
                yield datagram
        offset += length


def padding_bits(datagram: bytes) -> list[bool]:
    bits = []
    while datagram:
        bits.append(bool(datagram[0] & 0x20))
        datagram = datagram[4 * (int.from_bytes(datagram[2:4]) + 1) :]
    return bits


def test_only_the_last_packet_of_a_compound_is_padded() -> None:
    """RFC 3550 section 6.4.1, in a call with AVPF, NACK and transport-wide feedback over a lossy link."""
    text = """
duration = "60s"
capture = true
[[links]]
capacity = "2Mbps"
delay = "30ms"
loss = 0.05
[[flows]]
[flows.media]
controller = "gcc"
feedback = { format = "twcc", profile = "avpf" }
repair = { nack = {} }
"""
    run = tidegate.run(Scenario.parse(text), record="packets")
    both = padded = 0
    for datagram in rtcp_of(run):
        bits = padding_bits(datagram)
        assert not any(bits[:-1])
        padded += bits[-1]
        kinds = [type(packet) for packet in wire.decode(datagram)]
        both += wire.Nack in kinds and wire.Twcc in kinds
    assert both > 50
    assert padded > 100
