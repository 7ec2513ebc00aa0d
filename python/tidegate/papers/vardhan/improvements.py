"""Section 2 of the document: what RFC 5348 does otherwise than RFC 3448, on a path where nothing else happens."""

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
"""The presets that are compared."""
MEDIA_RATE = Rate(1_000_000)
"""What the application makes."""
LITTLE = Rate(100_000)
"""What it makes while it has little to send."""
PACKET = 1000
"""Bytes of a packet, headers included, so that "4 packets" are 4000 bytes."""
SHORT = 160
"""The same of short packets (section 4.5's voice)."""
RTT_S = 0.1
IDLE = ("5s", "8s")
"""When the application is silent, or has little to send."""
IDLE_S = (5.0, 8.0)
"""The same in seconds."""
LOSS = "1%"
_HEADERS = 44
_LATER_S = 0.5
"""After five round trips with little to send, nothing that was received before counts any more."""


def _run(
    name: str, preset: str, size: int, *, until: str, warmup: str = "0s", loss: str = "0%", **media: Any
) -> Scenario:
    packet = Size(size)
    flow = Media(
        controller={"name": "tfrc", "preset": preset, "segment": packet, "mss": packet},
        payload=Size(size - _HEADERS + 1),
        overhead=Size(12),
        feedback={"format": "none", "reports": "1000s"},
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
    """An application of constant rate that is silent for some seconds."""
    rate = Rate(MEDIA_RATE * (PACKET - _HEADERS) // PACKET)
    video = {"source": "ideal", "min": rate, "max": rate, "fps": MEDIA_RATE / (8 * PACKET)}
    return _run("vardhan-idle", preset, PACKET, until="12s", video=video, pauses=[IDLE], max_rate=MEDIA_RATE)


def _data_limited(preset: str) -> Scenario:
    """An application that has a tenth of its rate for as long."""
    begin, end = IDLE
    schedule = [("0s", MEDIA_RATE), (begin, LITTLE), (end, MEDIA_RATE)]
    video = {"source": "cbr", "schedule": schedule, "packet_size": Size(PACKET - 2 * _HEADERS)}
    return _run("vardhan-limited", preset, PACKET, until="12s", video=video, max_rate=MEDIA_RATE)


def _lossy(size: int) -> Scenario:
    """An application that always has something to send, where every hundredth packet is lost."""
    greedy = {"source": "greedy"}
    return _run(
        "vardhan-short", "rfc5348", size, until="220s", warmup="20s", loss=LOSS, video=greedy, max_rate="20Mbps"
    )


@dataclass(frozen=True)
class Rates:
    """The allowed rate X over time."""

    at: npt.NDArray[np.float64]
    """In seconds."""
    x: npt.NDArray[np.float64]
    """In bit/s."""
    p: float
    rtt_s: float
    """Means of what the sender knows, from 20 s on."""
    sent: float
    """What it sends, in bit/s."""
    digest: str

    @classmethod
    def of(cls, run: Run) -> Rates:
        """Of a run with its internals recorded."""
        internals = run.table("internals")
        name, at, value = (internals.to_numpy(column) for column in ("name", "t_s", "value"))

        def mean(what: str) -> float:
            late = value[(name == what) & (at > 20)]  # noqa: PLR2004
            return float(late.mean()) if len(late) else float("nan")

        x = name == "x_bps"
        sent = float(run.metrics("tfrc")["sending_rate_bps"])
        return cls(at[x], value[x], mean("p"), mean("rtt_ms") / 1000, sent, run.digest)

    @property
    def packets(self) -> npt.NDArray[np.float64]:
        """X in packets a round trip."""
        return self.x * RTT_S / (8 * PACKET)

    @property
    def begin(self) -> float:
        """X in packets a round trip at first; NaN of a sender that has none."""
        return float(self.packets[0]) if len(self.x) else float("nan")

    def reaches(self, since: float) -> float:
        """How long after a time X allows what the application makes, in seconds; NaN where it never does."""
        enough = self.at[(self.at > since) & (self.x >= MEDIA_RATE)]
        return float(enough[0]) - since if len(enough) else float("nan")

    def least(self, begin: float, end: float) -> float:
        """The least X between two times, what holds at the first included, in bit/s; NaN of a sender that has none."""
        if not len(self.x):
            return float("nan")
        first = max(0, int(np.searchsorted(self.at, begin, side="right")) - 1)
        return float(self.x[first : int(np.searchsorted(self.at, end))].min())

    def back(self) -> float:
        """How long after the media have their rate again X allows it, in seconds: 0 where it always did."""
        return 0.0 if self.least(*IDLE_S) >= MEDIA_RATE else self.reaches(IDLE_S[1])

    def idle(self) -> npt.NDArray[np.float64]:
        """X in packets a round trip before the first nofeedback timeout in the silence and at each; NaN without any."""
        # the last feedback of what was sent comes a round trip into it
        silent = (self.at > 5 + 1.5 * RTT_S) & (self.at < 8)  # noqa: PLR2004
        if not silent.any():
            return np.full(2, np.nan)
        first = int(np.flatnonzero(silent)[0])
        return self.packets[first - 1 : first + int(silent.sum())]


def jobs(seeds: Sequence[int]) -> Mapping[Any, Then[Run, Rates]]:
    """The runs, under keys that begin with `improvements`: without luck but for the lossy ones."""
    made: dict[Any, Then[Run, Rates]] = {}
    for rules in RULES:
        made["improvements", "idle", rules] = Then(RunJob(_steady(rules), 1), Rates.of)
        made["improvements", "limited", rules] = Then(RunJob(_data_limited(rules), 1), Rates.of)
    for seed, size in product(seeds, (PACKET, SHORT)):
        made["improvements", size, seed] = Then(RunJob(_lossy(size), seed), Rates.of)
    return made


@dataclass(frozen=True)
class Results:
    """What they came to."""

    done: Mapping[Any, Any]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
        for rules in RULES:
            one: Rates = self.done["improvements", "idle", rules]
            idle = one.idle()
            halved = idle[1:] / idle[:-1]
            yield f"start.{rules}.window", Measure.exact(one.begin, "packets")
            yield f"start.{rules}.delay", Measure.exact(one.reaches(0.0), "s", "until X is the media's rate")
            yield f"idle.{rules}.first", Measure.exact(float(halved[0]), "", "X after the first timeout over before")
            yield f"idle.{rules}.least", Measure.exact(float(idle.min()), "packets", "least X a round trip")
            yield f"idle.{rules}.back", Measure.exact(one.reaches(8.0), "s", "until X is the media's rate again")
            little: Rates = self.done["improvements", "limited", rules]
            least = little.least(IDLE_S[0] + _LATER_S, IDLE_S[1])
            yield f"limited.{rules}.least", Measure.exact(least / LITTLE, "", "least X over the media's rate of then")
            yield f"limited.{rules}.back", Measure.exact(little.back(), "s", "until X is the media's rate again")
        runs = group_seeds(self.done)
        for size in (PACKET, SHORT):
            for name, take in (("rate", _sent), ("equation", _equation(size)), ("printed", _printed(size))):
                yield f"lossy.{size}.{name}", Quantity(take, "bit/s").over(runs["improvements", size])

    def table(self) -> Table:
        """RFC 3448 beside RFC 5348."""
        made = dict(self.measures())
        rows = (
            {
                "rules": rules,
                "first window": made[f"start.{rules}.window"],
                "start-up delay": made[f"start.{rules}.delay"],
                "first timeout": made[f"idle.{rules}.first"],
                "least when idle": made[f"idle.{rules}.least"],
                "back after idle": made[f"idle.{rules}.back"],
                "least X when data-limited, over the media's rate": made[f"limited.{rules}.least"],
                "back after data-limited": made[f"limited.{rules}.back"],
            }
            for rules in RULES
        )
        return Table.of("improvements", "Section 2.1: 1 Mb/s of media, 100 ms", rows)

    def figure(self) -> Drawing:
        """X over time."""
        sheet = Sheet(
            "Section 2.1", "Allowed rate, silence from 5 to 8 s", "Time (s)", "Allowed rate (bit/s)", ylog=True
        )
        for rules in RULES:
            one = self.done["improvements", "idle", rules]
            sheet.series(rules, one.at, one.x, step=True)
        sheet.series("media", [0, 5, 5, 8, 8, 12], [MEDIA_RATE, MEDIA_RATE, np.nan, np.nan, MEDIA_RATE, MEDIA_RATE])
        return sheet.drawing("improvements", "1 Mb/s of media in packets of 1000 bytes over a round trip of 100 ms.")


def _sent(one: Rates) -> float:
    return one.sent


def _equation(size: int) -> Callable[[Rates], float]:
    """RFC 5348's throughput for what the sender knows, in bit/s; NaN where it knows nothing."""
    return lambda one: float("nan") if math.isnan(one.p) else 8 * formulas.throughput(size, one.rtt_s, one.p)


def _printed(size: int) -> Callable[[Rates], float]:
    """The same by the document's equation, which has s where b and 3 belong."""

    def rate(one: Rates) -> float:
        first = one.rtt_s * np.sqrt(2 * one.p / size)
        timeouts = 4 * one.rtt_s * 3 * np.sqrt(8 * one.p / size) * one.p * (1 + 32 * one.p**2)
        return float(8 * size / (first + timeouts))

    return rate
