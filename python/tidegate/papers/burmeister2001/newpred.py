"""NEWPRED over AVPF (section 9): time that a lost segment waits for its repair beyond the round trip.

Simulation A drops media packets on the middle of three links with a fixed probability. In simulation B they compete
with TCP for that link.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.colors import to_hex

from tidegate.paper import Drawing, Measure, Plan, Sheet, Table, Then, group_seeds
from tidegate.paper.measures import CellValue
from tidegate.runs import Run, RunJob
from tidegate.scenario import Avpf, Flow, Link, Member, Scenario, Session, Tcp
from tidegate.scenario.sessions import PictureMedia
from tidegate.units import Rate

DELAYS_MS = (10, 50, 100, 200, 500)
"""Propagation delays of link 2, one way (section 9.2.1)."""
LOSSES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
"""Loss rates of media packets on link 2 (section 9.2.1)."""
EDGE_MS = 10
"""Propagation delay of links 1 and 3, one way (section 9.2.1)."""
HEADERS = 28 + 8 + 24
"""Bytes around the entries of a report: IPv4 and UDP, an empty receiver report, a source description with a name of
ten to thirteen letters."""


@dataclass(frozen=True)
class ParameterSet:
    """A row of table 14."""

    bandwidth: int
    """Bandwidth of the session in kbit/s."""
    fps: int
    segments: int

    def __str__(self) -> str:
        """The name in table 14."""
        return f"{self.bandwidth}k-{self.fps}-{self.segments}"

    @property
    def packet_size(self) -> float:
        """Bytes of a segment; the senders use the whole session bandwidth."""
        return self.bandwidth * 1000 / (8 * self.fps * self.segments)

    @property
    def without_rtcp_ms(self) -> float:
        """Mean waiting time if losses are rare and RTCP may be sent at any time.

        It is the time from the segment after the lost one to the end of the picture, when all missing segments are
        reported, and half a picture more until the next segment in the same position is coded.

        >>> ParameterSet(64, 10, 3).without_rtcp_ms  # 1/9 of a picture, and half of one
        61.1...
        """
        rest = sum(range(self.segments - 1)) / self.segments**2
        return 1000 / self.fps * (rest + 0.5)


TABLE_14 = tuple(
    ParameterSet(*row)
    for row in (
        (32, 4, 3),
        (32, 5, 3),
        (64, 5, 3),
        (64, 10, 3),
        (128, 10, 6),
        (128, 15, 6),
        (384, 15, 6),
        (384, 30, 6),
        (512, 30, 6),
        (1000, 30, 9),
        (2000, 30, 9),
    )
)
BANDWIDTHS = tuple(dict.fromkeys(parameters.bandwidth for parameters in TABLE_14))
"""Rows of figure 3, in kbit/s."""


@dataclass(frozen=True)
class Variant:
    """Values for the settings that the document leaves open."""

    max_feedback_delay: str = "5s"
    """Longest time that a report may wait."""
    names: tuple[str, str] = ("sender-node", "receiver-node")
    """Canonical names of sender and receiver; every RTCP packet carries one."""
    links: str = "100Mbps"
    """Capacity of links 1 and 3, and of link 2 in simulation A."""
    losses_back: bool = False
    """Whether link 2 drops the receiver's RTCP as well."""

    def session(self, parameters: ParameterSet) -> Session:
        """Session of a video over all three links, as in figure 2."""
        media = PictureMedia(rate=Rate(1000 * parameters.bandwidth), fps=parameters.fps, segments=parameters.segments)
        first, second = self.names
        return Session(
            name="newpred",
            bandwidth=f"{parameters.bandwidth}kbps",
            avpf=Avpf(max_feedback_delay=self.max_feedback_delay),
            members=[Member(name=first, node="left", media=media), Member(name=second, node="right")],
        )

    def links_with(self, delay_ms: int, capacity: str, **middle: Any) -> list[Link]:
        """Links 1 to 3; `middle` has more keys of link 2."""
        around = {"capacity": self.links, "delay": f"{EDGE_MS}ms"}
        between: dict[str, Any] = {"capacity": capacity, "delay": f"{delay_ms}ms", **middle}
        return [
            Link(name="link1", from_="left", to="router1", **around),
            Link(name="link2", from_="router1", to="router2", **between),
            Link(name="link3", from_="router2", to="right", **around),
        ]


