"""tidegate inside SimPy: whole worlds as processes, and the two ends of a call as parts of a model.

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

Order of events within one nanosecond: first the SimPy model, then the world, until it hands over a packet;
then again the model. Inside the world, the order of nodes that are due at one instant depends on the instant
and their names, not on when their events were planned. A model that does the same as the engine therefore
gets the same run, bit for bit.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from tidegate import _core
from tidegate._core import Packet
from tidegate.errors import InputError, RunError, did_you_mean
from tidegate.runs import Run, run_of
from tidegate.scenario import Flow, Link, Media, Queue, Scenario, memory
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.links import Mtu
from tidegate.scenario.lower import lower
from tidegate.scenario.model import Model
from tidegate.scenario.moves import ByHand
from tidegate.scenario.scenario import Level
from tidegate.units import Duration, Fraction, Rate, Size

try:
    import simpy
    from simpy.events import NORMAL, Event, EventPriority, Timeout
except ModuleNotFoundError as missing:
    if missing.name != "simpy":
        raise
    raise ImportError('tidegate.simpy needs SimPy: pip install "tidegate[simpy]"') from None

LAST = EventPriority(NORMAL + 1)
"""Priority of a world's wakeups: after all events of the model at the same instant."""


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
            """Current time, in nanoseconds."""

    @property
    def running(self) -> bool:
        """Whether `run` is active: then the model acts by events only."""
        return self._running > 0

    def timeout(self, delay: float | str = 0, value: object = None) -> Timeout:
        """An event after `delay`: nanoseconds, or text with a unit."""
        return Timeout(self, nanoseconds(delay), value)

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedules an event; SimPy and its extensions call this."""
        super().schedule(event, priority, delay if type(delay) is int else nanoseconds(delay))

    def run(self, until: float | str | Event | None = None) -> Any:
        """Runs until an event, a time (nanoseconds, or text with a unit), or the end of all events."""
        self._running += 1
        try:
            return super().run(until if until is None or isinstance(until, Event) else nanoseconds(until))
        finally:
            self._running -= 1


def nanoseconds(time: float | str) -> int:
    """Converts a time for the clock: from a whole number of nanoseconds, or from text with a unit.

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
    """Interface of objects that take packets, such as a SimPy `Store`."""

    def put(self, item: Any) -> object: ...


Taker = Callable[[Packet], object] | _Putter
"""Receiver of packets: a function that is called with each, or a SimPy `Store`."""


def _taker(taker: Taker) -> Callable[[Packet], object]:
    take = getattr(taker, "put", taker)
    if not callable(take):
        raise InputError(f"found {taker!r} as the receiver of packets; expected a function of a packet, or a Store")
    return cast("Callable[[Packet], object]", take)


