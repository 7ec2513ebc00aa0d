"""All of the document: what needs no TFRC here, the rest in `tfrc` and `improvements`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tidegate import paper
from tidegate.paper import Drawing, Measure, Outcome, Plan, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.paper.reading import load
from tidegate.papers.vardhan import improvements, scenarios, tfrc
from tidegate.papers.vardhan.counts import Count, jain
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario
from tidegate.units import Rate

RATES = {f"{mbps:g} Mb/s": f"{mbps * 1000:g}kbps" for mbps in (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4)}
"""Rows of table 1."""
COLUMNS = ("tcp.sent", "tcp.received", "tcp.pdr", "udp.sent", "udp.received", "udp.pdr")
"""Its columns."""
UDP_TIME_S = 99.9
"""UDP of table 1 sends from 0.1 to 100 s."""
LATEST_START_MS = 200.0
"""Seeds move TCP's start between 0 and this; the document does not say when it is."""
JITTERS = ("off", "0.1ms", "auto")
"""Sending jitter in the experiment on phases."""

_BEFORE, _MIDDLE, _AFTER = scenarios.TABLE_1.delays


def _around() -> Iterator[tuple[str, dict[str, Any]]]:
    """Settings of table 1 that the document does not state, one changed at a time."""
    yield "as found", {}
    for packets in (10, 20, 30, 70, 100):
        yield f"queue of {packets} packets", {"network": replace(scenarios.TABLE_1, queue=packets)}
    for delay in ("1ms", "5ms", "20ms", "50ms"):
        yield f"bottleneck of {delay}", {"network": replace(scenarios.TABLE_1, delays=(_BEFORE, delay, _AFTER))}
    for start in ("0ms", "40ms", "120ms", "160ms", "200ms"):
        yield f"TCP from {start}", {"tcp_start": start}
    for algorithm in ("reno", "newreno", "sack", "cubic"):
        yield f"TCP is {algorithm}", {"algorithm": algorithm}
    for window in (10, 50, 1000):
        yield f"window of {window} packets", {"window": window}
    yield "least timeout of 1s", {"min_rto": "1s"}


SCAN: Mapping[str, Mapping[str, Any]] = dict(_around())
"""What the sensitivity table has a row for."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a run."""

    counts: Mapping[str, Count]
    """By flow, and of all flows as `all`."""
    goodput: Mapping[str, float]
    """In bit/s."""
    digest: str

    @classmethod
    def of(cls, run: Run) -> Kept:
        """Of a run."""
        counts = {flow: Count.of(run, [flow]) for flow in run.flows}
        goodput = {flow: float(run.metrics(flow)["goodput_bps"] or 0.0) for flow in run.flows}
        return cls({**counts, "all": Count.of(run)}, goodput, run.digest)

    def column(self, name: str) -> float:
        """A column of table 1."""
        flow, what = name.split(".")
        return float(getattr(self.counts[flow], what))

    @property
    def jain(self) -> float:
        """Jain's index of the packets that TCP and UDP get through: they are of one size."""
        return jain(self.counts["tcp"].received, self.counts["udp"].received)


Done = Mapping[Any, Kept]


def _moved(seed: int, latest_ms: float, count: int) -> tuple[str, ...]:
    """Starts of so many flows, by the seed."""
    return tuple(f"{start:.3f}ms" for start in np.random.default_rng(seed).uniform(0.0, latest_ms, count))


