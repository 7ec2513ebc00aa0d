"""Sections 5.1 and 6.1: two agents, tables 1 to 3."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tidegate.paper import Drawing, Measure, Plan, Quantity, Sheet, Table, Then
from tidegate.papers.burmeister2001.groups import (
    PACKET,
    UNTIL_S,
    Member,
    Part,
    SessionSummary,
    byte_error,
    media,
    rate,
    session,
)
from tidegate.papers.burmeister2001.topologies import Cable
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario

CAPACITY, DELAY = "10Mbps", "50ms"
"""Capacity and delay of a link that is not congested."""
LOSS = 0.01
"""Loss rate of packets in table 2."""
AVP_AGENTS = ("-", "1", "1,2")
SENDERS = ("1", "1,2")


@dataclass(frozen=True)
class Row:
    """A row of tables 1 and 2."""

    bandwidth: str
    senders: str
    """`1` or `1,2`."""
    avp: str
    """Agents that use AVP: `-`, `1` or `1,2`."""

    @property
    def name(self) -> str:
        """The row's name in paper.toml."""
        return f"{self.bandwidth}, senders {self.senders}, AVP {self.avp}"

    def scenario(self, loss: float, until_s: int = UNTIL_S, **link: Any) -> Scenario:
        """Scenario of the row; `link` has keys of its cable."""
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

    def congested(self, factor: float) -> Scenario:
        """The scenario over a link that loses by congestion: its rate is the session's times a factor."""
        return self.scenario(0.0, capacity=f"{rate(self.bandwidth) * factor:.0f}bps", queue=QUEUE)


ROWS = [Row(bandwidth, senders, avp) for bandwidth, avp, senders in product(PACKET, AVP_AGENTS, SENDERS)]
"""Rows of tables 1 and 2, in the order of the document."""

QUEUE = 20
"""Packets that a congested link's queue holds."""
CONGESTED = {
    ("2 Mbps", "avp"): 1.0,
    ("2 Mbps", "avpf"): 1.022,
    ("20 kbps", "avp"): 0.9925,
    ("20 kbps", "avpf"): 1.0,
}
"""Rate of the link over the session bandwidth at which the numbers of losses of table 3 come out."""
FAST_UNTIL_S = 600
"""Duration in seconds of a run of tables 1 and 2 at 2 Mb/s; each agent sends fifty thousand RTCP packets in it."""
SCAN: Mapping[str, tuple[str, Sequence[float]]] = {
    "2 Mbps": ("avp", (0.999, 1.0, 1.001)),
    "20 kbps": ("avpf", (0.99, 1.0, 1.01, 1.02)),
}
"""Rates of congested links, over the session bandwidth, around those chosen."""
BANDWIDTHS = ("2 Mbps", "20 kbps")
LOSSES = ("0.001", "0.01", "cong.")
PROFILES = {"avp": "1,2", "avpf": "-"}
"""Agents that use AVP, by profile of table 3."""
RARE = ("20 kbps", "0.001")
"""Cell of table 3 whose runs have about 70 losses, of which two make up the mean waiting time."""
DRAWS = 100
"""Runs of that cell for each seed."""


def feedback(bandwidth: str, loss: str, profile: str) -> Scenario:
    """Scenario of table 3: A1 sends, A2 receives."""
    row = Row(bandwidth, "1", PROFILES[profile])
    return row.congested(CONGESTED[bandwidth, profile]) if loss == "cong." else row.scenario(float(loss))


VARIANTS = ("RFC 4585", "regular packets only", "dithering, l = 0.5", "dithering, l = 1")
"""Rules that might have given the waiting times of table 3."""


def variant(name: str, bandwidth: str, loss: str) -> Scenario:
    """Scenario of table 3 with AVPF under another rule."""
    size, session_rate = PACKET[bandwidth], rate(bandwidth)
    cable = Cable(CAPACITY, DELAY, byte_error(float(loss), size))
    members: list[dict[str, Any]] = [{"name": "A1", "media": media(session_rate, size)}, {"name": "A2"}]
    keys: dict[str, Any] = {}
    if name == "regular packets only":
        # AVP without a minimum interval waits for the next regular packet, which comes as often as AVPF's
        keys = {"profile": "avp", "minimum": "1us"}
    elif name.startswith("dithering"):
        # with a third member, which only listens, feedback is delayed
        keys = {"avpf": {"l": float(name.rpartition(" ")[2])}}
        members.append({"name": "A3", "node": "A1"})
    return session("t2", "T-2", cable, session_rate, members, **keys)


