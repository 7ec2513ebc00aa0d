"""Sprout and others on recorded cellular links, beside NSDI 2013: the tables of `docs/sprout-traces.md`.

The recordings lie in the shared folder; here are only their names, and what the paper's figure 7 shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tidegate
from kept import kept
from support import shared
from tidegate import Flow, Link, Media, Queue, Scenario, Tcp

SHARED = "traces/mahimahi"
"""The folder of the recordings."""
FROM_S = 60.0
"""The time before is left out, as in the authors' `scorer`."""
DELAY_S = 0.020
"""Of propagation, each way."""
SCHEMES = ("sprout:bulk", "sprout-ewma:bulk", "gcc", "cubic")
NAMES = {"sprout:bulk": "Sprout", "sprout-ewma:bulk": "Sprout-EWMA", "gcc": "gcc", "cubic": "CUBIC"}


@dataclass(frozen=True)
class Point:
    """A scheme on a link: a point of figure 7."""

    kbps: float
    self_inflicted_ms: float


@dataclass(frozen=True)
class Trace:
    """A link: the recording of it and that of its other direction."""

    name: str
    file: str
    back: str
    same: bool
    """Whether the paper's figure 7 shows this very recording."""
    paper: str | None
    """The link of the paper's that this one stands for."""


PUBLISHED: dict[str, dict[str, Point]] = {
    "AT&T LTE down": {"Sprout": Point(2304, 52), "Sprout-EWMA": Point(3822, 161), "CUBIC": Point(1208, 5426)},
    "AT&T LTE up": {"Sprout": Point(412, 127), "Sprout-EWMA": Point(862, 350), "CUBIC": Point(841, 24_262)},
    "Verizon EV-DO down": {"Sprout": Point(209, 1287), "Sprout-EWMA": Point(402, 1608), "CUBIC": Point(521, 97_631)},
    "Verizon EV-DO up": {"Sprout": Point(239, 199), "Sprout-EWMA": Point(628, 355), "CUBIC": Point(166, 12_379)},
    "Verizon LTE down": {"Sprout": Point(4741, 73), "Sprout-EWMA": Point(7413, 208), "CUBIC": Point(5719, 7568)},
    "Verizon LTE up": {"Sprout": Point(3703, 332), "Sprout-EWMA": Point(4981, 780), "CUBIC": Point(4362, 13_059)},
    "T-Mobile UMTS down": {"Sprout": Point(680, 331), "Sprout-EWMA": Point(1600, 487), "CUBIC": Point(668, 8350)},
    "T-Mobile UMTS up": {"Sprout": Point(370, 136), "Sprout-EWMA": Point(833, 252), "CUBIC": Point(971, 32_640)},
}
"""The labels in public gnuplot sources of figure 7, kbit/s and ms."""

SKYPE = {
    "AT&T LTE down": Point(737, 325),
    "AT&T LTE up": Point(428, 1258),
    "Verizon EV-DO down": Point(157, 4034),
    "Verizon EV-DO up": Point(374, 4407),
    "Verizon LTE down": Point(947, 1160),
    "Verizon LTE up": Point(973, 6624),
    "T-Mobile UMTS down": Point(475, 1584),
    "T-Mobile UMTS up": Point(320, 761),
}
"""Skype's points: the abstract gives its ratios, which shows how ratios are made of points."""

ABSTRACT = (2.2, 7.9)
"""Sprout's rate over Skype's, Skype's delay over Sprout's."""

INTRODUCTION = {
    ("Sprout", "CUBIC"): ("0.91", "79"),
    ("Sprout-EWMA", "Sprout"): ("2.0", "0.60"),
    ("Sprout-EWMA", "CUBIC"): ("1.8", "48"),
}
"""The same of the introduction's two tables, from memory: the paper's full text was not at hand, its abstract was."""


