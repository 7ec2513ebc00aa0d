"""The links of libwebrtc's recordings in the engine: the same capacity, queue and losses, but a pacer, padding and RTCP.

How the recordings were made is said in `vectors/README.md` of the shared folder. `test_gcc_links.py` puts bounds on what comes
out, and writes the table of `docs/controllers/gcc.md`.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from simpy.events import Event

import tidegate
from gcc_experiments import Seen, Targets
from tidegate import Feedback, Flow, Link, Media, Run, Scenario
from tidegate.simpy import Environment, Packet, World

Floats = npt.NDArray[np.float64]
Steps = Sequence[tuple[float, int]]
"""Pairs of a time in s and a rate in kbit/s from then on."""


@dataclass(frozen=True)
class Recorded:
    """What a recording was made on: a link and how much there was to send. Rates are in kbit/s."""

    capacity: Steps
    seconds: int = 40
    application: Steps = ()
    one_way_ms: int = 25
    start: int = 300
    largest: int = 10_000
    alr_probing: bool = True
    loses: bool = False
    """Whether the packets are lost that were lost in the recording, by their numbers."""
    loss: float = 0.0
    """What is lost from 10 s on, each packet for itself."""

    def capacity_bps(self, now_ns: int) -> int:
        """What the link carries."""
        return [kbps * 1000 for since, kbps in self.capacity if now_ns >= since * 1e9][-1]


LINKS = {
    "const1m": Recorded([(0, 1000)]),
    "steps": Recorded([(0, 2000), (15, 500), (30, 2000)], seconds=60),
    "drop_recovery": Recorded(
        [(0, 3000), (10, 300), (14, 3000)], seconds=60, application=[(0, 10_000), (25, 300), (40, 10_000)]
    ),
    "alr": Recorded([(0, 5000)], application=[(0, 400)]),
    "limited_noalr": Recorded([(0, 5000)], application=[(0, 400)], alr_probing=False),
    "alr_drop": Recorded([(0, 3000), (12, 400), (13.2, 3000)], application=[(0, 1000)]),
    "loss5": Recorded([(0, 10_000)], seconds=30, one_way_ms=40, start=500, largest=5000, loses=True),
    "bursty": Recorded([(0, 2000)], loses=True),
    "loss10": Recorded([(0, 10_000)], one_way_ms=40, start=500, largest=5000, loss=0.1),
    "loss20": Recorded([(0, 10_000)], one_way_ms=40, start=500, largest=5000, loss=0.2),
}

Choice = dict[str, Any]
BARE: Choice = {"source": "greedy", "payload": "1176B", "overhead": "0B"}
"""Packets of 1200 bytes at the target, sent at 2.5 times it: what the recordings have, but for the pacer."""
CALL: Choice = {"source": "ideal", "settings": {"pacing_factor": 1.1, "alr_probing": False}}
"""A call with a camera: 30 frames a second, a pacing factor of 1.1, and headers of IP and UDP."""


def scenario(of: Recorded, *, source: str, settings: Choice | None = None, **media: Any) -> Scenario:
    """A call over the link, whose packets the caller carries."""
    controller = {"name": "gcc", "preset": "libwebrtc", "pacing_factor": 2.5, "alr_probing": of.alr_probing}
    largest = f"{of.largest}kbps"
    steps = [(f"{since}s", f"{kbps}kbps") for since, kbps in of.application]
    call = Media(
        controller={**controller, **(settings or {})},
        start_rate=f"{of.start}kbps",
        max_rate=largest,
        video={"source": source, "min": "30kbps", "max": largest, "schedule": steps},
        **{"feedback": Feedback(interval="50ms", reports="1s"), **media},
    )
    link = Link(name="link", capacity="external", back={"capacity": "infinite", "delay": f"{of.one_way_ms}ms"})
    return Scenario(duration=f"{of.seconds}s", links=[link], flows=[Flow(name="call", media=call)])


class Carrier:
    """The recordings' link: a packet is served at the rate of when it came, a lost one takes no time."""

    queue_ns = 400_000_000

    def __init__(self, world: World, of: Recorded, lost: Callable[[int, int], bool]) -> None:
        self.world, self.of, self.lost = world, of, lost
        self.free_at = 0
        self.packets = 0

    def take(self, packet: Packet) -> None:
        """A packet comes."""
        now = self.world.now
        wait = max(self.free_at - now, 0)
        if packet.kind != "rtcp":
            number, self.packets = self.packets, self.packets + 1
            if self.lost(number, now):
                return packet.drop("loss")
        if wait > self.queue_ns:
            return packet.drop("queue")
        self.free_at = now + wait + packet.size * 8_000_000_000 // self.of.capacity_bps(now)
        self.world.env.process(self._arrive(packet, self.free_at + self.of.one_way_ms * 1_000_000 - now))
        return None

    def _arrive(self, packet: Packet, after: int) -> Generator[Event, None, None]:
        yield self.world.env.timeout(after)
        packet.forward()


def run(of: Recorded, lost: Callable[[int, int], bool], seed: int, **choice: Any) -> Run:
    """A run over the link; `lost` is asked with the number of an RTP packet and the time in ns."""
    env = Environment()
    world = World(env, scenario(of, **choice), seed=seed, record="series")
    world.link("link").out = Carrier(world, of, lost).take
    done: Run = env.run(until=world.done)
    return done


def targets_of(run: Run) -> Targets:
    """The targets of a run, kbit/s."""
    found = Seen(run).targets
    return Targets(found.t, found.rate / 1000)


def by_luck(of: Recorded, seed: int) -> Callable[[int, int], bool]:
    """Loses each packet for itself, from 10 s on."""
    luck = tidegate.Stream(seed, "link", "loss")
    return lambda _, now: now >= 10 * 10**9 and luck.chance(of.loss)


def engine(name: str, vectors: Path, seed: int, choice: Choice) -> Targets:
    """The targets of a run over the link of that recording."""
    of = LINKS[name]
    if of.loses:
        gone = {int(row["seq"]) for row in _rows(vectors / f"goog_cc_{name}_packets.csv") if int(row["arrival_us"]) < 0}
        return targets_of(run(of, lambda number, _: number in gone, seed, **choice))
    return targets_of(run(of, by_luck(of, seed), seed, **choice))


def libwebrtc(name: str, vectors: Path) -> list[Targets]:
    """What libwebrtc allowed: one recording, or its ten seeds."""
    if LINKS[name].loss:
        rows = list(_rows(vectors / f"goog_cc_{name}_seeds.csv"))
        seeds = sorted({row["seed"] for row in rows})
        return [_targets(row for row in rows if row["seed"] == seed) for seed in seeds]
    return [_targets(_rows(vectors / f"goog_cc_{name}_targets.csv"))]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open() as file:
        yield from csv.DictReader(file)


def _targets(rows: Iterator[dict[str, str]]) -> Targets:
    cells = np.array([(int(row["time_us"]) / 1e6, int(row["target_bps"]) / 1e3) for row in rows])
    return Targets(cells[:, 0], cells[:, 1])


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A row: what is read off, and to how much it is rounded."""

    link: str
    what: str
    read: Callable[[Targets], float]
    digits: int = 0

    def cell(self, runs: Sequence[Targets]) -> str:
        """The median over runs, with the least and the most where they differ."""
        values = sorted(self.read(targets) for targets in runs)
        there = [value for value in values if not math.isnan(value)]
        if len(there) < len(values):
            some = f"{len(there)} of {len(values)}: " if there else ""
            return some + (self._text(statistics.median(there)) if there else "never")
        least, middle, most = (self._text(value) for value in (values[0], statistics.median(values), values[-1]))
        return middle if least == most else f"{middle} ({least} to {most})"

    def _text(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


def mean(link: str, start: int, stop: int) -> Measure:
    """The mean target between two times."""
    return Measure(link, f"mean from {start} to {stop} s (kbit/s)", lambda targets: targets.mean(start, stop))


def reaches(link: str, kbps: int, after: float = 0) -> Measure:
    """How long it takes up to a rate."""
    what = f"to {kbps} kbit/s" + (f" from {after} s on" if after else "") + " (s)"
    return Measure(link, what, lambda targets: targets.reaches(kbps, after), 2)


def falls(link: str, kbps: int, after: int) -> Measure:
    """How long it takes down to a rate."""
    what = f"down to {kbps} kbit/s from {after} s on (s)"
    return Measure(link, what, lambda targets: targets.falls(kbps, after), 2)


def at(link: str, time: int) -> Measure:
    """The target at a time."""
    return Measure(link, f"at {time} s (kbit/s)", lambda targets: targets.at(time))


MEASURES = [
    reaches("const1m", 800),
    mean("const1m", 5, 40),
    reaches("steps", 1600),
    falls("steps", 500, 15),
    mean("steps", 20, 30),
    reaches("steps", 1600, 30),
    falls("drop_recovery", 300, 10),
    mean("drop_recovery", 15, 25),
    reaches("drop_recovery", 2400, 25),
    mean("drop_recovery", 45, 60),
    reaches("alr", 4000),
    mean("alr", 5, 40),
    reaches("limited_noalr", 4000),
    mean("limited_noalr", 5, 40),
    falls("alr_drop", 400, 12),
    at("alr_drop", 15),
    reaches("alr_drop", 1000, 13.2),
    reaches("loss5", 4000),
    mean("loss5", 5, 30),
    mean("bursty", 5, 40),
    *(at(link, time) for link in ("loss10", "loss20") for time in (15, 20, 30, 39)),
]


def columns(name: str, vectors: Path) -> tuple[list[Targets], ...]:
    """libwebrtc's targets, and ours: twenty seeds where it is luck what is lost, else five."""
    seeds = range(1, 21 if LINKS[name].loss else 6)
    ours = ([engine(name, vectors, seed, choice) for seed in seeds] for choice in (BARE, CALL))
    return (libwebrtc(name, vectors), *ours)


def table(runs: dict[str, tuple[list[Targets], ...]]) -> str:
    """The table, in Markdown, from the columns of each link."""
    lines = ["| link | target | libwebrtc | engine | engine, a call |", "|---|---|---:|---:|---:|"]
    for measure in MEASURES:
        cells = [measure.cell(column) for column in runs[measure.link]]
        lines.append(" | ".join([f"| `{measure.link}`", measure.what, *cells]) + " |")
    return "\n".join(lines) + "\n"
