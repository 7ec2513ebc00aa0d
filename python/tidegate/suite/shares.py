"""What each flow could have had at each time: its max-min fair share of what the links carried.

Who counts how:

* **Media** has a share like any other flow, up to what its sources can fill (`video.max` and audio, or `max_rate` where
  that is less); what it cannot use goes to the others. A rate on the wire may be a few per cent above: these bounds are
  of RTP packets, and a rate counts the headers of UDP and IP, too. While it is not there or pauses its share is zero.
* **Priorities** of couplings weigh it: coupled flows share what as many flows without priorities would have, each in
  proportion to its priority (RFC 8699 section 5.3.1).
* **UDP** takes its rate first, because it does not make room for anybody.
* **A long TCP** is a flow like media without a bound, so that its share is as large as that of a call (RFC 8836 section
  2, requirement 2: fair to long-lived TCP flows). One with a file is that until its last byte has arrived.
* **Pages** (`workload.web`) take what they took on average over the flow's life, where that is below their share: they
  are idle most of the time, and whoever asks what a call could have had at an instant at which one is loaded asks for a
  rate that nobody can know.

RTCP and acknowledgements are left out; they are some per cent of the other direction. Losses on a medium are, too: a
share is of what a link carries.

It is not defined (`None`) where one number a link does not say what there is: in radio networks, whose users have
different capacities at one time; with members of sessions; and with flows that somebody else feeds.
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
"""In bit/s: the engine tells of an infinite capacity as of the largest rate that it has."""


@dataclass(frozen=True)
class Event:
    """Something that the flows on a link have to answer."""

    at_s: float
    """When it happens."""
    what: str
    """What happens, for people."""
    links: tuple[str, ...]
    """The links where it does: a flow that crosses one of them is concerned."""
    flow: str | None = None
    """Whose coming or going it is; `None` for a link's."""


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
    """What each flow asks for."""
    events: tuple[Event, ...]
    """What happens, in order of time."""
    restless: frozenset[str]
    """Links whose capacity changes all the time: no rate on them can converge."""

    def bits(self, flow: str, begin: Floats | float, end: Floats | float) -> Floats:
        """What a flow could have received between two times, in bits."""
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
        """From when to when a flow has something to send, in seconds: one stretch more than it has pauses."""
        end = float(self.edges_s[-1])
        steps = (*self.demands[flow].most, (end, 0.0))
        found: list[tuple[float, float]] = []
        for (begin, most), (until, _) in pairwise(steps):
            if most > 0 and begin < end:
                if found and found[-1][1] == begin:
                    found[-1] = (found[-1][0], until)
                else:
                    found.append((begin, until))
        return found

    def concerning(self, flow: str) -> list[Event]:
        """The events on a flow's way while it is there, and its own beginnings; those at one time are one."""
        demand = self.demands[flow]
        found: dict[float, list[str]] = {}
        for event in self.events:
            if demand.at(event.at_s) > 0 and (event.flow == flow or set(event.links) & set(demand.way)):
                here = found.setdefault(event.at_s, [])
                here.insert(0 if event.flow == flow else len(here), "it begins" if event.flow == flow else event.what)
        return [Event(time, ", ".join(dict.fromkeys(what)), demand.way, flow) for time, what in found.items()]

    @cached_property
    def _totals(self) -> dict[str, Floats]:
        lengths = np.diff(self.edges_s)
        return {flow: np.concatenate([[0.0], np.cumsum(rates * lengths)]) for flow, rates in self.rate_bps.items()}


def of_run(run: Run, scenario: Scenario | None = None) -> Shares | None:
    """The shares in a run, by the capacity that its links had; `None` where they are not defined.

    The run is recorded with series.

    Args:
        run: The run.
        scenario: Whose flows have the shares, where a program stands for one of them; the run's by default.
    """
    scenario = scenario or run.scenario
    found = demands(scenario, _recorded(run))
    return None if found is None else shares(scenario, found, _truth(run))


def of_scenario(scenario: Scenario) -> Shares | None:
    """The shares in a scenario, before it is run; `None` where they are not defined, or not known beforehand."""
    found, known = demands(scenario), known_capacity(scenario)
    capacity = {link: steps for link, steps in known.items() if steps is not None}
    return None if found is None or len(capacity) < len(known) else shares(scenario, found, capacity)


