"""The truth of a recorded call's link, where the link was ours."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidegate._core import Table
from tidegate._inputs import SESSION
from tidegate._inputs import read as read_input
from tidegate.errors import InputError
from tidegate.recordings._stats import Floats
from tidegate.runs import Run, run
from tidegate.scenario import Scenario
from tidegate.units import Duration, show

_FILES = ("arrivals.csv", "fates.csv")
_ROW_BYTES = 100
"""Bytes of a session's file for each of its lines, at least: so many lines are read in 2 s. Sessions write some 100
bytes of an arrival and half as many of its fate."""
_ARRIVED = frozenset(("arrives", "arrives marked"))
_LEAST = 10
"""Packets in common below which nothing is aligned."""
_APART_S = 0.05
"""A packet of the recording is the session's one with its number that lies no further from it, once the clocks are one:
programs stamp a packet some ms before it reaches the device, and a number comes again after minutes."""

_SHORTEST_S = 1e-9
"""A recording of one packet has no length, and its link a capacity at that instant."""
_TABLES = ("truth", "queues", "links")
_SIDES = ("A", "B")


@dataclass(frozen=True)
class Truth:
    """Data of the link for a recorded call."""

    links: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Table]
    remarks: Sequence[str]


class _Packet(NamedTuple):
    """A packet of RTP that entered the links of a session."""

    stamp_s: float
    """Time at which the kernel had it, by the model's clock."""
    arrived_s: float | None
    """Time at which it was written at the far side, or else was due."""
    lost: bool


Sent = Mapping[str, Mapping[int, Sequence[_Packet]]]
"""By side and RTP sequence number."""


def truth(call: Run, link: str | Path, captured: Run | None = None) -> Truth:
    """Returns the truth of a recorded call's link, from a session's folder or a scenario.

    Args:
        call: The recorded call.
        link: The folder of a `tidegate shell` session in which it was made, or a scenario.
        captured: For a call without packets (getStats), the session's own capture (`--pcap`) as a run, which relates
            Unix time to the session's clock.

    Raises:
        InputError: when `link` is neither, is damaged, does not belong to the call, or has no capacity.
    """
    folder = Path(link)
    return _of_session(call, folder, captured) if folder.is_dir() else _of_scenario(call, str(link))


def _of_scenario(call: Run, name: str) -> Truth:
    length = max(float(call.summary["duration_s"]), _SHORTEST_S)
    scenario = Scenario.load(name)
    played = run(Scenario.load(name, _links_alone(scenario, length)))
    truth = _moved(played.table("truth"), 0.0, length)
    names, rates = truth.to_numpy("link"), truth.to_numpy("capacity_bps")
    links = [
        {"link": entry["link"]}
        | ({} if entry.get("capacity_bps") is None else {"capacity_bps": float(rates[names == entry["link"]].mean())})
        for entry in played.summary["links"]
    ]
    if not any("capacity_bps" in link for link in links):
        raise InputError(
            f"{name}: no link of the scenario has a capacity of its own (unlimited, or a shared radio network); "
            "expected a scenario whose links have one"
        )
    origin = (
        f"the capacity is that of the scenario {played.name}, whose time 0 is assumed to be the beginning of the "
        "recording; its links were played without flows, so queues and drops are missing"
    )
    radios = [radio.name for radio in scenario.radios.values()]
    says = [
        origin,
        *(
            f"the capacity of {name} is not known: that of a radio network depends on the positions of its users"
            for name in radios
        ),
    ]
    return Truth(links, {"truth": truth}, says)


def _links_alone(scenario: Scenario, length_s: float) -> dict[str, Any]:
    """Returns the changes that reduce a scenario to its links, with their seeds and moves, for a length.

    The capacity of a link does not depend on its traffic. So the only traffic is a constant sender, because a scenario
    needs a flow. No controller of the scenario is made, and no video is loaded.
    """
    names = [name for link in scenario.links for name in link.names]
    first = scenario.links[0]
    # whole bins, as the scenario's own runs have them
    duration = Duration(scenario.bin * math.ceil(length_s * 1e9 / scenario.bin))
    moves = [move for move in scenario.moves if move.link is not None and move.time <= duration]
    return {
        "duration": str(duration),
        "warmup": "0s",
        "record": "series",
        "capture": False,
        "seeds": {name: seed for name, seed in scenario.seeds.items() if name in names},
        "moves": [move.to_dict() for move in moves],
        "flows": [{"from": first.from_, "to": first.to, "udp": {"rate": "1kbps"}}],
        "couplings": [],
        "sessions": [],
        **dict.fromkeys(scenario.radios),
    }


