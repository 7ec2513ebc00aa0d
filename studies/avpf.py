"""GCC whose feedback keeps RTCP's 5 %: what is run, and the tables of `docs/avpf.md`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

import tidegate
from gcc_experiments import Seen
from tidegate import Feedback, Flow, Link, Media, Rate, Run, Scenario

LINKS = ("100kbps", "500kbps", "2.5Mbps")
SCHEMES = {
    "gcc, TWCC": ("gcc", "twcc"),
    "gcc, RFC 8888": ("gcc", "ccfb"),
    "draft-02, TWCC": ("gcc:draft-02", "twcc"),
    "gcc-remb": ("gcc-remb:draft-02", "none"),
}
RULES: dict[str, dict[str, Any]] = {
    "free": {},
    "avpf": {"profile": "avpf"},
    "avpf, reduced size": {"profile": "avpf", "reduced_size": True},
    "avpf, reduced size, rr_interval": {"profile": "avpf", "reduced_size": True, "rr_interval": "1s"},
    "avp": {"profile": "avp"},
}
SEEDS = (1, 2, 3, 4, 5)
LONG = 300
BEFORE, AFTER = 120.0, 60.0
"""The capacity falls by half so long after the start, and for so long."""


@lru_cache(maxsize=2 * len(SEEDS))  # a run holds some 13 MB of tables
def run(link: str, scheme: str, rules: str, seed: int, falls: bool = False) -> Run:
    """One call over 50 ms each way and 300 ms of queue; the encoder could fill one and a half times the link."""
    full = Rate(link)
    half = Rate(full // 2)
    steps = [["0s", full], [f"{BEFORE}s", half]]
    controller, kind = SCHEMES[scheme]
    media = Media(
        controller=controller,
        min_rate="10kbps",
        start_rate=Rate(min(300_000, full // 2)),
        video={"min": "10kbps", "max": Rate(full * 3 // 2)},
        feedback=Feedback(format=kind, bandwidth=link, **RULES[rules]),
    )
    bottleneck = Link(
        name="bottleneck",
        capacity={"schedule": steps} if falls else link,
        delay="50ms",
        queue={"time": "300ms"},
        back={"capacity": link},
    )
    duration = f"{BEFORE + AFTER}s" if falls else f"{LONG}s"
    scenario = Scenario(name="avpf", duration=duration, links=[bottleneck], flows=[Flow(name="call", media=media)])
    return tidegate.run(scenario, seed=seed, record="packets")


@dataclass(frozen=True)
class Reports:
    """The RTCP of a run."""

    share: float
    """Bytes of both ends over the session bandwidth."""
    rate: float
    """Packets with feedback a second."""
    age_s: float
    """How long a packet's arrival waits until it is reported, in the mean over time."""
    largest: int
    """Bytes of the largest packet."""
    longest_s: float
    """The longest time between two packets with feedback."""


def reports(told: Run, bandwidth: int) -> Reports:
    """Reads the table of RTCP packets."""
    table = told.table("rtcp")
    at, size = table.to_numpy("t_s"), table.to_numpy("size")
    words = [set(str(contents).split("+")) for contents in table.to_numpy("contents")]
    # what says what has arrived: per packet, or the receiver's estimate
    says = np.array([bool(one & {"TWCC", "CCFB", "REMB"}) for one in words])
    duration = float(told.metrics("call")["stop_s"])
    gaps = np.diff(at[says])
    return Reports(
        share=float(size.sum() * 8 / duration / bandwidth),
        rate=float(says.sum() / duration),
        age_s=float((gaps**2).sum() / 2 / gaps.sum()),
        largest=int(size.max()),
        longest_s=float(gaps.max()),
    )


def target(told: Run, begin: float, end: float) -> float:
    """The mean target over a time, in bit/s."""
    table = told.table("decisions")
    at, rates = table.to_numpy("t_s"), table.to_numpy("target_bps")
    grid = np.arange(begin, end, 0.01)
    return float(rates[np.searchsorted(at, grid, side="right") - 1].mean())


def mean(link: str, scheme: str, rules: str, metric: str) -> float:
    """A metric over the seeds; `target_bps`, or one of the reports, or one of the flow."""
    values = []
    for seed in SEEDS:
        told = run(link, scheme, rules, seed)
        if metric == "target_bps":
            values.append(target(told, 0, LONG))
        elif metric in Reports.__dataclass_fields__:
            values.append(float(getattr(reports(told, Rate(link)), metric)))
        else:
            values.append(float(told.metrics("call")[metric]))
    return sum(values) / len(values)


@dataclass(frozen=True)
class Reaction:
    """What happens when the capacity falls by half, as means over the seeds."""

    falls_s: float
    """How long the target stays above the new capacity; NaN where it was below before."""
    largest_ms: float
    """Largest one-way delay in the ten seconds after."""


@cache
def reaction(link: str, scheme: str, rules: str) -> Reaction:
    """Lets the capacity fall."""
    seen = [Seen(run(link, scheme, rules, seed, falls=True)) for seed in SEEDS]
    half = Rate(link) / 2
    falls = [math.nan if one.target(BEFORE) <= half else one.falls(half, BEFORE) for one in seen]
    largest = [one.queueing(BEFORE, BEFORE + 10)[1] + 50 for one in seen]
    return Reaction(float(np.mean(falls)), float(np.mean(largest)))


def table(scheme: str) -> str:
    """What a call is like under each rule, in Markdown."""
    lines = [
        "| link | rules | RTCP (%) | reports (1/s) | wait (ms) | target (kb/s) | utilisation (%) "
        "| delay p95 (ms) | loss (%) |",
        "|---|---|" + "---:|" * 7,
    ]
    for link in LINKS:
        for rules in RULES:
            cell = {
                name: mean(link, scheme, rules, name)
                for name in ("share", "rate", "age_s", "target_bps", "utilisation", "one_way_delay_ms_p95")
            }
            loss = mean(link, scheme, rules, "loss_fraction")
            lines.append(
                f"| {link} | {rules} | {cell['share'] * 100:.2f} | {cell['rate']:.1f} | {cell['age_s'] * 1e3:.0f} "
                f"| {cell['target_bps'] / 1e3:.0f} | {cell['utilisation'] * 100:.0f} "
                f"| {cell['one_way_delay_ms_p95']:.0f} | {loss * 100:.2f} |"
            )
    return "\n".join(lines) + "\n"


def falls_table() -> str:
    """What happens when the capacity falls by half, in Markdown."""
    lines = [
        "| link | rules | " + " | ".join(f"{scheme} (s) | (ms)" for scheme in SCHEMES) + " |",
        "|---|---|" + "---:|" * (2 * len(SCHEMES)),
    ]
    for link in LINKS:
        for rules in RULES:
            cells = []
            for scheme in SCHEMES:
                told = reaction(link, scheme, rules)
                was_low = math.isnan(told.falls_s)
                cells += ["was below", ""] if was_low else [f"{told.falls_s:.2f}", f"{told.largest_ms:.0f}"]
            lines.append(f"| {link} | {rules} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