class ExternalLink:
    """A link of a world; the model carries its packets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._out: Taker | None = None
        self._take: Callable[[Packet], object] | None = None

    @property
    def out(self) -> Taker | None:
        """Receiver of each packet that enters the link: a function, or a `Store`.

        The model ends a packet's stay with `packet.forward()` or `packet.drop()`; until then it is in the link.
        """
        return self._out

    @out.setter
    def out(self, out: Taker) -> None:
        self._take = _taker(out)
        self._out = out

    def take(self, packet: Packet) -> None:
        """Hands a packet to the model."""
        if self._take is None:
            raise RunError(f"links.{self.name}: its packets have no receiver; set `out` before the environment runs")
        self._take(packet)


class _Alarm(Event):
    """An event that succeeds after a delay."""

    def __init__(self, env: Environment, ring: Callable[[Event], None], delay: int) -> None:
        super().__init__(env)
        self.callbacks = [ring]
        self._ok = True
        self._value = None
        env.schedule(self, LAST, delay)


class World:
    """A scenario that runs inside a SimPy environment, from the current time on.

    `done` is an event; its value is the [Run][tidegate.runs.Run] that `tidegate.run` would give.

    Args:
        env: Environment that it runs in.
        scenario: A scenario, or the path or name of one. It may have external links and flows.
        seed: Instead of the scenario's.
        record: Level of recording, instead of the scenario's: summary, series or packets.

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
        environment: object = env
        if not isinstance(environment, Environment):
            right = "expected a tidegate.simpy.Environment, whose clock counts nanoseconds"
            raise InputError(f"found {type(env).__name__} as the environment; {right}")
        self.env = env
        self.scenario = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        self._input = lower(self.scenario, seed=seed, record=record)
        memory.check(self._input)
        with engine_errors(self.scenario):
            needs = self._input.inputs
            self._core = _core.World(json.dumps(self._input.ir), needs.traces, needs.python)
        self._links = {name: ExternalLink(name) for name in self._core.links}
        self._flows = self._core.flows
        self._stores: dict[str, simpy.Store] = {}
        self._begin = env.now
        self._end = self._core.duration_ns
        self._by_hand = ByHand(self.scenario)
        self.done: Event = env.event()
        self._alarm: _Alarm | None = None
        self._alarm_at = 0
        self._waiting: list[Packet] = []
        self._sleep()

    @property
    def now(self) -> int:
        """Current time of the world: nanoseconds since its creation."""
        return self.env.now - self._begin

    def link(self, name: str) -> ExternalLink:
        """The external link of this name.

        Raises:
            InputError: when there is no external link of this name.
        """
        return self._links[_existing(name, list(self._links), "link")]

    def arrivals(self, flow: str) -> simpy.Store:
        """Store of the packets that arrive on an external flow, from the first call on.

        Raises:
            InputError: when there is no external flow of this name.
        """
        name = _existing(flow, self._flows, "flow")
        if name not in self._stores:
            self._stores[name] = simpy.Store(self.env)
        return self._stores[name]

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
        loss: Fraction | float | str | Mapping[str, Any] | Model | None = None,
        jitter: str | Mapping[str, Any] | Model | None = None,
        byte_error: Fraction | float | str | None = None,
        ecn: str | None = None,
        netem: str | None = None,
        mtu: Size | str | Mapping[str, Any] | Mtu | None = None,
        queue: Mapping[str, Any] | Queue | None = None,
        discipline: str | Mapping[str, Any] | Model | None = None,
    ) -> None:
        """Changes a link with `service = "managed"` from now on; other properties stay. All values are as in a file.

        Args:
            link: Its name; `NAME.back` is the other direction.
            capacity: New capacity, which also replaces a schedule or a trace. The remaining bits of a packet in service
                go at the new rate; 0bps holds the packet.
            delay: Propagation delay of packets served from now on; they keep their order.
            loss: Loss of packets served from now on.
            jitter: Jitter of packets served from now on.
            byte_error: Probability that a byte of packets served from now on is damaged.
            ecn: Treatment of ECN of packets served from now on.
            netem: Options of the network emulator in the words of tc, for packets that come to it from then on.
            mtu: Size of the largest IP packet from then on, or a table with `bytes` and `too_big`.
            queue: Limits of the queue. Waiting packets that do not fit are dropped.
            discipline: Queue discipline, into which waiting packets come in the order in which they came to the link.

        Raises:
            InputError: when there is no such link, a value is not usable, or the world has ended.
        """
        changes = self._by_hand.moves(
            link,
            Duration(0),
            capacity=capacity,
            delay=delay,
            loss=loss,
            jitter=jitter,
            byte_error=byte_error,
            ecn=ecn,
            netem=netem,
            mtu=mtu,
            queue=queue,
            discipline=discipline,
        )
        self._act(lambda now: self._core.change(link, now, self._by_hand.to_ir(changes)))

    def change_call(
        self,
        flow: str,
        *,
        path: Sequence[str] | None = None,
        signalled: bool = True,
        max_rate: Rate | str | None = None,
        min_rate: Rate | str | None = None,
        video_max: Rate | str | None = None,
        repair: bool | None = None,
    ) -> None:
        """Changes a call from now on; all values are as those of moves in a file.

        Args:
            flow: Name of its flow; `NAME.back` is what a call in both directions sends back.
            path: Links that it takes from now on, from the flow's beginning to its end; what comes back takes their
                other directions.
            signalled: Whether its ends hear of the new path, and begin anew.
            max_rate: Largest target that its controller may set.
            min_rate: Smallest target that its controller may set.
            video_max: Highest rate of its encoder, of which the controller hears as of less to send.
            repair: Whether the repair that it has goes on.

        Raises:
            InputError: when there is no such call, a value is not usable, or the world has ended.
        """
        limits = {"max_rate": max_rate, "min_rate": min_rate, "video_max": video_max, "repair": repair}
        path = None if path is None else list(path)
        changes = self._by_hand.of_call(flow, Duration(0), path=path, signalled=signalled, **limits)
        self._act(lambda now: self._core.change_call(flow, now, self._by_hand.call_to_ir(changes)))

    def forward(self, packet: Packet) -> None:
        """Sends a packet of an external link on along its route, now. Does nothing after the end of the world."""
        if not self.done.triggered:
            self._act(lambda now: self._core.forward(packet, now))

    def drop(self, packet: Packet, cause: str = "loss") -> None:
        """Drops a packet of an external link, now. Does nothing after the end of the world.

        Args:
            packet: The packet.
            cause: `loss`, `queue`, `corrupt` or `outage`.
        """
        if not self.done.triggered:
            self._act(lambda now: self._core.drop(packet, cause, now))

    def finish(self) -> Run:
        """Ends the world now, if it has not ended yet; returns the run up to now.

        Raises:
            RunError: when the run has failed.
        """
        if not self.done.triggered:
            with engine_errors(self.scenario):
                recording = self._core.finish(min(self.now, self._end))
            self.done.succeed(run_of(self.scenario, self._input, recording))
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
        time = self._core.peek()
        self._ring_at(self._end if time is None else time)

    def _ring_at(self, time: int) -> None:
        # an earlier alarm may still be set; since it is not the current one, it has no effect
        self._alarm = _Alarm(self.env, self._wake, max(time - self.now, 0))
        self._alarm_at = time

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
            time = self._core.now_ns
            if packets and time > self.now:
                self._waiting = packets
                self._ring_at(time)
                return
        for packet in packets:
            self._hand(packet)
            if self._ended():  # the receiver of the packet may have ended it
                return
        self._sleep()

    def _ended(self) -> bool:
        return bool(self.done.triggered)

    def _until(self) -> int:
        """Time up to which the world may run alone: just before the model's next event."""
        if not self.env.running:
            return self.now
        ahead = self.env.peek()
        free = self._end if ahead == simpy.core.Infinity else int(ahead) - self._begin - 1
        return min(max(free, self.now), self._end)

    def _hand(self, packet: Packet) -> None:
        name = packet.link
        if name is not None:
            self._links[name].take(packet)
        elif packet.flow in self._stores:
            self._stores[packet.flow].put(packet)


