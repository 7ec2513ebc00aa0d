"""Rates of one flow of a run over time, sent and received, beside its share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tidegate.suite.shares import Floats, Shares, between, grid

Stretch: TypeAlias = tuple[float, float]
"""Begin and end, in seconds."""

STARTUP = 5.0
"""Seconds of a flow's life that its share of the whole leaves out: when it begins it does not know the network."""
QUIET_AFTER = 10.0
"""Seconds after a beginning or an event from which on worst windows and static periods count. Ours: RFC 8868 has no
number; RFC 8869 section 3.2.4 expects reactions "within 10s of seconds"."""
WINDOW = 5.0
"""Seconds in which a rate must not starve, and for which it has to stay where it has converged: the middle one of the
three intervals of RFC 8868 section 3, metric 7."""
NEAR = 0.25
"""Relative distance from the share within which a rate has converged. Ours: RFC 8868 says "a stable rate". The encoder
of RFC 8593 swings by itself: frames of scale_b 0.15 have a deviation of 0.15 sqrt(2), and the mean over a second of 30
of them one of 3.9 %, so that 15 % below nine tenths of the share is nearly four of these."""
SWING = 0.5
"""Seconds over which rates are taken for oscillation: the time window of RFC 8868 section 3, metric 9."""


class Rates:
    """One flow: bits over time, and the numbers that follow from them."""

    def __init__(self, name: str, series: Mapping[str, Floats], shares: Shares | None, lives: list[Stretch]) -> None:
        self.name = name
        self.shares = shares if shares is not None and name in shares.demands else None
        self.lives = lives
        self.series = series
        self.start = series["t_s"]
        self.width = round(float(np.min(np.diff(self.start))), 9) if len(self.start) > 1 else 0.0
        self._edges = np.append(self.start, self.start[-1:] + self.width)
        self._received = self._total("receive_rate_bps")
        self._sent = self._total("sending_rate_bps")

    def _total(self, column: str) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.series[column] * self.width)])

    def received(self, begin: Floats | float, end: Floats | float) -> Floats:
        """Bits that arrived between two times."""
        return between(self._edges, self._received, begin, end)

    @property
    def can_converge(self) -> bool:
        """Whether it has a share that a rate can converge to: no link on its path changes all the time."""
        return self.shares is not None and not self.shares.restless & set(self.shares.demands[self.name].way)

    @cached_property
    def events(self) -> list[tuple[float, str, float]]:
        """Events to which it must react: time, description, and end, which is the next event or its own end."""
        if self.shares is None or not self.can_converge:
            return []
        dated = [(event.at_s, event.description) for event in self.shares.concerning(self.name)]
        ends = sorted([*(time for time, _ in dated), *(end for _, end in self.lives)])
        return [(time, happening, next(end for end in ends if end > time)) for time, happening in dated]

    @cached_property
    def convergence(self) -> list[dict[str, Any]]:
        """Convergence after each event that leaves time for it: seconds, or `None` if the rate did not converge."""
        return [
            {
                "at_s": time,
                "what": happening,
                "flow": self.name,
                "seconds": self._converged_after(time, until),
                "until_s": until,
            }
            for time, happening, until in self.events
            if until - time >= WINDOW
        ]

    def _converged_after(self, begin: float, until: float) -> float | None:
        assert self.shares is not None  # noqa: S101
        # means over one second, that begin a bin apart
        starts = grid(begin, self.width, int((until - begin - 1.0) / self.width + 1e-6) + 1)
        got, could = self.received(starts, starts + 1.0), self.shares.bits(self.name, starts, starts + 1.0)
        near = np.abs(got - could) <= NEAR * could + 1e-6
        held = round((WINDOW - 1.0) / self.width) + 1
        for first in range(len(starts) - held + 1):
            if near[first : first + held].all():
                return round(float(starts[first] - begin), 6)
        return None

    def numbers(self) -> dict[str, float | None]:
        """Measures of the flow; `None` for one without a value."""
        return {
            **self._of_share(),
            **self._of_convergence(),
            **self._of_static_periods(),
            "receive_rate_min_bps": least(self.received(a, b) / WINDOW for a, b in self._windows()),
            "receive_rate_max_bps": greatest(self.received(a, b) / WINDOW for a, b in self._windows()),
            **self._of_bins(),
        }

    def _of_share(self) -> dict[str, float | None]:
        fraction = worst = None
        if self.shares is not None and self.lives:
            begin, end = self.lives[0][0] + STARTUP, self.lives[-1][1]
            could = float(self.shares.bits(self.name, begin, end)) if begin < end else 0.0
            fraction = ratio(float(self.received(begin, end)), could)
            worst = least(self._shares_of_windows())
        return {"share_fraction": fraction, "share_min_5s": worst}

    def _shares_of_windows(self) -> Iterable[Floats]:
        assert self.shares is not None  # noqa: S101
        for begin, end in self._windows():
            could = self.shares.bits(self.name, begin, end)
            defined = (could > 0) & ~self.shares.nothing(self.name, begin, end)
            if np.isfinite(could).all() and defined.any():
                yield self.received(begin, end)[defined] / could[defined]

    def _windows(self) -> Iterable[tuple[Floats, Floats]]:
        """Beginnings and ends of all windows in which it has data to send, from 10 s after its start on."""
        for begin, end in self.lives:
            first = max(begin, self.lives[0][0] + QUIET_AFTER)
            yield windows(self._edges, first, end, WINDOW)

    def _of_convergence(self) -> dict[str, float | None]:
        times = [
            event["until_s"] - event["at_s"] if event["seconds"] is None else float(event["seconds"])
            for event in self.convergence
        ]
        mean = sum(times) / len(times) if times else None
        return {"convergence_s_max": max(times, default=None), "convergence_s_mean": mean}

    def _of_static_periods(self) -> dict[str, float | None]:
        """Steadiness of its sending rate in periods without events."""
        lengths, spans, stds, swings = [], [], [], 0.0
        for begin, end in static(((time, until) for time, _, until in self.events)):
            count = int((end - begin) / SWING + 1e-6)
            if count < 2 * round(WINDOW / SWING):
                continue  # too few for a quantile
            starts = grid(begin, SWING, count)
            rates = between(self._edges, self._sent, starts, starts + SWING) / SWING
            mean = float(rates.mean())
            lengths.append(count * SWING)
            low, high = np.quantile(rates, [0.05, 0.95])
            spans.append(float(high - low))
            stds.append(float(rates.std()) / mean if mean > 0 else 0.0)
            swings += full_swings(rates, 0.8 * mean, 1.2 * mean)
        total = sum(lengths)
        if not total:
            return dict.fromkeys(("steady_oscillation_hz", "oscillation_bps", "rate_std_fraction"))
        return {
            "steady_oscillation_hz": swings / total,
            "oscillation_bps": sum(span * length for span, length in zip(spans, lengths, strict=True)) / total,
            "rate_std_fraction": sum(std * length for std, length in zip(stds, lengths, strict=True)) / total,
        }

    def _of_bins(self) -> dict[str, float | None]:
        names = ("receive_rate_bin_min_bps", "receive_rate_bin_max_bps", "receive_rate_bin_std_bps")
        alive = np.zeros(len(self.start), dtype=bool)
        for begin, end in self.lives:
            first = max(begin, self.lives[0][0] + STARTUP)
            alive |= (self.start >= first - 1e-9) & (self.start + self.width <= end + 1e-9)
        rates = self.series["receive_rate_bps"][alive]
        if not len(rates):
            return dict.fromkeys(names)
        return dict(zip(names, (float(rates.min()), float(rates.max()), float(rates.std())), strict=True))


