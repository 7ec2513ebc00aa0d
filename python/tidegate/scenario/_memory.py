"""What a run will need of memory, before it begins, and what there is."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidegate.errors import RunError

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


def need(ir: Mapping[str, Any]) -> int:
    """Bytes that a run will take at most, more or less: half as much again is not unusual.

    Flows send as much as they may, or as the fastest link carries; a flow that nothing limits is not counted.
    """
    level, seconds = ir["record"]["level"], ir["duration"] / _SECOND
    bins = ir["duration"] / ir["record"]["bin"]
    rates = [rate for link in ir["links"] if (rate := _capacity(link["capacity"])) is not None]
    fastest = max(rates, default=None)
    # connections share the links that there are, one way with data and the other with acknowledgments
    connections = sum(kind == "tcp" for kind, _ in _flows(ir))
    share = min(fastest, sum(rates) / 2 / max(connections, 1)) if fastest is not None else 0.0
    total = float(_BASE)
    for kind, flow in _flows(ir):
        total += _FLOW.get(kind, _FLOW["media"])
        if level == "summary":
            continue
        active = min(seconds, (flow["stop"] or ir["duration"]) / _SECOND) - flow["start"] / _SECOND
        packets = _packets(kind, flow["kind"], fastest, share) * max(active, 0.0)
        total += _SERIES_ROW * bins
        total += _ROW * (_MEDIA_ROWS * max(active, 0.0) if kind == "media" else _TCP_ROWS * packets * (kind == "tcp"))
        total += packets * ((_PACKET_ROW if level == "packets" else 0) + (_CAPTURED if ir["record"]["capture"] else 0))
    total += _MEMBER * sum(len(session["members"]) for session in ir.get("sessions", ()))
    total += _QUEUE * sum(_queues(link["settings"]["discipline"]) for link in ir["links"])
    if level != "summary":
        total += _LINK_ROW * bins * len(ir["links"])
    return round(total)


def free() -> tuple[int, str] | None:
    """Bytes that this process may still take, and what limits it; None where nobody tells."""
    return min(_limits(), default=None)


def check(ir: Mapping[str, Any]) -> None:
    """Refuses a run that will need more memory than there is.

    Raises:
        RunError: says how much it needs, how much there is, and what to do.
    """
    there = free()
    if there is None or os.environ.get(IGNORE):
        return
    wanted, (room, what) = need(ir), there
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


def _capacity(capacity: Any) -> float | None:
    """The most that a link carries in bit/s; None where that is not known."""
    match capacity:
        case {"constant": rate}:
            return float(rate)
        case {"schedule": {"steps": steps}}:
            return max(float(rate) for _, rate in steps)
        case {"brownian": {"max": rate}}:
            return float(rate)
        case {"leo": {"median": rate, "sigma": sigma}}:
            return float(rate) * math.exp(3 * float(sigma))
        case {"statuses": {"statuses": statuses}}:
            return max(float(status["capacity"]) for status in statuses)
    return None


def _packets(kind: str, spec: Any, fastest: float | None, share: float) -> float:
    """Packets a second, in both directions: of what the flow may send at most, a connection its share."""
    settings = spec[kind] if isinstance(spec, Mapping) else {}
    match kind:
        case "media":
            rate, size = settings["max_rate"], settings["payload"] + settings["overhead"] + 20
        case "udp":
            rate, size = settings["rate"], settings["packet_size"]
        case "tcp":
            rate, size = share, settings["packet_size"] / 1.5  # an acknowledgment for every other segment
        case _:
            return 0.0
    return min(float(rate), fastest or float(rate)) / 8 / float(size)


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
