"""Recorded frame sizes: the ladders of RFC 8593 section 6, read from text files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate._files import readable
from tidegate._inputs import FRAMES, decoded, read
from tidegate.errors import InputError, ScenarioError
from tidegate.units import Rate, show

_MOST_MATCHES = 1000  # files of a ladder, or folders with files of it; syncodecs has a dozen
_COLUMNS = 5  # frame, type, two more, size: both layouts of syncodecs' video_traces
LARGEST = 100_000_000
"""Largest frame size that a file may have, in bytes; the engine clips at 1 MB (RFC 8593 section 6.2.1)."""


@dataclass(frozen=True)
class Rung:
    """A recording of an encoder at one rate."""

    rate: Rate
    """Target rate of the encoder."""
    sizes: list[int]
    """Frame sizes in bytes."""
    unreferenced: list[int]
    """Numbers of the B frames, those of type `B`, from 0 on: to them no other frame refers."""
    path: Path
    """File that holds it."""
    sha256: str
    """SHA-256 of the file, hexadecimal."""


def ladder(base: Path, pattern: str) -> list[Rung]:
    """The recordings of a folder, or of a pattern, in ascending order of rate.

    Raises:
        InputError: when no file matches, or a file's name does not end in its rate in kbit/s.
        ScenarioError: names file and line of a line that does not describe a frame.
    """
    location = base / pattern
    if "**" in Path(pattern).parts:
        why = "** stands for all folders below, which may be a whole disk; name the folder, or a pattern of files in it"
        raise InputError(f"video.ladder: found {show(pattern)}; {why}")
    with readable(location):
        if location.is_dir():
            files = _matching(location, ["*.txt"], pattern)
        else:
            anchor = Path(location.anchor) if location.is_absolute() else Path()
            files = _matching(anchor, location.relative_to(anchor).parts, pattern)
    files = [file for file in files if file.name != "README.txt"]
    if not files:
        raise InputError(f"video.ladder: no file matches {show(pattern)}")
    rungs = sorted((_rung(file) for file in files), key=lambda rung: rung.rate)
    for lower, higher in itertools.pairwise(rungs):
        if lower.rate == higher.rate:
            both = f"{lower.path.name} and {higher.path.name}"
            raise InputError(f"video.ladder: {both} have the same rate ({lower.rate})")
    return rungs


def _matching(folder: Path, parts: Sequence[str], pattern: str) -> list[Path]:
    """The files that match, folder by folder, so that no pattern makes a walk through a whole disk."""
    matching = [folder]
    for part in parts:
        below = (path for folder in matching for path in folder.glob(part))
        matching = list(itertools.islice(below, _MOST_MATCHES + 1))
        if len(matching) > _MOST_MATCHES:
            raise InputError(
                f"video.ladder: over {_MOST_MATCHES} files or folders match {show(part)} in {show(pattern)}; "
                "expected a file of each rate"
            )
    return sorted(matching)


def _rung(path: Path) -> Rung:
    match = re.search(r"(\d+)$", path.stem)
    if match is None or not 0 < int(match[1]) < 10**7:
        raise InputError(f"{path}: expected a name that ends in the rate in kbit/s, as in chat_600.txt")
    content = read(path, FRAMES)
    sizes: list[int] = []
    unreferenced: list[int] = []
    for number, line in enumerate(decoded(content.data, path, FRAMES).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("%"):
            continue
        words = line.split()
        if len(words) != _COLUMNS or not words[-1].isascii() or not words[-1].isdigit():
            expected = "five columns: frame, type, two others, size in bytes"
            # without the text of the line: the file may be of any kind
            columns = f"{len(words)} columns" + (
                ", the last of which is not a whole number" if len(words) == _COLUMNS else ""
            )
            raise ScenarioError([f"{path}:{number}: found {columns}; expected {expected}"])
        size = int(words[-1][:12])
        if size > LARGEST:
            raise ScenarioError([f"{path}:{number}: found a frame of {size} bytes; expected at most {LARGEST} bytes"])
        if words[1] == "B":
            unreferenced.append(len(sizes))
        sizes.append(size)
    if not sizes:
        raise InputError(f"{path}: the file has no frames")
    return Rung(Rate(int(match[1]) * 1000), sizes, unreferenced, path, content.sha256)
