"""Shares: the max-min fair part of the links' capacity for each flow at each time.

How each kind of flow counts:

* **Media** has a share like any other flow, up to what its sources can fill (`video.max` and audio, or `max_rate` where
  that is less); the rest goes to the others. A rate on the wire may be a few per cent above: these bounds are
  of RTP packets, and a rate counts the headers of UDP and IP, too. Outside of its life and in pauses its share is zero.
* **Priorities** of couplings weigh it: coupled flows share what as many flows without priorities would have, each in
  proportion to its priority (RFC 8699 section 5.3.1).
* **UDP** takes its rate first, because it does not yield.
* **A long TCP** is a flow like media without a bound, so that its share is as large as that of a call (RFC 8836 section
  2, requirement 2: fair to long-lived TCP flows). One with a file is that until its last byte has arrived.
* **Pages** (`workload.web`) take their mean rate over the flow's life, where that is below their share: they are idle
  most of the time, and the fair rate of a call at the instant of a page load is undefined.

RTCP and acknowledgements are left out; they are some per cent of the other direction. Losses on a medium are left out,
too: a share is a part of the rate that a link carries.

A share is not defined (`None`) where a link has no single capacity: in radio networks, whose users have different
capacities at one time; with members of sessions; and with flows that a driver feeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tidegate.suite._demands import Demand, Recorded, Steps, at, demands, known_capacity
from tidegate.suite.filling import Wish, fill

if TYPE_CHECKING:
    from tidegate.runs import Run
    from tidegate.scenario import Scenario

Floats: TypeAlias = npt.NDArray[np.float64]

UNLIMITED = 1e18
"""In bit/s: the engine reports an infinite capacity as its largest rate."""


@dataclass(frozen=True)
class Event:
    """An event to which the flows on a link must react."""

    at_s: float
    """Time of the event."""
    description: str
    """Description of the event."""
    links: tuple[str, ...]
    """Links concerned, and with them all flows that cross one."""
    flow: str | None = None
    """The flow that comes or goes; `None` for an event of a link."""


@dataclass(frozen=True)
class Shares:
    """The share of each flow over time."""

    edges_s: Floats
    """Times between which all shares are constant, one more than there are stretches."""
    rate_bps: Mapping[str, Floats]
    """Of each flow in each stretch; infinite where nothing bounds it."""
    capacity_bps: Mapping[str, Floats]
    """Of each link in each stretch."""
    demands: Mapping[str, Demand]
    """Demand of each flow."""
    events: tuple[Event, ...]
    """Events in order of time."""
    restless: frozenset[str]
    """Links whose capacity changes all the time: no rate on them can converge."""

    def bits(self, flow: str, begin: Floats | float, end: Floats | float) -> Floats:
        """Returns the bits of a flow's share between two times."""
        return between(self.edges_s, self._totals[flow], begin, end)

    def nothing(self, flow: str, begin: Floats | float, end: Floats | float) -> npt.NDArray[np.bool_]:
        """Whether there is a time between two at which a flow has no share."""
        without = np.concatenate([[0.0], np.cumsum((self.rate_bps[flow] == 0) * np.diff(self.edges_s))])
        return np.asarray(between(self.edges_s, without, begin, end) > 1e-6)  # noqa: PLR2004

    def at(self, flow: str, time: float) -> float:
        """The share at a time, in bit/s."""
        number = int(np.searchsorted(self.edges_s, time, side="right")) - 1
        rates = self.rate_bps[flow]
        return float(rates[number]) if 0 <= number < len(rates) else 0.0

    def life(self, flow: str) -> list[tuple[float, float]]:
        """Returns the periods in which a flow has data to send, in seconds: one more than it has pauses."""
        end = float(self.edges_s[-1])
        steps = (*self.demands[flow].most, (end, 0.0))
        stretches: list[tuple[float, float]] = []
        for (begin, rate), (until, _) in pairwise(steps):
            if rate > 0 and begin < end:
                if stretches and stretches[-1][1] == begin:
                    stretches[-1] = (stretches[-1][0], until)
                else:
                    stretches.append((begin, until))
        return stretches

    def concerning(self, flow: str) -> list[Event]:
        """Returns the events on a flow's path during its life, and its own starts; events at one time are merged."""
        demand = self.demands[flow]
        by_time: dict[float, list[str]] = {}
        for event in self.events:
            if demand.at(event.at_s) > 0 and (event.flow == flow or set(event.links) & set(demand.way)):
                happenings = by_time.setdefault(event.at_s, [])
                happenings.insert(
                    0 if event.flow == flow else len(happenings),
                    "it begins" if event.flow == flow else event.description,
                )
        return [
            Event(time, ", ".join(dict.fromkeys(happenings)), demand.way, flow) for time, happenings in by_time.items()
        ]

    @cached_property
    def _totals(self) -> dict[str, Floats]:
        lengths = np.diff(self.edges_s)
        return {flow: np.concatenate([[0.0], np.cumsum(rates * lengths)]) for flow, rates in self.rate_bps.items()}


