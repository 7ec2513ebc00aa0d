"""tidegate inside SimPy: whole worlds as processes, and the two ends of a call as pieces of a model.

Install with `pip install "tidegate[simpy]"`. The clock of an [Environment][tidegate.simpy.Environment]
counts whole nanoseconds, so that nothing depends on rounding.

>>> from tidegate import Media
>>> from tidegate.simpy import Call, Environment
>>> env = Environment()
>>> call = Call(env, Media(controller="gcc"), duration="10s")
>>> def far_away(packet, end):
...     "A network in one process a packet: every tenth is lost, the others take 20 ms."
...     yield env.timeout("20ms")
...     if packet.sequence % 10 == 9:
...         packet.drop("loss")
...     else:
...         end.receive(packet)
>>> call.sender.out = lambda packet: env.process(far_away(packet, call.receiver))
>>> call.receiver.out = lambda packet: env.process(far_away(packet, call.sender))
>>> run = env.run(until=call.done)
>>> round(run.metrics()["loss_fraction"], 2), run.metrics()["one_way_delay_ms_p95"] >= 20
(0.1, True)

What happens at one nanosecond: the events of the SimPy model come first, then the world, until it hands
something over; then again the model. Inside the world, the order of the nodes that are due at one instant
follows from the instant and their names, not from when it was planned that they act. A model that does what
the engine does therefore gets the same run, bit for bit.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from tidegate import _core
from tidegate._core import Packet
from tidegate.errors import InputError, RunError, did_you_mean
from tidegate.runs import Run, engine_errors, run_of
from tidegate.scenario import Flow, Link, Media, Scenario, memory
from tidegate.scenario.lower import lower
from tidegate.scenario.scenario import Level
from tidegate.units import Duration, Fraction, Rate

try:
    import simpy
    from simpy.events import NORMAL, Event, EventPriority, Timeout
except ModuleNotFoundError as missing:
    if missing.name != "simpy":
        raise
    raise ImportError('tidegate.simpy needs SimPy: pip install "tidegate[simpy]"') from None

LAST = EventPriority(NORMAL + 1)
"""The priority of a world's wakeups: at each instant after all that the model does."""


class Environment(simpy.Environment):
    """A SimPy environment whose clock counts whole nanoseconds.

    Times are integers or text with a unit; a fraction of a nanosecond is refused.

    >>> env = Environment()
    >>> env.run(until="2ms")
    >>> env.now
    2000000
    >>> env.timeout(0.5)
    Traceback (most recent call last):
    ...
    tidegate.errors.InputError: a time of 0.5: this clock counts whole nanoseconds; expected a whole number, or
    text with a unit such as "20ms"
    """

    def __init__(self, initial_time: int | str = 0) -> None:
        """Begins at `initial_time`."""
        super().__init__(nanoseconds(initial_time))
        self._running = 0

    if TYPE_CHECKING:

        @property
        def now(self) -> int:
            """The present, in nanoseconds."""

    @property
    def running(self) -> bool:
        """Whether `run` is at work: then nobody acts but by events."""
        return self._running > 0

    def timeout(self, delay: float | str = 0, value: object = None) -> Timeout:
        """An event after `delay`: nanoseconds, or text with a unit."""
        return Timeout(self, nanoseconds(delay), value)

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedules an event; what SimPy and its extensions call."""
        super().schedule(event, priority, delay if type(delay) is int else nanoseconds(delay))

    def run(self, until: float | str | Event | None = None) -> Any:
        """Runs until an event, a time (nanoseconds, or text with a unit), or the end of all events."""
        self._running += 1
        try:
            return super().run(until if until is None or isinstance(until, Event) else nanoseconds(until))
        finally:
            self._running -= 1


def nanoseconds(time: float | str) -> int:
    """A time for the clock: a whole number is taken as it is, text has a unit.

    Raises:
        InputError: for anything else.

    >>> nanoseconds("20ms"), nanoseconds(Duration("1us")), nanoseconds(7)
    (20000000, 1000, 7)
    """
    if isinstance(time, str):
        return int(Duration.parse(time))
    try:
        return int(operator.index(time))  # type: ignore[arg-type]
    except TypeError:
        right = 'expected a whole number, or text with a unit such as "20ms"'
        raise InputError(f"a time of {time!r}: this clock counts whole nanoseconds; {right}") from None


class _Putter(Protocol):
    """What packets can be put into: a SimPy `Store`, for one."""

    def put(self, item: Any) -> object: ...


Taker = Callable[[Packet], object] | _Putter
"""Where packets go: something to call with each, or a SimPy `Store`."""


def _taker(what: Taker) -> Callable[[Packet], object]:
    take = getattr(what, "put", what)
    if not callable(take):
        raise InputError(f"found {what!r} as a way out; expected something to call with each packet, or a Store")
    return cast("Callable[[Packet], object]", take)


class ExternalLink:
    """A link of a world whose packets the model carries."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._out: Taker | None = None
        self._take: Callable[[Packet], object] | None = None

    @property
    def out(self) -> Taker | None:
        """What gets each packet that comes in: a function, or a `Store`.

        Each packet is to be passed on with `packet.forward()` or lost with `packet.drop()` later; one that is
        kept stays in the link.
        """
        return self._out

    @out.setter
    def out(self, out: Taker) -> None:
        self._take = _taker(out)
        self._out = out

    def take(self, packet: Packet) -> None:
        """Gives a packet to the model."""
        if self._take is None:
            raise RunError(f"links.{self.name}: nobody takes its packets; set `out` before the environment runs")
        self._take(packet)


