"""The document's TFRC: tables 2 to 4, the conclusion's statements on it, and what else may have been set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidegate.paper import Drawing, Measure, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.papers.vardhan import scenarios
from tidegate.papers.vardhan.counts import Count, jain
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario

ROWS = {
    "256 kb/s, 30": ("256kbps", 30),
    "384 kb/s, 50": ("384kbps", 50),
    "512 kb/s, 70": ("512kbps", 70),
    "768 kb/s, 90": ("768kbps", 90),
    "1024 kb/s, 100": ("1024kbps", 100),
}
"""Rows of table 2: the rate of TFRC's application, and TCP's window in packets."""
COLUMNS = ("tcp.sent", "tcp.received", "tcp.pdr", "tfrc.sent", "tfrc.received", "tfrc.pdr")
"""Its columns."""
VOICE_TIMES = ("5", "10", "50", "100")
"""Rows of table 3, in seconds."""
VIDEO_TIMES = ("20", "50", "70", "100")
"""Rows of table 4."""
LATEST_START_MS = 200.0
"""Seeds move TFRC's start between 0 and this; TCP starts at 0."""
WINDOW_S = 1.0
"""Rates are compared over this long."""

_BEFORE, _, _AFTER = scenarios.TABLE_2.delays


def _around() -> Iterator[tuple[str, dict[str, Any]]]:
    """What the document may have had, and other ways of running it; each with TFRC's settings beside it."""
    yield "as found", {}
    yield "TFRC of RFC 5348", {"like_ns2": False}
    yield "bottleneck of 2 Mb/s, as stated", {"network": scenarios.STATED_2}
    for packets in (10, 20, 30, 100):
        yield f"queue of {packets} packets", {"network": replace(scenarios.TABLE_2, queue=packets)}
    for delay in ("1ms", "50ms", "100ms"):
        yield f"bottleneck of {delay}", {"network": replace(scenarios.TABLE_2, delays=(_BEFORE, delay, _AFTER))}
    for start in (1, 5, 20):
        yield f"TFRC {start} s after TCP", {"later_ms": 1000.0 * start}
    yield "default sending jitter", {"sending_jitter": "auto"}


SCAN: Mapping[str, Mapping[str, Any]] = dict(_around())
"""What the sensitivity table of TFRC has a row for."""


def _row(row: str, later_ms: float, changes: Mapping[str, Any], *, record: str = "summary") -> Scenario:
    """A row of table 2 with TFRC starting so much later than TCP."""
    rate, window = ROWS[row]
    given = dict(changes)
    later_ms += given.pop("later_ms", 0.0)
    other = scenarios.tfrc(rate, 1000, like_ns2=given.pop("like_ns2", True))
    made = scenarios.tcp_beside(other, window, start=f"{later_ms:.3f}ms", **given)
    return made.model_copy(update={"record": record})


@dataclass(frozen=True)
class Pair:
    """TCP and TFRC side by side."""

    tcp: Count
    tfrc: Count
    variation: Mapping[str, float]
    """Coefficient of variation of what each sends a second, from 20 s on; where it was recorded."""
    digest: str

    @classmethod
    def of(cls, run: Run) -> Pair:
        """Of a run of table 2."""
        names = {"tcp": "tcp", "tfrc": "other"}
        variation = {}
        if "series" in run.tables:
            variation = {name: _variation(run, flow) for name, flow in names.items()}
        return cls(Count.of(run, ["tcp"]), Count.of(run, ["other"]), variation, run.digest)

    def column(self, name: str) -> float:
        """A column of table 2."""
        flow, what = name.split(".")
        return float(getattr(getattr(self, flow), what))

    @property
    def jain(self) -> float:
        """Jain's index of what the two receive: packets of 1000 bytes of data each."""
        return jain(self.tcp.received, self.tfrc.received)

    @property
    def utilisation(self) -> float:
        """Share of the bottleneck of 1 Mb/s that what is received took, headers included."""
        return (self.tcp.received * 1040 + self.tfrc.received * 1032) * 8 / 100e6


