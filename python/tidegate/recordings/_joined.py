"""A call of which packets and getStats were recorded, as one run.

Packets, rates, losses and delays are those of the captures or event logs, which have each packet. What was shown, and
what the browser aimed at, is getStats'. Both belong together where they share an SSRC; their clocks are related by Unix
time, and the rest by the packets that both counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate._core import Table
from tidegate.errors import InputError
from tidegate.recordings._counted import Counted
from tidegate.recordings._ends import WAYS
from tidegate.recordings._reading import File
from tidegate.recordings._stats import Floats
from tidegate.runs import Kept, Run

SHOWN = frozenset((
    "round_trip_ms_mean", "round_trip_ms_max", "frames_encoded", "frames_decoded", "frames_dropped", "frames_rendered",
    "freezes", "freeze_time_s", "key_frames", "nacks", "plis", "frames_sent", "retransmissions", "loss_fraction",
    "packets_received", "bytes_received", "receive_rate_bps",
))  # fmt: skip
"""Metrics that getStats adds, where packets do not tell them."""
_TABLES = ("freezes", "internals", "decisions")

_SEEN = 3
"""Number of times that an SSRC stands in the bytes of captures at least; four bytes may be equal by chance once."""
_LAG_S, _STEP_S = 3.0, 0.05
"""Largest lag that is looked for between Unix time and the counters, and the step: reports are made late by some 10 ms,
and two computers' clocks that are set by NTP are one within a second."""
_LEAST_BINS = 3
"""Reports in common below which no lag is looked for, and Unix time is taken as it is."""
_DOUBTFUL = 0.2
"""Part of the packets by which both differ from which on they may be of two calls."""


@dataclass(frozen=True)
class _Fit:
    """A relation of counters to packets, and how well both agree."""

    flows: Mapping[str, str]
    """Names of the call's flows by those of the counters."""
    later_s: float
    """Seconds from the counters' times to the call's."""
    apart: float
    """Sum of the differences over the bins, as a part of all packets counted."""


def joined(call: Run, counters: Counted, packet_files: Sequence[File], counter_files: Sequence[File]) -> Run:
    """Returns a call with what getStats adds.

    Raises:
        InputError: when they share no SSRC or no time.
    """
    name, other = counter_files[0].path, packet_files[0].path.name
    if not any(_has(file, ssrc) for file in packet_files for ssrc in counters.ssrcs):
        raise InputError(f"{name} shares no SSRC with {other}; expected recordings of one call")
    begun = call.about["imported"]["begun_ms"]
    if begun is None or counters.begun_ms is None:
        unknown = other if begun is None else name
        raise InputError(f"{unknown} has no Unix time, by which it could be related to the other file")
    offset = (counters.begun_ms - begun) / 1000
    fit = min(_fits(call, counters, offset), key=lambda fit: fit.apart, default=None)
    if fit is None:
        raise InputError(
            f"{name} and {other} have no time between two reports in common: the one begins {abs(offset):.1f} s "
            f"{'after' if offset > 0 else 'before'} the other; expected recordings of one time"
        )
    agreement = (
        f"what was shown is from {name.name}, by Unix time and {fit.later_s - offset:+.2f} s; the packets that it "
        f"counted between reports differ by {fit.apart:.1%} from those of {other}"
    )
    summary = {
        **call.summary,
        "flows": [_with_counters(flow, counters, fit.flows) for flow in call.summary["flows"]],
        "digest": hashlib.sha256(f"{call.digest} {counters.summary['digest']}".encode()).hexdigest()[:16],
    }
    kind = "warnings" if fit.apart > _DOUBTFUL else "notes"
    for key, sentences in ((kind, [agreement]), ("warnings", counters.damage)):
        summary[key] = [*summary[key], *({"key": "recording", "says": sentence} for sentence in sentences)]
    imported = {**call.about["imported"]}
    imported["files"] = [*imported["files"], *(file.about for file in counter_files)]
    about = {**call.about, "digest": summary["digest"], "summary": summary, "imported": imported}
    length = float(call.summary["duration_s"])
    tables = {table: call.table(table) for table in call.tables}
    return Run(about, Kept({**tables, **_tables(tables, counters, fit, length)}))


