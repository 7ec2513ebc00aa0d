"""A controller in one class: a little more while nothing is lost, a lot less when something is."""

from tidegate import Controller


class Aimd(Controller):
    def __init__(self, up: float = 1.02, down: float = 0.85) -> None:
        super().__init__()
        self.up, self.down, self.rate = up, down, 0

    def on_limits(self, now_ns, limits):
        self.limits = limits
        self.rate = self.rate or limits.start_bps
        return self.rate

    def on_report(self, now_ns, report):
        lost = any(packet.arrival_ns is None for packet in report.packets)
        wanted = int(self.rate * (self.down if lost else self.up))
        self.rate = min(max(wanted, self.limits.min_bps), self.limits.max_bps)
        self.internals["lost"] = float(lost)
        return self.rate
