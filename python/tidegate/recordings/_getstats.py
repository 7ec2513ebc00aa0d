"""Readers of what getStats of a WebRTC implementation said over a call (W3C, Identifiers for WebRTC's Statistics API).

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

from tidegate.errors import InputError

Floats = npt.NDArray[np.float64]

FIRST_LINE = b"RTCStatsDump"
FILE_FORMAT = 3
"""Of rtcstats dumps; versions 1 and 2 are older than what Chromium writes."""

LONGEST_S = 7 * 86_400.0
_TOLD = 5
"""Broken lines that are told one by one."""


@dataclass
class Stat:
    """One object of getStats over a call."""

    id: str
    type: str = ""
    """`outbound-rtp`, `inbound-rtp`, `candidate-pair` and so on."""
    members: dict[str, tuple[list[float], list[Any]]] = field(default_factory=lambda: defaultdict(lambda: ([], [])))
    """By name: when it was read (Unix time or the file's own, in s), and what it was."""

    def add(self, at: float, name: str, value: Any) -> None:
        """Takes in what a member was at a time; what is no later than the last is left out."""
        times, values = self.members[name]
        if not times or at > times[-1]:
            times.append(at)
            values.append(value)

    def numbers(self, name: str) -> tuple[Floats, Floats]:
        """A member where it is a number: times and values."""
        times, values = self.members.get(name, ([], []))
        known = [
            (at, number) for at, value in zip(times, values, strict=True) if (number := _number(value)) is not None
        ]
        pairs = np.array(known, float).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def last(self, name: str) -> Any:
        """What a member was at the end; None where it never was, or is a list or a table."""
        values = self.members.get(name, ([], []))[1]
        return values[-1] if values and isinstance(values[-1], str | int | float) else None


@dataclass
class Connection:
    """A peer connection and all that getStats said of it."""

    name: str
    stats: dict[str, Stat] = field(default_factory=dict)
    unix_s: float | None = None
    """Unix time of the file's time 0, where anything tells."""

    def stat(self, of: str) -> Stat:
        """The one with an id, which is made if it is new."""
        return self.stats.setdefault(of, Stat(of))

    def of_type(self, *types: str) -> list[Stat]:
        """All of some types."""
        return [one for one in self.stats.values() if one.type in types]

    def span(self) -> tuple[float, float]:
        """First and last time at which anything was said; members have one value at least."""
        series = [times for stat in self.stats.values() for times, _ in stat.members.values()]
        return min(times[0] for times in series), max(times[-1] for times in series)

    def ssrcs(self, kind: str) -> set[int]:
        """SSRCs of all streams of a type."""
        found = (_number(one.last("ssrc")) for one in self.of_type(kind))
        return {int(one) for one in found if one is not None}


@dataclass
class Calls:
    """What a file has: connections with streams, and what could not be read."""

    connections: list[Connection]
    problems: list[str]


def looks_like(data: bytes) -> bool:
    """Whether a file is JSON, or a dump of rtcstats."""
    return data.startswith(FIRST_LINE) or data.lstrip()[:1] == b"{"


def read(data: bytes) -> Calls:
    """Reads a file of any of the three forms.

    Raises:
        InputError: what is wrong, and where: the line, or the key.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start}: is no UTF-8; expected JSON of getStats") from None
    problems = _Problems()
    if data.startswith(FIRST_LINE):
        found: Iterable[Connection] = _rtcstats(text, problems)
    else:
        whole = _whole(text)
        found = _lines(text, problems) if whole is None else _internals(whole, problems)
    # a stream of which nothing but its type was said is none
    connections = [one for one in found if any(stat.members for stat in one.of_type("outbound-rtp", "inbound-rtp"))]
    if not connections:
        first = f" ({problems.told[0]})" if problems.told else ""
        raise InputError(f"found no outbound-rtp or inbound-rtp; expected getStats of a call with media{first}")
    for one in connections:
        begin, end = one.span()
        if end - begin > LONGEST_S:
            raise InputError(f"{one.name}: its times lie {(end - begin) / 86400:.0f} days apart; expected at most 7")
    return Calls(connections, problems.all())


class _Problems:
    """What could not be read: the first ones in words, and how many there were."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.count = 0

    def add(self, what: str) -> None:
        self.count += 1
        if len(self.told) < _TOLD:
            self.told.append(what)

    def all(self) -> list[str]:
        more = self.count - len(self.told)
        return [*self.told, *([f"{more} more things that could not be read"] if more else [])]


def _json(text: str) -> Any:
    """A value of JSON; ValueError where it is none, however deep it goes."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("goes too deep") from None


def _said(error: ValueError) -> str:
    return f"column {error.colno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)


def _number(value: Any) -> float | None:
    """A finite number; strings that are one count, as older dumps have them."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


# --- a report a line ------------------------------------------------------------------------------


def _lines(text: str, problems: _Problems) -> list[Connection]:
    made = Connection("the connection")
    last, offsets = -math.inf, []
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = _json(line)
        except ValueError as error:
            problems.add(f"line {place}: is no JSON: {_said(error)}")
            continue
        at, report = _snapshot(one)
        if at is None or report is None:
            problems.add(f"line {place}: found {_short(one)}; expected an object with time_s and report")
        elif at <= last:
            problems.add(f"line {place}: found a time of {at:g} s after {last:g} s; expected a later one")
        else:
            last = at
            offsets += _take(made, at, report)
    made.unix_s = float(np.median(offsets)) if offsets else None
    return [made]


def _snapshot(one: Any) -> tuple[float | None, Any]:
    if not isinstance(one, dict):
        return None, None
    at = next((one[key] for key in ("time_s", "t") if key in one), None)
    report = next((one[key] for key in ("report", "stats") if key in one), None)
    return (None if isinstance(at, str) else _number(at)), report if isinstance(report, list | dict) else None


def _take(made: Connection, at: float, report: list[Any] | dict[str, Any]) -> list[float]:
    """Takes in a report; how much later Unix time is than the file's, by each object's stamp."""
    objects = report.items() if isinstance(report, dict) else [(None, one) for one in report]
    offsets = []
    for key, one in objects:
        if not isinstance(one, dict):
            continue
        of = one.get("id", key)
        if not isinstance(of, str):
            # what has no id is told apart by its type, and its stream
            of = f"{one.get('type')} {one.get('ssrc', '')}"
        stat = made.stat(of)
        for name, value in one.items():
            stat.add(at, name, value)
        stat.type = str(one.get("type", stat.type))
        stamp = _number(one.get("timestamp"))
        # what the far end said has the time at which it came
        if stamp is not None and not stat.type.startswith("remote-"):
            offsets.append(stamp / 1000 - at)
    return offsets


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004


# --- webrtc-internals -----------------------------------------------------------------------------


def _whole(text: str) -> Mapping[str, Any] | None:
    """The file as one object, where it is webrtc-internals' dump; None where it is a line for each report."""
    first = text.lstrip().partition("\n")[0]
    try:
        one = _json(first)
    except ValueError:
        one = None
    if isinstance(one, dict) and "PeerConnections" not in one:
        return None
    try:
        whole = _json(text)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise InputError(
                f"line {error.lineno}: is no JSON: {_said(error)}; expected a dump that is whole"
            ) from None
        raise InputError(f"is no JSON: {error}") from None
    if not isinstance(whole, dict) or not isinstance(whole.get("PeerConnections"), dict):
        raise InputError("found JSON without PeerConnections; expected webrtc-internals' dump, or a report a line")
    return whole


def _internals(whole: Mapping[str, Any], problems: _Problems) -> Iterator[Connection]:
    for name, about in whole["PeerConnections"].items():
        found = about.get("stats") if isinstance(about, dict) else None
        if not isinstance(found, dict):
            continue
        series: dict[str, _Series] = {}
        for key, one in found.items():
            try:
                series[key] = _Series.of(one)
            except ValueError as error:
                problems.add(f"PeerConnections.{name}.stats.{key}: {error}")
        made = Connection(name, unix_s=0.0)
        for key, one in series.items():
            # an id may have the sign in it; names of members have none, but for those that webrtc-internals works out
            of, _, member = key.rpartition("-") if "-[" not in key else key.partition("-[")
            stat = made.stat(of)
            stat.type = one.type or stat.type
            stamps = series.get(f"{of}-timestamp")
            times = one.times(stamps)
            for at, value in zip(times, one.values, strict=True):
                stat.add(at, member, value)
        yield made


@dataclass
class _Series:
    """One member of one object: its values between two times."""

    start: float
    end: float
    values: list[Any]
    type: str

    @classmethod
    def of(cls, one: Any) -> _Series:
        if not isinstance(one, dict):
            raise ValueError(f"found {_short(one)}; expected startTime, endTime and values")  # noqa: TRY004
        values = one.get("values")
        values = _json(values) if isinstance(values, str) else values
        if not isinstance(values, list):
            raise ValueError(f"values: found {_short(values)}; expected a list")  # noqa: TRY004
        start, end = (_moment(one.get(key), key) for key in ("startTime", "endTime"))
        if end < start:
            raise ValueError(f"endTime: found {end:g} s, before startTime")
        return cls(start, end, values, str(one.get("statsType", "")))

    def times(self, stamps: _Series | None) -> list[float]:
        """When each value was read: by the stamps of its object, where there are any, else in even steps."""
        count = len(self.values)
        if stamps is not None and stamps.values:
            told = [None if (number := _number(one)) is None else number / 1000 for one in stamps.values]
            known = [one for one in told if one is not None]
            # a member that came later, or went, has fewer values; then its own times say which end it has
            if len(known) == len(told) >= count:
                return known[len(known) - count :] if self.end == stamps.end else known[:count]
        return list(np.linspace(self.start, self.end, count))


def _moment(value: Any, key: str) -> float:
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key}: found {_short(value)}; expected a time such as 2026-11-23T12:00:00.000Z") from None


