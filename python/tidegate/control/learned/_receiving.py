"""Common parts of estimators at the receiver: times of sending, the interval of estimates, and REMB to the sender."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidegate import _core
from tidegate.control import Arrived, Ask, Controller, Decision, Limits, Needs, ReceiverHalf, Report
from tidegate.units import show

if TYPE_CHECKING:
    from tidegate._core import _Packet

PACE_FACTOR = 2.5
"""The pacer sends so many times the estimate (libwebrtc `PacingController::kDefaultPaceMultiplier`; OpenNetLab gym
`ns-app/scratch/webrtc_test/gym_connector.cc` `kPacingFactor`)."""

MOST = 10**12
"""Largest valid estimate, bit/s (ours: beyond any line)."""

_TICKS = 1 << 18  # of abs-send-time in a second
_WRAP = 1 << 24
_STREAMS = 255  # a REMB names at most so many (draft-alvestrand-rmcat-remb-03 section 2.2: 8 bits)


class SendTimes:
    """Times of sending from abs-send-time, of which 24 bits of 2^-18 s travel: they wrap every 64 s.

    >>> times = SendTimes()
    >>> [times.ticks(stamp) for stamp in (2**24 - 1, 2, 2**24 - 2)]
    [16777215, 16777218, 16777214]
    """

    def __init__(self) -> None:
        self._newest: int | None = None

    def ticks(self, abs_send_time: int) -> int:
        """The reading nearest to the newest one so far, in 2^-18 s."""
        if self._newest is None:
            self._newest = abs_send_time
        half = _WRAP // 2
        ticks = self._newest + (abs_send_time - self._newest + half) % _WRAP - half
        self._newest = max(self._newest, ticks)
        return ticks

    @staticmethod
    def ns(ticks: int) -> int:
        """The same in nanoseconds, to the nearest one."""
        return (ticks * 10**9 + _TICKS // 2) // _TICKS

    @staticmethod
    def ms(ticks: int) -> int:
        """The same in milliseconds, to the nearest one (AlphaRTC `RemoteEstimatorProxy::GetTtimeFromAbsSendtime`)."""
        return (ticks * 1000 + _TICKS // 2) // _TICKS


class Follower(Controller):
    """The sending half: its rate is what the receiver estimates."""

    needs = Needs("own")

    def __init__(self) -> None:
        super().__init__()
        self._limits = Limits()
        self._estimate: int | None = None

    def _decision(self) -> Decision:
        limits = self._limits
        estimate = limits.start_bps if self._estimate is None else self._estimate
        rate = min(max(estimate, limits.min_bps), limits.max_bps)
        return Decision(target_bps=rate, pacing_bps=int(PACE_FACTOR * rate))

    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        """Keeps the rate within new bounds."""
        del now_ns
        self._limits = limits
        return self._decision()

    def on_report(self, now_ns: int, report: Report) -> Decision | None:
        """Goes by the REMB of a report, if it has one."""
        del now_ns
        if report.remb_bps is None:
            return None
        self._estimate = report.remb_bps
        return self._decision()


class Estimating(ReceiverHalf):
    """The receiving half: an estimator that gets each packet, and estimates at intervals from the first packet on."""

    def __init__(self, interval_ns: int) -> None:
        super().__init__()
        self._interval = interval_ns
        self._due: int | None = None
        self._last_estimate: int | None = None
        self._ssrcs: dict[int, None] = {}

    def hear(self, now_ns: int, packet: Arrived) -> None:
        """A packet has arrived that says when it was sent."""
        raise NotImplementedError

    def estimate(self, now_ns: int) -> int:
        """The rate for the sender, bit/s."""
        raise NotImplementedError

    def on_packet(self, now_ns: int, packet: Arrived) -> Ask:
        """Passes the packet on, unless it has no time of sending (libwebrtc drops it as well)."""
        if packet.abs_send_time is not None:
            if len(self._ssrcs) < _STREAMS:
                self._ssrcs[packet.ssrc] = None
            self.hear(now_ns, packet)
            if self._due is None:
                self._due = now_ns + self._interval
        # what arrives at the end of an interval belongs to it
        return self.on_alarm(now_ns)

    def on_alarm(self, now_ns: int) -> Ask:
        """Gets an estimate when it is due, and asks to send it at once."""
        if self._due is None or now_ns < self._due:
            return None, self._due
        self._last_estimate = self.estimate(now_ns)
        self._due += self._interval
        return "now", self._due

    def message(self, now_ns: int) -> Sequence[_Packet]:
        """The last estimate, as REMB for all streams that were heard; the endpoint puts its own SSRC in."""
        del now_ns
        if self._last_estimate is None:
            return []
        self.internals["estimate_bps"] = float(self._last_estimate)
        return [_core.Remb(0, self._last_estimate, list(self._ssrcs))]


def checked(answer: Any, source: str) -> int:
    """An estimate in whole bit/s.

    Args:
        answer: A number, or an array or tensor with one number in it, as AlphaRTC takes it by `int(...)`.
        source: Origin of the answer, for errors.

    Raises:
        ValueError: when it is not a rate.
    """
    number = answer
    if hasattr(answer, "item") and not isinstance(answer, str):
        try:
            number = answer.item()  # of numpy and torch, with one element
        except (ValueError, TypeError, RuntimeError):
            number = None
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not math.isfinite(number)
        or not 0 <= number <= MOST
    ):
        text = show(answer) if isinstance(answer, str) else " ".join(repr(answer).split())[:80]
        raise ValueError(f"{source} {text}; expected bit/s from 0 to 10^12")
    return int(number)
