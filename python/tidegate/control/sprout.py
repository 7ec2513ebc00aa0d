"""Sprout's forecasts as a plain function: those of the receivers of `sprout` and `sprout-ewma` after a series of ticks.

>>> forecasts([11200] * 3)  # eight packets of 1400 bytes in each tick of 20 ms
array([[ 3,  7, 12, 17, 21, 26, 30, 35],
       [ 3,  8, 13, 19, 24, 29, 35, 40],
       [ 3,  9, 14, 20, 25, 31, 36, 42]], dtype=uint32)
>>> forecasts([11200, -1])
Traceback (most recent call last):
...
ValueError: bytes_per_tick[1]: found -1; expected a whole number of at least 0
"""

from tidegate._core import sprout_forecasts as forecasts

__all__ = ["forecasts"]
