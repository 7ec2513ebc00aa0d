"""Limits of loss, delay and jitter for a call, and how speech sounds: the E-model (ITU-T G.107) as plain functions.

>>> round(r_factor(0, 0), 1), round(mos(r_factor(0, 0)), 2)
(93.2, 4.41)
>>> round(r_factor(150, 0.01, bpl=G711_BPL), 1)
71.6
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from tidegate._core import mos, r_factor

__all__ = ["G711_BPL", "G711_CONCEALED_BPL", "MET", "mos", "r_factor", "verdict", "verdict_on"]

G711_BPL = 4.3
"""Robustness to loss of G.711 without concealment (ITU-T G.113 appendix I)."""
G711_CONCEALED_BPL = 25.1
"""With the concealment of G.711 appendix I (ITU-T G.113 appendix I)."""
MET = "met"
"""`quality` of a flow within all limits; otherwise `quality` names the limits that are exceeded."""


def verdict(found: Iterable[str | None], network: Iterable[str | None] = ()) -> str:
    """Answers whether several runs are within the limits: `yes`, `no` with the reasons, or the number of runs that are.

    A limit that is exceeded end to end but not on the network alone is "at the sender", which skipped or held up media.

    Args:
        found: `quality` of each run (or `quality_network`).
        network: `quality_network` of each of the same runs, where it is known.

    >>> verdict(["met", "met"]), verdict(["delay", "loss, delay"]), verdict([None])
    ('yes', 'no: loss, delay', '-')
    >>> verdict(["loss"], ["met"]), verdict(["met", "loss, delay", "met"], ["met", "delay", "met"])
    ('no: loss at the sender', 'in 2 of 3, else delay; loss at the sender')
    """
    pairs = [(overall, on_network) for overall, on_network in zip_longest(found, network) if overall is not None]
    failing = [
        (overall.split(", "), overall if on_network is None else on_network)
        for overall, on_network in pairs
        if overall != MET
    ]
    if not pairs:
        return "-"
    if not failing:
        return "yes"
    parts = [part for part in ("loss", "delay", "jitter") if any(part in over for over, _ in failing)]
    by_network = [
        part for part in parts if any(part in over and part in on_network.split(", ") for over, on_network in failing)
    ]
    by_sender = [part for part in parts if part not in by_network]
    at_sender = " and ".join(filter(None, (", ".join(by_sender[:-1]), *by_sender[-1:])))
    parts_by_place = [", ".join(by_network), f"{at_sender} at the sender" if by_sender else ""]
    passed = len(pairs) - len(failing)
    return f"{f'in {passed} of {len(pairs)}, else ' if passed else 'no: '}{'; '.join(filter(None, parts_by_place))}"


def verdict_on(flows: Iterable[Mapping[str, Any]]) -> str:
    """Gives the [verdict][tidegate.results.quality.verdict] on a flow from its summaries in several runs.

    >>> verdict_on([{"quality": "loss", "quality_network": "loss"}])
    'no: loss'
    """
    summaries = list(flows)
    return verdict([flow.get("quality") for flow in summaries], [flow.get("quality_network") for flow in summaries])
