"""Token buckets of links: policers drop packets above the rate, and shapers delay them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.disciplines import WORDS, Discipline, Managed, NoBucket, managed
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Rate, Size


class Bucket(Managed):
    """A token bucket: in any time t it lets at most rate t + burst pass (RFC 2698 section 3)."""

    rate: Annotated[Rate, rules.POSITIVE]
    """Rate at which the bucket is filled with tokens: the throughput in the long run."""
    burst: Annotated[Size, Field(ge=1)]
    """Size of the bucket in bytes of tokens; the bucket is full at the start."""
    peak_rate: Rate | None = None
    """Largest rate of a burst; unlimited by default."""
    mtu: Annotated[Size, Field(ge=1)] = Size(1500)
    """Size of the second bucket, which enforces the peak rate; larger packets are dropped."""
    discipline: Discipline = "drop-tail"
    """Queue discipline of the packets that wait, within the limits of the link's `queue`."""

    def limits(self) -> dict[str, Any]:
        """The queue limits of the inner discipline; 300 ms for drop-tail."""
        inner = managed(self.discipline)
        return {"time": Duration(300_000_000)} if inner is None else inner.limits()

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        if self.peak_rate is not None and self.peak_rate < self.rate:
            message = f'found "{self.peak_rate}"; expected at least the rate ({self.rate})'
            yield Problem((*path, "peak_rate"), message)

    def to_ir(self, reading: Any) -> Any:
        """As the engine takes it: under its name."""
        inner = managed(self.discipline)
        resolved = self.model_copy(update={"discipline": inner or "drop_tail"})
        return super(Bucket, resolved).to_ir(reading)


class Policer(Bucket):
    """A token bucket that drops packets for which it lacks tokens; no packet waits.

    >>> Policer(name="policer", rate="2Mbps", burst="60kB").limits()["time"]
    Duration('300ms')
    """

    name: Literal["policer"]
    """Name of the discipline."""


class Shaper(Bucket):
    """A token bucket that delays packets until it has tokens for them. A queue limit in time is converted at `rate`."""

    name: Literal["shaper"]
    """Name of the discipline."""


AnyDiscipline = Annotated[
    NoBucket | Policer | Shaper,
    OneOf(
        f"one of {WORDS}, or a table with the name of one of these, of a policer or of a shaper, such as "
        '{ name = "policer", rate = "2Mbps", burst = "60kB" }',
        by="name",
    ),
]
"""Types of a link's `discipline`."""
