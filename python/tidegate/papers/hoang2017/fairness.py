"""One call of RRTCC and five TCP connections on 5 Mbit/s (tables 2 and 3, figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.runs import Run
from tidegate.scenario import Scenario

Floats = npt.NDArray[np.float64]

BOTTLENECK = 5_000_000.0
"""Bit/s."""
TCP_FLOWS = 5
DELAYS = ("50ms", "100ms")
"""Of the bottleneck, one way (table 3)."""
DURATION = 300.0
"""Seconds (not printed)."""
PUBLISHED = {"50ms": (3593.0, 688.5), "100ms": (3700.0, 323.0)}
"""Goodput of RRTCC and throughput of TCP while on, kbit/s (table 3)."""
LATEST = 0.4
"""Seconds from end to end after which a packet is of no use (table 2)."""
BIN = 1.0
"""Seconds of a point of figure 5."""


@dataclass(frozen=True)
class Load:
    """What the senders want, which is not printed."""

    size: str = "100kB"
    """Of a download."""
    idle: str = "2s"
    """Mean of the pause after it."""
    most: str = "5Mbps"
    """What the call's codec can use at most."""


LOAD = Load()
"""Short downloads with pauses, and a codec that can fill the bottleneck."""

LOADS = (LOAD, Load("100kB", "1s"), Load("300kB", "5s"), Load("1MB", "20s"), Load(most="4Mbps"), Load(most="4500kbps"))
"""Downloads, pauses and codecs that are tried."""

FIXED_THRESHOLD = "gcc-remb:draft-02,k_up=0,k_down=0,threshold_start=25ms,num_deltas_cap=1,overuse_time=100ms"
"""RRTCC as it was in 2013: over-use when m(i) is above a threshold that does not adapt, 25 ms, for 100 ms
(libwebrtc overuse_detector.cc before the adaptive threshold: initial_threshold, kOverUsingTimeThreshold)."""

ADAPTIVE = "gcc-remb:draft-02"
"""RRTCC as gcc-02 has it, with the threshold that adapts."""

CONTROLLERS: Mapping[str, str] = {
    FIXED_THRESHOLD: "RRTCC of 2013 (fixed threshold)",
    ADAPTIVE: "second way, gcc-02's values",
    "gcc-remb:aiortc": "second way, aiortc's gains",
    "gcc-remb:hoang2017": "second way, the thesis's values",
    "gcc:hoang2017": "first way, the thesis's values",
}
"""The first is the one that is judged."""


def scenario(delay: str, controller: str, load: Load = LOAD) -> Scenario:
    """The dumbbell of figure 4."""
    web = {"web": {"min": load.size, "max": load.size, "idle": load.idle}}
    return Scenario.model_validate(
        {
            "name": f"fairness-{delay}",
            "duration": f"{DURATION:.0f}s",
            "bin": f"{BIN:.0f}s",
            "links": [
                {
                    "name": "bottleneck",
                    "capacity": f"{BOTTLENECK:.0f}bps",
                    "delay": delay,
                    "queue": {"packets": 50},
                    "back": {"capacity": "infinite"},
                }
            ],
            "flows": [
                {
                    "name": "rrtcc",
                    "media": {
                        "controller": controller,
                        "start_rate": "128kbps",
                        "min_rate": "64kbps",
                        "max_rate": load.most,
                        "video": {"source": "greedy", "min": "64kbps", "max": load.most},
                        "feedback": {"reports": "1s"},
                        "marks": False,
                    },
                },
                {
                    "name": "tcp",
                    "count": TCP_FLOWS,
                    "start": "1s",
                    "start_step": "1s",
                    "tcp": {"algorithm": "reno", "workload": web, "handshake": False},
                },
            ],
        }
    )


