"""Experiment of the whole document; its parts with TFRC are in `tfrc` and `improvements`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tidegate import paper
from tidegate.paper import Drawing, Measure, Outcome, Plan, Quantity, Sheet, Table, Then, group_seeds
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
"""Columns of table 1."""
UDP_TIME_S = 99.9
"""Time in which UDP of table 1 sends: from 0.1 to 100 s."""
JITTERS = ("off", "0.1ms", "auto")
"""Values of sending jitter in the experiment on phases."""

_BEFORE, _MIDDLE, _AFTER = scenarios.TABLE_1.delays


def _around() -> Iterator[tuple[str, dict[str, Any]]]:
    """Settings of table 1 that the document does not state, one changed at a time."""
    yield "as found", {}
    for packets in (10, 20, 30, 70, 100):
        yield f"queue of {packets} packets", {"network": replace(scenarios.TABLE_1, queue=packets)}
    for delay in ("1ms", "5ms", "20ms", "50ms"):
        yield f"bottleneck with {delay} delay", {"network": replace(scenarios.TABLE_1, delays=(_BEFORE, delay, _AFTER))}
    for start in ("0ms", "40ms", "120ms", "160ms", "200ms"):
        yield f"TCP from {start}", {"tcp_start": start}
    for algorithm in ("reno", "newreno", "sack", "cubic"):
        yield f"TCP is {algorithm}", {"algorithm": algorithm}
    for window in (10, 50, 1000):
        yield f"window of {window} packets", {"window": window}
    yield "least timeout of 1s", {"min_rto": "1s"}


SCAN: Mapping[str, Mapping[str, Any]] = dict(_around())
"""Rows of the sensitivity table: changes of settings by label."""


@dataclass(frozen=True)
class FlowCounts:
    """Counts and goodput of a run's flows."""

    counts: Mapping[str, Count]
    """Counts by flow, and of all flows together as `all`."""
    goodput: Mapping[str, float]
    """Goodput by flow, bit/s."""
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> FlowCounts:
        """Counts the packets of each flow of a run."""
        counts = {flow: Count.from_run(run, [flow]) for flow in run.flows}
        goodput = {flow: float(run.metrics(flow)["goodput_bps"] or 0.0) for flow in run.flows}
        return cls({**counts, "all": Count.from_run(run)}, goodput, run.digest)

    def column(self, name: str) -> float:
        """A column of table 1."""
        flow, field = name.split(".")
        return float(getattr(self.counts[flow], field))

    @property
    def jain(self) -> float:
        """Jain's index of the received packets of TCP and UDP, which have equal sizes."""
        return jain(self.counts["tcp"].received, self.counts["udp"].received)


Done = Mapping[Any, FlowCounts]

_X = "UDP rate (Mb/s)"
_TIMES = [*product(["table3"], tfrc.VOICE_TIMES), *product(["table4"], tfrc.VIDEO_TIMES)]
_TWINS = ("udp-1", "udp-2")
_START_JITTERS = ("off", "auto")
_START_QUANTITIES: Mapping[str, Quantity[FlowCounts]] = {
    "jain": Quantity(lambda run: run.jain, head="Jain's index"),
    "tcp.received": Quantity(lambda run: run.column("tcp.received"), "packets", head="TCP packets"),
}


def _random_starts(seed: int, latest_ms: float, count: int) -> tuple[str, ...]:
    """Random starts of `count` flows, drawn with the seed."""
    return tuple(f"{start:.3f}ms" for start in np.random.default_rng(seed).uniform(0.0, latest_ms, count))