def _variation(run: Run, flow: str) -> float:
    series = run.table("series")
    mine = (series.to_numpy("flow") == flow) & (series.to_numpy("t_s") >= 20)  # noqa: PLR2004
    rates = series.to_numpy("sending_rate_bps")[mine]
    bins = round(WINDOW_S / 0.2)
    means = rates[: len(rates) // bins * bins].reshape(-1, bins).mean(axis=1)
    return float(means.std() / means.mean())


@dataclass(frozen=True)
class Voice:
    """TFRC of table 3, where the document seems to have counted feedback with data."""

    data: Count
    feedback: int
    jitter_ms: float
    """Mean interarrival jitter (RFC 3550 section 6.4.1) from when the voice was made; NaN where nothing arrived."""
    digest: str

    @classmethod
    def of(cls, run: Run) -> Voice:
        """Of a run that recorded every packet."""
        rtcp = run.table("rtcp")
        feedback = int(np.sum(rtcp.to_numpy("from_receiver") & (rtcp.to_numpy("flow") == "tfrc")))
        jitter = run.metrics("tfrc")["media_jitter_ms_mean"]
        return cls(Count.of(run, ["tfrc"]), feedback, np.nan if jitter is None else float(jitter), run.digest)

    @property
    def count(self) -> Count:
        """With feedback; what is on its way at the end is not told apart from what has come."""
        sent, received = self.data.sent + self.feedback, self.data.received + self.feedback
        return replace(self.data, sent=sent, received=received)


def jobs(seeds: Sequence[int]) -> Mapping[Any, Then[Run, Any]]:
    """The runs of tables 2 to 4, under keys that begin with `tfrc`."""
    made: dict[Any, Then[Run, Any]] = {}
    for seed in seeds:
        later = float(np.random.default_rng(seed).uniform(0.0, LATEST_START_MS))
        for row in ROWS:
            for label, changes in SCAN.items():
                record = "series" if label == "as found" else "summary"
                job = RunJob(_row(row, later, changes, record=record), seed)
                made["tfrc", label, row, seed] = Then(job, Pair.of)
    for time in VOICE_TIMES:
        for name, scenario in (
            ("found", scenarios.voice_tfrc(f"{time}s")),
            ("stated", scenarios.voice_tfrc(f"{time}s", network=scenarios.STATED_3, beside=None, like_ns2=False)),
            ("competing", scenarios.voice_tfrc(f"{time}s", network=scenarios.TABLE_3, beside="100kbps")),
        ):
            made["tfrc voice", name, time] = Then(RunJob(scenario, 1), Voice.of)
    for time in VIDEO_TIMES:
        for name, like_ns2 in _VIDEOS.items():
            scenario = scenarios.video_tfrc(f"{time}s", like_ns2=like_ns2)
            made["tfrc video", name, time] = Then(RunJob(scenario, 1), Both.of)
    return made


@dataclass(frozen=True)
class Both:
    """The two flows of table 4, added up."""

    count: Count
    digest: str

    @classmethod
    def of(cls, run: Run) -> Both:
        """Of a run."""
        return cls(Count.of(run), run.digest)


@dataclass(frozen=True)
class Results:
    """What those runs came to."""

    seeds: Sequence[int]
    done: Mapping[Any, Any]
    published: Mapping[str, float]
    """The document's numbers by the measure that each is held against."""

    def pairs(self, label: str, row: str) -> list[Pair]:
        """The runs of a row of table 2 under a setting, a seed each."""
        return [self.done["tfrc", label, row, seed] for seed in self.seeds]

    def over(self, label: str, row: str, take: Callable[[Pair], float], unit: str = "") -> Measure:
        """A number of them."""
        return Measure.of([take(one) for one in self.pairs(label, row)], unit)

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
        for row in ROWS:
            for name in COLUMNS:
                unit = "" if name.endswith("pdr") else "packets"
                seen = [self.over(label, row, _column(name)).value.mean for label in SCAN]
                yield f"table2/{row}/{name}", self.over("as found", row, _column(name), unit)
                draws = [one.column(name) for one in self.pairs("as found", row)]
                yield f"draws2/{row}/{name}", Measure.exact(float(np.std(draws, ddof=min(1, len(draws) - 1))), unit)
                yield f"scan2/{row}/{name}/least", Measure.exact(min(seen), unit)
                yield f"scan2/{row}/{name}/most", Measure.exact(max(seen), unit)
            stated = self.over("bottleneck of 2 Mb/s, as stated", row, _column("tfrc.received"), "packets")
            yield f"stated2/{row}/tfrc.received", stated
            more = "how much more TCP's rate varies"
            smoother = [one.variation["tcp"] - one.variation["tfrc"] for one in self.pairs("as found", row)]
            yield f"smooth/{row}", Measure.of(smoother, "", more)
            for label in SCAN:
                yield f"scan2/{label}/{row}/jain", self.over(label, row, _jain)
            yield f"table2/{row}/jain", self.over("as found", row, _jain)
            yield f"table2/{row}/utilisation", self.over("as found", row, _utilisation)
        for time in VOICE_TIMES:
            for name in ("found", "stated", "competing"):
                voice: Voice = self.done["tfrc voice", name, time]
                place = "table3" if name == "found" else f"table3.{name}"
                count = voice.count
                for what, value in (("sent", count.sent), ("received", count.received), ("drop", count.dropped)):
                    yield f"{place}/{time}/tfrc.{what}", Measure.exact(value, "packets")
                yield f"{place}/{time}/tfrc.delay", Measure.exact(voice.data.delay_ms, "ms", "from wire to arrival")
                yield f"{place}/{time}/tfrc.waited", Measure.exact(voice.data.waited_ms, "ms", "at the sender before")
                yield f"{place}/{time}/tfrc.jitter", Measure.exact(voice.jitter_ms, "ms", "from when it was made")
                yield f"{place}/{time}/tfrc.data", Measure.exact(voice.data.sent, "packets")
                # what the application has made: 50 packets a second from 0.1 s on
                offered = 50 * (float(time) - 0.1)
                yield f"{place}/{time}/tfrc.carried", Measure.exact(voice.data.received / offered)
        for time in VIDEO_TIMES:
            for name, place in (("found", "table4"), ("rfc5348", "table4.rfc5348")):
                count = self.done["tfrc video", name, time].count
                for what, value in (("sent", count.sent), ("received", count.received), ("drop", count.dropped)):
                    yield f"{place}/{time}/tfrc.{what}", Measure.exact(value, "packets")
                yield f"{place}/{time}/tfrc.delay", Measure.exact(count.delay_ms, "ms", "from wire to arrival")
                yield f"{place}/{time}/tfrc.waited", Measure.exact(count.waited_ms, "ms", "at the sender before")

    def by_time(self) -> Mapping[str, Mapping[str, Count]]:
        """TFRC of tables 3 and 4 by time, data alone."""
        return {
            "table3": {time: self.done["tfrc voice", "found", time].data for time in VOICE_TIMES},
            "table4": {time: self.done["tfrc video", "found", time].count for time in VIDEO_TIMES},
        }

    # --- tables ---------------------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        """Those of ours."""
        rows: list[list[CellValue]] = [
            [label, *(self.over(label, row, _column("tfrc.received")) for row in ROWS)] for label in SCAN
        ]
        printed: list[CellValue] = [
            "the document",
            *(int(self.published[f"table2/{row}/tfrc.received"]) for row in ROWS),
        ]
        title = f"TFRC packets received beside TCP, TFRC starting within {LATEST_START_MS:g} ms of it"
        yield Table("sensitivity-tfrc", title, ["setting", *ROWS], [printed, *rows])
        rows = [[label, *(self.over(label, row, _jain) for row in ROWS)] for label in SCAN]
        yield Table("shares-tfrc", "Jain's index of TCP and TFRC", ["setting", *ROWS], rows)
        rows = [
            [
                row,
                *(self.over(label, row, _column(f"{flow}.received")) for label in _PHASES for flow in ("tcp", "tfrc")),
                *(self.over(label, row, _jain) for label in _PHASES),
            ]
            for row in ROWS
        ]
        heads = [f"{flow}, {jitter}" for jitter in _PHASES.values() for flow in ("TCP", "TFRC")]
        heads += [f"Jain's index, {jitter}" for jitter in _PHASES.values()]
        yield Table("phases-tfrc", "Table 2's packets received with and without jitter", ["row", *heads], rows)
        rows = [
            [
                row,
                self.over("as found", row, lambda one: one.tfrc.delay_ms, "ms"),
                self.over("as found", row, lambda one: one.tfrc.waited_ms, "ms"),
                *(self.over("as found", row, _varies(flow)) for flow in ("tcp", "tfrc")),
            ]
            for row in ROWS
        ]
        heads = ["TFRC's delay on the network", "and before, at its sender"]
        heads += [f"{flow}: variation of its rate over 1 s" for flow in ("TCP", "TFRC")]
        yield Table("waiting-tfrc", "What table 2 does not show", ["row", *heads], rows)
        rows = []
        for time in VOICE_TIMES:
            for name, what in _VOICES.items():
                voice: Voice = self.done["tfrc voice", name, time]
                rows.append(
                    [f"{time} s", what, voice.data.sent, voice.feedback, voice.data.received, voice.data.dropped]
                )
        heads = ["time", "network", "data sent", "feedback sent", "data received", "data dropped"]
        yield Table("voice-tfrc", "TFRC of 64 kb/s voice", heads, rows)
        rows = []
        for time in VIDEO_TIMES:
            for name in _VIDEOS:
                one: Count = self.done["tfrc video", name, time].count
                whose = "ns-2's" if name == "found" else "RFC 5348's"
                rows.append([f"{time} s", whose, one.sent, one.received, one.dropped, one.delay_ms, one.waited_ms])
        heads = ["time", "settings", "sent", "received", "dropped", "network's delay (ms)", "at the sender (ms)"]
        yield Table("video-tfrc", "TFRC of two video conferences", heads, rows)

    # --- figures --------------------------------------------------------------------------------------

    def figures(self) -> Iterator[Drawing]:
        """Figures 4 and 5, and one of ours."""
        x, rows = "TFRC rate, TCP window", list(ROWS)
        pdr = Sheet("Figure 4", "Packet delivery ratio of TCP and TFRC", x, "Packet delivery ratio", ylim=(0.95, 1))
        delay = Sheet("Figure 5", "End-to-end delay of TCP and TFRC", x, "End-to-end delay (ms)", ylim=(0, None))
        for flow in ("tcp", "tfrc"):
            label = flow.upper()
            pdr.bars(label, {row: self.over("as found", row, _column(f"{flow}.pdr")) for row in rows})
            pdr.published(label, rows, [self.published[f"table2/{row}/{flow}.pdr"] for row in rows])
            delay.bars(label, {row: self.over("as found", row, _column(f"{flow}.delay_ms")) for row in rows})
        yield pdr.drawing("figure4", "Marks: table 2. The axis begins at 0.95.")
        yield delay.drawing("figure5", "From wire to arrival. What waits at TFRC's sender is in a table of its own.")
        sheet = Sheet(
            "Table 2", "TFRC beside TCP under all settings tried", "TFRC rate (kb/s)", "TFRC packets received"
        )
        at = [float(row.split()[0]) for row in rows]
        for label in SCAN:
            sheet.series(label, at, [self.over(label, row, _column("tfrc.received")).value.mean for row in rows])
        sheet.published("table 2", at, [self.published[f"table2/{row}/tfrc.received"] for row in rows])
        yield sheet.drawing("sensitivity-tfrc", "Means over starts of TFRC within 200 ms.")


_PHASES = {"as found": "no jitter", "default sending jitter": "default jitter"}
_VIDEOS = {"found": True, "rfc5348": False}
_VOICES = {
    "found": "150 kb/s, UDP of 70 kb/s beside it",
    "competing": "150 kb/s, UDP of 100 kb/s beside it",
    "stated": "100 kb/s, alone, RFC 5348 (stated)",
}


def _column(name: str) -> Callable[[Pair], float]:
    return lambda one: one.column(name)


def _varies(flow: str) -> Callable[[Pair], float]:
    return lambda one: one.variation[flow]


def _jain(one: Pair) -> float:
    return one.jain


def _utilisation(one: Pair) -> float:
    return one.utilisation
