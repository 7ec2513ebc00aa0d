"""Settings that the slides leave open, changed one at a time."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.papers.hermanns2013.cells import BURSTS, EQUAL, VIDEO, Caller

FPS = (15, 30, 50, 100, 200)
"""Frames a second. From 50 on each of Sprout's ticks has a frame, so that ticks do not differ."""


VARIANTS: Mapping[str, Caller] = {
    "as_run": Caller("as run (none changed)", "sprout"),
    "bursts": Caller("bursts at changes of the rate (RFC 8593)", "sprout", BURSTS),
    "equal": Caller("frames of equal size", "sprout", EQUAL),
    "case3": Caller("3GPP case 3", "sprout", {"lte.case": 3}),
    "fast": Caller("30 km/h", "sprout", {"lte.speed": "30km/h"}),
    "start": Caller("start rate 1.5 Mb/s", "sprout", {"flows.call.media.start_rate": "1.5Mbps"}),
    "low": Caller(
        "minimum rate 0.15 Mb/s",
        "sprout",
        {"flows.call.media.min_rate": "150kbps", "flows.call.media.video": {**VIDEO, "min": "150kbps"}},
    ),
    "near": Caller("propagation of 5 ms", "sprout", {"links.internet.delay": "5ms"}),
    "far": Caller("propagation of 50 ms", "sprout", {"links.internet.delay": "50ms"}),
    "equal_far": Caller(
        "propagation of 50 ms, frames of equal size", "sprout", {**EQUAL, "links.internet.delay": "50ms"}
    ),
    "drain": Caller("an encoder that ignores the sender's queue", "sprout:nsdi2013,drain_time=0s"),
    "all": Caller("an encoder that stays at 1.5 Mb/s", "sprout:nsdi2013,offer=all"),
    "ewma": Caller("Sprout-EWMA", "sprout-ewma"),
    "equal_ewma": Caller("Sprout-EWMA, frames of equal size", "sprout-ewma", EQUAL),
    "nearer_bursts": Caller("propagation of 5 ms, bursts", "sprout", {**BURSTS, "links.internet.delay": "5ms"}),
    "jitter": Caller(
        "frame sizes with twice the variation",
        "sprout",
        {"flows.call.media.video": {**VIDEO, "scale_b": 0.3}},
    ),
}
"""Variants by their name in measures."""
