"""Links: the cables of the network, with their queues, losses and jitter; `capacity` has their capacities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from tidegate.scenario import _rules as rules
from tidegate.scenario import netem
from tidegate.scenario.buckets import AnyDiscipline
from tidegate.scenario.capacity import Capacity, StatusCapacity
from tidegate.scenario.disciplines import managed
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.legs import Via, via_ir
from tidegate.scenario.model import Model, Name, lowered
from tidegate.scenario.netem import NetemText
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Fraction, Rate, Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading

LossStep = Annotated[tuple[Duration, Fraction], Field(strict=False)]


class Queue(Model):
    """Limits of a drop-tail queue. Several limits can hold at once; an empty table sets no limit.

    A packet that finds the link empty is always accepted.
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    packets: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Limit in packets."""
    bytes: Size | None = None
    """Limit in bytes."""
    time: Duration | None = None
    """Limit in time, converted to bytes at the link's mean rate (RFC 8868 section 4.3), or at the first rate of a
    schedule without a period. The same bytes take longer while the link is slower."""
    counts_in_service: bool = True
    """Whether the packet in service counts, as in ns-2: if it does, no packet waits longer than limit / rate. A device
    queue of ns-3 does not count this packet."""


_DROP_TAIL_LIMIT = Queue(time=Duration(300_000_000))
"""Default limit of drop-tail (RFC 8867 section 4)."""


class MeanLoss(Model):
    """Losses in bursts of a mean length (Gilbert): each packet in the bad state is lost."""

    mean: Fraction
    """Fraction of packets lost in the long run."""
    burst: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False)]
    """Mean number of packets lost in a row."""

    def problems(self, path: Path, _: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        largest = self.burst / (1 + self.burst)
        if self.mean > largest:
            message = f"found {self.mean:g}; expected at most {largest:.3g} with bursts of {self.burst:g}"
            yield Problem((*path, "mean"), message)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: two states, and each packet is lost in the bad one."""
        # by Gilbert the mean is to_bad / (to_bad + to_good)
        to_good = 1 / self.burst
        to_bad = min(to_good * self.mean / (1 - self.mean), 1.0)
        states = GilbertElliott(to_bad=Fraction(to_bad), to_good=Fraction(to_good))
        return states.to_ir(reading)


class GilbertElliott(Model):
    """Losses by a model with two states (Gilbert 1960, Elliott 1963)."""

    to_bad: Fraction
    """Probability of a change from the good to the bad state, at each packet."""
    to_good: Fraction
    """Probability of a change from the bad to the good state, at each packet."""
    loss_good: Fraction = Fraction(0)
    """Loss probability in the good state."""
    loss_bad: Fraction = Fraction(1)
    """Loss probability in the bad state."""

    def problems(self, path: Path, _: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        if not self.to_bad and not self.to_good:
            yield Problem(path, "to_bad and to_good are both 0; the state would never change")

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"gilbert_elliott": super().to_ir(reading)}


