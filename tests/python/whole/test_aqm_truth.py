"""CoDel, FQ-CoDel and PIE beside ns-3.37's: how far the numbers of `docs/queues.md` may be away."""

from __future__ import annotations

import pytest

from aqm_truth import CASES, CAUSES, off, ours, theirs

JAIN, WAIT, DROPS = 0.05, 0.10, 0.10
"""How far Jain's index may be off, and by which part the mean wait and the drops."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_it_is_near_ns_3(case: tuple[str, str, int]) -> None:
    (index, waited, dropped), (their_index, their_wait, their_drops) = ours(*case), theirs(*case)
    assert abs(index - their_index) <= JAIN
    assert abs(off(waited, their_wait)) <= WAIT
    assert abs(off(dropped, their_drops)) <= DROPS


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: "-".join(map(str, cause)))
def test_what_is_put_aside_is_what_made_the_difference(cause: tuple[str, str, int, str]) -> None:
    _, waited, dropped = ours(*cause[:3])
    _, wait, drops = theirs(*cause)
    assert abs(off(waited, wait)) > 0.15 or abs(off(dropped, drops)) > 0.20
