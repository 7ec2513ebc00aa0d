"""Queue disciplines of links: which packet goes next, and which is dropped before the queue is full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.model import Model
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Fraction, Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


# bounds of a periodic computation, so that a run ends: as in queue/ticks.rs
_PERIOD = rules.Bounds(Duration(10_000), positive=True)

_Time = Annotated[Duration, rules.POSITIVE]


class Managed(Model):
    """Base of all disciplines but drop-tail."""

    name: str
    """Name of the discipline."""

    limit: ClassVar[dict[str, Any]]
    """Queue limits by default, where the link states none: keys of [Queue][tidegate.scenario.links.Queue]."""

    def limits(self) -> dict[str, Any]:
        """The default queue limits, where the link states none."""
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
    """Name of the discipline."""
    target: _Time = Duration(5_000_000)
    """Acceptable waiting time (TARGET, RFC 8289 section 4.4)."""
    interval: _Time = Duration(100_000_000)
    """Time for which the shortest waiting time must exceed the target before packets are dropped (INTERVAL, section
    4.3)."""
    maxpacket: Size = Size(1500)
    """Number of bytes behind a packet up to which the packet is not dropped: the MTU (section 5.3)."""
    ecn: bool = True
    """Whether packets of ECN-capable transports are marked instead of dropped."""
    ce_threshold: Annotated[Duration | None, rules.POSITIVE] = None
    """Waiting time above which packets of ECN-capable transports are marked (RFC 8290 section 5.2.7); none by
    default."""


class FqCodel(Managed):
    """FQ-CoDel (RFC 8290): a queue for each flow, served in turns by bytes, with CoDel in each; sparse flows go first.

    Flows are distinguished by a hash of addresses, ports and protocol, with a salt derived from the seed.
    """

    # RFC 8290 section 5.2.3
    limit: ClassVar = {"packets": 10_240}

    name: Literal["fq-codel"]
    """Name of the discipline."""
    target: _Time = Duration(5_000_000)
    """Acceptable waiting time in each queue (RFC 8290 section 5.2.2)."""
    interval: _Time = Duration(100_000_000)
    """Time for which the shortest waiting time must exceed the target before packets are dropped (section 5.2.1)."""
    quantum: Annotated[Size, Field(gt=0, le=2**30)] = Size(1514)
    """Number of bytes that a queue sends in a turn (section 5.2.4)."""
    flows: Annotated[int, Field(ge=1, le=65_536)] = 1024
    """Number of queues (section 5.2.5)."""
    maxpacket: Size = Size(1500)
    """Number of bytes behind a packet up to which CoDel does not drop the packet: the MTU (RFC 8289 section 5.3)."""
    ecn: bool = True
    """Whether packets of ECN-capable transports are marked instead of dropped (section 5.2.6)."""
    ce_threshold: Annotated[Duration | None, rules.POSITIVE] = None
    """Waiting time above which packets of ECN-capable transports are marked (section 5.2.7); by default none."""


_Gain = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


class Pie(Managed):
    """PIE (RFC 8033): drops or marks arriving packets at random, with a probability that keeps the wait at a target."""

    # RFC 8033 says none; this is the default of Linux (`pie_init` in net/sched/sch_pie.c)
    limit: ClassVar = {"packets": 1000}

    name: Literal["pie"]
    """Name of the discipline."""
    qdelay_ref: _Time = Duration(15_000_000)
    """Target of the waiting time (QDELAY_REF, RFC 8033 section 4.2)."""
    t_update: Annotated[Duration, _PERIOD] = Duration(15_000_000)
    """Interval between updates of the probability; at least 10us (T_UPDATE, section 4.2)."""
    max_burst: Duration = Duration(150_000_000)
    """Time after a period without congestion in which no packet is dropped (MAX_BURST, section 4.4)."""
    alpha: _Gain = 0.125
    """Gain of the difference between waiting time and target (hertz; appendix A)."""
    beta: _Gain = 1.25
    """Gain of the change of the waiting time (hertz; appendix A)."""
    mean_pktsize: Size = Size(1000)
    """Mean packet size; no packet is dropped while at most twice this size waits (MEAN_PKTSIZE, section 4.1)."""
    ecn: bool = True
    """Whether packets of ECN-capable transports are marked instead of dropped (section 5.1)."""
    mark_ecnth: Fraction = Fraction(0.1)
    """Drop probability from which on ECN-capable packets are dropped instead of marked (section 5.1)."""
    derandomize: bool = True
    """Whether very short and very long intervals between drops are prevented (section 5.4)."""
    cap_drop: bool = True
    """Whether the drop probability, once it is 10 %, grows by at most 2 % per update (section 5.5)."""


class DualPi2(Managed):
    """DualPI2 (RFC 9332, appendix A): a queue for L4S (ECT(1), CE) and a classic one, coupled for equal shares."""

    # RFC 9332 figure 2, line 5
    limit: ClassVar = {"time": Duration(250_000_000)}

    name: Literal["dualpi2"]
    """Name of the discipline."""
    target: Annotated[Duration, _PERIOD] = Duration(15_000_000)
    """Waiting time at which the PI controller aims; at least 10us (RFC 9332 figure 2)."""
    # the update interval is the shorter of target and rtt_max / 3
    rtt_max: Annotated[Duration, rules.Bounds(Duration(30_000), positive=True)] = Duration(100_000_000)
    """Longest round-trip time for which the PI controller is stable (RTT_max); at least 30us. Gains and interval follow
    from this time."""
    k: Annotated[float, Field(ge=0.1, le=100, allow_inf_nan=False)] = 2.0
    """Coupling factor: with p' from the PI controller, L4S packets are marked with probability k p', others dropped or
    marked with p'^2."""
    min_th: Duration = Duration(800_000)
    """Waiting time in the L4S queue from which on packets are marked (minTh)."""
    range: Duration = Duration(400_000)
    """Additional waiting time, above `min_th`, at which the marking probability reaches one; 0s: a step, not a ramp."""
    th_len: Annotated[int, Field(ge=0, le=10**9)] = 1
    """Number of packets in the L4S queue up to which no packet is marked for its waiting time (Th_len)."""
    classic_weight: Annotated[Fraction, Field(ge=0.001, le=0.999)] = Fraction(1 / 16)
    """Guaranteed share of the classic queue while both queues have packets (section 4.2.2)."""


_KINDS: dict[str, type[Managed]] = {"codel": Codel, "fq-codel": FqCodel, "pie": Pie, "dualpi2": DualPi2}
WORDS = ", ".join(("drop-tail", *_KINDS))

NoBucket = Literal["drop-tail", "codel", "fq-codel", "pie", "dualpi2"] | Codel | FqCodel | Pie | DualPi2
Discipline = Annotated[
    NoBucket,
    OneOf(f'one of {WORDS}, or a table with the name of one of these, such as {{ name = "codel", ... }}', by="name"),
]


def managed(discipline: str | Managed) -> Managed | None:
    """The discipline with all of its parameters; `None` for drop-tail.

    >>> managed("codel").limit
    {'packets': 1000}
    """
    if isinstance(discipline, Managed):
        return discipline
    return _KINDS[discipline](name=discipline) if discipline in _KINDS else None
