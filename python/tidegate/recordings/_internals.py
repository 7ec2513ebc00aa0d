"""Reader of webrtc-internals' dump, one JSON object.

`PeerConnections`, each with `stats` by `ID-MEMBER`, each of these with `startTime`, `endTime` and `values`, a list as a
string (`chrome/browser/resources/webrtc_internals` of Chromium). Older ones have no series `ID-timestamp`, those before
2020 no `statsType`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from tidegate.recordings._stats import Connection, Problems, as_stamp, parsed, short

KEY = "PeerConnections"


def connections(dump: Mapping[str, Any], problems: Problems) -> Iterator[Connection]:
    """Yields the connections of a dump."""
    for name, about in dump[KEY].items():
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
            raise ValueError(f"found {short(entry)}; expected startTime, endTime and values")  # noqa: TRY004
        values = entry.get("values")
        values = parsed(values) if isinstance(values, str) else values
        if not isinstance(values, list):
            raise ValueError(f"values: found {short(values)}; expected a list")  # noqa: TRY004
        start, end = (_moment(entry.get(key), key) for key in ("startTime", "endTime"))
        if end < start:
            raise ValueError(f"endTime: found {end:g} s, before startTime")
        return cls(start, end, values, str(entry.get("statsType", "")))

    def times(self, stamps: _Series | None) -> list[float]:
        """Returns the time of each value: by the stamps of its object, or else in even steps."""
        count = len(self.values)
        if stamps is not None and stamps.values:
            readings = [as_stamp(reading) for reading in stamps.values]
            defined = [reading for reading in readings if reading is not None]
            # a member with a later begin or an earlier end has fewer values; its own times tell which
            if len(defined) == len(readings) >= count:
                return defined[len(defined) - count :] if self.end == stamps.end else defined[:count]
        return list(np.linspace(self.start, self.end, count))


def _moment(value: Any, key: str) -> float:
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key}: found {short(value)}; expected a time such as 2026-11-23T12:00:00.000Z") from None
