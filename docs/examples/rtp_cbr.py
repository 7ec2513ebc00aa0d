"""A call of constant rate, as plain RTP over UDP: side A sends 500 kbit/s, side B listens and reports each second.

It needs nothing but Python, and is the least that a program is to do that takes part in comparisons:

    tidegate compare gcc fixed:500kbps "program:python3 docs/examples/rtp_cbr.py" --capacity 1Mbps --duration 10s
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time

PORT = 5004
RATE = 500_000  # bit/s on the wire, headers of IP and UDP with them
PACKET = 1000  # bytes on the wire
HEADERS = 28  # of IPv4 and UDP
CLOCK = 90_000  # Hz of the RTP timestamps of video (RFC 3551 section 5)


def send(to: tuple[str, int], out: socket.socket) -> None:
    """Sends a packet each 16 ms, for ever."""
    begun, number = time.monotonic(), 0
    step = PACKET * 8 / RATE
    while True:
        # by the beginning, not by the last packet: what one is late, the next one is not
        time.sleep(max(0.0, begun + number * step - time.monotonic()))
        # RFC 3550 section 5.1: version 2, payload type 96, sequence number, timestamp, source
        header = struct.pack(">BBHII", 0x80, 96, number % 65536, int(number * step * CLOCK) % 2**32, 0x7469_6465)
        out.sendto(header + bytes(PACKET - HEADERS - len(header)), to)
        number += 1


def listen(to: tuple[str, int], came: socket.socket) -> None:
    """Counts what comes, and says so each second: 80 bytes on the wire."""
    count, told = 0, time.monotonic()
    came.settimeout(0.2)
    while True:
        try:
            came.recv(2048)
            count += 1
        except TimeoutError:
            pass
        if time.monotonic() - told >= 1.0:
            told += 1.0
            came.sendto(struct.pack(">Q", count).ljust(52, b"\0"), to)


def main() -> None:
    """What TIDEGATE_SIDE says."""
    side, own, peer = (os.environ.get(f"TIDEGATE_{name}") for name in ("SIDE", "ADDRESS", "PEER"))
    if not side or not own or not peer:
        sys.exit("is started by tidegate compare or tidegate shell, which say where it stands")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind((own, PORT))
        (send if side == "A" else listen)((peer, PORT), here)


if __name__ == "__main__":
    main()