PATIENCE = ("250ms", "500ms", "1s", "2s", "5s")
"""Values of max_feedback_delay, around the second of section 5.1."""
PATIENCE_CELL = ("20 kbps", "0.01")
"""Cell of table 3 in which some feedback is not allowed (section 6.1)."""


def with_max_feedback_delay(delay: str) -> Scenario:
    """Scenario of table 3 with AVPF and another max_feedback_delay."""
    bandwidth, loss = PATIENCE_CELL
    scenario = feedback(bandwidth, loss, "avpf")
    return scenario.with_changes({"sessions.s.avpf.max_feedback_delay": delay})


def jobs(plan: Plan) -> Mapping[Any, Then[Run, SessionSummary]]:
    """Jobs of tables 1 to 3."""
    scenarios: dict[Any, tuple[Scenario, int]] = {}
    for seed in plan.seeds:
        for row in ROWS:
            until_s = FAST_UNTIL_S if row.bandwidth == "2 Mbps" else UNTIL_S
            scenarios["table1", row.name, seed] = row.scenario(0.0, until_s), seed
            scenarios["table2", row.name, seed] = row.scenario(LOSS, until_s), seed
        for bandwidth in BANDWIDTHS:
            for loss, profile in product(LOSSES, PROFILES):
                scenarios["table3", bandwidth, loss, profile, seed] = feedback(bandwidth, loss, profile), seed
            for loss, name in product(LOSSES[:2], VARIANTS[1:]) if seed == plan.seeds[0] else ():
                scenarios["variant", name, bandwidth, loss, seed] = variant(name, bandwidth, loss), seed
        for bandwidth, (profile, factors) in SCAN.items() if seed == plan.seeds[0] else ():
            row = Row(bandwidth, "1", PROFILES[profile])
            for factor in factors:
                scenarios["capacity", bandwidth, factor, seed] = row.congested(factor), seed
        for delay in PATIENCE:
            scenarios["patience", delay, seed] = with_max_feedback_delay(delay), seed
        for draw in range(DRAWS):
            scenarios["rare", draw, seed] = feedback(*RARE, "avpf"), 1000 * seed + draw
    return {key: Then(RunJob(scenario, seed), SessionSummary.from_run) for key, (scenario, seed) in scenarios.items()}


def _receiver(run: SessionSummary) -> Member:
    return run.members["A2"]


def _row_name(bandwidth: str, loss: str) -> str:
    """Name of a row of table 3 in paper.toml."""
    return f"{bandwidth}, {loss}"


def _waiting_s(run: SessionSummary) -> float:
    waiting_s = _receiver(run).waiting_s
    return math.nan if waiting_s is None else waiting_s


def _waiting_bound_s(run: SessionSummary) -> float:
    """Upper bound of the mean waiting time by RFC 4585, for rare and random losses, in closed form.

    A loss waits only if an early packet has been sent and the next regular one has not; that one follows two intervals
    T after the last. Such a period begins at a random time x of an interval and lasts L = 2 T - x, so that
    E[L^2] = 7 T^2 / 3. With losses at a rate r, the rest of the period has a mean over all losses of r E[L^2] / 2. The
    mean is smaller if the next loss cannot be seen for two packets, or would wait longer than max_feedback_delay. The
    losses of the first interval are added; it is up to 1.5 / (e - 3/2) s long, because neither agent knows of the
    other yet (RFC 4585 section 3.4).
    """
    member = _receiver(run)
    interval = UNTIL_S / member.packets
    first = 1.5 / (math.e - 1.5)
    return member.losses / UNTIL_S * 7 * interval**2 / 6 + first**2 / 2 / UNTIL_S


WAITING = Quantity(_waiting_s, "s", head="mean waiting time (s)")
BLOCKED = Quantity(_waiting_bound_s, "s")
STATISTICS: Mapping[str, Quantity[SessionSummary]] = {
    "sent": Quantity(lambda run: _receiver(run).sent, "losses", head="sent (losses)"),
    "disc": Quantity(lambda run: _receiver(run).discarded, "losses", head="discarded (losses)"),
    "mwt": WAITING,
}
"""Columns of table 3."""


