"""What the document's tables and figures print of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidegate.paper import Measure
from tidegate.runs import Run


@dataclass(frozen=True)
class Count:
    """One flow, or several that the document adds up."""

    sent: int
    """Packets put on the wire, a SYN and repetitions included."""
    received: int
    """Packets that arrived."""
    dropped: int
    """Packets lost to full queues."""
    delay_ms: float
    """Mean delay from wire to arrival, of all packets that arrived; NaN where none did."""
    waited_ms: float = 0.0
    """Mean time that packets of media waited at the sender before."""

    @classmethod
    def of(cls, run: Run, flows: Iterable[str] | None = None) -> Count:
        """Of the named flows of a run; of all by default."""
        metrics = [run.metrics(flow) for flow in (run.flows if flows is None else flows)]
        arrived = sum(one["packets_received"] for one in metrics)
        waited = math.fsum(one["packets_received"] * (one["one_way_delay_ms_mean"] or 0.0) for one in metrics)
        sent = sum(one["packets_sent"] for one in metrics)
        held = math.fsum(one["packets_sent"] * (one["sender_delay_ms_mean"] or 0.0) for one in metrics)
        return cls(
            sent=sent,
            received=arrived,
            dropped=sum(one["lost_queue"] for one in metrics),
            delay_ms=waited / arrived if arrived else math.nan,
            waited_ms=held / sent if sent else math.nan,
        )

    @property
    def pdr(self) -> float:
        """Packet delivery ratio: received over sent (section 4.2.1)."""
        return self.received / self.sent if self.sent else math.nan

    @property
    def loss_ratio(self) -> float:
        """Packet loss ratio: lost over received and lost (section 4.2.3)."""
        known = self.received + self.dropped
        return self.dropped / known if known else math.nan

    def packets(self) -> Iterator[tuple[str, Measure]]:
        """What tables 3 and 4 print."""
        for name, value in (("sent", self.sent), ("received", self.received), ("drop", self.dropped)):
            yield name, Measure.exact(value, "packets")


def jain(first: float, second: float) -> float:
    """Jain's index of what two flows get: 1 where they share alike, 0.5 where one has everything.

    >>> jain(1, 1), jain(1, 0), round(jain(19, 1), 4)
    (1.0, 0.5, 0.5525)
    """
    squares = first * first + second * second
    return (first + second) ** 2 / (2 * squares) if squares else math.nan
