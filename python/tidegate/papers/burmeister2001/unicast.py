"""Sections 5.1 and 6.1: two agents, tables 1 to 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.paper import Drawing, Measure, Plan, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.papers.burmeister2001.groups import PACKET, UNTIL_S, Member, Seen, byte_error, media, rate, session
from tidegate.papers.burmeister2001.topologies import Cable
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario

CAPACITY, DELAY = "10Mbps", "50ms"
"""Of the link where it does not lose by congestion."""
LOSS = 0.01
"""Of packets, in table 2."""
AVP_AGENTS = ("-", "1", "1,2")
SENDERS = ("1", "1,2")


@dataclass(frozen=True)
class Row:
    """A row of tables 1 and 2."""

    bandwidth: str
    senders: str
    """`1` or `1,2`."""
    avp: str
    """Who uses AVP: `-`, `1` or `1,2`."""

    @property
    def name(self) -> str:
        """As paper.toml has it."""
        return f"{self.bandwidth}, senders {self.senders}, AVP {self.avp}"

    def scenario(self, loss: float, until_s: int = UNTIL_S, **link: Any) -> Scenario:
        """The run behind it."""
        size, bandwidth = PACKET[self.bandwidth], rate(self.bandwidth)
        cable = Cable(**{"capacity": CAPACITY, "delay": DELAY, "byte_error": byte_error(loss, size), **link})
        senders = self.senders.split(",")
        members = [
            {
                "name": f"A{number}",
                "profile": "avp" if number in self.avp else "avpf",
                "media": media(bandwidth, size, len(senders)) if number in senders else None,
            }
            for number in "12"
        ]
        return session("t2", "T-2", cable, bandwidth, members, until=f"{until_s}s")


ROWS = [Row(bandwidth, senders, avp) for bandwidth in PACKET for avp in AVP_AGENTS for senders in SENDERS]
"""Of table 1 and of table 2, in their order."""

QUEUE = 20
"""Packets that a congested link holds."""
CONGESTED = {
    ("2 Mbps", "avp"): 1.0,
    ("2 Mbps", "avpf"): 1.022,
    ("20 kbps", "avp"): 0.9925,
    ("20 kbps", "avpf"): 1.0,
}
"""The link's rate over the session bandwidth with which the counts of losses of table 3 come out."""
FAST_UNTIL_S = 600
"""Seconds of a run of tables 1 and 2 at 2 Mb/s, in which either agent sends fifty thousand RTCP packets."""
SCAN: Mapping[str, tuple[str, Sequence[float]]] = {
    "2 Mbps": ("avp", (0.999, 1.0, 1.001)),
    "20 kbps": ("avpf", (0.99, 1.0, 1.01, 1.02)),
}
"""Rates of congested links, over the session bandwidth, around those chosen."""
BANDWIDTHS = ("2 Mbps", "20 kbps")
LOSSES = ("0.001", "0.01", "cong.")
PROFILES = {"avp": "1,2", "avpf": "-"}
"""Of table 3."""
RARE = ("20 kbps", "0.001")
"""Where a run has some 70 losses, two of which make the mean waiting time."""
DRAWS = 100
"""So many runs a seed are made of it."""


def feedback(bandwidth: str, loss: str, profile: str) -> Scenario:
    """A run behind table 3: A1 sends, A2 receives."""
    row = Row(bandwidth, "1", PROFILES[profile])
    if loss != "cong.":
        return row.scenario(float(loss))
    capacity = f"{rate(bandwidth) * CONGESTED[bandwidth, profile]:.0f}bps"
    return row.scenario(0.0, capacity=capacity, queue=QUEUE)


VARIANTS = ("RFC 4585", "regular packets only", "dithering, l = 0.5", "dithering, l = 1")
"""Rules under which the waiting times of table 3 might have come about."""


def variant(name: str, bandwidth: str, loss: str) -> Scenario:
    """AVPF of table 3 by another rule."""
    size, session_rate = PACKET[bandwidth], rate(bandwidth)
    cable = Cable(CAPACITY, DELAY, byte_error(float(loss), size))
    members: list[dict[str, Any]] = [{"name": "A1", "media": media(session_rate, size)}, {"name": "A2"}]
    keys: dict[str, Any] = {}
    if name == "regular packets only":
        # AVP without its least interval waits for the next regular packet, and that comes as often as AVPF's
        keys = {"profile": "avp", "minimum": "1us"}
    elif name.startswith("dithering"):
        # with a third member, who only listens, feedback is delayed
        keys = {"avpf": {"l": float(name.rpartition(" ")[2])}}
        members.append({"name": "A3", "node": "A1"})
    return session("t2", "T-2", cable, session_rate, members, **keys)


