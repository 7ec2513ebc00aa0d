"""Readers of getStats of a WebRTC implementation over a call (W3C, Identifiers for WebRTC's Statistics API).

Three forms, which come to the same connections:

* webrtc-internals' dump, one JSON object: `PeerConnections`, each with `stats` by `ID-MEMBER`, each of these with
  `startTime`, `endTime` and `values`, a list as a string (`chrome/browser/resources/webrtc_internals` of Chromium;
  older ones have no series `ID-timestamp`);
* webrtc-internals' rtcstats dump: `RTCStatsDump` and a line of JSON an event (rtcstats' file format, version 3), of
  which `getStats` are read;
* a JSON object a line with a time in seconds (`time_s` or `t`) and what getStats gave (`report` or `stats`).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate._inputs import JSON, parse_json
from tidegate.errors import InputError

Floats = npt.NDArray[np.float64]

STREAMS = ("outbound-rtp", "inbound-rtp")
FIRST_LINE = b"RTCStatsDump"
FILE_FORMAT = 3
"""Of rtcstats dumps; versions 1 and 2 are older than what Chromium writes."""

LONGEST_S = 7 * 86_400.0
_REPORTED = 5
"""Number of broken lines that are reported one by one."""
_BROKEN = 10_000
"""Number of broken lines, and of reports without a stream, after which a file is given up."""
_LINES = 500_000
"""Largest number of lines: six days of a report a second."""


@dataclass
class Stat:
    """One object of getStats over a call."""

    id: str
    type: str = ""
    """`outbound-rtp`, `inbound-rtp`, `candidate-pair` and so on."""
    members: dict[str, tuple[list[float], list[Any]]] = field(default_factory=lambda: defaultdict(lambda: ([], [])))
    """Times (Unix time or the file's own, in s) and values by name."""

    def add(self, time: float, name: str, value: Any) -> None:
        """Adds the value of a member at a time; a time that is no later than the last is ignored."""
        times, values = self.members[name]
        if not times or time > times[-1]:
            times.append(time)
            values.append(value)

    def numbers(self, name: str) -> tuple[Floats, Floats]:
        """Returns times and values of a member, where it is a number."""
        times, values = self.members.get(name, ([], []))
        pairs = [
            (time, number) for time, value in zip(times, values, strict=True) if (number := _number(value)) is not None
        ]
        columns = np.array(pairs, float).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]

    def last(self, name: str) -> Any:
        """Returns the last value of a member; None without one, or for a list or a table."""
        values = self.members.get(name, ([], []))[1]
        return values[-1] if values and isinstance(values[-1], str | int | float) else None


@dataclass
class Connection:
    """A peer connection with its objects of getStats."""

    name: str
    stats: dict[str, Stat] = field(default_factory=dict)
    unix_s: float | None = None
    """Unix time of the file's time 0, where it is known."""

    def stat(self, stat_id: str) -> Stat:
        """Returns the object with an id, which is added if it is new."""
        return self.stats.setdefault(stat_id, Stat(stat_id))

    def of_type(self, *types: str) -> list[Stat]:
        """Returns all objects of these types."""
        return [stat for stat in self.stats.values() if stat.type in types]

    def span(self) -> tuple[float, float]:
        """Returns the first and the last time of a value; each member has at least one."""
        series = [times for stat in self.stats.values() for times, _ in stat.members.values()]
        return min(times[0] for times in series), max(times[-1] for times in series)

    def ssrcs(self, kind: str) -> set[int]:
        """Returns the SSRCs of all streams of a type."""
        numbers = (_number(number.last("ssrc")) for number in self.of_type(kind))
        return {int(number) for number in numbers if number is not None}


@dataclass
class Calls:
    """Contents of a file: connections with streams, and problems of its lines."""

    connections: list[Connection]
    problems: list[str]


def looks_like(data: bytes) -> bool:
    """Whether a file is JSON, or a dump of rtcstats."""
    return data.startswith(FIRST_LINE) or data.lstrip()[:1] == b"{"


