"""The catalogue of metrics: name, unit, format and better direction of each number of a summary.

The rows come from the engine (`crates/sim/src/record/metrics.rs`); those of pictures and recorded calls are in
`further.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType

from tidegate import _core
from tidegate.results.metrics.model import Metric, catalogue, finite

__all__ = ["COUNTED", "FLOWS", "HEADLINE", "MEMBERS", "METRICS", "PICTURES", "RECORDED", "Metric", "finite", "metric"]


_PARTS = {part: [(Metric(*row[:7], headline=row[7] > 0), row[7]) for row in rows] for part, rows in _core.METRICS}
_FURTHER = catalogue(Path(__file__).with_name("further.toml"))
_ALL = [entry for part in _PARTS.values() for entry, _ in part] + [
    entry for part in _FURTHER.values() for entry in part
]

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
"""All metrics by name."""

FLOWS: tuple[str, ...] = tuple(entry.name for entry, _ in _PARTS["flows"])
"""Names of the metrics of a flow."""

MEMBERS: tuple[str, ...] = tuple(entry.name for entry, _ in _PARTS["members"])
"""Names of the metrics in tables of the members of sessions, in order."""

HEADLINE: tuple[str, ...] = tuple(
    entry.name
    for _, entry in sorted(((position, entry) for entry, position in _PARTS["flows"] if position), key=itemgetter(0))
)
"""Names of the metrics that comparisons show, in order."""

PICTURES: tuple[str, ...] = tuple(entry.name for entry in _FURTHER["pictures"] if entry.headline)
"""Names of the further metrics that comparisons show for real video, in order."""

COUNTED: tuple[str, ...] = tuple(entry.name for entry in _FURTHER["recorded"] if entry.headline)
"""Names of the further metrics that tables show for a recorded call, in order."""

RECORDED: tuple[str, ...] = (
    *("packets_sent", "sending_rate_bps", "packets_received"),
    *HEADLINE,
    "media_jitter_ms_mean",
    *COUNTED,
)
"""Names of all metrics that tables show for a recorded call, in order.

The packets are among them because a capture of one place may tell nothing else.
"""


def metric(name: str) -> Metric:
    """Returns the metric of a name; for a name outside the catalogue, one with the unit that the name ends in.

    >>> metric("something_new_ms").unit
    'ms'
    """
    found_metric = METRICS.get(name)
    if found_metric is not None:
        return found_metric
    stem, _, suffix = name.rpartition("_")
    units = {"bps": ("Mbit/s", 1e-6), "ms": ("ms", 1.0), "s": ("s", 1.0), "hz": ("1/s", 1.0)}
    if stem and suffix in units:
        unit, scale = units[suffix]
        return Metric(name, stem.replace("_", " "), unit, "neither", "", scale, 2)
    return Metric(name, name.replace("_", " "), "", "neither", "", digits=3)