def _pair(name: str, file: str, *, same: bool, paper: str | None) -> tuple[Trace, Trace]:
    ways = (("down", "up"), ("up", "down"))
    down, up = (
        Trace(f"{name} {one}", f"{file}.{one}", f"{file}.{other}", same, paper and f"{paper} {one}")
        for one, other in ways
    )
    return down, up


TRACES = (
    *_pair("AT&T LTE", "ATT-LTE-driving", same=True, paper="AT&T LTE"),
    *_pair("Verizon EV-DO", "Verizon-EVDO-driving", same=True, paper="Verizon EV-DO"),
    *_pair("Verizon LTE", "Verizon-LTE-short", same=False, paper="Verizon LTE"),
    *_pair("T-Mobile LTE", "TMobile-LTE-short", same=False, paper=None),
)
BY_NAME = {trace.name: trace for trace in TRACES}


@dataclass(frozen=True)
class Outcome:
    """A scheme's measures on a link."""

    kbps: float
    share: float
    """Of the capacity."""
    delay_ms: float
    """95 % end-to-end delay."""
    self_inflicted_ms: float
    """How much of that is more than an omniscient sender's."""


def delay_95(sent_s: np.ndarray[Any, Any], arrived_s: np.ndarray[Any, Any], end_s: float) -> float:
    """The 95 % end-to-end delay in ms (NSDI 2013 section 5.1): at each instant, how long ago the newest packet that
    has arrived was sent; of that the 95th percentile over time, each ms counting once."""
    order = np.argsort(arrived_s, kind="stable")
    newest = np.maximum.accumulate(sent_s[order])
    instants = np.arange(round(FROM_S * 1e3), round(end_s * 1e3)) / 1e3
    last = np.searchsorted(arrived_s[order], instants, side="right") - 1
    return float(np.percentile(instants - newest[last], 95) * 1e3)


def opportunities(file: str) -> np.ndarray[Any, Any]:
    """Times at which the recorded link could carry 1500 bytes each, in seconds."""
    return np.loadtxt(shared() / SHARED / file) / 1e3


@kept
def omniscient_ms(link: str) -> float:
    """The 95 % end-to-end delay of packets that arrive with each opportunity without having waited."""
    at = opportunities(BY_NAME[link].file)
    return delay_95(at - DELAY_S, at, at[-1])


def _link(name: str, ends: str, file: str) -> Link:
    path = str(shared() / SHARED / file)
    return Link(name=name, from_=ends[0], to=ends[1], capacity={"trace": path}, delay="20ms", queue=Queue(), back=False)


def _flow(scheme: str) -> Flow:
    if scheme == "cubic":
        # Linux of 2012 advertised half of its largest buffer of 6 MiB (tcp_adv_win_scale = 1), and had no RACK
        tcp = Tcp(recovery="rfc6675", receive_window="3145728B", handshake=False, hystart=False)
        return Flow(name="subject", from_="a", to="b", tcp=tcp)
    # always something to send; and receiver reports as seldom as RFC 3550's default, which follows from no rate
    video: Any = {"source": "greedy", "min": "30kbps", "max": "50Mbps"}
    return Flow(
        name="subject",
        from_="a",
        to="b",
        media=Media(controller=scheme, video=video, feedback={"reports": "5s"}, repair="none"),
    )


@kept
def run(link: str, scheme: str) -> Sequence[float]:
    """A scheme over the whole recording: rate in kbit/s, its share of the capacity, 95 % end-to-end delay in ms."""
    trace = BY_NAME[link]
    at = opportunities(trace.file)
    end_s = float(np.floor(at[-1]))
    done = tidegate.run(
        Scenario(
            name="traces",
            duration=f"{end_s:.0f}s",
            links=[_link("there", "ab", trace.file), _link("back", "ba", trace.back)],
            flows=[_flow(scheme)],
            record="packets",
        )
    )
    packets = done.table("packets")
    arrived = packets.to_numpy("arrived_s")
    ours = np.isin(packets.to_numpy("kind"), ["video", "padding", "data"]) & np.isfinite(arrived)
    arrived, sent, size = arrived[ours], packets.to_numpy("sent_s")[ours], packets.to_numpy("size")[ours]
    kbps = float(size[arrived >= FROM_S].sum() * 8 / (end_s - FROM_S) / 1e3)
    capacity = float(((at >= FROM_S) & (at < end_s)).sum() * 12 / (end_s - FROM_S))
    return kbps, kbps / capacity, delay_95(sent, arrived, end_s)