class Experiment(paper.Experiment):
    """Tables, figures and statements of all sections."""

    quick_seeds = 10
    full_seeds = 30

    def jobs(self, plan: Plan) -> Mapping[Any, Then[Run, Any]]:
        """Jobs of all runs; those without jitter do not depend on the seed and have a single run a row."""
        runs: dict[Any, tuple[Scenario, int]] = {}
        for (label, changes), (row, rate) in product(SCAN.items(), RATES.items()):
            runs["scan", label, row] = scenarios.tcp_beside_udp(rate, **changes), 1
        for (row, rate), seed, jitter in product(RATES.items(), plan.seeds, _START_JITTERS):
            (start,) = _random_starts(seed, tfrc.LATEST_START_MS, 1)
            scenario = scenarios.tcp_beside_udp(rate, tcp_start=start, sending_jitter=jitter)
            runs["luck", jitter, row, seed] = scenario, seed
        for row, (rate, window) in tfrc.ROWS.items():
            for name, network in (("found", scenarios.TABLE_2), ("stated", scenarios.STATED_2)):
                udp = scenarios.unresponsive(rate)
                runs["table2", name, row] = scenarios.tcp_beside(udp, window, network=network), 1
        for time in tfrc.VOICE_TIMES:
            runs["table3", "found", time] = scenarios.voice(f"{time}s"), 1
            stated = scenarios.voice(f"{time}s", network=scenarios.STATED_3, rates=("64kbps",))
            runs["table3", "stated", time] = stated, 1
        for time in tfrc.VIDEO_TIMES:
            runs["table4", "found", time] = scenarios.video(f"{time}s"), 1
            runs["table4", "stated", time] = scenarios.video(f"{time}s", flows=1), 1
        for jitter, seed in product(JITTERS, plan.seeds):
            begin, later = _random_starts(seed, 1000.0, 2)
            runs["phases", jitter, seed] = scenarios.unequal_round_trips(jitter, (begin, later)), seed
            runs["twins", jitter, seed] = scenarios.video(scenarios.END, sending_jitter=jitter), seed
        done = {key: Then(RunJob(scenario, seed), FlowCounts.from_run) for key, (scenario, seed) in runs.items()}
        return {**done, **tfrc.jobs(plan.seeds), **improvements.jobs(plan.seeds)}

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Counts, ratios and shares of the runs."""
        del plan
        published = load(Path(__file__).parent).printed
        results = _TcpAndUdpResults(done, published)
        rate_control = tfrc.TfrcResults(done, published)
        rules = improvements.RuleResults(done)
        return Outcome(
            {**results.measures, **dict(rate_control.measures()), **dict(rules.measures())},
            tables=[*results.tables(), *rate_control.tables(), rules.table()],
            figures=[
                *results.figures_of_table_1(),
                results.figure_of_scan(),
                *rate_control.figures(),
                *results.figures_of_times(rate_control.by_time()),
                rules.figure(),
            ],
            notes=[
                "Runs have no sending jitter unless a table says so; runs without jitter do not depend on the seed.",
                "The seed determines starts: of TCP in the statements on table 1, of TFRC in table 2.",
            ],
            digests={", ".join(map(str, key)): run.digest for key, run in done.items()},
        )


@dataclass(frozen=True)
class _TcpAndUdpResults:
    """Measures, tables and figures without TFRC."""

    done: Done
    published: Mapping[str, float]
    """The document's numbers by the measure that each is compared with."""

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """Measures that claims refer to, by name."""
        measures: dict[str, Measure] = {}
        runs = group_seeds(self.done)
        for row, rate in RATES.items():
            as_found = self.done["scan", "as found", row]
            for name in COLUMNS:
                unit = "" if name.endswith("pdr") else "packets"
                values = [self.done["scan", label, row].column(name) for label in SCAN]
                measures[f"table1/{row}/{name}"] = Measure.exact(as_found.column(name), unit)
                measures[f"scan/{row}/{name}/least"] = Measure.exact(float(np.nanmin(values)), unit)
                measures[f"scan/{row}/{name}/most"] = Measure.exact(float(np.nanmax(values)), unit)
            for flow in ("tcp", "udp"):
                measures[f"table1/{row}/{flow}.delay"] = Measure.exact(as_found.counts[flow].delay_ms, "ms")
            measures[f"table1/{row}/udp.offered"] = Measure.exact(Rate.parse(rate) * UDP_TIME_S / 8000, "packets")
            for jitter, (name, quantity) in product(_START_JITTERS, _START_QUANTITIES.items()):
                measures[f"luck.{jitter}/{row}/{name}"] = quantity.over(runs["luck", jitter, row])
        steady = [
            measures[f"table1/{row}/udp.sent"].value.mean / measures[f"table1/{row}/udp.offered"].value.mean
            for row in RATES
        ]
        measures["udp.steady.least"] = Measure.exact(
            min(steady), "", "ratio of UDP's sent to its offered packets, minimum over rows"
        )
        measures["udp.steady.most"] = Measure.exact(
            max(steady), "", "ratio of UDP's sent to its offered packets, maximum over rows"
        )
        for table, time in _TIMES:
            for name, count in self.done[table, "found", time].counts["all"].packets():
                measures[f"{table}/{time}/udp.{name}"] = count
        for table in ("table3", "table4"):
            stated = self.done[table, "stated", "100"].counts["all"]
            for quantity_name, value in (("sent", stated.sent), ("drop", stated.dropped)):
                description = "with the stated settings"
                measures[f"stated{table[-1]}.{quantity_name}"] = Measure.exact(value, "packets", description)
        for jitter in JITTERS:
            measures[f"phases/{jitter}/share"] = Quantity(_share_of_short, "%").over(runs["phases", jitter])
            for flow in _TWINS:
                dropped = [run.counts[flow].dropped for run in runs["twins", jitter]]
                measures[f"twins/{jitter}/{flow}"] = Measure.of(dropped, "packets")
        return measures

    def tables(self) -> Iterator[Table]:
        """Effects of settings that the document leaves open, of its stated ones, and of senders in step."""
        measures = self.measures
        received = {label: [self.done["scan", label, row].counts["tcp"].received for row in RATES] for label in SCAN}
        received = {"the document": [int(self.published[f"table1/{row}/tcp.received"]) for row in RATES], **received}
        title = (
            "TCP packets received against UDP at each rate, with one setting changed (fitted settings: none changed)"
        )
        rows: list[list[CellValue]] = [[tfrc.printed_label(label), *counts] for label, counts in received.items()]
        yield Table("sensitivity", title, ["setting", *RATES], rows)
        by_start = (
            {
                "UDP rate": row,
                **{
                    f"{_START_QUANTITIES[name].head}, jitter {jitter}": measures[f"luck.{jitter}/{row}/{name}"]
                    for jitter, name in product(_START_JITTERS, ("tcp.received", "jain"))
                },
            }
            for row in RATES
        )
        yield Table.of("luck", "Table 1 with random starts of TCP in the first 200 ms", by_start)
        counts = [
            ("Table 2, TCP" if flow == "tcp" else "Table 2, UDP in TFRC's place", row, ("table2", row), flow)
            for row, flow in product(tfrc.ROWS, ("tcp", "other"))
        ]
        counts += [(f"Table {table[-1]}, UDP", f"{time} s", (table, time), "all") for table, time in _TIMES]
        rows = [
            [title, row, *(_counts_text(self.done[table, name, key].counts[flow]) for name in ("found", "stated"))]
            for title, row, (table, key), flow in counts
        ]
        title = "Packets sent, received and dropped with the fitted and with the stated settings"
        yield Table("stated", title, ["table", "row", "fitted settings", "stated settings"], rows)
        yield Table(
            "phases",
            "Two CUBIC flows with round trips of 40 and 120 ms over 10 Mb/s and a queue of 33 packets, 20 to 600 s",
            ["sending jitter", "share of the goodput of the flow with 40 ms (%)"],
            [[jitter, measures[f"phases/{jitter}/share"]] for jitter in JITTERS],
        )
        yield Table(
            "twins",
            "Losses of each of the two UDP flows of table 4 in 100 s",
            ["sending jitter", "first flow (packets)", "second flow (packets)"],
            [[jitter, *(measures[f"twins/{jitter}/{flow}"] for flow in _TWINS)] for jitter in JITTERS],
        )

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
        caption = "The document calls the x axis the bandwidth of the bottleneck, but the bottleneck stays at 2 Mb/s."
        yield pdr.drawing("figure2", f"Markers: table 1 of the document. {caption}")
        yield delay.drawing("figure3", caption)

    def figure_of_scan(self) -> Drawing:
        """Table 1 between the extremes of the settings that the document leaves open."""
        x = [float(row.split()[0]) for row in RATES]
        sheet = Sheet("Table 1", "TCP against UDP: range of all settings tried", _X, "TCP packets received", ylog=True)
        for label, end in (("minimum", "least"), ("maximum", "most")):
            values = [self.measures[f"scan/{row}/tcp.received/{end}"].value.mean for row in RATES]
            sheet.series(label, x, [value or np.nan for value in values])
        sheet.series("fitted settings", x, [self.measures[f"table1/{row}/tcp.received"].value.mean for row in RATES])
        sheet.published("table 1", x, [self.published[f"table1/{row}/tcp.received"] for row in RATES])
        return sheet.drawing("sensitivity", "A line ends where TCP receives no packet.")

    def figures_of_times(self, tfrc_counts: Mapping[str, Mapping[str, Count]]) -> Iterator[Drawing]:
        """Figures 6 to 9."""
        for first, table, times in ((6, "table3", tfrc.VOICE_TIMES), (8, "table4", tfrc.VIDEO_TIMES)):
            udp = {time: self.done[table, "found", time].counts["all"] for time in times}
            x = "Simulation time (s)"
            ratio = Sheet(f"Figure {first}", "Packet loss ratio of TFRC and UDP", x, "Packet loss ratio")
            delay = Sheet(f"Figure {first + 1}", "End-to-end delay of TFRC and UDP", x, "End-to-end delay (ms)")
            for label, counts in (("UDP", udp), ("TFRC", tfrc_counts[table])):
                ratio.bars(label, {time: Measure.exact(count.loss_ratio) for time, count in counts.items()})
                ratio.published(label, times, [self._printed_loss(table, time, label.lower()) for time in times])
                delay.bars(label, {time: Measure.exact(count.delay_ms) for time, count in counts.items()})
            yield ratio.drawing(f"figure{first}", "Markers: values from the document's table.")
            yield delay.drawing(
                f"figure{first + 1}",
                "Delay from departure to arrival; a table has the time at the sender.",
            )

    def _printed_loss(self, table: str, time: str, flow: str) -> float:
        received, dropped = (self.published[f"{table}/{time}/{flow}.{name}"] for name in ("received", "drop"))
        return dropped / (received + dropped)


def _share_of_short(run: FlowCounts) -> float:
    short, long = run.goodput["short"], run.goodput["long"]
    return 100 * short / (short + long)


def _counts_text(count: Count) -> str:
    return f"{count.sent}, {count.received}, {count.dropped}"
