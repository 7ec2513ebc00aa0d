"""Reader of rtcstats' dumps: a list of method, connection, value and time an event, of which `getStats` are read.

Two formats, both with values that may name only what changed since the report before:

* version 3 (README of packages/rtcstats-server in github.com/rtcstats/rtcstats): `RTCStatsDump`, a line with
  `fileFormat`, and times that are differences. An object that is not in a report is unchanged, and null where it went;
* older ones, of rtcstats-server and what was made of it, such as Jitsi's: lines alone, or after an object with
  `fileFormat` 1 or 2, with Unix times at the fourth place, after which Jitsi's have a number of their own. An object
  that is not in a report has gone or is unchanged (`deltaCompression` in rtcstats.js of github.com/fippo/rtcstats and
  of github.com/jitsi/rtcstats).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import InputError
from tidegate.recordings._stats import (
    REPORTS_BROKEN,
    Connection,
    Entries,
    Problems,
    Reports,
    as_number,
    as_stamp,
    has_streams,
    parse_problem,
    parsed,
    parsed_lines,
    short,
    split,
)

FIRST_LINE = "RTCStatsDump"
FILE_FORMATS = (1, 2, 3)
_LATEST = 3

_METHODS = ("getStats", "getstats")
_MOST_CONNECTIONS = 1_000
_EVENT = 4
"""Least number of values of an event."""
_RIGHT = "expected a list of method, connection, value and milliseconds"
_AT_ONCE_S = 1e-6
"""Time between two reports of one stamp."""


def is_event(entry: Any) -> bool:
    """Whether a value is an event."""
    return isinstance(entry, list) and len(entry) >= _EVENT and isinstance(entry[0], str)


def dump(text: str, problems: Problems) -> list[Connection]:
    """Reads a dump with the first line of version 3.

    Raises:
        InputError: names the line and the problem.
    """
    _, *lines = split(text)
    try:
        about = parsed(lines[0]) if lines else None
    except ValueError as error:
        raise InputError(f"line 2: not valid JSON: {parse_problem(error)}") from None
    version = about.get("fileFormat") if isinstance(about, dict) else None
    if version not in FILE_FORMATS or isinstance(version, bool):
        raise InputError(f"line 2: found fileFormat {short(version)}; expected 1 to {_LATEST}")
    entries = parsed_lines(lines[1:], 3, problems, f"; {_RIGHT}")
    return _differences(entries, problems) if version == _LATEST else connections(entries, problems)


def connections(entries: Entries, problems: Problems) -> list[Connection]:
    """Reads events with Unix times.

    Raises:
        InputError: names the place and the problem.
    """
    calls = _Calls(problems)
    for place, event in entries:
        if isinstance(event, dict):
            continue  # what the server says of the client
        if not is_event(event):
            problems.add(f"{place}: found {short(event)}; {_RIGHT}")
            continue
        for connection, time, value in calls.reports(place, event, as_stamp(event[3])):
            for key, entry in value.items():
                if isinstance(entry, dict):
                    stat = connection.stat(key)
                    stat.reports = stat.reports or Reports([])
                    stat.reports.of_connection.append(time)
                    stat.add_all(time, entry)
    return list(calls.connections.values())


def _differences(entries: Entries, problems: Problems) -> list[Connection]:
    calls = _Calls(problems)
    now = 0.0
    for place, event in entries:
        # the first time is from 1970, others from the one before
        later = as_number(event[-1]) if isinstance(event, list) and len(event) >= _EVENT else None
        if later is None:
            problems.add(f"{place}: found {short(event)}; {_RIGHT}")
            continue
        now += later / 1000
        for connection, time, value in calls.reports(place, event, now):
            times = calls.times[connection.name]
            times.append(time)
            for key, entry in value.items():
                stat = connection.stats.get(key)
                if entry is None and stat is not None and stat.reports is not None:
                    stat.reports.end = len(times) - 1
                elif isinstance(entry, dict):
                    stat = connection.stat(key)
                    if stat.reports is None:
                        stat.reports = Reports(times, len(times) - 1)
                    stat.reports.end = None
                    stat.add_all(time, entry)
    return list(calls.connections.values())


@dataclass
class _Calls:
    """The connections of a file."""

    problems: Problems
    connections: dict[str, Connection] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    """Times of all reports by connection, in s, where a file's objects share them."""
    _last: dict[str, float] = field(default_factory=dict)
    _count: int = 0

    def reports(
        self, place: str, event: list[Any], time: float | None
    ) -> Iterator[tuple[Connection, float, dict[str, Any]]]:
        """Yields the report of an event with its connection and its time, if it is one that can be read."""
        method, name, value = str(event[0]), str(event[1]), event[2]
        self._count += 1
        if self._count % REPORTS_BROKEN == 0:
            if not any(map(has_streams, self.connections.values())):
                raise InputError(f"{place}: no report until here has a stream; expected getStats of a call with media")
            for each in self.connections.values():
                each.check_size()
        if method.isdigit():
            raise InputError(f"{place}: the methods are numbers (rtcstats' compression); expected names")
        if method not in _METHODS:
            return
        if not isinstance(value, dict) or time is None or not math.isfinite(time):
            self.problems.add(f"{place}: found {short(value)}; expected the objects of getStats by id, and a time")
            return
        if any(member.isdigit() for entry in value.values() if isinstance(entry, dict) for member in entry):
            raise InputError(f"{place}: the keys are numbers (rtcstats' compression); expected names")
        last = self._last.get(name, -math.inf)
        if time < last:
            self.problems.add(
                f"{place}: found a time of {last - time:.3f} s before the one before; expected a later one"
            )
            return
        time = max(time, last + _AT_ONCE_S)
        self._last[name] = time
        connection = self.connections.get(name)
        if connection is None:
            if len(self.connections) >= _MOST_CONNECTIONS:
                raise InputError(f"{place}: found more than {_MOST_CONNECTIONS} connections; expected those of a call")
            connection = self.connections[name] = Connection(name, unix_s=0.0)
            self.times[name] = []
        yield connection, time, value
