"""Windows of recorded networks, spread over a folder by a rule, so that the same folder always gives the same ones.

The sources of a folder are the folders in it, in order of their names; files beside these are one more source. Each
source in turn gives a window until there are as many as wanted. The n-th window of a source comes from its files in
order of their names, spread evenly over them, and begins at n times the golden ratio of what could be its beginning,
to the second. Where the recording is shorter than the window, its mean capacity there is out of bounds, or a part of
it was taken before, the next places are tried, and then the source's next file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.errors import InputError
from tidegate.net import trace
from tidegate.suite.model import WindowsTable

_GOLDEN = (5**0.5 - 1) / 2
_SECOND = 1_000_000_000
_MOST_FILES = 100_000
_TRIES = 16  # places in one recording before the next one is asked


@dataclass(frozen=True)
class Window:
    """A part of a recorded network."""

    name: str
    """Source and file, with the second at which it begins."""
    title: str
    """Its mean capacity."""
    capacity: dict[str, Any]
    """Capacity of a link that plays the window."""
    length: str
    """Length of the window."""


def spread(folder: Path, table: WindowsTable) -> list[Window]:
    """The windows of a folder.

    Raises:
        InputError: when there is no such folder, or nothing in it is a recorded network that serves.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: the folder of recorded networks does not exist")
    sources = _sources(folder)
    streams = [_windows(folder, source, files, table) for source, files in sources.items()]
    picked: list[Window] = []
    while streams and len(picked) < table.count:
        for stream in list(streams):
            window = next(stream, None)
            if window is None:
                streams.remove(stream)
            else:
                picked.append(window)
    if not picked:
        least, most = table.between
        right = f"of at least {table.length} with a mean rate between {least} and {most}"
        raise InputError(f"{folder} has no recorded network {right}")
    return sorted(picked[: table.count], key=lambda window: window.name)


def _sources(folder: Path) -> dict[str, list[Path]]:
    sources: dict[str, list[Path]] = {}
    files = sorted(path for path in itertools.islice(folder.rglob("*"), _MOST_FILES) if path.is_file())
    for path in files:
        parts = path.relative_to(folder).parts
        if not any(part.startswith(".") for part in parts):
            sources.setdefault(parts[0] if len(parts) > 1 else "", []).append(path)
    return dict(sorted(sources.items()))


def _windows(folder: Path, source: str, files: list[Path], table: WindowsTable) -> Iterator[Window]:
    """The windows of one source, until a round over its files gives no more."""
    recordings = [(path, loaded) for path in files if (loaded := _read(path, table)) is not None]
    wanted = min(table.count, len(recordings))
    begins: dict[Path, list[int]] = {}
    for number in range(table.count if recordings else 0):
        # the first round is spread over all files; those that come after it go on from there
        first = int((number % wanted + 0.5) * len(recordings) / wanted)
        for path, loaded in recordings[first:] + recordings[:first]:
            begin = _place(loaded, number, table, begins.get(path, []))
            if begin is not None:
                begins.setdefault(path, []).append(begin)
                yield _window(folder, source, path, loaded, begin, table)
                break
        else:
            return


def _read(path: Path, table: WindowsTable) -> Any:
    try:
        loaded = trace.load(path)
    except InputError:
        return None  # a text about the recordings, or a format that needs to be told
    return loaded if loaded.duration_ns >= int(table.length) and loaded.mean_rate else None


def _place(loaded: Any, number: int, table: WindowsTable, begins: list[int]) -> int | None:
    """The second at which the window of that number, or one of the next, begins in a recording, if it can have one."""
    length = -(-int(table.length) // _SECOND)
    room = (loaded.duration_ns - int(table.length)) // _SECOND
    least, most = (int(rate) for rate in table.between)
    _, rates = loaded.series(_SECOND)
    for turn in range(number + 1, number + 1 + _TRIES):
        begin = int(turn * _GOLDEN % 1.0 * (room + 1))
        apart = all(abs(begin - earlier) >= length for earlier in begins)
        if apart and least <= _mean(rates, begin, length) <= most:
            return begin
    return None


def _mean(rates: Any, begin: int, length: int) -> float:
    return float(rates[begin : begin + length].mean())


def _window(folder: Path, source: str, path: Path, loaded: Any, begin: int, table: WindowsTable) -> Window:
    file = "/".join(path.relative_to(folder / source).parts)
    _, rates = loaded.series(_SECOND)
    mean = _mean(rates, begin, -(-int(table.length) // _SECOND))
    capacity = {"trace": str(path.resolve()), "offset": f"{begin}s"}
    name = f"{source or folder.name}/{file}@{begin}s"
    return Window(name, f"{mean / 1e6:.2f} Mbit/s on average", capacity, str(table.length))
