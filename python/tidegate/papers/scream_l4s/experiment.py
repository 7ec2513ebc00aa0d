"""Experiment of SCReAM's published L4S record: a flow beside 0 to 4 flows of TCP Prague over DualPI2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

from tidegate import Scenario
from tidegate.paper import Drawing, Measure, Outcome, Plan, Quantity, Sheet, Table, Then, group_seeds
from tidegate.paper import Experiment as Base
from tidegate.runs import Run, RunJob
from tidegate.runs.pool import Job

CONTROLLER = "scream:l4s_gain_up=0.03125,l4s_gain_down=0.03125,mul_increase=0.05,head_room=2,mss=1360B"
"""The draft with the numbers of the record's commit, 76a298a of October 2024: kL4sG, which was a single gain for rise
and fall, kMultiplicativeIncreaseScalefactor, kBytesInFlightHeadRoom, and the segment of -mtu 1360."""
JULY = "scream:ericsson-2026-07"
"""The authors' program of July 2026."""
RTTS = (5, 10, 25, 50, 100)
"""Round-trip times in milliseconds."""
PRAGUE = (0, 1, 2, 3, 4)
"""Numbers of TCP Prague flows beside SCReAM."""
FROM_S, TO_S = 20, 40
"""Seconds that count; Prague's flows start in the first second."""
PACKET = 1400
"""Bytes of SCReAM's IP packets (the record's -mtu 1360)."""
EQUAL: Mapping[str, Any] = {
    "source": "ideal",
    "fps": 50,
    "min": "150kbps",
    "max": "150Mbps",
    "below_min": "wait",
}
"""Frames of the size that the rate gives (-rand 0)."""
VARIED: Mapping[str, Any] = {
    **EQUAL,
    "source": "statistical",
    "scale_t": 0.0,
    "scale_b": 0.204,
    "burst": "1B",
    "key_factor": 1.0,
}
"""Frames whose sizes vary as much as with -rand 50, which is uniform within 50 %: the standard deviation is
0.5 / sqrt(3), that of a Laplace distribution with scale 0.5 / sqrt(6). RFC 8593's encoder without its bursts."""
FRAMES = {"fixed": EQUAL, "varied": VARIED}


@dataclass(frozen=True)
class Network:
    """Settings of a run: flows and link."""

    rtt_ms: int
    prague: int
    controller: str = CONTROLLER
    video: Mapping[str, Any] = field(default_factory=lambda: EQUAL)
    dualpi2: Mapping[str, Any] = field(default_factory=lambda: {"min_th": "1ms", "range": "0s"})
    """Settings of DualPI2: Linux's step of 1 ms; RFC 9332 has a ramp from 0.8 to 1.2 ms."""
    feedback: Mapping[str, Any] = field(default_factory=lambda: {"format": "ccfb", "interval": "50ms"})
    """Settings of feedback. The record states no interval; with its receiver's rule, by frames, SCReAM gets less."""

    def scenario(self) -> Scenario:
        """Scenario of the run; all delay is on the way back, as in the record's script."""
        media = {
            "controller": self.controller,
            "max_rate": "150Mbps",
            "payload": "1348B",  # with 12 bytes of RTP, 12 of its extension and 28 of IP and UDP
            "video": dict(self.video),
            "feedback": {"reports": "rfc3550", **self.feedback},
            "repair": "none",
        }
        link = {
            "name": "link",
            "capacity": "100Mbps",
            "delay": "0.1ms",
            "discipline": {"name": "dualpi2", **self.dualpi2},
            "back": {"capacity": "infinite", "delay": f"{self.rtt_ms}ms", "discipline": "drop-tail"},
        }
        prague = [
            {
                "name": f"prague-{n}",
                "start": f"{200 * (n + 1)}ms",
                "tcp": {"algorithm": "prague", "recovery": "rfc6675"},
            }
            for n in range(self.prague)
        ]
        return Scenario.from_dict(
            {
                "duration": f"{TO_S}s",
                "warmup": f"{FROM_S}s",
                "record": "summary",
                "links": [link],
                "flows": [{"name": "scream", "media": media}, *prague],
            }
        )

    def job(self, seed: int) -> Job[Any]:
        """Job of a run and its summary."""
        return Then(RunJob(self.scenario(), seed), RunSummary.from_run)