@dataclass(frozen=True)
class Shared:
    """What is kept of one run."""

    digest: str
    goodput: float
    """Of RRTCC, bit/s."""
    loss: float
    """Of RRTCC's packets, as a fraction."""
    delayed: float
    """Share of RRTCC's packets that arrived, but later than the 400 ms of table 2."""
    tcp: float
    """Mean throughput of a TCP connection while it is on, bit/s."""
    on: float
    """Share of the time in which a TCP connection is on."""
    total: float
    """Goodput of all flows together, bit/s."""
    settled: float
    """Rate of RRTCC in the second half of the run, bit/s."""
    changes: Mapping[tuple[int, int, int], int]
    """How often the rate controller went from one state to another: signal, before, after; see `TABLE_1`."""
    rates: Mapping[str, tuple[Floats, Floats]]
    """By flow: beginnings of bins in s, and the rate received in each, bit/s."""

    @property
    def tfs(self) -> float:
        """TCP throughput over the total one divided by the number of flows (the thesis's formula)."""
        return self.tcp / (self.total / (TCP_FLOWS + 1))


def keep(run: Run) -> Shared:
    """Takes out of a run what table 3 and figure 5 need."""
    metrics = {flow["flow"]: flow for flow in run.summary["flows"]}
    call = metrics["rrtcc"]
    tcp = [flow for flow in metrics if flow != "rrtcc"]
    packets, series = run.table("packets"), run.table("series")
    sent, who = packets.to_numpy("sent_s"), packets.to_numpy("flow")
    # what is under way at the end is neither in time nor late
    known = packets.to_numpy("fate") != "under way"
    data = (packets.to_numpy("kind") == "data") & known
    internals = run.table("internals")
    done = internals.to_numpy("name") == "download_ms"
    whose = internals.to_numpy("flow")[done]
    ended, length = internals.to_numpy("t_s")[done], internals.to_numpy("value")[done] / 1e3
    on = {flow: _on(sent[data & (who == flow)], ended[whose == flow], length[whose == flow]) for flow in tcp}
    carried = sum(metrics[flow]["goodput_bps"] * (metrics[flow]["stop_s"] - metrics[flow]["start_s"]) for flow in tcp)
    took = (packets.to_numpy("arrived_s") - sent)[(who == "rrtcc") & known]
    name, at, rate = (series.to_numpy(key) for key in ("flow", "t_s", "receive_rate_bps"))
    return Shared(
        digest=run.digest,
        goodput=call["goodput_bps"],
        loss=call["loss_fraction"],
        delayed=float((took > LATEST).mean()),
        tcp=carried / sum(on.values()),
        on=sum(on.values()) / (TCP_FLOWS * DURATION),
        total=sum(flow["goodput_bps"] for flow in metrics.values()),
        settled=float(np.nanmean(rate[(name == "rrtcc") & (at >= DURATION / 2)])),
        changes=_changes(internals.to_numpy("name"), internals.to_numpy("t_s"), internals.to_numpy("value")),
        rates={flow: (at[name == flow], rate[name == flow]) for flow in metrics},
    )


NORMAL, OVER, UNDER = range(3)
"""Signals of the over-use detector, as it notes them."""
HOLD, INCREASE, DECREASE = range(3)
"""States of the rate controller, as it notes them."""
TABLE_1 = {
    (OVER, HOLD, DECREASE),
    (OVER, INCREASE, DECREASE),
    (NORMAL, HOLD, INCREASE),
    (NORMAL, DECREASE, HOLD),
    (UNDER, INCREASE, HOLD),
    (UNDER, DECREASE, HOLD),
}
"""Changes of state that the thesis's table 1 has: signal, before, after."""


def _changes(name: npt.NDArray[np.str_], at: Floats, value: Floats) -> Mapping[tuple[int, int, int], int]:
    """The changes of state, each with the last signal before it."""
    signal, when = value[name == "state"], at[name == "state"]
    state, then = value[name == "rate_state"], at[name == "rate_state"]
    found: Counter[tuple[int, int, int]] = Counter()
    for place in np.flatnonzero(np.diff(state)) + 1:
        last = int(np.searchsorted(when, then[place], side="right")) - 1
        found[int(signal[last]), int(state[place - 1]), int(state[place])] += 1
    return dict(found)


def _on(sent: Floats, ended: Floats, took: Floats) -> float:
    """Seconds in which a connection has something to send, finished or not.

    Args:
        sent: When it sent data, s.
        ended: When each of its downloads was finished, s.
        took: How long each of them took, s.
    """
    # between two downloads nothing is sent: what follows the last one that ended belongs to one that did not
    rest = sent[sent > (ended[-1] if len(ended) else -1.0)]
    return float(took.sum() + (DURATION - rest[0] if len(rest) else 0.0))
