"""From files of getStats to a run's summary and tables."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate._core import Table
from tidegate.errors import InputError, located
from tidegate.recordings import _counters as counters
from tidegate.recordings import _ends as ends
from tidegate.recordings import _getstats as getstats
from tidegate.recordings import _totals as totals
from tidegate.recordings._getstats import Connection, Floats
from tidegate.recordings._reading import File

_UNSURE = "rates and losses are of the times between reports, and nothing tells of single packets: no delays, no queue"


@dataclass(frozen=True)
class Counted:
    """A call as its ends counted it."""

    summary: Mapping[str, Any]
    tables: Mapping[str, Table]
    remarks: Sequence[str]
    damage: Sequence[str]
    """Records that could not be parsed."""
    begun_ms: int | None


def counted(files: Sequence[File]) -> Counted:
    """A call from what one end counted, or both.

    Raises:
        InputError: which file is wrong, where, what was found and what would be right.
    """
    if len(files) > 2:  # noqa: PLR2004
        raise InputError(f"{files[2].path}: found {len(files)} files of getStats; expected one of each end of the call")
    remarks: list[str] = []
    damage: list[str] = []
    read: list[list[Connection]] = []
    for file in files:
        with located(str(file.path)):
            found = getstats.read(file.data)
        read.append(found.connections)
        damage += [f"{file.path.name}: {problem}" for problem in found.problems]
    near = max(read[0], key=_carried)
    others = [one for one in read[0] if one is not near] if len(files) == 1 else read[1]
    far = max((one for one in others if _belong(near, one)), key=_carried, default=None)
    if far is None and len(files) > 1:
        raise InputError(
            f"{files[1].path}: shares no SSRC with {files[0].path.name}; expected the other end of its call"
        )
    left = [one.name for found in read for one in found if one not in (near, far)]
    if left:
        remarks.append(f"connections beside {near.name} are left out: {', '.join(left)}")
    with located(str(files[0].path)):
        ways, length = ends.ways(near, far)
    if far is not None:
        remarks.append("both ends' times are taken by the Unix time that they say")
    remarks += [f"{way.name}: {one}" for way in ways for one in ends.guesses(way)]
    edges = ends.bins(ways, length)
    tables = _tables(ways, edges, length)
    flows = [totals.metrics(way, length) for way in ways]
    begun = None if near.unix_s is None else round((near.unix_s + ends.begins(near)) * 1000)
    digest = _digest(tables)
    summary = {
        "digest": digest,
        "duration_s": length,
        "warmup_s": 0.0,
        "flows": flows,
        "links": [],
        "fairness": {},
    }
    return Counted(summary, tables, [_UNSURE, *remarks], damage, begun)


def _carried(one: Connection) -> tuple[float, float]:
    """Bytes sent, and bytes received."""
    found = [
        sum(float(values[-1]) for stat in one.of_type(kind) for _, values in [stat.numbers(name)] if len(values))
        for kind, name in (("outbound-rtp", "bytesSent"), ("inbound-rtp", "bytesReceived"))
    ]
    return found[0], found[1]


def _belong(one: Connection, other: Connection) -> bool:
    """Whether two connections are the two ends of one: what one sends, the other receives."""
    return bool(
        one.ssrcs("outbound-rtp") & other.ssrcs("inbound-rtp") or one.ssrcs("inbound-rtp") & other.ssrcs("outbound-rtp")
    )


def _tables(ways: Sequence[ends.Way], edges: Floats, length: float) -> dict[str, Table]:
    def joined(make: Callable[[ends.Way], counters.Rows]) -> Table | None:
        parts = [make(way) for way in ways]
        columns = [(name, _stacked([part[name] for part in parts])) for name in parts[0]]
        table = Table.of(columns)
        return table if len(table) else None

    flows = Table.of([
        ("flow", [way.name for way in ways]),
        ("kind", ["media"] * len(ways)),
        ("flow_controller", ["recorded"] * len(ways)),
        ("start_s", np.zeros(len(ways))),
        ("stop_s", np.full(len(ways), length)),
    ])  # fmt: skip
    made = {
        "flows": flows,
        "series": joined(lambda way: counters.series(way, edges)),
        "decisions": joined(lambda way: counters.decisions(way, length)),
        "internals": joined(lambda way: counters.internals(way, length)),
        "freezes": joined(lambda way: counters.freezes(way, length)),
    }
    return {name: table for name, table in made.items() if table is not None}


def _stacked(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return np.concatenate(parts)


def _digest(tables: Mapping[str, Table]) -> str:
    """Of all that the tables hold."""
    digest = hashlib.sha256()
    for name, table in tables.items():
        for column in table.columns:
            values = table.to_numpy(column)
            digest.update(f"{name}.{column}".encode())
            digest.update("\0".join(values.tolist()).encode() if values.dtype.kind == "U" else values.tobytes())
    return digest.hexdigest()[:16]