def of_run(run: Run, scenario: Scenario | None = None) -> Shares | None:
    """The shares in a run, by the capacity that its links had; `None` where they are not defined.

    The run is recorded with series.

    Args:
        run: The run.
        scenario: The scenario of the shares, if a program replaces one of its flows; the run's by default.
    """
    scenario = scenario or run.scenario
    listed = demands(scenario, _recorded(run))
    return None if listed is None else shares(scenario, listed, _truth(run))


def of_scenario(scenario: Scenario) -> Shares | None:
    """The shares in a scenario, before it is run; `None` where they are not defined, or not known beforehand."""
    listed, by_link = demands(scenario), known_capacity(scenario)
    capacity = {link: steps for link, steps in by_link.items() if steps is not None}
    return None if listed is None or len(capacity) < len(by_link) else shares(scenario, listed, capacity)


def shares(scenario: Scenario, demand_list: Sequence[Demand], capacity: Mapping[str, Steps]) -> Shares:
    """The shares of flows with these demands, over links of these capacities; one without steps carries everything."""
    end = scenario.duration / 1e9
    times = {0.0, end, *(time for demand in demand_list for time, _ in demand.most)}
    times |= {time for steps in capacity.values() for time, _ in steps}
    edges = np.array(sorted(time for time in times if 0 <= time <= end))
    rates = np.zeros((len(demand_list), len(edges) - 1))
    carried = np.array([[at(steps, time) for time in edges[:-1]] for steps in capacity.values()])
    carried = carried.reshape(len(capacity), len(edges) - 1)
    wanted = np.array([[demand.at(time) for time in edges[:-1]] for demand in demand_list]).reshape(rates.shape)
    divided: dict[bytes, list[float]] = {}
    for number in range(len(edges) - 1):
        key = carried[:, number].tobytes() + wanted[:, number].tobytes()
        if key not in divided:
            capacity_now = dict(zip(capacity, carried[:, number].tolist(), strict=True))
            divided[key] = _divide(capacity_now, demand_list, wanted[:, number].tolist())
        rates[:, number] = divided[key]
    stated = known_capacity(scenario)
    return Shares(
        edges_s=edges,
        rate_bps={demand.flow: rates[number] for number, demand in enumerate(demand_list)},
        capacity_bps={link: carried[number] for number, link in enumerate(capacity)},
        demands={demand.flow: demand for demand in demand_list},
        events=tuple(sorted(_events(demand_list, stated, end), key=lambda event: event.at_s)),
        restless=frozenset(link for link, steps in stated.items() if steps is None),
    )


