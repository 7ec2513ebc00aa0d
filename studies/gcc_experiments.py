"""Experiments on GCC: the tables of `docs/gcc-behaviour.md`, but for that of a hundred calls.

`test_gcc_behaviour.py` puts bounds on their numbers, and `docs/make_figures.py` draws some of the runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import tidegate
from kept import kept
from support import jain
from tidegate import Feedback, Flow, Link, Media, Queue, Run, Scenario, Tcp

PRESETS = ("libwebrtc", "libwebrtc-v1", "draft-02", "aiortc")
# The receive rate counts the 12 bytes of RTP and 28 of UDP and IP beside 1200 of payload; so does the capacity.
MEGA, KILO = 1e6, 1e3
Floats = npt.NDArray[np.float64]
Capacity = str | dict[str, object]


def scenario(
    preset: str,
    capacity: Capacity,
    duration: str,
    *,
    queue: dict[str, object] | None = None,
    source: str = "greedy",
    largest: str = "10Mbps",
    start_rate: str = "300kbps",
    interval: str = "50ms",
    loss: str | None = None,
    jitter: str | None = None,
    others: Sequence[Flow] = (),
) -> Scenario:
    """One call over 50 ms one way and 300 ms of queue, unless said otherwise."""
    link: dict[str, object] = {
        "name": "bottleneck",
        "capacity": capacity,
        "delay": "50ms",
        "queue": Queue(**(queue or {"time": "300ms"})),
        "back": {"capacity": "infinite", "loss": "0%"} if loss else {"capacity": "infinite"},
    }
    if loss:
        link["loss"] = loss
    if jitter:
        link["jitter"] = {"rfc8868": {"std": jitter}}
    return Scenario(
        name="gcc",
        duration=duration,
        links=[Link(**link)],
        flows=[Flow(name="call", media=media(preset, source, largest, start_rate, interval)), *others],
    )


def media(
    preset: str,
    source: str = "greedy",
    largest: str = "10Mbps",
    start_rate: str = "300kbps",
    interval: str = "50ms",
) -> Media:
    """A call whose controller may ask for 10 Mbit/s whatever its encoder can make; nothing is sent twice."""
    return Media(
        controller=f"gcc:{preset}",
        start_rate=start_rate,
        max_rate="10Mbps",
        video={"source": source, "min": "30kbps", "max": largest},
        feedback=Feedback(interval=interval, reports="rfc3550"),
        repair="none",
    )


# --- reading a run --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Targets:
    """Targets, in whatever unit of rate, and when they came into force, in s."""

    t: Floats
    rate: Floats

    def at(self, time: float) -> float:
        """The target at a time."""
        return float(self.rate[np.searchsorted(self.t, time, side="right") - 1])

    def reaches(self, rate: float, after: float = 0.0) -> float:
        """Time until it is first at or above a rate, from a time on, s."""
        return _first(self.t, (self.t >= after) & (self.rate >= rate)) - after

    def falls(self, rate: float, after: float) -> float:
        """Time until it is first at or below a rate, from a time on, s."""
        return _first(self.t, (self.t >= after) & (self.rate <= rate)) - after

    def mean(self, start: float, stop: float) -> float:
        """Its mean over time."""
        inside = (self.t > start) & (self.t < stop)
        edges = np.concatenate([[start], self.t[inside], [stop]])
        values = np.concatenate([[self.at(start)], self.rate[inside]])
        return float((values * np.diff(edges)).sum() / (stop - start))


@dataclass(frozen=True)
class RecordedFlow:
    """One flow of a run over time."""

    run: Run
    flow: str = "call"

    def _columns(self, table: str, *columns: str) -> list[Floats]:
        got = self.run.table(table)
        mine = np.asarray(got.to_numpy("flow")) == self.flow
        return [np.asarray(got.to_numpy(column))[mine] for column in columns]

    def mean_rate(self, start: float, stop: float, column: str = "receive_rate_bps") -> float:
        """Mean of a rate, bit/s; a flow that nothing is recorded of has zero."""
        t, rate = self._columns("series", "t_s", column)
        return float(np.nan_to_num(rate[(t >= start) & (t < stop)]).sum() * _bin(t) / (stop - start))

    def loss(self, start: float, stop: float) -> float:
        """Lost over known."""
        t, lost, arrived = self._columns("series", "t_s", "packets_lost", "packets_arrived")
        within = (t >= start) & (t < stop)
        return float(lost[within].sum() / max(1, (lost + arrived)[within].sum()))

    def queueing(self, start: float, stop: float) -> tuple[float, float]:
        """Mean of the queueing delay and its peak, ms."""
        t, mean, delay = self._columns("series", "t_s", "queueing_delay_ms_mean", "one_way_delay_ms_max")
        within = (t >= start) & (t < stop)
        # beyond 50 ms of propagation; a packet's own time on the wire (10 ms at 1 Mbit/s) counts with the queue
        return float(np.nanmean(mean[within])), float(np.nanmax(delay[within])) - 50.0

    def drained(self, start: float, below: float) -> float:
        """The first bin from `start` on whose largest queueing delay is less than `below` ms, in s after it."""
        t, delay = self._columns("series", "t_s", "one_way_delay_ms_max")
        return _first(t, (t >= start) & (delay - 50.0 < below)) - start

    @property
    def targets(self) -> Targets:
        """Its targets, bit/s."""
        return Targets(*self._columns("decisions", "t_s", "target_bps"))

    def target(self, at: float) -> float:
        """The target at a time, bit/s."""
        return self.targets.at(at)

    def reaches(self, rate: float, after: float = 0.0) -> float:
        """Time until the target is first at or above a rate, from a time on, s."""
        return self.targets.reaches(rate, after)

    def falls(self, rate: float, after: float) -> float:
        """Time until the target is first at or below a rate, from a time on, s."""
        return self.targets.falls(rate, after)

    def noted(self, name: str, start: float = 0.0, stop: float = math.inf) -> Floats:
        """Values that the controller noted under a name."""
        t, value = self.noted_at(name)
        within: Floats = value[(t >= start) & (t < stop)]
        return within

    def noted_at(self, name: str) -> tuple[Floats, Floats]:
        """Times at which it noted something under a name, s, and the values."""
        t, value, names = self._columns("internals", "t_s", "value", "name")
        return t[names == name], value[names == name]


def _first(t: Floats, true: npt.NDArray[np.bool_]) -> float:
    return float(t[np.argmax(true)]) if true.any() else math.nan


def _bin(t: Floats) -> float:
    return float(t[1] - t[0])


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row: its label, and the numbers behind its cells."""

    label: str
    numbers: dict[str, float]

    def __getitem__(self, column: str) -> float:
        return self.numbers[column]


