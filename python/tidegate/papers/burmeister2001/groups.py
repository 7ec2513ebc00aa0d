"""Sessions on the document's trees, and what is kept of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidegate.paper import Plan, group_seeds
from tidegate.papers.burmeister2001.topologies import Cable, links
from tidegate.runs import Run
from tidegate.scenario import Scenario, Session
from tidegate.units import Rate

UNTIL_S = 3000
"""Seconds of a run: 7480 losses of each hundredth packet of 1000 bytes at 2 Mb/s (table 3) take 2992 s."""
PACKET = {"2 Mbps": 1000, "200 kbps": 500, "20 kbps": 100}
"""Bytes of an RTP packet on the wire at each session bandwidth: 1000 and 100 are section 6.1's, 500 is ours."""


def rate(bandwidth: str) -> Rate:
    """A session bandwidth as the document writes it.

    >>> rate("20 kbps")
    Rate('20kbps')
    """
    return Rate.parse(bandwidth.replace(" ", ""))


def byte_error(loss: float, size: int) -> float:
    """The probability that a byte is hit with which so many packets of a size are lost.

    >>> round(1 - (1 - byte_error(0.01, 1000)) ** 1000, 12)
    0.01
    """
    return float(1.0 - (1.0 - loss) ** (1.0 / size))


def media(bandwidth: Rate, size: int, senders: int = 1) -> dict[str, Any]:
    """What one of `senders` sends, who share the session bandwidth."""
    return {"rate": Rate(round(bandwidth / senders)), "packet_size": f"{size}B"}


def session(
    name: str,
    topology: str,
    cable: Cable | Mapping[str, Cable],
    bandwidth: Rate,
    members: Sequence[Mapping[str, Any]],
    *,
    until: str = f"{UNTIL_S}s",
    **keys: Any,
) -> Scenario:
    """A session over a tree; `keys` are those of `Session`."""
    return Scenario(
        name=f"burmeister2001-{name}",
        duration=until,
        record="summary",
        links=links(topology, cable),
        sessions=[Session(name="s", bandwidth=bandwidth, members=[dict(one) for one in members], **keys)],
    )


@dataclass(frozen=True)
class Member:
    """What became of one member's RTCP, and of the losses that it saw."""

    share: float
    """Its RTCP in % of the session bandwidth."""
    packets: int
    """RTCP packets that it sent."""
    early: int
    """Losses that it reported in early packets."""
    regular: int
    """In regular ones."""
    suppressed: int
    """Not reported, because another had."""
    discarded: int
    """Not reported, because it would have been too late."""
    waiting_s: float | None
    """Mean time from detection to sending, of the reports sent."""
    report_delay_s: float | None
    """Of packets that it sent: mean time from sending to the first report of a loss."""

    @property
    def sent(self) -> int:
        """Losses that it reported."""
        return self.early + self.regular

    @property
    def losses(self) -> int:
        """Losses of which it is known whether they were reported."""
        return self.sent + self.suppressed + self.discarded


@dataclass(frozen=True)
class Seen:
    """What is kept of a run."""

    members: Mapping[str, Member]
    """By name."""
    digest: str

    @classmethod
    def of(cls, run: Run) -> Seen:
        """Of a run with one session."""
        return cls({one["member"]: _member(one) for one in run.summary["members"]}, run.digest)

    @property
    def share(self) -> float:
        """RTCP of all members in % of the session bandwidth."""
        return sum(one.share for one in self.members.values())


def _member(row: Mapping[str, Any]) -> Member:
    def seconds(name: str) -> float | None:
        value = row[f"{name}_ms_mean"]
        return None if value is None else value / 1000

    return Member(
        share=100 * (row["rtcp_share"] or 0.0),
        packets=row["rtcp_packets"],
        early=row["reported_early"],
        regular=row["reported_regular"],
        suppressed=row["suppressed"],
        discarded=row["not_allowed"],
        waiting_s=seconds("waiting"),
        report_delay_s=seconds("loss_report_delay"),
    )


@dataclass(frozen=True)
class Part:
    """Results of a part of the document, held against published numbers."""

    plan: Plan
    done: Mapping[Any, Seen]
    published: Mapping[str, float]
    """By the measure that each is held against."""

    @cached_property
    def runs(self) -> Mapping[Any, list[Seen]]:
        """By their keys, one a seed."""
        return group_seeds(self.done)