def _of_session(call: Run, folder: Path, captured: Run | None) -> Truth:
    if any(not (folder / name).is_file() for name in _FILES):
        raise InputError(f"{folder} has no {' and '.join(_FILES)}; expected the folder of a tidegate shell session")
    session = Run.load(folder)
    sent = _read(folder)
    says = []
    if "packets" in call.tables:
        shift, alignment = _aligned(call, sent, folder)
        says += alignment
    else:
        shift = _by_unix_time(call, captured, sent, folder)
        says.append("the link's clock is aligned with the recording's by Unix time, through the session's captures")
    says.append("the totals of carried and dropped packets of the links are of the whole session")
    end = float(call.summary["duration_s"])
    tables = {
        name: table if name == "links" else _moved(table, -shift, end)
        for name in _TABLES
        if name in session.tables and len(table := session.table(name))
    }
    return Truth(list(session.summary["links"]), tables, says)


def _read(folder: Path) -> Sent:
    """Reads the RTP packets of a session from its files.

    Raises:
        InputError: when a file cannot be read, is over its limit, or has a row that sessions do not write.
    """
    # the arrival of each packet whose fate is known; None for those that were lost
    arrivals: dict[str, float | None] = {}
    with _rows(folder / _FILES[1], "number", "at_ns", "fate", "written_ns") as rows:
        for number, at_ns, fate, written_ns in rows:
            arrivals[number] = int(written_ns or at_ns) / 1e9 if fate in _ARRIVED else None
    packets: dict[str, dict[int, list[_Packet]]] = {side: defaultdict(list) for side in _SIDES}
    with _rows(folder / _FILES[0], "number", "at_ns", "clamped_ns", "from", "ssrc", "sequence") as rows:
        for number, at_ns, clamped_ns, side, ssrc, sequence in rows:
            if not ssrc:
                continue
            if side not in packets:
                raise ValueError(f"side {show(side)}")
            arrived_s = arrivals.get(number)
            lost = arrived_s is None and number in arrivals
            packet = _Packet((int(at_ns) - int(clamped_ns)) / 1e9, arrived_s, lost)
            if not 0 <= (place := int(sequence)) < 2**16:
                raise ValueError(f"sequence number {show(sequence)}")
            packets[side][place].append(packet)
    return packets


@contextmanager
def _rows(path: Path, *names: str) -> Iterator[Iterator[tuple[str, ...]]]:
    """The cells of some columns of a session's file, row by row.

    Raises:
        InputError: when the file cannot be read, is over its limit, lacks a column, or has a row that is refused by
            what is done with it.
    """
    data = read_input(path, SESSION).data
    most = SESSION.limit // _ROW_BYTES
    if (count := data.count(b"\n") + data.count(b"\r")) > most:
        raise InputError(f"{path}: found {count} lines; expected at most {most}, or a larger --limit")
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline=""))
    try:
        cells = _columns(next(rows, []), names)
        yield map(cells, rows)
    except IndexError:
        why = "too few cells"
    except OverflowError:
        why = "a number that is too large"
    except (ValueError, csv.Error) as error:
        why = str(error)
    else:
        return
    line = max(rows.line_num, 1)
    raise InputError(f"{path}:{line}: the file is damaged: found {why}; expected a file that a session wrote")


def _columns(header: Sequence[str], names: Sequence[str]) -> itemgetter[Any]:
    """Takes the cells of some columns out of a row.

    Raises:
        ValueError: when one is missing.
    """
    if missing := [name for name in names if name not in header]:
        raise ValueError(f"no column {missing[0]}")
    return itemgetter(*map(header.index, names))


def _aligned(call: Run, sent: Sent, folder: Path) -> tuple[float, list[str]]:
    """Returns the offset from the recording's times to the session's, and sentences on the packets of both."""
    table = call.table("packets")
    columns = {name: table.to_numpy(name) for name in ("flow", "rtp_sequence", "sent_s", "arrived_s", "fate")}
    best: tuple[int, float, dict[str, str]] | None = None
    for sides in (_SIDES, _SIDES[::-1]):
        of_flow = dict(zip(("outgoing", "incoming"), sides, strict=True))
        apart = np.array(_differences(columns, sent, of_flow))
        if len(apart) < _LEAST:
            continue
        # most packets whose number occurs once are the same; the median is of one of these
        shift = float(np.median(apart))
        close = np.abs(apart - shift) < _APART_S
        if best is None or int(close.sum()) > best[0]:
            best = int(close.sum()), float(np.median(apart[close])), of_flow
    if best is None or best[0] < _LEAST:
        raise InputError(
            f"{folder}: the session's packets are not those of the recording; expected the session of this call"
        )
    count, shift, of_flow = best
    apart = np.array(_differences(columns, sent, of_flow)) - shift
    spread = np.quantile(np.abs(apart[np.abs(apart) < _APART_S]), 0.99) * 1e3
    shift_text = f"the link's times are the recording's plus {shift:.6f} s, by {count} packets of both"
    says = [f"{shift_text}; 99 % of these packets agree within {spread:.3f} ms"]
    for flow in dict.fromkeys(columns["flow"].tolist()):
        says += _losses(flow, columns, sent[of_flow[flow]], shift)
    return shift, says


