"""Three calls of one sender, coupled (RFC 8699) and each for itself: the table of `docs/coupled.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tidegate
from gcc_experiments import RecordedFlow
from kept import kept
from support import markdown
from tidegate import Run, Scenario

FLOWS = ("camera", "slides", "second")
CAPACITY = 4e6
CONTROLLERS = ("gcc", "gcc:libwebrtc-v1", "gcc:draft-02", "gcc:aiortc", "nada", "scream")
ALGORITHMS = ("no", "active", "conservative")
"""By which rates are shared; "no" is each for itself."""
SEEDS = (1, 2, 3)
FALL = {"schedule": [["0s", "4Mbps"], ["60s", "1Mbps"]]}


def scenario(coupling: dict[str, Any] | None = None, /, **changes: Any) -> Scenario:
    """Three calls of one sender over 4 Mbit/s, whose sources take whatever they get."""
    call = {"controller": "gcc", "video": {"source": "ideal", "max": "8Mbps"}}
    data: dict[str, Any] = {
        "duration": "120s",
        "links": [{"name": "uplink", "capacity": "4Mbps", "delay": "25ms", "queue": {"time": "200ms"}}],
        "flows": [{"name": name, "media": call} for name in FLOWS],
    }
    if coupling is not None:
        data["couplings"] = [{"flows": list(FLOWS), **coupling}]
    return Scenario.from_dict(data).with_changes({key.replace("__", "."): value for key, value in changes.items()})


def rates(run: Run, start: float, stop: float) -> list[float]:
    """Mean of each flow's receive rate in a part of the run, bit/s."""
    return [RecordedFlow(run, name).mean_rate(start, stop) for name in FLOWS]


def calls(controller: str, algorithm: str, **changes: Any) -> Scenario:
    """All three under a controller, with the camera's priority twice that of the others."""
    coupling = None if algorithm == "no" else {"priorities": [2, 1, 1], "algorithm": algorithm}
    return scenario(coupling, **{f"flows__{name}__media__controller": controller for name in FLOWS}, **changes)


@kept
def steady(controller: str, algorithm: str) -> list[float]:
    """Rates of the flows from 20 s on, bit/s, while the capacity stays."""
    return rates(tidegate.run(calls(controller, algorithm)), 20, 120)


@kept
def fall(controller: str, algorithm: str, seed: int) -> Mapping[str, Sequence[float]]:
    """Of each flow, where 1 Mbit/s is left after 60 s: rates before and later, bit/s, wait in ms and loss just after it."""
    run = tidegate.run(calls(controller, algorithm, links__uplink__capacity=FALL), seed=seed)
    flows = [RecordedFlow(run, name) for name in FLOWS]
    return {
        "before": rates(run, 20, 60),
        "waits": [flow.queueing(60, 66)[0] for flow in flows],
        "lost": [flow.loss(60, 66) for flow in flows],
        "later": rates(run, 70, 120),
    }


def row(controller: str, algorithm: str) -> list[str]:
    """Shares before a fall of the capacity, and how the fall is met: means over the seeds."""
    falls = [fall(controller, algorithm, seed) for seed in SEEDS]
    before = np.mean([flows["before"] for flows in falls], axis=0) / 1e6
    waits, lost = (np.mean([flows[name] for flows in falls]) for name in ("waits", "lost"))
    later = np.mean([sum(flows["later"]) for flows in falls]) / 1e6
    return [*(f"{rate:.2f}" for rate in before), f"{waits:.0f}", f"{100 * lost:.0f}", f"{later:.2f}"]


def table() -> str:
    """Each controller under each algorithm."""
    head = ["controller", "coupled", *FLOWS, "wait after the fall (ms)", "loss after the fall (%)", "rate later"]
    both = [(controller, algorithm) for controller in CONTROLLERS for algorithm in ALGORITHMS]
    return markdown(head, 2, [[*names, *row(*names)] for names in both])


TABLES = {("coupled.md", "coupled"): table}


def further() -> None:
    """Asks for the shares that tests look at."""
    for controller in CONTROLLERS:
        for algorithm in ALGORITHMS:
            steady(controller, algorithm)