FOUND = Variant()
VARIANTS: Mapping[str, Variant] = {
    "as found": FOUND,
    "feedback allowed for 1 s": Variant(max_feedback_delay="1s"),
    "feedback allowed for 2 s": Variant(max_feedback_delay="2s"),
    "names of 2 letters": Variant(names=("S1", "R1")),
    "names of 6 to 9 letters": Variant(names=("sender", "receiver")),
    "names of 20 letters": Variant(names=("sender.at.one.example", "receiver.at.two.exampl")),
    "links of 10 Mb/s": Variant(links="10Mbps"),
    "RTCP is lost as well": Variant(losses_back=True),
}
"""Rows of the table of variants of simulation A."""


SETTLED = "5s"
"""Warm-up of simulation A. RTCP's first interval is 1 s long, because it is drawn before the other member is known.
Losses in it wait for its end, which happens once in a session."""


def constant_loss(
    parameters: ParameterSet, delay_ms: int, loss: float, duration: str, variant: Variant = FOUND
) -> Scenario:
    """Scenario of simulation A."""
    back: Any = True if variant.losses_back else {"loss": "0%"}
    links = variant.links_with(delay_ms, variant.links, loss=loss, back=back)
    return _scenario("simulation-a", duration, links, variant.session(parameters), warmup=SETTLED)


@dataclass(frozen=True)
class Congestion:
    """Values for the settings of network and TCP that simulation B leaves open."""

    capacity: str = "5Mbps"
    """Capacity of link 2."""
    queue: int = 50
    """Packets that each queue of link 2 holds."""
    algorithm: str = "newreno"
    window: str = "1MB"
    both_ways: bool = True
    """Whether half of the 64 flows go in each direction; else all go with the media."""


AS_CHOSEN = Congestion()
CONGESTIONS: Mapping[str, Congestion] = {
    "as chosen": AS_CHOSEN,
    "queues of 25 packets": Congestion(queue=25),
    "queues of 100 packets": Congestion(queue=100),
    "3 Mb/s": Congestion(capacity="3Mbps"),
    "10 Mb/s": Congestion(capacity="10Mbps"),
    "10 Mb/s, queues of 100 packets": Congestion(capacity="10Mbps", queue=100),
    "Tahoe": Congestion(algorithm="tahoe"),
    "Reno": Congestion(algorithm="reno"),
    "SACK": Congestion(algorithm="sack"),
    "windows of 20 packets": Congestion(window="20kB"),
    "64 flows one way": Congestion(both_ways=False),
    "64 flows one way, 3 Mb/s": Congestion(both_ways=False, capacity="3Mbps"),
}
"""Rows of the table of variants of simulation B."""

FLOWS = 64
"""TCP flows of simulation B (section 9.2.2: 32 FTP agents at each edge)."""
WARM_UP = "20s"


