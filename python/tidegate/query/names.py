"""Metrics and amounts as people write them: `delay_p95`, `10ms`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from tidegate.errors import InputError, did_you_mean, located
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

    Raises:
        InputError: when there is no such metric in the catalogue.

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
    meant: dict[str, set[str]] = {}
    for name in names:
        short = _UNIT.sub("", name)
        for long, few in {"": "", **_SHORT}.items():
            if short.startswith(long):
                meant.setdefault(short.replace(long, few), set()).add(name)
    return {short: next(iter(some)) for short, some in meant.items() if len(some) == 1}


def amount(text: str, metric: Metric | None = None) -> float:
    """An amount of a metric, in the units of the summary.

    Args:
        text: With its unit: `10ms`, `500kbps`, `2%`; a plain number for a metric that has none. Points of per cent are
            `pp`, which says the same as `%`.
        metric: What it is an amount of; a share of anything where there is none.

    Raises:
        InputError: says what was found and what would be right.

    >>> amount("10ms", METRICS["one_way_delay_ms_p95"]), amount("2%", METRICS["loss_fraction"]), amount("150%")
    (10.0, 0.02, 1.5)
    """
    if metric is None:
        return _plain(text, share=True)
    with located(metric.name):
        if metric.unit in _QUANTITIES:
            quantity, size = _QUANTITIES[metric.unit]
            return int(quantity.parse(text)) * size
        return _plain(text, share=metric.unit == "%")


def _plain(text: str, *, share: bool) -> float:
    number = re.sub(r"(%|pp)$", "", text) if share else text
    if share and number == text:
        raise InputError(f"found {text!r}; it is a share, so expected per cent, for example 2%")
    with suppress(ValueError):
        if math.isfinite(value := float(number)):
            return value / 100 if share else value
    raise InputError(f"found {text!r}; expected a number{' of per cent, as in 2%' if share else ''}")


def written(value: float, metric: Metric) -> str:
    """An amount as `amount` reads it.

    >>> written(0.02, METRICS["loss_fraction"]), written(1.5e6, METRICS["receive_rate_bps"])
    ('2%', '1.5Mbit/s')
    """
    if metric.unit != "%" and metric.unit not in _QUANTITIES:
        return f"{value:.12g}"
    return f"{value * metric.scale:.12g}{metric.unit.removeprefix('1')}"
