"""A hundred calls on one link, by the length of its queue: the table of `docs/gcc-behaviour.md`."""

from __future__ import annotations

from collections.abc import Sequence

import tidegate
from kept import kept
from support import jain, markdown
from tidegate import Scenario

SECONDS = 120
PRESETS = ("libwebrtc", "libwebrtc-v1")
QUEUES = {
    "300 ms": ("300ms", "10ms"),
    "600 packets (60 ms)": (600, "10ms"),
    "300 packets (30 ms)": (300, "10ms"),
    "300 packets, starts 10.4 ms apart instead of 10 ms": (300, "10.4ms"),
    "250 packets, starts 10.4 ms apart": (250, "10.4ms"),
    "100 packets (10 ms)": (100, "10ms"),
}
UNREPAIRED = (
    "300 packets (30 ms)",
    "300 packets, starts 10.4 ms apart instead of 10 ms",
    "100 packets (10 ms)",
)
"""Queues before which calls without repair are looked at, too."""


@kept
def outcome(preset: str, name: str, repair: str = "libwebrtc") -> Sequence[float]:
    """Of all calls under a preset, before a queue: what arrives in Mbit/s, mean loss in per cent, Jain's index.

    They are of the second half. `repair` is "libwebrtc", which is the default of a call, or "none".
    """
    queue, apart = QUEUES[name]
    changes = {
        "duration": f"{SECONDS}s",
        "warmup": f"{SECONDS // 2}s",
        "record": "summary",
        "links.trunk.queue": {"packets": queue} if isinstance(queue, int) else {"time": queue},
        "flows.call.start_step": apart,
        "flows.call.media.controller": f"gcc:{preset}",
    }
    if repair == "none":
        changes["flows.call.media.repair"] = "none"
    run = tidegate.run(Scenario.load("hundred-calls").with_changes(changes))
    calls = [run.metrics(flow) for flow in run.flows]
    rates = [call["receive_rate_bps"] for call in calls]
    sent, received = (sum(call[f"packets_{what}"] for call in calls) for what in ("sent", "received"))
    return sum(rates) / 1e6, 100 * max(1 - received / sent, 0), jain(rates)


def table() -> str:
    """As it stands in the page."""
    heads = [f"`{preset}`: {what}" for preset in PRESETS for what in ("received (Mbit/s)", "lost (%)", "Jain")]
    rows = []
    for name in QUEUES:
        both = (outcome(preset, name) for preset in PRESETS)
        rows.append(
            [name, *(cell for rate, lost, fair in both for cell in (f"{rate:.0f}", f"{lost:.1f}", f"{fair:.2f}"))]
        )
    return markdown(["queue", *heads], 1, rows)


TABLES = {("gcc-behaviour.md", "hundred"): table}


def further() -> None:
    """Asks for numbers that tests look at."""
    for name in UNREPAIRED:
        outcome("libwebrtc-v1", name, "none")
