"""Behaviour of many runs at once when the person stops them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

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


def fails(tick: pool.Tick) -> None:
    """A job that fails while another one runs."""
    tick(0.5)
    raise ValueError("broken")


def waits_for_the_stop(tick: pool.Tick) -> None:
    """A job that ends only when it is stopped at a tick."""
    while True:
        tick(0.5)
        time.sleep(0.001)


@pytest.mark.parametrize("processes", [False, True])
def test_a_failure_stops_the_others_at_their_next_tick(processes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the means that are for controllers that never return."""
    monkeypatch.setattr(pool, "_GRACE", 20.0)  # a busy machine is no failure
    forced: list[int] = []
    for team in (pool._Team, pool._Processes):

        def force(self: pool._Team, thread: int, then: Callable[..., None] = team._break) -> None:
            forced.append(thread)
            then(self, thread)

        monkeypatch.setattr(team, "_break", force)
    with pytest.raises(ValueError, match="broken"):
        pool.run_all([waits_for_the_stop, fails], workers=2, processes=processes)
    assert forced == []
