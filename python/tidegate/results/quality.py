"""Whether a flow is fit for a call, and how its speech sounds: the E-model (ITU-T G.107) as plain functions.

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
"""`quality` of a flow of which nothing is over the limits; else it names what is."""


def verdict(found: Iterable[str | None], network: Iterable[str | None] = ()) -> str:
    """What several runs say, as an answer: `yes`, `no` and why, or in how many of them.

    What is over at both ends and not on the network alone is "at the sender": skipped there, or waiting.

    Args:
        found: `quality` of each run (or `quality_network`).
        network: `quality_network` of each of the same runs, where it is known.

    >>> verdict(["met", "met"]), verdict(["delay", "loss, delay"]), verdict([None])
    ('yes', 'no: loss, delay', '-')
    >>> verdict(["loss"], ["met"]), verdict(["met", "loss, delay", "met"], ["met", "delay", "met"])
    ('no: loss at the sender', 'in 2 of 3, else delay; loss at the sender')
    """
    pairs = [(one, of) for one, of in zip_longest(found, network) if one is not None]
    failing = [(one.split(", "), one if of is None else of) for one, of in pairs if one != MET]
    if not pairs:
        return "-"
    if not failing:
        return "yes"
    parts = [part for part in ("loss", "delay", "jitter") if any(part in over for over, _ in failing)]
    by_network = [part for part in parts if any(part in over and part in of.split(", ") for over, of in failing)]
    by_sender = [part for part in parts if part not in by_network]
    at_sender = " and ".join(filter(None, (", ".join(by_sender[:-1]), *by_sender[-1:])))
    told = [", ".join(by_network), f"{at_sender} at the sender" if by_sender else ""]
    passed = len(pairs) - len(failing)
    return f"{f'in {passed} of {len(pairs)}, else ' if passed else 'no: '}{'; '.join(filter(None, told))}"


def verdict_on(flows: Iterable[Mapping[str, Any]]) -> str:
    """The [verdict][tidegate.results.quality.verdict] on a flow, by its summaries in several runs.

    >>> verdict_on([{"quality": "loss", "quality_network": "loss"}])
    'no: loss'
    """
    some = list(flows)
    return verdict([one.get("quality") for one in some], [one.get("quality_network") for one in some])
