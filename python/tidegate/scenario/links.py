"""Links: what the network is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from tidegate.scenario import _rules as rules
from tidegate.scenario.buckets import AnyDiscipline
from tidegate.scenario.disciplines import managed
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Factor, Model, Name, lowered
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Fraction, Rate, Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading

LossStep = Annotated[tuple[Duration, Fraction], Field(strict=False)]


class Schedule(Model):
    """A capacity that changes in steps."""

    schedule: Annotated[list[rules.RateStep], Field(min_length=1, max_length=100_000), rules.InSteps()]
    """Pairs of a time and the rate from then on, in order of time, the first at 0s."""
    period: Duration | None = None
    """After this long it starts again."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        yield from super().problems(path, duration)
        if all(rate == 0 for _, rate in self.schedule):
            yield Problem(path, "every rate is zero; a link that never carries anything is no link")
        last = self.schedule[-1][0]
        if self.period is not None and self.period <= last:
            yield Problem((*path, "period"), f'found "{self.period}"; expected more than the last step ({last})')

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"schedule": {"steps": lowered(self.schedule, reading), "period": lowered(self.period, reading)}}


class TraceCapacity(Model):
    """A recorded network."""

    trace: str
    """File, relative to the scenario's."""
    format: str | None = None
    """Format of the file; found out from its contents by default."""
    direction: Literal["down", "up"] | None = None
    """Which of the two directions, for formats that hold both; by default down for raca, up for opennetlab."""
    frequency: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    """Lines a second, for formats without times (hertz)."""
    reference_rate: Rate | None = None
    """Rate that a ratio of 1 stands for, for formats that hold ratios."""
    offset: Annotated[Duration | Literal["random"], OneOf('a time such as "30s", or "random"')] = Duration(0)
    """Where in the recording the run begins; with "random" each seed begins elsewhere, and both ways of the cable at
    the same place."""
    scale: Factor = 1.0
    """The recorded rates are multiplied by this."""
    capacity_only: bool = False
    """Whether the delays and losses that the recording tells are left out."""

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: traces go by number, and chance by the cable's name."""
        offset = {"random": reading.cable} if self.offset == "random" else int(self.offset)
        played = {"index": reading.trace(self), "offset": offset, "scale": self.scale}
        return {"trace": {**played, "capacity_only": self.capacity_only}}


# opportunities of the generated link are of 1500 bytes, and the engine takes from 1 to 10 million a second
_LEAST_BROWNIAN, _MOST_BROWNIAN = Rate(12_000), Rate(12_000 * 10**7)


class Brownian(Model):
    """Settings of the generated cellular link (Winstein et al., NSDI 2013, section 3)."""

    start: Rate = Rate(5_000_000)
    """Rate at the beginning."""
    max: Annotated[Rate, rules.Bounds(_LEAST_BROWNIAN, _MOST_BROWNIAN)] = Rate(12_000_000)
    """Largest rate; the paper's 1000 packets of 1500 bytes a second."""
    sigma: Rate = Rate(2_400_000)
    """Standard deviation of the change over one second; the paper's 200 packets of 1500 bytes."""
    outage_escape: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] = 1.0
    """Rate at which outages end, per second."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        yield from rules.order(("start", self.start), ("max", self.max), path)
        yield from super().problems(path, duration)
        if self.sigma:
            yield from rules.Bounds(Rate(1_200), _MOST_BROWNIAN).problems((*path, "sigma"), self.sigma)


class BrownianCapacity(Model):
    """A generated cellular link: its rate does Brownian motion, with outages that stick."""

    brownian: Brownian
    """Its settings."""


_Deviation = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]


class Leo(Model):
    """Settings of a link over satellites in low Earth orbit, that are changed every 15 s.

    Round trips and losses are fitted to what a Starlink dish tells of its pings; capacities are a model without a
    measurement behind it. docs/networks.md says more of it.
    """

    median: Annotated[Rate, rules.POSITIVE]
    """Median of the capacities; one is drawn for each interval, lognormal."""
    sigma: _Deviation = 0.5
    """Standard deviation of their natural logarithms."""
    interval: Annotated[Duration, rules.POSITIVE] = Duration(15_000_000_000)
    """How long a way through the sky is kept."""
    round_trip: Duration = Duration(19_000_000)
    """The least round trip, over both ways of the cable; half of it comes on top of the delay of each."""
    rest: Duration = Duration(7_000_000)
    """Median of the rest of a round trip; it is drawn for each interval, lognormal."""
    rest_sigma: _Deviation = 0.65
    """Standard deviation of its natural logarithm."""
    correlation: Fraction = Fraction(0.2)
    """Correlation of these logarithms in one interval and the next."""
    handover: Duration = Duration(100_000_000)
    """How long a change disturbs."""
    handover_loss: Fraction = Fraction(0.055)
    """The probability that a packet is lost meanwhile."""
    loss: Fraction = Fraction(0.0007)
    """The probability that another packet is lost."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        yield from super().problems(path, duration)
        if not self.interval:
            return
        if duration / self.interval > rules.MOST_BINS:
            what = f'found "{self.interval}"; that makes more than {rules.MOST_BINS} intervals, one after the other'
            yield Problem((*path, "interval"), what)
        elif self.handover >= self.interval:
            what = f'found "{self.handover}"; expected less than the interval ({self.interval})'
            yield Problem((*path, "handover"), what)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: both ways have the cable's name in common."""
        return {**super().to_ir(reading), "cable": reading.cable}