class _Alarm(Event):
    """An event that comes by itself."""

    def __init__(self, env: Environment, ring: Callable[[Event], None], delay: int) -> None:
        super().__init__(env)
        self.callbacks = [ring]
        self._ok = True
        self._value = None
        env.schedule(self, LAST, delay)


class World:
    """A scenario that runs inside a SimPy environment, from the present on.

    `done` is an event; its value is the [Run][tidegate.runs.Run] that `tidegate.run` would give.

    Args:
        env: Where it runs.
        scenario: A scenario, or the path or name of one. It may have external links and flows.
        seed: Instead of the scenario's.
        record: How much is kept, instead of the scenario's: summary, series or packets.

    Raises:
        InputError: when the scenario or the environment is not usable.

    >>> import tidegate
    >>> env = Environment()
    >>> world = World(env, Scenario.load("home-broadband", {"duration": "5s"}))
    >>> run = env.run(until=world.done)
    >>> run.digest == tidegate.run(world.scenario).digest
    True
    """

    def __init__(
        self,
        env: Environment,
        scenario: Scenario | str | Path,
        seed: int | None = None,
        record: Level | None = None,
    ) -> None:
        found: object = env
        if not isinstance(found, Environment):
            right = "expected a tidegate.simpy.Environment, whose clock counts nanoseconds"
            raise InputError(f"found {type(env).__name__} as the environment; {right}")
        self.env = env
        self.scenario = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        self._made = lower(self.scenario, seed=seed, record=record)
        memory.check(self._made)
        with engine_errors(self.scenario):
            needs = self._made.inputs
            self._core = _core.World(json.dumps(self._made.ir), needs.traces, needs.python)
        self._links = {name: ExternalLink(name) for name in self._core.links}
        self._flows = self._core.flows
        self._heard: dict[str, simpy.Store] = {}
        self._begin = env.now
        self._end = self._core.duration_ns
        self.done: Event = env.event()
        self._alarm: _Alarm | None = None
        self._alarm_at = 0
        self._waiting: list[Packet] = []
        self._sleep()

    @property
    def now(self) -> int:
        """The present in the world's time: nanoseconds since it was made."""
        return self.env.now - self._begin

    def link(self, name: str) -> ExternalLink:
        """One of its external links.

        Raises:
            InputError: when there is none of that name.
        """
        return self._links[_known(name, list(self._links), "link")]

    def arrivals(self, flow: str) -> simpy.Store:
        """What arrives on an external flow, from the first call of this on.

        Raises:
            InputError: when there is none of that name.
        """
        name = _known(flow, self._flows, "flow")
        if name not in self._heard:
            self._heard[name] = simpy.Store(self.env)
        return self._heard[name]

    def feed(self, flow: str, size: int, tag: int = 0) -> None:
        """Sends a datagram on an external flow, now.

        Args:
            flow: The flow.
            size: Bytes on the wire, 1 to 65535.
            tag: A number of 64 bits for its receiver.

        Raises:
            InputError: when it cannot be sent, or the world has ended.
        """
        for name, value in (("size", size), ("tag", tag)):
            try:
                operator.index(value)
            except TypeError:
                raise InputError(f"{flow}: {name}: found {value!r}; expected a whole number") from None
        self._act(lambda now: self._core.feed(flow, size, tag, now))

    def change(
        self,
        link: str,
        *,
        capacity: Rate | str | None = None,
        delay: Duration | str | None = None,
        loss: Fraction | float | str | None = None,
    ) -> None:
        """Changes a link with `service = "managed"` from now on; what is not given stays.

        Args:
            link: Its name; `NAME.back` is the other direction.
            capacity: What it carries, instead of a schedule or a trace, too. The bits that are left of a packet in
                service go at the new rate; 0bps holds it.
            delay: Propagation delay of what is served from now on; order is kept.
            loss: Fraction lost of what is served from now on.

        Raises:
            InputError: when there is no such link, its capacity is one of statuses, or the world has ended.
        """
        self._act(
            lambda now: self._core.change(
                link,
                now,
                None if capacity is None else int(Rate.parse(capacity)),
                None if delay is None else int(Duration.parse(delay)),
                None if loss is None else float(Fraction.parse(loss)),
            )
        )

    def forward(self, packet: Packet) -> None:
        """Lets a packet of an external link go on along its route, now. When the world has ended nothing happens."""
        if not self.done.triggered:
            self._act(lambda now: self._core.forward(packet, now))

    def drop(self, packet: Packet, cause: str = "loss") -> None:
        """Lets a packet of an external link die, now. When the world has ended nothing happens.

        Args:
            packet: The packet.
            cause: `loss`, `queue`, `corrupt` or `outage`.
        """
        if not self.done.triggered:
            self._act(lambda now: self._core.drop(packet, cause, now))

    def finish(self) -> Run:
        """Ends the world now, if it has not ended yet: the run is that of the time until now.

        Raises:
            RunError: when the run has failed.
        """
        if not self.done.triggered:
            with engine_errors(self.scenario):
                recording = self._core.finish(min(self.now, self._end))
            self.done.succeed(run_of(self.scenario, self._made, recording))
        if not self.done.ok:
            raise cast("BaseException", self.done.value)
        return cast("Run", self.done.value)

    def _act(self, act: Callable[[int], None]) -> None:
        now = self.now
        try:
            act(now)
        except (ValueError, OverflowError) as error:
            raise InputError(f"{self.scenario.name}: {error}") from None
        if self._alarm is not None and self._alarm_at > now:
            self._ring_at(now)

    def _sleep(self) -> None:
        at = self._core.peek()
        self._ring_at(self._end if at is None else at)

    def _ring_at(self, at: int) -> None:
        # an earlier alarm that is still set is not the present one, and does nothing when it rings
        self._alarm = _Alarm(self.env, self._wake, max(at - self.now, 0))
        self._alarm_at = at

    def _wake(self, alarm: Event) -> None:
        if alarm is not self._alarm or self._ended():
            return
        self._alarm = None
        packets, self._waiting = self._waiting, []
        if not packets:
            until = self._until()
            try:
                with engine_errors(self.scenario):
                    packets = self._core.run_until(until, self)
                if not packets and self.now >= self._end:
                    self.finish()
                    return
            except (RunError, InputError) as error:
                self.done.fail(error)
                return
            at = self._core.now_ns
            if packets and at > self.now:
                self._waiting = packets
                self._ring_at(at)
                return
        for packet in packets:
            self._hand(packet)
            if self._ended():  # by whoever took it
                return
        self._sleep()

    def _ended(self) -> bool:
        return bool(self.done.triggered)

    def _until(self) -> int:
        """How far the world may go by itself: nothing in the model happens before the model's next event."""
        if not self.env.running:
            return self.now
        ahead = self.env.peek()
        free = self._end if ahead == simpy.core.Infinity else int(ahead) - self._begin - 1
        return min(max(free, self.now), self._end)

    def _hand(self, packet: Packet) -> None:
        name = packet.link
        if name is not None:
            self._links[name].take(packet)
        elif packet.flow in self._heard:
            self._heard[packet.flow].put(packet)


