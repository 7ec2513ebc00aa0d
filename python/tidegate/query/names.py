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
_SHORT_STEMS = {"one_way_delay": "delay", "queueing_delay": "queue_delay", "receive_rate": "rate"}
_QUANTITIES: Mapping[str, tuple[type[Quantity], float]] = {
    "ms": (Duration, 1e-6),
    "s": (Duration, 1e-9),
    "Mbit/s": (Rate, 1.0),
    "kbit/s": (Rate, 1.0),
    "kB": (Size, 1.0),
    "MB": (Size, 1.0),
    "1/s": (Frequency, 1 / 3_600_000),
}
"""For each unit of a metric: the quantity that parses its amounts, and the size of its base unit in a summary."""


def find(name: str, catalogue: Mapping[str, Metric] = METRICS) -> Metric:
    """Finds a metric by its whole name, or by its name without the unit.

    `delay` is the one-way delay, `queue_delay` the queueing delay and `rate` the receive rate.

    Raises:
        InputError: when there is no such metric in the catalogue.

    >>> find("delay_p95").name, find("loss").name, find("freeze_time_s").name
    ('one_way_delay_ms_p95', 'loss_fraction', 'freeze_time_s')
    """
    if name in catalogue:
        return catalogue[name]
    short_names = _short_names(catalogue)
    if name in short_names:
        return catalogue[short_names[name]]
    raise InputError(f"{name}: there is no such metric{did_you_mean(name, [*short_names, *catalogue])}")


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Names of metrics by their short names (without unit), where these are unambiguous."""
    full_names: dict[str, set[str]] = {}
    for name in names:
        without_unit = _UNIT.sub("", name)
        for stem, abbreviation in {"": "", **_SHORT_STEMS}.items():
            if without_unit.startswith(stem):
                full_names.setdefault(without_unit.replace(stem, abbreviation), set()).add(name)
    return {
        without_unit: next(iter(candidates)) for without_unit, candidates in full_names.items() if len(candidates) == 1
    }


def amount(text: str, metric: Metric | None = None) -> float:
    """Parses an amount of a metric, in the units of the summary.

    Args:
        text: The amount with its unit: `10ms`, `500kbps`, `2%`; a bare number for a metric without a unit. `pp`
            (percentage points) means the same as `%`.
        metric: The metric; without one the amount is a share.

    Raises:
        InputError: when the text is not such an amount; says what was found and what would be right.

    >>> amount("10ms", METRICS["one_way_delay_ms_p95"]), amount("2%", METRICS["loss_fraction"]), amount("150%")
    (10.0, 0.02, 1.5)
    """
    if metric is None:
        return _parse_number(text, share=True)
    with located(metric.name):
        if metric.unit in _QUANTITIES:
            quantity, base = _QUANTITIES[metric.unit]
            return int(quantity.parse(text)) * base
        return _parse_number(text, share=metric.unit == "%")


def _parse_number(text: str, *, share: bool) -> float:
    number = re.sub(r"(%|pp)$", "", text) if share else text
    if share and number == text:
        raise InputError(f"found {text!r}; expected a share in per cent, for example 2%")
    with suppress(ValueError):
        if math.isfinite(value := float(number)):
            return value / 100 if share else value
    raise InputError(f"found {text!r}; expected a number{' in per cent, as in 2%' if share else ''}")


def written(value: float, metric: Metric) -> str:
    """Writes an amount so that `amount` can parse it.

    >>> written(0.02, METRICS["loss_fraction"]), written(1.5e6, METRICS["receive_rate_bps"])
    ('2%', '1.5Mbit/s')
    """
    if metric.unit != "%" and metric.unit not in _QUANTITIES:
        return f"{value:.12g}"
    return f"{value * metric.scale:.12g}{metric.unit.removeprefix('1')}"