class UnicastResults(Part):
    """Results of tables 1 to 3."""

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for table in ("table1", "table2"):
            sums = []
            for row in ROWS:
                runs = self.runs[table, row.name]
                for agent in ("A1", "A2"):
                    shares = [run.members[agent].share for run in runs]
                    yield f"{table}/{row.name}/{agent}", Measure.of(shares, "%")
                sums.append([run.share for run in runs])
                yield f"{table}/{row.name}/sum", Measure.of(sums[-1], "%")
            largest = [max(of_seed) for of_seed in zip(*sums, strict=True)]
            yield f"{table}.most", Measure.median(largest, "%", "maximum over rows of the sum")
        for bandwidth in BANDWIDTHS:
            for loss, profile, (name, quantity) in product(LOSSES, PROFILES, STATISTICS.items()):
                statistic = self.statistic(bandwidth, loss, profile, quantity)
                yield f"table3/{_row_name(bandwidth, loss)}/{profile}.{name}", statistic
            for loss in LOSSES[:2]:
                row_name = _row_name(bandwidth, loss)
                yield f"blocked/{row_name}", self.statistic(bandwidth, loss, "avpf", BLOCKED)
                for rule in VARIANTS[1:]:
                    yield f"{rule}/{row_name}", WAITING.over(self.runs["variant", rule, bandwidth, loss])
        for delay, (name, quantity) in product(PATIENCE, STATISTICS.items()):
            yield f"patience/{delay}/{name}", quantity.over(self.runs["patience", delay])
        for bandwidth, (_, factors) in SCAN.items():
            sent = [_receiver(self.runs["capacity", bandwidth, factor][0]).sent for factor in factors]
            yield f"capacity/{bandwidth}/least", Measure.exact(min(sent), "losses")
            yield f"capacity/{bandwidth}/most", Measure.exact(max(sent), "losses")
        means = [_waiting_s(run) for draws in self.rare for run in draws]
        spread = float(np.std([mean for mean in means if not math.isnan(mean)], ddof=1))
        yield "rare.sigma", Measure.exact(spread, "s", "standard deviation of the mean waiting time of single runs")

    @property
    def rare(self) -> list[list[SessionSummary]]:
        """Runs of the cell with the fewest losses, a list for each seed."""
        return [[self.done["rare", draw, seed] for draw in range(DRAWS)] for seed in self.plan.seeds]

    def statistic(self, bandwidth: str, loss: str, profile: str, quantity: Quantity[SessionSummary]) -> Measure:
        """A number of table 3."""
        if (bandwidth, loss, profile) != (*RARE, "avpf"):
            return quantity.over(self.runs["table3", bandwidth, loss, profile])
        means = []
        for draws in self.rare:
            # waiting times are averaged over losses, other numbers over runs
            weights = [_receiver(run).sent if quantity.unit == "s" else 1.0 for run in draws]
            values = [0.0 if math.isnan(value) else value for value in map(quantity.take, draws)]
            means.append(math.fsum(map(operator.mul, weights, values)) / math.fsum(weights))
        return Measure.of(means, quantity.unit)

    def tables(self) -> Iterator[Table]:
        """Waiting times of table 3 under other rules, and the effect of max_feedback_delay."""
        measures = dict(self.measures())
        names = [_row_name(bandwidth, loss) for bandwidth, loss in product(BANDWIDTHS, LOSSES[:2])]
        rows = (
            {
                "session bandwidth, loss": name,
                f"{VARIANTS[0]} (s)": measures[f"table3/{name}/avpf.mwt"],
                "upper bound in closed form (s)": measures[f"blocked/{name}"],
                **{f"{rule} (s)": measures[f"{rule}/{name}"] for rule in VARIANTS[1:]},
            }
            for name in names
        )
        yield Table.of("waiting-rules", "Mean waiting time of table 3 under other rules", rows)
        runs = {delay: self.runs["patience", delay] for delay in PATIENCE}
        title = "Section 6.1: effects of max_feedback_delay on AVPF at 20 kb/s with a loss of 0.01"
        yield Table.of_quantities("patience", title, "max_feedback_delay", runs, STATISTICS.values())

    def figures(self) -> Iterator[Drawing]:
        """Waiting times of table 3."""
        measures = dict(self.measures())
        title, axis = "Waiting time from detection to sending", "Mean waiting time (s)"
        sheet = Sheet("Table 3", title, "Session bandwidth, packet loss", axis, ylog=True)
        for profile in PROFILES:
            rows = {
                f"{b}\n{loss}": f"table3/{_row_name(b, loss)}/{profile}.mwt" for b, loss in product(BANDWIDTHS, LOSSES)
            }
            sheet.bars(profile.upper(), {row: measures[name] for row, name in rows.items()})
            sheet.published(profile.upper(), list(rows), [self.published[name] for name in rows.values()])
        yield sheet.drawing("table3", "Markers: values of the document.")