def windows(edges: Floats, first: float, last: float, length: float) -> tuple[Floats, Floats]:
    """Beginnings and ends of all windows of a length that begin at an edge and are between two times."""
    begin = edges[(edges >= first - 1e-9) & (edges + length <= last + 1e-9)]
    return begin, begin + length


def static(between: Iterable[Stretch]) -> list[Stretch]:
    """The parts of stretches between events in which rates have had time to converge."""
    return [(begin + QUIET_AFTER, end) for begin, end in between if end - begin > QUIET_AFTER]


def full_swings(rates: Floats, low: float, high: float) -> float:
    """Counts swings from under the low watermark over the high one and back (RFC 8868 section 3, metric 9)."""
    sides = np.where(rates > high, 1, np.where(rates < low, -1, 0))
    sides = sides[sides != 0]
    return float(np.count_nonzero(np.diff(sides))) / 2


def ratio(numerator: float, denominator: float) -> float | None:
    """Returns a ratio; `None` where it is no number."""
    return numerator / denominator if denominator > 0 and np.isfinite(denominator) else None


def least(arrays: Iterable[Floats]) -> float | None:
    """Returns the smallest element of all arrays."""
    return min((float(values.min()) for values in arrays if len(values)), default=None)


def greatest(arrays: Iterable[Floats]) -> float | None:
    """Returns the largest element of all arrays."""
    return max((float(values.max()) for values in arrays if len(values)), default=None)
