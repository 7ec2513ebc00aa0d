"""The thesis's call: one sender, one receiver, and a network of statuses between them (chapters 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.runs import Run, RunJob
from tidegate.runs.pool import Tick
from tidegate.scenario import Scenario

Floats = npt.NDArray[np.float64]

UDP_RATE = 7_200_000.0
"""Bit/s; what the sender without control sends for ever (section 4.1)."""

STATUSES = ("idle", "cross-traffic-1", "cross-traffic-2", "saturated")

CONFIGURATIONS: Mapping[str, Sequence[float]] = {
    "1": (4_320_000, 2_880_000, 1_440_000, 0),
    "2": (5_760_000, 4_320_000, 2_880_000, 0),
    "3": (7_200_000, 5_760_000, 4_320_000, 0),
    "4": (10_080_000, 7_200_000, 5_760_000, 0),
}
"""Capacity of each status in bit/s (table 9); configuration 2 is that of table 8."""

PACKET = 24_000
"""Bytes of a packet with its RTP header (not printed)."""

HEADER = 24
"""Bytes of RTP header in it: 12, and 12 of extensions."""

LOSS_WINDOW = 100
"""Packets over which the sender takes its loss ratio: RTCP_limit (not printed)."""

CONTROLLER = "gcc:hoang2017"

SECOND_WAY = "gcc-remb"
"""Needs receiver reports."""


@dataclass(frozen=True)
class Variant:
    """One way to read what the thesis leaves open."""

    name: str
    """Key in measures."""
    label: str
    """What a reader sees."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the controller that differ."""
    packet: int = PACKET
    """Bytes."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the scenario."""
    controller: str = CONTROLLER
    window: int = LOSS_WINDOW
    """Packets of the sender's loss ratio."""
    brief: str = ""
    """The label where room is short."""

    @property
    def short(self) -> str:
        """The label where room is short."""
        return self.brief or self.label

    @property
    def spec(self) -> str:
        """The controller as the command line has it."""
        settings = self.settings
        if self.window != LOSS_WINDOW and self.controller == CONTROLLER:
            settings = {**settings, "loss_packets": str(self.window)}
        return ",".join([self.controller, *(f"{key}={value}" for key, value in settings.items())])


THESIS = Variant("thesis", "as in tables 6 to 8", brief="thesis")


@cache
def _shipped() -> Scenario:
    return Scenario.load("thesis-network")


def scenario(variant: Variant, configuration: str, controller: str | None = None) -> Scenario:
    """The call with one controller over one row of table 9."""
    changes: dict[str, Any] = {
        f"links.network.capacity.statuses.{name}.capacity": f"{rate:.0f}bps"
        for name, rate in zip(STATUSES, CONFIGURATIONS[configuration], strict=True)
    }
    changes["flows.sender.media.controller"] = controller or variant.spec
    if not changes["flows.sender.media.controller"].startswith(SECOND_WAY):
        # the thesis's sender sends no reports, and each would make the packet after it seem sooner
        changes["flows.sender.media.feedback.reports"] = "1000s"
    changes["flows.sender.media.payload"] = f"{variant.packet - HEADER}B"
    # the rates are never below the 3 Mbit/s of table 7
    length = 1000 * variant.packet * 8 / 3e6 + 10
    changes["duration"] = f"{length:.0f}s"
    return _shipped().with_changes({**changes, **variant.changes})


@dataclass(frozen=True)
class Call:
    """What is kept of one call."""

    digest: str
    loss: float
    """Of all packets, as a fraction."""
    ratio: float
    """Mean of what the sender calculates at each report (Figure 18); `loss` where it gets none."""
    rate: float
    """Mean sending rate, bit/s."""
    goodput: float
    """What arrived of it, bit/s."""
    estimate: float
    """Mean of the estimates A after each report, bit/s (section 4.1); `rate` where there are none."""
    reports: Floats
    """When each report came, s."""
    ratios: Floats
    """The loss ratio that the sender calculates from it: its controller's, or that of the last packets."""
    a: Floats
    """The estimate A after each report, bit/s."""
    a_s: Floats
    """The loss-based one."""
    a_r: Floats
    """The delay-based one."""
    steps: Floats
    """When the network's status changed, s; the first at zero."""
    capacity: Floats
    """What it could carry from then on, bit/s."""
    horizon: float
    """How long the network was looked at, s."""
    carried: float
    """Mean capacity while packets were sent, bit/s."""
    delay: tuple[float, float]
    """Mean and standard deviation of the one-way delay, s."""
    late: Mapping[float, float]
    """Share of packets, of those that arrived, that took so many ms more than the fastest."""
    packets: int
    """How many were sent."""
    ended: bool | None
    """Whether the receiver's reports ended with the BYE; `None` where the network lost the BYE."""
    feedback: float
    """Mean time between two reports, s."""


LATE = (1.0, 2.0, 3.0, 5.0)
"""Thresholds, in ms above the fastest packet, for which the share of late packets is kept."""


