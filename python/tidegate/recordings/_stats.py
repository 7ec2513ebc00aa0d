"""Objects of getStats over a call, and the limits of files that have them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate._inputs import JSON, parse_json
from tidegate.errors import InputError

Floats = npt.NDArray[np.float64]

STREAMS = ("outbound-rtp", "inbound-rtp")

MOST_REPORTS = 500_000
"""Largest number of lines, or of reports in a list: six days of a report a second."""
REPORTS_BROKEN = 10_000
"""Number of broken lines, and of reports without a stream, after which a file is given up."""
_MOST_OBJECTS = 20_000
"""Largest number of objects of a connection: hundreds of participants who come and go, with some 50 each."""
_MOST_VALUES = 10_000_000
"""Largest number of values of a member in all streams, where reports leave out what is unchanged."""
_SHORT = 300
"""Length of a line that needs no estimate of its memory."""
_REPORTED = 5
"""Number of broken lines that are reported one by one."""

# names of types before Candidate Recommendation of W3C's webrtc-stats, which Firefox kept until 65
_OLD_TYPES = {
    "inboundrtp": "inbound-rtp", "outboundrtp": "outbound-rtp", "candidatepair": "candidate-pair",
    "localcandidate": "local-candidate", "remotecandidate": "remote-candidate",
}  # fmt: skip


COUNTERS = frozenset((
    "packetsSent", "packetsReceived", "bytesSent", "bytesReceived", "headerBytesSent", "headerBytesReceived",
    "retransmittedPacketsSent", "keyFramesEncoded", "framesEncoded", "framesDecoded", "framesDropped", "framesRendered",
    "nackCount", "pliCount", "freezeCount", "totalFreezesDuration", "frames",
))  # fmt: skip
"""Members that count from the beginning of their object (W3C webrtc-stats): lower than before, they began anew."""
_RESET_WITH = {"packetsLost": "packetsReceived"}
"""Members that may fall (RFC 3550 section 6.4.1), and those that begin anew together with them."""


@dataclass
class Stat:
    """One object of getStats over a call."""

    id: str
    type: str = ""
    """`outbound-rtp`, `inbound-rtp`, `candidate-pair` and so on."""
    members: dict[str, tuple[list[float], list[Any]]] = field(default_factory=lambda: defaultdict(lambda: ([], [])))
    """Times (Unix time or the file's own, in s) and values by name."""
    reports: Reports | None = None
    """Times of the reports that it is in, where a report names only members that changed; None where it names all."""

    def add(self, time: float, name: str, value: Any) -> None:
        """Adds the value of a member at a time; a time that is no later than the last is ignored."""
        times, values = self.members[name]
        if not times or time > times[-1]:
            times.append(time)
            values.append(value)

    def add_all(self, time: float, entry: dict[str, Any]) -> None:
        """Adds an object of a report."""
        for name, value in entry.items():
            self.add(time, name, value)
        self.type = _type(entry, self.type)

    def times(self) -> Floats:
        """Returns the times of the reports that it is in."""
        if self.reports is not None:
            return self.reports.times()
        return np.array(max((times for times, _ in self.members.values()), key=len, default=[]), float)

    def numbers(self, name: str) -> tuple[Floats, Floats]:
        """Returns times and values of a member, where it is a number; a counter that begins anew is added up."""
        times, values = self._numbers(name)
        resets = self._numbers(_RESET_WITH.get(name, name)) if name in COUNTERS or name in _RESET_WITH else None
        if resets is None or len(resets[1]) < 2:  # noqa: PLR2004
            return times, values
        added = np.zeros(len(values))
        for reset in resets[0][1:][np.diff(resets[1]) < 0]:
            place = int(np.searchsorted(times, reset))
            if 0 < place < len(values):
                added[place:] += values[place - 1]
        return times, values + added

    def resets(self) -> int:
        """Returns how often its counters began anew."""
        return max((int((np.diff(self._numbers(name)[1]) < 0).sum()) for name in COUNTERS), default=0)

    def _numbers(self, name: str) -> tuple[Floats, Floats]:
        times, values = self.members.get(name, ([], []))
        pairs = [
            (time, number)
            for time, value in zip(times, values, strict=True)
            if (number := as_number(value)) is not None
        ]
        columns = np.array(pairs, float).reshape(-1, 2)
        if self.reports is None or not len(columns):
            return columns[:, 0], columns[:, 1]
        # a value holds until another one is named
        reported = self.times()
        reported = reported[reported >= columns[0, 0]]
        return reported, columns[np.searchsorted(columns[:, 0], reported, side="right") - 1, 1]

    def last(self, name: str) -> Any:
        """Returns the last value of a member; None without one, or for a list or a table."""
        values = self.members.get(name, ([], []))[1]
        return values[-1] if values and isinstance(values[-1], str | int | float) else None

    def last_number(self, name: str) -> float | None:
        """Returns the last value of a member that is a number; None without one."""
        if name in COUNTERS or name in _RESET_WITH:
            counted = self.numbers(name)[1]
            return float(counted[-1]) if len(counted) else None
        values = self.members.get(name, ([], []))[1]
        return next((number for value in reversed(values) if (number := as_number(value)) is not None), None)

    @property
    def kind(self) -> Any:
        """`audio` or `video`; None where it is not known."""
        return self.last("kind") or self.last("mediaType")


def _type(entry: dict[str, Any], before: str) -> str:
    name = str(entry.get("type", before))
    name = _OLD_TYPES.get(name, name)
    # W3C's drafts until 2018 had the far end's reports as objects of the same type with this mark
    return f"remote-{name}" if name in STREAMS and entry.get("isRemote") in (True, "true") else name


@dataclass
class Reports:
    """The reports of a connection that an object is in: those from one on, until another."""

    of_connection: list[float]
    """Times of all reports, in s."""
    begin: int = 0
    end: int | None = None

    def times(self) -> Floats:
        """Returns their times."""
        return np.array(self.of_connection[self.begin : self.end], float)

    def __len__(self) -> int:
        """Number of them."""
        return (len(self.of_connection) if self.end is None else self.end) - self.begin


@dataclass
class Connection:
    """A peer connection with its objects of getStats."""

    name: str
    stats: dict[str, Stat] = field(default_factory=dict)
    unix_s: float | None = None
    """Unix time of the file's time 0, where it is known."""

    def stat(self, stat_id: str) -> Stat:
        """Returns the object with an id, which is added if it is new.

        Raises:
            InputError: when there are too many.
        """
        stat = self.stats.get(stat_id)
        if stat is None:
            if len(self.stats) >= _MOST_OBJECTS:
                raise InputError(f"{self.name}: found more than {_MOST_OBJECTS} objects; expected getStats of a call")
            stat = self.stats[stat_id] = Stat(stat_id)
        return stat

    def of_type(self, *types: str) -> list[Stat]:
        """Returns all objects of these types."""
        return [stat for stat in self.stats.values() if stat.type in types]

    def streams(self) -> list[Stat]:
        """Returns the streams; an object with nothing but its type is none."""
        return [stat for stat in self.of_type(*STREAMS) if stat.members]

    def check_size(self) -> None:
        """Checks that the values which reports leave out are not too many.

        Raises:
            InputError: when they are.
        """
        counted = self.of_type(*STREAMS, "remote-inbound-rtp", "media-source")
        values = sum(len(stat.reports) for stat in counted if stat.reports is not None)
        if values > _MOST_VALUES:
            problem = f"found {len(counted)} streams in so many reports that they have {values} values"
            raise InputError(f"{self.name}: {problem}; expected at most {_MOST_VALUES}")

    def span(self) -> tuple[float, float]:
        """Returns the first and the last time of a value; each member has at least one."""
        series = [times for stat in self.stats.values() for times, _ in stat.members.values()]
        series += [stat.reports.of_connection for stat in self.stats.values() if stat.reports is not None]
        return min(times[0] for times in series), max(times[-1] for times in series)

    def ssrcs(self, kind: str) -> set[int]:
        """Returns the SSRCs of all streams of a type."""
        numbers = (as_number(number.last("ssrc")) for number in self.of_type(kind))
        return {int(number) for number in numbers if number is not None}


def has_streams(connection: Connection) -> bool:
    """Whether a connection has a stream, of W3C's or of the older getStats."""
    return any(stat.type in (*STREAMS, "ssrc") for stat in connection.stats.values())


@dataclass
class Problems:
    """Lines that could not be parsed: the first ones in words, and their number."""

    first: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, problem: str) -> None:
        """Adds a line.

        Raises:
            InputError: when there are too many.
        """
        self.count += 1
        if self.count > REPORTS_BROKEN:
            raise InputError(f"more than {REPORTS_BROKEN} lines cannot be parsed, the first: {self.first[0]}")
        if len(self.first) < _REPORTED:
            self.first.append(problem)

    def all(self) -> list[str]:
        """Returns the first ones and the number of all others."""
        more = self.count - len(self.first)
        return [*self.first, *([f"{more} more lines that could not be parsed"] if more else [])]


