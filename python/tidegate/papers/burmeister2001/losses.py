"""Section 6.2: losses shared by all receivers, and losses of single ones, tables 4 and 5."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from tidegate.paper import Drawing, Measure, Plan, Quantity, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.papers.burmeister2001.groups import Member, Part, SessionSummary, session
from tidegate.papers.burmeister2001.topologies import BRANCHES, CENTRE, Cable, agents, cables
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario
from tidegate.units import Rate

KINDS: Mapping[str, tuple[str, ...]] = {
    "shared": ("A2", "A5", "A6", "A7", "A8"),
    "distributed": ("A5", "A6", "A7", "A8"),
}
"""Agents that lose packets, by kind of loss."""
TABLES = {"table4": False, "table5": True}
"""Whether the agents that lose packets know the round-trip time, by table."""


@dataclass(frozen=True)
class UnstatedSettings:
    """Values for the settings that the document does not state."""

    bandwidth: str = "100kbps"
    """Bandwidth of the session, and rate at which A1 sends."""
    size: int = 1000
    """Bytes of an RTP packet on the wire."""
    centre: Cable = field(default_factory=lambda: replace(CENTRE, delay="10ms"))
    """Cable from A1 to A2."""
    branch: Cable = field(default_factory=lambda: replace(BRANCHES["A2"], capacity="300kbps", delay="35ms"))
    """Cable from A2 to each of A5 to A8."""
    byte_error: float = 1.3e-6
    """Byte error probability of the link from A1 to A2, or of those behind it."""
    until_s: int = 40_000
    """Duration of a run in seconds."""

    def scenario(self, kind: str, *, rtt: bool, k: bool = True, redraw: bool = True) -> Scenario:
        """A run of table 4 (`rtt` false) or 5 (true).

        Without `k` members do not use the round-trip time. Without `redraw` l T_rr is of the current interval, as in
        RFC 4585.
        """
        shared = kind == "shared"
        branch = replace(self.branch, byte_error=0.0 if shared else self.byte_error)
        centre = replace(self.centre, byte_error=self.byte_error if shared else 0.0)
        cable = cables("T-16", A2=centre, **dict.fromkeys(KINDS["distributed"], branch))
        media = {"rate": self.bandwidth, "packet_size": f"{self.size}B"}
        members = [
            {"name": name, "media": media if name == "A1" else None, "declared_sender": rtt and name in KINDS["shared"]}
            for name in agents("T-16")
        ]
        rules = {"k": 1.0} if rtt and k else {"l": 0.5, "redraw": redraw}
        return session(
            "losses", "T-16", cable, Rate.parse(self.bandwidth), members, until=f"{self.until_s}s", avpf=rules
        )


CHOSEN = UnstatedSettings()


def _around() -> Iterator[tuple[str, UnstatedSettings]]:
    short = replace(CHOSEN, until_s=CHOSEN.until_s // 2)
    yield "80 kb/s", replace(short, bandwidth="80kbps")
    yield "120 kb/s", replace(short, bandwidth="120kbps")
    for delay in (25, 50, 80):
        yield f"branches of {delay} ms", replace(short, branch=replace(CHOSEN.branch, delay=f"{delay}ms"))
    yield "branches of 1 Mb/s", replace(short, branch=replace(CHOSEN.branch, capacity="1Mbps"))
    yield "centre of 5 ms", replace(short, centre=replace(CHOSEN.centre, delay="5ms"))
    yield "four times the byte errors", replace(short, byte_error=4 * CHOSEN.byte_error, until_s=CHOSEN.until_s // 4)


AROUND: Mapping[str, UnstatedSettings] = dict(_around())
"""The settings with one choice changed, by label."""
FAR = "branches of 80 ms"


RFC = "RFC 4585"
QUICK_SEEDS = 1
"""Number of seeds of a quick run."""


def jobs(plan: Plan) -> Mapping[Any, Then[Run, SessionSummary]]:
    """Jobs of tables 4 and 5; a quick run has of the changed choices only `FAR`."""
    scenarios: dict[Any, tuple[Scenario, int]] = {}
    for kind, (table, rtt) in product(KINDS, TABLES.items()):
        for seed in plan.seeds[: QUICK_SEEDS if plan.quick else None]:
            scenarios["losses", "as chosen", table, kind, seed] = CHOSEN.scenario(kind, rtt=rtt), seed
        seed = plan.seeds[0]
        short = replace(CHOSEN, until_s=CHOSEN.until_s // 2)
        scenarios["losses", RFC, table, kind, seed] = short.scenario(kind, rtt=rtt, k=False, redraw=False), seed
        for label in [FAR] if plan.quick else AROUND:
            scenarios["losses", label, table, kind, seed] = AROUND[label].scenario(kind, rtt=rtt), seed
    return {key: Then(RunJob(scenario, seed), SessionSummary.from_run) for key, (scenario, seed) in scenarios.items()}


COLUMNS: Mapping[str, Quantity[Member]] = {
    "sent": Quantity(lambda member: member.sent, "losses"),
    "fbsp": Quantity(lambda member: member.suppressed, "losses"),
    "disc": Quantity(lambda member: member.discarded, "losses"),
    "sum": Quantity(lambda member: member.losses, "losses"),
    "mwt": Quantity(lambda member: math.nan if member.waiting_s is None else member.waiting_s, "s"),
}
"""Columns of tables 4 and 5."""


Members = Sequence[Member]
"""The members that lose packets, in a run."""


def _sum(members: Members, name: str) -> int:
    return sum(getattr(member, name) for member in members)


def _share_of_losses(members: Members, name: str) -> float:
    return _sum(members, name) / _sum(members, "losses")


def _reports_per_loss(members: Members) -> float:
    return _sum(members, "sent") * len(members) / _sum(members, "losses")


def _waiting_s(members: Members) -> float:
    """Mean waiting time of all reports sent."""
    return sum(member.sent * (member.waiting_s or 0.0) for member in members) / _sum(members, "sent")


TOGETHER: Mapping[str, Quantity[Members]] = {
    "reports": Quantity(lambda members: _sum(members, "sent"), "losses", "loss reports sent by all members"),
    "detected": Quantity(lambda members: _sum(members, "losses"), "losses", "losses seen, added over members"),
    "share": Quantity(
        lambda members: _share_of_losses(members, "sent"), "", "share of the losses seen for which a report is sent"
    ),
    "each": Quantity(_reports_per_loss, "", "number of reports of a loss"),
    "discarded": Quantity(
        lambda members: _share_of_losses(members, "discarded"), "", "share of the losses discarded as too late"
    ),
}
CHOICES: Mapping[str, Quantity[Members]] = {
    "mwt": Quantity(_waiting_s, "s"),
    "suppressed": Quantity(lambda members: _share_of_losses(members, "suppressed")),
}
"""Quantities measured for each choice."""
_PRINTED = {"as chosen": "our choices"}
"""Labels in tables, where they differ from those in the names of measures."""


class LossReportResults(Part):
    """Results of tables 4 and 5."""

    def losers(self, label: str, table: str, kind: str) -> list[Members]:
        """The members that lose packets, for each seed; empty if the plan has no such runs."""
        runs = self.runs.get(("losses", label, table, kind), [])
        return [[run.members[name] for name in KINDS[kind]] for run in runs]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for table, (kind, names) in product(TABLES, KINDS.items()):
            losers = self.losers("as chosen", table, kind)
            for (number, agent), (name, column) in product(enumerate(names), COLUMNS.items()):
                yield f"{table}/{agent}/{kind}.{name}", column.over(members[number] for members in losers)
            for name, quantity in TOGETHER.items():
                yield f"{table}.{kind}.{name}", quantity.over(losers)
            # mean time between RTCP packets of A5
            intervals = [CHOSEN.until_s / members[names.index("A5")].packets for members in losers]
            yield f"{table}.{kind}.interval", Measure.of(intervals, "s")
        for label, table, kind in product(("as chosen", RFC, *AROUND), TABLES, KINDS):
            if losers := self.losers(label, table, kind):
                for name, quantity in CHOICES.items():
                    yield f"{table}.{kind}.{label}.{name}", quantity.over(losers)

    def tables(self) -> Iterator[Table]:
        """Effects of the choices, and of RFC 4585's rule in table 5."""
        measures = dict(self.measures())
        cells = {
            "waiting time of shared losses (s)": "shared.{}.mwt",
            "share of shared losses suppressed": "shared.{}.suppressed",
            "waiting time of distributed losses (s)": "distributed.{}.mwt",
        }
        columns = list(product(TABLES, cells))
        rows: list[list[CellValue]] = [
            [_PRINTED.get(label, label), *(measures[f"{table}.{cells[head].format(label)}"] for table, head in columns)]
            for label in ("as chosen", RFC, *AROUND)
            if self.losers(label, "table4", "shared")
        ]
        heads = [f"table {table[-1]}, {head}" for table, head in columns]
        title = (
            "Choices: tables 4 and 5 by RFC 4585, which does not use the round-trip time, and with one choice changed"
        )
        yield Table("choices-losses", title, ["choice", *heads], rows)

    def figures(self) -> Iterator[Drawing]:
        """Waiting times by agent."""
        measures = dict(self.measures())
        for table, rtt in TABLES.items():
            title = f"Waiting time {'with' if rtt else 'without'} round-trip times"
            sheet = Sheet(f"Table {table[-1]}", title, "Agent", "Mean waiting time (s)")
            for kind, losers in KINDS.items():
                names = {name: f"{table}/{name}/{kind}.mwt" for name in losers}
                sheet.bars(f"{kind} losses", {agent: measures[name] for agent, name in names.items()})
                sheet.published(f"{kind} losses", list(names), [self.published[name] for name in names.values()])
            yield sheet.drawing(table, "Markers: values of the document.")
