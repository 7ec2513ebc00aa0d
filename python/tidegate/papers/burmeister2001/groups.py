"""Sessions on the document's trees, and summaries of their runs."""

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
"""Duration of a run in seconds: 7480 losses (table 3) at 1 % of packets of 1000 bytes at 2 Mb/s take 2992 s."""
PACKET = {"2 Mbps": 1000, "200 kbps": 500, "20 kbps": 100}
"""Bytes of an RTP packet on the wire by session bandwidth: 1000 and 100 are from section 6.1, 500 is ours."""


def rate(bandwidth: str) -> Rate:
    """Parses a session bandwidth as the document writes it.

    >>> rate("20 kbps")
    Rate('20kbps')
    """
    return Rate.parse(bandwidth.replace(" ", ""))


def byte_error(loss: float, size: int) -> float:
    """Error probability of a byte at which a share `loss` of packets of `size` bytes is lost.

    >>> round(1 - (1 - byte_error(0.01, 1000)) ** 1000, 12)
    0.01
    """
    return float(1.0 - (1.0 - loss) ** (1.0 / size))


def media(bandwidth: Rate, size: int, senders: int = 1) -> dict[str, Any]:
    """Media of a member, if `senders` members share the session bandwidth equally."""
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
    """Scenario of a session over a tree; `keys` are those of `Session`."""
    return Scenario(
        name=f"burmeister2001-{name}",
        duration=until,
        record="summary",
        links=links(topology, cable),
        sessions=[Session(name="s", bandwidth=bandwidth, members=[dict(member) for member in members], **keys)],
    )


@dataclass(frozen=True)
class Member:
    """A member's RTCP, and its feedback on the losses that it saw."""

    share: float
    """RTCP in % of the session bandwidth."""
    packets: int
    """RTCP packets sent."""
    early: int
    """Losses reported in early packets."""
    regular: int
    """Losses reported in regular packets."""
    suppressed: int
    """Losses not reported, because another member had reported them."""
    discarded: int
    """Losses not reported, because the report would have been too late."""
    waiting_s: float | None
    """Mean time from detection to sending, over the reports sent."""
    report_delay_s: float | None
    """Mean time from sending a packet of this member to the first report of its loss."""

    @property
    def sent(self) -> int:
        """Losses reported."""
        return self.early + self.regular

    @property
    def losses(self) -> int:
        """Losses that were reported, suppressed or discarded, without those still undecided."""
        return self.sent + self.suppressed + self.discarded


@dataclass(frozen=True)
class SessionSummary:
    """Summary of a run with one session."""

    members: Mapping[str, Member]
    """Members by name."""
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> SessionSummary:
        """Summarises a run with one session."""
        return cls({row["member"]: _member(row) for row in run.summary["members"]}, run.digest)

    @property
    def share(self) -> float:
        """RTCP of all members in % of the session bandwidth."""
        return sum(member.share for member in self.members.values())


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
    """Results of a part of the document, to be compared with published numbers."""

    plan: Plan
    done: Mapping[Any, SessionSummary]
    published: Mapping[str, float]
    """Published numbers by the measure that each is compared with."""

    @cached_property
    def runs(self) -> Mapping[Any, list[SessionSummary]]:
        """Runs by the key of their jobs without the seed, one a seed."""
        return group_seeds(self.done)
