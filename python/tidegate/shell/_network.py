"""Namespaces, devices and sockets of a session; all of this runs inside its namespaces."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from tidegate import _core

ADDRESSES = {"A": "10.77.0.1", "B": "10.77.0.2"}
"""Of the programs' devices; nobody else is in these networks."""
PREFIX = 24
DEVICE = "eth0"
"""What the programs' device is called in each namespace."""

_MAC = {"A": "02:00:0a:4d:00:01", "B": "02:00:0a:4d:00:02"}  # locally administered (IEEE 802 section 8.2)
_OTHER = {"A": "B", "B": "A"}

# include/uapi/linux/if_packet.h and if_ether.h
_SOL_PACKET, _PACKET_STATISTICS, _ETH_P_IP = 263, 6, 0x0800
# include/uapi/linux/sockios.h and ethtool.h: checksums, scatter and gather, and what joins and cuts segments
_SIOCETHTOOL = 0x8946
_OFF = {"tx checksums": 0x17, "scatter-gather": 0x19, "TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
_BUFFER = 8 << 20

_T = TypeVar("_T")


def environment(name: str) -> dict[str, str]:
    """What a program finds in its environment, and how a shell asks for the next command."""
    told = {"SIDE": name, "ADDRESS": ADDRESSES[name], "PEER": ADDRESSES[_OTHER[name]]}
    prompt = f"[tidegate {name}]"
    return {
        **{f"TIDEGATE_{key}": value for key, value in told.items()},
        "PS1": f"{prompt} $ ",
        # bash makes its own prompt when it begins; this puts ours before it, once
        "PROMPT_COMMAND": f'PS1="{prompt} $PS1"; unset PROMPT_COMMAND',
    }


@dataclass
class Side:
    """One end: its namespace, and the packet socket at our end of its device."""

    name: str
    namespace: int
    socket: socket.socket

    @property
    def missed(self) -> int:
        """Packets that found the socket's buffer full since the last time that this was asked."""
        told = self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        return int(struct.unpack("II", told)[1])


def inside(namespace: int, act: Callable[[], _T]) -> _T:
    """Calls `act` in a thread that is in a network namespace."""
    done: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            _core.enter_network(namespace)
            done.append(act())
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def _ip(lines: list[str]) -> None:
    told = subprocess.run(
        ["ip", "-batch", "-"],  # noqa: S607
        input="\n".join(lines) + "\n",
        text=True,
        capture_output=True,
        check=False,
    )
    if told.returncode:
        raise OSError(f"ip: {told.stderr.strip() or told.returncode}")


def _plain(device: str) -> None:
    """Switches off what a device would leave to hardware: packets must be whole, with their checksums, as on a wire."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for what, command in _OFF.items():
            value = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP8x", device.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(asked, _SIOCETHTOOL, request)
            except OSError as error:
                raise OSError(error.errno, f"{device}: {what} cannot be switched off: {error.strerror}") from None


def _without_ipv6() -> None:
    # before any device is up: else it announces itself, and the link carries what nobody sent
    for which in ("all", "default"):
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1", encoding="ascii")


def _end(name: str) -> None:
    other = _OTHER[name]
    _without_ipv6()
    _ip(
        [
            "link set lo up",
            f"link add {DEVICE} address {_MAC[name]} type veth peer name side-{name} netns 1",
            f"link set {DEVICE} arp off",
            f"address add {ADDRESSES[name]}/{PREFIX} dev {DEVICE}",
            f"link set {DEVICE} up",
            # arp off: whoever is on the network is known beforehand
            f"neighbour add {ADDRESSES[other]} lladdr {_MAC[other]} dev {DEVICE} nud permanent",
        ]
    )
    _plain(DEVICE)


def join() -> dict[str, Side]:
    """Makes both ends: two namespaces with a device each, and our ends of these devices here.

    Raises:
        OSError: says which step failed.
    """
    _without_ipv6()
    sides = {}
    for name in ADDRESSES:
        namespace = _core.make_network()
        inside(namespace, partial(_end, name))
        _ip([f"link set side-{name} arp off up"])
        _plain(f"side-{name}")
        # ETH_P_IP: only what comes in, never what we write ourselves
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
        packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        with suppress(OSError):  # beyond what the system allows everybody; only root may
            packets.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)  # SO_RCVBUFFORCE
        packets.bind((f"side-{name}", _ETH_P_IP))
        sides[name] = Side(name, namespace, packets)
    return sides