def read(data: bytes) -> Calls:
    """Reads a file of any of the three forms.

    Raises:
        InputError: names the line or the key, and the problem.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start}: the text is not UTF-8; expected JSON of getStats") from None
    problems = _Problems()
    if data.startswith(FIRST_LINE):
        connections_of_file: Iterable[Connection] = _rtcstats(text, problems)
    else:
        dump = _parse_dump(text)
        connections_of_file = _lines(text, problems) if dump is None else _internals(dump, problems)
    # an object with nothing but its type is no stream
    connections = [
        connection for connection in connections_of_file if any(stat.members for stat in connection.of_type(*STREAMS))
    ]
    if not connections:
        first = f" ({problems.first[0]})" if problems.first else ""
        raise InputError(f"found no outbound-rtp or inbound-rtp; expected getStats of a call with media{first}")
    for connection in connections:
        begin, end = connection.span()
        if end - begin > LONGEST_S:
            days = (end - begin) / 86_400
            raise InputError(f"{connection.name}: the times lie {days:.0f} days apart; expected at most 7")
    return Calls(connections, problems.all())


class _Problems:
    """Lines that could not be parsed: the first ones in words, and their number."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def add(self, problem: str) -> None:
        self.count += 1
        if self.count > _BROKEN:
            raise InputError(f"more than {_BROKEN} lines cannot be parsed, the first: {self.first[0]}")
        if len(self.first) < _REPORTED:
            self.first.append(problem)

    def all(self) -> list[str]:
        more = self.count - len(self.first)
        return [*self.first, *([f"{more} more lines that could not be parsed"] if more else [])]


def _json(text: str) -> Any:
    """Parses JSON; raises ValueError for invalid text, and for one that would need too much memory."""
    return parse_json(text, JSON.limit)


def _split(text: str) -> list[str]:
    count = text.count("\n")
    if count > _LINES:
        raise InputError(f"found {count} lines; expected at most {_LINES}, which is six days of a report a second")
    return text.splitlines()


def _parse_problem(error: ValueError) -> str:
    return f"column {error.colno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)


def _number(value: Any) -> float | None:
    """Returns a finite number, also from a string, as older dumps have them; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


# --- a report a line ------------------------------------------------------------------------------


def _lines(text: str, problems: _Problems) -> list[Connection]:
    connection = Connection("the connection")
    last, offsets = -math.inf, []
    reports = 0
    for number, line in enumerate(_split(text), 1):
        if not line.strip():
            continue
        try:
            entry = _json(line)
        except ValueError as error:
            problems.add(f"line {number}: not valid JSON: {_parse_problem(error)}")
            continue
        time, report = _snapshot(entry)
        if time is None or report is None:
            problems.add(f"line {number}: found {_short(entry)}; expected an object with time_s and report")
        elif time <= last:
            problems.add(f"line {number}: found a time of {time:g} s after {last:g} s; expected a later one")
        else:
            last = time
            reports += 1
            if reports == _BROKEN and not connection.of_type(*STREAMS):
                break
            offsets += _add_report(connection, time, report)
    connection.unix_s = float(np.median(offsets)) if offsets else None
    return [connection]


def _snapshot(entry: Any) -> tuple[float | None, Any]:
    if not isinstance(entry, dict):
        return None, None
    time = next((entry[key] for key in ("time_s", "t") if key in entry), None)
    report = next((entry[key] for key in ("report", "stats") if key in entry), None)
    return (None if isinstance(time, str) else _number(time)), report if isinstance(report, list | dict) else None


def _add_report(connection: Connection, time: float, report: list[Any] | dict[str, Any]) -> list[float]:
    """Adds a report, and returns the offset of Unix time from the file's by the stamp of each object."""
    objects = report.items() if isinstance(report, dict) else [(None, entry) for entry in report]
    offsets = []
    for key, entry in objects:
        if not isinstance(entry, dict):
            continue
        stat_id = entry.get("id", key)
        if not isinstance(stat_id, str):
            # objects without an id differ by their type and stream
            stat_id = f"{entry.get('type')} {entry.get('ssrc', '')}"
        stat = connection.stat(stat_id)
        for name, value in entry.items():
            stat.add(time, name, value)
        stat.type = str(entry.get("type", stat.type))
        stamp = _number(entry.get("timestamp"))
        # stamps of the far end's objects are times of arrival
        if stamp is not None and not stat.type.startswith("remote-"):
            offsets.append(stamp / 1000 - time)
    return offsets


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004


# --- webrtc-internals -----------------------------------------------------------------------------


def _parse_dump(text: str) -> Mapping[str, Any] | None:
    """Parses a dump of webrtc-internals, one JSON object; returns None for a file with a report a line."""
    first_line, _, rest = text.strip().partition("\n")
    try:
        first_object = _json(first_line) if rest else None
    except ValueError:
        first_object = None
    if isinstance(first_object, dict) and "PeerConnections" not in first_object:
        return None
    try:
        dump = _json(text)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise InputError(
                f"line {error.lineno}: not valid JSON: {_parse_problem(error)}; expected a complete dump"
            ) from None
        raise InputError(f"not valid JSON: {error}") from None
    if not rest and isinstance(dump, dict) and "PeerConnections" not in dump:
        return None  # a single report
    if not isinstance(dump, dict) or not isinstance(dump.get("PeerConnections"), dict):
        raise InputError("found JSON without PeerConnections; expected webrtc-internals' dump, or a report a line")
    return dump


