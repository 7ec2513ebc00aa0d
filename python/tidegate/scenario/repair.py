"""Repair of video losses: retransmission, key frames and parity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


class Nack(Model):
    """Requests of missing packets (RFC 4585 section 6.2.1) and their retransmission (RFC 4588) as in libwebrtc."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    wait: Duration = Duration(0)
    """Time from a gap in the sequence to the first request of the missing packet, rounded up to the next multiple of
    20 ms. With 0s, which is libwebrtc's rule, the request is sent at once. A longer wait saves the requests of packets
    that were only overtaken."""
    requests: Annotated[int, Field(ge=1, le=1000)] = 100
    """Largest number of requests for a packet, one per round trip (libwebrtc, kMaxNackRetries)."""
    keep: Annotated[Literal["auto"] | Duration, OneOf('"auto", or a time')] = "auto"
    """Time for which the sender keeps a packet after its last transmission, and for which the receiver requests it.
    With "auto" the sender keeps it by libwebrtc's rule: at least 1 s and three round trips, up to three times that
    while fewer than 600 packets are kept, and never more than 9600 packets (rtp_packet_history.h)."""

    def to_ir(self, reading: Reading) -> dict[str, Any]:
        """As the engine takes it."""
        ir: dict[str, Any] = super().to_ir(reading)
        return {**ir, "keep": None} if self.keep == "auto" else ir


class Pli(Model):
    """Requests of a key frame when a frame is missing for good (RFC 4585 section 6.3.1)."""

    interval: Duration = Duration(300_000_000)
    """Shortest time between two requests, and between key frames in answer (libwebrtc, kMinKeyframeSendIntervalMs)."""


class Fec(Model):
    """Interleaved parity over groups of packets (RFC 6015)."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    packets: Annotated[int, Field(ge=1, le=255)]
    """Number of media packets in a group."""
    parity: Annotated[int, Field(ge=1, le=255)] = 1
    """Number of parity packets per group, at most `packets`; as many consecutive losses can be restored."""
    by_frame: bool = False
    """Whether a group also ends at the end of a frame: parity packets come earlier, and there are more of them."""


class Repair(Model):
    """Repair of video losses: each method has a switch, and is off where the table does not say that it is on.

    >>> Repair(nack=True).requests
    Nack(wait=Duration('0s'), requests=100, keep='auto')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    nack: Annotated[bool | Nack, OneOf("true, false, or a table with wait, requests and keep")] = False
    """Whether lost packets are requested and sent again."""
    pli: Annotated[bool | Pli, OneOf("true, false, or a table with interval")] = False
    """Whether key frames are requested when a frame is missing for good."""
    fec: Annotated[bool | Fec, OneOf("false, or a table with packets and parity")] = False
    """Whether parity packets are sent."""

    @property
    def requests(self) -> Nack | None:
        """Requests and retransmission, if there are any."""
        return (Nack() if self.nack else None) if isinstance(self.nack, bool) else self.nack

    @property
    def key_frames(self) -> Pli | None:
        """Requests of key frames, if there are any."""
        return (Pli() if self.pli else None) if isinstance(self.pli, bool) else self.pli

    @property
    def added(self) -> int:
        """Most bytes that repair adds to a full packet: OSN, or RFC 6015's header and the protected extensions."""
        return 28 if self.fec else 2 if self.requests else 0

    @property
    def repairs(self) -> bool:
        """Whether any repair is on."""
        return bool(self.nack or self.pli or self.fec)

    def to_ir(self, reading: Reading) -> dict[str, Any]:
        """As the engine takes it; empty without any repair."""
        fec = self.fec if isinstance(self.fec, Fec) else None
        methods = {"nack": self.requests, "pli": self.key_frames, "fec": fec}
        return {key: method.to_ir(reading) for key, method in methods.items() if method is not None}

    def problems(self, path: Path, _: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        for key, table, part in (
            ("nack", self.requests, "keep"),
            ("pli", self.key_frames, "interval"),
        ):
            if table is not None and not getattr(table, part):
                yield Problem((*path, key, part), f'found "{getattr(table, part)}"; expected more than zero')
        if (pli := self.key_frames) is not None and pli.interval:
            yield from rules.TIMER.problems((*path, "pli", "interval"), pli.interval)
        if self.fec is True:
            yield Problem((*path, "fec"), "found true; expected false, or a table with packets and parity")
        elif isinstance(self.fec, Fec) and self.fec.parity > self.fec.packets:
            message = f"found {self.fec.parity}; expected from 1 to packets ({self.fec.packets})"
            yield Problem((*path, "fec", "parity"), message)
