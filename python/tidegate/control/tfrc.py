"""The formulas of TFRC (RFC 5348, RFC 4828) as plain functions; `tfrc` and `tfrc-sp` use the same ones.

Arguments and results are plain numbers: bytes, bytes/s, seconds, packets. Intervals are lists in packets, newest first,
beginning with the open interval I_0.

>>> round(throughput(1460, 0.1, 0.01))
164005
>>> round(loss_event_rate(1460, 0.1, throughput(1460, 0.1, 0.01)), 12)
0.01
>>> initial_window(1460), initial_window(536)
(4380.0, 2144.0)
>>> mean_interval([100, 10, 20, 30])
43.333333333333336
>>> round(mean_interval([100, 10, 20, 30], discounting=True), 6)
62.222222
>>> discount_factor([100, 10, 20, 30])
0.4
>>> small_packet_rate(10_000, 160)
8000.0
>>> small_packet_interval(20, 4, 0.15, 0.1), small_packet_interval(20, 4, 0.25, 0.1)
(5.0, 20.0)
>>> throughput(1460, 0.1, 2)
Traceback (most recent call last):
...
ValueError: p: found 2; expected a number of at least 0 and at most 1
"""

from tidegate._core import tfrc_discount_factor as discount_factor
from tidegate._core import tfrc_initial_window as initial_window
from tidegate._core import tfrc_loss_event_rate as loss_event_rate
from tidegate._core import tfrc_mean_interval as mean_interval
from tidegate._core import tfrc_small_packet_interval as small_packet_interval
from tidegate._core import tfrc_small_packet_rate as small_packet_rate
from tidegate._core import tfrc_throughput as throughput

__all__ = [
    "discount_factor",
    "initial_window",
    "loss_event_rate",
    "mean_interval",
    "small_packet_interval",
    "small_packet_rate",
    "throughput",
]
