"""Routes of flows over the links of a scenario, and upper bounds of what these carry."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
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
        self._moves: dict[str, list[tuple[int, float]]] = {}
        for move in ir.get("moves", ()):
            if "capacity" in move:
                self._moves.setdefault(move["link"], []).append((move["time"], float(move["capacity"])))
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
        capacity_amount, tokens = self._of_capacity(link["capacity"]), list(_tokens(link["settings"]["discipline"]))
        moved = sorted(self._moves.get(link["name"], ()), key=lambda move: move[0])
        later = Steps(moved)

        def amount(begin: int, end: int) -> float:
            first = moved[0][0] if moved else end
            carried = capacity_amount(begin, min(end, first)) if begin < first else 0.0
            carried += later.amount(begin, end) if moved else 0.0
            return min(carried, *(tokens(begin, end) for tokens in tokens), math.inf)

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


def _tokens(discipline: Any) -> Iterator[Amount]:
    """Yields the bound of a token bucket, if the discipline is one."""
    match discipline:
        case {"policer": bucket} | {"shaper": bucket}:
            rate, burst = float(bucket["rate"]), 8.0 * bucket["burst"]
            yield lambda begin, end: burst + rate * (end - begin) / SECOND


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
