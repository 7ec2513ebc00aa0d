"""What each flow of a scenario can send at each time, and over which links."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.scenario.links import Schedule
from tidegate.scenario.routes import Routes, directions
from tidegate.scenario.sources import CbrVideo, EncoderVideo, GreedyVideo
from tidegate.scenario.traffic import FileTransfer, Web
from tidegate.units import Rate

if TYPE_CHECKING:
    from tidegate.scenario import Flow, Media, Scenario

_NS = 1e9
_RTP_HEADERS = 24  # bytes of RTP header with abs-send-time and transport-wide sequence number
_MOST_STEPS = 100_000  # of a schedule with a period, as many as one without may have

Steps = tuple[tuple[float, float], ...]
"""Pairs of a time in seconds and a rate in bit/s from then on."""


@dataclass(frozen=True)
class Demand:
    """What one flow of a run asks of the network."""

    flow: str
    """Its name in the run."""
    way: tuple[str, ...]
    """The links that it crosses, each in its direction."""
    most: Steps
    """The most that it can send from each time on; zero while it is not there or pauses, infinite for TCP with data."""
    weight: float = 1.0
    """Its priority."""
    yields: bool = True
    """Whether it makes room for others; UDP does not."""
    steady: bool = True
    """Whether its steps are events that others have to answer; web pages come and go all the time."""

    def at(self, time: float) -> float:
        """The most that it can send at a time, in bit/s."""
        return at(self.most, time)


def at(steps: Steps, time: float) -> float:
    """The value of steps at a time; zero before the first one."""
    number = bisect.bisect_right(steps, time, key=lambda step: step[0])
    return steps[number - 1][1] if number else 0.0


@dataclass(frozen=True)
class Recorded:
    """What only a recording tells of a flow's demand."""

    mean_bps: float
    """Its mean received rate over its life."""
    end_s: float
    """When its last byte arrived."""
    sent: Steps
    """Its sending rate in each bin."""


def demands(scenario: Scenario, recorded: Mapping[str, Recorded] | None = None) -> list[Demand] | None:
    """The demand of each flow, in the order of a run; `None` where it is not known.

    It is not known in a radio network, where one number a cell does not say what a user can have; of members of
    sessions, whose packets go many ways; and of datagrams that somebody else feeds.

    Without `recorded` a transfer of a file lasts as long as its flow, pages take what they would if each were loaded at
    once, and UDP that is on and off takes its mean.
    """
    if scenario.radios or scenario.sessions or any(flow.external is not None for flow in scenario.flows):
        return None
    routes = Routes((begin, end, name) for begin, end, name, _ in directions(scenario.links))
    weights = _weights(scenario)
    found = []
    for flow in scenario.flows:
        there, back = routes.between(flow.from_, flow.to), routes.between(flow.to, flow.from_)
        if there is None:
            return None
        for number, name in enumerate(flow.names):
            begin = (int(flow.start) + number * int(flow.start_step)) / _NS
            end = min(int(scenario.duration), int(flow.stop or scenario.duration)) / _NS
            told = None if recorded is None else recorded.get(name)
            weight = weights.get(name, 1.0)
            one = Demand(name, tuple(there), _most(flow, begin, end, told), weight, flow.udp is None, _is_steady(flow))
            found.append(one)
            if flow.media is not None and flow.media.both_ways and back is not None:
                found.append(Demand(f"{name}.back", tuple(back), one.most, weight))
    return found


def _weights(scenario: Scenario) -> dict[str, float]:
    """Of coupled flows: they share what as many flows without priorities would have (RFC 8699 section 5.3.1)."""
    names = {flow.name: flow.names for flow in scenario.flows}
    found = {}
    for coupling in scenario.couplings:
        priorities = coupling.priorities or [1.0] * len(coupling.flows)
        each = {one: p for name, p in zip(coupling.flows, priorities, strict=True) for one in names[name]}
        total = sum(each.values())
        found.update({name: priority * len(each) / total for name, priority in each.items()})
    return found


def _is_steady(flow: Flow) -> bool:
    if flow.tcp is not None:
        return not isinstance(flow.tcp.workload, Web)
    return flow.udp is None or flow.udp.pattern != "on_off"


