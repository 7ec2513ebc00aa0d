"""What the checks of several tables have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.scenario.explain import Path, Problem
from tidegate.units import Duration, Quantity, Rate, Size

IP_PACKET = 65_535
"""Bytes of the largest IP packet (RFC 791)."""
MOST_OVERHEAD = Size(1000)
"""Of the headers below RTP."""
MOST_RATE = Rate(10**12)
"""Of a sender: 12 ns for a packet of 1500 bytes, where the clock ticks in ns."""
LEAST_INTERVAL = Duration(1_000_000)
"""Of what is done again and again: of reports, audio, and requests of key frames."""
MOST_BINS = 10_000_000
"""Of series, and of statuses one after the other."""


def positive(path: Path, value: Quantity) -> Problem:
    """`value` should not have been zero."""
    return Problem(path, f'found "{value}"; expected more than zero')


def timer(path: Path, interval: Duration) -> Iterator[Problem]:
    """What happens once each interval: so seldom that a run ends."""
    if not interval:
        yield positive(path, interval)
    elif interval < LEAST_INTERVAL:
        yield Problem(path, f'found "{interval}"; expected at least {LEAST_INTERVAL}')


def order(low: tuple[str, Quantity], high: tuple[str, Quantity], path: Path) -> Iterator[Problem]:
    """`low` must not be above `high`; both with their keys below `path`."""
    if low[1] > high[1]:
        what = f'found "{low[1]}"; expected at most {high[0]} ({high[1]})'
        yield Problem((*path, low[0]), what)


def within(path: Path, value: Quantity, least: Quantity, most: Quantity) -> Iterator[Problem]:
    """`value` must lie between two others."""
    if not least <= value <= most:
        yield Problem(path, f'found "{value}"; expected from {least} to {most}')


def steps(steps: Sequence[tuple[Duration, object]], path: Path) -> Iterator[Problem]:
    """What is said from a time on begins at zero and is in order of time."""
    if steps and steps[0][0] != 0:
        yield Problem((*path, 0), f'begins at "{steps[0][0]}"; the first step is at "0s"')
    for position in range(1, len(steps)):
        before, here = steps[position - 1][0], steps[position][0]
        if here <= before:
            what = f'"{here}" after "{before}"; steps are in order of time'
            yield Problem((*path, position), what)
            return


def rate(path: Path, rate: Rate) -> Iterator[Problem]:
    """A rate of a sender: some, and not so much that time cannot pass between two packets."""
    if not rate:
        yield positive(path, rate)
    if rate > MOST_RATE:
        yield Problem(path, f'found "{rate}"; expected at most {MOST_RATE}')


def rates(path: Path, steps: Sequence[tuple[Duration, Rate]]) -> Iterator[Problem]:
    """Rates of a sender from times on; it may fall silent in between."""
    for position, (_, one) in enumerate(steps):
        if one:
            yield from rate((*path, position), one)
