"""What others reported in public, as scenarios: the table of `docs/reported.md`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

import tidegate
from kept import kept
from support import markdown
from tidegate import Run, Scenario

SEEDS = 5
NACK = {"nack": True, "pli": True}
GCC = {"flows.call.media.controller": "gcc"}


@dataclass(frozen=True)
class Case:
    """A report, and the scenario that shows it."""

    thread: str
    situation: str
    reported: str
    here: str
    """What is measured, with places for its numbers."""
    scenario: Mapping[str, Any]
    measured: tuple[tuple[Mapping[str, Any], Callable[[Run], list[float]]], ...]
    """Changed keys, and the numbers of the scenario with them, in the order of their places."""


def _call(link: Mapping[str, Any], seconds: int = 60, **media: Any) -> Mapping[str, Any]:
    """A call over a link in one direction; the way back has its delay and nothing else."""
    back = {"capacity": "infinite", "netem": "", "mtu": "65535B", "loss": "0%"}
    return {
        "name": "reported",
        "duration": f"{seconds}s",
        "links": [{"name": "link", "back": back, **link}],
        "flows": [{"name": "call", "media": media}],
    }


def _metric(name: str, scale: float) -> Callable[[Run], list[float]]:
    return lambda run: [float(run.metrics("call")[name]) * scale]


def _target_at(*times: float) -> Callable[[Run], list[float]]:
    """Targets in Mbit/s at these times."""

    def targets(run: Run) -> list[float]:
        table = run.table("decisions")
        when, rates = table.to_numpy("t_s"), table.to_numpy("target_bps")
        return [float(rates[np.searchsorted(when, time, side="right") - 1]) / 1e6 for time in times]

    return targets


FOUR = {"capacity": "20Mbps", "delay": "1ms"}
CASES = (
    Case(
        "SRT#735",
        "`netem delay 50ms 1ms`, requests of what is missing",
        "70 % more is sent",
        "{:.0f} % of the media is sent again",
        _call({**FOUR, "netem": "delay 50ms 1ms"}, controller="fixed:4Mbps", repair=NACK, video={"max": "5Mbps"}),
        (({}, _metric("repair_overhead", 100)),),
    ),
    Case(
        "SRT#735",
        "`netem delay 100ms 30ms`",
        "more than twice as much is sent",
        "{:.0f} %",
        _call({**FOUR, "netem": "delay 100ms 30ms"}, controller="fixed:4Mbps", repair=NACK, video={"max": "5Mbps"}),
        (({}, _metric("repair_overhead", 100)),),
    ),
    Case(
        "SRS#4295",
        "`netem delay 50ms reorder 5%`",
        "late packets are asked for",
        "{:.0f} % sent again, {:.1f} of 4 Mbit/s with `gcc`",
        _call(
            {**FOUR, "netem": "delay 50ms reorder 5%"}, controller="fixed:4Mbps", repair=NACK, video={"max": "5Mbps"}
        ),
        (
            ({}, _metric("repair_overhead", 100)),
            ({**GCC, "flows.call.media.video.max": "4Mbps"}, _metric("receive_rate_bps", 1e-6)),
        ),
    ),
    Case(
        "scream#42",
        "`netem delay 200ms rate 4mbit`, SCReAM",
        "20 s to 3.9 Mbit/s",
        "{:.1f} Mbit/s at 20 s and {:.1f} at 40 s (`scream-v1`), {:.1f} and {:.1f} (`scream`)",
        _call({**FOUR, "netem": "delay 200ms rate 4mbit"}, controller="scream-v1", video={"max": "6Mbps"}),
        (({}, _target_at(20, 40)), ({"flows.call.media.controller": "scream"}, _target_at(20, 40))),
    ),
    Case(
        "lib-jitsi-meet#2347",
        "maxima of 1.2 and 3.7 Mbit/s in turns of 20 s",
        "the estimate follows",
        "{:.1f}, {:.1f}, {:.1f} Mbit/s ten seconds into each turn",
        {
            **_call({"capacity": "20Mbps", "delay": "20ms"}, controller="gcc", video={"max": "4Mbps"}),
            "moves": [
                {"time": f"{20 * turn}s", "flow": "call", "key": "max_rate", "value": rate}
                for turn, rate in enumerate(("1.2Mbps", "3.7Mbps", "1.2Mbps"))
            ],
        },
        (({}, _target_at(10, 30, 50)),),
    ),
    Case(
        "Sunshine#5153",
        "40 Mbit/s through a tunnel of 1280 bytes that lets no fragments pass",
        "over 95 % lost, none with payloads of 1216 bytes",
        "{:.1f} % lost with payloads of 1392 bytes, {:.1f} % with 1216",
        _call(
            {"capacity": "100Mbps", "delay": "10ms", "mtu": {"bytes": "1280B", "too_big": "drop"}},
            seconds=20,
            controller="fixed:40Mbps",
            video={"max": "50Mbps"},
            payload="1392B",
        ),
        (
            ({}, _metric("loss_fraction", 100)),
            ({"flows.call.media.payload": "1216B"}, _metric("loss_fraction", 100)),
        ),
    ),
)


@kept
def run(case: int, variant: int, seed: int) -> list[float]:
    """The numbers of a case with the changes of this place."""
    changes, numbers = CASES[case].measured[variant]
    return numbers(tidegate.run(Scenario.from_dict(CASES[case].scenario).with_changes(changes), seed=seed))


def _here(place: int, case: Case) -> str:
    variants = range(len(case.measured))
    seeds = [[number for variant in variants for number in run(place, variant, seed)] for seed in range(1, SEEDS + 1)]
    return case.here.format(*(fmean(values) for values in zip(*seeds, strict=True)))


def table() -> str:
    """Each report beside what a scenario of it shows."""
    rows = [[case.thread, case.situation, case.reported, _here(place, case)] for place, case in enumerate(CASES)]
    return markdown(["thread", "situation", "reported", "here"], 4, rows)


TABLES = {("reported.md", "reported"): table}
