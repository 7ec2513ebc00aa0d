"""Estimates the memory that a run needs, before it begins, and compares it with the free memory."""

from __future__ import annotations

import os
import sys
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
"""Environment variable that switches the check off."""

# Bytes, measured as growth of the peak resident size (Linux, 64 bits) over runs of 1 to 1000 flows and 1 to 1000 s.
_BASE = 8_000_000  # the engine, its summary, and what Python makes of it
_FLOW = {"media": 45_000, "tcp": 25_000, "udp": 16_000, "external": 16_000}  # both ends, histograms, the flow's row
_MEMBER = 45_000  # per member of a session
_QUEUE = 97  # per queue of FQ-CoDel
_SERIES_ROW = 85  # table `series`: a row per flow and bin
_LINK_ROW = 50  # tables `queues` and `truth`: a row per link and bin
_ROW = 36  # tables `internals`, `frames`, `rtcp`, `decisions`
_PACKET_ROW = 45  # table `packets`
_CAPTURED = 90  # a captured packet: headers, kept at both of its ends
_GIGA = 1e9


def need(ir: Ir, traces: Sequence[Trace] = ()) -> int:
    """Rough upper bound of the bytes that a run takes; an error of half as much again is not unusual."""
    level, bins = ir["record"]["level"], over(ir["duration"], ir["record"]["bin"])
    total: float = _BASE + sum(_FLOW.get(kind, _FLOW["media"]) for kind, _ in flows_of(ir))
    legs = sum("via" in link for link in ir["links"])
    # each call may have a connection over each of them
    total += _FLOW["tcp"] * legs * sum(kind == "media" for kind, _ in flows_of(ir))
    total += _MEMBER * sum(len(session["members"]) for session in ir.get("sessions", ()))
    total += _QUEUE * sum(_queues(link["settings"]["discipline"]) for link in ir["links"])
    a_row = 0 if level == "summary" else _ROW
    a_packet = (_PACKET_ROW if level == "packets" else 0) + (_CAPTURED if ir["record"]["capture"] else 0)
    if legs:
        # beside datagrams there are segments and acknowledgements
        a_packet *= 3
    if level != "summary":
        total += bins * (_SERIES_ROW * len(ir["flows"]) + _LINK_ROW * len(ir["links"]))
    if a_row or a_packet:
        total += sum(a_packet * packets + a_row * rows for packets, rows in Sending(ir, traces).counts())
    return round(total)


def free() -> tuple[int, str] | None:
    """Bytes that this process may still take, and the name of the limit; None where the system has no figure."""
    return min(_limits(), default=None)


def check(run_input: RunInput) -> None:
    """Refuses a run that will need more memory than there is.

    Raises:
        RunError: states the needed and the free memory, and the remedies.
    """
    budget = free()
    if budget is None or os.environ.get(IGNORE):
        return
    ir, traces = run_input.ir, run_input.inputs.traces
    wanted, (room, limit_name) = need(ir, traces), budget
    if wanted <= room:
        return
    level = ir["record"]["level"]
    summary_need = need({**ir, "record": {**ir["record"], "level": "summary", "capture": False}}, traces)
    hint = f'; record = "summary" needs about {_shown(summary_need)}' if level != "summary" else ""
    raise RunError(
        f'{ir["name"]}: the run needs about {_shown(wanted)} of memory (record = "{level}", '
        f"{ir['duration'] / SECOND:g} s, {sum(1 for _ in flows_of(ir))} flows), "
        f"and {_shown(room)} are free ({limit_name}){hint}; "
        f"a longer bin, fewer flows or a shorter run need less; {IGNORE}=1 skips this check"
    )


def _queues(discipline: Any) -> int:
    """Number of FQ-CoDel's queues in a discipline, alone or in a token bucket; 0 for other disciplines."""
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
    for limit_file, usage_file in _GROUP_FILES:
        try:
            remaining = int((_GROUPS / limit_file).read_text()) - int((_GROUPS / usage_file).read_text())
            yield max(remaining, 0), "limit of this container"
        except (OSError, ValueError):
            continue  # no such group, or "max"
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    size = _numbers(Path("/proc/self/status")).get("VmSize")
    if limit != resource.RLIM_INFINITY and size is not None:
        # while a growing column moves, it takes its old and its new memory
        yield max(limit - size * 1024, 0) // 2, "half of what ulimit -v leaves"


def _numbers(path: Path) -> dict[str, int]:
    """Whole numbers of a table of the kernel, by name; empty where the file is missing."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    cells = (line.replace(":", " ").split() for line in lines)
    return {cell[0]: int(cell[1]) for cell in cells if len(cell) > 1 and cell[1].isdecimal()}


def _shown(count: float) -> str:
    return f"{count / _GIGA:.1f} GB" if count >= _GIGA else f"{max(count / 1e6, 1):.0f} MB"
