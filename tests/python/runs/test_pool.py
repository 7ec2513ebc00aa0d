"""Behaviour of many runs at once when the person stops them."""

from __future__ import annotations

import signal
import time

import pytest

from tidegate import pool


class _LastWords:
    """Ctrl-C while an object goes away, where the interpreter can only print and forget an exception."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("keep_going", [False, True])
def test_no_ctrl_c_is_forgotten(keep_going: bool) -> None:
    done = []

    def interrupted(_: float) -> None:
        _LastWords()

    def job(tick: pool.Tick) -> None:
        time.sleep(0.05)
        tick(0.5)
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        pool.run_all([job] * 400, workers=2, keep_going=keep_going, progress=interrupted)
    assert len(done) < 400
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_is_the_caller_s_when_they_took_it() -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        assert pool.run_all([lambda _: 1, lambda _: 2], progress=lambda _: signal.raise_signal(signal.SIGINT)) == [1, 2]
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard
