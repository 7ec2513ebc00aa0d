"""The links of libwebrtc's recordings in the engine: the same capacity, queue and losses, but a pacer, padding and RTCP.

How the recordings were made is said in `vectors/README.md` of the shared folder. The table is that of `docs/controllers/gcc.md`;
`test_gcc_links.py` puts bounds on its numbers, and on others of these links.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from simpy.events import Event

import tidegate
from gcc_experiments import RecordedFlow, Targets
from kept import kept
from support import shared
from tidegate import Feedback, Flow, Link, Media, Run, Scenario
from tidegate.simpy import Environment, Packet, World

SHARED = "vectors"
"""Folder of the recordings in the shared folder."""
Steps = Sequence[tuple[float, int]]
"""Pairs of a time in s and a rate in kbit/s from then on."""


@dataclass(frozen=True)
class Recorded:
    """A link that is recorded, and how much there is to send. Rates are in kbit/s."""

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
    """Probability that a packet is lost, each for itself."""
    loses_from: int = 10
    """When that begins, in s."""
    queue_ms: int = 400
    """The longest wait in the queue."""

    def capacity_bps(self, now_ns: int) -> int:
        """Capacity of the link at a time."""
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
LOSS5_BY_LUCK, ALR_DROP_UNLIMITED = "loss5, by luck", "alr_drop, no limit of the queue"
"""Links that are like those of a recording, but for losses or queue."""
LINKS[LOSS5_BY_LUCK] = replace(LINKS["loss5"], seconds=1, loses=False, loss=0.05, loses_from=0)
LINKS[ALR_DROP_UNLIMITED] = replace(LINKS["alr_drop"], queue_ms=10**6)

Choice = dict[str, Any]
BARE: Choice = {"source": "greedy", "payload": "1176B", "overhead": "0B"}
"""Packets of 1200 bytes at the target, sent at 2.5 times it: what the recordings have, but for the pacer."""
CALL: Choice = {"source": "ideal", "settings": {"pacing_factor": 1.1, "alr_probing": False}}
"""A call with a camera: 30 frames a second, a pacing factor of 1.1, and headers of IP and UDP."""
CHOICES: dict[str, Choice] = {
    "bare": BARE,
    "call": CALL,
    "call, short bursts": {**CALL, "settings": {**CALL["settings"], "burst": "5ms"}},
    "call, probing": {**CALL, "settings": {**CALL["settings"], "alr_probing": True}},
}


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
        **{"feedback": Feedback(interval="50ms", reports="1s"), "repair": "none", **media},
    )
    link = Link(name="link", capacity="external", back={"capacity": "infinite", "delay": f"{of.one_way_ms}ms"})
    return Scenario(duration=f"{of.seconds}s", links=[link], flows=[Flow(name="call", media=call)])


class Carrier:
    """The recordings' link: a packet is served at the rate of when it came, a lost one takes no time."""

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
        if wait > self.of.queue_ms * 1_000_000:
            return packet.drop("queue")
        self.free_at = now + wait + packet.size * 8_000_000_000 // self.of.capacity_bps(now)
        self.world.env.process(self._arrive(packet, self.free_at + self.of.one_way_ms * 1_000_000 - now))
        return None

    def _arrive(self, packet: Packet, after: int) -> Generator[Event, None, None]:
        yield self.world.env.timeout(after)
        packet.forward()


def by_luck(of: Recorded, seed: int) -> Callable[[int, int], bool]:
    """Loses each packet for itself, from a time on."""
    luck = tidegate.Stream(seed, "link", "loss")
    return lambda _, now: now >= of.loses_from * 10**9 and luck.chance(of.loss)


def by_number(name: str) -> Callable[[int, int], bool]:
    """Loses the packets that were lost in a recording."""
    gone = {int(row["seq"]) for row in _rows(f"{name}_packets") if int(row["arrival_us"]) < 0}
    return lambda number, _: number in gone


@kept
def engine(name: str, choice: str, seed: int) -> dict[str, float]:
    """Numbers of a run over the link of that name, by measure."""
    of, env = LINKS[name], Environment()
    world = World(env, scenario(of, **CHOICES[choice]), seed=seed, record="series")
    world.link("link").out = Carrier(world, of, by_number(name) if of.loses else by_luck(of, seed)).take
    run: Run = env.run(until=world.done)
    targets = RecordedFlow(run).targets
    return _numbers(name, Targets(targets.t, targets.rate / 1000))


