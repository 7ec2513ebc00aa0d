"""Links: what the network is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, Tag

from tidegate.scenario.model import Factor, Model, Name, Nothing, one_of
from tidegate.units import Duration, Fraction, Rate, Size

RateStep = Annotated[tuple[Duration, Rate], Field(strict=False)]
LossStep = Annotated[tuple[Duration, Fraction], Field(strict=False)]


class Schedule(Model):
    """A capacity that changes in steps."""

    schedule: Annotated[list[RateStep], Field(min_length=1, max_length=100_000)]
    """Pairs of a time and the rate from then on, in order of time, the first at 0s."""
    period: Duration | None = None
    """After this long it starts again."""


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
    offset: Duration = Duration(0)
    """Where in the recording the run begins."""
    scale: Factor = 1.0
    """The recorded rates are multiplied by this."""


class Brownian(Model):
    """Settings of the generated cellular link (Winstein et al., NSDI 2013, section 3)."""

    start: Rate = Rate(5_000_000)
    """Rate at the beginning."""
    max: Rate = Rate(12_000_000)
    """Largest rate; the paper's 1000 packets of 1500 bytes a second."""
    sigma: Rate = Rate(2_400_000)
    """Standard deviation of the change over one second; the paper's 200 packets of 1500 bytes."""
    outage_escape: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] = 1.0
    """Rate at which outages end, per second."""


class BrownianCapacity(Model):
    """A generated cellular link: its rate does Brownian motion, with outages that stick."""

    brownian: Brownian
    """Its settings."""


class Status(Model):
    """One status of a link."""

    name: Name
    """What it is called; unique on its link."""
    capacity: Rate
    """What the link can carry in it; 0bps for nothing."""
    probability: Fraction
    """How likely it is drawn; those of all statuses sum to 1."""


class StatusCapacity(Model):
    """A capacity drawn anew each interval, and no queue: what is too much is lost.

    The probability is max(0, 1 - capacity / offered rate) for each packet (Hoang 2017, section 3.4.2).
    """

    statuses: Annotated[list[Status], Field(min_length=1, max_length=1000)]
    """What can be drawn."""
    interval: Duration
    """How long a status lasts; the first one is drawn at 0s."""
    rate_window: Duration = Duration(0)
    """Over how long the offered rate is measured; 0s: since the last earlier instant at which a packet came."""


Capacity = Annotated[
    Annotated[Rate, Tag("~rate")]
    | Annotated[Literal["infinite"], Tag("~infinite")]
    | Annotated[Literal["external"], Tag("~external")]
    | Annotated[Schedule, Tag("~schedule")]
    | Annotated[TraceCapacity, Tag("~trace")]
    | Annotated[BrownianCapacity, Tag("~brownian")]
    | Annotated[StatusCapacity, Tag("~statuses")],
    one_of(
        'a rate such as "10Mbps", "infinite", "external", or a table with schedule, trace, brownian or statuses',
        [("schedule", "~schedule"), ("trace", "~trace"), ("brownian", "~brownian"), ("statuses", "~statuses")],
        words=["infinite", "external"],
        other="~rate",
    ),
]


class Queue(Model):
    """Limits of a drop-tail queue; several hold at once, an empty table is no limit."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    packets: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """In packets."""
    bytes: Size | None = None
    """In bytes."""
    time: Duration | None = None
    """In time at the link's mean rate (RFC 8868 section 4.3)."""
    counts_in_service: bool = True
    """Whether the packet in service counts: then no packet waits longer than limit / rate, and a limit
    of n packets is ns-2's; a device queue of ns-3 does not count it."""


class MeanLoss(Model):
    """Losses in bursts, by their mean and length (Gilbert): all is lost while the state is bad."""

    mean: Fraction
    """Fraction of packets lost in the long run."""
    burst: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False)]
    """Mean number of packets lost in a row."""


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


class LossSchedule(Model):
    """Independent losses whose probability changes in steps."""

    schedule: Annotated[list[LossStep], Field(min_length=1, max_length=100_000)]
    """Pairs of a time and the loss probability from then on, in order of time."""


Loss = Annotated[
    Annotated[Fraction, Tag("~fraction")]
    | Annotated[MeanLoss, Tag("~mean")]
    | Annotated[GilbertElliott, Tag("~gilbert")]
    | Annotated[LossSchedule, Tag("~schedule")],
    one_of(
        'a fraction such as "1%", or a table with mean and burst, to_bad and to_good, or schedule',
        [
            ("mean", "~mean"),
            ("burst", "~mean"),
            ("to_bad", "~gilbert"),
            ("to_good", "~gilbert"),
            ("schedule", "~schedule"),
        ],
        other="~fraction",
    ),
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

    uniform: Duration
    """The largest."""


class NormalJitter(Model):
    """Normal around the delay, but no packet arrives before it was sent; packets may overtake each other."""

    normal: Duration
    """Standard deviation."""


Jitter = Annotated[
    Annotated[Nothing, Tag("~none")]
    | Annotated[Rfc8868Jitter, Tag("~rfc8868")]
    | Annotated[UniformJitter, Tag("~uniform")]
    | Annotated[NormalJitter, Tag("~normal")],
    one_of(
        '"none", or a table with rfc8868, uniform or normal',
        [("rfc8868", "~rfc8868"), ("uniform", "~uniform"), ("normal", "~normal")],
        words=["none"],
    ),
]


class Back(Model):
    """What differs in a cable's other direction."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    capacity: Capacity | None = None
    """What it carries."""
    delay: Duration | None = None
    """Propagation delay."""
    queue: Queue | None = None
    """Limits of its queue."""
    loss: Loss | None = None
    """Loss on the wire."""
    byte_error: Fraction | None = None
    """Probability that a byte is hit."""
    jitter: Jitter | None = None
    """Delay jitter."""


class Link(Model):
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

    name: Name = "link"
    """Its name; unique. The other direction is called `NAME.back`."""
    from_: Annotated[Name, Field(alias="from")] = "left"
    """The point at its head."""
    to: Name = "right"
    """The point at its tail."""
    capacity: Capacity = "infinite"
    """What it carries; with "external" whoever drives the run does (see tidegate.simpy)."""
    delay: Duration = Duration(0)
    """Propagation delay, one way."""
    queue: Queue = Queue(time=Duration(300_000_000))
    """Limits of its drop-tail queue; by default 300 ms (RFC 8867 section 4)."""
    loss: Loss = Fraction(0)
    """Loss on the wire."""
    byte_error: Fraction = Fraction(0)
    """Probability that a byte is hit; a packet with a hit byte is dropped."""
    jitter: Jitter = "none"
    """Delay jitter."""
    back: Annotated[
        Annotated[bool, Tag("~both")] | Annotated[Back, Tag("~back")],
        one_of(
            "true, false, or a table of what differs in the other direction",
            table="~back",
            other="~both",
        ),
    ] = True
    """The other direction: the same (true), none (false), or what differs."""