def keep(run: Run, window: int = LOSS_WINDOW) -> Call:
    """Takes out of a run what tables and figures need."""
    size, sent, arrived = _media(run)
    count = len(sent)
    lost = np.isnan(arrived)
    # the last packet, too, has its interval
    length = float((sent[-1] - sent[0]) * count / (count - 1))
    rate, loss = size * 8 * count / length, float(lost.mean())
    reports, ratios = ratios_of(run, window)
    noted = _noted(run, "loss_fraction")
    if len(noted) == len(reports):
        ratios = noted  # the sender's own, whatever its window is
    decisions = run.table("decisions")
    at = np.searchsorted(decisions.to_numpy("t_s"), reports, side="right") - 1
    a = decisions.to_numpy("target_bps")[at]
    steps, capacity, horizon = _truth(run)
    held = np.diff(np.append(np.clip(steps, 0, length), length))
    # a network that was saturated for as long as the call took has no delays
    delays = (arrived - sent)[~lost] if not lost.all() else np.array([np.nan])
    spoke = _feedback(run)
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
        a_s=_noted(run, "loss_based"),
        a_r=_noted(run, "delay_based"),
        steps=steps,
        capacity=capacity,
        horizon=horizon,
        carried=float((capacity * np.maximum(held, 0)).sum() / length),
        delay=(float(delays.mean()), float(delays.std())),
        late={ms: float((delays > delays.min() + ms / 1e3).mean()) for ms in LATE},
        packets=count,
        ended=_ended(run),
        feedback=float(np.diff(spoke).mean()) if len(spoke) > 1 else float("nan"),
    )


def ratios_of(run: Run, window: int) -> tuple[Floats, Floats]:
    """When each report came to the sender, in s, and the share of the last `window` reported packets that is lost."""
    _, sent, arrived = _media(run)
    lost = np.isnan(arrived)
    spoke = _feedback(run)
    heard, ratios = [], []
    for said, came in zip(spoke, _back(run, spoke), strict=True):
        if came <= sent[-1]:  # neither lost nor too late for a sender that has left
            seen = np.flatnonzero(arrived <= said)[-1] + 1
            heard.append(came)
            ratios.append(float(lost[max(0, seen - window) : seen].mean()))
    return np.array(heard), np.array(ratios)


def _media(run: Run) -> tuple[float, Floats, Floats]:
    """Bytes of a media packet; when each was sent and when it arrived, NaN for never, in s."""
    packets = run.table("packets")
    # what is under way at the end is neither in time nor late
    media = (packets.to_numpy("kind") == "video") & (packets.to_numpy("fate") != "under way")
    sizes = packets.to_numpy("size")[media]
    return float(sizes[0]), packets.to_numpy("sent_s")[media], packets.to_numpy("arrived_s")[media]


def _feedback(run: Run) -> Floats:
    """When the receiver sent each of its reports on single packets."""
    rtcp = run.table("rtcp")
    found: Floats = rtcp.to_numpy("t_s")[rtcp.to_numpy("from_receiver") & (rtcp.to_numpy("contents") == "TWCC")]
    return found


def _back(run: Run, spoke: Floats) -> Floats:
    """When what was said at `spoke` arrived; NaN where it was lost."""
    packets = run.table("packets")
    rtcp = packets.to_numpy("kind") == "rtcp"
    at = dict(zip(packets.to_numpy("sent_s")[rtcp], packets.to_numpy("arrived_s")[rtcp], strict=True))
    return np.array([at[one] for one in spoke])


def _ended(run: Run) -> bool | None:
    rtcp = run.table("rtcp")
    contents, from_receiver = rtcp.to_numpy("contents"), rtcp.to_numpy("from_receiver")
    byes = rtcp.to_numpy("t_s")[np.array(["BYE" in one for one in contents]) & ~from_receiver]
    if len(byes) == 0:
        return False
    heard = float(_back(run, byes)[0])
    if np.isnan(heard):
        return None
    # what is left to be said of single packets may still be said once
    reports = rtcp.to_numpy("t_s")[from_receiver & (contents != "TWCC")]
    return not bool((reports > heard).any())


def _noted(run: Run, name: str) -> Floats:
    internals = run.table("internals")
    found: Floats = internals.to_numpy("value")[internals.to_numpy("name") == name]
    return found


def _truth(run: Run) -> tuple[Floats, Floats, float]:
    """The capacity of the network as steps, and until when it is known."""
    truth = run.table("truth")
    there = truth.to_numpy("link") == "network"
    at, capacity = truth.to_numpy("t_s")[there], truth.to_numpy("capacity_bps")[there]
    first = np.flatnonzero(np.diff(capacity, prepend=np.nan) != 0)
    return at[first], capacity[first], float(at[-1] + at[1] - at[0])


Pairs = Sequence[tuple[Call, Call]]
"""UDP's call and the controlled one, over the network of one seed each."""


@dataclass(frozen=True)
class PairJob:
    """The same network twice: under UDP, and under the controller of a variant."""

    variant: Variant
    configuration: str
    seed: int

    def __call__(self, tick: Tick) -> tuple[Call, Call]:
        """Runs both; the network's luck must be the same."""
        udp = self._run(f"fixed:{UDP_RATE:.0f}bps", lambda done: tick(done / 2))
        controlled = self._run(None, lambda done: tick(0.5 + done / 2))
        return udp, controlled

    def _run(self, controller: str | None, tick: Tick) -> Call:
        made = scenario(self.variant, self.configuration, controller)
        return keep(RunJob(made, self.seed, "packets")(tick), self.variant.window)
