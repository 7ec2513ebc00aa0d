"""Figures 3 to 7, the settings that the document leaves open, and other senders of that video.

The quality of pictures (figure 6, and EvalVid's half of figure 7) is in `pictures` and `viewed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np

from tidegate import paper
from tidegate.paper import Drawing, Measure, Outcome, Plan, Quantity, Sheet, Table, Then, group_seeds
from tidegate.paper.measures import CellValue
from tidegate.papers.lissah2019 import pictures
from tidegate.papers.lissah2019.kept import Floats, NetworkRun, simple_mos
from tidegate.papers.lissah2019.network import (
    CONTROLLERS,
    FOUND,
    FRAMES,
    GAPS,
    LABELS,
    REPORTS,
    SENDERS,
    Setting,
    scenario,
)
from tidegate.papers.lissah2019.pictures import PictureRun
from tidegate.papers.lissah2019.viewed import PictureResults
from tidegate.runs import RunJob
from tidegate.runs.pool import Job

COMPARED = ("none", "table", "existing")
"""Senders that are run at every setting that the document leaves open."""

NARROW = "queue of 50 packets"
"""Setting with which the delays are near the printed ones."""

OPEN: Mapping[str, Setting] = {
    "as found": FOUND,
    NARROW: FOUND.but(queue=50),
    "queue of 25 packets": FOUND.but(queue=25),
    "1 ms in each subnet": FOUND.but(delays=("1ms", "1ms", "1ms")),
    "10 ms on the bottleneck": FOUND.but(delays=("2ms", "10ms", "2ms")),
    "segments of 1446 bytes": FOUND.but(segment=1446),
    "TCP is CUBIC": FOUND.but(algorithm="cubic"),
    "2 downloads": FOUND.but(downloads=2),
    "4 downloads": FOUND.but(downloads=4),
    "video of 0.5 Mb/s": FOUND.but(video="500kbps"),
    "video of 2 Mb/s": FOUND.but(video="2Mbps"),
    "video of 3 Mb/s": FOUND.but(video="3Mbps"),
    "no frame is skipped": FOUND.but(waits="80s"),
    "reports every second": FOUND.but(reports="1s"),
}
"""Settings of network and video, by the labels of their jobs; the first are the fitted settings."""
FITTED = "fitted settings"
"""Label of the fitted settings in tables."""

READINGS: Mapping[str, str] = {
    "10^9": "scale=1e9",
    "10^9, jitter in units of 90 kHz": "scale=1e9,jitter_unit=timestamp",
    "delay is half a round trip": "delay_source=rtt/2",
}
"""Other settings of the scheme, by label."""
NO_GAP = "no default gap"
"""Label of the run without a default gap, which the document excludes."""

UDP_CLIENT: Mapping[str, tuple[str, Setting]] = {
    "a packet every 2.4 ms": ("fixed", FOUND.but(greedy=True, controller="rate=4Mbps")),
    "table, default gap of 2.4 ms": ("table", FOUND.but(greedy=True, default_gap="2.4ms")),
    "a packet every 9.6 ms": ("fixed", FOUND.but(greedy=True)),
    "table, default gap of 9.6 ms": ("table", FOUND.but(greedy=True, default_gap="9.6ms")),
}
"""Senders for figure 3 that always have a packet and send it after each gap: controller and setting by label."""

NOTES = (
    """Delays and jitter are those of the network, measured as in EvalVid: from departure of a frame's first packet to \
arrival of its last one, for frames that arrive whole. The time at the sender is a separate number.""",
    """There are two kinds of MOS: the document's, from loss, mean delay and mean jitter of packets, by a formula for \
speech, and EvalVid's, from the PSNR of each frame.""",
    f"""The video is {FRAMES} frames of another clip than the document's. In runs without pictures, the sizes of \
frames are recorded from FFmpeg's mpeg4 (frames/README.txt). In runs with pictures the same clip is encoded by x264 at \
the same rate, and sent by the same senders over the same network: sizes of single frames differ.""",
)

PACKET_MS = 1200 * 8 / 4e6 * 1e3
"""Transmission time of 1200 bytes on the bottleneck."""


