"""Files of recordings, as bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate import _core
from tidegate._inputs import JSON, RECORDING, too_large
from tidegate._inputs import read as read_input
from tidegate.errors import InputError
from tidegate.recordings._getstats import looks_like

GETSTATS = "getStats"
CAPTURE = "capture"

READABLE = (
    "an RTC event log (format 2), a capture (pcap, pcapng), rtpdump, Janus' .mjr, or getStats (a dump of "
    "webrtc-internals or rtcstats, JSON lists or lines)"
)
"""All that can be imported, for messages."""

_BEGINNING = 512
"""Bytes by which a file is told to be text: an event log of format 1, which begins as an empty line does, has a control
character by then."""


@dataclass(frozen=True)
class File:
    """A file that was read."""

    path: Path
    data: bytes
    """What it holds; unpacked, where it was packed by gzip."""
    format: str
    """`event log`, `capture` or `getStats`."""

    @property
    def about(self) -> Mapping[str, str]:
        """Its name, and the hash of what it holds."""
        return {"file": self.path.name, "format": self.format, "sha256": hashlib.sha256(self.data).hexdigest()}


def read(path: Path) -> File:
    """Reads a recording.

    Raises:
        InputError: when it cannot be read, or is none that can be imported.
    """
    data = read_input(path, RECORDING, unpack=True).data
    if looks_like(data):
        if len(data) > JSON.limit:
            raise InputError(too_large(path, JSON))
        return File(path, data, GETSTATS)
    if _is_text(data[:_BEGINNING]):
        raise InputError(f"{path}: found text that is no JSON; expected {READABLE}")
    try:
        return File(path, data, _core.recording_format(data))
    except ValueError as error:
        raise InputError(f"{path}: {error}; expected {READABLE}") from None


def _is_text(beginning: bytes) -> bool:
    text = beginning.decode("utf-8", errors="ignore")
    # a character that is cut at the end is left out
    whole = len(beginning) - len(text.encode()) < len("\U0001f600".encode())
    return bool(text) and whole and all(sign.isprintable() or sign in "\t\n\r\f" for sign in text)