class Experiment(paper.Experiment):
    """All of the document."""

    quick_seeds = 10
    full_seeds = 30

    def jobs(self, plan: Plan) -> Mapping[Any, Then[Run, Any]]:
        """The runs: without jitter one a row, since there is no luck in them."""
        runs: dict[Any, tuple[Scenario, int]] = {}
        for (label, changes), (row, rate) in ((one, row) for one in SCAN.items() for row in RATES.items()):
            runs["scan", label, row] = scenarios.tcp_beside_udp(rate, **changes), 1
        for row, rate in RATES.items():
            for seed in plan.seeds:
                (start,) = _moved(seed, LATEST_START_MS, 1)
                for jitter in ("off", "auto"):
                    made = scenarios.tcp_beside_udp(rate, tcp_start=start, sending_jitter=jitter)
                    runs["luck", jitter, row, seed] = made, seed
        for row, (rate, window) in tfrc.ROWS.items():
            for name, network in (("found", scenarios.TABLE_2), ("stated", scenarios.STATED_2)):
                other = scenarios.unresponsive(rate)
                runs["table2", name, row] = scenarios.tcp_beside(other, window, network=network), 1
        for time in tfrc.VOICE_TIMES:
            runs["table3", "found", time] = scenarios.voice(f"{time}s"), 1
            stated = scenarios.voice(f"{time}s", network=scenarios.STATED_3, rates=("64kbps",))
            runs["table3", "stated", time] = stated, 1
        for time in tfrc.VIDEO_TIMES:
            runs["table4", "found", time] = scenarios.video(f"{time}s"), 1
            runs["table4", "stated", time] = scenarios.video(f"{time}s", flows=1), 1
        for jitter in JITTERS:
            for seed in plan.seeds:
                begin, later = _moved(seed, 1000.0, 2)
                runs["phases", jitter, seed] = scenarios.unequal_round_trips(jitter, (begin, later)), seed
                runs["twins", jitter, seed] = scenarios.video(scenarios.END, sending_jitter=jitter), seed
        done = {key: Then(RunJob(one, seed), Kept.of) for key, (one, seed) in runs.items()}
        return {**done, **tfrc.jobs(plan.seeds), **improvements.jobs(plan.seeds)}

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Their counts, ratios and shares."""
        results = _Results(plan.seeds, done)
        rate_control = tfrc.Results(plan.seeds, done, results.published)
        rules = improvements.Results(plan.seeds, done)
        return Outcome(
            {**results.measures, **dict(rate_control.measures()), **dict(rules.measures())},
            tables=[
                results.sensitivity(),
                results.luck(),
                results.stated(),
                results.phases(),
                results.twins(),
                *rate_control.tables(),
                rules.table(),
            ],
            figures=[
                *results.figures_of_table_1(),
                results.figure_of_scan(),
                *rate_control.figures(),
                *results.figures_of_times(rate_control.by_time()),
                rules.figure(),
            ],
            notes=[
                "No sending jitter but where a table says so: those runs have no luck, and one is enough.",
                "Seeds move starts: TCP's in the statements on table 1, TFRC's in table 2.",
            ],
            digests={", ".join(map(str, key)): one.digest for key, one in done.items()},
        )


@dataclass(frozen=True)
class _Results:
    """What the runs came to."""

    seeds: Sequence[int]
    done: Done

    def over_seeds(self, *key: str, take: Callable[[Kept], float], unit: str = "") -> Measure:
        """A number of the runs under a key, over the seeds."""
        return Measure.of([take(self.done[(*key, seed)]) for seed in self.seeds], unit)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """All that claims speak of."""
        made: dict[str, Measure] = {}
        for row, rate in RATES.items():
            found = self.done["scan", "as found", row]
            for name in COLUMNS:
                unit = "" if name.endswith("pdr") else "packets"
                seen = [self.done["scan", label, row].column(name) for label in SCAN]
                made[f"table1/{row}/{name}"] = Measure.exact(found.column(name), unit)
                made[f"scan/{row}/{name}/least"] = Measure.exact(float(np.nanmin(seen)), unit)
                made[f"scan/{row}/{name}/most"] = Measure.exact(float(np.nanmax(seen)), unit)
            for flow in ("tcp", "udp"):
                made[f"table1/{row}/{flow}.delay"] = Measure.exact(found.counts[flow].delay_ms, "ms")
            made[f"table1/{row}/udp.offered"] = Measure.exact(Rate.parse(rate) * UDP_TIME_S / 8000, "packets")
            for jitter in ("off", "auto"):
                made[f"luck.{jitter}/{row}/jain"] = self.over_seeds("luck", jitter, row, take=lambda one: one.jain)
                made[f"luck.{jitter}/{row}/tcp.received"] = self.over_seeds(
                    "luck", jitter, row, take=lambda one: one.column("tcp.received"), unit="packets"
                )
        steady = [
            made[f"table1/{row}/udp.sent"].value.mean / made[f"table1/{row}/udp.offered"].value.mean for row in RATES
        ]
        made["udp.steady.least"] = Measure.exact(min(steady), "", "UDP's packets sent over those offered, least row")
        made["udp.steady.most"] = Measure.exact(max(steady), "", "UDP's packets sent over those offered, largest row")
        for table, times in (("table3", tfrc.VOICE_TIMES), ("table4", tfrc.VIDEO_TIMES)):
            for time in times:
                count = self.done[table, "found", time].counts["all"]
                for name, value in (("sent", count.sent), ("received", count.received), ("drop", count.dropped)):
                    made[f"{table}/{time}/udp.{name}"] = Measure.exact(value, "packets")
        for table, name, time in (("table3", "stated3", "100"), ("table4", "stated4", "100")):
            count = self.done[table, "stated", time].counts["all"]
            for what, value in (("sent", count.sent), ("drop", count.dropped)):
                made[f"{name}.{what}"] = Measure.exact(value, "packets", "with the settings that are stated")
        for jitter in JITTERS:
            made[f"phases/{jitter}/share"] = self.over_seeds("phases", jitter, take=_share_of_short, unit="%")
            for flow in ("udp-1", "udp-2"):
                made[f"twins/{jitter}/{flow}"] = self.over_seeds("twins", jitter, take=_dropped(flow), unit="packets")
        return made

    @cached_property
    def published(self) -> dict[str, float]:
        """The document's numbers by the measure that each is held against."""
        claims = load(Path(__file__).parent).claims
        return {one.measure: one.published for one in claims if one.measure and isinstance(one.published, int | float)}

    # --- tables ---------------------------------------------------------------------------------------

    def sensitivity(self) -> Table:
        """Table 1 under settings that the document does not state."""
        rows: list[list[CellValue]] = [
            [label, *(self.done["scan", label, row].counts["tcp"].received for row in RATES)] for label in SCAN
        ]
        published: list[CellValue] = [
            "the document",
            *(int(self.published[f"table1/{row}/tcp.received"]) for row in RATES),
        ]
        title = "TCP packets received beside UDP at each rate, one setting changed at a time"
        return Table("sensitivity", title, ["setting", *RATES], [published, *rows])

    def luck(self) -> Table:
        """Table 1 with starts that seeds move, without and with sending jitter."""
        rows: list[list[CellValue]] = [
            [row, *(self.measures[f"luck.{jitter}/{row}/{what}"] for jitter in ("off", "auto") for what in _LUCK)]
            for row in RATES
        ]
        heads = [f"{what}, jitter {jitter}" for jitter in ("off", "auto") for what in _LUCK.values()]
        title = "Table 1 with TCP starting at any time in the first 200 ms"
        return Table("luck", title, ["UDP rate", *heads], rows)

    def stated(self) -> Table:
        """What the document's own settings give, where others print its tables."""
        rows: list[list[CellValue]] = []
        for row in tfrc.ROWS:
            for flow in ("tcp", "other"):
                cells = [_counts(self.done["table2", name, row].counts[flow]) for name in ("found", "stated")]
                rows.append(["Table 2, TCP" if flow == "tcp" else "Table 2, UDP in TFRC's place", row, *cells])
        for table, times in (("table3", tfrc.VOICE_TIMES), ("table4", tfrc.VIDEO_TIMES)):
            for time in times:
                cells = [_counts(self.done[table, name, time].counts["all"]) for name in ("found", "stated")]
                rows.append([f"Table {table[-1]}, UDP", f"{time} s", *cells])
        title = "Packets sent, received and dropped with the settings found and with those stated"
        return Table("stated", title, ["table", "row", "found", "stated"], rows)

    def phases(self) -> Table:
        """Unfairness that is an artefact of senders in step."""
        rows: list[list[CellValue]] = [[jitter, self.measures[f"phases/{jitter}/share"]] for jitter in JITTERS]
        title = "Two CUBIC flows with round trips of 40 and 120 ms over 10 Mb/s and 33 packets, seconds 20 to 600"
        return Table("phases", title, ["sending jitter", "goodput of the flow with 40 ms, share (%)"], rows)

    def twins(self) -> Table:
        """Who of two alike loses."""
        rows: list[list[CellValue]] = [
            [jitter, *(self.measures[f"twins/{jitter}/{flow}"] for flow in ("udp-1", "udp-2"))] for jitter in JITTERS
        ]
        title = "Packets that each of table 4's two UDP flows loses in 100 s"
        return Table("twins", title, ["sending jitter", "first flow (packets)", "second flow (packets)"], rows)

    # --- figures --------------------------------------------------------------------------------------

    def figures_of_table_1(self) -> Iterator[Drawing]:
        """Figures 2 and 3."""
        x = [float(row.split()[0]) for row in RATES]
        pdr = Sheet("Figure 2", "Packet delivery ratio of TCP and UDP", _X, "Packet delivery ratio", ylim=(0, 1.05))
        delay = Sheet("Figure 3", "End-to-end delay of TCP and UDP", _X, "End-to-end delay (ms)", ylim=(0, None))
        for flow in ("tcp", "udp"):
            label = flow.upper()
            pdr.series(label, x, [self.measures[f"table1/{row}/{flow}.pdr"].value.mean for row in RATES])
            pdr.published(label, x, [self.published[f"table1/{row}/{flow}.pdr"] for row in RATES])
            delay.series(label, x, [self.done["scan", "as found", row].counts[flow].delay_ms for row in RATES])
        said = "The document calls its x axis the bandwidth of the bottleneck, which stays at 2 Mb/s."
        yield pdr.drawing("figure2", f"Marks: table 1. {said}")
        yield delay.drawing("figure3", said)

    def figure_of_scan(self) -> Drawing:
        """Table 1 within what the document leaves open."""
        x = [float(row.split()[0]) for row in RATES]
        sheet = Sheet("Table 1", "TCP beside UDP under all settings tried", _X, "TCP packets received", ylog=True)
        for label, end in (("least", "least"), ("most", "most")):
            values = [self.measures[f"scan/{row}/tcp.received/{end}"].value.mean for row in RATES]
            sheet.series(label, x, [value or np.nan for value in values])
        sheet.series("as found", x, [self.measures[f"table1/{row}/tcp.received"].value.mean for row in RATES])
        sheet.published("table 1", x, [self.published[f"table1/{row}/tcp.received"] for row in RATES])
        return sheet.drawing("sensitivity", "A line ends where not one packet arrives.")

    def figures_of_times(self, tfrc_counts: Mapping[str, Mapping[str, Count]]) -> Iterator[Drawing]:
        """Figures 6 to 9."""
        for first, table, times in ((6, "table3", tfrc.VOICE_TIMES), (8, "table4", tfrc.VIDEO_TIMES)):
            seen: dict[str, dict[str, Count]] = {
                "UDP": {time: self.done[table, "found", time].counts["all"] for time in times}
            }
            seen["TFRC"] = dict(tfrc_counts[table])
            who = " and ".join(reversed(seen))
            ratio = Sheet(f"Figure {first}", f"Packet loss ratio of {who}", "Simulation time (s)", "Packet loss ratio")
            delay = Sheet(
                f"Figure {first + 1}", f"End-to-end delay of {who}", "Simulation time (s)", "End-to-end delay (ms)"
            )
            for label, counts in seen.items():
                ratio.bars(label, {time: Measure.exact(one.loss_ratio) for time, one in counts.items()})
                ratio.published(label, times, [self._printed_loss(table, time, label.lower()) for time in times])
                delay.bars(label, {time: Measure.exact(one.delay_ms) for time, one in counts.items()})
            yield ratio.drawing(f"figure{first}", "Marks: from the document's table.")
            yield delay.drawing(f"figure{first + 1}", "From wire to arrival; a table has what waits at the sender.")

    def _printed_loss(self, table: str, time: str, flow: str) -> float:
        received, dropped = (self.published[f"{table}/{time}/{flow}.{name}"] for name in ("received", "drop"))
        return dropped / (received + dropped)


_X = "UDP rate (Mb/s)"
_LUCK = {"tcp.received": "TCP packets", "jain": "Jain's index"}


def _share_of_short(one: Kept) -> float:
    short, long = one.goodput["short"], one.goodput["long"]
    return 100 * short / (short + long)


def _dropped(flow: str) -> Callable[[Kept], float]:
    return lambda one: one.counts[flow].dropped


def _counts(one: Count) -> str:
    return f"{one.sent}, {one.received}, {one.dropped}"
