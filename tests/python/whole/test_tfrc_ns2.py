"""TFRC's rate under random loss beside ns-2's: the timeout of the equation is the whole difference."""

from __future__ import annotations

import math

import pytest

import tfrc_ns2 as study


@pytest.mark.parametrize("loss", study.LOSSES)
def test_with_one_timeout_the_rates_are_one(loss: float) -> None:
    """Of ten seeds each: within three standard errors of their difference."""
    ours, theirs = study.ours(loss, 4), study.ns2(loss, "0.4")
    assert len(ours) == len(theirs) == 10
    apart = abs(sum(ours) - sum(theirs)) / 10
    assert apart < 3 * math.hypot(study.error(ours), study.error(theirs))


def test_the_shorter_timeout_is_what_ns2_gains() -> None:
    """The more is lost, the more the timeout weighs in the equation."""
    for loss in study.LOSSES[1:]:
        ours, theirs = study.ours(loss, 4), study.ns2(loss, "default")
        apart = (sum(theirs) - sum(ours)) / 10
        assert apart > 6 * math.hypot(study.error(ours), study.error(theirs))
    low, middle, high = (row["4 R / ns-2"] for row in study.rows())
    assert 1 > low > middle > high