class LeoCapacity(Model):
    """A link over satellites in low Earth orbit, generated."""

    leo: Leo
    """Its settings."""


class Status(Model):
    """One status of a link."""

    name: Name
    """What it is called; unique on its link."""
    capacity: Rate
    """What the link can carry in it; 0bps for nothing."""
    probability: Fraction
    """How likely it is drawn; those of all statuses sum to 1."""


_LEAST_STATUS = Duration(100_000)
_ROUNDING = 1e-9  # how far probabilities may sum to something else than 1: that of decimal fractions


class StatusCapacity(Model):
    """A capacity drawn anew each interval, and no queue: what is too much is lost.

    The probability is max(0, 1 - capacity / offered rate) for each packet (Hoang 2017, section 3.4.2).
    """

    statuses: Annotated[list[Status], Field(min_length=1, max_length=1000)]
    """What can be drawn."""
    interval: Annotated[Duration, rules.Bounds(_LEAST_STATUS)]
    """How long a status lasts; the first one is drawn at 0s."""
    rate_window: Annotated[Duration, rules.Bounds(most=Duration(60 * 10**9))] = Duration(0)
    """Over how long the offered rate is measured; 0s: since the last earlier instant at which a packet came."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        yield from super().problems(path, duration)
        if self.interval >= _LEAST_STATUS and duration / self.interval > rules.MOST_BINS:
            what = f'found "{self.interval}"; that makes more than {rules.MOST_BINS} statuses, one after the other'
            yield Problem((*path, "interval"), what)
        names = [one.name for one in self.statuses]
        for position, name in enumerate(names):
            if name in names[:position]:
                what = f'"{name}" is taken by number {names.index(name) + 1}; names are unique'
                yield Problem((*path, "statuses", position, "name"), what)
        total = sum(one.probability for one in self.statuses)
        if abs(total - 1) > _ROUNDING:
            yield Problem((*path, "statuses"), f"the probabilities sum to {total:.12g}; expected 1")
        if not any(one.capacity and one.probability for one in self.statuses):
            what = "every status that can occur carries nothing; a link that never carries anything is no link"
            yield Problem((*path, "statuses"), what)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"statuses": super().to_ir(reading)}


Capacity = Annotated[
    Literal["infinite", "external"] | Rate | Schedule | TraceCapacity | BrownianCapacity | LeoCapacity | StatusCapacity,
    OneOf(
        'a rate such as "10Mbps", "infinite", "external", or a table with schedule, trace, brownian, leo or statuses'
    ),
]


class Queue(Model):
    """Limits of a drop-tail queue; several hold at once, an empty table is no limit.

    A packet that finds nothing in the link is taken in whatever the limits.
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    packets: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """In packets."""
    bytes: Size | None = None
    """In bytes."""
    time: Duration | None = None
    """In time at the link's mean rate (RFC 8868 section 4.3), or a schedule's first one where it has no period; the
    same bytes last longer while it is slower."""
    counts_in_service: bool = True
    """Whether the packet in service counts: then no packet waits longer than limit / rate, and a limit
    of n packets is ns-2's; a device queue of ns-3 does not count it."""


_DROP_TAIL_LIMIT = Queue(time=Duration(300_000_000))
"""RFC 8867 section 4."""


