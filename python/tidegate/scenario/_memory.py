"""What a run will need of memory, before it begins, and what there is."""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

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
    level = ir["record"]["level"]
    bins = ir["duration"] / ir["record"]["bin"]
    ways = _Ways(ir["links"], traces)
    connections: list[tuple[Way, Mapping[str, Any]]] = []
    total = float(_BASE)
    for kind, flow in _flows(ir):
        total += _FLOW.get(kind, _FLOW["media"])
        if level == "summary":
            continue
        total += _SERIES_ROW * bins
        way = ways.between(flow["from"], flow["to"])
        if kind == "tcp":
            connections.append((way, flow))
            continue
        begin, end = _active(flow, ir)
        packets = _packets(kind, flow["kind"], min(way.values(), default=None)) * (end - begin)
        total += _ROW * _MEDIA_ROWS * (end - begin) * (kind == "media") + packets * _packet(ir)
    total += _of_connections(connections, ir) * (_ROW * _TCP_ROWS + _packet(ir))
    total += _MEMBER * sum(len(session["members"]) for session in ir.get("sessions", ()))
    total += _QUEUE * sum(_queues(link["settings"]["discipline"]) for link in ir["links"])
    if level != "summary":
        total += _LINK_ROW * bins * len(ir["links"])
    return round(total)


def _packet(ir: Mapping[str, Any]) -> int:
    """Bytes for each packet."""
    record = ir["record"]
    return (_PACKET_ROW if record["level"] == "packets" else 0) + (_CAPTURED if record["capture"] else 0)


def _active(flow: Mapping[str, Any], ir: Mapping[str, Any]) -> tuple[float, float]:
    """When a flow begins and ends, in seconds."""
    begin, end = flow["start"], min(ir["duration"], flow["stop"] or ir["duration"])
    return begin / _SECOND, max(begin, end) / _SECOND


Way: TypeAlias = Mapping[str, float]
"""The links between two ends that have a limit, and what each carries in bit/s."""


def _of_connections(connections: Sequence[tuple[Way, Mapping[str, Any]]], ir: Mapping[str, Any]) -> float:
    """Packets of all TCP connections: what one link limits has together what it carries, however it is shared."""
    through = Counter(name for way, _ in connections for name in way)
    limited: dict[str, list[tuple[float, float, float]]] = {}
    rates: dict[str, float] = {}
    for way, flow in connections:
        if way:
            # of equal ones that which most of them share
            name, rate = min(way.items(), key=lambda link: (link[1], -through[link[0]]))
            rates[name] = rate
            size = flow["kind"]["tcp"]["packet_size"] / 1.5  # an acknowledgment for every other segment
            limited.setdefault(name, []).append((size, *_active(flow, ir)))
    total = 0.0
    for name, some in limited.items():
        sizes, begins, ends = zip(*some, strict=True)
        total += rates[name] / 8 / min(sizes) * (max(ends) - min(begins))
    return total


class _Ways:
    """Ways between the ends of a network, as the engine takes them: those with the fewest links."""

    def __init__(self, links: Sequence[Mapping[str, Any]], traces: Sequence[trace.Trace]) -> None:
        self._traces = traces
        self._from: dict[str, list[Mapping[str, Any]]] = {}
        for link in links:
            self._from.setdefault(link["from"], []).append(link)
        self._known: dict[str, dict[str, Way]] = {}

    def between(self, begin: str, end: str) -> Way:
        """Empty where no link on the way has a limit, or none is known."""
        if begin not in self._known:
            self._known[begin] = self._all(begin)
        return self._known[begin].get(end, {})

    def _all(self, begin: str) -> dict[str, Way]:
        ways: dict[str, Way] = {begin: {}}
        waiting = deque([begin])
        while waiting:
            here = waiting.popleft()
            for link in self._from.get(here, ()):
                if link["to"] not in ways:
                    rate = _capacity(link["capacity"], self._traces)
                    ways[link["to"]] = {**ways[here], **({} if rate is None else {str(link["name"]): rate})}
                    waiting.append(link["to"])
        return ways


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
