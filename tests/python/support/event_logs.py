"""Writes RTC event logs of format 2, for tests: `rtc_event_log2.proto` with columns of differences, as libwebrtc's encoders have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value % 2**64)


def fixed(field: int, value: int) -> bytes:
    return varint(field << 3 | 5) + value.to_bytes(4, "little")


def data(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def column(first: int | None, rest: Sequence[int | None]) -> bytes:
    """Values behind the first one: signed differences of one width; empty where all are alike."""
    if all(value == first for value in rest):
        return b""
    steps, last, lead = [], first, None
    for value in rest:
        if value is None:
            continue
        if last is None:
            lead = value
        else:
            steps.append(value - last)
        last = value
    width = max((max(step, -step - 1).bit_length() + 1 for step in steps), default=1)
    optional = first is None or None in rest
    bits = f"{1:02b}{width - 1:06b}1{int(optional)}{63:06b}"
    if optional:
        bits += "".join("0" if value is None else "1" for value in rest)
    if lead is not None:
        bits += "".join(f"{byte:08b}" for byte in varint(lead))
    bits += "".join(f"{step % 2**width:0{width}b}" for step in steps)
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


@dataclass(frozen=True)
class Rtp:
    """A packet: milliseconds, and what its header says."""

    at_ms: int
    sequence: int
    transport: int | None = None
    ssrc: int = 0x1234
    timestamp: int = 0
    payload: int = 1000
    header: int = 24
    marker: bool = False
    payload_type: int = 96


def begin(at_ms: int, utc_ms: int = 1_700_000_000_000, version: int = 2) -> bytes:
    return data(16, number(1, at_ms) + number(2, version) + number(3, utc_ms))


def rtp(packets: Sequence[Rtp], *, outgoing: bool) -> bytes:
    """A batch of packets."""
    rows: list[tuple[int, list[int | None]]] = [
        (1, [packet.at_ms for packet in packets]),
        (2, [int(packet.marker) for packet in packets]),
        (3, [packet.payload_type for packet in packets]),
        (4, [packet.sequence for packet in packets]),
        (5, [packet.timestamp for packet in packets]),
        (6, [packet.ssrc for packet in packets]),
        (8, [packet.payload for packet in packets]),
        (9, [packet.header for packet in packets]),
        (10, [0 for _ in packets]),
        (15, [packet.transport for packet in packets]),
    ]
    batch = number(11, len(packets) - 1)
    for field, (first, *rest) in rows:
        if first is not None:
            batch += fixed(field, first) if field in {5, 6} else number(field, first)
        batch += data(field + 100, column(first, rest))
    return data(3 if outgoing else 2, batch)


def rtcp(packets: Sequence[tuple[int, bytes]], *, outgoing: bool) -> bytes:
    """A batch of datagrams, each with its time in ms."""
    (at, first), *rest = packets
    batch = number(1, at) + data(2, first) + number(3, len(rest))
    batch += data(101, column(at, [time for time, _ in rest]))
    if rest:
        batch += data(102, b"".join(varint(len(value)) for _, value in rest) + b"".join(value for _, value in rest))
    return data(5 if outgoing else 4, batch)


def loss_based(rows: Iterable[tuple[int, int, int]]) -> bytes:
    """Estimates: ms, bit/s, 1/256 lost; each a batch of its own."""
    return b"".join(
        data(18, number(1, at) + number(2, rate) + number(3, lost) + number(4, 100)) for at, rate, lost in rows
    )


def delay_based(rows: Sequence[tuple[int, int, int]]) -> bytes:
    """Estimates: ms, bit/s, state of the detector (1 normal, 2 underusing, 3 overusing)."""
    (at, rate, state), *rest = rows
    batch = number(1, at) + number(2, rate) + number(3, state) + number(4, len(rest))
    for field, place in ((101, 0), (102, 1), (103, 2)):
        batch += data(field, column((at, rate, state)[place], [row[place] for row in rest]))
    return data(19, batch)


def streams(video: int, rtx: int) -> bytes:
    """A stream of video that is sent, and its retransmissions."""
    return data(104, number(1, 0) + number(2, video) + number(3, rtx))
