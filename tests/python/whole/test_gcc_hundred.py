"""A hundred calls before short queues: what `docs/gcc-behaviour.md` says of them."""

from __future__ import annotations

import gcc_hundred


def test_a_hundred_calls_go_blind_together_before_a_short_queue() -> None:
    for preset in gcc_hundred.PRESETS:
        rate, lost, jain = gcc_hundred.outcome(preset, "300 ms")
        assert 88 < rate < 97, "the saw tooth between 0.85 and 1"
        assert lost < 0.1
        assert jain > 0.95
    for name in list(gcc_hundred.QUEUES)[1:]:
        rate, lost, jain = gcc_hundred.outcome("libwebrtc", name)
        # the most that a rate bears, 100 kb/s over what is lost beyond 5 %, is above what a call sends, and below twice that
        sent = rate / 100 / (1 - lost / 100)
        assert rate > 99
        assert 1 < 0.1 / (lost / 100 - 0.05) / sent < 2
        assert jain > 0.98


def test_the_older_filter_sees_it_in_time_but_before_ten_milliseconds() -> None:
    """Bounds hold what seeds 1 to 3 give: 0.6 to 1.0 %, 1.6 to 2.0 % and 13.0 to 13.1 %."""
    rows = {
        "600 packets (60 ms)": (0, 0.1),
        "300 packets (30 ms)": (0.4, 1.3),
        "300 packets, starts 10.4 ms apart instead of 10 ms": (0.4, 1.3),
        "250 packets, starts 10.4 ms apart": (1.3, 2.4),
        "100 packets (10 ms)": (12.5, 13.5),
    }
    for name, (least, most) in rows.items():
        rate, lost, jain = gcc_hundred.outcome("libwebrtc-v1", name)
        assert 92 < rate < 94
        assert least <= lost < most
        assert jain > 0.95


def test_without_repair_little_decides_near_the_limit() -> None:
    sees, blind, short = (gcc_hundred.outcome("libwebrtc-v1", name, "none") for name in gcc_hundred.UNREPAIRED)
    # as with 300 ms, or as the older loss part holds it: between 2 and 10 % of loss
    assert 92 < sees[0] < 94
    assert 0.3 < sees[1] < 0.5
    assert 97 < blind[0] < 98
    assert 4 < blind[1] < 5
    assert 99 < short[0] < 100
    assert 6.5 < short[1] < 7