class Experiment(paper.Experiment):
    """The whole document; without the extra `[media]`, everything that needs no pictures."""

    quick_seeds = 5
    full_seeds = 30

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """Jobs of all runs; those with pictures come last, because they take longest."""
        jobs: dict[Any, Job[Any]] = {
            (*key, seed): Then(RunJob(scenario(name, setting), seed), NetworkRun.from_run)
            for key, (name, setting) in _settings()
            for seed in plan.seeds
        }
        if not pictures.lacking():
            pictures.encode()
            jobs |= pictures.jobs(plan)
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Delays, jitter, packets, pictures and scores of the runs."""
        del plan
        viewed = PictureResults(group_seeds(done), pictures.lacking())
        results = _NetworkResults(group_seeds(done), viewed)
        runs = {key: result.network if isinstance(result, PictureRun) else result for key, result in done.items()}
        return Outcome(
            {**dict(results.measures()), **dict(viewed.measures())},
            tables=list(results.tables()),
            figures=list(results.figures()),
            notes=NOTES,
            digests={", ".join(map(str, key)): run.digest for key, run in runs.items() if isinstance(run, NetworkRun)},
        )


def _settings() -> Iterator[tuple[tuple[str, ...], tuple[str, Setting]]]:
    """Controller and setting of each run without pictures, by its key."""
    for name in CONTROLLERS:
        yield ("found", name), (name, FOUND)
        yield ("adapts", name), (name, FOUND.but(adapts=True))
    for label, setting in OPEN.items():
        for name in COMPARED:
            yield ("open", label, name), (name, setting)
    for label, controller in READINGS.items():
        yield ("reading", label), ("table", FOUND.but(controller=controller))
    yield ("reading", NO_GAP), ("table", FOUND.but(default_gap="0ms"))
    for gap in GAPS:
        yield ("gap", gap), ("table", FOUND.but(default_gap=gap))
    for label, settings in UDP_CLIENT.items():
        yield ("udp", label), settings


def _statistic(function: Callable[[Floats], Any], values: Floats) -> float:
    """A statistic of values; NaN if there are none."""
    return float(function(values)) if len(values) else float("nan")


QUANTITIES: Mapping[str, Quantity[NetworkRun]] = {
    name: Quantity(take, unit, head=head)
    for name, unit, head, take in (
        ("sent", "packets", "packets sent in 5 s", lambda run: _statistic(np.mean, run.sent)),
        ("lost", "%", "packets lost (%)", lambda run: 100 * run.lost),
        ("whole", "%", "whole frames (%)", lambda run: 100 * run.share_whole),
        ("one_way", "ms", "packet delay (ms)", lambda run: run.packet_delay),
        ("delay.mean", "ms", "frame delay (ms)", lambda run: _statistic(np.mean, run.delay)),
        ("delay.most", "ms", "maximum frame delay (ms)", lambda run: _statistic(np.max, run.delay)),
        ("delay.least", "ms", "minimum frame delay (ms)", lambda run: _statistic(np.min, run.delay)),
        ("delay.first", "ms", "delay of the first frame (ms)", lambda run: _statistic(itemgetter(0), run.delay)),
        ("late", "ms", "frame delay from capture (ms)", lambda run: _statistic(np.mean, run.late)),
        ("jitter.mean", "ms", "cumulative jitter (ms)", lambda run: _statistic(np.mean, run.cumulative)),
        ("jitter.most", "ms", "maximum cumulative jitter (ms)", lambda run: _statistic(np.max, run.cumulative)),
        ("mos", "", "MOS", lambda run: run.mos),
        ("video", "Mb/s", "goodput of video (Mb/s)", lambda run: run.goodput / 1e6),
        ("tcp", "Mb/s", "goodput of TCP (Mb/s)", lambda run: run.tcp / 1e6),
    )
}
"""Quantities of a run."""

GAP: Quantity[NetworkRun] = Quantity(lambda run: _statistic(np.median, run.answers), "us", head="gap after loss (us)")
"""Median of the gaps that followed a loss."""

PUBLISHED_MOS: Mapping[str, tuple[float, float]] = {"table": (50.1, 3.98), "existing": (77.7, 3.15)}
"""Printed mean delay in ms and MOS, by sender."""


def loss_for(score: float, delay_ms: float, jitter_ms: float) -> float:
    """Loss in percent at which the formula gives a score.

    >>> round(simple_mos(50.1, 3.5, loss_for(3.98, 50.1, 3.5)), 6)
    3.98
    """
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if simple_mos(delay_ms, jitter_ms, middle) > score else (low, middle)
    return low


@dataclass(frozen=True)
class _NetworkResults:
    """Measures, tables and figures of all runs."""

    runs: Mapping[Any, list[NetworkRun]]
    """Runs by the key of their jobs without the seed, one a seed."""
    viewed: PictureResults

    def over_seeds(self, quantity: str, *key: str) -> Measure:
        """Measure of a quantity over the seeds."""
        return QUANTITIES[quantity].over(self.runs[key])

    def less(self, quantity: str, first: str, second: str) -> Measure:
        """Mean of the first sender's value less the second's, seed by seed."""
        return QUANTITIES[quantity].less(self.runs["found", first], self.runs["found", second])

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for name, quantity in product(CONTROLLERS, QUANTITIES):
            yield f"{name}.{quantity}", self.over_seeds(quantity, "found", name)
            yield f"adapts.{name}.{quantity}", self.over_seeds(quantity, "adapts", name)
        for quantity in ("sent", "delay.mean", "jitter.mean", "lost"):
            yield f"less.{quantity}", self.less(quantity, "existing", "table")
            yield f"less.{quantity}.none", self.less(quantity, "none", "table")
            yield f"less.{quantity}.equation", self.less(quantity, "equation", "table")
        yield "more.mos", self.less("mos", "table", "existing")
        yield "more.mos.none", self.less("mos", "table", "none")
        for name, quantity in product(COMPARED, ("delay.mean", "delay.most", "delay.least", "mos", "jitter.most")):
            unit, take = QUANTITIES[quantity].unit, QUANTITIES[quantity].take
            by_seed = list(zip(*(map(take, self.runs["open", label, name]) for label in OPEN), strict=True))
            for end, extreme in (("least", min), ("most", max)):
                about = f"{extreme.__name__}imum over the open settings, median over seeds"
                yield f"open.{name}.{quantity}.{end}", Measure.median(map(extreme, by_seed), unit, about)
        gains = [max(of_seed) for of_seed in zip(*map(self.open_gains, OPEN), strict=True)]
        yield "open.gain.most", Measure.median(gains, "%", "maximum reduction of the mean delay by the table")
        for name, (delay, score) in PUBLISHED_MOS.items():
            needed = [loss_for(score, delay, run.packet_jitter) for run in self.runs["found", name]]
            yield f"needed.{name}", Measure.of(needed, "%", "loss with which the formula gives the printed MOS")
        for name in ("delay.mean", "delay.most", "jitter.most"):
            yield f"narrow.{name}", self.over_seeds(name, "open", NARROW, "table")
        yield "packet", Measure.exact(PACKET_MS, "ms", "transmission time of 1200 bytes at 4 Mb/s")
        yield "gap.formula", GAP.over(self.runs["found", "equation"])
        yield "gap.text", GAP.over(self.runs["reading", "10^9"])
        yield "gap.timestamp", GAP.over(self.runs["reading", "10^9, jitter in units of 90 kHz"])
        yield "gap.default", GAP.over(self.runs["found", "table"])
        for gap in GAPS:
            yield from self._with_gap(gap)
        for label, key in (("constant", "a packet every 2.4 ms"), ("table", "table, default gap of 2.4 ms")):
            yield f"udp.{label}.sent", self.over_seeds("sent", "udp", key)
            yield f"udp.{label}.lost", self.over_seeds("lost", "udp", key)

    def _with_gap(self, gap: str) -> Iterator[tuple[str, Measure]]:
        """Measures of the table with a default gap, under the names that claims use after `range/GAP/`."""
        runs = self.runs["gap", gap]
        for name, quantity in QUANTITIES.items():
            yield f"range/{gap}/table.{name}", quantity.over(runs)
        for name in ("sent", "delay.mean", "jitter.mean", "lost"):
            for end, sender in (("", "existing"), (".none", "none"), (".equation", "equation")):
                yield f"range/{gap}/less.{name}{end}", QUANTITIES[name].less(self.runs["found", sender], runs)
        for end, sender in (("", "existing"), (".none", "none")):
            yield f"range/{gap}/more.mos{end}", QUANTITIES["mos"].less(runs, self.runs["found", sender])

    def open_gains(self, label: str) -> list[float]:
        """Share of the mean delay without control that the table saves at a setting, for each seed, in %."""
        runs = zip(self.runs["open", label, "none"], self.runs["open", label, "table"], strict=True)
        delay = QUANTITIES["delay.mean"].take
        return [100 * (1 - delay(table) / delay(none)) for none, table in runs]

    def tables(self) -> Iterator[Table]:
        """Senders, pictures, and other settings of network and video, of the scheme, and of the sender."""
        runs, quantities = self.runs, list(QUANTITIES.values())
        senders = {LABELS[name]: runs["found", name] for name in CONTROLLERS}
        yield Table.of_quantities("senders", "Senders of one stored video of 1 Mb/s", "sender", senders, quantities)
        yield from self.viewed.tables()
        adapting = {LABELS[name]: runs["adapts", name] for name in CONTROLLERS}
        title = "Senders whose encoder follows the controller, from 0.15 to 2.5 Mb/s"
        yield Table.of_quantities("adapting", title, "sender", adapting, quantities)
        columns = list(product(("delay.mean", "delay.most", "lost", "mos"), COMPARED))
        heads = ["setting", *(f"{LABELS[name]}: {QUANTITIES[quantity].head}" for quantity, name in columns)]
        rows: list[list[CellValue]] = [
            [
                FITTED if setting == FOUND else label,
                *(self.over_seeds(quantity, "open", label, name) for quantity, name in columns),
            ]
            for label, setting in OPEN.items()
        ]
        yield Table(
            "open", "Open settings: network and video, with one setting changed (fitted settings: none)", heads, rows
        )
        readings = {FITTED: runs["found", "table"]}
        readings |= {label: runs["reading", label] for label in (*READINGS, NO_GAP)}
        readings |= {f"default gap of {gap.removesuffix('ms')} ms": runs["gap", gap] for gap in GAPS}
        quantities = [GAP, *(QUANTITIES[name] for name in ("sent", "lost", "whole", "delay.mean", "mos"))]
        title = "Readings: settings of the scheme that the document leaves open, with the table"
        yield Table.of_quantities("readings", title, "setting", readings, quantities)
        clients = {label: runs["udp", label] for label in UDP_CLIENT}
        quantities = [GAP, *(QUANTITIES[name] for name in ("sent", "lost", "tcp"))]
        title = "A sender that always has a packet, instead of video"
        yield Table.of_quantities("udp", title, "sender", clients, quantities)

    def figures(self) -> Iterator[Drawing]:
        """Figures 3 to 7."""
        times = np.arange(len(self.runs["found", "none"][0].sent)) * REPORTS + REPORTS
        flow = Sheet("Figure 3", "UDP flow", x="Time (s)", y="Packets in 5 s", ylim=(0, None))
        for name in SENDERS:
            flow.series(LABELS[name], times, np.vstack([run.sent for run in self.runs["found", name]]))
        yield flow.drawing("figure3", "Packets sent by each sender; means over seeds with 95 % intervals.")
        client = Sheet("Figure 3", "A sender that always has a packet", x="Time (s)", y="Packets in 5 s", ylog=True)
        for label in UDP_CLIENT:
            client.series(label, times, np.vstack([run.sent for run in self.runs["udp", label]]))
        yield client.drawing("figure3-udp", "The default gap for the whole run, and default gaps with the table.")
        delay = Sheet("Figure 4", "Delay of frames", x="Frame", y="Delay (ms)", ylim=(0, None))
        jitter = Sheet("Figure 5", "Cumulative jitter of frames", x="Frame", y="Cumulative jitter (ms)")
        for name in ("existing", "table"):
            first = self.runs["found", name][0]
            delay.series(LABELS[name], first.frame, first.delay)
            jitter.series(LABELS[name], first.frame, first.cumulative)
        delay.published(LABELS["existing"], [FRAMES / 2 - 20] * 3, [20.35, 77.7, 147.55])
        delay.published(LABELS["table"], [FRAMES / 2 + 20] * 3, [10.3, 50.1, 136.10])
        yield delay.drawing(
            "figure4", "First seed. Markers: the document's minimum, mean and maximum, read as milliseconds."
        )
        yield jitter.drawing("figure5", "First seed. In the document all jitter of its scheme is below 150 ms.")
        if not self.viewed.lacks:
            yield self.viewed.figure6()
        score = Sheet("Figure 7", "Average MOS", x="Sender", y="MOS", ylim=(1, 5))
        senders, label = ("existing", "table", "none"), "from loss, delay and jitter"
        printed = {name: PUBLISHED_MOS[name][1] for name in ("existing", "table")}
        score.bars(label, {LABELS[name]: self.over_seeds("mos", "found", name) for name in senders})
        score.published(label, [LABELS[name] for name in printed], list(printed.values()))
        self.viewed.bars(score, senders, printed)
        yield score.drawing(
            "figure7", "Both kinds of MOS; the document prints one pair, as MOS from loss, delay and jitter."
        )