PATIENCE = ("250ms", "500ms", "1s", "2s", "5s")
"""Values of max_feedback_delay, around the second of section 5.1."""
WHERE_PATIENCE_COUNTS = ("20 kbps", "0.01")
"""Where some feedback is not allowed (section 6.1)."""


def patient(delay: str) -> Scenario:
    """AVPF of table 3 with another max_feedback_delay."""
    bandwidth, loss = WHERE_PATIENCE_COUNTS
    made = feedback(bandwidth, loss, "avpf")
    return made.with_changes({"sessions.s.avpf.max_feedback_delay": delay})


def jobs(plan: Plan) -> Mapping[Any, Then[Run, Seen]]:
    """The runs."""
    made: dict[Any, tuple[Scenario, int]] = {}
    for seed in plan.seeds:
        for row in ROWS:
            until_s = FAST_UNTIL_S if row.bandwidth == "2 Mbps" else UNTIL_S
            made["table1", row.name, seed] = row.scenario(0.0, until_s), seed
            made["table2", row.name, seed] = row.scenario(LOSS, until_s), seed
        for bandwidth in BANDWIDTHS:
            for loss in LOSSES:
                for profile in PROFILES:
                    made["table3", bandwidth, loss, profile, seed] = feedback(bandwidth, loss, profile), seed
            for loss in LOSSES[:2]:
                for name in VARIANTS[1:] if seed == plan.seeds[0] else ():
                    made["variant", name, bandwidth, loss, seed] = variant(name, bandwidth, loss), seed
        for bandwidth, (profile, factors) in SCAN.items():
            for factor in factors if seed == plan.seeds[0] else ():
                capacity = f"{rate(bandwidth) * factor:.0f}bps"
                row = Row(bandwidth, "1", PROFILES[profile])
                made["capacity", bandwidth, factor, seed] = row.scenario(0.0, capacity=capacity, queue=QUEUE), seed
        for delay in PATIENCE:
            made["patience", delay, seed] = patient(delay), seed
        for draw in range(DRAWS):
            made["rare", draw, seed] = feedback(*RARE, "avpf"), 1000 * seed + draw
    return {key: Then(RunJob(scenario, seed), Seen.of) for key, (scenario, seed) in made.items()}


def _receiver(seen: Seen) -> Member:
    return seen.members["A2"]


def _name(bandwidth: str, loss: str) -> str:
    """A row of table 3 in paper.toml."""
    return f"{bandwidth}, {loss}"


