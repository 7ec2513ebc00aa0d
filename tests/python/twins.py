"""The engine's controllers and receiver halves in place of Python ones: every value goes to Python and back."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

import tidegate
from tidegate import Arrived, Decision, Limits, NewFrame, Outgoing, Report, Sent
from tidegate.control import Ask
from tidegate.control.registry import registry

T = TypeVar("T")


def again(value: T) -> T:
    """The same, made again from its parts, so that nothing hides in the object that came."""
    parts = inspect.signature(type(value)).parameters
    return type(value)(**{name: getattr(value, name) for name in parts})


class Twin(tidegate.Controller):
    """A controller of the engine."""

    def __init__(self, name: str, preset: str = "", **settings: Any) -> None:
        self.made_of = (name, preset, settings)
        self.host = tidegate.controller(name, preset, **settings)
        self.begun = False

    @property
    def needs_sent(self) -> bool:
        return self.host.needs_sent

    @property
    def needs_frames(self) -> bool:
        return self.host.needs_frames

    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        if self.begun:
            return again(self.host.on_limits(now_ns, again(limits)))
        self.begun = True
        name, preset, settings = self.made_of
        self.host = tidegate.controller(name, preset, now_ns=now_ns, limits=again(limits), **settings)
        return again(self.host.decision)

    def on_report(self, now_ns: int, report: Report) -> Decision:
        decision = again(self.host.on_report(now_ns, again(report)))
        self.internals = self.host.internals
        return decision

    def on_alarm(self, now_ns: int) -> Decision:
        return again(self.host.on_alarm(now_ns))

    def on_sent(self, now_ns: int, packet: Sent) -> Decision:
        return again(self.host.on_sent(now_ns, again(packet)))

    def on_frame(self, now_ns: int, frame: NewFrame) -> Decision:
        return again(self.host.on_frame(now_ns, again(frame)))

    def coupled_rate(self) -> int | None:
        return self.host.coupled_rate()

    def on_coupled(self, now_ns: int, rate_bps: int) -> Decision:
        return again(self.host.on_coupled(now_ns, rate_bps))

    def in_flight(self) -> int | None:
        return self.host.in_flight()

    def stamp(self, now_ns: int, packet: Outgoing) -> tuple[int, bytes] | None:
        return self.host.stamp(now_ns, again(packet))


class TwinHalf(tidegate.ReceiverHalf):
    """A receiver half of the engine."""

    def __init__(self, name: str, preset: str = "", **settings: Any) -> None:
        self.host = tidegate.receiver(name, preset, **settings)
        self.needs_true_delay = self.host.needs_true_delay

    def _ask(self, answer: tuple[str, int | None]) -> Ask:
        urgency, within = answer
        return within if urgency == "early" else urgency, self.host.alarm_ns

    def on_packet(self, now_ns: int, packet: Arrived) -> Ask:
        return self._ask(self.host.on_packet(now_ns, again(packet)))

    def on_alarm(self, now_ns: int) -> Ask:
        return self._ask(self.host.on_alarm(now_ns))

    def message(self, now_ns: int) -> list[Any]:
        return self.host.message(now_ns)


def make(name: str, preset: str = "", **settings: Any) -> Twin | tuple[Twin, TwinHalf]:
    """Both halves, or the one that there is."""
    twin = Twin(name, preset, **settings)
    has_half = registry()[name]["receiver"]
    return (twin, TwinHalf(name, preset, **settings)) if has_half else twin
