"""Routes of flows over the links of a scenario, and upper bounds of what these carry."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from tidegate._core import Trace
from tidegate.scenario.radio import peak_rates
from tidegate.scenario.routes import Routes

Ir = dict[str, Any]
Amount = Callable[[int, int], float]
"""Upper bound of the bits between two times in ns; infinite without a known limit."""

SECOND = 10**9
_MAX_TRACE_BINS = 10_000  # of a recorded network: some last for years


def over(amount: float, by: float) -> float:
    """Quotient of two numbers; 0 where the divisor is 0, which the engine refuses."""
    return amount / by if by else 0.0


class Ways:
    """Routes between points, as lists of links as the engine takes them."""

    def __init__(self, ir: Ir) -> None:
        self._routes = Routes((link["from"], link["to"], link) for link in ir["links"])
        self._cores = {user["name"]: radio["core"] for radio in ir.get("radios", ()) for user in radio["users"]}

    def between(self, begin: str, end: str) -> list[Ir]:
        """The links between two points; the route of a user of a radio network begins at its core."""
        return self._routes.between(self._cores.get(begin, begin), self._cores.get(end, end)) or []


class Steps:
    """The integral of a rate that changes in steps."""

    def __init__(self, steps: Iterable[Sequence[Any]], period: int | None = None) -> None:
        pairs = [(int(time), float(rate)) for time, rate in steps]
        self._times, self._rates = [time for time, _ in pairs], [rate for _, rate in pairs]
        spans = (later - time for time, later in zip(self._times, self._times[1:], strict=False))
        self._sums = [0.0, *accumulate(rate * span / SECOND for rate, span in zip(self._rates, spans, strict=False))]
        self._period = period

    def amount(self, begin: int, end: int) -> float:
        """Bits between two times."""
        return self._until(end) - self._until(begin)

    def _until(self, time: int) -> float:
        total = 0.0
        if self._period and time > self._period:
            rounds, time = divmod(time, self._period)
            total = rounds * self._until(self._period)
        index = bisect_right(self._times, time) - 1
        if index < 0:
            return total
        return total + self._sums[index] + self._rates[index] * (time - self._times[index]) / SECOND


class Capacities:
    """Upper bounds of the bits that each link of a scenario carries, by its name, moves included."""

    def __init__(self, ir: Ir, traces: Sequence[Trace]) -> None:
        self._links = {link["name"]: link for link in ir["links"]}
        self._moves: dict[str, list[tuple[int, Ir]]] = {}
        for move in sorted(ir.get("moves", ()), key=lambda move: int(move["time"])):
            if "change" in move:
                self._moves.setdefault(move["link"], []).append((int(move["time"]), move["change"]))
        self._traces = traces
        self._amounts: dict[str, Amount] = {}
        self._air: dict[tuple[str, str], list[str]] = {}
        for radio in ir.get("radios", ()):
            peak, of_cells = peak_rates(radio["access"])
            for direction in ("up", "down"):
                cells = f"{radio['name']} {direction}"
                self._amounts[cells] = _steady(of_cells)
                for user in radio["users"]:
                    user_air = f"{cells} {user['name']}"
                    self._air[user["name"], direction] = [user_air, cells]
                    self._amounts[user_air] = _steady(peak)

    def air(self, point: str, direction: Literal["up", "down"]) -> list[str]:
        """Names of a radio user's channel and of all cells in one direction, for `amount`; empty for other points."""
        return self._air.get((point, direction), [])

    def amount(self, name: str, begin: int, end: int) -> float:
        """Upper bound of the bits that a link or a channel of `air` carries between two times."""
        if name not in self._amounts:
            self._amounts[name] = self._of_link(self._links[name])
        return self._amounts[name](begin, end)

    def _of_link(self, link: Ir) -> Amount:
        capacity, tokens = self._of_capacity(link["capacity"]), _tokens(link["settings"]["discipline"])
        emulated = _emulated(link["settings"].get("netem"))
        # what holds from each time on
        stretches = [(0, (capacity, tokens, emulated))]
        for time, change in self._moves.get(link["name"], ()):
            if "capacity" in change:
                capacity = _steady(float(change["capacity"]))
            if "discipline" in change:
                tokens = _tokens(change["discipline"])
            if "netem" in change:
                emulated = _emulated(change["netem"])
            stretches.append((time, (capacity, tokens, emulated)))
        ends = [time for time, _ in stretches[1:]]

        def amount(begin: int, end: int) -> float:
            bits = 0.0
            for (start, limits), stop in zip(stretches, [*ends, end], strict=True):
                first, last = max(start, begin), min(stop, end)
                if first < last:
                    bits += min(limit(first, last) for limit in limits)
            return bits

        return amount

    def _of_capacity(self, capacity: Any) -> Amount:
        match capacity:
            case {"constant": rate} | {"brownian": {"max": rate}}:
                return _steady(float(rate))
            case {"schedule": {"steps": steps, "period": period}}:
                return Steps(steps, period).amount
            case {"trace": {"index": index, "scale": scale}} if index < len(self._traces):
                return _busiest(self._traces[index], float(scale))
            case {"leo": {"median": rate, "sigma": sigma}}:
                return _steady(float(rate) * math.exp(3 * float(sigma)))
            case {"statuses": {"statuses": statuses}}:
                return _steady(max(float(status["capacity"]) for status in statuses))
        return lambda _begin, _end: math.inf


def _steady(rate: float) -> Amount:
    return lambda begin, end: rate * (end - begin) / SECOND


def _tokens(discipline: Any) -> Amount:
    """The bound of a discipline, if it is a token bucket."""
    match discipline:
        case {"policer": bucket} | {"shaper": bucket}:
            rate, burst = float(bucket["rate"]), 8.0 * bucket["burst"]
            return lambda begin, end: burst + rate * (end - begin) / SECOND
    return lambda _begin, _end: math.inf


def _emulated(netem: Ir | None) -> Amount:
    """The bound of an emulator, if it has a rate; its overhead may be negative."""
    rate = (netem or {}).get("rate")
    if rate is None or rate.get("overhead", 0) < 0 or rate.get("cell_overhead", 0) < 0:
        return lambda _begin, _end: math.inf
    return _steady(8.0 * rate["bytes_per_s"])


def _busiest(trace: Trace, scale: float) -> Amount:
    """Upper bound for any stretch of a length of a recorded network that is played in a loop."""
    width = max(SECOND, trace.duration_ns // _MAX_TRACE_BINS)
    rates = trace.series(width)[1] * scale
    count = len(rates)
    sums = np.concatenate(([0.0], np.cumsum(np.concatenate((rates, rates)))))

    def amount(begin: int, end: int) -> float:
        bins = -(-(end - begin) // width)
        rounds, rest = divmod(bins, count)
        total = rounds * sums[count] + (sums[rest : rest + count] - sums[:count]).max()
        return float(total / max(bins, 1)) * (end - begin) / SECOND

    return amount