@dataclass(frozen=True)
class Results:
    """What they came to."""

    plan: Plan
    done: Mapping[Any, Seen]
    published: Mapping[str, float]

    def over_seeds(self, *key: Any, take: Callable[[Seen], float | None], unit: str = "") -> Measure:
        """A number of the runs under a key."""
        keys = ((*key, seed) for seed in self.plan.seeds)
        return Measure.of([take(self.done[one]) for one in keys if one in self.done], unit)

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
        for table in ("table1", "table2"):
            most = 0.0
            for row in ROWS:
                for agent in ("A1", "A2"):
                    share = self.over_seeds(table, row.name, take=_share_of(agent), unit="%")
                    yield f"{table}/{row.name}/{agent}", share
                total = self.over_seeds(table, row.name, take=lambda one: one.share, unit="%")
                most = max(most, total.value.mean)
                yield f"{table}/{row.name}/sum", total
            yield f"{table}.most", Measure.exact(most, "%", "largest sum of a row")
        for bandwidth in BANDWIDTHS:
            for loss in LOSSES:
                for profile in PROFILES:
                    name = f"table3/{_name(bandwidth, loss)}/{profile}"
                    for what, take, unit in _STATISTICS:
                        yield f"{name}.{what}", self.statistic(bandwidth, loss, profile, take, unit)
            for loss in LOSSES[:2]:
                name = _name(bandwidth, loss)
                yield f"blocked/{name}", self.statistic(bandwidth, loss, "avpf", _blocked, "s")
                for rule in VARIANTS[1:]:
                    key = ("variant", rule, bandwidth, loss)
                    yield f"{rule}/{name}", self.over_seeds(*key, take=_waiting, unit="s")
        yield from self.scans()

    def scans(self) -> Iterator[tuple[str, Measure]]:
        """What other settings than those chosen do to table 3."""
        for delay in PATIENCE:
            for what, take, unit in _STATISTICS:
                yield f"patience/{delay}/{what}", self.over_seeds("patience", delay, take=take, unit=unit)
        for bandwidth, (_, factors) in SCAN.items():
            counts = [
                self.over_seeds("capacity", bandwidth, factor, take=lambda one: _receiver(one).sent).value.mean
                for factor in factors
            ]
            yield f"capacity/{bandwidth}/least", Measure.exact(min(counts), "losses")
            yield f"capacity/{bandwidth}/most", Measure.exact(max(counts), "losses")
        means = [_waiting(self.done["rare", draw, seed]) for seed in self.plan.seeds for draw in range(DRAWS)]
        spread = float(np.std([mean for mean in means if mean is not None], ddof=1))
        yield "rare.sigma", Measure.exact(spread, "s", "standard deviation of single runs")

    def statistic(
        self, bandwidth: str, loss: str, profile: str, take: Callable[[Seen], float | None], unit: str
    ) -> Measure:
        """A number of table 3."""
        if (bandwidth, loss, profile) != (*RARE, "avpf"):
            return self.over_seeds("table3", bandwidth, loss, profile, take=take, unit=unit)
        found = [[self.done["rare", draw, seed] for draw in range(DRAWS)] for seed in self.plan.seeds]
        # a mean of waiting times is one over losses, the others are over runs
        weigh: Callable[[Seen], float] = (lambda one: _receiver(one).sent) if unit == "s" else lambda _: 1.0
        return Measure.of(
            [
                math.fsum(weigh(one) * (take(one) or 0.0) for one in draws) / math.fsum(map(weigh, draws))
                for draws in found
            ],
            unit,
        )

    def tables(self) -> Iterator[Table]:
        """Table 3 under other rules."""
        made = dict(self.measures())
        rows: list[list[CellValue]] = []
        for bandwidth in BANDWIDTHS:
            for loss in LOSSES[:2]:
                name = _name(bandwidth, loss)
                others: list[CellValue] = [made[f"{rule}/{name}"] for rule in VARIANTS[1:]]
                rows.append([name, made[f"table3/{name}/avpf.mwt"], made[f"blocked/{name}"], *others])
        heads = [
            "session bandwidth, loss",
            f"{VARIANTS[0]} (s)",
            "at most, in closed form (s)",
            *(f"{one} (s)" for one in VARIANTS[1:]),
        ]
        yield Table("waiting-rules", "Mean waiting time of table 3 under other rules", heads, rows)
        heads = ["max_feedback_delay", "sent (losses)", "discarded (losses)", "mean waiting time (s)"]
        rows = [[delay, *(made[f"patience/{delay}/{what}"] for what, *_ in _STATISTICS)] for delay in PATIENCE]
        title = "Section 6.1: what max_feedback_delay trades, AVPF at 20 kb/s with a loss of 0.01"
        yield Table("patience", title, heads, rows)

    def figures(self) -> Iterator[Drawing]:
        """Table 3's waiting times."""
        made = dict(self.measures())
        sheet = Sheet(
            "Table 3",
            "Waiting time from detection to sending",
            "Session bandwidth, packet loss",
            "Mean waiting time (s)",
            ylog=True,
        )
        for profile in PROFILES:
            rows = {f"{b}\n{loss}": f"table3/{_name(b, loss)}/{profile}.mwt" for b in BANDWIDTHS for loss in LOSSES}
            sheet.bars(profile.upper(), {row: made[name] for row, name in rows.items()})
            sheet.published(profile.upper(), list(rows), [self.published[name] for name in rows.values()])
        yield sheet.drawing("table3", "Marks: the document's.")


def _share_of(agent: str) -> Callable[[Seen], float]:
    return lambda seen: seen.members[agent].share


def _waiting(seen: Seen) -> float | None:
    return _receiver(seen).waiting_s


def _blocked(seen: Seen) -> float:
    """What the mean waiting time by RFC 4585 is at most, where losses are rare and come at random, in closed form.

    A loss waits only if it finds an early packet sent and the next regular one, two intervals T after the last, not
    yet. That stretch begins at a random time x of an interval and lasts L = 2 T - x, so that E[L^2] = 7 T^2 / 3; with
    losses at a rate r, what is left of it has a mean over all losses of r E[L^2] / 2. It is less where the next loss
    cannot be seen for two packets, or would wait longer than max_feedback_delay. To that come those of the first
    interval, which is up to 1.5 / (e - 3/2) s long since neither knows of the other (RFC 4585 section 3.4).
    """
    member = _receiver(seen)
    interval = UNTIL_S / member.packets
    first = 1.5 / (math.e - 1.5)
    return member.losses / UNTIL_S * 7 * interval**2 / 6 + first**2 / 2 / UNTIL_S


_STATISTICS: Sequence[tuple[str, Callable[[Seen], float | None], str]] = (
    ("sent", lambda seen: _receiver(seen).sent, "losses"),
    ("disc", lambda seen: _receiver(seen).discarded, "losses"),
    ("mwt", _waiting, "s"),
)
"""Columns of table 3."""