def _known(name: str, known: list[str], what: str) -> str:
    if name in known:
        return name
    hint = did_you_mean(name, known) or f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known) or 'none'}"
    raise InputError(f"{name}: no such external {what}{hint}")


class End:
    """One end of a call: packets leave it by `out`, and come in by `receive`."""

    def __init__(self, call: Call, leaves: str, comes: str) -> None:
        self._call = call
        self._leaves = call.link(leaves)
        self._comes = comes

    @property
    def out(self) -> Taker | None:
        """What gets each packet that this end sends: a function, or a `Store`."""
        return self._leaves.out

    @out.setter
    def out(self, out: Taker) -> None:
        self._leaves.out = out

    def receive(self, packet: Packet) -> None:
        """Takes in a packet that the other end of the call has sent, now.

        Raises:
            InputError: when it has not, or was received or dropped before.
        """
        if packet.holder is not self._call or packet.link != self._comes:
            raise InputError(f"{packet!r} was not sent by the other end of this call")
        self._call.forward(packet)


class Call(World):
    """A media flow without a network: its two ends are pieces of a model, which brings the network.

    Both are those of the engine, with real RTP and RTCP. What `sender.out` and `receiver.out` get is to be given
    to `receive` of the other end, or dropped with `packet.drop()`.

    Args:
        env: Where it runs.
        media: The media, or a whole flow with its name, start and stop; by default video at up to 2.5 Mbit/s.
        controller: The controller, instead of that of `media`: a name, or a class.
        duration: After this time it ends; its flow may be stopped before.
        seed: Where all its randomness comes from.
        record: How much is kept: summary, series or packets.

    Raises:
        InputError: when something does not fit.
    """

    sender: End
    """Sends the media."""
    receiver: End
    """Receives it, and reports."""

    def __init__(
        self,
        env: Environment,
        media: Media | Flow | None = None,
        *,
        duration: Duration | str,
        controller: str | type[Any] | None = None,
        seed: int = 1,
        record: Level = "series",
    ) -> None:
        flow = media if isinstance(media, Flow) else Flow(name="call", media=media or Media())
        if flow.media is None or flow.count != 1:
            raise InputError(f"{flow.name}: a call is one flow of media")
        scenario = Scenario(
            name=flow.name,
            duration=Duration(duration),
            record=record,
            links=[Link(**{"name": "network", "from": flow.from_, "to": flow.to, "capacity": "external"})],
            flows=[flow],
        )
        if controller is not None:
            scenario = scenario.with_changes({f"flows.{flow.name}.media.controller": controller})
        super().__init__(env, scenario, seed)
        self.sender = End(self, "network", "network.back")
        self.receiver = End(self, "network.back", "network")


__all__ = ["Call", "End", "Environment", "ExternalLink", "Packet", "Taker", "World", "nanoseconds"]