def _most(flow: Flow, begin: float, end: float, told: Recorded | None) -> Steps:
    if flow.media is not None:
        pauses = [(int(off) / _NS, int(on) / _NS) for off, on in flow.media.pauses]
        return _within(_of_media(flow.media, begin), begin, end, pauses)
    if flow.udp is not None:
        udp = flow.udp
        steps = tuple((begin + int(time) / _NS, float(rate)) for time, rate in udp.schedule)
        if udp.pattern != "on_off":
            return _within(steps if steps and udp.pattern == "cbr" else ((begin, float(udp.rate)),), begin, end)
        on, off = int(udp.on or 0), int(udp.off or 0)
        return _within(told.sent if told is not None else ((begin, udp.rate * on / (on + off)),), begin, end)
    work = flow.tcp.workload if flow.tcp is not None else "long"
    if isinstance(work, Web):
        page = 8.0 * (work.web.min + work.web.max) / 2
        return _within(((begin, told.mean_bps if told is not None else page / (work.web.idle / _NS)),), begin, end)
    if isinstance(work, FileTransfer) and told is not None:
        end = min(end, told.end_s)
    return _within(((begin, math.inf),), begin, end)


def _of_media(media: Media, begin: float) -> Steps:
    """What its sources can fill, within what its controller may ask for."""
    audio = 0.0 if media.audio is False else float(media.audio.rate)
    video = media.video
    bound = math.inf if media.max_rate is None else float(media.max_rate)
    if video is False:
        # headers are as much as audio: what counts is what is on the wire
        interval = 1.0 if media.audio is False else int(media.audio.interval) / _NS
        share = 1.0
        if media.audio is not False and (spurts := media.audio.means) is not None:
            share = spurts.talk / (spurts.talk + spurts.pause)
        return ((begin, min(bound, share * (audio + 8 * (media.overhead + _RTP_HEADERS) / interval))),)
    if isinstance(video, CbrVideo):
        return tuple((begin + int(time) / _NS, min(bound, rate + audio)) for time, rate in video.steps)
    most = video.most(media.max_rate) if isinstance(video, GreedyVideo) else video.max
    schedule: Sequence[tuple[int, Rate]] = [] if isinstance(video, EncoderVideo) else video.schedule
    steps = [(begin, float(most))] if not schedule or schedule[0][0] > 0 else []
    steps += [(begin + int(time) / _NS, float(min(rate, most))) for time, rate in schedule]
    return tuple((time, min(bound, rate + audio)) for time, rate in steps)


def _within(steps: Steps, begin: float, end: float, pauses: Sequence[tuple[float, float]] = ()) -> Steps:
    """Steps that are zero before the beginning, in pauses, and from the end on."""
    edges = {begin, end, *(time for time, _ in steps), *(time for pause in pauses for time in pause)}
    found: list[tuple[float, float]] = []
    for time in sorted(edges):
        off = not begin <= time < end or any(a <= time < b for a, b in pauses)
        value = 0.0 if off else at(steps, time)
        if value != (found[-1][1] if found else 0.0):
            found.append((time, value))
    return tuple(found)


def known_capacity(scenario: Scenario) -> dict[str, Steps | None]:
    """What each direction of each link carries, where the scenario says it in steps; `None` where it does not.

    Infinite ones are left out.
    """
    found: dict[str, Steps | None] = {}
    for link in scenario.links:
        for name, way in zip(link.names, link.ways, strict=True):
            capacity = way["capacity"]
            bucket = getattr(way["discipline"], "rate", None)
            bound = float(bucket) if isinstance(bucket, Rate) else math.inf
            if capacity == "infinite":
                if math.isfinite(bound):
                    found[name] = ((0.0, bound),)
            elif isinstance(capacity, Rate):
                found[name] = ((0.0, min(bound, float(capacity))),)
            elif isinstance(capacity, Schedule):
                steps = _repeated(capacity, scenario.duration / _NS)
                found[name] = tuple((time, min(bound, rate)) for time, rate in steps)
            else:
                found[name] = None
    return found


def _repeated(capacity: Schedule, duration: float) -> Iterator[tuple[float, float]]:
    steps = [(int(time) / _NS, float(rate)) for time, rate in capacity.schedule]
    if capacity.period is None:
        yield from steps
        return
    period = int(capacity.period) / _NS
    for lap in range(min(math.ceil(duration / period), _MOST_STEPS // len(steps) + 1)):
        yield from ((lap * period + time, rate) for time, rate in steps)
