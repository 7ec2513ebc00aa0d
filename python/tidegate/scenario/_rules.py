"""What the checks of several tables have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

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


class Rule:
    """A rule for the values of a key beside its type: `Annotated[Rate, POSITIVE]`; `Model.problems` asks it."""

    def problems(self, path: Path, value: Any) -> Iterator[Problem]:
        """What is wrong with the value at `path`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Bounds(Rule):
    """The bounds of a quantity; a word in its place has none."""

    least: Quantity | None = None
    most: Quantity | None = None
    positive: bool = False
    """Whether it has to be more than zero."""

    def problems(self, path: Path, value: object) -> Iterator[Problem]:
        """What is wrong with a value out of bounds."""
        if not isinstance(value, Quantity):
            return
        low, high = self.least is not None and value < self.least, self.most is not None and value > self.most
        if self.positive and not value:
            yield Problem(path, f'found "{value}"; expected more than zero')
        elif low or high:
            yield Problem(path, f'found "{value}"; expected {self}')

    def __str__(self) -> str:
        """Both, or the one that there is."""
        if self.least is not None and self.most is not None:
            return f"from {self.least} to {self.most}"
        return f"at most {self.most}" if self.least is None else f"at least {self.least}"


POSITIVE = Bounds(positive=True)
TIMER = Bounds(LEAST_INTERVAL, positive=True)
"""Of what happens once each interval: so seldom that a run ends."""
SENDING_RATE = Bounds(most=MOST_RATE, positive=True)
"""Of a sender: some, and not so much that time cannot pass between two packets."""


class InSteps(Rule):
    """What is said from a time on begins at zero and is in order of time."""

    def problems(self, path: Path, value: Sequence[tuple[Duration, Any]]) -> Iterator[Problem]:
        """What is wrong with steps."""
        times = [time for time, _ in value]
        if times and times[0] != 0:
            yield Problem((*path, 0), f'begins at "{times[0]}"; the first step is at "0s"')
        for position, (before, here) in enumerate(pairwise(times), 1):
            if here <= before:
                yield Problem((*path, position), f'"{here}" after "{before}"; steps are in order of time')
                return


class SendingRates(InSteps):
    """Rates of a sender from times on; it may fall silent in between."""

    def problems(self, path: Path, value: Sequence[tuple[Duration, Rate]]) -> Iterator[Problem]:
        """What is wrong with steps, and with the rates in them."""
        for position, (_, rate) in enumerate(value):
            if rate:
                yield from SENDING_RATE.problems((*path, position), rate)
        yield from super().problems(path, value)


RateStep = Annotated[tuple[Duration, Rate], Field(strict=False)]
SendingSchedule = Annotated[list[RateStep], SendingRates()]
"""Pairs of a time and the rate of a sender from then on."""


def order(low: tuple[str, Quantity], high: tuple[str, Quantity], path: Path) -> Iterator[Problem]:
    """`low` must not be above `high`; both with their keys below `path`."""
    if low[1] > high[1]:
        what = f'found "{low[1]}"; expected at most {high[0]} ({high[1]})'
        yield Problem((*path, low[0]), what)
