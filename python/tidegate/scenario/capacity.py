"""Capacities of links: schedules, recordings of networks, and the generated links `brownian`, `leo` and `statuses`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Factor, Model, Name, lowered
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Fraction, Rate

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


class Schedule(Model):
    """A capacity that changes in steps."""

    schedule: Annotated[list[rules.RateStep], Field(min_length=1, max_length=100_000), rules.InSteps()]
    """Pairs of a time and the rate from this time on, in order of time; the first time is 0s."""
    period: Duration | None = None
    """Time after which the schedule starts again; by default the last rate stays."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if all(rate == 0 for _, rate in self.schedule):
            yield Problem(path, "every rate is zero; the link would never carry a packet")
        last = self.schedule[-1][0]
        if self.period is not None and self.period <= last:
            yield Problem(
                (*path, "period"), f'found "{self.period}"; expected more than the time of the last step ({last})'
            )

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"schedule": {"steps": lowered(self.schedule, reading), "period": lowered(self.period, reading)}}


class TraceCapacity(Model):
    """A capacity from a recording of a network."""

    trace: str
    """File of the recording; a relative path starts from the folder of the scenario file."""
    format: str | None = None
    """Format of the file; detected from its contents by default."""
    direction: Literal["down", "up"] | None = None
    """Direction that is played, for formats with both directions; by default up for opennetlab, down for others."""
    frequency: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    """Number of lines per second, for formats without times (hertz)."""
    reference_rate: Rate | None = None
    """Rate that a ratio of 1 stands for, for formats with ratios."""
    offset: Annotated[Duration | Literal["random"], OneOf('a time such as "30s", or "random"')] = Duration(0)
    """Position in the recording at which the run begins; with "random" each seed has another position, which both
    directions of the cable share."""
    scale: Factor = 1.0
    """Factor by which the recorded rates are multiplied."""
    capacity_only: bool = False
    """Whether delays and losses in the recording are ignored."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the file; a file with another one is refused. A scenario that is kept with results has it."""

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: the trace by its number; a random offset is drawn by the cable's name."""
        offset = {"random": reading.cable} if self.offset == "random" else int(self.offset)
        played = {"index": reading.trace(self), "offset": offset, "scale": self.scale}
        return {"trace": {**played, "capacity_only": self.capacity_only}}


# the engine takes from 1 to 10 million opportunities of 1500 bytes a second
_MIN_BROWNIAN, _MAX_BROWNIAN = Rate(12_000), Rate(12_000 * 10**7)


_BROWNIAN_STEP = Duration(20_000_000)
"""Time between changes of the rate (`BrownianSettings::step` of crates/sim)."""


