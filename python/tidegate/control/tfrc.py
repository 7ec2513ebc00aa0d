"""The formulas of TFRC (RFC 5348, RFC 4828) as plain functions: those that the controllers `tfrc` and `tfrc-sp` use.

All take and give plain numbers: bytes, bytes/s, seconds, packets. Intervals are lists in packets, newest first,
beginning with the open interval I_0.

>>> round(throughput(1460, 0.1, 0.01))
164005
>>> round(loss_event_rate(1460, 0.1, throughput(1460, 0.1, 0.01)), 12)
0.01
>>> throughput(1460, 0.1, 2)
Traceback (most recent call last):
...
ValueError: p: found 2; expected a number of at least 0 and at most 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate import _core

if TYPE_CHECKING:
    from collections.abc import Sequence


def throughput(segment_bytes: float, rtt_s: float, p: float, *, b: float = 1, t_rto_s: float | None = None) -> float:
    """The rate of a TCP under loss, in bytes/s (RFC 5348 section 3.1).

    Args:
        segment_bytes: Segment size s, above 0.
        rtt_s: Round-trip time R in seconds, above 0.
        p: Loss event rate, 0 to 1; with 0 there is no limit and the answer is infinite.
        b: Packets acknowledged by one ACK.
        t_rto_s: Retransmission timeout in seconds; 4 R by default.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    return _core.tfrc_throughput(segment_bytes, rtt_s, p, b, t_rto_s)


def loss_event_rate(
    segment_bytes: float, rtt_s: float, rate: float, *, b: float = 1, t_rto_s: float | None = None
) -> float:
    """The loss event rate under which `throughput` is `rate` bytes/s: its inverse, for RFC 5348 section 6.3.1.

    Args:
        segment_bytes: Segment size s, above 0.
        rtt_s: Round-trip time R in seconds, above 0.
        rate: Bytes/s, above 0.
        b: Packets acknowledged by one ACK.
        t_rto_s: Retransmission timeout in seconds; 4 R by default.

    Returns:
        p from 1e-18 to 1: one of these ends where the equation does not give such a rate.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    return _core.tfrc_loss_event_rate(segment_bytes, rtt_s, rate, b, t_rto_s)


def initial_window(mss_bytes: float = 1460) -> float:
    """Bytes in the first round trip: min(4 MSS, max(2 MSS, 4380)) (RFC 5348 section 4.2, RFC 3390).

    >>> initial_window(1460), initial_window(536)
    (4380.0, 2144.0)
    """
    return _core.tfrc_initial_window(mss_bytes)


def mean_interval(
    intervals: Sequence[float],
    *,
    discounts: Sequence[float] | None = None,
    discounting: bool = False,
    threshold: float = 0.25,
) -> float:
    """The average loss interval in packets; the loss event rate is one over it (RFC 5348 sections 5.4 and 5.5).

    Args:
        intervals: I_0 (open), I_1, I_2 and so on: those beyond I_8 do not count.
        discounts: DF_1, DF_2 and so on, above 0 and at most 1: what earlier discounting left of each closed
            interval's weight; 1 by default.
        discounting: Whether a long I_0 discounts the closed intervals now.
        threshold: By this factor at most.

    Returns:
        Infinite if there is no closed interval.

    Raises:
        ValueError: With what is wrong and what would be right.

    >>> mean_interval([100, 10, 20, 30])
    43.333333333333336
    >>> round(mean_interval([100, 10, 20, 30], discounting=True), 6)
    62.222222
    """
    given = None if discounts is None else list(discounts)
    return _core.tfrc_mean_interval(list(intervals), given, threshold if discounting else None)


def discount_factor(
    intervals: Sequence[float], *, discounts: Sequence[float] | None = None, threshold: float = 0.25
) -> float:
    """The general discount factor DF: 2 I_mean / I_0 once that is below 1, and at least `threshold`.

    RFC 5348 section 5.5; I_mean is that of the closed intervals. Arguments as of `mean_interval`.

    >>> discount_factor([100, 10, 20, 30])
    0.4
    """
    given = None if discounts is None else list(discounts)
    return _core.tfrc_discount_factor(list(intervals), given, threshold)


def small_packet_rate(rate: float, size_bytes: float, *, header_bytes: float = 40) -> float:
    """What small packets may use of `rate` bytes/s, each charged with a header (RFC 4828 section 3), in bytes/s.

    >>> small_packet_rate(10_000, 160)
    8000.0
    """
    return _core.tfrc_small_packet_rate(rate, size_bytes, header_bytes)


def small_packet_interval(packets: float, lost: float, lasted_s: float, rtt_s: float) -> float:
    """The length of a closed loss interval for small packets, in packets (RFC 4828 section 3).

    `packets` over `lost` where the interval lasted for at most two round trips, else all `packets`.

    >>> small_packet_interval(20, 4, 0.15, 0.1), small_packet_interval(20, 4, 0.25, 0.1)
    (5.0, 20.0)
    """
    return _core.tfrc_small_packet_interval(packets, lost, lasted_s, rtt_s)
