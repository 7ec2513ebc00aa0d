"""Section 2 of the document: differences between RFC 5348 and RFC 3448, on a path without other traffic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate import Flow, Link, Media, Scenario
from tidegate.control import tfrc as formulas
from tidegate.paper import Drawing, Measure, Quantity, Sheet, Table, Then, group_seeds
from tidegate.runs import Run, RunJob
from tidegate.units import Rate, Size

RULES = ("rfc3448", "rfc5348")
"""Presets that are compared."""
MEDIA_RATE = Rate(1_000_000)
"""Rate of the application."""
LITTLE = Rate(100_000)
"""Rate of the application while it has little to send."""
PACKET = 1000
"""Bytes of a packet, headers included, so that "4 packets" are 4000 bytes."""
SHORT = 160
"""Bytes of a short packet (section 4.5's voice)."""
RTT_S = 0.1
IDLE = ("5s", "8s")
"""Begin and end of the time in which the application is silent, or has little to send."""
IDLE_S = (5.0, 8.0)
"""`IDLE` in seconds."""
LOSS = "1%"
"""Share of packets lost where they are; it also stands for a congested network."""
_HEADERS = 44
_LATER_S = 0.5
"""Five round trips: receive rates from before the change no longer count after that."""


def _run(
    name: str, preset: str, size: int, *, until: str, warmup: str = "0s", loss: str = "0%", **media: Any
) -> Scenario:
    packet = Size(size)
    flow = Media(
        controller={"name": "tfrc", "preset": preset, "segment": packet, "mss": packet},
        payload=Size(size - _HEADERS + 1),
        overhead=Size(12),
        feedback={"format": "none", "reports": "1000s"},
        repair="none",
        queue_limit="100s",
        min_rate="1bps",
        marks=False,
        **media,
    )
    return Scenario(
        name=name,
        duration=until,
        warmup=warmup,
        sending_jitter="off",
        record="series",
        links=[Link(name="path", from_="a", to="b", capacity="20Mbps", delay="50ms", loss=loss)],
        flows=[Flow(name="tfrc", from_="a", to="b", media=flow)],
    )


def _steady(preset: str) -> Scenario:
    """Scenario of an application at a constant rate that is silent for some seconds."""
    rate = Rate(MEDIA_RATE * (PACKET - _HEADERS) // PACKET)
    video = {"source": "ideal", "min": rate, "max": rate, "below_min": "wait", "fps": MEDIA_RATE / (8 * PACKET)}
    return _run("vardhan-idle", preset, PACKET, until="12s", video=video, pauses=[IDLE], max_rate=MEDIA_RATE)


def _data_limited(preset: str) -> Scenario:
    """Scenario of an application that has a tenth of its rate during `IDLE`."""
    begin, end = IDLE
    schedule = [("0s", MEDIA_RATE), (begin, LITTLE), (end, MEDIA_RATE)]
    video = {"source": "cbr", "schedule": schedule, "packet_size": Size(PACKET - 2 * _HEADERS)}
    return _run("vardhan-limited", preset, PACKET, until="12s", video=video, max_rate=MEDIA_RATE)


def _congested(steady: Callable[[str], Scenario], preset: str) -> Scenario:
    """The scenario with lost packets, which stand for a congested network."""
    return steady(preset).with_changes({"links.path.loss": LOSS})


def _lossy(size: int) -> Scenario:
    """Scenario of an application that always has data to send, with 1 % of packets lost."""
    greedy = {"source": "greedy"}
    return _run(
        "vardhan-short", "rfc5348", size, until="220s", warmup="20s", loss=LOSS, video=greedy, max_rate="20Mbps"
    )


@dataclass(frozen=True)
class Rates:
    """The allowed rate X over time, and means of a run."""

    at: npt.NDArray[np.float64]
    """Times at which X changes, s."""
    x: npt.NDArray[np.float64]
    """X from each time on, bit/s."""
    p: float
    """Mean loss event rate at the sender from 20 s on."""
    rtt_s: float
    """Mean round-trip time at the sender from 20 s on, s."""
    sent: float
    """Mean sending rate, bit/s."""
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> Rates:
        """Summarises a run with recorded internals."""
        internals = run.table("internals")
        names, times, values = (internals.to_numpy(column) for column in ("name", "t_s", "value"))

        def mean(name: str) -> float:
            counted = values[(names == name) & (times > 20)]  # noqa: PLR2004
            return float(counted.mean()) if len(counted) else float("nan")

        x = names == "x_bps"
        sent = float(run.metrics("tfrc")["sending_rate_bps"])
        return cls(times[x], values[x], mean("p"), mean("rtt_ms") / 1000, sent, run.digest)

    @property
    def packets(self) -> npt.NDArray[np.float64]:
        """X in packets a round trip."""
        return self.x * RTT_S / (8 * PACKET)

    @property
    def begin(self) -> float:
        """First X in packets a round trip; NaN if the sender has none."""
        return float(self.packets[0]) if len(self.x) else float("nan")

    def reaches(self, since: float) -> float:
        """Time from `since` until X allows the application's rate, s; NaN if it never does."""
        enough = self.at[(self.at > since) & (self.x >= MEDIA_RATE)]
        return float(enough[0]) - since if len(enough) else float("nan")

    def minimum(self, begin: float, end: float) -> float:
        """Smallest X between two times, with the one in force at the first, bit/s; NaN if the sender has none."""
        if not len(self.x):
            return float("nan")
        first = max(0, int(np.searchsorted(self.at, begin, side="right")) - 1)
        return float(self.x[first : int(np.searchsorted(self.at, end))].min())

    def recovery_s(self) -> float:
        """Time from the end of `IDLE` until X allows the media's rate again, s; 0 if it always does."""
        return 0.0 if self.minimum(*IDLE_S) >= MEDIA_RATE else self.reaches(IDLE_S[1])

    def mean(self, begin: float, end: float) -> float:
        """Mean X between two times, bit/s; NaN if the sender has none."""
        if not len(self.x):
            return float("nan")
        edges = np.concatenate([[begin], self.at[(self.at > begin) & (self.at < end)], [end]])
        in_force = np.maximum(np.searchsorted(self.at, edges[:-1], side="right") - 1, 0)
        return float((self.x[in_force] * np.diff(edges)).sum() / (end - begin))

    def idle(self) -> npt.NDArray[np.float64]:
        """X in packets a round trip before the first nofeedback timeout of the silence and at each; NaN without."""
        # the last feedback on sent packets arrives a round trip after the begin of the silence
        silent = (self.at > 5 + 1.5 * RTT_S) & (self.at < 8)  # noqa: PLR2004
        if not silent.any():
            return np.full(2, np.nan)
        first = int(np.flatnonzero(silent)[0])
        return self.packets[first - 1 : first + int(silent.sum())]


def jobs(seeds: Sequence[int]) -> Mapping[Any, Then[Run, Rates]]:
    """Jobs of section 2, under keys that begin with `improvements`; only the lossy ones depend on the seed."""
    jobs: dict[Any, Then[Run, Rates]] = {}
    for rules in RULES:
        jobs["improvements", "idle", rules] = Then(RunJob(_steady(rules), 1), Rates.from_run)
        jobs["improvements", "limited", rules] = Then(RunJob(_data_limited(rules), 1), Rates.from_run)
    for rules, seed in product(RULES, seeds):
        for name, steady in (("idle", _steady), ("limited", _data_limited)):
            job = RunJob(_congested(steady, rules), seed)
            jobs["improvements", f"congested {name}", rules, seed] = Then(job, Rates.from_run)
    for seed, size in product(seeds, (PACKET, SHORT)):
        jobs["improvements", size, seed] = Then(RunJob(_lossy(size), seed), Rates.from_run)
    return jobs


@dataclass(frozen=True)
class RuleResults:
    """Results of section 2."""

    done: Mapping[Any, Any]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for rules in RULES:
            silent: Rates = self.done["improvements", "idle", rules]
            idle = silent.idle()
            halved = idle[1:] / idle[:-1]
            yield f"start.{rules}.window", Measure.exact(silent.begin, "packets")
            yield (
                f"start.{rules}.delay",
                Measure.exact(silent.reaches(0.0), "s", "time until X reaches the media's rate"),
            )
            yield (
                f"idle.{rules}.first",
                Measure.exact(float(halved[0]), "", "ratio of X after the first timeout to X before"),
            )
            yield (
                f"idle.{rules}.least",
                Measure.exact(float(idle.min()), "packets", "minimum of X in packets a round trip"),
            )
            yield (
                f"idle.{rules}.back",
                Measure.exact(silent.reaches(8.0), "s", "time until X reaches the media's rate again"),
            )
            limited: Rates = self.done["improvements", "limited", rules]
            minimum = limited.minimum(IDLE_S[0] + _LATER_S, IDLE_S[1])
            yield (
                f"limited.{rules}.least",
                Measure.exact(minimum / LITTLE, "", "ratio of the minimum of X to the media's rate while data-limited"),
            )
            yield (
                f"limited.{rules}.back",
                Measure.exact(limited.recovery_s(), "s", "time until X reaches the media's rate again"),
            )
        runs = group_seeds(self.done)
        for rules in RULES:
            about = "minimum of X over the media's rate while data-limited, with 1 % of the packets lost"
            least = Quantity[Rates](lambda run: run.minimum(IDLE_S[0] + _LATER_S, IDLE_S[1]) / LITTLE, "", about)
            yield f"congested.{rules}.least", least.over(runs["improvements", "congested limited", rules])
        old, new = (runs["improvements", "congested idle", rules] for rules in RULES)
        after = Quantity[Rates](lambda run: run.mean(IDLE_S[1], IDLE_S[1] + 1) / 1e6, "Mbit/s")
        about = "mean X of RFC 5348 less that of RFC 3448 in the second after silence, with 1 % of the packets lost"
        yield "congested.gain", after.less(new, old, about)
        for size in (PACKET, SHORT):
            for name, take in (("rate", _sent), ("equation", _equation(size)), ("printed", _printed(size))):
                yield f"lossy.{size}.{name}", Quantity(take, "bit/s").over(runs["improvements", size])

    def table(self) -> Table:
        """Measures of RFC 3448 beside those of RFC 5348."""
        measures = dict(self.measures())
        rows = (
            {
                "rules": rules,
                "initial window (packets)": measures[f"start.{rules}.window"],
                "start-up delay (s)": measures[f"start.{rules}.delay"],
                "ratio of X after the first timeout to X before": measures[f"idle.{rules}.first"],
                "minimum of X when idle (packets a round trip)": measures[f"idle.{rules}.least"],
                "recovery after idle (s)": measures[f"idle.{rules}.back"],
                "ratio of the minimum of X to the media's rate when data-limited": measures[f"limited.{rules}.least"],
                "recovery after data-limited (s)": measures[f"limited.{rules}.back"],
            }
            for rules in RULES
        )
        return Table.of(
            "improvements", "Section 2.1: allowed rate X for media of 1 Mb/s over a round trip of 100 ms", rows
        )

    def figure(self) -> Drawing:
        """X over time with a silence."""
        sheet = Sheet(
            "Section 2.1", "Allowed rate with silence from 5 to 8 s", "Time (s)", "Allowed rate (bit/s)", ylog=True
        )
        for rules in RULES:
            run = self.done["improvements", "idle", rules]
            sheet.series(rules, run.at, run.x, step=True)
        sheet.series("media", [0, 5, 5, 8, 8, 12], [MEDIA_RATE, MEDIA_RATE, np.nan, np.nan, MEDIA_RATE, MEDIA_RATE])
        return sheet.drawing("improvements", "Media of 1 Mb/s in packets of 1000 bytes, over a round trip of 100 ms.")


def _sent(run: Rates) -> float:
    return run.sent


def _equation(size: int) -> Callable[[Rates], float]:
    """Throughput by RFC 5348's equation from the sender's values, bit/s; NaN if it has none."""
    return lambda run: float("nan") if math.isnan(run.p) else 8 * formulas.throughput(size, run.rtt_s, run.p)


def _printed(size: int) -> Callable[[Rates], float]:
    """Throughput by the document's equation, which has s in place of b and of 3."""

    def rate(run: Rates) -> float:
        first = run.rtt_s * np.sqrt(2 * run.p / size)
        timeouts = 4 * run.rtt_s * 3 * np.sqrt(8 * run.p / size) * run.p * (1 + 32 * run.p**2)
        return float(8 * size / (first + timeouts))

    return rate
