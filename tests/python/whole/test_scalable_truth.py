"""DCTCP beside ns-3.37's, and Prague beside CUBIC over DualPI2: how far the numbers of `docs/tcp.md` may be away."""

from __future__ import annotations

import pytest

from scalable_truth import BESIDE, CASES, beside, ours, theirs


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_dctcp_is_near_ns_3(case: tuple[int, int, int]) -> None:
    (carried, index, wait, marked), (their_carried, their_index, their_wait, their_marked) = ours(*case), theirs(*case)
    assert carried == pytest.approx(their_carried, rel=0.02)
    assert abs(index - their_index) <= 0.05
    assert wait == pytest.approx(their_wait, rel=0.15)
    assert marked == pytest.approx(their_marked, rel=0.10)


def test_prague_shares_with_cubic_and_waits_for_nobody() -> None:
    for both in list(BESIDE)[:2]:
        (rate, wait), (other, its_wait) = beside(both)
        assert 0.5 < rate / other < 2, "RFC 9332 section 2.1: rough equality"
        assert wait < 1
        assert 12 < its_wait < 18
        assert 38 < rate + other < 40
    (rate, _), (other, _) = beside("DCTCP and CUBIC with ECN")
    assert rate > 5 * other
