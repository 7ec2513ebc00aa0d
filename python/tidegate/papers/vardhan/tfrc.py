"""The document's TFRC: tables 2 to 4, the conclusion's statements on it, and other possible settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from tidegate.paper import Drawing, Measure, Quantity, Sheet, Table, Then, group_seeds
from tidegate.paper.measures import CellValue
from tidegate.papers.vardhan import scenarios
from tidegate.papers.vardhan.counts import Count, jain
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario
from tidegate.units import Rate

ROWS = {
    "256 kb/s, 30": ("256kbps", 30),
    "384 kb/s, 50": ("384kbps", 50),
    "512 kb/s, 70": ("512kbps", 70),
    "768 kb/s, 90": ("768kbps", 90),
    "1024 kb/s, 100": ("1024kbps", 100),
}
"""Rows of table 2: the rate of TFRC's application, and TCP's window in packets."""
COLUMNS = ("tcp.sent", "tcp.received", "tcp.pdr", "tfrc.sent", "tfrc.received", "tfrc.pdr")
"""Columns of table 2."""
VOICE_TIMES = ("5", "10", "50", "100")
"""Rows of table 3, in seconds."""
VIDEO_TIMES = ("20", "50", "70", "100")
"""Rows of table 4, in seconds."""
LATEST_START_MS = 200.0
"""Latest start of TFRC, which the seed draws from 0 on; TCP starts at 0. In table 1 it is the latest start of TCP. The
document does not state these starts."""
WINDOW_S = 1.0
"""Interval over which rates are compared."""

_BEFORE, _, _AFTER = scenarios.TABLE_2.delays


def _around() -> Iterator[tuple[str, dict[str, Any]]]:
    """Settings of table 2 that the document may have had, and others, as changes by label."""
    yield "as found", {}
    yield "TFRC of RFC 5348", {"like_ns2": False}
    yield "bottleneck of 2 Mb/s, as stated", {"network": scenarios.STATED_2}
    for packets in (10, 20, 30, 100):
        yield f"queue of {packets} packets", {"network": replace(scenarios.TABLE_2, queue=packets)}
    for delay in ("1ms", "50ms", "100ms"):
        yield f"bottleneck with {delay} delay", {"network": replace(scenarios.TABLE_2, delays=(_BEFORE, delay, _AFTER))}
    for start in (1, 5, 20):
        yield f"TFRC {start} s after TCP", {"later_ms": 1000.0 * start}
    yield "default sending jitter", {"sending_jitter": "auto"}


SCAN: Mapping[str, Mapping[str, Any]] = dict(_around())
"""Rows of TFRC's sensitivity table: changes of settings by label."""


def printed_label(label: str) -> str:
    """The label of a row of `SCAN` in tables and figures."""
    return "fitted settings" if label == "as found" else label


def _row(row: str, later_ms: float, changes: Mapping[str, Any], *, record: str = "summary") -> Scenario:
    """Scenario of a row of table 2 with TFRC starting `later_ms` after TCP."""
    rate, window = ROWS[row]
    settings = dict(changes)
    later_ms += settings.pop("later_ms", 0.0)
    tfrc = scenarios.tfrc(rate, 1000, like_ns2=settings.pop("like_ns2", True))
    return scenarios.tcp_beside(tfrc, window, start=f"{later_ms:.3f}ms", record=record, **settings)


@dataclass(frozen=True)
class Pair:
    """Counts of TCP and of TFRC beside it."""

    tcp: Count
    tfrc: Count
    variation: Mapping[str, float]
    """Coefficient of variation of each flow's rate by seconds from 20 s on; empty if no series were recorded."""
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> Pair:
        """Counts packets of a run of table 2."""
        flows = {"tcp": "tcp", "tfrc": "other"} if "series" in run.tables else {}
        variation = {name: _variation(run, flow) for name, flow in flows.items()}
        return cls(Count.from_run(run, ["tcp"]), Count.from_run(run, ["other"]), variation, run.digest)

    def column(self, name: str) -> float:
        """A column of table 2."""
        flow, field = name.split(".")
        return float(getattr(getattr(self, flow), field))

    @property
    def jain(self) -> float:
        """Jain's index of the packets received, each with 1000 bytes of data."""
        return jain(self.tcp.received, self.tfrc.received)

    @property
    def utilisation(self) -> float:
        """Share of the bottleneck of 1 Mb/s that the received packets took, headers included."""
        return (self.tcp.received * 1040 + self.tfrc.received * 1032) * 8 / 100e6