Entries = Iterable[tuple[str, Any]]
"""Lines of a file, or what a list has, parsed, each with its place such as `line 3`."""


def parsed(text: str) -> Any:
    """Parses JSON; raises ValueError for invalid text, and for one that would need too much memory."""
    return parse_json(text, JSON.limit)


def split(text: str) -> list[str]:
    """Returns the lines of a file.

    Raises:
        InputError: when there are too many.
    """
    check_count(text.count("\n"), "lines")
    return text.splitlines()


def check_count(count: int, noun: str) -> None:
    """Checks the number of reports."""
    if count > MOST_REPORTS:
        right = f"expected at most {MOST_REPORTS}, which is six days of a report a second"
        raise InputError(f"found {count} {noun}; {right}")


def parsed_lines(lines: Iterable[str], first: int, problems: Problems, right: str) -> Entries:
    """Yields the lines that are JSON; others are problems."""
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            # most lines of a dump are short and have no escaped character
            entry = json.loads(line) if len(line) < _SHORT and "\\" not in line else parsed(line)
        except ValueError as error:
            problems.add(f"line {number}: not valid JSON: {parse_problem(error)}{right}")
            continue
        yield f"line {number}", entry


def parse_problem(error: ValueError) -> str:
    """Returns what is wrong in a text that was parsed as JSON."""
    return f"column {error.colno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)


def as_number(value: Any) -> float | None:
    """Returns a finite number, also from a string, as older dumps have them; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


_UNITS = ((1e14, 1e6), (1e11, 1e3), (1e9, 1.0))
"""Least stamp, and its units in a second: Unix time in microseconds (libwebrtc's own JSON), milliseconds (W3C) and
seconds."""


def as_stamp(value: Any) -> float | None:
    """Returns a stamp in seconds, also from a date; else None.

    Numbers that are smaller than those of Unix time are milliseconds.
    """
    number = as_number(value)
    if number is not None:
        return number / next((unit for least, unit in _UNITS if number >= least), 1000.0)
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def short(value: Any) -> str:
    """Returns the beginning of a value as JSON, for messages."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004