# --- rtcstats -------------------------------------------------------------------------------------


def _rtcstats(text: str, problems: _Problems) -> list[Connection]:
    _, *lines = text.splitlines()
    try:
        about = _json(lines[0]) if lines else None
    except ValueError as error:
        raise InputError(f"line 2: is no JSON: {_said(error)}") from None
    version = about.get("fileFormat") if isinstance(about, dict) else None
    if version != FILE_FORMAT:
        raise InputError(f"line 2: found fileFormat {_short(version)}; expected {FILE_FORMAT}")
    all_of: dict[str, Connection] = {}
    now = 0.0
    for place, line in enumerate(lines[1:], 3):
        if not line.strip():
            continue
        try:
            event = _json(line)
            method, name, value, *_, later = event
            # stamps are differences, the first one from 1970
            now += float(later) / 1000
        except (ValueError, TypeError, OverflowError) as error:
            told = _said(error) if isinstance(error, json.JSONDecodeError) else f"found {_short(line)}"
            problems.add(f"line {place}: {told}; expected a list of method, connection, value and milliseconds")
            continue
        if method != "getStats":
            continue
        if not isinstance(value, dict) or not math.isfinite(now):
            problems.add(f"line {place}: found {_short(value)}; expected the objects of getStats by id")
            continue
        if any(member.isdigit() for one in value.values() if isinstance(one, dict) for member in one):
            raise InputError(f"line {place}: its members are numbers (rtcstats' compression); expected names")
        _take(all_of.setdefault(str(name), Connection(str(name), unix_s=0.0)), now, value)
    return list(all_of.values())
