"""What a run will need of memory, before it begins, and what there is."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from tidegate.errors import RunError
from tidegate.net import trace

IGNORE = "TIDEGATE_IGNORE_MEMORY"
"""The environment variable that lets a run begin whatever it needs."""

# Bytes, measured as growth of the peak resident size (Linux, 64 bits) over runs of 1 to 1000 flows and 1 to 1000 s.
_BASE = 8_000_000  # the engine, its summary, and what Python makes of it
_FLOW = {"media": 45_000, "tcp": 25_000, "udp": 16_000, "external": 16_000}  # both ends, histograms, the flow's row
_MEMBER = 45_000  # of a session
_QUEUE = 97  # of FQ-CoDel, for each of its flows
_SERIES_ROW = 85  # table `series`: a row a flow and bin
_LINK_ROW = 50  # tables `queues` and `truth`: a row a link and bin
_ROW = 36  # tables `internals`, `frames`, `rtcp`, `decisions`
_MEDIA_ROWS = 500  # of these a second and flow with media
_TCP_ROWS = 0.9  # of these a packet: internals of each acknowledgment
_PACKET_ROW = 45  # table `packets`
_CAPTURED = 90  # a captured packet: headers, kept at both of its ends
_SECOND = 10**9
_GIGA = 1e9


def need(ir: Mapping[str, Any], traces: Sequence[trace.Trace] = ()) -> int:
    """Bytes that a run will take at most, more or less: half as much again is not unusual.

    A call sends as much as it may, or as the narrowest link on its way carries; UDP sends its rate, whatever becomes of
    it; the connections that one link limits send together what it carries. A flow that nothing limits is not counted.

    Args:
        ir: The scenario as the engine takes it.
        traces: The recorded networks that its links name by number.
    """
    level, seconds = ir["record"]["level"], ir["duration"] / _SECOND
    bins = ir["duration"] / ir["record"]["bin"]
    narrowest = _Narrowest(ir["links"], traces)
    connections: dict[str, _Connections] = {}
    total = float(_BASE)
    for kind, flow in _flows(ir):
        total += _FLOW.get(kind, _FLOW["media"])
        if level == "summary":
            continue
        begin, end = flow["start"] / _SECOND, min(seconds, (flow["stop"] or ir["duration"]) / _SECOND)
        active = max(end - begin, 0.0)
        total += _SERIES_ROW * bins
        limit = narrowest.between(flow["from"], flow["to"])
        if kind == "tcp":
            if limit is not None:
                name, rate = limit
                size = flow["kind"]["tcp"]["packet_size"] / 1.5  # an acknowledgment for every other segment
                connections.setdefault(name, _Connections(rate)).add(size, begin, end)
            continue
        packets = _packets(kind, flow["kind"], limit and limit[1]) * active
        total += _ROW * _MEDIA_ROWS * active * (kind == "media") + packets * _packet(ir)
    total += sum(one.packets * (_ROW * _TCP_ROWS + _packet(ir)) for one in connections.values())
    total += _MEMBER * sum(len(session["members"]) for session in ir.get("sessions", ()))
    total += _QUEUE * sum(_queues(link["settings"]["discipline"]) for link in ir["links"])
    if level != "summary":
        total += _LINK_ROW * bins * len(ir["links"])
    return round(total)


def _packet(ir: Mapping[str, Any]) -> int:
    """Bytes for each packet."""
    record = ir["record"]
    return (_PACKET_ROW if record["level"] == "packets" else 0) + (_CAPTURED if record["capture"] else 0)


@dataclass
class _Connections:
    """The TCP connections that one link limits."""

    rate: float
    """What the link carries, bit/s."""
    size: float = math.inf
    """The smallest bytes a packet."""
    begin: float = math.inf
    end: float = 0.0

    def add(self, size: float, begin: float, end: float) -> None:
        """One more, that is active from `begin` to `end`."""
        self.size, self.begin, self.end = min(self.size, size), min(self.begin, begin), max(self.end, end)

    @property
    def packets(self) -> float:
        """Of all of them together, however they share the link: a lone one has all of it."""
        return self.rate / 8 / self.size * max(self.end - self.begin, 0.0)


class _Narrowest:
    """The narrowest link between two ends, on the way that the engine takes: that with the fewest links."""

    def __init__(self, links: Sequence[Mapping[str, Any]], traces: Sequence[trace.Trace]) -> None:
        self._traces = traces
        self._from: dict[str, list[Mapping[str, Any]]] = {}
        for link in links:
            self._from.setdefault(link["from"], []).append(link)
        self._reached: dict[str, dict[str, tuple[str, float] | None]] = {}

    def between(self, begin: str, end: str) -> tuple[str, float] | None:
        """Its name and what it carries in bit/s; None where no link on the way has a limit, or there is no way."""
        if begin not in self._reached:
            self._reached[begin] = self._limits(begin)
        return self._reached[begin].get(end)

    def _limits(self, begin: str) -> dict[str, tuple[str, float] | None]:
        limits: dict[str, tuple[str, float] | None] = {begin: None}
        waiting = deque([begin])
        while waiting:
            here = waiting.popleft()
            for link in self._from.get(here, ()):
                if link["to"] in limits:
                    continue
                rate = _capacity(link["capacity"], self._traces)
                known = [limits[here], None if rate is None else (str(link["name"]), rate)]
                limits[link["to"]] = min((one for one in known if one is not None), key=itemgetter(1), default=None)
                waiting.append(link["to"])
        return limits


def free() -> tuple[int, str] | None:
    """Bytes that this process may still take, and what limits it; None where nobody tells."""
    return min(_limits(), default=None)


def check(ir: Mapping[str, Any], traces: Sequence[trace.Trace] = ()) -> None:
    """Refuses a run that will need more memory than there is.

    Raises:
        RunError: says how much it needs, how much there is, and what to do.
    """
    there = free()
    if there is None or os.environ.get(IGNORE):
        return
    wanted, (room, what) = need(ir, traces), there
    if wanted <= room:
        return
    level = ir["record"]["level"]
    less = need({**ir, "record": {**ir["record"], "level": "summary", "capture": False}})
    hint = f'; record = "summary" needs about {_shown(less)}' if level != "summary" else ""
    raise RunError(
        f'{ir["name"]}: needs about {_shown(wanted)} of memory (record = "{level}", {ir["duration"] / _SECOND:g} s, '
        f"{sum(1 for _ in _flows(ir))} flows), and {_shown(room)} are free ({what}){hint}; "
        f"a longer bin, fewer flows or a shorter run need less, and {IGNORE}=1 runs it all the same"
    )


def _flows(ir: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for flow in ir["flows"]:
        kind = flow["kind"]
        yield kind if isinstance(kind, str) else next(iter(kind)), flow


def _queues(discipline: Any) -> int:
    """How many queues FQ-CoDel has, by itself or in a token bucket."""
    match discipline:
        case {"fq_codel": {"flows": flows}}:
            return int(flows)
        case {"policer": {"discipline": inner}} | {"shaper": {"discipline": inner}}:
            return _queues(inner)
    return 0


def _capacity(capacity: Any, traces: Sequence[trace.Trace]) -> float | None:
    """The most that a link carries in bit/s, of a recorded network the mean; None where that is not known."""
    match capacity:
        case {"constant": rate}:
            return float(rate)
        case {"schedule": {"steps": steps}}:
            return max(float(rate) for _, rate in steps)
        case {"trace": {"index": int(index), "scale": float(scale) | int(scale)}} if index < len(traces):
            return float(traces[index].mean_rate * scale)
        case {"brownian": {"max": rate}}:
            return float(rate)
        case {"leo": {"median": rate, "sigma": sigma}}:
            return float(rate) * math.exp(3 * float(sigma))
        case {"statuses": {"statuses": statuses}}:
            return max(float(status["capacity"]) for status in statuses)
    return None


def _packets(kind: str, spec: Any, limit: float | None) -> float:
    """Packets a second, in both directions, of a flow that is no connection."""
    settings = spec[kind] if isinstance(spec, Mapping) else {}
    match kind:
        case "media":
            rate, size = settings["max_rate"], settings["payload"] + settings["overhead"] + 20
            return min(float(rate), limit or float(rate)) / 8 / float(size)
        case "udp":
            return float(settings["rate"]) / 8 / float(settings["packet_size"])
    return 0.0


_GROUPS = Path("/sys/fs/cgroup")
_GROUP_FILES = [
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),  # control groups, version 1
]


def _limits() -> Iterator[tuple[int, str]]:
    status = _numbers(Path("/proc/meminfo"))
    if "MemAvailable" in status:
        yield (status["MemAvailable"] + status.get("SwapFree", 0)) * 1024, "memory of this machine"
    for most, now in _GROUP_FILES:
        try:
            left = int((_GROUPS / most).read_text()) - int((_GROUPS / now).read_text())
            yield max(left, 0), "limit of this container"
        except (OSError, ValueError):
            continue  # no such group, or "max"
    try:
        import resource
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    size = _numbers(Path("/proc/self/status")).get("VmSize")
    if limit != resource.RLIM_INFINITY and size is not None:
        # a column that grows takes its old place and its new one while it moves
        yield max(limit - size * 1024, 0) // 2, "half of what ulimit -v leaves"


def _numbers(path: Path) -> dict[str, int]:
    """The whole numbers of one of the kernel's tables, by name; empty where there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    cells = (line.replace(":", " ").split() for line in lines)
    return {cell[0]: int(cell[1]) for cell in cells if len(cell) > 1 and cell[1].isdecimal()}


def _shown(count: float) -> str:
    return f"{count / _GIGA:.1f} GB" if count >= _GIGA else f"{max(count / 1e6, 1):.0f} MB"
