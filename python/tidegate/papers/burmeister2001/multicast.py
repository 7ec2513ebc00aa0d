"""Section 5.2: share of RTCP in all trees, profiles, bandwidths and kinds of loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tidegate.paper import Drawing, Measure, Plan, Sheet, Table, Then
from tidegate.paper.measures import CellValue
from tidegate.papers.burmeister2001.groups import PACKET, Part, SessionSummary, media, rate, session
from tidegate.papers.burmeister2001.topologies import TREES, Cable, agents
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario

LOSSES = ("none", "byte errors", "congestion")
PROFILES = ("AVP", "AVPF", "mixed")
"""In mixed groups agents with odd numbers use AVP."""
SENDERS = ("one", "several")
"""A1, or A1 to A4 (A1 and A2 in T-2)."""
UNTIL = {"2 Mbps": 200, "200 kbps": 1000, "20 kbps": 6000}
"""Duration in seconds by bandwidth: at least 200 RTCP packets of each agent in groups of AVPF alone."""
BYTE_ERROR = 1e-6
"""Byte error probability of each link."""
CONGESTED = {"T-2": 1.02, "T-4": 1.03, "T-8": 1.04, "T-16": 1.045}
"""Rate of a congested link over the session bandwidth: a little less than its RTP and RTCP need."""
QUEUE = 20
"""Packets that a congested link's queue holds."""


