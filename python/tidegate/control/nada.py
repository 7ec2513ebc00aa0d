"""The equations of NADA (RFC 8698) as plain functions: those that the controller `nada` uses.

All take and give plain numbers: milliseconds, bit/s, bytes, packets. Settings are those of the controller: a preset's,
or by name.

>>> round(equivalent_delay(100, loss_int=40, since_loss=10), 3), equivalent_delay(100)
(30.327, 100.0)
>>> congestion_signal(20, p_loss=0.02)
60.0
>>> gamma(30)
0.2
>>> gradual_update(1e6, 15, 15, 100, rmax_bps=1.5e6)  # at rest
1000000.0
>>> gamma(30, qbound=-1)
Traceback (most recent call last):
...
ValueError: nada: `qbound` is -1, expected a number from 0 to 10000 ms
"""

from __future__ import annotations

import json

from tidegate import _core


def equivalent_delay(
    queueing_ms: float,
    *,
    loss_int: float | None = None,
    since_loss: float = 0,
    preset: str = "rfc8698",
    **settings: float,
) -> float:
    """The queueing delay as it counts, in ms: warped by equation (1) if there were losses lately.

    Args:
        queueing_ms: Queueing delay d_queue in ms.
        loss_int: Mean loss interval in packets; None if there was no loss.
        since_loss: Packets since the last loss. From `multiloss` intervals on, within one more, the warped delay
            goes back linearly to what it is (RFC 8698 section 4.2).
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    losses = None if loss_int is None else (loss_int, since_loss)
    return _core.nada_equivalent_delay(preset, json.dumps(settings), queueing_ms, losses)


def congestion_signal(
    delay_ms: float, *, p_mark: float = 0, p_loss: float = 0, preset: str = "rfc8698", **settings: float
) -> float:
    """The aggregate congestion signal x_curr in ms (equation (2)).

    Args:
        delay_ms: What `equivalent_delay` says.
        p_mark: Smoothed marking ratio, 0 to 1.
        p_loss: Smoothed loss ratio, 0 to 1.
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    return _core.nada_congestion_signal(preset, json.dumps(settings), delay_ms, p_mark, p_loss)


def gamma(rtt_ms: float, *, preset: str = "rfc8698", **settings: float) -> float:
    """By which part above the receive rate accelerated ramp-up goes, at a round trip of `rtt_ms` (equation (3)).

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    return _core.nada_gamma(preset, json.dumps(settings), rtt_ms)


def gradual_update(
    r_ref_bps: float,
    signal_ms: float,
    before_ms: float,
    delta_ms: float,
    *,
    rmax_bps: float,
    preset: str = "rfc8698",
    **settings: float,
) -> float:
    """The reference rate after a gradual update, in bit/s, before it is clipped (equations (5) to (7)).

    Args:
        r_ref_bps: The rate before it.
        signal_ms: The congestion signal x_curr.
        before_ms: That of the update before, x_prev.
        delta_ms: Time since then.
        rmax_bps: The largest rate of the flow, RMAX.
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    given = json.dumps(settings)
    return _core.nada_gradual_update(preset, given, r_ref_bps, signal_ms, before_ms, delta_ms, rmax_bps)


def shaped_rates(
    r_ref_bps: float,
    buffer_bytes: float,
    *,
    rmin_bps: float = 0,
    rmax_bps: float,
    preset: str = "rfc8698",
    **settings: float,
) -> tuple[float, float]:
    """Rates of the encoder and of the pacer in bit/s, r_vin and r_send (equations (11) to (14)).

    Args:
        r_ref_bps: The reference rate.
        buffer_bytes: What waits in the rate shaping buffer.
        rmin_bps: The least rate of the flow, RMIN.
        rmax_bps: Its largest rate, RMAX.
        preset: Whose settings.
        settings: Other values of them.

    Raises:
        ValueError: With what is wrong and what would be right.

    >>> shaped_rates(1e6, 2000, rmax_bps=1.5e6)  # the example of section 5.2.2
    (952000.0, 1048000.0)
    """
    return _core.nada_shaped_rates(preset, json.dumps(settings), r_ref_bps, buffer_bytes, rmin_bps, rmax_bps)
