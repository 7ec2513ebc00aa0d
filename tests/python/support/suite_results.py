"""A suite's result made up without runs, and its page."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from tidegate.output import html
from tidegate.suite import Suite, SuiteResult
from tidegate.suite.cases import Case

TWELVE = (
    "gcc", "gcc:draft-02", "gcc-remb", "nada", "scream", "scream-v1", "sprout", "sprout-ewma", "tfrc", "tfrc-sp",
    "rrb-simd", "fixed:700kbps",
)  # fmt: skip


RULES = """
description = "networks that were never run"
source = "here"

[[cases]]
name = "any"
scenario = "two-calls"

[[rules]]
name = "rate"
says = "carries a megabit"
metric = "receive_rate_bps"
at_least = 1_000_000
source = "RFC 8836 section 2"
why = "a megabit is a picture"

[[rules]]
name = "delay"
says = "keeps the queue short."
metric = "queueing_delay_ms_p95"
at_most = 100
source = "here"
"""


def row(seed: int, rate: float, delay: float, *, series: bool = True) -> dict[str, Any]:
    """What is kept of a run of a call beside a TCP."""
    seconds = range(120)
    call = {"flow": "call", "kind": "media", "receive_rate_bps": rate, "queueing_delay_ms_p95": delay}
    call |= {
        "one_way_delay_ms_p95": 50 + delay,
        "loss_fraction": 0.01,
        "without_picture_s": 0.5,
        "utilisation": rate / 3e6,
    }
    call |= {f"sender_delay_ms_{name}": 3.25 + seed for name in ("mean", "p50", "p95", "p99", "max")}
    kept = {
        "t_s": list(seconds),
        "flows": {
            "call": {
                "rate_bps": [rate * (1 + 0.2 * math.sin(t / 5 + seed)) for t in seconds],
                "delay_ms": [None if t < 2 else delay + t % 7 for t in seconds],
                "share_bps": [1.5e6 for _ in seconds],
            },
            "tcp": {"rate_bps": [3e6 - rate for _ in seconds], "delay_ms": [delay for _ in seconds]},
        },
        "links": {"up": {"capacity_bps": [3e6 if t < 60 else 2e6 for t in seconds]}},
    }
    return {
        "seed": seed,
        "digest": f"{seed:016x}",
        "contenders": ["call"],
        "flows": [call, {"flow": "tcp", "kind": "tcp", "receive_rate_bps": 3e6 - rate}],
        "links": [],
        "warnings": ["video.max: is below the capacity"],
        "measures": {
            "flows": {"call": {"power": math.log(rate / 1e6 / (50 + delay) * 1e3)}},
            "run": {},
            "events": [{"at_s": 60.0, "what": "capacity falls", "flow": "call", "seconds": None}],
            "series": kept if series else None,
        },
    }


def made(
    controllers: tuple[str, ...] = ("gcc", "nada", "fixed:700kbps"),
    cases: int = 6,
    seeds: int = 3,
    names: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> SuiteResult:
    """A result without runs: each controller a little slower than the one before, cases ever longer."""
    whole = Suite.parse(RULES, "mine.toml")
    every = [Case(f"5.{at},delay={10 * at}ms", f"title {at}", "RFC 8867", None) for at in range(cases)]
    every += [Case(name, title, "", None) for name, title in (names or {}).items()]
    suite = Suite("mine", whole.table, (*every, Case("wifi", "3.1", "", None, not_run="no node")), whole.text)
    rows = {
        (case.name, one): {
            seed: row(seed, 2e6 - 1.5e5 * at + 1e4 * seed, 20.0 * (place + 1) + 9 * at, **kwargs)
            for seed in range(1, seeds + 1)
        }
        for place, case in enumerate(every)
        for at, one in enumerate(controllers)
    }
    about = {"command": "tidegate suite run mine", "versions": {"tidegate": "0.1.0"}, "runs": [], "refused": []}
    return SuiteResult(suite, controllers, controllers[0], rows, {}, about=about)


def rendered(result: SuiteResult) -> str:
    """The page of a result."""
    return html.page(result.document())


def block(text: str) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])["cells"]
    return data
