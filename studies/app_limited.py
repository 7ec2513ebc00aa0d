"""The scenarios `app-limited-*` under every controller of the registry: the table of `docs/app-limited.md`."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

import tidegate
from kept import Kept, kept
from tidegate import Run, Scenario
from tidegate.control.registry import registry

Floats = npt.NDArray[np.float64]
Numbers = Mapping[str, float]

CONTROLLERS = [*registry(), "sprout:aware"]
"""All of them with their defaults, and our rule for Sprout."""
BURST = "gcc:burst=5ms"
"""It measures a frame packet by packet."""
SEEDS = (1, 2, 3)
TICK_SEEDS = tuple(range(1, 13))
"""Those of the runs which show what Sprout's share hangs on: it differs by a tenth between seeds."""
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "without marks": {"flows.call.media.marks": False},
    "jitter": {"links.access.back": {"capacity": "infinite", "jitter": {"uniform": "1us"}}},
    "rfc3550": {"flows.call.media.feedback.reports": "rfc3550"},
}
"""Changes of app-limited-video and app-limited-pause, by name."""
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


def play(name: str, controller: str, seed: int, changes: Mapping[str, Any] | None = None) -> Run:
    """A run of one of the three scenarios."""
    flow = "screen" if name == "screen" else "call"
    scenario = Scenario.load(f"app-limited-{name}", {f"flows.{flow}.media.controller": controller, **(changes or {})})
    return tidegate.run(scenario, seed=seed, record="packets")


def media(run: Run) -> tuple[Floats, Floats, Floats]:
    """When each packet of media was sent and when it arrived, in s, and its bytes."""
    packets = run.table("packets")
    video = (packets.to_numpy("kind") == "video") & (packets.to_numpy("fate") != "under way")
    sent, arrived, size = (packets.to_numpy(name)[video] for name in ("sent_s", "arrived_s", "size"))
    return sent, arrived, size


@kept
def video(controller: str, seed: int, changes: str = "") -> Numbers:
    """Numbers of app-limited-video with the changes of that name.

    `used` is what arrives of media, without headers, of what the encoder would make; the others are metrics.
    """
    metrics = play("video", controller, seed, CHANGES[changes] if changes else None).metrics()
    return {
        "used": metrics["goodput_bps"] / WANTED_BPS,
        **{name: metrics[name] for name in ("one_way_delay_ms_p95", "sender_delay_ms_mean")},
    }


@kept
def pause(controller: str, seed: int, changes: str = "") -> Numbers:
    """Numbers of app-limited-pause with the changes of that name.

    `before_bps` is the rate in the five seconds before the first pause. `recovery_s` is how long after it the rate of a second is
    nearly that; the 20 s until the next pause if never. `overshoot` is the largest rate of a second after the second pause, of the
    capacity. `delay_ms` is the longest that a packet sent after it is under way; a lost one counts for nothing.
    """
    sent, arrived, size = media(play("pause", controller, seed, CHANGES[changes] if changes else None))

    def rate(begin: float, duration: float = 1) -> float:
        return float(size[(sent >= begin) & (sent < begin + duration)].sum()) * 8 / duration

    before = rate(15, 5)
    steps = np.arange(0.0, 19.0, 0.1)
    after = (sent >= RESUMED_S[1]) & (sent < RESUMED_S[1] + AFTER_S)
    return {
        "before_bps": before,
        "recovery_s": next((step for step in steps.tolist() if rate(RESUMED_S[0] + step) >= BACK * before), 20.0),
        "overshoot": max(rate(RESUMED_S[1] + step) for step in np.arange(0.0, AFTER_S - 1, 0.1)) / SLOW_BPS,
        "delay_ms": float(np.nanmax((arrived - sent)[after])) * 1e3,
    }


@kept
def screen(controller: str, seed: int) -> Numbers:
    """Times of app-limited-screen from when the encoder is through with a slide until the last of it has arrived.

    NaN where a packet never does.
    """
    _, arrived, _ = media(play("screen", controller, seed))
    late = []
    for number, begin in enumerate(SLIDES_S):
        # packets leave in the order in which they were made, and none is skipped (`queue_limit`)
        first = FIRST + number * (BETWEEN + SLIDE_PACKETS)
        own = arrived[first : first + SLIDE_PACKETS]
        assert len(own) == SLIDE_PACKETS
        # the maximum of numbers of which one is none is none
        late.append(own.max() - begin - SLIDE_S)
    return {"mean_s": float(np.mean(late)), "fastest_s": float(np.min(late)), "slowest_s": float(np.max(late))}


def mean(measure: Kept[..., Numbers], name: str, controller: str) -> float:
    """A number over the seeds."""
    return fmean(measure(controller, seed)[name] for seed in SEEDS)


COLUMNS: Mapping[str, tuple[Kept[..., Numbers], str, float, int]] = {
    "used (%)": (video, "used", 100, 1),
    "delay p95 (ms)": (video, "one_way_delay_ms_p95", 1, 0),
    "time at the sender (ms)": (video, "sender_delay_ms_mean", 1, 0),
    "rate before pause (kb/s)": (pause, "before_bps", 1e-3, 0),
    "recovery (s)": (pause, "recovery_s", 1, 1),
    "overshoot": (pause, "overshoot", 1, 2),
    "delay after pause (ms)": (pause, "delay_ms", 1, 0),
    "mean slide (s)": (screen, "mean_s", 1, 2),
    "slowest slide (s)": (screen, "slowest_s", 1, 2),
}
"""Numbers with scale and digits, means over seeds."""


def table() -> str:
    """In Markdown."""
    lines = ["| controller | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
    for controller in CONTROLLERS:
        cells = [
            f"{mean(measure, name, controller) * scale:.{digits}f}" for measure, name, scale, digits in COLUMNS.values()
        ]
        lines.append(f"| {controller} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TABLES = {("app-limited.md", "app-limited"): table}


def further() -> None:
    """Asks for numbers that tests look at."""
    for seed in SEEDS:
        pause(BURST, seed)
        pause("rrb-simd", seed, "rfc3550")
    for seed in TICK_SEEDS:
        video("sprout", seed)
        for changes in ("without marks", "jitter"):
            video("sprout", seed, changes)