def _has(file: File, ssrc: int) -> bool:
    """Whether an SSRC stands in the bytes of a file: in RTP headers, or as a number of the log's descriptions."""
    if file.format == "capture":
        return file.data.count(ssrc.to_bytes(4, "big")) >= _SEEN
    encoded = bytearray()
    while ssrc > 0x7F:  # noqa: PLR2004  (a varint of Protocol Buffers: seven bits a byte, the lowest first)
        encoded.append(ssrc & 0x7F | 0x80)
        ssrc >>= 7
    return bytes([*encoded, ssrc]) in file.data


def _fits(call: Run, counters: Counted, offset: float) -> Iterator[_Fit]:
    """Yields how well counters go with packets: at the near end or the far one, with each lag."""
    packets = call.table("packets")
    flow_of = packets.to_numpy("flow")
    times_of = {
        (flow, column): np.sort(times[np.isfinite(times)])
        for flow in call.flows
        for column in ("sent_s", "arrived_s")
        for times in [packets.to_numpy(column)[flow_of == flow].astype(float)]
    }
    series = counters.tables["series"]
    for flows in (dict(zip(WAYS, WAYS, strict=True)), dict(zip(WAYS, reversed(WAYS), strict=True))):
        pairs = []
        for flow, mine in flows.items():
            rows = series.to_numpy("flow") == flow
            for counted, column in (("packets_sent", "sent_s"), ("packets_arrived", "arrived_s")):
                times = times_of.get((mine, column), np.empty(0))
                if rows.any() and len(times):
                    pairs.append((series.to_numpy("t_s")[rows], series.to_numpy(counted)[rows], times))
        for lag in np.arange(-_LAG_S, _LAG_S + _STEP_S / 2, _STEP_S):
            is_none = abs(lag) < _STEP_S / 2
            apart = _apart(pairs, offset + lag, 1 if is_none else _LEAST_BINS)
            if apart is not None:
                yield _Fit(
                    {flow: mine for flow, mine in flows.items() if mine in call.flows}, offset + float(lag), apart
                )


def _apart(pairs: Sequence[tuple[Floats, Floats, Floats]], later: float, least: int) -> float | None:
    """Returns by what part of all packets the counters differ from the packets; None without a time in common."""
    differing = total = 0.0
    for begins, counted, times in pairs:
        edges = begins + later
        packets = np.diff(np.searchsorted(times, edges))
        inside = (edges[:-1] >= times[0]) & (edges[1:] <= times[-1]) & np.isfinite(counted[:-1])
        if np.count_nonzero(inside) >= least:
            differing += float(np.abs(counted[:-1] - packets)[inside].sum())
            total += float(counted[:-1][inside].sum())
    return differing / total if total else None


def _with_counters(flow: Mapping[str, Any], counters: Counted, flows: Mapping[str, str]) -> dict[str, Any]:
    of_flow = (entry for entry in counters.summary["flows"] if flows.get(entry["flow"]) == flow["flow"])
    added = {name: value for entry in of_flow for name, value in entry.items() if name in SHOWN}
    return {**added, **flow}


def _tables(tables: Mapping[str, Table], counters: Counted, fit: _Fit, length: float) -> dict[str, Table]:
    new = {}
    for name in _TABLES:
        added = counters.tables.get(name)
        if added is None:
            continue
        columns = {column: added.to_numpy(column) for column in added.columns}
        columns["t_s"] = columns["t_s"] + fit.later_s
        if name == "decisions":
            # what was decided before the packets begin holds then
            columns["t_s"] = np.maximum(columns["t_s"], 0.0)
        mine = tables.get(name)
        flows = np.array([fit.flows.get(flow, "") for flow in columns["flow"].tolist()])
        # the controller's own decisions, where the packets' file has them, are not mixed with getStats'
        decided = set(mine.to_numpy("flow").tolist()) if mine is not None and name == "decisions" else set()
        kept = (columns["t_s"] >= 0) & (columns["t_s"] <= length)
        kept &= np.array([flow != "" and flow not in decided for flow in flows.tolist()], bool)
        columns = {column: values[kept] for column, values in {**columns, "flow": flows}.items()}
        if mine is not None:
            columns = {column: np.concatenate([mine.to_numpy(column), values]) for column, values in columns.items()}
            order = np.argsort(columns["t_s"], kind="stable")
            columns = {column: values[order] for column, values in columns.items()}
        if len(columns["t_s"]):
            new[name] = Table.of([
                (column, values.tolist() if values.dtype.kind == "U" else values) for column, values in columns.items()
            ])  # fmt: skip
    return new
