"""The thesis's call: a sender, a receiver, and a network of statuses between them (chapters 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.papers.hoang2017.formulas import Checks, checks
from tidegate.runs import Run, RunJob
from tidegate.runs.pool import Tick
from tidegate.scenario import Scenario

Floats = npt.NDArray[np.float64]

UDP_RATE = 7_200_000.0
"""Constant rate of the sender without control, bit/s (section 4.1)."""

STATUSES = ("idle", "cross-traffic-1", "cross-traffic-2", "saturated")

CONFIGURATIONS: Mapping[str, Sequence[float]] = {
    "1": (4_320_000, 2_880_000, 1_440_000, 0),
    "2": (5_760_000, 4_320_000, 2_880_000, 0),
    "3": (7_200_000, 5_760_000, 4_320_000, 0),
    "4": (10_080_000, 7_200_000, 5_760_000, 0),
}
"""Capacity of each status in bit/s by configuration (table 9); configuration 2 is that of table 8."""

PACKET = 24_000
"""Bytes of a packet with its RTP header (not printed)."""

HEADER = 24
"""Bytes of RTP header in a packet: 12, and 12 of extensions."""

LOSS_WINDOW = 100
"""Packets over which the sender computes its loss ratio: RTCP_limit (not printed)."""

CONTROLLER = "gcc:hoang2017"

SECOND_PLACEMENT = "gcc-remb"
"""The controller with its delay-based part at the receiver, which needs receiver reports."""


@dataclass(frozen=True)
class Variant:
    """A reading of the settings that the thesis leaves open."""

    name: str
    """Key in measures."""
    label: str
    """Name in tables and figures."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the controller that differ from its preset."""
    packet: int = PACKET
    """Packet size in bytes."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the scenario."""
    controller: str = CONTROLLER
    window: int = LOSS_WINDOW
    """Packets over which the sender computes its loss ratio."""
    brief: str = ""
    """Short label for figures; `label` by default."""

    @property
    def short(self) -> str:
        """Label for figures."""
        return self.brief or self.label

    @property
    def spec(self) -> str:
        """The controller as on the command line."""
        settings = self.settings
        if self.window != LOSS_WINDOW and self.controller == CONTROLLER:
            settings = {**settings, "loss_packets": str(self.window)}
        return ",".join([self.controller, *(f"{key}={value}" for key, value in settings.items())])


THESIS = Variant("thesis", "values of tables 6 to 8", brief="thesis")


@cache
def _shipped() -> Scenario:
    return Scenario.load("thesis-network")


def scenario(variant: Variant, configuration: str, controller: str | None = None) -> Scenario:
    """Scenario of a call over a row of table 9; `controller` replaces the variant's."""
    changes: dict[str, Any] = {
        f"links.network.capacity.statuses.{name}.capacity": f"{rate:.0f}bps"
        for name, rate in zip(STATUSES, CONFIGURATIONS[configuration], strict=True)
    }
    changes["flows.sender.media.controller"] = controller or variant.spec
    if not changes["flows.sender.media.controller"].startswith(SECOND_PLACEMENT):
        # the thesis's sender sends no reports; each would make the next packet seem to come earlier
        changes["flows.sender.media.feedback.reports"] = "1000s"
    changes["flows.sender.media.payload"] = f"{variant.packet - HEADER}B"
    # rates are never below the 3 Mbit/s of table 7
    length = 1000 * variant.packet * 8 / 3e6 + 10
    changes["duration"] = f"{length:.0f}s"
    return _shipped().with_changes({**changes, **variant.changes})


