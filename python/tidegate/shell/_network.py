"""Namespaces, devices and sockets of a session; all of this runs inside its namespaces."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from tidegate import _core

ENDS = "ABCDEFGH"
"""Ends for programs: the first, third and so on are at side A, from which the call is sent, the others at side B."""
SIDES = ("A", "B")
PREFIX = 24
DEVICE = "eth0"
"""Name of the programs' device in each namespace."""

# include/uapi/linux/if_packet.h and if_ether.h
_SOL_PACKET, _PACKET_STATISTICS, _ETH_P_IP = 263, 6, 0x0800
# include/uapi/linux/sockios.h and ethtool.h: checksums, scatter and gather, joining and cutting of segments
_SIOCETHTOOL = 0x8946
_OFF = {"tx checksums": 0x17, "scatter-gather": 0x19, "TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
_BUFFER = 8 << 20
_PATIENCE = 5.0

_T = TypeVar("_T")


def side_of(end: str) -> str:
    """The side of an end."""
    return SIDES[ENDS.index(end) % 2]


def partner(end: str) -> str:
    """The end that makes a pair with this one: A and B, C and D, and so on."""
    return ENDS[ENDS.index(end) ^ 1]


def address(end: str) -> str:
    """IP address of a program's device; only programs are in these networks."""
    return f"10.77.0.{ENDS.index(end) + 1}"


def _mac(end: str) -> str:
    return f"02:00:0a:4d:00:{ENDS.index(end) + 1:02x}"  # locally administered (IEEE 802 section 8.2)


def environment(name: str, ends: Sequence[str] = SIDES) -> dict[str, str]:
    """Environment variables of the program at an end, with the prompt of a shell.

    Args:
        name: The end.
        ends: All ends of the session. If the partner is not among them, the peer is the first end of the other side.
    """
    peer = partner(name) if partner(name) in ends else partner(side_of(name))
    variables = {"SIDE": side_of(name), "END": name, "ADDRESS": address(name), "PEER": address(peer)}
    prompt = f"[tidegate {name}]"
    return {
        **{f"TIDEGATE_{key}": value for key, value in variables.items()},
        "PS1": f"{prompt} $ ",
        # bash makes its own prompt when it begins; this puts ours before it, once
        "PROMPT_COMMAND": f'PS1="{prompt} $PS1"; unset PROMPT_COMMAND',
    }


@dataclass
class Side:
    """One side: its ends, and the packet socket that receives and sends all their packets."""

    ends: dict[str, int]
    """The network namespace of each."""
    socket: socket.socket

    @property
    def missed(self) -> int:
        """Packets dropped because the socket's buffer was full, since the last call."""
        statistics = self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        return int(struct.unpack("II", statistics)[1])


def inside(namespace: int, act: Callable[[], _T]) -> _T:
    """Calls `act` in a thread that is in a network namespace."""

    def run() -> _T:
        _core.enter_network(namespace)
        return act()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def _run(command: list[str], lines: str | None = None) -> str:
    result = subprocess.run(command, input=lines, text=True, capture_output=True, check=False)  # noqa: S603
    if result.returncode:
        raise OSError(f"{command[0]}: {result.stderr.strip() or result.returncode}")
    return result.stdout


def _ip(lines: list[str]) -> None:
    _run(["ip", "-batch", "-"], "\n".join(lines) + "\n")


def _switch_off_offloads(device: str) -> None:
    """Switches off work that a device leaves to hardware: packets must be complete, with checksums, as on a wire."""
    import fcntl  # not on Windows, where this module is imported, too

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for feature, command in _OFF.items():
            value = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP8x", device.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(control, _SIOCETHTOOL, request)
            except OSError as error:
                raise OSError(error.errno, f"{device}: {feature} cannot be switched off: {error.strerror}") from None


def _without_ipv6() -> None:
    # before any device is up: else it announces itself, and the link carries packets that no program sent
    for which in ("all", "default"):
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1", encoding="ascii")


def _allow_echo() -> None:
    """Allows programs to send ICMP echo requests without rights: `ping` of programs that have none (icmp(7))."""
    # a user's namespace knows no other group than the user's own
    first, last = (0, 2**31 - 1) if os.geteuid() == 0 else (os.getegid(), os.getegid())
    Path("/proc/sys/net/ipv4/ping_group_range").write_text(f"{first} {last}", encoding="ascii")


def _end(name: str, ends: Sequence[str]) -> None:
    others = [end for end in ends if side_of(end) != side_of(name)]
    beside = [end for end in ends if side_of(end) == side_of(name) and end != name]
    _without_ipv6()
    _allow_echo()
    _ip(
        [
            "link set lo up",
            f"link add {DEVICE} address {_mac(name)} type veth peer name end-{name} netns 1",
            f"link set {DEVICE} arp off",
            f"address add {address(name)}/{PREFIX} dev {DEVICE}",
            f"link set {DEVICE} up",
            # arp off: all addresses in the network are known beforehand
            *(f"neighbour add {address(end)} lladdr {_mac(end)} dev {DEVICE} nud permanent" for end in others),
            # ends at the same side would otherwise be reached without any link
            *(f"route add unreachable {address(end)}/32" for end in beside),
        ]
    )
    _switch_off_offloads(DEVICE)


def _gather(side: str, ends: Sequence[str]) -> str:
    """Name of the device for all ends of a side: that of the only end, or one behind a bridge of all ends."""
    devices = [f"end-{end}" for end in ends]
    for device in devices:
        _switch_off_offloads(device)
    if len(devices) == 1:
        _ip([f"link set {devices[0]} arp off up"])
        return devices[0]
    bridge, inner, outer = f"bridge-{side}", f"inner-{side}", f"side-{side}"
    _ip(
        [
            f"link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link add {outer} type veth peer name {inner}",
            f"link set {outer} arp off up",
            f"link set {bridge} arp off up",
            *(f"link set {device} master {bridge} arp off up" for device in (inner, *devices)),
        ]
    )
    for device in (inner, outer):
        _switch_off_offloads(device)
    _wait_for(bridge)
    return outer


def _wait_for(bridge: str) -> None:
    """Waits until all ports of a bridge forward: the kernel may take a second to notice a device."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        listing = _run(["ip", "-json", "-details", "link", "show", "master", bridge])
        states = [port["linkinfo"]["info_slave_data"]["state"] for port in json.loads(listing)]
        if all(state == "forwarding" for state in states):
            return
        time.sleep(0.02)
    raise OSError(f"{bridge}: its ports are {', '.join(states)} after {_PATIENCE:g} s; expected forwarding")


def join(ends: Sequence[str] = SIDES) -> dict[str, Side]:
    """Makes all ends, each a namespace with a device, and the opposite ends of these devices here.

    Args:
        ends: Names of the ends, at least A and B.

    Returns:
        The sides A and B, by name.

    Raises:
        OSError: says which step failed.
    """
    _without_ipv6()
    sides = {}
    for name in SIDES:
        side_ends = [end for end in ends if side_of(end) == name]
        namespaces = {}
        for end in side_ends:
            namespaces[end] = _core.make_network()
            inside(namespaces[end], partial(_end, end, ends))
        device = _gather(name, side_ends)
        # ETH_P_IP: only incoming packets, not those that we write
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
        packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        with suppress(OSError):  # beyond the limit of the system, which only root may exceed
            packets.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)  # SO_RCVBUFFORCE
        packets.bind((device, _ETH_P_IP))
        sides[name] = Side(namespaces, packets)
    return sides