@dataclass(frozen=True)
class RunSummary:
    """Summary of a run."""

    rate: float
    """Rate of SCReAM's media that arrived, Mbit/s."""
    prague: float
    """Mean rate of Prague's flows, Mbit/s."""
    marked: float
    """Share of SCReAM's packets that were marked."""
    marks: float
    """Marks of SCReAM's packets in a second."""
    prague_marked: float
    """Share of Prague's packets that were marked."""
    prague_marks: float
    """Marks of a Prague flow's packets in a second."""
    wait: float
    """Mean queueing delay of SCReAM's packets in the link, ms."""
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> RunSummary:
        """Summarises a run."""
        first, *prague_flows = run.summary["flows"]
        received, marked, goodput = (
            sum(flow[name] for flow in prague_flows) for name in ("packets_received", "marked", "goodput_bps")
        )
        no_value = float("nan")
        return cls(
            rate=first["goodput_bps"] / 1e6,
            prague=goodput / 1e6 / len(prague_flows) if prague_flows else no_value,
            marked=first["marked"] / max(first["packets_received"], 1),
            marks=first["marked"] / (TO_S - FROM_S),
            prague_marked=marked / received if received else no_value,
            prague_marks=marked / len(prague_flows) / (TO_S - FROM_S) if prague_flows else no_value,
            wait=first["queueing_delay_ms_mean"],
            digest=run.digest,
        )


VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "july": ("the authors' program of July 2026", {"controller": JULY}),
    "draft": ("the draft of August 2026", {"controller": "scream"}),
    "fast": (
        "as run, but with the draft's average of marks, which rises sixteen times as fast as it falls",
        {"controller": CONTROLLER.replace("l4s_gain_up=0.03125,l4s_gain_down=0.03125,", "")},
    ),
    "libwebrtc": ("libwebrtc's numbers", {"controller": "scream:libwebrtc"}),
    "often": ("feedback every 5 ms instead of 50", {"feedback": {"format": "ccfb", "interval": "5ms"}}),
    "ramp": ("RFC 9332's ramp instead of Linux's step", {"dualpi2": {}}),
}
"""Variants at 25 ms, beside 0, 1 and 4 flows: title and changed settings by name."""
PRAGUE_FLOW_COUNTS = (0, 1, 4)
TITLES = {"fixed": "as run", **{name: title for name, (title, _) in VARIANTS.items()}}
"""Titles of the rows of the second table."""
MARKS: Mapping[str, Quantity[RunSummary]] = {
    "marked.scream": Quantity(lambda run: run.marked, "", "share of SCReAM's packets marked"),
    "marked.prague": Quantity(lambda run: run.prague_marked, "", "share of Prague's packets marked"),
    "rounds": Quantity(lambda run: run.marks * 0.025, "", "SCReAM's marks in a round trip of 25 ms"),
    "rounds.prague": Quantity(
        lambda run: run.prague_marks * 0.025, "", "marks of a flow of Prague in a round trip of 25 ms"
    ),
    "wait": Quantity(lambda run: run.wait, "ms", "mean queueing delay of SCReAM's packets"),
    "prague": Quantity(lambda run: run.prague, "Mbit/s", "mean rate of a flow of Prague"),
}
"""Quantities measured, besides SCReAM's rate, at 25 ms with frames of fixed size."""
Cells = Mapping[tuple[str, int, int], list[RunSummary]]
"""Runs by kind of frames or variant, round-trip time and number of Prague flows, one a seed."""


