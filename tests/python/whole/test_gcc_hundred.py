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
    assert gcc_hundred.outcome("libwebrtc-v1", "600 packets (60 ms)")[1] < 0.1, "seen in time"
    # the older loss part holds between 2 and 10 %
    assert 2 < gcc_hundred.outcome("libwebrtc-v1", "300 packets (30 ms)")[1] < 10