def outcome(link: str, scheme: str) -> Outcome:
    """Its measures beside the omniscient sender's."""
    kbps, share, delay_ms = run(link, scheme)
    return Outcome(kbps, share, delay_ms, delay_ms - omniscient_ms(link))


def links() -> str:
    """Each scheme on each link, the paper's point beside it."""
    lines = [
        "| link | scheme | rate (kb/s) | of the capacity (%) | 95 % delay (ms) | self-inflicted (ms) | figure 7: rate (kb/s) "
        "| figure 7: self-inflicted (ms) |",
        "|---|---|" + "---:|" * 6,
    ]
    for trace in TRACES:
        lines.append(f"| {trace.name} | omniscient | | 100 | {omniscient_ms(trace.name):.0f} | 0 | | |")
        for scheme in SCHEMES:
            measured = outcome(trace.name, scheme)
            point = PUBLISHED.get(trace.paper or "", {}).get(NAMES[scheme])
            beside = f"{point.kbps:.0f} | {point.self_inflicted_ms:.0f}" if point else " | "
            cells = f"{measured.kbps:.0f} | {100 * measured.share:.0f} | {measured.delay_ms:.0f} | {measured.self_inflicted_ms:.0f}"
            lines.append(f"| {trace.name} | {NAMES[scheme]} | {cells} | {beside} |")
    return "\n".join(lines) + "\n"


Points = dict[str, dict[str, Point]]


def ours(*, only_published: bool) -> Points:
    """Our points by link and scheme."""
    points: Points = {}
    for trace in TRACES:
        if trace.paper or not only_published:
            outcomes = {NAMES[scheme]: outcome(trace.name, scheme) for scheme in SCHEMES}
            points[trace.name] = {name: Point(at.kbps, at.self_inflicted_ms) for name, at in outcomes.items()}
    return points


def ratio(points: Points, base: str, other: str) -> tuple[float, float]:
    """As the introduction's tables have them: the mean over the links of the base's rate over the other's, and the other's
    mean delay over the base's."""
    speedup = np.mean([at[base].kbps / at[other].kbps for at in points.values()])
    delays = [np.mean([at[name].self_inflicted_ms for at in points.values()]) for name in (base, other)]
    return float(speedup), float(delays[1] / delays[0])


PAIRS = (
    ("Sprout", "CUBIC"),
    ("Sprout", "gcc"),
    ("Sprout", "Sprout-EWMA"),
    ("Sprout-EWMA", "Sprout"),
    ("Sprout-EWMA", "CUBIC"),
    ("Sprout-EWMA", "gcc"),
)


def ratios() -> str:
    """Rates and delays of two schemes over each other, published and ours."""
    six = {trace.paper: PUBLISHED[trace.paper] for trace in TRACES if trace.paper}
    lines = [
        "| ratio of schemes | figure 7, 8 links | figure 7, our 6 | ours, these 6 | ours, all 8 |",
        "|---|" + "---:|" * 4,
    ]
    for base, other in PAIRS:
        cells = [
            "" if other not in next(iter(points.values())) else "{:.2f} x, {:.3g} x".format(*ratio(points, base, other))
            for points in (PUBLISHED, six, ours(only_published=True), ours(only_published=False))
        ]
        lines.append(f"| {base} over {other} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TABLES = {("sprout-traces.md", "links"): links, ("sprout-traces.md", "ratios"): ratios}