def _internals(dump: Mapping[str, Any], problems: _Problems) -> Iterator[Connection]:
    for name, about in dump["PeerConnections"].items():
        members = about.get("stats") if isinstance(about, dict) else None
        if not isinstance(members, dict):
            continue
        series: dict[str, _Series] = {}
        for key, entry in members.items():
            try:
                series[key] = _Series.of(entry)
            except ValueError as error:
                problems.add(f"PeerConnections.{name}.stats.{key}: {error}")
        connection = Connection(name, unix_s=0.0)
        for key, entry in series.items():
            # an id may contain the sign; names of members do not, except those that webrtc-internals computes
            stat_id, _, member = key.rpartition("-") if "-[" not in key else key.partition("-[")
            stat = connection.stat(stat_id)
            stat.type = entry.type or stat.type
            stamps = series.get(f"{stat_id}-timestamp")
            times = entry.times(stamps)
            for time, value in zip(times, entry.values, strict=True):
                stat.add(time, member, value)
        yield connection


@dataclass
class _Series:
    """One member of one object: its values between two times."""

    start: float
    end: float
    values: list[Any]
    type: str

    @classmethod
    def of(cls, entry: Any) -> _Series:
        if not isinstance(entry, dict):
            raise ValueError(f"found {_short(entry)}; expected startTime, endTime and values")  # noqa: TRY004
        values = entry.get("values")
        values = _json(values) if isinstance(values, str) else values
        if not isinstance(values, list):
            raise ValueError(f"values: found {_short(values)}; expected a list")  # noqa: TRY004
        start, end = (_moment(entry.get(key), key) for key in ("startTime", "endTime"))
        if end < start:
            raise ValueError(f"endTime: found {end:g} s, before startTime")
        return cls(start, end, values, str(entry.get("statsType", "")))

    def times(self, stamps: _Series | None) -> list[float]:
        """Returns the time of each value: by the stamps of its object, or else in even steps."""
        count = len(self.values)
        if stamps is not None and stamps.values:
            readings = [None if (number := _number(reading)) is None else number / 1000 for reading in stamps.values]
            defined = [reading for reading in readings if reading is not None]
            # a member with a later begin or an earlier end has fewer values; its own times tell which
            if len(defined) == len(readings) >= count:
                return defined[len(defined) - count :] if self.end == stamps.end else defined[:count]
        return list(np.linspace(self.start, self.end, count))


def _moment(value: Any, key: str) -> float:
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key}: found {_short(value)}; expected a time such as 2026-11-23T12:00:00.000Z") from None


# --- rtcstats -------------------------------------------------------------------------------------


def _rtcstats(text: str, problems: _Problems) -> list[Connection]:
    _, *lines = _split(text)
    try:
        about = _json(lines[0]) if lines else None
    except ValueError as error:
        raise InputError(f"line 2: not valid JSON: {_parse_problem(error)}") from None
    version = about.get("fileFormat") if isinstance(about, dict) else None
    if version != FILE_FORMAT:
        raise InputError(f"line 2: found fileFormat {_short(version)}; expected {FILE_FORMAT}")
    all_of: dict[str, Connection] = {}
    now = 0.0
    for number, line in enumerate(lines[1:], 3):
        if not line.strip():
            continue
        try:
            event = _json(line)
            method, name, value, *_, later = event
            # stamps are differences, the first one from 1970
            now += float(later) / 1000
        except (ValueError, TypeError, OverflowError) as error:
            problem = _parse_problem(error) if isinstance(error, json.JSONDecodeError) else f"found {_short(line)}"
            problems.add(f"line {number}: {problem}; expected a list of method, connection, value and milliseconds")
            continue
        if method != "getStats":
            continue
        if not isinstance(value, dict) or not math.isfinite(now):
            problems.add(f"line {number}: found {_short(value)}; expected the objects of getStats by id")
            continue
        if any(member.isdigit() for entry in value.values() if isinstance(entry, dict) for member in entry):
            raise InputError(f"line {number}: the keys are numbers (rtcstats' compression); expected names")
        _add_report(all_of.setdefault(str(name), Connection(str(name), unix_s=0.0)), now, value)
    return list(all_of.values())
