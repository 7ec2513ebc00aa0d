"""The controller contract, for controllers written in Python and for controllers driven by hand.

A controller is told of events and answers each with its complete present policy: a `Decision`, or
simply a rate in bit/s, or `None` for "as before". Names, fields and units are those of the Rust
contract (`crates/core/src/control/`): times and spans are integer nanoseconds, rates bit/s, sizes
bytes. One call is made for each feedback report, not for each packet.

>>> class Cautious(Controller):
...     "Halves its rate at any loss, and adds 10 kbit/s a report otherwise."
...     def on_limits(self, now_ns, limits):
...         self.limits, self.rate = limits, limits.start_bps
...         return self.rate
...     def on_report(self, now_ns, report):
...         lost = any(packet.arrival_ns is None for packet in report.packets)
...         rate = self.rate // 2 if lost else self.rate + 10_000
...         self.rate = max(self.limits.min_bps, min(self.limits.max_bps, rate))
...         return self.rate
>>> mine = Cautious()
>>> mine.on_limits(0, Limits())
300000
>>> mine.on_report(50_000_000, Report([PacketResult(7, 1200, 0, 20_000_000)]))
310000
>>> mine.on_report(100_000_000, Report([PacketResult(8, 1200, 50_000_000, None)]))
155000
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tidegate._core import (
    Arrived,
    ControllerHost,
    Decision,
    EcnCounts,
    Limits,
    LossReport,
    Needs,
    NewFrame,
    Outgoing,
    PacketResult,
    Probe,
    ReceiverHost,
    Report,
    Sent,
    Stream,
)

Answer = Decision | float | None
"""Return value of a controller: a decision, a rate in bit/s, or `None` for "as before".

Of a rate the call paces as that of gcc: `Decision.pacing_bps` says how.
"""

Ask = str | int | tuple[str | int | None, int | None] | None
"""Return value of a receiver half: how soon it wants to send, or a pair of that and the time of an alarm in ns.

`None` or `"none"`: not at all. `"regular"`: with the next regular RTCP packet. `"now"`: at once. A
number: early, and worthless after so many nanoseconds (RFC 4585).
"""

if TYPE_CHECKING:
    from tidegate._core import _Packet

_F = TypeVar("_F", bound=Callable[..., Any])


def _unwritten(method: _F) -> _F:
    """Marks a method that does nothing, so that the engine need not call it."""
    method._tidegate_default = True  # type: ignore[attr-defined]  # noqa: SLF001
    return method


class _Half:
    """Attributes of both halves: values worth plotting, and random numbers."""

    internals: dict[str, float]
    rng: Stream

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Makes the object with empty `internals`, whether or not `__init__` calls its parent's."""
        del args, settings
        instance = super().__new__(cls)
        instance.internals = {}
        return instance


class Controller(_Half):
    """Base class of controllers written in Python; settings are keyword arguments of `__init__`.

    Only `on_report` has to be written.
    """

    internals: dict[str, float]
    """Values worth plotting, by name: recorded after each report as named series."""
    rng: Stream
    """Its own random substream, available from the first call on; draw only during a call that has a time."""
    needs: Needs = Needs()
    """Requirements on the session: where a scenario says `auto`, they decide on feedback and ECN."""

    @property
    def needs_sent(self) -> bool:
        """Whether `on_sent` is to be called: by default where it is written."""
        return not hasattr(type(self).on_sent, "_tidegate_default")

    @property
    def needs_frames(self) -> bool:
        """Whether `on_frame` is to be called: by default where it is written."""
        return not hasattr(type(self).on_frame, "_tidegate_default")

    def __init__(self) -> None:
        """Takes the settings of the scenario, as keyword arguments."""

    def on_report(self, now_ns: int, report: Report) -> Answer:
        """A feedback report, joined with what was sent: the heart of every controller.

        Args:
            now_ns: The present.
            report: The fate of each packet that the feedback covers.
        """
        raise NotImplementedError(f"{type(self).__name__} has no on_report")

    def on_limits(self, now_ns: int, limits: Limits) -> Answer:
        """New bounds, a new wanted rate, or a new route. Called once before everything else.

        Without an answer the engine begins at `limits.start_bps` and goes on as before.
        """
        del now_ns, limits
        return None

    @_unwritten
    def on_alarm(self, now_ns: int) -> Answer:
        """The alarm of the last decision is due."""
        del now_ns
        return None

    @_unwritten
    def on_sent(self, now_ns: int, packet: Sent) -> Answer:
        """One packet has left; costs a call for every packet, so that only few should write it."""
        del now_ns, packet
        return None

    @_unwritten
    def on_frame(self, now_ns: int, frame: NewFrame) -> Answer:
        """A frame of media has come into the pacer; none of its packets has left yet."""
        del now_ns, frame
        return None

    @_unwritten
    def in_flight(self) -> int | None:
        """Bytes in flight, for a scheme whose own messages say which packets have left the network.

        `None`: per-packet feedback decides. The engine asks after each other call; between two calls the number may not
        change.
        """
        return None

    @_unwritten
    def coupled_rate(self) -> float | None:
        """The rate in bit/s that it has calculated, for coupling with other flows of its sender (CC_R of RFC 8699).

        `None`: it cannot be coupled.
        """
        return None

    @_unwritten
    def on_coupled(self, now_ns: int, rate_bps: int) -> Answer:
        """The rate that coupling assigns (FSE_R of RFC 8699): the controller goes on as if it had calculated this rate.

        Called only if `coupled_rate` returns a rate.
        """
        del now_ns, rate_bps
        return None

    @_unwritten
    def stamp(self, now_ns: int, packet: Outgoing) -> tuple[int, bytes] | None:
        """A header extension for a data packet (RFC 8285): its identifier and bytes, or None for none.

        The identifier is 1 to 255, but not 3 or 5, which the engine itself uses; the bytes are at most 255.
        From 15 on, or with more than 16 bytes, the packet has two-byte headers.
        """
        del now_ns, packet
        return None


class ReceiverHalf(_Half):
    """Base class of receiving halves written in Python, for schemes that measure at the receiver.

    A factory that gives a pair of a controller and a receiver half puts both to work.
    """

    internals: dict[str, float]
    """Values worth plotting, by name: recorded after each message as named series."""
    rng: Stream
    """Its own random substream, available from the first call on; draw only during a call."""
    needs_true_delay: bool = False
    """Whether it gets the simulator's true one-way delays, which no real receiver can measure."""

    def __init__(self) -> None:
        """Takes any settings, as keyword arguments."""

    def on_packet(self, now_ns: int, packet: Arrived) -> Ask:
        """A data packet has arrived."""
        raise NotImplementedError(f"{type(self).__name__} has no on_packet")

    @_unwritten
    def on_alarm(self, now_ns: int) -> Ask:
        """The alarm it asked for is due."""
        del now_ns
        return None

    def message(self, now_ns: int) -> Sequence[_Packet]:
        """The RTCP packets to send, as [wire][tidegate.net.wire] has them; called when RTCP may be sent."""
        raise NotImplementedError(f"{type(self).__name__} has no message")


__all__ = [
    "Answer",
    "Arrived",
    "Ask",
    "Controller",
    "ControllerHost",
    "Decision",
    "EcnCounts",
    "Limits",
    "LossReport",
    "Needs",
    "NewFrame",
    "Outgoing",
    "PacketResult",
    "Probe",
    "ReceiverHalf",
    "ReceiverHost",
    "Report",
    "Sent",
]