@dataclass(frozen=True)
class Call:
    """Summary of a call; arrays by reports have a value for each report."""

    digest: str
    loss: float
    """Share of all packets that were lost."""
    ratio: float
    """Mean of the loss ratios that the sender computes at reports (Figure 18); `loss` if it gets no report."""
    rate: float
    """Mean sending rate, bit/s."""
    goodput: float
    """Mean rate that arrived, bit/s."""
    estimate: float
    """Mean of the estimates A after each report, bit/s (section 4.1); `rate` if there is no report."""
    reports: Floats
    """Arrival times of reports, s."""
    ratios: Floats
    """Loss ratio that the sender computes at each report: its controller's, or that of the last packets."""
    a: Floats
    """Estimate A after each report, bit/s."""
    a_s: Floats
    """Loss-based estimate after each report, bit/s."""
    a_r: Floats
    """Delay-based estimate after each report, bit/s."""
    steps: Floats
    """Times at which the network's status changed, s; the first is zero."""
    capacity: Floats
    """Capacity of the network from each step on, bit/s."""
    horizon: float
    """Time until which the network's capacity is recorded, s."""
    carried: float
    """Mean capacity while packets were sent, bit/s."""
    delay: tuple[float, float]
    """Mean and standard deviation of the one-way delay, s."""
    late: Mapping[float, float]
    """Share of the arrived packets that took longer than the fastest by more than so many ms."""
    packets: int
    """Number of packets sent."""
    ended: bool | None
    """Whether the receiver's reports ended with the BYE; `None` if the network lost the BYE."""
    feedback: float
    """Mean time between two reports, s."""
    checks: Checks | None = None
    """Formulas compared with what RRTCC noted; `None` for other senders and for variants."""


LATE = (1.0, 2.0, 3.0, 5.0)
"""Thresholds of late packets, in ms above the fastest one."""


def summarise(run: Run, window: int = LOSS_WINDOW) -> Call:
    """Summarises a run for the tables and figures."""
    size, sent, arrived = _media(run)
    count = len(sent)
    lost = np.isnan(arrived)
    # the interval after the last packet counts as well
    length = float((sent[-1] - sent[0]) * count / (count - 1))
    rate, loss = size * 8 * count / length, float(lost.mean())
    reports, ratios = ratios_of(run, window)
    recorded = _internal_values(run, "loss_fraction")
    if len(recorded) == len(reports):
        ratios = recorded  # the sender's own ratios, over its own window
    decisions = run.table("decisions")
    decision = np.searchsorted(decisions.to_numpy("t_s"), reports, side="right") - 1
    a = decisions.to_numpy("target_bps")[decision]
    steps, capacity, horizon = _capacity_steps(run)
    durations = np.diff(np.append(np.clip(steps, 0, length), length))
    # no packet arrives if the network is saturated during the whole call
    delays = (arrived - sent)[~lost] if not lost.all() else np.array([np.nan])
    feedback_times = _feedback(run)
    return Call(
        digest=run.digest,
        loss=loss,
        ratio=float(ratios.mean()) if len(ratios) else loss,
        rate=rate,
        goodput=rate * (1 - loss),
        estimate=float(a.mean()) if len(a) else rate,
        reports=reports,
        ratios=ratios,
        a=a,
        a_s=_internal_values(run, "loss_based"),
        a_r=_internal_values(run, "delay_based"),
        steps=steps,
        capacity=capacity,
        horizon=horizon,
        carried=float((capacity * np.maximum(durations, 0)).sum() / length),
        delay=(float(delays.mean()), float(delays.std())),
        late={ms: float((delays > delays.min() + ms / 1e3).mean()) for ms in LATE},
        packets=count,
        ended=_ended(run),
        feedback=float(np.diff(feedback_times).mean()) if len(feedback_times) > 1 else float("nan"),
    )


def ratios_of(run: Run, window: int) -> tuple[Floats, Floats]:
    """Arrival times of reports at the sender, s, and the lost share of the last `window` packets at each."""
    _, sent, arrived = _media(run)
    lost = np.isnan(arrived)
    report_times = _feedback(run)
    arrivals, ratios = [], []
    for report_time, arrival in zip(report_times, _rtcp_arrivals(run, report_times), strict=True):
        if arrival <= sent[-1]:  # neither lost nor later than the sender's last packet
            reported = np.flatnonzero(arrived <= report_time)[-1] + 1
            arrivals.append(arrival)
            ratios.append(float(lost[max(0, reported - window) : reported].mean()))
    return np.array(arrivals), np.array(ratios)


