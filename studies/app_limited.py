"""The scenarios `app-limited-*` under every controller of the registry: what is run, and the tables of `docs/app-limited.md`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

import tidegate
from tidegate import Run, Scenario
from tidegate.control.registry import registry

Floats = npt.NDArray[np.float64]

CONTROLLERS = [*registry(), "sprout:aware"]
"""All of them with their defaults, and our rule for Sprout."""
SEEDS = (1, 2, 3)
WANTED_BPS = 1e6
"""What the encoder of app-limited-video makes at most."""
RESUMED_S = (30.0, 60.0)
"""When the call of app-limited-pause speaks again."""
SLOW_BPS = 1e6
"""Its link's capacity from the second pause on."""
BACK = 0.9
"""Of its rate before the pause: then it is back."""
AFTER_S = 10.0
"""How long after a pause delay and rate are looked at."""
SLIDES_S = tuple(range(15, 95, 10))
"""When app-limited-screen has a new slide; it takes half a second at the encoder."""
SLIDE_S = 0.5
SLIDE_PACKETS = 150
"""2.4 Mb/s in packets of 1000 bytes for that long."""
FIRST, BETWEEN = 60, 38
"""Packets before the first slide (15 s at 32 kb/s) and between two (9.5 s)."""


@cache
def ran(name: str, controller: str, seed: int) -> Run:
    """A run of one of the three scenarios."""
    flow = "screen" if name == "screen" else "call"
    scenario = Scenario.load(f"app-limited-{name}", {f"flows.{flow}.media.controller": controller})
    return tidegate.run(scenario, seed=seed, record="packets")


def mean(value: Callable[[str, int], float], controller: str) -> float:
    """Over the seeds."""
    return float(np.mean([value(controller, seed) for seed in SEEDS]))


def media(run: Run) -> tuple[Floats, Floats, Floats]:
    """When each packet of media was sent and when it arrived, in s, and its bytes."""
    packets = run.table("packets")
    video = (packets.to_numpy("kind") == "video") & (packets.to_numpy("fate") != "under way")
    sent, arrived, size = (packets.to_numpy(name)[video] for name in ("sent_s", "arrived_s", "size"))
    return sent, arrived, size


# --- app-limited-video ----------------------------------------------------------------------------


def used(controller: str, seed: int) -> float:
    """What arrives of media, without headers, of what the encoder would make."""
    return float(ran("video", controller, seed).metrics()["goodput_bps"]) / WANTED_BPS


def metric(name: str) -> Callable[[str, int], float]:
    """A metric of app-limited-video."""
    return lambda controller, seed: float(ran("video", controller, seed).metrics()[name])


# --- app-limited-pause ----------------------------------------------------------------------------


def rate(run: Run, begin: float, end: float) -> float:
    """What is sent in a time, bit/s."""
    sent, _, size = media(run)
    return float(size[(sent >= begin) & (sent < end)].sum()) * 8 / (end - begin)


def before(controller: str, seed: int) -> float:
    """The rate in the five seconds before the first pause, bit/s."""
    return rate(ran("pause", controller, seed), 15, 20)


def recovery(controller: str, seed: int) -> float:
    """How long after the first pause the rate of a second is nearly what it was, s; the 20 s until the next one if never."""
    run, goal = ran("pause", controller, seed), BACK * before(controller, seed)
    steps = np.arange(0.0, 19.0, 0.1)
    there = [rate(run, RESUMED_S[0] + step, RESUMED_S[0] + step + 1) >= goal for step in steps]
    return float(steps[there.index(True)]) if any(there) else 20.0


def overshoot(controller: str, seed: int) -> float:
    """The largest rate of a second after the second pause, of the capacity."""
    run = ran("pause", controller, seed)
    begins = RESUMED_S[1] + np.arange(0.0, AFTER_S - 1, 0.1)
    return max(rate(run, begin, begin + 1) for begin in begins) / SLOW_BPS


def delay_after(controller: str, seed: int) -> float:
    """The longest that a packet sent after the second pause is under way, ms; a lost one counts for nothing."""
    sent, arrived, _ = media(ran("pause", controller, seed))
    seen = (sent >= RESUMED_S[1]) & (sent < RESUMED_S[1] + AFTER_S)
    return float(np.nanmax((arrived - sent)[seen])) * 1e3


# --- app-limited-screen ---------------------------------------------------------------------------


def slides(controller: str, seed: int) -> Floats:
    """For each slide, how long after the encoder was through with it the last of it arrives, s; NaN if it never does."""
    _, arrived, _ = media(ran("screen", controller, seed))
    late = []
    for number, begin in enumerate(SLIDES_S):
        # packets leave in the order in which they were made, and none is skipped (`queue_limit`)
        first = FIRST + number * (BETWEEN + SLIDE_PACKETS)
        own = arrived[first : first + SLIDE_PACKETS]
        assert len(own) == SLIDE_PACKETS
        # the maximum of numbers of which one is none is none
        late.append(float(own.max()) - begin - SLIDE_S)
    return np.array(late)


def slide(controller: str, seed: int) -> float:
    """The mean of them, s."""
    return float(slides(controller, seed).mean())


def slowest(controller: str, seed: int) -> float:
    """The worst, s."""
    return float(slides(controller, seed).max())


COLUMNS: tuple[tuple[str, Callable[[str, int], float], float, int], ...] = (
    ("used (%)", used, 100, 1),
    ("delay p95 (ms)", metric("one_way_delay_ms_p95"), 1, 0),
    ("at the sender (ms)", metric("sender_delay_ms_mean"), 1, 0),
    ("before (kb/s)", before, 1e-3, 0),
    ("back after (s)", recovery, 1, 1),
    ("overshoot", overshoot, 1, 2),
    ("delay after (ms)", delay_after, 1, 0),
    ("slide after (s)", slide, 1, 2),
    ("slowest (s)", slowest, 1, 2),
)
"""Head, what of a run, scale, digits."""


def table() -> str:
    """In Markdown."""
    lines = ["| controller | " + " | ".join(head for head, *_ in COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
    for controller in CONTROLLERS:
        cells = [f"{mean(value, controller) * scale:.{digits}f}" for _, value, scale, digits in COLUMNS]
        lines.append(f"| {controller} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
