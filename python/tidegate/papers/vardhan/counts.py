"""Counts of packets as in the document's tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidegate.paper import Measure
from tidegate.runs import Run


@dataclass(frozen=True)
class Count:
    """Counts of a flow, or of flows that the document adds up."""

    sent: int
    """Packets put on the wire, a SYN and repetitions included."""
    received: int
    """Packets that arrived."""
    dropped: int
    """Packets lost to full queues."""
    delay_ms: float
    """Mean delay from wire to arrival over all packets that arrived; NaN if none did."""
    waited_ms: float = 0.0
    """Mean time of media packets at the sender before that."""

    @classmethod
    def from_run(cls, run: Run, flows: Iterable[str] | None = None) -> Count:
        """Counts packets of some flows of a run; of all flows by default."""
        metrics = [run.metrics(flow) for flow in (run.flows if flows is None else flows)]
        arrived = sum(row["packets_received"] for row in metrics)
        network_ms = math.fsum(row["packets_received"] * (row["one_way_delay_ms_mean"] or 0.0) for row in metrics)
        sent = sum(row["packets_sent"] for row in metrics)
        sender_ms = math.fsum(row["packets_sent"] * (row["sender_delay_ms_mean"] or 0.0) for row in metrics)
        return cls(
            sent=sent,
            received=arrived,
            dropped=sum(row["lost_queue"] for row in metrics),
            delay_ms=network_ms / arrived if arrived else math.nan,
            waited_ms=sender_ms / sent if sent else math.nan,
        )

    @property
    def pdr(self) -> float:
        """Packet delivery ratio: received over sent (section 4.2.1)."""
        return self.received / self.sent if self.sent else math.nan

    @property
    def loss_ratio(self) -> float:
        """Packet loss ratio: lost over received and lost (section 4.2.3)."""
        total = self.received + self.dropped
        return self.dropped / total if total else math.nan

    def packets(self) -> Iterator[tuple[str, Measure]]:
        """Counts in tables 3 and 4, by their name in measures."""
        for name, value in (("sent", self.sent), ("received", self.received), ("drop", self.dropped)):
            yield name, Measure.exact(value, "packets")


def jain(first: float, second: float) -> float:
    """Jain's index of two flows: 1 if they have equal shares, 0.5 if one has everything.

    >>> jain(1, 1), jain(1, 0), round(jain(19, 1), 4)
    (1.0, 0.5, 0.5525)
    """
    squares = first * first + second * second
    return (first + second) ** 2 / (2 * squares) if squares else math.nan
