"""Metrics and amounts as people write them: `delay_p95`, `10ms`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from tidegate.errors import InputError, did_you_mean
from tidegate.results.metrics import METRICS, Metric
from tidegate.units import Duration, Frequency, Quantity, Rate, Size

_UNIT = re.compile(r"_(?:ms|s|bps|hz|db|fraction)(?=_|$)")
_SHORT = {"one_way_delay": "delay", "queueing_delay": "queue_delay", "receive_rate": "rate"}
_QUANTITIES: Mapping[str, tuple[type[Quantity], float]] = {
    "ms": (Duration, 1e-6),
    "s": (Duration, 1e-9),
    "Mbit/s": (Rate, 1.0),
    "kbit/s": (Rate, 1.0),
    "kB": (Size, 1.0),
    "MB": (Size, 1.0),
    "1/s": (Frequency, 1 / 3_600_000),
}
"""How an amount of a metric that is shown in a unit is written, and what one base unit of it is in a summary."""


def find(name: str, catalogue: Mapping[str, Metric] = METRICS) -> Metric:
    """The metric that somebody means: by its whole name, or without its unit.

    `delay` is the one-way delay, `queue_delay` the queueing delay and `rate` the receive rate.

    Args:
        name: As it was written.
        catalogue: The metrics that there are.

    Raises:
        InputError: when there is no such metric.

    >>> find("delay_p95").name, find("loss").name, find("freeze_time_s").name
    ('one_way_delay_ms_p95', 'loss_fraction', 'freeze_time_s')
    """
    if name in catalogue:
        return catalogue[name]
    shorter = _shorter(catalogue)
    if name in shorter:
        return catalogue[shorter[name]]
    raise InputError(f"{name}: no such metric{did_you_mean(name, [*shorter, *catalogue])}")


def _shorter(names: Iterable[str]) -> dict[str, str]:
    """The metrics by their names without units, where that says which is meant."""
    found: dict[str, list[str]] = {}
    for name in names:
        short = _UNIT.sub("", name)
        every = {short, *(short.replace(long, few) for long, few in _SHORT.items() if short.startswith(long))}
        for one in every:
            found.setdefault(one, []).append(name)
    return {short: some[0] for short, some in found.items() if len(some) == 1}


def amount(text: str, metric: Metric) -> float:
    """An amount of a metric, in the units of the summary.

    Args:
        text: With its unit: `10ms`, `500kbps`, `2%`; a plain number for a metric that has none. Points of per cent are
            `pp`, which says the same as `%`.
        metric: What it is an amount of.

    Raises:
        InputError: says what was found and what would be right.

    >>> amount("10ms", METRICS["one_way_delay_ms_p95"]), amount("2%", METRICS["loss_fraction"])
    (10.0, 0.02)
    """
    if metric.unit in _QUANTITIES:
        quantity, size = _QUANTITIES[metric.unit]
        try:
            return int(quantity.parse(text)) * size
        except InputError as error:
            raise InputError(f"{metric.name}: {error}") from None
    number, unit = text, ""
    if metric.unit == "%":
        number, unit = re.sub(r"(%|pp)$", "", text), "%"
        if number == text:
            raise InputError(f"{metric.name}: found {text!r}; it is a share, so expected per cent, for example 2%")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{metric.name}: found {text!r}; expected a number{' of per cent, as in 2%' if unit else ''}")
    return value / 100 if unit else value