def congested(parameters: ParameterSet, delay_ms: int, duration: str, rules: Congestion = AS_CHOSEN) -> Scenario:
    """Scenario of simulation B."""
    links = FOUND.links_with(delay_ms, rules.capacity, queue={"packets": rules.queue})
    tcp = Tcp(
        algorithm=rules.algorithm,
        receive_window=rules.window,
        packet_size="1040B",
        initial_window=2,
        min_rto="200ms",
        handshake=True,
        options=False,
    )
    directions = (
        {"ftp": ("left", "right"), "ftp-back": ("right", "left")} if rules.both_ways else {"ftp": ("left", "right")}
    )
    flows = [
        Flow(name=name, from_=source, to=target, count=FLOWS // len(directions), start_step="100ms", tcp=tcp)
        for name, (source, target) in directions.items()
    ]
    return _scenario("simulation-b", duration, links, FOUND.session(parameters), flows=flows, warmup=WARM_UP)


def _scenario(name: str, duration: str, links: list[Link], session: Session, **keys: Any) -> Scenario:
    return Scenario(
        name=name,
        source="draft-burmeister-avt-rtcp-feedback-sim-00 section 9",
        duration=duration,
        record="summary",
        links=links,
        sessions=[session],
        **keys,
    )


@dataclass(frozen=True)
class RepairSummary:
    """Summary of a run: times until repair, losses and queueing."""

    recovery_ms: float
    """Mean time from the detection of a lost segment to the first segment that is free of its damage."""
    losses: int
    loss: float
    """Share of sent packets that were lost."""
    queue_ms: float
    """Mean time in queues in both directions; on the way back, that of TCP's data."""
    digest: str

    @classmethod
    def from_run(cls, run: Run) -> RepairSummary:
        """Summarises a run of either simulation."""
        sender, receiver = run.summary["members"]
        sent = run.metrics(sender["flow"])["packets_sent"]
        flows = {flow["flow"]: flow["queueing_delay_ms_mean"] or 0.0 for flow in run.summary["flows"]}
        waits = flows[sender["flow"]], flows.get("ftp-back-1", 0.0)
        recovery = receiver["recovery_ms_mean"]
        return cls(
            float("nan") if recovery is None else float(recovery),
            int(receiver["losses"]),
            receiver["losses"] / sent if sent else float("nan"),
            float(sum(waits)),
            run.digest,
        )


def round_trip_ms(parameters: ParameterSet, delay_ms: int, bits_per_ms: float = 1e5) -> float:
    """Propagation and transmission over three links, of a segment and of a report with one entry."""
    bits = 8 * (parameters.packet_size + HEADERS + 16)
    return 2 * (delay_ms + 2 * EDGE_MS) + 3 * bits / bits_per_ms


# --- what is run ------------------------------------------------------------------------------------------------------

FEW = tuple(parameters for parameters in TABLE_14 if str(parameters) in {"32k-5-3", "128k-15-6", "384k-30-6"})
"""Parameter sets of simulation B in a quick run, and of its variants."""
SEEDS_OF_A, SEEDS_OF_B = 5, 2
"""Largest number of seeds of each simulation; a run of simulation B has 64 TCP flows."""


def _duration(parameters: ParameterSet) -> str:
    """Duration of a run: slow sessions need longer for enough losses at 0.5 % than fast ones."""
    return f"{max(100, round(1500 * min(1.0, 60 / (parameters.fps * parameters.segments))))}s"


def jobs(plan: Plan) -> dict[Any, Then[Run, RepairSummary]]:
    """Jobs of section 9, under keys that begin with `newpred`."""
    return {
        ("newpred", *key): Then(RunJob(scenario, key[-1]), RepairSummary.from_run) for key, scenario in _scenarios(plan)
    }


def _scenarios(plan: Plan) -> Iterator[tuple[tuple[Any, ...], Scenario]]:
    for name, variant in VARIANTS.items():
        if variant == FOUND or not plan.quick:
            seeds = plan.seeds[: SEEDS_OF_A if variant == FOUND else 1]
            for seed, parameters, delay, loss in product(seeds, TABLE_14, DELAYS_MS, LOSSES):
                yield (
                    ("a", name, parameters, delay, loss, seed),
                    constant_loss(parameters, delay, loss, _duration(parameters), variant),
                )
    for name, rules in CONGESTIONS.items():
        if rules == AS_CHOSEN or not plan.quick:
            full = rules == AS_CHOSEN and not plan.quick
            for seed, parameters, delay in product(
                plan.seeds[: SEEDS_OF_B if full else 1], TABLE_14 if full else FEW, DELAYS_MS
            ):
                yield (
                    ("b", name, parameters, delay, seed),
                    congested(parameters, delay, "320s" if full else "220s", rules),
                )


# --- results ----------------------------------------------------------------------------------------------------------

OFFSET_MS = (50.0, 100.0)
"""Waiting time that simulation B adds to simulation A (section 9.2.2)."""


@dataclass(frozen=True)
class NewpredResults:
    """Waiting times of both simulations; `done` has the results under the keys of `jobs`."""

    plan: Plan
    done: Mapping[Any, Any]

    @cached_property
    def runs(self) -> Mapping[Any, list[RepairSummary]]:
        """Runs by the key of their jobs, without `newpred` and the seed; one a seed."""
        return {key[1:]: runs for key, runs in group_seeds(self.done).items() if key[0] == "newpred"}

    def waiting(self, variant: str, parameters: ParameterSet, delay: int, loss: float) -> list[float]:
        """Waiting times of simulation A in ms, one a seed."""
        return [
            run.recovery_ms - round_trip_ms(parameters, delay)
            for run in self.runs["a", variant, parameters, delay, loss]
        ]

    def cell(self, bandwidth: int, loss: float, variant: str = "as found") -> npt.NDArray[np.float64]:
        """Waiting times of a cell of figure 3, shape (seeds, lines)."""
        sets = [parameters for parameters in TABLE_14 if parameters.bandwidth == bandwidth]
        lines = [self.waiting(variant, parameters, delay, loss) for parameters, delay in product(sets, DELAYS_MS)]
        return np.array(list(zip(*lines, strict=True)))

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for bandwidth, loss in product(BANDWIDTHS, LOSSES):
            lines = self.cell(bandwidth, loss)
            name = f"{bandwidth}k/{loss:g}"
            yield (
                f"newpred/{name}",
                Measure.of(lines.mean(axis=1), "ms", "mean waiting time over parameter sets and delays"),
            )
            yield f"newpred.least/{name}", Measure.of(lines.min(axis=1), "ms", "minimum waiting time over lines")
            yield f"newpred.most/{name}", Measure.of(lines.max(axis=1), "ms", "maximum waiting time over lines")
        for bandwidth in BANDWIDTHS:
            floors = [parameters.without_rtcp_ms for parameters in TABLE_14 if parameters.bandwidth == bandwidth]
            yield (
                f"newpred.floor/{bandwidth}k",
                Measure.exact(float(np.mean(floors)), "ms", "waiting time without the wait for RTCP"),
            )
        for rule, holds in (("middle", _middle_inside), ("overlap", _overlaps), ("lines", _all_inside)):
            for kind, bands in (("two_sided", TWO_SIDED), ("one_sided", ONE_SIDED)):
                share = float(np.mean([holds(self.cell(*key), band) for key, band in bands.items()]))
                yield (
                    f"newpred.{kind}.{rule}",
                    Measure.exact(share, "", f"share of {len(bands)} cells of figure 3 that agree"),
                )
        beyond = [float(self.cell(*key).mean()) - bound for key, (_, bound) in ONE_SIDED.items()]
        yield (
            "newpred.one_sided.excess",
            Measure.exact(max(beyond), "ms", "maximum over cells of our mean less its bound"),
        )
        offsets = self.offsets("as chosen")
        inside = [OFFSET_MS[0] <= setting.offset <= OFFSET_MS[1] for setting in offsets]
        yield (
            "newpred.b.inside",
            Measure.exact(float(np.mean(inside)), "", "share of the settings of simulation B inside 50 to 100 ms"),
        )
        yield "newpred.b.offset", Measure.of([setting.offset for setting in offsets], "ms", "mean offset over settings")
        yield (
            "newpred.b.queue",
            Measure.of([setting.queue for setting in offsets], "ms", "mean time in queues, both directions together"),
        )
        rests = [setting.offset - setting.queue for setting in offsets]
        yield "newpred.b.rest", Measure.of(rests, "ms", "mean offset less the time in queues")
        explained = float(np.mean([abs(rest) <= UNEXPLAINED_MS for rest in rests]))
        description = f"share of settings whose offset is the time in queues to within {UNEXPLAINED_MS:g} ms"
        yield "newpred.b.explained", Measure.exact(explained, "", description)

    def offsets(self, rules: str) -> list[Offset]:
        """Waiting times of simulation B beyond simulation A's at the same loss, by setting, averaged over seeds."""
        offsets = []
        for (kind, name, parameters, delay, *_), runs in self.runs.items():
            finite = [run for run in runs if math.isfinite(run.recovery_ms)]
            if (kind, name) == ("b", rules) and finite:
                offsets.append(self._offset(parameters, delay, finite))
        return offsets

    def _offset(self, parameters: ParameterSet, delay: int, runs: Sequence[RepairSummary]) -> Offset:
        # weighted by the losses of each run
        weights = [run.losses for run in runs]
        loss, queue, recovery = (
            float(np.average([getattr(run, name) for run in runs], weights=weights))
            for name in ("loss", "queue_ms", "recovery_ms")
        )
        waits_of_a = [float(np.nanmean(self.waiting("as found", parameters, delay, p))) for p in LOSSES]
        wait_at_same_loss = float(np.interp(math.log(loss), np.log(LOSSES), waits_of_a))
        return Offset(parameters, delay, loss, queue, recovery - round_trip_ms(parameters, delay) - wait_at_same_loss)

    def tables(self) -> Iterator[Table]:
        """All lines of simulation A, all settings of simulation B, and the effects of other choices on both."""
        rows: list[list[CellValue]] = [
            [
                f"{parameters}-{delay}",
                *(Measure.of(self.waiting("as found", parameters, delay, loss)) for loss in LOSSES),
            ]
            for parameters, delay in product(TABLE_14, DELAYS_MS)
        ]
        heads = ["line", *(f"{loss:g}" for loss in LOSSES)]
        yield Table("newpred-lines", "Simulation A: mean waiting time in ms of each line, by loss rate", heads, rows)
        yield Table(
            "newpred-b",
            "Simulation B: offset of the mean waiting time from simulation A at the same loss",
            ["setting", "loss", "time in queues (ms)", "offset (ms)"],
            [[f"{o.parameters}-{o.delay}", o.loss, o.queue, o.offset] for o in self.offsets("as chosen")],
        )
        if self.plan.quick:
            return
        rows = []
        for name in VARIANTS:
            counts = (
                sum(_middle_inside(self.cell(*key, name)[:1], band) for key, band in bands.items())
                for bands in (TWO_SIDED, ONE_SIDED)
            )
            rows.append([name, *counts])
        heads = ["variant", "inside, of 28 with a band", "inside, of 21 with a bound"]
        title = "Variants of simulation A, one seed: number of cells of figure 3 whose mean is inside"
        yield Table("newpred-variants", title, heads, rows)
        variants = []
        for name in CONGESTIONS:
            settings = [setting for setting in self.offsets(name) if setting.parameters in FEW]
            offset = np.array([setting.offset for setting in settings])
            variants.append(
                {
                    "variant": name,
                    "minimum loss": min(setting.loss for setting in settings),
                    "maximum loss": max(setting.loss for setting in settings),
                    "offset (ms)": float(offset.mean()),
                    "offset less the time in queues (ms)": float(
                        np.mean([setting.offset - setting.queue for setting in settings])
                    ),
                    "share of settings inside 50 to 100 ms": float(
                        np.mean((offset >= OFFSET_MS[0]) & (offset <= OFFSET_MS[1]))
                    ),
                }
            )
        title = "Variants of simulation B, with sessions of 32, 128 and 384 kbit/s"
        yield Table.of("newpred-congestion", title, variants)

    def figures(self) -> Iterator[Drawing]:
        """Figure 3 as lines with the document's bands, and simulation B."""
        title, axis = "NEWPRED: mean waiting time", "Mean waiting time (ms)"
        sheet = Sheet("Figure 3", title, "Packet loss rate", axis, xlog=True, ylog=True)
        for number, parameters in enumerate(TABLE_14):
            by_delay = [[self.waiting("as found", parameters, delay, loss) for loss in LOSSES] for delay in DELAYS_MS]
            # more lines than there are free colours
            colour = to_hex(colormaps["turbo"](0.05 + 0.9 * number / (len(TABLE_14) - 1)))
            sheet.series(str(parameters), LOSSES, np.mean(by_delay, axis=0).T, colour=colour)
        for bandwidth in BANDWIDTHS:
            bands = {loss: band for (kbps, loss), band in TWO_SIDED.items() if kbps == bandwidth}
            if bands:
                x = [loss for loss in bands for _ in range(2)]
                sheet.published(f"{bandwidth}k, ends of band", x, [end for band in bands.values() for end in band])
        caption = "Lines: our means over five delays. Markers: both ends of the document's bands."
        yield sheet.drawing("newpred-figure-3", caption)
        x_axis, y_axis = "Time in queues, both directions together (ms)", "Offset from simulation A (ms)"
        sheet = Sheet("Section 9.2.2", "NEWPRED beside 64 TCP flows", x_axis, y_axis)
        offsets = self.offsets("as chosen")
        for delay in DELAYS_MS:
            settings = [setting for setting in offsets if setting.delay == delay]
            x, y = [setting.queue for setting in settings], [setting.offset for setting in settings]
            sheet.points(f"{delay} ms on link 2", x, y)
        end = max(setting.queue for setting in offsets)
        sheet.series("offset = queue", [0, end], [0, end], colour="#222222")
        caption = (
            "Offset at the same loss; a point is a parameter set. The document has a constant offset of 50 to 100 ms."
        )
        yield sheet.drawing("newpred-b", caption)


@dataclass(frozen=True)
class Offset:
    """A setting of simulation B compared with simulation A."""

    parameters: ParameterSet
    delay: int
    loss: float
    queue: float
    """Mean time in queues, both directions together, in ms."""
    offset: float
    """Waiting time beyond that of simulation A at the same loss, in ms."""


UNEXPLAINED_MS = 25.0
"""Largest difference between offset and queueing time at which the queue explains the offset."""


def _published() -> dict[tuple[int, float], tuple[float, float]]:
    tables = tomllib.loads((Path(__file__).parent / "paper.toml").read_text(encoding="utf-8"))["table"]
    (rows,) = (table["rows"] for table in tables if table["id"] == "figure-3")
    return {
        (bandwidth, loss): (float(band[0]), float(band[1]))
        for bandwidth in BANDWIDTHS
        for loss, band in zip(LOSSES, rows[f"{bandwidth}k"], strict=True)
    }


PUBLISHED = _published()
"""Bands of figure 3 in ms by bandwidth and loss rate; a band begins at 0 if only a bound is printed."""
TWO_SIDED = {key: band for key, band in PUBLISHED.items() if band[0] > 0}
ONE_SIDED = {key: band for key, band in PUBLISHED.items() if not band[0]}


def _middle_inside(lines: npt.NDArray[np.float64], band: tuple[float, float]) -> bool:
    return band[0] <= float(lines.mean()) <= band[1]


def _overlaps(lines: npt.NDArray[np.float64], band: tuple[float, float]) -> bool:
    means = lines.mean(axis=0)
    return bool(means.min() <= band[1] and means.max() >= band[0])


def _all_inside(lines: npt.NDArray[np.float64], band: tuple[float, float]) -> bool:
    means = lines.mean(axis=0)
    return bool(means.min() >= band[0] and means.max() <= band[1])
