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
from tidegate.recordings._reading import File
from tidegate.recordings._stats import Connection, Floats

_UNSURE = "rates and losses are means between reports; single packets are unknown, so delays and queues are missing"


@dataclass(frozen=True)
class Counted:
    """A call as counted by its ends."""

    summary: Mapping[str, Any]
    tables: Mapping[str, Table]
    remarks: Sequence[str]
    damage: Sequence[str]
    """Records that could not be parsed."""
    begun_ms: int | None
    ssrcs: frozenset[int]
    """SSRCs of its streams."""


def counted(files: Sequence[File]) -> Counted:
    """Returns a call from the counters of one end or both.

    Raises:
        InputError: names the file, the place, the value there and the right one.
    """
    if len(files) > 2:  # noqa: PLR2004
        raise InputError(
            f"{files[2].path}: found {len(files)} files of getStats; expected one file of each end of the call"
        )
    remarks: list[str] = []
    damage: list[str] = []
    connections_of: list[list[Connection]] = []
    for file in files:
        with located(str(file.path)):
            parsed = getstats.read(file.data)
        connections_of.append(parsed.connections)
        damage += [f"{file.path.name}: {problem}" for problem in parsed.problems]
    near = max(connections_of[0], key=_carried)
    others = (
        [connection for connection in connections_of[0] if connection is not near]
        if len(files) == 1
        else connections_of[1]
    )
    far = max((connection for connection in others if _belong(near, connection)), key=_carried, default=None)
    if far is None and len(files) > 1:
        raise InputError(
            f"{files[1].path} shares no SSRC with {files[0].path.name}; expected a recording of the other end"
        )
    left_out = [
        connection.name for connections in connections_of for connection in connections if connection not in (near, far)
    ]
    if left_out:
        remarks.append(f"connections other than {near.name} are left out: {', '.join(left_out)}")
    with located(str(files[0].path)):
        ways, length = ends.ways(near, far)
    if far is not None:
        remarks.append("the times of both ends are aligned by their Unix times")
    remarks += [f"{direction.name}: {guess}" for direction in ways for guess in ends.guesses(direction)]
    edges = ends.bins(ways, length)
    tables = _tables(ways, edges, length)
    flows = [totals.metrics(direction, length) for direction in ways]
    begin_ms = None if near.unix_s is None else round((near.unix_s + ends.begins(near)) * 1000)
    digest = _digest(tables)
    summary = {
        "digest": digest,
        "duration_s": length,
        "warmup_s": 0.0,
        "flows": flows,
        "links": [],
        "fairness": {},
    }
    ssrcs = frozenset(near.ssrcs("outbound-rtp") | near.ssrcs("inbound-rtp"))
    return Counted(summary, tables, [_UNSURE, *remarks], damage, begin_ms, ssrcs)


def _carried(connection: Connection) -> tuple[float, float]:
    """Returns bytes sent and bytes received."""
    totals_of = [
        sum(stat.last_number(name) or 0.0 for stat in connection.of_type(kind))
        for kind, name in (("outbound-rtp", "bytesSent"), ("inbound-rtp", "bytesReceived"))
    ]
    return totals_of[0], totals_of[1]


def _belong(first: Connection, second: Connection) -> bool:
    """Whether two connections are the two ends of one call: one sends the streams that the other receives."""
    return bool(
        first.ssrcs("outbound-rtp") & second.ssrcs("inbound-rtp")
        or first.ssrcs("inbound-rtp") & second.ssrcs("outbound-rtp")
    )


def _tables(ways: Sequence[ends.Direction], edges: Floats, length: float) -> dict[str, Table]:
    def joined(make: Callable[[ends.Direction], counters.Rows]) -> Table | None:
        parts = [make(direction) for direction in ways]
        columns = [(name, _stacked([part[name] for part in parts])) for name in parts[0]]
        table = Table.of(columns)
        return table if len(table) else None

    flows = Table.of([
        ("flow", [direction.name for direction in ways]),
        ("kind", ["media"] * len(ways)),
        ("flow_controller", ["recorded"] * len(ways)),
        ("start_s", np.zeros(len(ways))),
        ("stop_s", np.full(len(ways), length)),
    ])  # fmt: skip
    tables = {
        "flows": flows,
        "series": joined(lambda direction: counters.series(direction, edges)),
        "decisions": joined(lambda direction: counters.decisions(direction, length)),
        "internals": joined(lambda direction: counters.internals(direction, length)),
        "freezes": joined(lambda direction: counters.freezes(direction, length)),
    }
    return {name: table for name, table in tables.items() if table is not None}


def _stacked(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], list):
        return [value for part in parts for value in part]
    return np.concatenate(parts)


def _digest(tables: Mapping[str, Table]) -> str:
    """Returns a hash of all values of the tables."""
    digest = hashlib.sha256()
    for name, table in tables.items():
        for column in table.columns:
            values = table.to_numpy(column)
            digest.update(f"{name}.{column}".encode())
            digest.update("\0".join(values.tolist()).encode() if values.dtype.kind == "U" else values.tobytes())
    return digest.hexdigest()[:16]