class MeanLoss(Model):
    """Losses in bursts, by their mean and length (Gilbert): all is lost while the state is bad."""

    mean: Fraction
    """Fraction of packets lost in the long run."""
    burst: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False)]
    """Mean number of packets lost in a row."""

    def problems(self, path: Path, _: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        largest = self.burst / (1 + self.burst)
        if self.mean > largest:
            what = f"found {self.mean:g}; bursts of {self.burst:g} allow at most {largest:.3g}"
            yield Problem((*path, "mean"), what)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: two states, with all lost in the bad one."""
        # by Gilbert the mean is to_bad / (to_bad + to_good)
        to_good = 1 / self.burst
        to_bad = min(to_good * self.mean / (1 - self.mean), 1.0)
        states = GilbertElliott(to_bad=Fraction(to_bad), to_good=Fraction(to_good))
        return states.to_ir(reading)


class GilbertElliott(Model):
    """Losses in two states (Gilbert 1960, Elliott 1963)."""

    to_bad: Fraction
    """Probability of going from good to bad, at each packet."""
    to_good: Fraction
    """Probability of going from bad to good, at each packet."""
    loss_good: Fraction = Fraction(0)
    """Loss probability in the good state."""
    loss_bad: Fraction = Fraction(1)
    """Loss probability in the bad state."""

    def problems(self, path: Path, _: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        if not self.to_bad and not self.to_good:
            yield Problem(path, "to_bad and to_good are both 0; the state would never change")

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"gilbert_elliott": super().to_ir(reading)}


class LossSchedule(Model):
    """Independent losses whose probability changes in steps."""

    schedule: Annotated[list[LossStep], Field(min_length=1, max_length=100_000), rules.InSteps()]
    """Pairs of a time and the loss probability from then on, in order of time."""

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
    """Standard deviation."""
    n_std: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 3.0
    """Bound in standard deviations."""
    mean: Duration = Duration(0)
    """x_mean, added to every packet's delay."""


class Rfc8868Jitter(Model):
    """Jitter as RFC 8868 has it."""

    rfc8868: Rfc8868
    """Its settings."""


class UniformJitter(Model):
    """Uniform jitter; packets may overtake each other."""

    uniform: Annotated[Duration, rules.POSITIVE]
    """The largest."""


class NormalJitter(Model):
    """Normal around the delay, but no packet arrives before it was sent; packets may overtake each other."""

    normal: Annotated[Duration, rules.POSITIVE]
    """Standard deviation."""


Jitter = Annotated[
    Literal["none"] | Rfc8868Jitter | UniformJitter | NormalJitter,
    OneOf('"none", or a table with rfc8868, uniform or normal'),
]


class _Ends(Model):
    """Where a cable is."""

    name: Name = "link"
    """Its name; unique. The other direction is called `NAME.back`."""
    from_: Annotated[Name, Field(alias="from")] = "left"
    """The point at its head."""
    to: Name = "right"
    """The point at its tail."""


class Way(Model):
    """What a cable does in one direction: each key is one of [Back][tidegate.scenario.links.Back], too."""

    capacity: Capacity = "infinite"
    """What it carries; with "external" whoever drives the run does (see tidegate.simpy)."""
    delay: Duration = Duration(0)
    """Propagation delay, one way."""
    queue: Queue | None = None
    """Limits of its queue; by default 300 ms for drop-tail (RFC 8867 section 4), and what is usual for a discipline."""
    discipline: AnyDiscipline = "drop-tail"
    """Who goes next and who is dropped before the queue is full: a name, or a table with a name and parameters."""
    loss: Loss = Fraction(0)
    """Loss on the medium, behind the queue."""
    byte_error: Fraction = Fraction(0)
    """Probability that a byte is damaged; a packet with a damaged byte is dropped."""
    jitter: Jitter = "none"
    """Delay jitter."""
    ecn: Literal["pass", "bleach", "drop"] = "pass"
    """What the path behind the queue does to packets that bear an ECN codepoint or a mark (RFC 6679 section 7.4): it
    lets them pass, clears the field as a node does that knows no ECN (bleach), or drops them."""
    service: Literal["fifo", "managed"] = "fifo"
    """How it is computed: each packet's stay at once (fast), or packet by packet, so that whoever drives the world can
    change the link while packets wait (see tidegate.simpy). The results are the same. Disciplines other than drop-tail
    always go packet by packet."""


if TYPE_CHECKING:

    class Back(Way):
        """What differs in a cable's other direction."""

        def __init__(self, /, **keys: Any) -> None: ...

else:
    Back = create_model(
        "Back",
        __base__=Model,
        __module__=__name__,
        __doc__="What differs in a cable's other direction.",
        **{name: (field.rebuild_annotation() | None, None) for name, field in Way.model_fields.items()},
    )


class Link(Way, _Ends):
    """A cable between two points of the network, in both directions unless `back` is false.

    >>> Link(name="bottleneck", capacity="10Mbps", delay="20ms").capacity
    Rate('10Mbps')
    >>> Link(capacity="10MBps")
    Traceback (most recent call last):
    ...
    tidegate.errors.ScenarioError: Link: capacity: found "10MBps"; no unit of rate is called "MBps":
    there are Gbps, Mbps, kbps, bps; did you mean Mbps?
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    back: Annotated[bool | Back, OneOf("true, false, or a table of what differs in the other direction")] = True
    """The other direction: the same (true), none (false), or what differs."""

    @property
    def names(self) -> list[str]:
        """What the directions are called."""
        return [self.name] if self.back is False else [self.name, f"{self.name}.back"]

    @property
    def ways(self) -> list[dict[str, Any]]:
        """The keys of [Way][tidegate.scenario.links.Way] in each direction."""
        there = {key: getattr(self, key) for key in Way.model_fields}
        if isinstance(self.back, bool):
            return [there, there][: len(self.names)]
        differs = {key: getattr(self.back, key) for key in Way.model_fields}
        return [there, {**there, **{key: value for key, value in differs.items() if value is not None}}]

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        if self.from_ == self.to:
            yield Problem((*path, "to"), f'found "{self.to}"; a link goes to another point than its from')
        yield from _way(self, self.capacity, path, duration)
        if not isinstance(self.back, bool):
            inner = (*path, "back")
            yield from _way(self.back, self.back.capacity or self.capacity, inner, duration)
            kept = self.loss and "loss" not in self.back.model_fields_set
            if kept and isinstance(self.back.capacity, StatusCapacity):
                what = f"{_NOT_BESIDE_STATUSES} (loss = 0 here keeps that of the link out)"
                yield Problem((*inner, "capacity"), what)
            managed_there = self.discipline != "drop-tail" and self.back.discipline is None
            if managed_there and isinstance(self.back.capacity, StatusCapacity):
                what = f'{_NOT_BESIDE_STATUSES} (discipline = "drop-tail" here keeps that of the link out)'
                yield Problem((*inner, "capacity"), what)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: a link for each direction."""
        ends = [(self.from_, self.to), (self.to, self.from_)]
        return [
            {"name": name, "from": begin, "to": end, **_lowered(name, self.name, way, reading)}
            for name, (begin, end), way in zip(self.names, ends, self.ways, strict=False)
        ]


def limits(way: dict[str, Any]) -> Queue:
    """The limits of a queue, by all keys of a direction."""
    said: Queue | None = way["queue"]
    if said is not None:
        return said
    discipline = managed(way["discipline"])
    return _DROP_TAIL_LIMIT if discipline is None else Queue(**discipline.limits())


_NOT_BESIDE_STATUSES = "a link of statuses has neither queue nor loss of its own: what it cannot carry is lost"


def _way(here: Link | Back, capacity: object, path: Path, duration: Duration) -> Iterator[Problem]:
    """What is wrong with one direction, of this `capacity`."""
    for key in Way.model_fields:
        value = getattr(here, key)
        if isinstance(value, Model):
            yield from value.problems((*path, key), duration)
    if isinstance(here.capacity, Rate) and not here.capacity:
        yield Problem((*path, "capacity"), f'found "{here.capacity}"; a link that never carries anything is no link')
    if isinstance(capacity, StatusCapacity):
        if "queue" in here.model_fields_set and here.queue not in (None, Queue()):
            yield Problem((*path, "queue"), _NOT_BESIDE_STATUSES)
        if here.discipline not in (None, "drop-tail"):
            yield Problem((*path, "discipline"), _NOT_BESIDE_STATUSES)
        if here.loss:
            yield Problem((*path, "loss"), _NOT_BESIDE_STATUSES)
    if here.capacity == "external":
        for key in Way.model_fields:
            if key != "capacity" and key in here.model_fields_set:
                what = "an external link does to packets what whoever drives the run does, and nothing else"
                yield Problem((*path, key), what)


def _lowered(name: str, cable: str, way: dict[str, Any], reading: Reading) -> dict[str, Any]:
    discipline = managed(way["discipline"])
    reading.cable = cable
    ir = {}
    for key, value in {**way, "queue": limits(way), "discipline": discipline or "drop_tail"}.items():
        with reading.at(f"links.{name}.{key}"):
            ir[key] = lowered(value, reading)
    # what stands for itself has a name in the engine
    capacity, service = ir.pop("capacity"), ir.pop("service")
    if isinstance(way["capacity"], Rate):
        capacity = {"constant": capacity}
    if isinstance(way["loss"], Fraction):
        ir["loss"] = {"bernoulli": ir["loss"]} if way["loss"] else "none"
    if isinstance(way["capacity"], StatusCapacity):
        # it has no queue; what the checks let through beside it is the default
        ir["queue"] = Queue().to_ir(reading)
    return {"capacity": capacity, "service": service, "settings": ir}