class Brownian(Model):
    """Settings of the generated cellular link (Winstein et al., NSDI 2013, section 3)."""

    start: Rate = Rate(5_000_000)
    """Rate at the beginning of the run."""
    max: Annotated[Rate, rules.Bounds(_MIN_BROWNIAN, _MAX_BROWNIAN)] = Rate(12_000_000)
    """Largest rate; by default 1000 packets of 1500 bytes per second, as in the paper."""
    sigma: Rate = Rate(2_400_000)
    """Standard deviation of the change of the rate within one second; by default 200 packets of 1500 bytes per second,
    as in the paper."""
    outage_escape: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] = 1.0
    """Rate at which outages end, per second."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from rules.order(("start", self.start), ("max", self.max), path)
        yield from super().problems(path, duration)
        if self.sigma:
            yield from rules.Bounds(Rate(1_200), _MAX_BROWNIAN).problems((*path, "sigma"), self.sigma)
        if duration / _BROWNIAN_STEP > rules.MAX_BINS:
            longest = Duration(rules.MAX_BINS * _BROWNIAN_STEP)
            message = (
                f"found a run of {duration}; expected at most {longest}, since the rate changes every {_BROWNIAN_STEP}"
            )
            yield Problem(path, message)


class BrownianCapacity(Model):
    """A generated cellular link: its rate follows Brownian motion, with outages that last."""

    brownian: Brownian
    """Settings of the generator."""


_Deviation = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]


class Leo(Model):
    """Settings of a link over satellites in low Earth orbit; the path changes every 15 s.

    Round trips and losses are fitted to the ping statistics of a Starlink dish; the model of the capacity is not
    based on measurements. See docs/networks.md.
    """

    median: Annotated[Rate, rules.POSITIVE]
    """Median of the lognormal distribution of the capacity, which is drawn for each interval."""
    sigma: _Deviation = 0.5
    """Standard deviation of the natural logarithm of the capacity."""
    interval: Annotated[Duration, rules.POSITIVE] = Duration(15_000_000_000)
    """Time between changes of the path."""
    round_trip: Duration = Duration(19_000_000)
    """Shortest round-trip time over both directions of the cable; each direction gets half of it as extra delay."""
    rest: Duration = Duration(7_000_000)
    """Median of the additional round-trip time, beyond `round_trip`, which is drawn for each interval (lognormal)."""
    rest_sigma: _Deviation = 0.65
    """Standard deviation of the natural logarithm of the additional round-trip time."""
    correlation: Fraction = Fraction(0.2)
    """Correlation of the logarithms of the additional round-trip time in consecutive intervals."""
    handover: Duration = Duration(100_000_000)
    """Duration of the losses at a change of the path."""
    handover_loss: Fraction = Fraction(0.055)
    """Loss probability during a handover."""
    loss: Fraction = Fraction(0.0007)
    """Loss probability outside of handovers."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if not self.interval:
            return
        if duration / self.interval > rules.MAX_BINS:
            message = f'found "{self.interval}"; expected a longer one: at most {rules.MAX_BINS} intervals in a run'
            yield Problem((*path, "interval"), message)
        elif self.handover >= self.interval:
            message = f'found "{self.handover}"; expected less than the interval ({self.interval})'
            yield Problem((*path, "handover"), message)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: with the cable's name, so that both directions share what is drawn."""
        return {**super().to_ir(reading), "cable": reading.cable}


class LeoCapacity(Model):
    """A link over satellites in low Earth orbit, generated."""

    leo: Leo
    """Settings of the generator."""


class Status(Model):
    """A status of a link: a capacity and its probability."""

    name: Name
    """Name of the status; unique on its link."""
    capacity: Rate
    """Capacity in this status; 0bps for an outage."""
    probability: Fraction
    """Probability of this status; the probabilities of all statuses sum to 1."""


_MIN_STATUS = Duration(100_000)
_ROUNDING = 1e-9  # tolerance of the sum of probabilities, for decimal fractions


class StatusCapacity(Model):
    """A capacity that is drawn again for each interval, without a queue: excess packets are lost.

    The loss probability is max(0, 1 - capacity / offered rate) for each packet (Hoang 2017, section 3.4.2).
    """

    statuses: Annotated[list[Status], Field(min_length=1, max_length=1000)]
    """Possible statuses of the link."""
    interval: Annotated[Duration, rules.Bounds(_MIN_STATUS)]
    """Time after which the status is drawn again, from 0s on."""
    rate_window: Annotated[Duration, rules.Bounds(maximum=Duration(60 * 10**9))] = Duration(0)
    """Length of the time window in which the offered rate is measured; 0s: the time since the last earlier arrival."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if self.interval >= _MIN_STATUS and duration / self.interval > rules.MAX_BINS:
            message = f'found "{self.interval}"; expected a longer one: at most {rules.MAX_BINS} intervals in a run'
            yield Problem((*path, "interval"), message)
        names = [status.name for status in self.statuses]
        for position, name in enumerate(names):
            if name in names[:position]:
                message = f'"{name}" is the name of entry {names.index(name) + 1}, too; names are unique'
                yield Problem((*path, "statuses", position, "name"), message)
        total = sum(status.probability for status in self.statuses)
        if abs(total - 1) > _ROUNDING:
            yield Problem((*path, "statuses"), f"the probabilities sum to {total:.12g}; expected 1")
        if not any(status.capacity and status.probability for status in self.statuses):
            message = "every status that can occur has the capacity 0bps; the link would never carry a packet"
            yield Problem((*path, "statuses"), message)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"statuses": super().to_ir(reading)}


Capacity = Annotated[
    Literal["infinite", "external"] | Rate | Schedule | TraceCapacity | BrownianCapacity | LeoCapacity | StatusCapacity,
    OneOf(
        'a rate such as "10Mbps", "infinite", "external", or a table with schedule, trace, brownian, leo or statuses'
    ),
]
