"""Readers of getStats of a WebRTC implementation over a call (W3C, Identifiers for WebRTC's Statistics API).

Forms that come to the same connections:

* webrtc-internals' dump (`_internals`);
* rtcstats' dumps, new and old (`_rtcstats`);
* reports, a line each or in one JSON list: an object with a time in seconds (`time_s` or `t`) or in milliseconds
  (`timestamp`) and what getStats gave (`report` or `stats`), or that alone with the stamps in it. It may be a list,
  objects by id, or pairs of id and object.

In each of them objects may be those of getStats with a callback (`_legacy`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.errors import InputError
from tidegate.recordings import _internals as internals
from tidegate.recordings import _legacy as legacy
from tidegate.recordings import _rtcstats as rtcstats
from tidegate.recordings._stats import (
    REPORTS_BROKEN,
    Connection,
    Entries,
    Problems,
    as_number,
    as_stamp,
    check_count,
    has_streams,
    parse_problem,
    parsed,
    parsed_lines,
    short,
    split,
)

LONGEST_S = 7 * 86_400.0
_MOST_STREAMS = 1_000
"""Largest number of streams of a connection."""

_THIS_CENTURY_S = 946_684_800.0
"""Unix time of 2000: a file's own times are less."""
_NAMED = 8
"""Number of types that a message names."""
_PAIR = 2
_RUNS_APART = 2.0
"""Ratio of the times of reports to the stamps in them from which on they are in other units."""


@dataclass
class Calls:
    """Contents of a file: connections with streams, and problems of its lines."""

    connections: list[Connection]
    problems: list[str]


def looks_like(data: bytes) -> bool:
    """Whether a file is JSON, or a dump of rtcstats."""
    return data.startswith(rtcstats.FIRST_LINE.encode()) or data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (
        b"{",
        b"[",
    )


