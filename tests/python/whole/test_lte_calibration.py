"""Full buffers beside published values, ns-3 and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from lte_calibration import PUBLISHED, beside, geometry, outcome


def test_a_cell_carries_what_is_published() -> None:
    assert outcome("round robin", 1)["efficiency"] == pytest.approx(PUBLISHED, rel=0.1)


def test_geometry_ends_where_the_own_site_disturbs() -> None:
    """Two sectors of the own site 20 dB down: no user has more than 17 dB."""
    for case in (1, 3):
        assert geometry(case)["largest"] < 17.0
        assert geometry(case)["95%"] > 14.0
    # farther sites: noise takes its share at the edge
    assert geometry(3)["5%"] < geometry(1)["5%"]


def test_more_antennas_and_choice_are_worth_what_they_should() -> None:
    for case in (1, 3):
        single, two, turns, fast = (
            outcome(variant, case)
            for variant in (
                "proportional fair, 1x1",
                "proportional fair",
                "round robin",
                "proportional fair, 30 km/h",
            )
        )
        # 3 dB more, which log2(1 + SINR) makes 1.43 of at the median geometry, less what choice among ten users
        # gains from the deeper fades of one antenna
        assert 1.1 < two["efficiency"] / single["efficiency"] < 1.43
        # frequency-selective proportional fair of ten users: 40 % and more (Pokhariyal et al., VTC Fall 2006)
        assert 1.3 < two["efficiency"] / turns["efficiency"] < 1.65
        assert fast["efficiency"] < two["efficiency"], "what is reported is too old at 30 km/h"
        assert two["edge"] > turns["edge"]


def test_the_same_cells_in_ns3() -> None:
    """Two sets of error curves from two link-level simulators: a dB of SINR apart at most."""
    for case in (1, 3):
        median = geometry(case)["50%"]
        decibel = np.log2(1 + 10 ** ((median + 1) / 10)) / np.log2(1 + 10 ** (median / 10))
        for outer_loop in (False, True):
            ours, theirs = beside(case, outer_loop)
            assert 1 / decibel < ours.sum() / theirs.sum() < decibel