def shares(scenario: Scenario, found: Sequence[Demand], capacity: Mapping[str, Steps]) -> Shares:
    """The shares of flows with these demands, over links of these capacities; one without steps carries everything."""
    end = scenario.duration / 1e9
    times = {0.0, end, *(time for one in found for time, _ in one.most)}
    times |= {time for steps in capacity.values() for time, _ in steps}
    edges = np.array(sorted(time for time in times if 0 <= time <= end))
    rates = np.zeros((len(found), len(edges) - 1))
    carried = np.array([[at(steps, time) for time in edges[:-1]] for steps in capacity.values()])
    carried = carried.reshape(len(capacity), len(edges) - 1)
    wanted = np.array([[one.at(time) for time in edges[:-1]] for one in found]).reshape(rates.shape)
    known: dict[bytes, list[float]] = {}
    for number in range(len(edges) - 1):
        key = carried[:, number].tobytes() + wanted[:, number].tobytes()
        if key not in known:
            there = dict(zip(capacity, carried[:, number].tolist(), strict=True))
            known[key] = _divide(there, found, wanted[:, number].tolist())
        rates[:, number] = known[key]
    said = known_capacity(scenario)
    return Shares(
        edges_s=edges,
        rate_bps={one.flow: rates[number] for number, one in enumerate(found)},
        capacity_bps={link: carried[number] for number, link in enumerate(capacity)},
        demands={one.flow: one for one in found},
        events=tuple(sorted(_events(found, said, end), key=lambda event: event.at_s)),
        restless=frozenset(link for link, steps in said.items() if steps is None),
    )


def _divide(capacity: Mapping[str, float], found: Sequence[Demand], wanted: Sequence[float]) -> list[float]:
    """The rates at one instant: those that do not yield take theirs first."""
    left = dict(capacity)
    rates = [0.0] * len(found)
    for yields in (False, True):
        some = [number for number, one in enumerate(found) if one.yields == yields]
        filled = fill(left, [Wish(found[at].way, wanted[at], found[at].weight) for at in some])
        for number, rate in zip(some, filled, strict=True):
            rates[number] = rate
            for link in found[number].way:
                if link in left:
                    left[link] = max(left[link] - rate, 0.0)
    return rates


def _events(found: Sequence[Demand], known: Mapping[str, Steps | None], end: float) -> list[Event]:
    events = []
    for link, steps in known.items():
        for (_, before), (time, rate) in pairwise(steps or ()):
            if rate != before and time < end:
                events.append(Event(time, f"{link} carries {_rate(rate)}", (link,)))
    for one in found:
        before = 0.0
        for time, rate in one.most if one.steady else ():
            if time < end:
                what = "comes" if not before else "goes" if not rate else f"sends up to {_rate(rate)}"
                events.append(Event(time, f"{one.flow} {what}", one.way, None if before and rate else one.flow))
            before = rate
    return events


def _rate(bps: float) -> str:
    return f"{bps / 1e6:.4g} Mbit/s"


def _truth(run: Run) -> dict[str, Steps]:
    """The capacity of each link in steps, as it was recorded."""
    table = run.table("truth")
    links, times, rates = (np.asarray(table.to_numpy(name)) for name in ("link", "t_s", "capacity_bps"))
    found = {}
    for link in dict.fromkeys(links.tolist()):
        here = links == link
        steps = list(zip(times[here].tolist(), rates[here].tolist(), strict=True))
        if any(rate < UNLIMITED for _, rate in steps):
            kept = [step for number, step in enumerate(steps) if not number or step[1] != steps[number - 1][1]]
            found[link] = tuple((time, rate if rate < UNLIMITED else math.inf) for time, rate in kept)
    return found


def _recorded(run: Run) -> dict[str, Recorded]:
    """What only the recording tells, of each flow."""
    series = columns(run, "series", "flow", ("t_s", "sending_rate_bps", "receive_rate_bps"))
    found = {}
    for one in run.summary["flows"]:
        name = str(one["flow"])
        if name in series and one["kind"] in ("tcp", "udp"):
            times, sent, received = series[name].values()
            width = float(np.min(np.diff(times))) if len(times) > 1 else 0.0
            arrived = np.flatnonzero(received > 0)
            last = float(times[arrived[-1]]) + width if len(arrived) else float(one["start_s"])
            steps = tuple(zip(times.tolist(), sent.tolist(), strict=True))
            found[name] = Recorded(float(one["receive_rate_bps"] or 0.0), last, steps)
    return found


def between(edges: Floats, total: Floats, begin: Floats | float, end: Floats | float) -> Floats:
    """By how much a total that is known at edges, and grows evenly between them, grows from one time to another."""
    first, last = np.asarray(begin, dtype=np.float64), np.asarray(end, dtype=np.float64)
    return np.asarray(np.interp(last, edges, total) - np.interp(first, edges, total), dtype=np.float64)


def grid(begin: float, step: float, count: int) -> Floats:
    """So many times, a step apart."""
    return np.asarray(begin + step * np.arange(count), dtype=np.float64)


def columns(run: Any, table: str, key: str, names: Sequence[str]) -> dict[str, dict[str, Floats]]:
    """Columns of a table by the value of one of them, each read once."""
    source = run.table(table)
    of = np.asarray(source.to_numpy(key))
    read = {name: np.asarray(source.to_numpy(name), dtype=np.float64) for name in names}
    found = {}
    for value in dict.fromkeys(of.tolist()):
        here = of == value
        found[str(value)] = {name: column[here] for name, column in read.items()}
    return found
