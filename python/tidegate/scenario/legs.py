"""Legs of calls over TCP: the connections that carry calls over a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from tidegate.scenario import _rules as rules
from tidegate.scenario.model import Model
from tidegate.scenario.shapes import OneOf
from tidegate.units import Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


class TcpLeg(Model):
    """TCP connection of each call over a link, as between a client and its TURN relay (RFC 8656).

    Its segments are the packets of the link: they wait in its queue, and are lost and sent again. Datagrams come out in
    the order in which they went in, when all their bytes have arrived.
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    algorithm: Literal["reno", "newreno", "sack", "cubic", "bbr", "bbr3"] = "cubic"
    """Congestion control of the connection, which repairs losses as that of a TCP flow."""
    buffer: Annotated[Size, rules.Bounds(Size(1448), Size(1_000_000_000))] = Size(262_144)
    """Size of the socket: bytes that were written and are not acknowledged (libwebrtc, kVideoRtpSendBufferSize)."""
    writer: Literal["client", "relay"] = "client"
    """Program that writes into it. libwebrtc's client fills the socket, and then drops what it is to send, in silence,
    until Linux lets it write again, when a third is free (client). A relay drops a datagram that does not fit
    (relay)."""
    framing: Annotated[Size, rules.Bounds(Size(0), Size(1000))] = Size(4)
    """Size of what stands before each datagram, which is filled up to a multiple of 4 bytes: 4 with ChannelData
    (RFC 8656 sections 12.4 and 12.5)."""


Via = Annotated[Literal["udp", "tcp"] | TcpLeg, OneOf('"udp", "tcp", or a table with buffer, writer or algorithm')]


def via_ir(via: str | TcpLeg, reading: Reading) -> Any:
    """The connection that carries calls over a link, as the engine takes it; `None` where datagrams go as they are."""
    if isinstance(via, TcpLeg):
        return via.to_ir(reading)
    return TcpLeg().to_ir(reading) if via == "tcp" else None
