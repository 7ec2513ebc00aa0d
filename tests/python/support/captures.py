"""Captures of calls, byte by byte: packets, what wraps them, and files."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate import Run
from tidegate.recordings import imported

A, B = "192.0.2.1", "192.0.2.2"
PORT = 5000
RAW, ETHERNET, COOKED = 101, 1, 113
"""Link types (LINKTYPE_*)."""

Timed = tuple[float, bytes]


def address(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


def ipv4(
    source: str, target: str, payload: bytes, *, protocol: int = 17, hops: int = 64, place: int = 0, id_: int = 0
) -> bytes:
    """A packet of IPv4 without a checksum; `place` has the flags and the offset of a fragment."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), id_, place, hops, protocol, 0)
    return head + address(source) + address(target) + payload


def datagram(payload: bytes, ports: tuple[int, int] = (PORT, PORT), checksum: int = 0) -> bytes:
    """A header of UDP with its payload."""
    return struct.pack("!HHHH", *ports, 8 + len(payload), checksum) + payload


def udp(source: str, target: str, payload: bytes, *, ports: tuple[int, int] = (PORT, PORT), hops: int = 64) -> bytes:
    """A packet of IPv4 with UDP."""
    return ipv4(source, target, datagram(payload, ports), hops=hops)


def rtp(number: int, ssrc: int, size: int = 172, *, stamp: int | None = None, kind: int = 0) -> bytes:
    """A packet of RTP, by default of G.711 every 20 ms."""
    stamp = 160 * number if stamp is None else stamp
    return struct.pack("!BBHII", 0x80, kind, number % 65536, stamp % 2**32, ssrc) + bytes(size - 12)


def pcap(packets: Iterable[Timed], link: int = RAW, *, by_time: bool = True) -> bytes:
    """A capture of frames, with times in seconds; in the order that is given if it is not by time."""
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)
    rows = (
        struct.pack("<IIII", int(at), round(at % 1 * 1e9), len(frame), len(frame)) + frame
        for at, frame in (sorted(packets, key=lambda row: row[0]) if by_time else packets)
    )
    return head + b"".join(rows)


def block(kind: int, body: bytes) -> bytes:
    """A block of pcapng."""
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def pcapng(
    rows: Sequence[tuple[float, int, bytes]], link: int = RAW, *, kind: int = 6, flags: int | None = None
) -> bytes:
    """A capture of frames with times and interfaces, in blocks of a kind: 6, or 2 of old, or 3 without times."""
    interfaces = 1 + max(interface for _, interface, _ in rows)
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts += [block(1, struct.pack("<HHI", link, 0, 0))] * interfaces
    options = b"" if flags is None else struct.pack("<HHIHH", 2, 4, flags, 0, 0)
    for at, interface, frame in rows:
        ticks = round(at * 1e6)
        where = struct.pack("<I", interface) if kind == 6 else struct.pack("<HH", interface, 0)
        head = where + struct.pack("<IIII", ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        padded = frame + bytes(-len(frame) % 4)
        parts.append(block(kind, struct.pack("<I", len(frame)) + frame if kind == 3 else head + padded + options))
    return b"".join(parts)


@dataclass(frozen=True)
class Passed:
    """A packet of RTP that passed the place of a capture."""

    at: float
    source: str
    target: str
    payload: bytes
    hops: int = 64

    def ip(self) -> bytes:
        return udp(self.source, self.target, self.payload, hops=self.hops)


LOST = (20, 21, 70)
COUNT = 100


def call(late: Sequence[float] = (0.0, 0.003, 0.001)) -> list[Passed]:
    """Two seconds of G.711 both ways, captured at A: what B sent has passed four routers, and three packets of it are lost."""
    start = 1_700_000_000.0
    out = [Passed(start + n / 50, A, B, rtp(n, 0x11223344)) for n in range(COUNT)]
    back = [
        Passed(start + 0.01 + n / 50 + late[n % len(late)], B, A, rtp(n, 0x55667788), 60)
        for n in range(COUNT)
        if n not in LOST
    ]
    return sorted([*out, *back], key=lambda packet: packet.at)


def read(folder: Path, data: bytes, name: str = "call.pcap", *, at: str | None = None, rtp: str | None = None) -> Run:
    """Imports a file with these bytes."""
    (folder / name).write_bytes(data)
    return imported([folder / name], at=at, rtp=rtp)


def remarks(run: Run, key: str = "notes") -> str:
    return " ".join(remark["says"] for remark in run.summary[key])


def counts(run: Run) -> list[tuple[str, int, int | None, float | None]]:
    return [
        (flow["flow"], flow["packets_sent"], flow.get("packets_received"), flow.get("loss_fraction"))
        for flow in run.summary["flows"]
    ]


PLAIN = [("outgoing", COUNT, None, None), ("incoming", COUNT, COUNT - len(LOST), len(LOST) / COUNT)]