def _divide(capacity: Mapping[str, float], demand_list: Sequence[Demand], wanted: Sequence[float]) -> list[float]:
    """The rates at one instant: those that do not yield take theirs first."""
    remaining = dict(capacity)
    rates = [0.0] * len(demand_list)
    for yields in (False, True):
        numbers = [number for number, demand in enumerate(demand_list) if demand.yields == yields]
        filled = fill(
            remaining, [Wish(demand_list[number].way, wanted[number], demand_list[number].weight) for number in numbers]
        )
        for number, rate in zip(numbers, filled, strict=True):
            rates[number] = rate
            for link in demand_list[number].way:
                if link in remaining:
                    remaining[link] = max(remaining[link] - rate, 0.0)
    return rates


def _events(demand_list: Sequence[Demand], stated: Mapping[str, Steps | None], end: float) -> list[Event]:
    events = []
    for link, steps in stated.items():
        for (_, before), (time, rate) in pairwise(steps or ()):
            if rate != before and time < end:
                events.append(Event(time, f"{link} carries {_rate(rate)}", (link,)))
    for demand in demand_list:
        before = 0.0
        for time, rate in demand.most if demand.steady else ():
            if time < end:
                change = "comes" if not before else "goes" if not rate else f"sends up to {_rate(rate)}"
                events.append(
                    Event(time, f"{demand.flow} {change}", demand.way, None if before and rate else demand.flow)
                )
            before = rate
    return events


def _rate(bps: float) -> str:
    return f"{bps / 1e6:.4g} Mbit/s"


def _truth(run: Run) -> dict[str, Steps]:
    """The capacity of each link in steps, as it was recorded."""
    table = run.table("truth")
    links, times, rates = (np.asarray(table.to_numpy(name)) for name in ("link", "t_s", "capacity_bps"))
    by_link = {}
    for link in dict.fromkeys(links.tolist()):
        rows = links == link
        steps = list(zip(times[rows].tolist(), rates[rows].tolist(), strict=True))
        if any(rate < UNLIMITED for _, rate in steps):
            changes = [step for number, step in enumerate(steps) if not number or step[1] != steps[number - 1][1]]
            by_link[link] = tuple((time, rate if rate < UNLIMITED else math.inf) for time, rate in changes)
    return by_link


def _recorded(run: Run) -> dict[str, Recorded]:
    """Returns the facts of each flow that only the recording has."""
    series = columns(run, "series", "flow", ("t_s", "sending_rate_bps", "receive_rate_bps"))
    by_flow = {}
    for flow in run.summary["flows"]:
        name = str(flow["flow"])
        if name in series and flow["kind"] in ("tcp", "udp"):
            times, sent, received = series[name].values()
            width = float(np.min(np.diff(times))) if len(times) > 1 else 0.0
            arrived = np.flatnonzero(received > 0)
            last = float(times[arrived[-1]]) + width if len(arrived) else float(flow["start_s"])
            steps = tuple(zip(times.tolist(), sent.tolist(), strict=True))
            by_flow[name] = Recorded(float(flow["receive_rate_bps"] or 0.0), last, steps)
    return by_flow


def between(edges: Floats, total: Floats, begin: Floats | float, end: Floats | float) -> Floats:
    """Returns the growth from `begin` to `end` of a total that is given at edges and linear between them."""
    first, last = np.asarray(begin, dtype=np.float64), np.asarray(end, dtype=np.float64)
    return np.asarray(np.interp(last, edges, total) - np.interp(first, edges, total), dtype=np.float64)


def grid(begin: float, step: float, count: int) -> Floats:
    """Returns `count` times, a step apart."""
    return np.asarray(begin + step * np.arange(count), dtype=np.float64)


def columns(run: Any, table: str, key: str, names: Sequence[str]) -> dict[str, dict[str, Floats]]:
    """Columns of a table by the value of one of them, each read once."""
    source = run.table(table)
    keys = np.asarray(source.to_numpy(key))
    columns_by_name = {name: np.asarray(source.to_numpy(name), dtype=np.float64) for name in names}
    by_value = {}
    for value in dict.fromkeys(keys.tolist()):
        rows = keys == value
        by_value[str(value)] = {name: column[rows] for name, column in columns_by_name.items()}
    return by_value