def _differences(columns: Mapping[str, Any], sent: Sent, of_flow: Mapping[str, str]) -> list[float]:
    """Returns session time minus recording time, for packets whose number occurs once on both sides."""
    apart = []
    for flow, side in of_flow.items():
        mine = (columns["flow"] == flow) & np.isfinite(columns["rtp_sequence"])
        numbers, times = np.unique(columns["rtp_sequence"][mine], return_counts=True)
        once = set(numbers[times == 1].tolist())
        rows = zip(*(columns[name][mine].tolist() for name in ("rtp_sequence", "sent_s", "arrived_s")), strict=True)
        for number, departed, arrived in rows:
            same = sent[side].get(int(number), ())
            if number not in once or len(same) != 1:
                continue
            if np.isfinite(departed):
                apart.append(same[0].stamp_s - departed)
            elif np.isfinite(arrived) and same[0].arrived_s is not None:
                apart.append(same[0].arrived_s - arrived)
    return apart


def _losses(flow: str, columns: Mapping[str, Any], sent: Mapping[int, Sequence[_Packet]], shift: float) -> list[str]:
    """The drops of the link beside the losses of the recording."""
    mine = (columns["flow"] == flow) & np.isfinite(columns["rtp_sequence"]) & np.isfinite(columns["sent_s"])
    both = dropped = missing = differ = untold = hidden = 0
    rows = zip(*(columns[name][mine].tolist() for name in ("rtp_sequence", "sent_s", "fate")), strict=True)
    for number, departed, fate in rows:
        near = min(sent.get(int(number), ()), key=lambda packet: abs(packet.stamp_s - departed - shift), default=None)
        if near is None or abs(near.stamp_s - departed - shift) > _APART_S:
            continue
        if fate == "unknown":
            untold += 1
            hidden += near.lost
            continue
        both += 1
        dropped += near.lost
        missing += fate == "lost"
        differ += near.lost != (fate == "lost")
    says = []
    if both:
        verdict = "packet by packet the same" if not differ else f"{differ} differ"
        says.append(
            f"{flow}: of {both} packets of both the link dropped {dropped}, the recording lost {missing}: {verdict}"
        )
    if untold:
        counts = f"of {untold} packets of both the link dropped {hidden}"
        says.append(f"{flow}: {counts}, the recording does not have their fate")
    return says


def _by_unix_time(call: Run, captured: Run | None, sent: Sent, folder: Path) -> float:
    begin_ms = call.about["imported"]["begun_ms"]
    capture_begin_ms = None if captured is None else captured.about["imported"]["begun_ms"]
    if captured is None or begin_ms is None or capture_begin_ms is None:
        raise InputError(
            f"{folder}: the session's clock cannot be aligned with the recording's, which has no packets; expected a "
            "session with --pcap, and a recording with its Unix time"
        )
    shift, _ = _aligned(captured, sent, folder)
    return shift + (float(begin_ms) - float(capture_begin_ms)) / 1e3


def _moved(table: Table, later: float, end: float) -> Table:
    """Returns a table of steps by the recording's clock, from its beginning to its end."""
    times: Floats = table.to_numpy("t_s") + later
    names = [name for name in table.columns if name not in {"controller", "seed"}]
    columns = {name: table.to_numpy(name) for name in names}
    keep = times < end
    for link in dict.fromkeys(columns["link"].tolist()):
        before = np.flatnonzero((columns["link"] == link) & (times <= 0))
        # steps before the last one at the beginning of the recording
        keep[before[:-1]] = False
    times = np.maximum(times, 0.0)[keep]
    order = np.argsort(times, kind="stable")
    moved = []
    for name in names:
        values = times if name == "t_s" else columns[name][keep]
        values = values[order]
        moved.append((name, values.tolist() if values.dtype.kind == "U" else values))
    return Table.of(moved)