class LossSchedule(Model):
    """Independent losses whose probability changes in steps."""

    schedule: Annotated[list[LossStep], Field(min_length=1, max_length=100_000), rules.InSteps()]
    """Pairs of a time and the loss probability from this time on, in order of time."""

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: a kind of loss from each time on."""
        return [[lowered(time, reading), {"bernoulli": lowered(loss, reading)}] for time, loss in self.schedule]


Loss = Annotated[
    Fraction | MeanLoss | GilbertElliott | LossSchedule,
    OneOf('a fraction such as "1%", or a table with mean and burst, to_bad and to_good, or schedule'),
]


class Rfc8868(Model):
    """Bounded jitter that never reorders (RFC 8868 section 4.5.2)."""

    std: Duration = Duration(5_000_000)
    """Standard deviation of the jitter."""
    n_std: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 3.0
    """Bound of the jitter, as a multiple of the standard deviation."""
    mean: Duration = Duration(0)
    """Mean of the jitter (x_mean), which is added to the delay of each packet."""


class Rfc8868Jitter(Model):
    """Jitter as in RFC 8868."""

    rfc8868: Rfc8868
    """Settings of the jitter."""


class UniformJitter(Model):
    """Uniform jitter; packets may overtake each other."""

    uniform: Annotated[Duration, rules.POSITIVE]
    """Largest jitter."""


class NormalJitter(Model):
    """Normal jitter around the delay; packets may overtake each other, but none arrives before it was sent."""

    normal: Annotated[Duration, rules.POSITIVE]
    """Standard deviation of the jitter."""


Jitter = Annotated[
    Literal["none"] | Rfc8868Jitter | UniformJitter | NormalJitter,
    OneOf('"none", or a table with rfc8868, uniform or normal'),
]


MTU = rules.Bounds(Size(576), Size(rules.IP_PACKET))
"""Bounds of the largest IP packet of a link."""


class Mtu(Model):
    """Size of the largest IP packet of a link, and the fate of larger ones."""

    bytes: Annotated[Size, MTU]
    """Size of the largest IP packet, with its header; at least what each host must take in (RFC 791)."""
    too_big: Literal["fragment", "drop", "report"] = "fragment"
    """Fate of larger packets. They go on in fragments, and are lost as a whole when one of these is (fragment). They
    are dropped in silence, as behind a firewall that filters ICMP (drop). Or they are dropped and their sender hears of
    it, which sends fragments from then on, as a UDP socket of Linux does (report; RFC 1191, RFC 8201)."""


AnyMtu = Annotated[Size | Mtu, OneOf('a size such as "1280B", or a table with bytes and too_big')]


def mtu_ir(mtu: Size | Mtu, reading: Reading) -> Any:
    """The largest IP packet of a link as the engine takes it."""
    return (mtu if isinstance(mtu, Mtu) else Mtu(bytes=mtu)).to_ir(reading)


Ecn = Literal["pass", "bleach", "drop"]
"""Treatment of packets with an ECN codepoint or a mark: unchanged, ECN field cleared, or dropped."""


class _Ends(Model):
    """Name and ends of a cable."""

    name: Name = "link"
    """Unique name. The other direction is called `NAME.back`."""
    from_: Annotated[Name, Field(alias="from")] = "left"
    """Point of the network at which the link begins."""
    to: Name = "right"
    """Point of the network at which the link ends."""


class Way(Model):
    """Properties of a cable in one direction: each key is one of [Back][tidegate.scenario.links.Back], too."""

    capacity: Capacity = "infinite"
    """Capacity of the link; with "external" your own code carries the packets (see tidegate.simpy)."""
    delay: Duration = Duration(0)
    """Propagation delay in one direction."""
    queue: Queue | None = None
    """Limits of the queue; by default 300 ms for drop-tail (RFC 8867 section 4), else the limit of the discipline."""
    discipline: AnyDiscipline = "drop-tail"
    """Queue discipline, which chooses packets to send and to drop: a name, or a table with a name and parameters."""
    loss: Loss = Fraction(0)
    """Packet loss on the medium, after the queue."""
    byte_error: Fraction = Fraction(0)
    """Probability that a byte is damaged; a packet with a damaged byte is dropped."""
    jitter: Jitter = "none"
    """Delay jitter."""
    ecn: Ecn = "pass"
    """Treatment of packets with an ECN codepoint or a mark, after the queue (RFC 6679 section 7.4): unchanged (pass),
    ECN field cleared as at a node without ECN (bleach), or dropped (drop)."""
    netem: NetemText = ""
    """Linux's network emulator before the queue, in the words of tc: `delay 50ms 10ms distribution normal loss 1%`, or
    a whole command with them (see from `tc` to tidegate). Its rate counts packets without a link layer's header."""
    mtu: AnyMtu | None = None
    """Size of the largest IP packet, or a table that also says what becomes of larger ones: by default they go on in
    fragments. Without it packets of all sizes pass whole."""
    via: Via = "udp"
    """Transport of calls over the link: their datagrams as they are (udp), or a TCP connection for each call (tcp), as
    to a TURN relay; a table has its settings. Other flows go beside it."""
    service: Literal["fifo", "managed"] = "fifo"
    """Simulation of the queue: the departure of each packet is computed at its arrival (fifo; fast), or at its turn
    (managed), so that your own code can change the link while packets wait (see tidegate.simpy). The results are the
    same. Disciplines other than drop-tail and links with `netem` or an `mtu` are always managed."""


if TYPE_CHECKING:

    class Back(Way):
        """Properties of the other direction of a cable, where they differ."""

        def __init__(self, /, **keys: Any) -> None: ...

else:
    Back = create_model(
        "Back",
        __base__=Model,
        __module__=__name__,
        __doc__="Properties of the other direction of a cable, where they differ.",
        **{name: (field.rebuild_annotation() | None, None) for name, field in Way.model_fields.items()},
    )


