"""A sender with the ticks and windows of Sprout and a forecast that does not look at what arrives."""

from __future__ import annotations

from tidegate import Controller, Decision, Limits, Report

TICK_NS = 20_000_000
"""Sprout's tick."""
WINDOW = 150_000
"""Bytes that may be in the network: 100 ms at 12 Mb/s, the largest rate that Sprout forecasts."""


class Blind(Controller):
    """Allows the same number of bytes in each tick, and notes what Sprout notes."""

    def __init__(self) -> None:
        """Starts without limits."""
        super().__init__()
        self.largest_bps = 0
        self.in_flight_bytes = 0

    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        """Takes the largest rate, which the encoder may use."""
        self.largest_bps = limits.max_bps
        return self.on_alarm(now_ns)

    def on_report(self, now_ns: int, report: Report) -> None:
        """Takes the bytes in flight, which are not used for the forecast."""
        del now_ns
        self.in_flight_bytes = report.in_flight

    def on_alarm(self, now_ns: int) -> Decision:
        """Notes a forecast that is always the same, and asks for the next tick."""
        self.internals["window_bytes"] = float(WINDOW)
        self.internals["queue_bytes"] = float(self.in_flight_bytes)
        target = min(self.largest_bps, 8 * WINDOW * 10)
        return Decision(target_bps=target, pacing_bps=100_000_000, window=WINDOW, alarm_ns=now_ns + TICK_NS)