def _existing(name: str, names: list[str], kind: str) -> str:
    if name in names:
        return name
    hint = did_you_mean(name, names) or f"; available: {', '.join(names) or 'none'}"
    raise InputError(f"{name}: the scenario has no such external {kind}{hint}")


class End:
    """An end of a call: its packets leave by `out`, and arrive by `receive`."""

    def __init__(self, call: Call, leaves: str, comes: str) -> None:
        self._call = call
        self._leaves = call.link(leaves)
        self._comes = comes

    @property
    def out(self) -> Taker | None:
        """Receiver of each packet that this end sends: a function, or a `Store`."""
        return self._leaves.out

    @out.setter
    def out(self, out: Taker) -> None:
        self._leaves.out = out

    def receive(self, packet: Packet) -> None:
        """Takes in a packet that the other end of the call has sent, now.

        Raises:
            InputError: when the other end has not sent it, or it was received or dropped before.
        """
        if packet.holder is not self._call or packet.link != self._comes:
            raise InputError(f"{packet!r} does not come from the other end of this call")
        self._call.forward(packet)


class Call(World):
    """A media flow without a network: its two ends are parts of a model, which provides the network.

    Both ends are the engine's, with real RTP and RTCP. The model passes packets from `sender.out` and `receiver.out`
    to `receive` of the other end, or drops them with `packet.drop()`.

    Args:
        env: Environment that it runs in.
        media: The media, or a whole flow with its name, start and stop; by default video at up to 2.5 Mbit/s.
        controller: The controller, instead of that of `media`: a name, or a class.
        duration: Time after which it ends; its flow may end before.
        seed: Seed of all its random numbers.
        record: Level of recording: summary, series or packets.

    Raises:
        InputError: when an argument is not usable.
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
            raise InputError(
                f"{flow.name}: found several flows, or no media; expected a single flow with media for a call"
            )
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
