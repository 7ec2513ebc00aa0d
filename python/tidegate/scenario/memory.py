"""What a run will need of memory, before it begins, and what there is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate._core import Trace
from tidegate.errors import RunError
from tidegate.scenario._sending import Sending, flows_of
from tidegate.scenario.ways import SECOND, Ir, over

if TYPE_CHECKING:
    from tidegate.scenario.lower import RunInput

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
_PACKET_ROW = 45  # table `packets`
_CAPTURED = 90  # a captured packet: headers, kept at both of its ends
_GIGA = 1e9


def need(ir: Ir, traces: Sequence[Trace] = ()) -> int:
    """Bytes that a run will take at most, more or less: half as much again is not unusual."""
    level, bins = ir["record"]["level"], over(ir["duration"], ir["record"]["bin"])
    total: float = _BASE + sum(_FLOW.get(kind, _FLOW["media"]) for kind, _ in flows_of(ir))
    total += _MEMBER * sum(len(session["members"]) for session in ir.get("sessions", ()))
    total += _QUEUE * sum(_queues(link["settings"]["discipline"]) for link in ir["links"])
    a_row = 0 if level == "summary" else _ROW
    a_packet = (_PACKET_ROW if level == "packets" else 0) + (_CAPTURED if ir["record"]["capture"] else 0)
    if level != "summary":
        total += bins * (_SERIES_ROW * len(ir["flows"]) + _LINK_ROW * len(ir["links"]))
    if a_row or a_packet:
        total += sum(a_packet * packets + a_row * rows for packets, rows in Sending(ir, traces).counts())
    return round(total)


def free() -> tuple[int, str] | None:
    """Bytes that this process may still take, and what limits it; None where nobody tells."""
    return min(_limits(), default=None)


def check(made: RunInput) -> None:
    """Refuses a run that will need more memory than there is.

    Raises:
        RunError: says how much it needs, how much there is, and what to do.
    """
    there = free()
    if there is None or os.environ.get(IGNORE):
        return
    ir, traces = made.ir, made.inputs.traces
    wanted, (room, what) = need(ir, traces), there
    if wanted <= room:
        return
    level = ir["record"]["level"]
    less = need({**ir, "record": {**ir["record"], "level": "summary", "capture": False}}, traces)
    hint = f'; record = "summary" needs about {_shown(less)}' if level != "summary" else ""
    raise RunError(
        f'{ir["name"]}: needs about {_shown(wanted)} of memory (record = "{level}", {ir["duration"] / SECOND:g} s, '
        f"{sum(1 for _ in flows_of(ir))} flows), and {_shown(room)} are free ({what}){hint}; "
        f"a longer bin, fewer flows or a shorter run need less, and {IGNORE}=1 runs it all the same"
    )


def _queues(discipline: Any) -> int:
    """How many queues FQ-CoDel has, by itself or in a token bucket."""
    match discipline:
        case {"fq_codel": {"flows": flows}}:
            return int(flows)
        case {"policer": {"discipline": inner}} | {"shaper": {"discipline": inner}}:
            return _queues(inner)
    return 0


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
