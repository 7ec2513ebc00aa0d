"""Token buckets of links: policers, which drop what comes too fast, and shapers, which let it wait."""

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
    """What a policer and a shaper have in common: in any time t at most rate t + burst passes (RFC 2698 section 3)."""

    rate: Annotated[Rate, rules.POSITIVE]
    """How fast tokens come in: what passes in the long run."""
    burst: Annotated[Size, Field(ge=1)]
    """How many bytes of tokens the bucket holds; it is full at first."""
    peak_rate: Rate | None = None
    """How fast a burst may pass; by default as fast as it comes."""
    mtu: Annotated[Size, Field(ge=1)] = Size(1500)
    """With a peak rate: the largest packet, and what the second bucket holds; a larger one is dropped."""
    discipline: Discipline = "drop-tail"
    """What manages those that wait in the link, within the limits of its `queue`."""

    def limits(self) -> dict[str, Any]:
        """Those of the discipline in it; 300 ms for drop-tail."""
        inner = managed(self.discipline)
        return {"time": Duration(300_000_000)} if inner is None else inner.limits()

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """What does not fit together."""
        yield from super().problems(path, duration)
        if self.peak_rate is not None and self.peak_rate < self.rate:
            what = f'found "{self.peak_rate}"; expected at least the rate ({self.rate})'
            yield Problem((*path, "peak_rate"), what)

    def to_ir(self, reading: Any) -> Any:
        """As the engine takes it: under its name."""
        inner = managed(self.discipline)
        whole = self.model_copy(update={"discipline": inner or "drop_tail"})
        return super(Bucket, whole).to_ir(reading)


class Policer(Bucket):
    """A token bucket that drops what finds no tokens, so that nothing waits for them.

    >>> Policer(name="policer", rate="2Mbps", burst="60kB").limits()["time"]
    Duration('300ms')
    """

    name: Literal["policer"]
    """Its name."""


class Shaper(Bucket):
    """A token bucket that lets what finds no tokens wait for them. A limit of its queue in time is at `rate`."""

    name: Literal["shaper"]
    """Its name."""


AnyDiscipline = Annotated[
    NoBucket | Policer | Shaper,
    OneOf(
        f"one of {WORDS}, or a table with one of these names, or policer or shaper: "
        '{ name = "policer", rate = "2Mbps", burst = "60kB" }',
        by="name",
    ),
]
"""What a link may have as its `discipline`."""
