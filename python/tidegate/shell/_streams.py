"""RTP streams of a session: packets sent and lost, and complete frames."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.errors import InputError

_LEAST = 20
"""Least packets of a stream: by chance one payload in four looks like RTP."""
_MOST = 4096
"""SSRCs that are followed at once, so that a flood of them does not fill the memory.

Beyond, those with fewer than `_LEAST` packets are forgotten, then new ones left out."""
_IN_ORDER = 0.9
"""The share of a stream's packets whose sequence number is one of the next few."""
_FEW = 16
_ARRIVED = {"arrives", "arrives marked"}


@dataclass
class Stream:
    """One RTP stream; all of this is readable in SRTP, too, where only the payload is encrypted."""

    flow: str
    """Its flow in the run: `A-1` and so on."""
    ssrc: int
    """Its synchronisation source."""
    payload_type: int
    """Payload type of its first packet."""
    packets: int = 0
    """Packets that were sent."""
    lost: int = 0
    """Packets that died on the links."""
    size: int = 0
    """Bytes of IP packets that were sent."""
    first_ns: int = 0
    """Time at which its first packet was sent."""
    last_ns: int = 0
    """Time at which its last packet was sent."""
    _frames: dict[int, bool] = field(default_factory=dict, repr=False)
    _steps: int = field(default=0, repr=False)
    _sequence: int | None = field(default=None, repr=False)

    @property
    def frames(self) -> int:
        """Number of RTP timestamps: frames of video, packets of audio."""
        return len(self._frames)

    @property
    def whole_frames(self) -> int:
        """Frames of which no packet was lost on the links."""
        return sum(self._frames.values())

    @property
    def rate_bps(self) -> float:
        """Mean rate sent between its first and its last packet, bit/s."""
        return self.size * 8e9 / (self.last_ns - self.first_ns) if self.last_ns > self.first_ns else 0.0

    def __str__(self) -> str:
        """Flow, SSRC, packets, losses, rate and frames, as text."""
        label = f"{self.flow} SSRC {self.ssrc:#010x} (payload type {self.payload_type})"
        sent = f"{self.packets} packets, {self.lost} lost, {self.rate_bps / 1e3:.0f} kbit/s"
        return f"{label}: {sent}, {self.whole_frames} of {self.frames} frames whole"

    def _add(self, row: dict[str, str], fate: str | None) -> None:
        sent_ns, sequence, timestamp = int(row["at_ns"]), int(row["sequence"]), int(row["timestamp"])
        if self._sequence is not None:
            self._steps += 1 <= (sequence - self._sequence) % 65536 <= _FEW
        self._sequence = sequence
        if not self.packets:
            self.first_ns = sent_ns
        self.last_ns = sent_ns
        self.packets += 1
        self.size += int(row["size"])
        # a packet under way at the end is not lost, and its frame is not complete
        self.lost += fate is not None and fate not in _ARRIVED
        self._frames[timestamp] = self._frames.get(timestamp, True) and fate in _ARRIVED

    @property
    def _is_rtp(self) -> bool:
        return self.packets >= _LEAST and self._steps >= _IN_ORDER * (self.packets - 1)


def streams(folder: str | Path) -> list[Stream]:
    """The RTP streams of a session, from its `arrivals.csv` and `fates.csv`, in the order in which they began.

    Raises:
        InputError: when one of them is missing or damaged.
    """
    fates: dict[str, str] = {}
    by_source: dict[tuple[str, str], Stream] = {}

    def ending(row: dict[str, str]) -> None:
        fates[row["number"]] = row["fate"]

    def arrival(row: dict[str, str]) -> None:
        if not row["ssrc"]:
            return
        flow = f"{row['from']}-{row['flow']}"
        key = (flow, row["ssrc"])
        if key not in by_source:
            if len(by_source) >= _MOST:
                for stale in [key for key, stream in by_source.items() if stream.packets < _LEAST]:
                    del by_source[stale]
            if len(by_source) >= _MOST:
                return
            by_source[key] = Stream(flow, int(row["ssrc"]), int(row["payload_type"]))
        by_source[key]._add(row, fates.get(row["number"]))  # noqa: SLF001

    _each(Path(folder) / "fates.csv", ending)
    _each(Path(folder) / "arrivals.csv", arrival)
    return [stream for stream in by_source.values() if stream._is_rtp]  # noqa: SLF001


def _each(file: Path, take: Callable[[dict[str, str]], None]) -> None:
    """Passes each row of a file to `take`; an error names the line."""
    line = 1
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            for row in csv.DictReader(opened):
                line += 1
                take(row)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise InputError(f"{file}: line {line}: found an entry that sessions do not write: {error}") from None