class Link(Way, _Ends):
    """A cable between two points of the network, in both directions unless `back` is false.

    >>> Link(name="bottleneck", capacity="10Mbps", delay="20ms").capacity
    Rate('10Mbps')
    >>> Link(capacity="10MBps")
    Traceback (most recent call last):
    ...
    tidegate.errors.ScenarioError: Link: capacity: found "10MBps"; no unit of rate is called "MBps";
    available: Gbps, Mbps, kbps, bps; did you mean Mbps?
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    back: Annotated[bool | Back, OneOf("true, false, or a table of the keys that differ in the other direction")] = True
    """The other direction of the cable: with the same properties (true), without it (false), or a table of the keys
    that differ."""

    @property
    def names(self) -> list[str]:
        """Names of the directions."""
        return [self.name] if self.back is False else [self.name, f"{self.name}.back"]

    @property
    def ways(self) -> list[dict[str, Any]]:
        """The keys of [Way][tidegate.scenario.links.Way] in each direction."""
        out = {key: getattr(self, key) for key in Way.model_fields}
        if isinstance(self.back, bool):
            return [out, out][: len(self.names)]
        overrides = {key: getattr(self.back, key) for key in Way.model_fields}
        return [out, {**out, **{key: value for key, value in overrides.items() if value is not None}}]

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        if self.back is False and self.via != "udp":
            yield Problem(
                (*path, "via"), "found a connection without a way back for its acknowledgements; expected `back`"
            )
        if self.from_ == self.to:
            yield Problem((*path, "to"), f'found "{self.to}"; expected a point other than the one in `from`')
        yield from _direction_problems(self, self.capacity, path, duration)
        if not isinstance(self.back, bool):
            inner = (*path, "back")
            yield from _direction_problems(self.back, self.back.capacity or self.capacity, inner, duration)
            inherits_loss = self.loss and "loss" not in self.back.model_fields_set
            if inherits_loss and isinstance(self.back.capacity, StatusCapacity):
                message = f"{_NOT_BESIDE_STATUSES} (set loss = 0 in back, whose default is the loss of the link)"
                yield Problem((*inner, "capacity"), message)
            inherits_discipline = self.discipline != "drop-tail" and self.back.discipline is None
            if inherits_discipline and isinstance(self.back.capacity, StatusCapacity):
                message = f'{_NOT_BESIDE_STATUSES} (set discipline = "drop-tail" in back, whose default is the link\'s)'
                yield Problem((*inner, "capacity"), message)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: a link for each direction."""
        ends = [(self.from_, self.to), (self.to, self.from_)]
        return [
            {"name": name, "from": begin, "to": end, **_lowered(name, self.name, keys, reading)}
            for name, (begin, end), keys in zip(self.names, ends, self.ways, strict=False)
        ]


def limits(keys: dict[str, Any]) -> Queue:
    """The queue limits of a direction with these keys."""
    queue: Queue | None = keys["queue"]
    if queue is not None:
        return queue
    discipline = managed(keys["discipline"])
    return _DROP_TAIL_LIMIT if discipline is None else Queue(**discipline.limits())


_NOT_BESIDE_STATUSES = "a link with statuses has no queue, discipline or loss: packets above its capacity are lost"


def _direction_problems(direction: Link | Back, capacity: object, path: Path, duration: Duration) -> Iterator[Problem]:
    """Yields the problems of one direction, whose capacity is `capacity`."""
    for key in Way.model_fields:
        value = getattr(direction, key)
        if isinstance(value, Model):
            yield from value.problems((*path, key), duration)
    if isinstance(direction.mtu, Size):
        yield from MTU.problems((*path, "mtu"), direction.mtu)
    if isinstance(direction.capacity, Rate) and not direction.capacity:
        yield Problem((*path, "capacity"), f'found "{direction.capacity}"; the link would never carry a packet')
    if isinstance(capacity, StatusCapacity):
        if "queue" in direction.model_fields_set and direction.queue not in (None, Queue()):
            yield Problem((*path, "queue"), _NOT_BESIDE_STATUSES)
        if direction.discipline not in (None, "drop-tail"):
            yield Problem((*path, "discipline"), _NOT_BESIDE_STATUSES)
        if direction.loss:
            yield Problem((*path, "loss"), _NOT_BESIDE_STATUSES)
    if direction.capacity == "external":
        for key in Way.model_fields:
            if key != "capacity" and key in direction.model_fields_set:
                message = (
                    "an external link has no settings but its capacity: your own code decides when each packet arrives"
                )
                yield Problem((*path, key), message)


def _lowered(name: str, cable: str, keys: dict[str, Any], reading: Reading) -> dict[str, Any]:
    discipline = managed(keys["discipline"])
    reading.cable = cable
    ir = {}
    for key, value in {**keys, "queue": limits(keys), "discipline": discipline or "drop_tail"}.items():
        with reading.at(f"links.{name}.{key}"):
            ir[key] = lowered(value, reading)
    # the engine takes these values as tables with the name of their kind
    capacity, service = ir.pop("capacity"), ir.pop("service")
    del ir["netem"], ir["mtu"], ir["via"]
    if keys["mtu"] is not None:
        ir["mtu"] = mtu_ir(keys["mtu"], reading)
    if keys["netem"]:
        ir["netem"] = netem.parse(keys["netem"])
    if isinstance(keys["capacity"], Rate):
        capacity = {"constant": capacity}
    if isinstance(keys["loss"], Fraction):
        ir["loss"] = {"bernoulli": ir["loss"]} if keys["loss"] else "none"
    if isinstance(keys["capacity"], StatusCapacity):
        # it has no queue; the checks let only the default pass
        ir["queue"] = Queue().to_ir(reading)
    via = via_ir(keys["via"], reading)
    return {"capacity": capacity, "service": service, "settings": ir} | ({} if via is None else {"via": via})
