"""Queue disciplines of links: who of those that wait goes next, and who is dropped before the queue is full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.model import Model
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Fraction, Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


# of what is computed again and again, so that a run ends: as in queue/ticks.rs
_PERIOD = rules.Bounds(Duration(10_000), positive=True)

_Time = Annotated[Duration, rules.POSITIVE]


class Managed(Model):
    """What all disciplines but drop-tail have in common."""

    name: str
    """Its name."""

    limit: ClassVar[dict[str, Any]]
    """The limits of its queue where the link has none: keys of [Queue][tidegate.scenario.links.Queue]."""

    def limits(self) -> dict[str, Any]:
        """The limits of its queue where the link has none."""
        return self.limit

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: under its name."""
        table = super().to_ir(reading)
        return {table.pop("name").replace("-", "_"): table}


class Codel(Managed):
    """CoDel (RFC 8289): drops or marks at the head, ever faster, while packets wait longer than the target.

    >>> Codel(name="codel").target
    Duration('5ms')
    """

    # RFC 8289 says none; this is the default of Linux (`DEFAULT_CODEL_LIMIT` in net/sched/sch_codel.c)
    limit: ClassVar = {"packets": 1000}

    name: Literal["codel"]
    """Its name."""
    target: _Time = Duration(5_000_000)
    """How long packets may wait (TARGET, RFC 8289 section 4.4)."""
    interval: _Time = Duration(100_000_000)
    """For how long the shortest wait must be above the target before anything is dropped (INTERVAL, section 4.3)."""
    maxpacket: Size = Size(1500)
    """With at most so many bytes behind the packet that goes nothing is dropped: the MTU (section 5.3)."""
    ecn: bool = True
    """Whether packets of ECN-capable transports are marked instead of dropped."""
    ce_threshold: Annotated[Duration | None, rules.POSITIVE] = None
    """Whoever waits longer than this is marked, if its transport is ECN-capable (RFC 8290 section 5.2.7)."""


class FqCodel(Managed):
    """FQ-CoDel (RFC 8290): a queue for each flow, served in turns by bytes, with CoDel in each; sparse flows go first.

    Flows are told apart by addresses, ports and protocol, hashed with a salt that follows from the seed.
    """

    # RFC 8290 section 5.2.3
    limit: ClassVar = {"packets": 10_240}

    name: Literal["fq-codel"]
    """Its name."""
    target: _Time = Duration(5_000_000)
    """How long packets may wait in each queue (RFC 8290 section 5.2.2)."""
    interval: _Time = Duration(100_000_000)
    """For how long the shortest wait must be above the target before anything is dropped (section 5.2.1)."""
    quantum: Annotated[Size, Field(gt=0, le=2**30)] = Size(1514)
    """How many bytes a queue sends in a turn (section 5.2.4)."""
    flows: Annotated[int, Field(ge=1, le=65_536)] = 1024
    """How many queues there are (section 5.2.5)."""
    maxpacket: Size = Size(1500)
    """With at most so many bytes behind the packet that goes CoDel drops nothing: the MTU (RFC 8289 section 5.3)."""
    ecn: bool = True
    """Whether packets of ECN-capable transports are marked instead of dropped (section 5.2.6)."""
    ce_threshold: Annotated[Duration | None, rules.POSITIVE] = None
    """Whoever waits longer than this is marked, if its transport is ECN-capable (section 5.2.7)."""


_Gain = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


class Pie(Managed):
    """PIE (RFC 8033): drops or marks what comes in at random, with a probability that holds the wait at a target."""

    # RFC 8033 says none; this is the default of Linux (`pie_init` in net/sched/sch_pie.c)
    limit: ClassVar = {"packets": 1000}

    name: Literal["pie"]
    """Its name."""
    qdelay_ref: _Time = Duration(15_000_000)
    """The wait that it aims at (QDELAY_REF, RFC 8033 section 4.2)."""
    t_update: Annotated[Duration, _PERIOD] = Duration(15_000_000)
    """How often the probability is computed; at least 10us (T_UPDATE, section 4.2)."""
    max_burst: Duration = Duration(150_000_000)
    """For how long after a time without congestion nothing is dropped (MAX_BURST, section 4.4)."""
    alpha: _Gain = 0.125
    """How strongly the distance from the target changes the probability (hertz; appendix A)."""
    beta: _Gain = 1.25
    """How strongly a change of the wait does (hertz; appendix A)."""
    mean_pktsize: Size = Size(1000)
    """With at most twice so many bytes waiting nothing is dropped (MEAN_PKTSIZE, section 4.1)."""
    ecn: bool = True
    """Whether packets of ECN-capable transports are marked instead of dropped (section 5.1)."""
    mark_ecnth: Fraction = Fraction(0.1)
    """From this probability on they are dropped, too (section 5.1)."""
    derandomize: bool = True
    """Whether drops are neither too close to each other nor too far apart (section 5.4)."""
    cap_drop: bool = True
    """Whether the probability, once it is 10 %, grows by at most 2 % an update (section 5.5)."""


class DualPi2(Managed):
    """DualPI2 (RFC 9332, appendix A): a queue for L4S (ECT(1), CE) and one for all others, coupled for equal shares."""

    # RFC 9332 figure 2, line 5
    limit: ClassVar = {"time": Duration(250_000_000)}

    name: Literal["dualpi2"]
    """Its name."""
    target: Annotated[Duration, _PERIOD] = Duration(15_000_000)
    """The wait that the PI controller aims at; at least 10us (RFC 9332 figure 2)."""
    # it computes every target or rtt_max / 3, whichever is shorter
    rtt_max: Annotated[Duration, rules.Bounds(Duration(30_000), positive=True)] = Duration(100_000_000)
    """The longest round trip that it is stable with; gains and interval follow from it. At least 30us (RTT_max)."""
    k: Annotated[float, Field(ge=0.1, le=100, allow_inf_nan=False)] = 2.0
    """The coupling factor: L4S is marked with k p', where all others are dropped or marked with p'^2."""
    min_th: Duration = Duration(800_000)
    """The wait in the L4S queue from which on packets are marked (minTh)."""
    range: Duration = Duration(400_000)
    """Over how much more of it the probability rises to one; 0s makes a step of the ramp."""
    th_len: Annotated[int, Field(ge=0, le=10**9)] = 1
    """With no more packets in the L4S queue, the one that goes among them, none is marked for its wait (Th_len)."""
    classic_weight: Annotated[Fraction, Field(ge=0.001, le=0.999)] = Fraction(1 / 16)
    """Which share of the link the classic queue has for certain while both have packets (section 4.2.2)."""


_KINDS: dict[str, type[Managed]] = {"codel": Codel, "fq-codel": FqCodel, "pie": Pie, "dualpi2": DualPi2}
WORDS = ", ".join(("drop-tail", *_KINDS))

NoBucket = Literal["drop-tail", "codel", "fq-codel", "pie", "dualpi2"] | Codel | FqCodel | Pie | DualPi2
Discipline = Annotated[
    NoBucket, OneOf(f'one of {WORDS}, or a table with one of these names: {{ name = "codel", ... }}', by="name")
]


def managed(discipline: str | Managed) -> Managed | None:
    """The discipline with all of its parameters; nothing for drop-tail.

    >>> managed("codel").limit
    {'packets': 1000}
    """
    if isinstance(discipline, Managed):
        return discipline
    return _KINDS[discipline](name=discipline) if discipline in _KINDS else None
