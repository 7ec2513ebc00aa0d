"""Recorded networks: reading, generating, and writing them in other formats."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar

from tidegate._core import Trace
from tidegate._files import readable
from tidegate._inputs import TRACE, Content, check_trace
from tidegate._inputs import read as read_input
from tidegate.errors import InputError, TraceError, located
from tidegate.units import Duration, Quantity, Rate

Q = TypeVar("Q", bound=Quantity)

_SHORTEST, _LONGEST = 10**6, 49 * 86_400 * 10**9  # ns that can be generated


def load(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    frequency: float | None = None,
    direction: Literal["down", "up"] | None = None,
    reference_rate: Rate | str | None = None,
) -> Trace:
    """Loads a recorded network; a file that gzip packed is unpacked.

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
    return load_with_sha256(path, format, frequency, direction, reference_rate)[0]


def load_with_sha256(
    path: str | Path,
    format: str | None = None,  # noqa: A002
    frequency: float | None = None,
    direction: Literal["down", "up"] | None = None,
    reference_rate: Rate | str | None = None,
) -> tuple[Trace, str]:
    """Loads a recorded network, and the SHA-256 of its file; arguments and errors are those of `load`."""
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
) -> tuple[Trace, str]:
    del stamp
    content = contents(path)
    return parse(path, content.data, format, frequency, direction, reference_rate), content.sha256


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
    if frequency is not None and not 0 < frequency < math.inf:
        raise InputError(f"frequency: found {frequency:g}; expected lines per second, more than zero")
    if not data:
        raise TraceError(f"{path}: the file is empty; expected a recorded network")
    try:
        check_trace(data, TRACE.limit)
    except ValueError as error:
        raise TraceError(f"{path}: {error}") from None
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


def contents(path: Path) -> Content:
    """Reads the file of a recorded network, unpacked, with the SHA-256 of the file as it was.

    Raises:
        InputError: when it cannot be read, or is over the limit of its kind.
    """
    return read_input(path, TRACE, unpack=True)


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
