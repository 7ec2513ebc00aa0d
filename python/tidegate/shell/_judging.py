"""Whether a session's clock can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LIMITS = {"p99_ms": 5.0, "clamped_p99_ms": 5.0}
"""Above one of these, in milliseconds, a session is `noisy`: packets were written later than due, or entered
the model later than their stamp. 5 ms is a twentieth of the delay from which people notice that they hear each
other late (ITU-T G.114 rates 150 ms as good), and the finest step at which delay-based controllers group packets (5 ms
in libwebrtc)."""


@dataclass(frozen=True)
class Lateness:
    """Lateness of the packets written: milliseconds after the time at which they arrive in the model."""

    count: int
    """Packets that were written."""
    p50_ms: float | None
    """Median."""
    p99_ms: float | None
    """The 99th percentile."""
    worst_ms: float | None
    """The maximum."""

    def __str__(self) -> str:
        """Percentiles and maximum, as text."""
        if self.p50_ms is None or self.p99_ms is None or self.worst_ms is None:
            return "no packet"
        return f"p50 {self.p50_ms:.3f} ms, p99 {self.p99_ms:.3f} ms, worst {self.worst_ms:.3f} ms"


def verdict(about: Mapping[str, Any]) -> tuple[str, list[str]]:
    """`quiet` or `noisy`, and the reasons against `quiet`.

    >>> late = {"count": 9, "p50_ms": 0.1, "p99_ms": 7.25, "worst_ms": 9.0}
    >>> verdict({"lateness": late, "clamped_by": {"p99_ms": 0.0}, "missed": 0, "unwritten": 0, "clock_steps": 0})
    ('noisy', ['1 % of packets were written more than 7.25 ms late (limit 5 ms)'])
    """
    against = []
    late, clamped = about["lateness"]["p99_ms"] or 0.0, about["clamped_by"]["p99_ms"] or 0.0
    if late > LIMITS["p99_ms"]:
        against.append(f"1 % of packets were written more than {late:.3g} ms late (limit {LIMITS['p99_ms']:g} ms)")
    if clamped > LIMITS["clamped_p99_ms"]:
        limit = LIMITS["clamped_p99_ms"]
        against.append(f"1 % of packets entered the model more than {clamped:.3g} ms after their stamp ({limit:g} ms)")
    if about["missed"]:
        against.append(f"{about['missed']} packets were lost because they came faster than tidegate read them")
    if about["unwritten"]:
        against.append(f"{about['unwritten']} packets were refused by the device at the receiving side")
    if about.get("unstamped"):
        against.append(f"{about['unstamped']} packets had no usable kernel time stamp")
    return ("noisy" if against else "quiet"), against
