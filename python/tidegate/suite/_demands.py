"""Demands of flows: the largest rate that each can send at each time, and the links that it crosses."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.scenario.capacity import Schedule
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
    """Demand of one flow of a run on the network."""

    flow: str
    """Name of the flow in the run."""
    way: tuple[str, ...]
    """The links that it crosses, each in its direction."""
    most: Steps
    """Largest rate that it can send from each time on; zero before, after and in pauses, infinite for TCP with data."""
    weight: float = 1.0
    """Its priority."""
    yields: bool = True
    """Whether it makes room for others; UDP does not."""
    steady: bool = True
    """Whether its steps are events to which others must react; web pages come and go all the time."""

    def at(self, time: float) -> float:
        """Returns the largest rate that it can send at a time, in bit/s."""
        return at(self.most, time)


def at(steps: Steps, time: float) -> float:
    """The value of steps at a time; zero before the first one."""
    number = bisect.bisect_right(steps, time, key=lambda step: step[0])
    return steps[number - 1][1] if number else 0.0


@dataclass(frozen=True)
class Recorded:
    """Facts of a flow's demand that only a recording has."""

    mean_bps: float
    """Its mean received rate over its life."""
    end_s: float
    """When its last byte arrived."""
    sent: Steps
    """Its sending rate in each bin."""


def demands(scenario: Scenario, recorded: Mapping[str, Recorded] | None = None) -> list[Demand] | None:
    """The demand of each flow, in the order of a run; `None` where it is not known.

    It is not known in a radio network, where one number a cell does not say what a user can have; of members of
    sessions, whose packets go many ways; and of datagrams that a driver feeds.

    Without `recorded` a transfer of a file lasts as long as its flow, pages take what they would if each were loaded at
    once, and UDP that is on and off takes its mean.
    """
    if scenario.radios or scenario.sessions or any(flow.external is not None for flow in scenario.flows):
        return None
    routes = Routes((begin, end, name) for begin, end, name, _ in directions(scenario.links))
    weights = _weights(scenario)
    listed = []
    for flow in scenario.flows:
        path, path_back = routes.between(flow.from_, flow.to), routes.between(flow.to, flow.from_)
        if path is None:
            return None
        for number, name in enumerate(flow.names):
            begin = (int(flow.start) + number * int(flow.start_step)) / _NS
            end = min(int(scenario.duration), int(flow.stop or scenario.duration)) / _NS
            recorded_flow = None if recorded is None else recorded.get(name)
            weight = weights.get(name, 1.0)
            demand = Demand(
                name, tuple(path), _most(flow, begin, end, recorded_flow), weight, flow.udp is None, _is_steady(flow)
            )
            listed.append(demand)
            if flow.media is not None and flow.media.both_ways and path_back is not None:
                listed.append(Demand(f"{name}.back", tuple(path_back), demand.most, weight))
    return listed


def _weights(scenario: Scenario) -> dict[str, float]:
    """Of coupled flows: they share what as many flows without priorities would have (RFC 8699 section 5.3.1)."""
    names = {flow.name: flow.names for flow in scenario.flows}
    weights = {}
    for coupling in scenario.couplings:
        priorities = coupling.priorities or [1.0] * len(coupling.flows)
        by_flow = {
            flow_name: priority
            for name, priority in zip(coupling.flows, priorities, strict=True)
            for flow_name in names[name]
        }
        total = sum(by_flow.values())
        weights.update({name: priority * len(by_flow) / total for name, priority in by_flow.items()})
    return weights


def _is_steady(flow: Flow) -> bool:
    if flow.tcp is not None:
        return not isinstance(flow.tcp.workload, Web)
    return flow.udp is None or flow.udp.pattern != "on_off"


def _most(flow: Flow, begin: float, end: float, recorded: Recorded | None) -> Steps:
    if flow.media is not None:
        pauses = [(int(off) / _NS, int(on) / _NS) for off, on in flow.media.pauses]
        return _within(_of_media(flow.media, begin), begin, end, pauses)
    if flow.udp is not None:
        udp = flow.udp
        steps = tuple((begin + int(time) / _NS, float(rate)) for time, rate in udp.schedule)
        if udp.pattern != "on_off":
            return _within(steps if steps and udp.pattern == "cbr" else ((begin, float(udp.rate)),), begin, end)
        on, off = int(udp.on or 0), int(udp.off or 0)
        return _within(recorded.sent if recorded is not None else ((begin, udp.rate * on / (on + off)),), begin, end)
    work = flow.tcp.workload if flow.tcp is not None else "long"
    if isinstance(work, Web):
        page = 8.0 * (work.web.min + work.web.max) / 2
        return _within(
            ((begin, recorded.mean_bps if recorded is not None else page / (work.web.idle / _NS)),), begin, end
        )
    if isinstance(work, FileTransfer) and recorded is not None:
        end = min(end, recorded.end_s)
    return _within(((begin, math.inf),), begin, end)


def _of_media(media: Media, begin: float) -> Steps:
    """Returns the rate that its sources can fill, up to the largest rate of its controller."""
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
    kept_steps: list[tuple[float, float]] = []
    for time in sorted(edges):
        off = not begin <= time < end or any(a <= time < b for a, b in pauses)
        value = 0.0 if off else at(steps, time)
        if value != (kept_steps[-1][1] if kept_steps else 0.0):
            kept_steps.append((time, value))
    return tuple(kept_steps)


def known_capacity(scenario: Scenario) -> dict[str, Steps | None]:
    """Returns the capacity of each direction of each link in steps; `None` where the scenario does not give it so.

    Infinite ones are left out.
    """
    by_link: dict[str, Steps | None] = {}
    for link in scenario.links:
        for name, direction in zip(link.names, link.ways, strict=True):
            capacity = direction["capacity"]
            bucket = getattr(direction["discipline"], "rate", None)
            bound = float(bucket) if isinstance(bucket, Rate) else math.inf
            if capacity == "infinite":
                if math.isfinite(bound):
                    by_link[name] = ((0.0, bound),)
            elif isinstance(capacity, Rate):
                by_link[name] = ((0.0, min(bound, float(capacity))),)
            elif isinstance(capacity, Schedule):
                steps = _repeated(capacity, scenario.duration / _NS)
                by_link[name] = tuple((time, min(bound, rate)) for time, rate in steps)
            else:
                by_link[name] = None
    return by_link


def _repeated(capacity: Schedule, duration: float) -> Iterator[tuple[float, float]]:
    steps = [(int(time) / _NS, float(rate)) for time, rate in capacity.schedule]
    if capacity.period is None:
        yield from steps
        return
    period = int(capacity.period) / _NS
    for lap in range(min(math.ceil(duration / period), _MOST_STEPS // len(steps) + 1)):
        yield from ((lap * period + time, rate) for time, rate in steps)
