"""Section 6.2: losses that receivers share, and losses of their own, tables 4 and 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from tidegate.paper import Drawing, Measure, Plan, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.papers.burmeister2001.groups import Member, Seen, session
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
COLUMNS = ("sent", "fbsp", "disc", "sum", "mwt")


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


def _of(member: Member, column: str) -> float | None:
    counts = {"sent": member.sent, "fbsp": member.suppressed, "disc": member.discarded, "sum": member.losses}
    return member.waiting_s if column == "mwt" else counts[column]


def waiting(seen: Seen, kind: str) -> float:
    """Mean waiting time of all reports sent."""
    members = [seen.members[name] for name in KINDS[kind]]
    return sum(one.sent * (one.waiting_s or 0.0) for one in members) / sum(one.sent for one in members)


def reports(seen: Seen, kind: str) -> int:
    """Reports that were sent, of all members together."""
    return sum(seen.members[name].sent for name in KINDS[kind])


def detected(seen: Seen, kind: str) -> int:
    """Losses that were seen, by each member for itself."""
    return sum(seen.members[name].losses for name in KINDS[kind])


def discarded(seen: Seen, kind: str) -> float:
    """The part of all losses whose report would have come too late."""
    return sum(seen.members[name].discarded for name in KINDS[kind]) / detected(seen, kind)


def suppressed(seen: Seen, kind: str) -> float:
    """The part of all losses whose report was suppressed."""
    members = [seen.members[name] for name in KINDS[kind]]
    return sum(one.suppressed for one in members) / sum(one.losses for one in members)


@dataclass(frozen=True)
class Results:
    """What they came to."""

    plan: Plan
    done: Mapping[Any, Seen]
    published: Mapping[str, float]

    def runs(self, label: str, table: str, kind: str) -> list[Seen]:
        """Of all seeds that there are."""
        keys = (("losses", label, table, kind, seed) for seed in self.plan.seeds)
        return [self.done[key] for key in keys if key in self.done]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
        for table in TABLES:
            for kind, losers in KINDS.items():
                runs = self.runs("as chosen", table, kind)
                for name in losers:
                    for column in COLUMNS:
                        unit = "s" if column == "mwt" else "losses"
                        values = [_of(one.members[name], column) for one in runs]
                        yield f"{table}/{name}/{kind}.{column}", Measure.of(values, unit)
                runs = self.runs("as chosen", table, kind)
                sent, seen = ([count(one, kind) for one in runs] for count in (reports, detected))
                yield f"{table}.{kind}.reports", Measure.of(sent, "losses", "loss reports sent, of all members")
                yield f"{table}.{kind}.detected", Measure.of(seen, "losses", "losses seen, by each member for itself")
                each = [one * len(losers) / all_of_them for one, all_of_them in zip(sent, seen, strict=True)]
                shares = [one / all_of_them for one, all_of_them in zip(sent, seen, strict=True)]
                yield f"{table}.{kind}.share", Measure.of(shares, "", "reports sent of losses seen")
                yield f"{table}.{kind}.each", Measure.of(each, "", "reports that are sent of one loss")
                gone = Measure.of(
                    [discarded(one, kind) for one in runs], "", "part of the losses discarded as too late"
                )
                yield f"{table}.{kind}.discarded", gone
                yield f"{table}.{kind}.interval", Measure.of([self.interval(one) for one in runs], "s")
        for label in ("as chosen", RFC, *AROUND):
            for table in TABLES:
                for kind in KINDS:
                    runs = self.runs(label, table, kind)
                    if runs:
                        yield f"{table}.{kind}.{label}.mwt", Measure.of([waiting(one, kind) for one in runs], "s")
                        share = Measure.of([suppressed(one, kind) for one in runs])
                        yield f"{table}.{kind}.{label}.suppressed", share

    def interval(self, seen: Seen) -> float:
        """Mean time between RTCP packets of A5."""
        return CHOSEN.until_s / seen.members["A5"].packets

    def tables(self) -> Iterator[Table]:
        """What the choices do, and RFC 4585 in table 5."""
        made = dict(self.measures())
        rows: list[list[CellValue]] = []
        for label in ("as chosen", RFC, *AROUND):
            cells = [
                made.get(f"{table}.{kind}.{label}.{what}")
                for table in TABLES
                for kind in KINDS
                for what in (("mwt", "suppressed") if kind == "shared" else ("mwt",))
            ]
            if any(cell is not None for cell in cells):
                rows.append([label, *cells])
        heads = [
            f"table {table[-1]}, {what}"
            for table in TABLES
            for what in ("shared: waiting (s)", "shared: suppressed", "distributed: waiting (s)")
        ]
        title = "Tables 4 and 5 by RFC 4585, which makes nothing of the round-trip time, and with one choice changed"
        yield Table("choices-losses", title, ["choice", *heads], rows)

    def figures(self) -> Iterator[Drawing]:
        """Waiting times by agent."""
        made = dict(self.measures())
        for table, rtt in TABLES.items():
            knows = "with" if rtt else "without"
            sheet = Sheet(
                f"Table {table[-1]}", f"Waiting time {knows} round-trip times", "Agent", "Mean waiting time (s)"
            )
            for kind, losers in KINDS.items():
                names = {name: f"{table}/{name}/{kind}.mwt" for name in losers}
                sheet.bars(f"{kind} losses", {agent: made[name] for agent, name in names.items()})
                sheet.published(f"{kind} losses", list(names), [self.published[name] for name in names.values()])
            yield sheet.drawing(table, "Marks: the document's.")
