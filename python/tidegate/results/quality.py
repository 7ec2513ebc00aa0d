"""Whether a flow is fit for a call, and how its speech sounds: the E-model (ITU-T G.107) as plain functions.

>>> round(r_factor(0, 0), 1), round(mos(r_factor(0, 0)), 2)
(93.2, 4.41)
>>> round(r_factor(150, 0.01, bpl=G711_BPL), 1)
71.6
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate import _core

G711_BPL = 4.3
"""Robustness to loss of G.711 without concealment (ITU-T G.113 appendix I)."""
G711_CONCEALED_BPL = 25.1
"""With the concealment of G.711 appendix I (ITU-T G.113 appendix I)."""
MET = "met"
"""The verdict of a flow of which nothing is over the limits."""


def r_factor(delay_ms: float, loss_fraction: float, *, ie: float = 0.0, bpl: float = G711_CONCEALED_BPL) -> float:
    """The rating R of speech by the E-model, everything but delay, loss and codec at its default.

    Args:
        delay_ms: From mouth to ear, in milliseconds, at least 0.
        loss_fraction: What is missing at the ear, at random, 0 to 1.
        ie: Equipment impairment of the codec, 0 to 95; 0 for G.711.
        bpl: Robustness of the codec to loss, above 0.

    Returns:
        R: 93.2 with neither delay nor loss; may be negative.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    return _core.r_factor(delay_ms, loss_fraction, ie, bpl)


def mos(rating: float) -> float:
    """The mean opinion score, 1 to 4.5, of a rating R (G.107 annex B).

    Raises:
        ValueError: When the rating is not a number.
    """
    return _core.mos(rating)


def verdict(found: Iterable[str | None]) -> str:
    """What several runs say in one word or two: `quality` or `quality_network` of each.

    >>> verdict(["met", "met"]), verdict(["delay", "loss, delay"]), verdict(["met", "loss"]), verdict([None])
    ('met', 'loss, delay', 'met in 1 of 2', '-')
    """
    known = [one for one in found if one is not None]
    if not known:
        return "-"
    met = known.count(MET)
    if met == len(known):
        return MET
    if met:
        return f"met in {met} of {len(known)}"
    over = {part for one in known for part in one.split(", ")}
    return ", ".join(part for part in ("loss", "delay", "jitter") if part in over)
