"""Rules and limits that the checks of several tables share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

from tidegate.scenario.explain import Path, Problem
from tidegate.units import Duration, Quantity, Rate, Size

IP_PACKET = 65_535
"""Bytes of the largest IP packet (RFC 791)."""
MAX_OVERHEAD = Size(1000)
"""Largest size of the headers below RTP."""
MAX_RATE = Rate(10**12)
"""Largest rate of a sender: a packet of 1500 bytes then takes 12 ns, and the clock ticks in ns."""
MIN_INTERVAL = Duration(1_000_000)
"""Shortest interval of periodic events: reports, audio packets, and requests of key frames."""
MAX_BINS = 10_000_000
"""Largest number of bins of all series together, and of intervals of a generated link in a run."""


class Rule(ABC):
    """A check of a key's value beyond its type, as in `Annotated[Rate, POSITIVE]`; `Model.problems` applies it."""

    @abstractmethod
    def problems(self, path: Path, value: Any) -> Iterator[Problem]:
        """Yields a problem if the value at `path` breaks the rule."""


@dataclass(frozen=True)
class Bounds(Rule):
    """Bounds of a quantity; a word instead of a quantity (such as "auto") always passes."""

    minimum: Quantity | None = None
    maximum: Quantity | None = None
    positive: bool = False
    """Whether the quantity has to be more than zero."""

    def problems(self, path: Path, value: object) -> Iterator[Problem]:
        """Yields a problem for a value out of bounds."""
        if not isinstance(value, Quantity):
            return
        low, high = self.minimum is not None and value < self.minimum, self.maximum is not None and value > self.maximum
        if self.positive and not value:
            yield Problem(path, f'found "{value}"; expected more than zero')
        elif low or high:
            yield Problem(path, f'found "{value}"; expected {self}')

    def __str__(self) -> str:
        """The bounds in words, such as "from 1ms to 60s" or "at most 60s"."""
        if self.minimum is not None and self.maximum is not None:
            return f"from {self.minimum} to {self.maximum}"
        return f"at most {self.maximum}" if self.minimum is None else f"at least {self.minimum}"


POSITIVE = Bounds(positive=True)
TIMER = Bounds(MIN_INTERVAL, positive=True)
"""Bounds of a timer's interval: long enough that a run ends."""
SENDING_RATE = Bounds(maximum=MAX_RATE, positive=True)
"""Bounds of a sender's rate: more than zero, and low enough that time passes between two packets."""


class InSteps(Rule):
    """Requires that the first step is at zero and that steps are in order of time."""

    def problems(self, path: Path, value: Sequence[tuple[Duration, Any]]) -> Iterator[Problem]:
        """Yields a problem for a late first step, and for the first step that is out of order."""
        times = [time for time, _ in value]
        if times and times[0] != 0:
            yield Problem((*path, 0), f'the first step is at "{times[0]}"; expected "0s"')
        for position, (earlier, later) in enumerate(pairwise(times), 1):
            if later <= earlier:
                yield Problem(
                    (*path, position), f'the step at "{later}" follows "{earlier}"; expected steps in order of time'
                )
                return


class SendingRates(InSteps):
    """Requires that a sender's rate is in bounds in each step; zero is allowed, too."""

    def problems(self, path: Path, value: Sequence[tuple[Duration, Rate]]) -> Iterator[Problem]:
        """Yields a problem for each rate out of bounds, and those of the steps."""
        for position, (_, rate) in enumerate(value):
            if rate:
                yield from SENDING_RATE.problems((*path, position), rate)
        yield from super().problems(path, value)


RateStep = Annotated[tuple[Duration, Rate], Field(strict=False)]
SendingSchedule = Annotated[list[RateStep], SendingRates()]
"""Pairs of a time and the rate of a sender from then on."""


def order(low: tuple[str, Quantity], high: tuple[str, Quantity], path: Path) -> Iterator[Problem]:
    """Yields a problem if `low` is above `high`; both come with their keys below `path`."""
    if low[1] > high[1]:
        message = f'found "{low[1]}"; expected at most {high[0]} ({high[1]})'
        yield Problem((*path, low[0]), message)