class Experiment(Base):
    """Both tables of the record."""

    quick_seeds: ClassVar[int] = 2
    full_seeds: ClassVar[int] = 5

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """Jobs of all cells of both tables, and of the variants."""
        jobs: dict[Any, Job[Any]] = {}
        for seed in plan.seeds:
            for (frames, video), rtt, prague in product(FRAMES.items(), RTTS, PRAGUE):
                jobs[frames, rtt, prague, seed] = Network(rtt, prague, video=video).job(seed)
            for (name, (_, changes)), prague in product(VARIANTS.items(), PRAGUE_FLOW_COUNTS):
                jobs[name, 25, prague, seed] = Network(25, prague, **changes).job(seed)
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """A measure for each cell, and measures of marks."""
        del plan
        cells: Cells = group_seeds(done)
        measures = {
            f"{frames}/{rtt} ms/{prague} TCP": _rate(runs, f"rate of SCReAM beside {prague} flows")
            for (frames, rtt, prague), runs in cells.items()
        }
        for (name, title), prague in product(TITLES.items(), PRAGUE_FLOW_COUNTS):
            key = "own" if name == "fixed" else name
            measures[f"{key}.{prague}"] = _rate(cells[name, 25, prague], f"{title}, beside {prague} flows")
        for prague, (name, quantity) in product(PRAGUE, MARKS.items()):
            measures[f"{name}.{prague}"] = quantity.over(cells["fixed", 25, prague])
        return Outcome(
            measures,
            tables=[_shares(cells), _variants(cells)],
            figures=list(_figures(measures)),
            notes=[
                "Numbers are from seconds 20 to 40 of a run. The record has single runs, uncertain by some 5 %.",
                "The table of shares has the rates of Prague's flows; beside a flow of Prague the link is always full.",
            ],
            digests={
                f"{frames}, {rtt} ms, {n} flows, seed {seed}": run.digest
                for (frames, rtt, n, seed), run in done.items()
            },
        )


def _rate(runs: list[RunSummary], description: str = "") -> Measure:
    return Measure.of([run.rate for run in runs], "Mbit/s", description)


def _shares(cells: Cells) -> Table:
    by_flows = {n: cells["fixed", 25, n] for n in PRAGUE}
    rows = (
        {
            "flows of Prague": n,
            "rate of SCReAM (Mbit/s)": _rate(runs),
            "rate of a flow of Prague (Mbit/s)": Measure.of([run.prague for run in runs]) if n else "",
            "equal share (Mbit/s)": 100 / (n + 1),
            "SCReAM's packets marked (%)": Measure.of([100 * run.marked for run in runs]),
            "Prague's packets marked (%)": Measure.of([100 * run.prague_marked for run in runs]) if n else "",
            "queueing delay of SCReAM (ms)": Measure.of([run.wait for run in runs]),
        }
        for n, runs in by_flows.items()
    )
    return Table.of("shares", "Shares of SCReAM and Prague at 25 ms with frames of fixed size", rows)


def _variants(cells: Cells) -> Table:
    rows = (
        {"variant": title, **{f"{n} TCP": _rate(cells[name, 25, n]) for n in PRAGUE_FLOW_COUNTS}}
        for name, title in TITLES.items()
    )
    return Table.of("variants", "SCReAM's rate (Mbit/s) at 25 ms with variants of algorithm, feedback and queue", rows)


PUBLISHED: Mapping[str, Mapping[int, tuple[float, ...]]] = {
    "fixed": {25: (78, 60, 48, 38, 29)},
    "varied": {25: (68, 50, 44, 32, 25)},
}
"""Rows of the record in the figure, Mbit/s, by kind of frames and round-trip time."""


def _figures(measures: Mapping[str, Measure]) -> Iterator[Drawing]:
    sheet = Sheet(
        "Tests 2 and 3",
        "SCReAM beside Prague over DualPI2, 25 ms",
        x="Flows of TCP Prague",
        y="SCReAM's rate (Mbit/s)",
        ylim=(0, 100),
    )
    for frames, title in (("fixed", "frames of fixed size"), ("varied", "frames of varying size")):
        sheet.bars(title, {str(n): measures[f"{frames}/25 ms/{n} TCP"] for n in PRAGUE})
        sheet.published(title, [str(n) for n in PRAGUE], PUBLISHED[frames][25])
    yield sheet.drawing("shares", "Bars: ours; marks: the record.")