@dataclass(frozen=True)
class Setting:
    """Setting of a run."""

    topology: str
    bandwidth: str
    loss: str
    profile: str
    senders: str

    def scenario(self, loss_parameter: float | None = None) -> Scenario:
        """The scenario; `loss_parameter` replaces the byte error rate, or the ratio of a congested link's rate."""
        size, bandwidth = PACKET[self.bandwidth], rate(self.bandwidth)
        ratio = loss_parameter or CONGESTED[self.topology]
        clean = Cable("20Mbps", "20ms")
        cable = {
            "none": clean,
            "byte errors": Cable("20Mbps", "20ms", loss_parameter or BYTE_ERROR),
            "congestion": Cable(f"{bandwidth * ratio:.0f}bps", "20ms", queue=QUEUE),
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


SETTINGS = [Setting(*choices) for choices in product(TREES, PACKET, LOSSES, PROFILES, SENDERS)]

TOO_MUCH: Mapping[str, Sequence[str]] = {
    "byte errors": ("1e-6", "3e-6", "1e-5", "1e-4"),
    "congestion": ("1.045", "1.03", "1.02", "1.001", "1", "0.999", "0.98"),
}
"""Byte error rates, and rates of links over the session bandwidth: the chosen one first, then more and more losses."""
LARGEST = ("T-16", "20 kbps", "several")
"""Tree, session bandwidth and senders with the document's largest share without losses."""
SEEDS = 3
"""Largest number of seeds: shares are means over hundreds of packets of each agent."""
EARLY_BOUND = 2 / (1 + 1 / (math.e - 1.5))
"""Factor by which RTCP exceeds its share under RFC 4585 if each regular packet is followed by an early one.

The early packet ends an interval without reconsideration, of mean Td / (e - 3/2); the regular one follows after a
reconsidered interval, of mean Td.
"""


NOTES = (
    f"""RTCP by RFC 4585 stays at 5 % if feedback is rarer than regular packets. An early packet ends an interval \
without reconsideration: with an early packet after each regular one, RTCP takes {5 * EARLY_BOUND:.2f} %.""",
    """In T-16 at 20 kb/s, links of exactly the session bandwidth double the share, because without jitter \
packets and a full queue stay in step, and more RTCP is lost. A thousandth more or less bandwidth ends this.""",
)
"""Notes that explain the tables."""


def jobs(plan: Plan) -> Mapping[Any, Then[Run, SessionSummary]]:
    """Jobs of section 5.2; a quick run has no groups of AVP alone, whose share is smallest."""
    seeds = plan.seeds[:SEEDS]
    scenarios: dict[Any, Scenario] = {
        ("share", setting, seed): setting.scenario()
        for setting, seed in product(SETTINGS, seeds)
        if not (plan.quick and setting.profile == "AVP")
    }
    for loss, values in TOO_MUCH.items():
        for value, bandwidth in product(values, PACKET):
            setting = Setting("T-16", bandwidth, loss, "AVPF", "one")
            scenarios["too much", loss, value, bandwidth, seeds[0]] = setting.scenario(float(value))
    return {key: Then(RunJob(scenario, key[-1]), SessionSummary.from_run) for key, scenario in scenarios.items()}


class ShareResults(Part):
    """Results of section 5.2."""

    def share(self, setting: Setting) -> Measure:
        """RTCP of all members in % of the session bandwidth."""
        return Measure.of([run.share for run in self.runs.get(("share", setting), [])], "%")

    def extreme(self, of: Callable[[Sequence[float]], float], counts: Callable[[Setting], bool]) -> list[float]:
        """Largest or smallest share of each seed over the settings that count."""
        settings = [setting for setting in SETTINGS if counts(setting) and ("share", setting) in self.runs]
        by_seed = zip(*([run.share for run in self.runs["share", setting]] for setting in settings), strict=True)
        return [of(shares) for shares in by_seed]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for loss in LOSSES:
            most = self.extreme(max, lambda setting, loss=loss: setting.loss == loss)  # type: ignore[misc]
            yield f"share.{loss}", Measure.median(most, "%", "maximum share over trees, profiles and bandwidths")
        for name, extreme in (("least", min), ("most", max)):
            of_avpf = self.extreme(extreme, lambda setting: setting.profile == "AVPF")
            yield f"share.{name}", Measure.median(of_avpf, "%", f"{extreme.__name__}imum share of groups of AVPF")
        stated = self.extreme(max, lambda setting: setting.loss == "none" and _tree_rate_senders(setting) == LARGEST)
        others = self.extreme(max, lambda setting: setting.loss == "none" and _tree_rate_senders(setting) != LARGEST)
        yield (
            "share.none.stated",
            Measure.median(stated, "%", "share in T-16 at 20 kb/s with several senders and no losses"),
        )
        yield (
            "share.none.others",
            Measure.median(others, "%", "maximum share over all other settings without losses"),
        )
        high = [run.share for key, run in self.done.items() if key[0] == "too much"]
        yield "share.too much", Measure.exact(max(high), "%", "maximum share with more losses")
        bound = Measure.exact(5 * EARLY_BOUND, "%", "share if an early packet follows each regular packet")
        yield "share.bound", bound

    def tables(self) -> Iterator[Table]:
        """Shares of all settings."""
        kinds = list(product(LOSSES, PROFILES))
        rows: list[list[CellValue]] = [
            [tree, bandwidth, senders, *(self.share(Setting(tree, bandwidth, *kind, senders)) for kind in kinds)]
            for tree, bandwidth, senders in product(TREES, PACKET, SENDERS)
        ]
        heads = ["tree", "session bandwidth", "senders", *(f"{loss}: {profile}" for loss, profile in kinds)]
        yield Table("shares", "Section 5.2: RTCP of all members in % of the session bandwidth", heads, rows)
        rows = [
            [loss, value, *(self.runs["too much", loss, value, bandwidth][0].share for bandwidth in PACKET)]
            for loss, values in TOO_MUCH.items()
            for value in values
        ]
        heads = ["cause of losses", "byte error rate, or ratio of link to session bandwidth", *PACKET]
        title = "RTCP in % of the session bandwidth with more losses (T-16, AVPF, one sender)"
        yield Table("more-losses", title, heads, rows)

    def figures(self) -> Iterator[Drawing]:
        """Shares of groups of AVPF alone."""
        axis = "Maximum share of the session bandwidth (%)"
        sheet = Sheet("Section 5.2", "RTCP of AVPF groups", "Tree", axis, ylim=(4.9, 5.15))
        for loss, printed in (("none", 5.06), ("byte errors", 5.07), ("congestion", 5.09)):
            groups = {tree: product([tree], PACKET, [loss], ["AVPF"], SENDERS) for tree in TREES}
            shares = {tree: [self.share(Setting(*group)) for group in groups[tree]] for tree in TREES}
            sheet.bars(loss, {tree: max(measures, key=_mean) for tree, measures in shares.items()})
            sheet.published(loss, ["T-16"], [printed])
        yield sheet.drawing("shares", "Maximum over six groups each. Markers: maximum over all trees in the document.")


def _tree_rate_senders(setting: Setting) -> tuple[str, str, str]:
    return setting.topology, setting.bandwidth, setting.senders


def _mean(measure: Measure) -> float:
    return measure.value.mean