def read(data: bytes) -> Calls:
    """Reads a file of any of the forms.

    Raises:
        InputError: names the line or the key, and the problem.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start}: the text is not UTF-8; expected JSON of getStats") from None
    problems = Problems()
    connections_of_file = list(_connections(text, problems))
    for connection in connections_of_file:
        legacy.translate(connection)
    connections = [connection for connection in connections_of_file if connection.streams()]
    if not connections:
        types = sorted({stat.type for connection in connections_of_file for stat in connection.stats.values()} - {""})
        more = ", ..." if len(types) > _NAMED else ""
        has = f"; its objects are {', '.join(map(short, types[:_NAMED]))}{more}" if types else ""
        first = f" ({problems.first[0]})" if problems.first else ""
        raise InputError(f"found no outbound-rtp or inbound-rtp{has}; expected getStats of a call with media{first}")
    for connection in connections:
        _check(connection)
    return Calls(connections, problems.all())


def _check(connection: Connection) -> None:
    begin, end = connection.span()
    if end - begin > LONGEST_S:
        days = (end - begin) / 86_400
        raise InputError(f"{connection.name}: the times lie {days:.0f} days apart; expected at most 7")
    streams = connection.streams()
    if len(streams) > _MOST_STREAMS:
        raise InputError(f"{connection.name}: found {len(streams)} streams; expected at most {_MOST_STREAMS}")
    connection.check_size()


def _connections(text: str, problems: Problems) -> Iterable[Connection]:
    if text.startswith(rtcstats.FIRST_LINE):
        return rtcstats.dump(text, problems)
    first_line, _, rest = text.strip().partition("\n")
    first = _whole(first_line)
    # a first line that is broken may be one of many
    whole = first if first is not None or not rest else _whole(rest.lstrip().partition("\n")[0])
    if rest and whole is not None and not (isinstance(first, dict) and internals.KEY in first):
        events = rtcstats.is_event(whole) or (isinstance(first, dict) and rest.lstrip().startswith('["'))
        lines = parsed_lines(split(text), 1, problems, "")
        return rtcstats.connections(lines, problems) if events else _reports(lines, problems)
    dump = first if first is not None and not rest else _parse(text)
    if isinstance(dump, list):
        return _of_list(dump, problems)
    if isinstance(dump, dict) and isinstance(dump.get(internals.KEY), dict):
        return internals.connections(dump, problems)
    if not isinstance(dump, dict) or internals.KEY in dump:
        raise InputError("found JSON without PeerConnections; expected webrtc-internals' dump, or a report a line")
    return _reports([("line 1", dump)], problems)


def _whole(line: str) -> Any:
    """Returns the list or the object that a line is; None for anything else, and for an opening bracket alone."""
    try:
        value = parsed(line) if len(line.strip()) > 1 else None
    except ValueError:
        return None
    return value if isinstance(value, list | dict) else None


def _parse(text: str) -> Any:
    try:
        return parsed(text)
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}: not valid JSON: {parse_problem(error)}"
        raise InputError(f"{problem}; expected a complete dump") from None
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}") from None


def _of_list(values: list[Any], problems: Problems) -> list[Connection]:
    check_count(len(values), "reports")
    entries: Entries = ((f"entry {number}", value) for number, value in enumerate(values, 1))
    if rtcstats.is_event(values):
        return rtcstats.connections([("line 1", values)], problems)
    if values and rtcstats.is_event(values[0]):
        return rtcstats.connections(entries, problems)
    if values and isinstance(values[0], list) and len(values[0]) == _PAIR and isinstance(values[0][0], str):
        entries = [("the list", values)]
    elif values and _is_stat(values[0]):
        # objects of all reports in one list, each with its stamp
        return _reports(((place, [value]) for place, value in entries), problems, several_at_once=True)
    return _reports(entries, problems)


def _is_stat(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


# --- reports --------------------------------------------------------------------------------------


def _reports(entries: Entries, problems: Problems, *, several_at_once: bool = False) -> list[Connection]:
    connection = Connection("the connection")
    last, offsets, clocks = -math.inf, list[float](), list[tuple[float, float]]()
    count = 0
    for place, entry in entries:
        time, report = _snapshot(entry)
        if time is None or report is None:
            problems.add(
                f"{place}: found {short(entry)}; expected an object with time_s and report, or a report with stamps"
            )
        elif time <= last and not several_at_once:
            problems.add(f"{place}: found a time of {time:g} s after {last:g} s; expected a later one")
        else:
            last = time
            count += 1
            if count == REPORTS_BROKEN and not has_streams(connection):
                break
            stamps = _add_report(connection, time, report)
            offsets += [stamp - time for stamp in stamps]
            clocks += [(time, max(stamps))] if stamps else []
    if count and not connection.stats:
        problems.add("all reports are empty: JSON.stringify makes {} of a map; expected [...report] of each")
    _check_clocks(clocks)
    # times alone that are of this century are Unix times
    connection.unix_s = float(np.median(offsets)) if offsets else 0.0 if last > _THIS_CENTURY_S else None
    return [connection]


def _check_clocks(clocks: list[tuple[float, float]]) -> None:
    """Checks that reports go at the pace of the stamps in them, so that both are in the units that they seem to be."""
    if not clocks:
        return
    times, stamps = (clocks[-1][column] - clocks[0][column] for column in (0, 1))
    if stamps > 1 and not 1 / _RUNS_APART < times / stamps < _RUNS_APART:
        raise InputError(
            f"the times of the reports go over {times:g} s and the stamps in them over {stamps:g} s; expected times in "
            "seconds and stamps in milliseconds"
        )


def _snapshot(entry: Any) -> tuple[float | None, Any]:
    report: Any = entry if isinstance(entry, list) else None
    time = None
    if isinstance(entry, dict):
        report = next((entry[key] for key in ("report", "stats") if key in entry), None)
        if report is None and any(_is_stat(value) for value in entry.values()):
            report = entry
        for key in ("time_s", "t", "timestamp"):
            if key in entry:
                is_stamp, is_text = key == "timestamp", isinstance(entry[key], str)
                time = as_stamp(entry[key]) if is_stamp else None if is_text else as_number(entry[key])
                return time, report if isinstance(report, list | dict) else None
    if isinstance(report, list | dict):
        time = max(_stamps(_objects(report)), default=None)
        return time, report
    return None, None


def _objects(report: list[Any] | Mapping[str, Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Returns the objects of a report with their ids, as far as those stand outside of them."""
    pairs: Iterable[tuple[Any, Any]] = (
        report.items()
        if isinstance(report, Mapping)
        # a pair is what a report, which is a map, gives one by one
        else (
            (entry[0], entry[1]) if isinstance(entry, list) and len(entry) == _PAIR else (None, entry)
            for entry in report
        )
    )
    return [(key, entry) for key, entry in pairs if isinstance(entry, dict)]


def _stamps(objects: Iterable[tuple[Any, dict[str, Any]]]) -> list[float]:
    """Returns the stamps of objects, in s; those of the far end's are times of arrival, and are left out."""
    stamps = (
        as_stamp(entry.get("timestamp")) for _, entry in objects if not str(entry.get("type", "")).startswith("remote-")
    )
    return [stamp for stamp in stamps if stamp is not None]


def _add_report(connection: Connection, time: float, report: list[Any] | dict[str, Any]) -> list[float]:
    """Adds a report, and returns the stamps of its objects."""
    objects = _objects(report)
    for key, entry in objects:
        stat_id = entry.get("id", key)
        if not isinstance(stat_id, str):
            # objects without an id differ by their type and stream
            stat_id = f"{entry.get('type')} {entry.get('ssrc', '')}"
        connection.stat(stat_id).add_all(time, entry)
    return _stamps(objects)
