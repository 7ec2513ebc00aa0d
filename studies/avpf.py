"""GCC whose feedback keeps RTCP's 5 %: the tables of `docs/avpf.md`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import tidegate
from gcc_experiments import RecordedFlow
from kept import kept
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
COLUMNS = {
    "RTCP (%)": ("share", 100, 2),
    "reports (1/s)": ("rate", 1, 1),
    "wait (ms)": ("age_s", 1e3, 0),
    "target (kb/s)": ("target_bps", 1e-3, 0),
    "utilisation (%)": ("utilisation", 100, 0),
    "delay p95 (ms)": ("one_way_delay_ms_p95", 1, 0),
    "loss (%)": ("loss_fraction", 100, 2),
}
"""Numbers of a call with scale and digits, means over seeds."""
METRICS = ("utilisation", "one_way_delay_ms_p95", "loss_fraction", "left_out_frames")
"""Those that are metrics of a run."""


def play(link: str, scheme: str, rules: str, seed: int, falls: bool = False, **video: Any) -> Run:
    """One call over 50 ms each way and 300 ms of queue; the encoder could fill one and a half times the link.

    `video` are further keys of its encoder.
    """
    full = Rate(link)
    half = Rate(full // 2)
    steps = [["0s", full], [f"{BEFORE}s", half]]
    controller, kind = SCHEMES[scheme]
    media = Media(
        controller=controller,
        min_rate="10kbps",
        start_rate=Rate(min(300_000, full // 2)),
        video={"min": "10kbps", "max": Rate(full * 3 // 2), **video},
        feedback=Feedback(format=kind, bandwidth=link, reports="rfc3550", **RULES[rules]),
        repair="none",
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


def reports(run: Run, bandwidth: int) -> dict[str, float]:
    """The RTCP of a run.

    `share` is bytes of both ends over the session bandwidth, `rate` packets with feedback a second, `longest_s` the longest time
    between two of them, `age_s` how long a packet's arrival waits until it is reported, in the mean over time. `largest` is bytes
    of the largest packet, `from_receiver` how many packets are the receiver's.
    """
    table = run.table("rtcp")
    at, size = table.to_numpy("t_s"), table.to_numpy("size")
    parts = [set(str(contents).split("+")) for contents in table.to_numpy("contents")]
    # feedback is per packet, or the receiver's estimate
    feedback = np.array([bool(names & {"TWCC", "CCFB", "REMB"}) for names in parts])
    duration = float(run.metrics("call")["stop_s"])
    gaps = np.diff(at[feedback])
    return {
        "share": float(size.sum() * 8 / duration / bandwidth),
        "rate": float(feedback.sum() / duration),
        "age_s": float((gaps**2).sum() / 2 / gaps.sum()),
        "largest": int(size.max()),
        "longest_s": float(gaps.max()),
        "from_receiver": int(table.to_numpy("from_receiver").sum()),
    }


def target(run: Run, begin: float, end: float) -> float:
    """The mean target over a time, in bit/s."""
    table = run.table("decisions")
    at, rates = table.to_numpy("t_s"), table.to_numpy("target_bps")
    grid = np.arange(begin, end, 0.01)
    return float(rates[np.searchsorted(at, grid, side="right") - 1].mean())


@kept
def numbers(link: str, scheme: str, rules: str, seed: int) -> Mapping[str, float]:
    """Numbers of a call: its reports, its mean target, its metrics, and what a fall of the capacity by half does to another one.

    `falls_s` is how long the target stays above the new capacity, NaN where it was below before; `largest_ms` is the largest
    one-way delay in the ten seconds after.
    """
    call, half = play(link, scheme, rules, seed), Rate(link) / 2
    other = RecordedFlow(play(link, scheme, rules, seed, falls=True))
    return {
        **reports(call, Rate(link)),
        "target_bps": target(call, 0, LONG),
        **{metric: call.metrics("call")[metric] for metric in METRICS},
        "falls_s": math.nan if other.target(BEFORE) <= half else other.falls(half, BEFORE),
        "largest_ms": other.queueing(BEFORE, BEFORE + 10)[1] + 50,
    }


def mean(link: str, scheme: str, rules: str, name: str) -> float:
    """A number over the seeds."""
    return sum(numbers(link, scheme, rules, seed)[name] for seed in SEEDS) / len(SEEDS)


def table(scheme: str) -> str:
    """A call under each rule, in Markdown."""
    lines = ["| link | rules | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * len(COLUMNS)]
    for link in LINKS:
        for rules in RULES:
            cells = [
                f"{mean(link, scheme, rules, name) * scale:.{digits}f}" for name, scale, digits in COLUMNS.values()
            ]
            lines.append(f"| {link} | {rules} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def falls_table() -> str:
    """A fall of the capacity by half, in Markdown."""
    lines = [
        "| link | rules | " + " | ".join(f"{scheme} (s) | (ms)" for scheme in SCHEMES) + " |",
        "|---|---|" + "---:|" * (2 * len(SCHEMES)),
    ]
    for link in LINKS:
        for rules in RULES:
            cells = []
            for scheme in SCHEMES:
                falls, largest = (mean(link, scheme, rules, name) for name in ("falls_s", "largest_ms"))
                cells += ["was below", ""] if math.isnan(falls) else [f"{falls:.2f}", f"{largest:.0f}"]
            lines.append(f"| {link} | {rules} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TABLES = {
    **{("avpf.md", scheme): partial(table, scheme) for scheme in SCHEMES},
    ("avpf.md", "falls"): falls_table,
}
