"""A call of RRTCC and five TCP connections on 5 Mbit/s (tables 2 and 3, figure 5)."""

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
"""Capacity of the bottleneck, bit/s."""
TCP_FLOWS = 5
DELAYS = ("50ms", "100ms")
"""One-way delays of the bottleneck (table 3)."""
DURATION = 300.0
"""Duration of a run in seconds (not printed)."""
PUBLISHED = {"50ms": (3593.0, 688.5), "100ms": (3700.0, 323.0)}
"""Goodput of RRTCC and throughput of a TCP connection while on, kbit/s (table 3)."""
LATEST = 0.4
"""One-way delay in seconds after which a packet is useless (table 2)."""
BIN = 1.0
"""Seconds of each point of figure 5."""


@dataclass(frozen=True)
class Load:
    """Load of the senders, which is not printed."""

    size: str = "100kB"
    """Size of a download."""
    idle: str = "2s"
    """Mean pause after a download."""
    most: str = "5Mbps"
    """Largest rate of the call's codec."""


LOAD = Load()
"""The judged load: short downloads with pauses, and a codec that can fill the bottleneck."""

LOADS = (LOAD, Load("100kB", "1s"), Load("300kB", "5s"), Load("1MB", "20s"), Load(most="4Mbps"), Load(most="4500kbps"))
"""All loads that are run."""

FIXED_THRESHOLD = "gcc-remb:draft-02,k_up=0,k_down=0,threshold_start=25ms,num_deltas_cap=1,overuse_time=100ms"
"""RRTCC as it was in 2013: over-use when m(i) is above a threshold that does not adapt, 25 ms, for 100 ms
(libwebrtc overuse_detector.cc before the adaptive threshold: initial_threshold, kOverUsingTimeThreshold)."""

ADAPTIVE = "gcc-remb:draft-02"
"""RRTCC of gcc-02, with the adaptive threshold."""

CONTROLLERS: Mapping[str, str] = {
    FIXED_THRESHOLD: "RRTCC of 2013 (fixed threshold)",
    ADAPTIVE: "second placement, gcc-02's values",
    "gcc-remb:aiortc": "second placement, aiortc's gains",
    "gcc-remb:hoang2017": "second placement, the thesis's values",
    "gcc:hoang2017": "first placement, the thesis's values",
}
"""Labels of the controllers; the first is judged."""


def scenario(delay: str, controller: str, load: Load = LOAD) -> Scenario:
    """Scenario of figure 4, a dumbbell."""
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
                        "repair": "none",
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
    """Summary of a run over the shared bottleneck."""

    digest: str
    goodput: float
    """Goodput of RRTCC, bit/s."""
    loss: float
    """Share of RRTCC's packets that were lost."""
    delayed: float
    """Share of RRTCC's packets that arrived later than the 400 ms of table 2."""
    tcp: float
    """Mean throughput of a TCP connection while it is on, bit/s."""
    on: float
    """Share of the time in which a TCP connection is on."""
    total: float
    """Goodput of all flows together, bit/s."""
    settled: float
    """Rate of RRTCC in the second half of the run, bit/s."""
    changes: Mapping[tuple[int, int, int], int]
    """Number of changes of the rate controller's state by signal, state before and state after; see `TABLE_1`."""
    rates: Mapping[str, tuple[Floats, Floats]]
    """Begins of bins in s and rates received in them in bit/s, by flow."""

    @property
    def tfs(self) -> float:
        """TCP throughput over the total throughput divided by the number of flows (the thesis's formula)."""
        return self.tcp / (self.total / (TCP_FLOWS + 1))


def summarise(run: Run) -> Shared:
    """Summarises a run for table 3 and figure 5."""
    metrics = {flow["flow"]: flow for flow in run.summary["flows"]}
    call = metrics["rrtcc"]
    tcp = [flow for flow in metrics if flow != "rrtcc"]
    packets, series = run.table("packets"), run.table("series")
    sent, sender = packets.to_numpy("sent_s"), packets.to_numpy("flow")
    # packets still under way at the end are neither in time nor late
    not_under_way = packets.to_numpy("fate") != "under way"
    data = (packets.to_numpy("kind") == "data") & not_under_way
    internals = run.table("internals")
    done = internals.to_numpy("name") == "download_ms"
    downloader = internals.to_numpy("flow")[done]
    ended, length = internals.to_numpy("t_s")[done], internals.to_numpy("value")[done] / 1e3
    on = {
        flow: _time_on(sent[data & (sender == flow)], ended[downloader == flow], length[downloader == flow])
        for flow in tcp
    }
    carried = sum(metrics[flow]["goodput_bps"] * (metrics[flow]["stop_s"] - metrics[flow]["start_s"]) for flow in tcp)
    delays = (packets.to_numpy("arrived_s") - sent)[(sender == "rrtcc") & not_under_way]
    name, times, rate = (series.to_numpy(key) for key in ("flow", "t_s", "receive_rate_bps"))
    return Shared(
        digest=run.digest,
        goodput=call["goodput_bps"],
        loss=call["loss_fraction"],
        delayed=float((delays > LATEST).mean()),
        tcp=carried / sum(on.values()),
        on=sum(on.values()) / (TCP_FLOWS * DURATION),
        total=sum(flow["goodput_bps"] for flow in metrics.values()),
        settled=float(np.nanmean(rate[(name == "rrtcc") & (times >= DURATION / 2)])),
        changes=_changes(internals.to_numpy("name"), internals.to_numpy("t_s"), internals.to_numpy("value")),
        rates={flow: (times[name == flow], rate[name == flow]) for flow in metrics},
    )


NORMAL, OVER, UNDER = range(3)
"""Signals of the over-use detector, as it records them."""
HOLD, INCREASE, DECREASE = range(3)
"""States of the rate controller, as it records them."""
TABLE_1 = {
    (OVER, HOLD, DECREASE),
    (OVER, INCREASE, DECREASE),
    (NORMAL, HOLD, INCREASE),
    (NORMAL, DECREASE, HOLD),
    (UNDER, INCREASE, HOLD),
    (UNDER, DECREASE, HOLD),
}
"""Changes of state in the thesis's table 1: signal, state before, state after."""


def _changes(name: npt.NDArray[np.str_], times: Floats, values: Floats) -> Mapping[tuple[int, int, int], int]:
    """Number of changes of state, each with the last signal before it."""
    signal, signal_times = values[name == "state"], times[name == "state"]
    state, state_times = values[name == "rate_state"], times[name == "rate_state"]
    counts: Counter[tuple[int, int, int]] = Counter()
    for index in np.flatnonzero(np.diff(state)) + 1:
        last = int(np.searchsorted(signal_times, state_times[index], side="right")) - 1
        counts[int(signal[last]), int(state[index - 1]), int(state[index])] += 1
    return dict(counts)


def _time_on(sent: Floats, ended: Floats, durations: Floats) -> float:
    """Seconds in which a connection has data to send, in finished and unfinished downloads.

    Args:
        sent: Times at which it sent data, s.
        ended: Times at which its downloads finished, s.
        durations: Durations of its downloads, s.
    """
    # no data are sent between downloads: data after the last finished one belong to an unfinished one
    unfinished = sent[sent > (ended[-1] if len(ended) else -1.0)]
    return float(durations.sum() + (DURATION - unfinished[0] if len(unfinished) else 0.0))