@dataclass(frozen=True)
class Experiment:
    """A table: columns with the step to which they are rounded, and what makes the rows."""

    name: str
    columns: dict[str, float]
    rows: Callable[[], list[Row]]

    def text(self) -> str:
        """The table in Markdown, rounded so that a last bit does not show."""
        rows = self.rows()
        cells = [["", *self.columns], *([row.label, *self._cells(row)] for row in rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = [
            "| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) + " |"
            for line in cells
        ]
        rule = "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
        return "\n".join([lines[0], rule, *lines[1:]]) + "\n"

    def _cells(self, row: Row) -> list[str]:
        return [_rounded(row[column], step) for column, step in self.columns.items()]


def _rounded(value: float, step: float) -> str:
    if math.isnan(value):
        return "never"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    rounded = round(value / step) * step
    return f"{rounded + 0.0:.{digits}f}"


def _rows(
    numbers: Callable[..., dict[str, float]], cases: Mapping[str, Sequence[str | int]]
) -> Callable[[], list[Row]]:
    """Rows by label, each with the arguments of its numbers."""
    return lambda: [Row(label, numbers(*args)) for label, args in cases.items()]


EACH = {preset: (preset,) for preset in PRESETS}


def ramp_run(preset: str) -> Run:
    """A call that grows up to 5 Mbit/s."""
    return tidegate.run(scenario(preset, "5Mbps", "100s"))


@kept
def ramp(preset: str) -> dict[str, float]:
    """Numbers of growth."""
    call = RecordedFlow(ramp_run(preset))
    times = {f"to {rate} Mb/s (s)": call.reaches(rate * MEGA) for rate in (1, 2, 4)}
    return {
        **times,
        "rate 80-100 s (kb/s)": call.mean_rate(80, 100) / KILO,
        "peak queue (ms)": call.queueing(0, 100)[1],
    }


STEPS: Capacity = {"schedule": [["0s", "2.5Mbps"], ["60s", "1Mbps"], ["120s", "2.5Mbps"]]}
STEPS_QUEUE: dict[str, object] = {"bytes": "125kB"}  # one second at 1 Mbit/s, so that nothing is lost
BAYESIAN = "libwebrtc-v1,received_rate=bayesian,decrease_offset=0bps"


def steps_run(preset: str) -> Run:
    """A call over a capacity that falls and comes back."""
    return tidegate.run(scenario(preset, STEPS, "200s", queue=STEPS_QUEUE))


@kept
def steps(preset: str) -> dict[str, float]:
    """Numbers of these steps."""
    call = RecordedFlow(steps_run(preset))
    return {
        "first less (s)": call.falls(call.target(60.0) * 0.97, 60.0),
        "below 1 Mb/s (s)": call.falls(MEGA, 60.0),
        "peak queue (ms)": call.queueing(60, 80)[1],
        "queue gone (s)": call.drained(60.0 + call.falls(MEGA, 60.0), 20.0) + call.falls(MEGA, 60.0),
        "rate 90-120 s (kb/s)": call.mean_rate(90, 120) / KILO,
        "to 2 Mb/s again (s)": call.reaches(2 * MEGA, 120.0),
    }


@kept
def loss(preset: str, percent: int, start: str) -> dict[str, float]:
    """Targets under random loss."""
    lossy = scenario(preset, "3Mbps", "90s", loss=f"{percent}%" if percent else None, start_rate=start)
    call = RecordedFlow(tidegate.run(lossy))
    targets = {f"at {at} s (kb/s)": call.target(at) / KILO for at in (10, 30, 60, 90)}
    return {**targets, "lost (%)": call.loss(0, 90) * 100}


LOSSES = {
    f"{preset}, {percent} %, from {start}": (preset, percent, start)
    for preset in PRESETS
    for percent in (0, 2, 5, 12)
    for start in ("300kbps", "2Mbps")
}


@kept
def sharing(preset: str, start: str, seed: int) -> dict[str, float]:
    """Rates of two calls, and how equal they are."""
    other = Flow(name="second", start=start, media=media(preset))
    run = tidegate.run(scenario(preset, "2Mbps", "300s", others=[other]), seed=seed)
    calls = (RecordedFlow(run), RecordedFlow(run, "second"))
    early = [call.mean_rate(40, 60) / KILO for call in calls]
    a, b = late = [call.mean_rate(200, 300) / KILO for call in calls]
    # when the smaller has three quarters of the larger, over windows of 10 s
    pairs = [(at, *sorted(call.mean_rate(at, at + 10) for call in calls)) for at in range(20, 290, 5)]
    return {
        "first 40-60 s (kb/s)": early[0],
        "second 40-60 s (kb/s)": early[1],
        "first 200-300 s (kb/s)": late[0],
        "second 200-300 s (kb/s)": late[1],
        "3/4 at (s)": next((at for at, less, more in pairs if less >= 0.75 * more), math.nan),
        "Jain 200-300 s": jain(late),
        "worst ratio": min(a, b) / max(a, b),
    }


def sharing_means(preset: str, start: str) -> dict[str, float]:
    """Means over five seeds; the worst ratio is that of one seed."""
    seeds = [sharing(preset, start, seed) for seed in range(1, 6)]
    means = {key: float(np.mean([numbers[key] for numbers in seeds])) for key in seeds[0]}
    return means | {"worst ratio": min(numbers["worst ratio"] for numbers in seeds)}


SHARING = {f"{preset}, second at {start}": (preset, start) for preset in PRESETS for start in ("0s", "20s")}


def tcp_run(preset: str, algorithm: str, queue: str) -> Run:
    """A call, and a download from 30 s on."""
    other = Flow(name="download", start="30s", tcp=Tcp(algorithm=algorithm))
    return tidegate.run(scenario(preset, "2Mbps", "150s", source="ideal", queue={"time": queue}, others=[other]))


@kept
def tcp(preset: str, algorithm: str, queue: str) -> dict[str, float]:
    """Rates of a call and of TCP."""
    run = tcp_run(preset, algorithm, queue)
    call, download = RecordedFlow(run), RecordedFlow(run, "download")
    return {
        "call before (kb/s)": call.mean_rate(20, 30) / KILO,
        "call 40-60 s (kb/s)": call.mean_rate(40, 60) / KILO,
        "call 90-150 s (kb/s)": call.mean_rate(90, 150) / KILO,
        "TCP 90-150 s (kb/s)": download.mean_rate(90, 150) / KILO,
        "call's loss (%)": call.loss(90, 150) * 100,
    }


DOWNLOADS = {
    ", ".join([preset, *download]): (preset, *download)
    for preset in (*PRESETS, "draft-02,num_deltas_cap=1")
    for download in (("cubic", "50ms"), ("cubic", "300ms"), ("newreno", "300ms"))
}


@kept
def limited(preset: str) -> dict[str, float]:
    """Rates of a source that sends less than it may."""
    call = RecordedFlow(tidegate.run(scenario(preset, "5Mbps", "90s", source="ideal", largest="500kbps")))
    received = call.noted("received_rate", 30.0)
    return {
        "sent 60-90 s (kb/s)": call.mean_rate(60, 90, "sending_rate_bps") / KILO,
        "R least (kb/s)": float(received.min()) / KILO,
        "R most (kb/s)": float(received.max()) / KILO,
        "target at 30 s (kb/s)": call.target(30) / KILO,
        "target at 90 s (kb/s)": call.target(90) / KILO,
    }


@kept
def feedback(preset: str, interval: str) -> dict[str, float]:
    """Growth and queue with reports at an interval."""
    call = RecordedFlow(tidegate.run(scenario(preset, "3Mbps", "120s", interval=interval)))
    return {
        "to 1 Mb/s (s)": call.reaches(MEGA),
        "to 2 Mb/s (s)": call.reaches(2 * MEGA),
        "rate 60-120 s (kb/s)": call.mean_rate(60, 120) / KILO,
        "peak queue (ms)": call.queueing(0, 120)[1],
    }


INTERVALS = {
    f"{preset}, {interval}": (preset, interval) for preset in PRESETS for interval in ("50ms", "100ms", "250ms")
}


@kept
def jitter(preset: str, std: str) -> dict[str, float]:
    """Growth and detector under jitter of a standard deviation, or under none ("")."""
    call = RecordedFlow(tidegate.run(scenario(preset, "3Mbps", "120s", jitter=std)))
    return {
        "to 2 Mb/s (s)": call.reaches(2 * MEGA),
        "rate 60-120 s (kb/s)": call.mean_rate(60, 120) / KILO,
        "over-use (% of groups)": float(np.mean(call.noted("state", 60.0) == 1)) * 100,
        "threshold (ms)": float(np.mean(call.noted("threshold", 60.0))),
    }


JITTERS = {f"{preset}, {std or 'none'}": (preset, std) for preset in PRESETS for std in ("", "5ms", "10ms")}
SPREAD = "libwebrtc,burst=5ms"
"""Today's, whose pacer spreads a frame over most of the time until the next one."""


def buffer_run(preset: str, capacity: str, queue: str) -> Run:
    """A call in frames, before a queue of that length."""
    return tidegate.run(scenario(preset, capacity, "200s", source="ideal", queue={"time": queue}))


@kept
def buffers(preset: str, capacity: str, queue: str) -> dict[str, float]:
    """Rate, queue and loss before a queue of that length."""
    call = RecordedFlow(buffer_run(preset, capacity, queue))
    mean, peak = call.queueing(100, 200)
    return {
        "rate 100-200 s (kb/s)": call.mean_rate(100, 200) / KILO,
        "queue, mean (ms)": mean,
        "queue, peak (ms)": peak,
        "lost (%)": call.loss(100, 200) * 100,
    }


BUFFERS = {
    ", ".join([preset, *link]): (preset, *link)
    for preset in (PRESETS[0], SPREAD, *PRESETS[1:])
    for link in (("1Mbps", "30ms"), ("1Mbps", "50ms"), ("1Mbps", "200ms"), ("3Mbps", "50ms"), ("3Mbps", "300ms"))
}
NETWORKS = ("home-broadband", "lte-generated", "lossy-wifi")
"""Shipped scenarios of one call."""
BEFORE_AND_TODAY = {"libwebrtc-v1": "2023, without probing", "libwebrtc": "today"}


def call_run(preset: str, network: str) -> Run:
    """A call with audio, an encoder and a pacer."""
    changes = {"flows.call.media.controller": f"gcc:{preset}", "flows.call.media.audio": {"rate": "32kbps"}}
    return tidegate.run(Scenario.load(network).with_changes(changes))


@kept
def calls(preset: str, network: str) -> dict[str, float]:
    """Metrics of such a call."""
    run = call_run(preset, network)
    metrics = run.metrics("call")
    return {
        "at 2 Mb/s after (s)": RecordedFlow(run).reaches(2 * MEGA),
        "rate (kb/s)": metrics["receive_rate_bps"] / KILO,
        "delay p95 (ms)": metrics["one_way_delay_ms_p95"],
        "lost (%)": metrics["loss_fraction"] * 100,
        "without picture (s)": metrics["without_picture_s"],
    }


CALLS = {f"{network}, {age}": (preset, network) for network in NETWORKS for preset, age in BEFORE_AND_TODAY.items()}
EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("calls", {"at 2 Mb/s after (s)": 0.1, "rate (kb/s)": 10, "delay p95 (ms)": 1, "lost (%)": 0.1, "without picture (s)": 0.1}, _rows(calls, CALLS)),
        Experiment("ramp", {"to 1 Mb/s (s)": 0.1, "to 2 Mb/s (s)": 0.1, "to 4 Mb/s (s)": 0.1, "rate 80-100 s (kb/s)": 50, "peak queue (ms)": 10}, _rows(ramp, EACH)),
        Experiment("steps", {"first less (s)": 0.05, "below 1 Mb/s (s)": 0.1, "peak queue (ms)": 20, "queue gone (s)": 0.5, "rate 90-120 s (kb/s)": 20, "to 2 Mb/s again (s)": 1}, _rows(steps, {**EACH, "libwebrtc 2018-2020": (BAYESIAN,)})),
        Experiment("loss", {"at 10 s (kb/s)": 20, "at 30 s (kb/s)": 20, "at 60 s (kb/s)": 20, "at 90 s (kb/s)": 20, "lost (%)": 0.5}, _rows(loss, LOSSES)),
        Experiment("sharing", {"first 40-60 s (kb/s)": 20, "second 40-60 s (kb/s)": 20, "first 200-300 s (kb/s)": 20, "second 200-300 s (kb/s)": 20, "3/4 at (s)": 5, "Jain 200-300 s": 0.01, "worst ratio": 0.05}, _rows(sharing_means, SHARING)),
        Experiment("tcp", {"call before (kb/s)": 50, "call 40-60 s (kb/s)": 20, "call 90-150 s (kb/s)": 20, "TCP 90-150 s (kb/s)": 20, "call's loss (%)": 0.5}, _rows(tcp, DOWNLOADS)),
        Experiment("limited", {"sent 60-90 s (kb/s)": 5, "R least (kb/s)": 5, "R most (kb/s)": 5, "target at 30 s (kb/s)": 10, "target at 90 s (kb/s)": 10}, _rows(limited, EACH)),
        Experiment("feedback", {"to 1 Mb/s (s)": 0.1, "to 2 Mb/s (s)": 0.1, "rate 60-120 s (kb/s)": 50, "peak queue (ms)": 10}, _rows(feedback, INTERVALS)),
        Experiment("jitter", {"to 2 Mb/s (s)": 0.5, "rate 60-120 s (kb/s)": 50, "over-use (% of groups)": 1, "threshold (ms)": 1}, _rows(jitter, JITTERS)),
        Experiment("buffers", {"rate 100-200 s (kb/s)": 20, "queue, mean (ms)": 5, "queue, peak (ms)": 10, "lost (%)": 0.5}, _rows(buffers, BUFFERS)),
    )
}  # fmt: skip
TABLES = {("gcc-behaviour.md", name): experiment.text for name, experiment in EXPERIMENTS.items()}
