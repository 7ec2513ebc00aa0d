"""Full buffers beside published values, ns-3 and closed forms; `TIDEGATE_BLESS=1` writes the page's tables anew."""

from __future__ import annotations

import numpy as np
import pytest

import lte_calibration as made
from support import ROOT, check_table

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "lte.md"


@pytest.mark.parametrize("name", made.TABLES)
def test_the_page_shows_what_comes_out(name: str) -> None:
    check_table(PAGE, name, made.TABLES[name]())


def test_a_cell_carries_what_is_published() -> None:
    found = made.efficiency("round robin", 1)
    assert found == pytest.approx(made.PUBLISHED, rel=0.1)


def test_geometry_ends_where_the_own_site_disturbs() -> None:
    """Two sectors of the own site 20 dB down: nobody hears better than 17 dB."""
    for case in (1, 3):
        everyone = made.geometry(case)
        assert everyone.max() < 17.0
        assert np.quantile(everyone, 0.95) > 14.0
    # farther sites: noise takes its share at the edge
    assert np.quantile(made.geometry(3), 0.05) < np.quantile(made.geometry(1), 0.05)


def test_more_antennas_and_choice_are_worth_what_they_should() -> None:
    for case in (1, 3):
        one, two = made.efficiency("proportional fair, 1x1", case), made.efficiency("proportional fair", case)
        turns = made.efficiency("round robin", case)
        # 3 dB more, which log2(1 + SINR) makes 1.43 of at the median geometry, less what choice among ten users
        # gains from the deeper fades of one antenna
        assert 1.1 < two / one < 1.43
        # frequency-selective proportional fair of ten users: 40 % and more (Pokhariyal et al., VTC Fall 2006)
        assert 1.3 < two / turns < 1.65
        assert made.efficiency("proportional fair, 30 km/h", case) < two, "what is reported is too old at 30 km/h"
        assert made.edge("proportional fair", case) > made.edge("round robin", case)


def test_the_same_cells_in_ns3() -> None:
    """Two sets of error curves from two link-level simulators: a dB of SINR apart at most."""
    for case in (1, 3):
        median = float(np.median(made.geometry(case)))
        decibel = np.log2(1 + 10 ** ((median + 1) / 10)) / np.log2(1 + 10 ** (median / 10))
        for outer_loop in (False, True):
            ours, theirs = made.beside(case, outer_loop)
            assert 1 / decibel < ours.sum() / theirs.sum() < decibel