def _variation(run: Run, flow: str) -> float:
    series = run.table("series")
    rows = (series.to_numpy("flow") == flow) & (series.to_numpy("t_s") >= 20)  # noqa: PLR2004
    rates = series.to_numpy("sending_rate_bps")[rows]
    bins = round(WINDOW_S / 0.2)
    means = rates[: len(rates) // bins * bins].reshape(-1, bins).mean(axis=1)
    return float(means.std() / means.mean())


@dataclass(frozen=True)
class Voice:
    """Counts of TFRC of table 3, for which the document seems to have added feedback to data."""

    data: Count
    feedback: int
    jitter_ms: float
    """Mean interarrival jitter (RFC 3550 section 6.4.1) relative to the time of capture; NaN if no packet arrived."""
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> Voice:
        """Counts packets of a run with recorded packets."""
        rtcp = run.table("rtcp")
        feedback = int(np.sum(rtcp.to_numpy("from_receiver") & (rtcp.to_numpy("flow") == "tfrc")))
        jitter = run.metrics("tfrc")["media_jitter_ms_mean"]
        return cls(Count.from_run(run, ["tfrc"]), feedback, np.nan if jitter is None else float(jitter), run.digest)

    @property
    def count(self) -> Count:
        """Counts with feedback; feedback under way at the end counts as received."""
        sent, received = self.data.sent + self.feedback, self.data.received + self.feedback
        return replace(self.data, sent=sent, received=received)


def jobs(seeds: Sequence[int]) -> Mapping[Any, Then[Run, Any]]:
    """Jobs of tables 2 to 4, under keys that begin with `tfrc`."""
    jobs: dict[Any, Then[Run, Any]] = {}
    for seed in seeds:
        later_ms = float(np.random.default_rng(seed).uniform(0.0, LATEST_START_MS))
        for row, (label, changes) in product(ROWS, SCAN.items()):
            record = "series" if label == "as found" else "summary"
            job = RunJob(_row(row, later_ms, changes, record=record), seed)
            jobs["tfrc", label, row, seed] = Then(job, Pair.from_run)
    for time in VOICE_TIMES:
        for name, scenario in (
            ("found", scenarios.voice_tfrc(f"{time}s")),
            ("stated", scenarios.voice_tfrc(f"{time}s", network=scenarios.STATED_3, beside=None, like_ns2=False)),
            ("competing", scenarios.voice_tfrc(f"{time}s", network=scenarios.TABLE_3, beside="100kbps")),
        ):
            jobs["tfrc voice", name, time] = Then(RunJob(scenario, 1), Voice.from_run)
    for time, name in product(VIDEO_TIMES, _VIDEOS):
        scenario = scenarios.video_tfrc(f"{time}s", like_ns2=name == "found")
        jobs["tfrc video", name, time] = Then(RunJob(scenario, 1), Videos.from_run)
    alone = scenarios.video_tfrc(f"{VIDEO_TIMES[-1]}s", conferences=1)
    jobs["tfrc video", "stated"] = Then(RunJob(alone, 1), Videos.from_run)
    return jobs


@dataclass(frozen=True)
class Videos:
    """Counts of the two flows of table 4, added up."""

    count: Count
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> Videos:
        """Counts packets of a run of table 4."""
        return cls(Count.from_run(run), run.digest)


@dataclass(frozen=True)
class TfrcResults:
    """Measures, tables and figures of TFRC."""

    done: Mapping[Any, Any]
    published: Mapping[str, float]
    """The document's numbers by the measure that each is compared with."""

    @cached_property
    def pairs(self) -> Mapping[Any, list[Pair]]:
        """Runs of table 2 by setting and row, one a seed."""
        return {key[1:]: runs for key, runs in group_seeds(self.done).items() if key[0] == "tfrc"}

    def over(self, label: str, row: str, take: Callable[[Pair], float], unit: str = "") -> Measure:
        """Measure of a number of the runs of a setting and row."""
        return Quantity(take, unit).over(self.pairs[label, row])

    def column(self, label: str, row: str, name: str, unit: str = "") -> Measure:
        """Measure of a column of table 2."""
        return self.over(label, row, lambda run: run.column(name), unit)

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for row in ROWS:
            as_found = self.pairs["as found", row]
            for name in COLUMNS:
                unit = "" if name.endswith("pdr") else "packets"
                means = [self.column(label, row, name).value.mean for label in SCAN]
                yield f"table2/{row}/{name}", self.column("as found", row, name, unit)
                draws = [pair.column(name) for pair in as_found]
                yield f"draws2/{row}/{name}", Measure.exact(float(np.std(draws, ddof=min(1, len(draws) - 1))), unit)
                yield f"scan2/{row}/{name}/least", Measure.exact(min(means), unit)
                yield f"scan2/{row}/{name}/most", Measure.exact(max(means), unit)
            stated = self.column("bottleneck of 2 Mb/s, as stated", row, "tfrc.received", "packets")
            yield f"stated2/{row}/tfrc.received", stated
            smoother = [pair.variation["tfrc"] / pair.variation["tcp"] for pair in as_found]
            yield f"smooth/{row}", Measure.of(smoother, "", "variation of TFRC's rate over that of TCP's rate")
            offered = Rate.parse(ROWS[row][0]) * float(scenarios.END.removesuffix("s")) / 8000
            yield f"table2/{row}/tfrc.offered", Measure.exact(offered, "packets", "the application's rate times 100 s")
            for label in SCAN:
                yield f"scan2/{label}/{row}/jain", self.over(label, row, _jain)
            yield f"table2/{row}/jain", self.over("as found", row, _jain)
            yield f"table2/{row}/utilisation", self.over("as found", row, lambda run: run.utilisation)
        for time, name in product(VOICE_TIMES, ("found", "stated", "competing")):
            voice: Voice = self.done["tfrc voice", name, time]
            prefix = f"table3/{time}/tfrc" if name == "found" else f"table3.{name}/{time}/tfrc"
            yield from _count_measures(prefix, voice.count)
            yield (
                f"{prefix}.jitter",
                Measure.exact(voice.jitter_ms, "ms", "interarrival jitter relative to the time of capture"),
            )
            yield f"{prefix}.data", Measure.exact(voice.data.sent, "packets")
            # over the packets that the application made: 50 a second from 0.1 s on
            yield f"{prefix}.carried", Measure.exact(voice.data.received / (50 * (float(time) - 0.1)))
        # 160 bytes of voice in packets of 192 beside UDP of 100 kb/s, over 150 kb/s
        about = "share that a voice carries which does not yield: the capacity over what both senders offer"
        yield "table3.competing/unyielding", Measure.exact(150 / (64 * 192 / 160 + 100), "", about)
        for time, (name, table) in product(VIDEO_TIMES, (("found", "table4"), ("rfc5348", "table4.rfc5348"))):
            yield from _count_measures(f"{table}/{time}/tfrc", self.done["tfrc video", name, time].count)
        yield from _count_measures("stated4.tfrc", self.done["tfrc video", "stated"].count)

    def by_time(self) -> Mapping[str, Mapping[str, Count]]:
        """Counts of TFRC of tables 3 and 4 by time, without feedback."""
        return {
            "table3": {time: self.done["tfrc voice", "found", time].data for time in VOICE_TIMES},
            "table4": {time: self.done["tfrc video", "found", time].count for time in VIDEO_TIMES},
        }

    # --- tables ---------------------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        """Our own tables."""
        printed = {row: int(self.published[f"table2/{row}/tfrc.received"]) for row in ROWS}
        received = (
            {"setting": printed_label(label)} | {row: self.column(label, row, "tfrc.received") for row in ROWS}
            for label in SCAN
        )
        title = f"TFRC packets received against TCP, with TFRC starting up to {LATEST_START_MS:g} ms after TCP"
        yield Table.of("sensitivity-tfrc", title, [{"setting": "the document", **printed}, *received])
        shares = (
            {"setting": printed_label(label)} | {row: self.over(label, row, _jain) for row in ROWS} for label in SCAN
        )
        yield Table.of("shares-tfrc", "Jain's index of TCP and TFRC, with one setting changed", shares)
        jitters = {"no jitter": "as found", "default jitter": "default sending jitter"}
        phases = (
            {"row": row}
            | {
                f"{flow}, {jitter}": self.column(label, row, f"{flow.lower()}.received")
                for (jitter, label), flow in product(jitters.items(), _FLOWS)
            }
            | {f"Jain's index, {jitter}": self.over(label, row, _jain) for jitter, label in jitters.items()}
            for row in ROWS
        )
        yield Table.of("phases-tfrc", "Packets received in the rows of table 2 with and without sending jitter", phases)
        waiting = (
            {
                "row": row,
                "TFRC's delay in the network (ms)": self.column("as found", row, "tfrc.delay_ms"),
                "time at TFRC's sender (ms)": self.column("as found", row, "tfrc.waited_ms"),
                "CoV of TCP's rate over 1 s": self.over("as found", row, lambda run: run.variation["tcp"]),
                "CoV of TFRC's rate over 1 s": self.over("as found", row, lambda run: run.variation["tfrc"]),
            }
            for row in ROWS
        )
        yield Table.of(
            "waiting-tfrc", "Delays and coefficients of variation (CoV) of rates, which table 2 does not show", waiting
        )
        voices = [(time, name, self.done["tfrc voice", name, time]) for time, name in product(VOICE_TIMES, _VOICES)]
        heads = ["time", "network", "data sent", "feedback sent", "data received", "data dropped"]
        rows: list[list[CellValue]] = [
            [f"{time} s", _VOICES[name], voice.data.sent, voice.feedback, voice.data.received, voice.data.dropped]
            for time, name, voice in voices
        ]
        yield Table("voice-tfrc", "Packets of TFRC with voice of 64 kb/s", heads, rows)
        videos = [
            (time, name, self.done["tfrc video", name, time].count) for time, name in product(VIDEO_TIMES, _VIDEOS)
        ]
        heads = [
            "time",
            "settings",
            "sent",
            "received",
            "dropped",
            "delay in the network (ms)",
            "time at the sender (ms)",
        ]
        rows = [
            [f"{time} s", _VIDEOS[name], count.sent, count.received, count.dropped, count.delay_ms, count.waited_ms]
            for time, name, count in videos
        ]
        yield Table("video-tfrc", "TFRC of two video conferences", heads, rows)

    # --- figures --------------------------------------------------------------------------------------

    def figures(self) -> Iterator[Drawing]:
        """Figures 4 and 5, and a figure of the sensitivity."""
        x, rows = "TFRC rate, TCP window", list(ROWS)
        pdr = Sheet("Figure 4", "Packet delivery ratio of TCP and TFRC", x, "Packet delivery ratio", ylim=(0.95, 1))
        delay = Sheet("Figure 5", "End-to-end delay of TCP and TFRC", x, "End-to-end delay (ms)", ylim=(0, None))
        for label in _FLOWS:
            flow = label.lower()
            pdr.bars(label, {row: self.column("as found", row, f"{flow}.pdr") for row in rows})
            pdr.published(label, rows, [self.published[f"table2/{row}/{flow}.pdr"] for row in rows])
            delay.bars(label, {row: self.column("as found", row, f"{flow}.delay_ms") for row in rows})
        yield pdr.drawing("figure4", "Markers: table 2 of the document. The axis begins at 0.95.")
        yield delay.drawing(
            "figure5", "Delay from departure to arrival. The time at TFRC's sender is in a table (waiting-tfrc)."
        )
        title = "TFRC against TCP, with one setting changed"
        sheet = Sheet("Table 2", title, "TFRC rate (kb/s)", "TFRC packets received")
        kbps = [float(row.split()[0]) for row in rows]
        for label in SCAN:
            sheet.series(
                printed_label(label), kbps, [self.column(label, row, "tfrc.received").value.mean for row in rows]
            )
        sheet.published("table 2", kbps, [self.published[f"table2/{row}/tfrc.received"] for row in rows])
        yield sheet.drawing(
            "sensitivity-tfrc", "Means over starts of TFRC in the first 200 ms; fitted settings: no setting is changed."
        )


_FLOWS = ("TCP", "TFRC")
_VIDEOS = {"found": "ns-2's TFRC", "rfc5348": "RFC 5348"}
_VOICES = {
    "found": "150 kb/s, against UDP of 70 kb/s",
    "competing": "150 kb/s, against UDP of 100 kb/s",
    "stated": "100 kb/s, without UDP, rules of RFC 5348 (as stated)",
}


def _count_measures(prefix: str, count: Count) -> Iterator[tuple[str, Measure]]:
    for name, packets in count.packets():
        yield f"{prefix}.{name}", packets
    yield f"{prefix}.delay", Measure.exact(count.delay_ms, "ms", "mean delay from departure to arrival")
    yield f"{prefix}.waited", Measure.exact(count.waited_ms, "ms", "mean time at the sender before departure")


def _jain(pair: Pair) -> float:
    return pair.jain
