"""Proportional fair at 30 km/h, beside a model that shares nothing with the engine but its thresholds."""

from __future__ import annotations

import numpy as np
import pytest

import lte_outdated as model
from lte_calibration import outcome


def test_reports_are_worth_nothing_at_30_km_h() -> None:
    """J0(2 pi fD tau), fD = 55.6 Hz: at most a seventh of the variance is known; at 3 km/h nearly all."""
    ages = [6e-3, 7e-3, 8e-3, 9e-3, 10e-3]
    assert [round(model.correlation(30, age), 2) for age in ages] == [0.17, -0.02, -0.18, -0.3, -0.38]
    assert min(model.correlation(3, age) ** 2 for age in ages) > 0.93


def test_the_loss_is_that_of_outdated_reports() -> None:
    """Who is chosen for the best report has a channel like any other, and the outer loop backs off to save the tenth."""
    slow, fast = (np.mean([model.efficiency(kmh, seed, 1000) for seed in range(6)]) for kmh in (3.0, 30.0))
    for case in (1, 3):
        ours = (
            outcome("proportional fair, 30 km/h", case)["efficiency"] / outcome("proportional fair", case)["efficiency"]
        )
        # the model has independent subbands and steady interference: a twentieth
        assert ours == pytest.approx(fast / slow, abs=0.05)
    assert 0.45 < fast / slow < 0.6
