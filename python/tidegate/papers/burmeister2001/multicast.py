"""Section 5.2: RTCP's share in all trees, profiles, bandwidths and kinds of loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tidegate.paper import Drawing, Measure, Sheet, Table, Then
from tidegate.paper.experiment import CellValue
from tidegate.papers.burmeister2001.groups import PACKET, Seen, byte_error, media, rate, session
from tidegate.papers.burmeister2001.topologies import TREES, Cable, agents, links
from tidegate.running import Run, RunJob
from tidegate.scenario import Scenario

LOSSES = ("none", "byte errors", "congestion")
PROFILES = ("AVP", "AVPF", "mixed")
"""In mixed groups agents with odd numbers use AVP."""
SENDERS = ("one", "several")
"""A1, or A1 to A4 (A1 and A2 in T-2)."""
UNTIL = {"2 Mbps": 200, "200 kbps": 1000, "20 kbps": 6000}
"""Seconds: at least 200 packets of each agent where AVPF is on its own."""
LOSS = 0.01
"""Of packets, on each link with byte errors."""
CONGESTED = 0.98
"""A congested link's rate over the session bandwidth."""
QUEUE = 20
"""Packets that it holds."""


@dataclass(frozen=True)
class Setting:
    """One run."""

    topology: str
    bandwidth: str
    loss: str
    profile: str
    senders: str

    def scenario(self) -> Scenario:
        """The run."""
        size, bandwidth = PACKET[self.bandwidth], rate(self.bandwidth)
        clean = Cable("20Mbps", "20ms")
        cable = {
            "none": clean,
            "byte errors": Cable("20Mbps", "20ms", byte_error(LOSS, size)),
            "congestion": Cable(f"{bandwidth * CONGESTED:.0f}bps", "20ms", queue=QUEUE),
        }[self.loss]
        names = agents(self.topology)
        senders = names[: 1 if self.senders == "one" else 4]
        members = [
            {
                "name": name,
                "profile": "avp" if self.profile == "AVP" or (self.profile == "mixed" and number % 2) else "avpf",
                "media": media(bandwidth, size, len(senders)) if name in senders else None,
            }
            for number, name in enumerate(names, 1)
        ]
        return session("share", self.topology, cable, bandwidth, members, until=f"{UNTIL[self.bandwidth]}s")


SETTINGS = [Setting(*one) for one in product(TREES, PACKET, LOSSES, PROFILES, SENDERS)]


def jobs(seeds: Sequence[int]) -> Mapping[Any, Then[Run, Seen]]:
    """The runs."""
    return {
        ("share", setting, seed): Then(RunJob(setting.scenario(), seed), Seen.of)
        for setting in SETTINGS
        for seed in seeds
    }
