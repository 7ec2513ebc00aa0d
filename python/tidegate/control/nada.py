"""The equations of NADA (RFC 8698) as plain functions; the controller `nada` uses the same ones.

Arguments and results are plain numbers: milliseconds, bit/s, bytes, packets. Settings are those of the controller, from
a preset or by name.

>>> round(equivalent_delay(100, loss_int=40, since_loss=10), 3), equivalent_delay(100)
(30.327, 100.0)
>>> congestion_signal(20, p_loss=0.02)
60.0
>>> gamma(30)
0.2
>>> gradual_update(1e6, 15, 15, 100, rmax_bps=1.5e6)  # at rest
1000000.0
>>> shaped_rates(1e6, 2000, rmax_bps=1.5e6)  # the example of section 5.2.2
(952000.0, 1048000.0)
>>> gamma(30, qbound=-1)
Traceback (most recent call last):
...
ValueError: nada: `qbound` is -1, expected a number from 0 to 10000 ms
"""

from tidegate._core import nada_congestion_signal as congestion_signal
from tidegate._core import nada_equivalent_delay as equivalent_delay
from tidegate._core import nada_gamma as gamma
from tidegate._core import nada_gradual_update as gradual_update
from tidegate._core import nada_shaped_rates as shaped_rates

__all__ = ["congestion_signal", "equivalent_delay", "gamma", "gradual_update", "shaped_rates"]
