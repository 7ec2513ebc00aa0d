"""What each number of a summary is: name, unit, how it is shown, which direction is better.

The rows are the engine's own (`crates/sim/src/record/metrics.rs`); those of pictures and recorded calls
are in `further.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType

from tidegate import _core
from tidegate.results.metrics.model import Metric, catalogue, finite

__all__ = ["COUNTED", "FLOWS", "HEADLINE", "MEMBERS", "METRICS", "PICTURES", "Metric", "finite", "metric"]


_PARTS = {part: [(Metric(*row[:7], headline=row[7] > 0), row[7]) for row in rows] for part, rows in _core.METRICS}
_FURTHER = catalogue(Path(__file__).with_name("further.toml"))
_ALL = [one for part in _PARTS.values() for one, _ in part] + [one for part in _FURTHER.values() for one in part]

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
"""Every metric by its name."""

FLOWS: tuple[str, ...] = tuple(one.name for one, _ in _PARTS["flows"])
"""Names of the numbers of a flow."""

MEMBERS: tuple[str, ...] = tuple(one.name for one, _ in _PARTS["members"])
"""What tables of the members of sessions show, in order."""

HEADLINE: tuple[str, ...] = tuple(
    one.name for _, one in sorted(((place, one) for one, place in _PARTS["flows"] if place), key=itemgetter(0))
)
"""What comparisons show, in order."""

PICTURES: tuple[str, ...] = tuple(one.name for one in _FURTHER["pictures"] if one.headline)
"""What comparisons show besides where the video is real, in order."""

COUNTED: tuple[str, ...] = tuple(one.name for one in _FURTHER["recorded"] if one.headline)
"""What tables show besides of a recorded call, in order."""


def metric(name: str) -> Metric:
    """The metric of that name; a plain one where the catalogue does not know it.

    >>> metric("something_new_ms").unit
    'ms'
    """
    known = METRICS.get(name)
    if known is not None:
        return known
    stem, _, suffix = name.rpartition("_")
    units = {"bps": ("Mbit/s", 1e-6), "ms": ("ms", 1.0), "s": ("s", 1.0), "hz": ("1/s", 1.0)}
    if stem and suffix in units:
        unit, scale = units[suffix]
        return Metric(name, stem.replace("_", " "), unit, "neither", "", scale, 2)
    return Metric(name, name.replace("_", " "), "", "neither", "", digits=3)
