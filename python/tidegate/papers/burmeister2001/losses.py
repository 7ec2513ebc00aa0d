"""Section 6.2: losses that receivers share, and losses of their own, tables 4 and 5."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from tidegate.paper import Drawing, Measure, Plan, Quantity, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.papers.burmeister2001.groups import Member, Part, Seen, session
from tidegate.papers.burmeister2001.topologies import BRANCHES, CENTRE, Cable, agents, cables
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario
from tidegate.units import Rate

KINDS: Mapping[str, tuple[str, ...]] = {
    "shared": ("A2", "A5", "A6", "A7", "A8"),
    "distributed": ("A5", "A6", "A7", "A8"),
}
"""Who loses."""
TABLES = {"table4": False, "table5": True}
"""Whether those that lose know the round-trip time."""


@dataclass(frozen=True)
class Chosen:
    """What the document does not state."""

    bandwidth: str = "100kbps"
    """Of the session, and of what A1 sends."""
    size: int = 1000
    """Bytes of an RTP packet on the wire."""
    centre: Cable = field(default_factory=lambda: replace(CENTRE, delay="10ms"))
    """From A1 to A2."""
    branch: Cable = field(default_factory=lambda: replace(BRANCHES["A2"], capacity="300kbps", delay="35ms"))
    """From A2 to A5 .. A8."""
    byte_error: float = 1.3e-6
    """On the link from A1 to A2, or on those behind it."""
    until_s: int = 40_000
    """How long a run is."""

    def scenario(self, kind: str, *, rtt: bool, k: bool = True, redraw: bool = True) -> Scenario:
        """A run behind table 4 (`rtt` false) or 5 (true).

        Without `k` members make nothing of the RTT, and without `redraw` l T_rr is that of the interval under way, as
        in RFC 4585.
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


CHOSEN = Chosen()


def _around() -> Iterator[tuple[str, Chosen]]:
    short = replace(CHOSEN, until_s=CHOSEN.until_s // 2)
    yield "80 kb/s", replace(short, bandwidth="80kbps")
    yield "120 kb/s", replace(short, bandwidth="120kbps")
    for delay in (25, 50, 80):
        yield f"branches of {delay} ms", replace(short, branch=replace(CHOSEN.branch, delay=f"{delay}ms"))
    yield "branches of 1 Mb/s", replace(short, branch=replace(CHOSEN.branch, capacity="1Mbps"))
    yield "centre of 5 ms", replace(short, centre=replace(CHOSEN.centre, delay="5ms"))
    yield "four times the byte errors", replace(short, byte_error=4 * CHOSEN.byte_error, until_s=CHOSEN.until_s // 4)


AROUND: Mapping[str, Chosen] = dict(_around())
"""One choice changed at a time."""
FAR = "branches of 80 ms"


RFC = "RFC 4585"


def jobs(plan: Plan) -> Mapping[Any, Then[Run, Seen]]:
    """The runs; other choices than those made need a full one."""
    made: dict[Any, tuple[Scenario, int]] = {}
    for kind, (table, rtt) in product(KINDS, TABLES.items()):
        for seed in plan.seeds[: 1 if plan.quick else None]:
            made["losses", "as chosen", table, kind, seed] = CHOSEN.scenario(kind, rtt=rtt), seed
        seed = plan.seeds[0]
        short = replace(CHOSEN, until_s=CHOSEN.until_s // 2)
        made["losses", RFC, table, kind, seed] = short.scenario(kind, rtt=rtt, k=False, redraw=False), seed
        for label in [FAR] if plan.quick else AROUND:
            made["losses", label, table, kind, seed] = AROUND[label].scenario(kind, rtt=rtt), seed
    return {key: Then(RunJob(scenario, seed), Seen.of) for key, (scenario, seed) in made.items()}


COLUMNS: Mapping[str, Quantity[Member]] = {
    "sent": Quantity(lambda member: member.sent, "losses"),
    "fbsp": Quantity(lambda member: member.suppressed, "losses"),
    "disc": Quantity(lambda member: member.discarded, "losses"),
    "sum": Quantity(lambda member: member.losses, "losses"),
    "mwt": Quantity(lambda member: math.nan if member.waiting_s is None else member.waiting_s, "s"),
}
"""Of tables 4 and 5."""


Members = Sequence[Member]
"""Those who lose, in one run."""


def _sum(members: Members, name: str) -> int:
    return sum(getattr(member, name) for member in members)


def _part(members: Members, name: str) -> float:
    return _sum(members, name) / _sum(members, "losses")


def _each(members: Members) -> float:
    return _sum(members, "sent") * len(members) / _sum(members, "losses")


def _waiting_s(members: Members) -> float:
    """Mean waiting time of all reports sent."""
    return sum(member.sent * (member.waiting_s or 0.0) for member in members) / _sum(members, "sent")


TOGETHER: Mapping[str, Quantity[Members]] = {
    "reports": Quantity(lambda members: _sum(members, "sent"), "losses", "loss reports sent, of all members"),
    "detected": Quantity(lambda members: _sum(members, "losses"), "losses", "losses seen, by each member for itself"),
    "share": Quantity(lambda members: _part(members, "sent"), "", "reports sent of losses seen"),
    "each": Quantity(_each, "", "reports that are sent of one loss"),
    "discarded": Quantity(lambda members: _part(members, "discarded"), "", "part of the losses discarded as too late"),
}
CHOICES: Mapping[str, Quantity[Members]] = {
    "mwt": Quantity(_waiting_s, "s"),
    "suppressed": Quantity(lambda members: _part(members, "suppressed")),
}
"""What is measured of each choice."""


class Results(Part):
    """What they came to."""

    def losers(self, label: str, table: str, kind: str) -> list[Members]:
        """Those who lose, in each of the runs that there are."""
        runs = self.runs.get(("losses", label, table, kind), [])
        return [[run.members[name] for name in KINDS[kind]] for run in runs]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
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
        """What the choices do, and RFC 4585 in table 5."""
        made = dict(self.measures())
        cells = {
            "shared: waiting (s)": "shared.{}.mwt",
            "shared: suppressed": "shared.{}.suppressed",
            "distributed: waiting (s)": "distributed.{}.mwt",
        }
        columns = list(product(TABLES, cells))
        rows: list[list[CellValue]] = [
            [label, *(made[f"{table}.{cells[head].format(label)}"] for table, head in columns)]
            for label in ("as chosen", RFC, *AROUND)
            if self.losers(label, "table4", "shared")
        ]
        heads = [f"table {table[-1]}, {head}" for table, head in columns]
        title = "Tables 4 and 5 by RFC 4585, which makes nothing of the round-trip time, and with one choice changed"
        yield Table("choices-losses", title, ["choice", *heads], rows)

    def figures(self) -> Iterator[Drawing]:
        """Waiting times by agent."""
        made = dict(self.measures())
        for table, rtt in TABLES.items():
            title = f"Waiting time {'with' if rtt else 'without'} round-trip times"
            sheet = Sheet(f"Table {table[-1]}", title, "Agent", "Mean waiting time (s)")
            for kind, losers in KINDS.items():
                names = {name: f"{table}/{name}/{kind}.mwt" for name in losers}
                sheet.bars(f"{kind} losses", {agent: made[name] for agent, name in names.items()})
                sheet.published(f"{kind} losses", list(names), [self.published[name] for name in names.values()])
            yield sheet.drawing(table, "Marks: the document's.")