@kept
def libwebrtc(name: str) -> list[dict[str, float]]:
    """Numbers of what libwebrtc allowed, by measure: of one recording, or of its ten seeds."""
    rows = list(_rows(f"{name}_{'seeds' if LINKS[name].loss else 'targets'}"))
    seeds = sorted({row.get("seed", "") for row in rows})
    return [_numbers(name, _targets([row for row in rows if row.get("seed", "") == seed])) for seed in seeds]


def _numbers(name: str, targets: Targets) -> dict[str, float]:
    return {measure.name: measure.read(targets) for measure in (*MEASURES, *FURTHER) if measure.link == name}


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (shared() / SHARED / f"goog_cc_{name}.csv").open() as file:
        yield from csv.DictReader(file)


def _targets(rows: Sequence[dict[str, str]]) -> Targets:
    return Targets(*np.array([(int(row["time_us"]) / 1e6, int(row["target_bps"]) / 1e3) for row in rows]).T)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A number that is read off targets on a link, in kbit/s; a table rounds it to so many digits."""

    link: str
    name: str
    read: Callable[[Targets], float]
    digits: int = 0

    def engine(self, choice: str, seeds: int | None = None) -> list[float]:
        """Those of so many seeds: by default twenty where it is luck what is lost, else five."""
        seeds = seeds or (20 if LINKS[self.link].loss else 5)
        return [engine(self.link, choice, seed)[self.name] for seed in range(1, seeds + 1)]

    def libwebrtc(self) -> list[float]:
        """Those of libwebrtc."""
        return [numbers[self.name] for numbers in libwebrtc(self.link)]

    def cell(self, values: Sequence[float]) -> str:
        """The median, with the least and the most where they differ."""
        there = sorted(value for value in values if not math.isnan(value))
        if len(there) < len(values):
            some = f"{len(there)} of {len(values)}: " if there else ""
            return some + (self._text(statistics.median(there)) if there else "never")
        least, middle, most = (self._text(value) for value in (there[0], statistics.median(there), there[-1]))
        return middle if least == most else f"{middle} ({least} to {most})"

    def _text(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


def mean(link: str, start: int, stop: int) -> Measure:
    """The mean target between two times."""
    return Measure(link, f"mean from {start} to {stop} s (kbit/s)", lambda targets: targets.mean(start, stop))


def reaches(link: str, kbps: int, after: float = 0) -> Measure:
    """The time that it takes up to a rate."""
    name = f"to {kbps} kbit/s" + (f" from {after} s on" if after else "") + " (s)"
    return Measure(link, name, lambda targets: targets.reaches(kbps, after), 2)


def falls(link: str, kbps: int, after: int) -> Measure:
    """The time that it takes down to a rate."""
    name = f"down to {kbps} kbit/s from {after} s on (s)"
    return Measure(link, name, lambda targets: targets.falls(kbps, after), 2)


def at(link: str, time: float) -> Measure:
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


FURTHER = [
    mean("steps", 2, 15),
    mean("steps", 17, 20),
    at("drop_recovery", 40),
    at("loss20", 9.9),
    reaches(LOSS5_BY_LUCK, 4000),
    reaches(ALR_DROP_UNLIMITED, 1000, 13.2),
]
"""Measures that tests alone look at."""


def table() -> str:
    """As it stands in the page."""
    lines = ["| link | target | libwebrtc | engine | engine, a call |", "|---|---|---:|---:|---:|"]
    for measure in MEASURES:
        columns = (measure.libwebrtc(), measure.engine("bare"), measure.engine("call"))
        lines.append(" | ".join([f"| `{measure.link}`", measure.name, *map(measure.cell, columns)]) + " |")
    return "\n".join(lines) + "\n"


TABLES = {("controllers/gcc.md", "links"): table}


def further() -> None:
    """Asks for what tests look at."""
    at("loss20", 15).engine("call, short bursts")
    reaches("drop_recovery", 2400, 25).engine("call, probing", 1)
    reaches(LOSS5_BY_LUCK, 4000).engine("call", 10)
    reaches(ALR_DROP_UNLIMITED, 1000, 13.2).engine("bare", 3)