def _media(run: Run) -> tuple[float, Floats, Floats]:
    """Bytes of a media packet, and the times at which each was sent and arrived, s; NaN if lost."""
    packets = run.table("packets")
    # packets still under way at the end are neither lost nor received
    media = (packets.to_numpy("kind") == "video") & (packets.to_numpy("fate") != "under way")
    sizes = packets.to_numpy("size")[media]
    return float(sizes[0]), packets.to_numpy("sent_s")[media], packets.to_numpy("arrived_s")[media]


def _feedback(run: Run) -> Floats:
    """Times at which the receiver sent its reports on single packets, s."""
    rtcp = run.table("rtcp")
    times: Floats = rtcp.to_numpy("t_s")[rtcp.to_numpy("from_receiver") & (rtcp.to_numpy("contents") == "TWCC")]
    return times


def _rtcp_arrivals(run: Run, departures: Floats) -> Floats:
    """Arrival times of RTCP packets with these departure times, s; NaN if lost."""
    packets = run.table("packets")
    rtcp = packets.to_numpy("kind") == "rtcp"
    arrivals = dict(zip(packets.to_numpy("sent_s")[rtcp], packets.to_numpy("arrived_s")[rtcp], strict=True))
    return np.array([arrivals[departure] for departure in departures])


def _ended(run: Run) -> bool | None:
    rtcp = run.table("rtcp")
    contents, from_receiver = rtcp.to_numpy("contents"), rtcp.to_numpy("from_receiver")
    byes = rtcp.to_numpy("t_s")[np.array(["BYE" in content for content in contents]) & ~from_receiver]
    if len(byes) == 0:
        return False
    arrival = float(_rtcp_arrivals(run, byes)[0])
    if np.isnan(arrival):
        return None
    # a last report on single packets may still follow
    reports = rtcp.to_numpy("t_s")[from_receiver & (contents != "TWCC")]
    return not bool((reports > arrival).any())


def _internal_values(run: Run, name: str) -> Floats:
    internals = run.table("internals")
    values: Floats = internals.to_numpy("value")[internals.to_numpy("name") == name]
    return values


def _capacity_steps(run: Run) -> tuple[Floats, Floats, float]:
    """The network's capacity as steps, and the time until which it is recorded."""
    truth = run.table("truth")
    rows = truth.to_numpy("link") == "network"
    times, capacity = truth.to_numpy("t_s")[rows], truth.to_numpy("capacity_bps")[rows]
    first = np.flatnonzero(np.diff(capacity, prepend=np.nan) != 0)
    return times[first], capacity[first], float(times[-1] + times[1] - times[0])


Pairs = Sequence[tuple[Call, Call]]
"""UDP's call and the controlled one over the same network, a pair for each seed."""


@dataclass(frozen=True)
class PairJob:
    """Two runs over the same network: with UDP, and with the controller of a variant."""

    variant: Variant
    configuration: str
    seed: int

    def __call__(self, tick: Tick) -> tuple[Call, Call]:
        """Runs both; the network's random numbers must be the same."""
        udp = self._run(f"fixed:{UDP_RATE:.0f}bps", lambda done: tick(done / 2))
        controlled = self._run(None, lambda done: tick(0.5 + done / 2))
        return udp, controlled

    def _run(self, controller: str | None, tick: Tick) -> Call:
        call_scenario = scenario(self.variant, self.configuration, controller)
        run = RunJob(call_scenario, self.seed, "packets")(tick)
        call = summarise(run, self.variant.window)
        checked = controller is None and self.variant.name == THESIS.name
        return replace(call, checks=checks(run)) if checked else call
