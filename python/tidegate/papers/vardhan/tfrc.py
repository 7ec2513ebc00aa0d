"""The document's TFRC: tables 2 to 4, the conclusion's statements on it, and what else may have been set."""

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
"""Seeds move TFRC's start between 0 and this, where TCP starts at 0; so they do TCP's of table 1, of which the document
does not say when it is."""
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
    return scenarios.tcp_beside(other, window, start=f"{later_ms:.3f}ms", record=record, **given)


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
        flows = {"tcp": "tcp", "tfrc": "other"} if "series" in run.tables else {}
        variation = {name: _variation(run, flow) for name, flow in flows.items()}
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
        for row, (label, changes) in product(ROWS, SCAN.items()):
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
    for time, name in product(VIDEO_TIMES, _VIDEOS):
        scenario = scenarios.video_tfrc(f"{time}s", like_ns2=name == "found")
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

    done: Mapping[Any, Any]
    published: Mapping[str, float]
    """The document's numbers by the measure that each is held against."""

    @cached_property
    def pairs(self) -> Mapping[Any, list[Pair]]:
        """The runs of table 2 by setting and row, one a seed."""
        return {key[1:]: runs for key, runs in group_seeds(self.done).items() if key[0] == "tfrc"}

    def over(self, label: str, row: str, take: Callable[[Pair], float], unit: str = "") -> Measure:
        """A number of them."""
        return Quantity(take, unit).over(self.pairs[label, row])

    def column(self, label: str, row: str, name: str, unit: str = "") -> Measure:
        """A column of table 2."""
        return self.over(label, row, lambda run: run.column(name), unit)

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
        for row in ROWS:
            as_found = self.pairs["as found", row]
            for name in COLUMNS:
                unit = "" if name.endswith("pdr") else "packets"
                seen = [self.column(label, row, name).value.mean for label in SCAN]
                yield f"table2/{row}/{name}", self.column("as found", row, name, unit)
                draws = [one.column(name) for one in as_found]
                yield f"draws2/{row}/{name}", Measure.exact(float(np.std(draws, ddof=min(1, len(draws) - 1))), unit)
                yield f"scan2/{row}/{name}/least", Measure.exact(min(seen), unit)
                yield f"scan2/{row}/{name}/most", Measure.exact(max(seen), unit)
            stated = self.column("bottleneck of 2 Mb/s, as stated", row, "tfrc.received", "packets")
            yield f"stated2/{row}/tfrc.received", stated
            smoother = [one.variation["tcp"] - one.variation["tfrc"] for one in as_found]
            yield f"smooth/{row}", Measure.of(smoother, "", "how much more TCP's rate varies")
            for label in SCAN:
                yield f"scan2/{label}/{row}/jain", self.over(label, row, _jain)
            yield f"table2/{row}/jain", self.over("as found", row, _jain)
            yield f"table2/{row}/utilisation", self.over("as found", row, lambda run: run.utilisation)
        for time, name in product(VOICE_TIMES, ("found", "stated", "competing")):
            voice: Voice = self.done["tfrc voice", name, time]
            place = f"table3/{time}/tfrc" if name == "found" else f"table3.{name}/{time}/tfrc"
            yield from _counted(place, voice.count)
            yield f"{place}.jitter", Measure.exact(voice.jitter_ms, "ms", "from when it was made")
            yield f"{place}.data", Measure.exact(voice.data.sent, "packets")
            # what the application has made: 50 packets a second from 0.1 s on
            yield f"{place}.carried", Measure.exact(voice.data.received / (50 * (float(time) - 0.1)))
        for time, (name, table) in product(VIDEO_TIMES, (("found", "table4"), ("rfc5348", "table4.rfc5348"))):
            yield from _counted(f"{table}/{time}/tfrc", self.done["tfrc video", name, time].count)

    def by_time(self) -> Mapping[str, Mapping[str, Count]]:
        """TFRC of tables 3 and 4 by time, data alone."""
        return {
            "table3": {time: self.done["tfrc voice", "found", time].data for time in VOICE_TIMES},
            "table4": {time: self.done["tfrc video", "found", time].count for time in VIDEO_TIMES},
        }

    # --- tables ---------------------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        """Those of ours."""
        printed = {row: int(self.published[f"table2/{row}/tfrc.received"]) for row in ROWS}
        received = (
            {"setting": label} | {row: self.column(label, row, "tfrc.received") for row in ROWS} for label in SCAN
        )
        title = f"TFRC packets received beside TCP, TFRC starting within {LATEST_START_MS:g} ms of it"
        yield Table.of("sensitivity-tfrc", title, [{"setting": "the document", **printed}, *received])
        shares = ({"setting": label} | {row: self.over(label, row, _jain) for row in ROWS} for label in SCAN)
        yield Table.of("shares-tfrc", "Jain's index of TCP and TFRC", shares)
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
        yield Table.of("phases-tfrc", "Table 2's packets received with and without jitter", phases)
        waiting = (
            {
                "row": row,
                "TFRC's delay on the network": self.column("as found", row, "tfrc.delay_ms"),
                "and before, at its sender": self.column("as found", row, "tfrc.waited_ms"),
                "TCP: variation of its rate over 1 s": self.over("as found", row, lambda run: run.variation["tcp"]),
                "TFRC: variation of its rate over 1 s": self.over("as found", row, lambda run: run.variation["tfrc"]),
            }
            for row in ROWS
        )
        yield Table.of("waiting-tfrc", "What table 2 does not show", waiting)
        voices = [(time, name, self.done["tfrc voice", name, time]) for time, name in product(VOICE_TIMES, _VOICES)]
        heads = ["time", "network", "data sent", "feedback sent", "data received", "data dropped"]
        rows: list[list[CellValue]] = [
            [f"{time} s", _VOICES[name], one.data.sent, one.feedback, one.data.received, one.data.dropped]
            for time, name, one in voices
        ]
        yield Table("voice-tfrc", "TFRC of 64 kb/s voice", heads, rows)
        videos = [
            (time, name, self.done["tfrc video", name, time].count) for time, name in product(VIDEO_TIMES, _VIDEOS)
        ]
        heads = ["time", "settings", "sent", "received", "dropped", "network's delay (ms)", "at the sender (ms)"]
        rows = [
            [f"{time} s", _VIDEOS[name], one.sent, one.received, one.dropped, one.delay_ms, one.waited_ms]
            for time, name, one in videos
        ]
        yield Table("video-tfrc", "TFRC of two video conferences", heads, rows)

    # --- figures --------------------------------------------------------------------------------------

    def figures(self) -> Iterator[Drawing]:
        """Figures 4 and 5, and one of ours."""
        x, rows = "TFRC rate, TCP window", list(ROWS)
        pdr = Sheet("Figure 4", "Packet delivery ratio of TCP and TFRC", x, "Packet delivery ratio", ylim=(0.95, 1))
        delay = Sheet("Figure 5", "End-to-end delay of TCP and TFRC", x, "End-to-end delay (ms)", ylim=(0, None))
        for label in _FLOWS:
            flow = label.lower()
            pdr.bars(label, {row: self.column("as found", row, f"{flow}.pdr") for row in rows})
            pdr.published(label, rows, [self.published[f"table2/{row}/{flow}.pdr"] for row in rows])
            delay.bars(label, {row: self.column("as found", row, f"{flow}.delay_ms") for row in rows})
        yield pdr.drawing("figure4", "Marks: table 2. The axis begins at 0.95.")
        yield delay.drawing("figure5", "From wire to arrival. What waits at TFRC's sender is in a table of its own.")
        title = "TFRC beside TCP under all settings tried"
        sheet = Sheet("Table 2", title, "TFRC rate (kb/s)", "TFRC packets received")
        at = [float(row.split()[0]) for row in rows]
        for label in SCAN:
            sheet.series(label, at, [self.column(label, row, "tfrc.received").value.mean for row in rows])
        sheet.published("table 2", at, [self.published[f"table2/{row}/tfrc.received"] for row in rows])
        yield sheet.drawing("sensitivity-tfrc", "Means over starts of TFRC within 200 ms.")


_FLOWS = ("TCP", "TFRC")
_VIDEOS = {"found": "ns-2's", "rfc5348": "RFC 5348's"}
_VOICES = {
    "found": "150 kb/s, UDP of 70 kb/s beside it",
    "competing": "150 kb/s, UDP of 100 kb/s beside it",
    "stated": "100 kb/s, alone, RFC 5348 (stated)",
}


def _counted(place: str, count: Count) -> Iterator[tuple[str, Measure]]:
    for name, packets in count.packets():
        yield f"{place}.{name}", packets
    yield f"{place}.delay", Measure.exact(count.delay_ms, "ms", "from wire to arrival")
    yield f"{place}.waited", Measure.exact(count.waited_ms, "ms", "at the sender before")


def _jain(one: Pair) -> float:
    return one.jain
