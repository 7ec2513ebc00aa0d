"""Recorded networks: reading, generating, and writing them in other formats."""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar

from tidegate._core import Trace
from tidegate._files import readable
from tidegate.errors import InputError, TraceError, located
from tidegate.units import Duration, Quantity, Rate

Q = TypeVar("Q", bound=Quantity)

_LARGEST = 512 * 2**20  # bytes unpacked: hours of full-rate recording, and far below the memory
_SHORTEST, _LONGEST = 10**6, 49 * 86_400 * 10**9  # ns that can be generated


def load(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    frequency: float | None = None,
    direction: Literal["down", "up"] | None = None,
    reference_rate: Rate | str | None = None,
) -> Trace:
    """Loads a recorded network; `.gz` files are unpacked.

    Args:
        path: The file.
        format: Its format; by default detected from its contents.
        frequency: Lines per second, for formats without times (hertz).
        direction: The direction, for formats that hold both; by default the usual one of the format: down for `raca`,
            up for `opennetlab`.
        reference_rate: Rate for a ratio of 1, for formats that hold ratios.

    Raises:
        TraceError: names file, line, what was found and what would be right.
        InputError: when the file cannot be read.
    """
    path = Path(path)
    rate = None if reference_rate is None else _parse_quantity("reference_rate", Rate, reference_rate)
    with readable(path):
        stamp = path.stat().st_mtime_ns
    return _load(path, stamp, format, frequency, direction, rate)


@lru_cache(maxsize=32)
def _load(
    path: Path,
    stamp: int,  # a changed file is another file
    format: str | None,  # noqa: A002
    frequency: float | None,
    direction: Literal["down", "up"] | None,
    reference_rate: Rate | None,
) -> Trace:
    del stamp
    return parse(path, contents(path), format, frequency, direction, reference_rate)


def parse(
    path: Path,
    data: bytes,
    format: str | None = None,  # noqa: A002
    frequency: float | None = None,
    direction: Literal["down", "up"] | None = None,
    reference_rate: Rate | None = None,
) -> Trace:
    """Parses a recorded network from the unpacked bytes of its file; the arguments are those of `load`.

    Raises:
        TraceError: names file, line, what was found and what would be right.
    """
    if not data:
        raise TraceError(f"{path}: is empty; expected a recorded network")
    try:
        return Trace.parse(
            str(path),
            data,
            format=format,
            frequency_hz=frequency,
            direction=direction,
            reference_rate=None if reference_rate is None else int(reference_rate),
        )
    except ValueError as error:
        raise TraceError(str(error)) from None


def _parse_quantity(name: str, kind: type[Q], text: object) -> Q:
    with located(name):
        return kind.parse(text)


def contents(path: Path) -> bytes:
    """Reads the file of a recorded network, unpacked.

    Raises:
        InputError: when it cannot be read, or is too long.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; expected a file")
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise TraceError(f"{path}: is no gzip file, or is cut short") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise TraceError(f"{path}: is over {_LARGEST // 2**20} MiB long")
    return data


def generate(
    *,
    seed: int,
    duration: Duration | str,
    start: Rate | str = "5Mbps",
    max: Rate | str = "12Mbps",  # noqa: A002
    sigma: Rate | str = "2.4Mbps",
    outage_escape: float = 1.0,
) -> Trace:
    """Generates a cellular link by the process of Winstein et al. (NSDI 2013, section 3).

    Args:
        seed: Seed; the same seed gives the same link.
        duration: Duration of the trace.
        start: Rate at the beginning.
        max: Maximum rate.
        sigma: Standard deviation of the rate's change over one second.
        outage_escape: Rate at which outages end, per second.

    Raises:
        InputError: when a value is wrong.
    """
    span = _parse_quantity("duration", Duration, duration)
    if not _SHORTEST <= span <= _LONGEST:
        raise InputError(f'duration: found "{span}"; expected from {Duration(_SHORTEST)} to {Duration(_LONGEST)}')
    if not 0 <= seed < 2**64:
        raise InputError(f"seed: found {seed}; expected a whole number from 0 to 2^64 - 1")
    first, largest = _parse_quantity("start", Rate, start), _parse_quantity("max", Rate, max)
    if first > largest:
        raise InputError(f'start: found "{first}"; expected at most max ({largest})')
    try:
        return Trace.generate(
            "brownian",
            seed,
            int(span),
            start=int(first),
            max=int(largest),
            sigma=int(_parse_quantity("sigma", Rate, sigma)),
            outage_escape=outage_escape,
        )
    except ValueError as error:
        raise InputError(str(error)) from None


__all__ = ["Trace", "generate", "load"]
