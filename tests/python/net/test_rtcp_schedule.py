"""`tidegate.rtcp.Schedule`: another reading of the RFCs makes the same decisions; bad input is named."""

from __future__ import annotations

import pytest

from support import example
from tidegate import Duration, Rate, Stream
from tidegate.net.rtcp import Schedule

SECOND = 1_000_000_000


def test_another_reading_of_the_rfcs_decides_the_same() -> None:
    compared, counts, differences = example("replay_rtcp").replay(100_000)
    assert differences == []
    assert compared > 600_000
    decisions = ["regular", "minimal", "early", "nothing", "goodbye"]
    assert all(counts[f"expire {decision}"] >= 50 for decision in decisions), counts
    assert all(counts[f"feedback {chance}"] >= 50 for chance in ("early", "regular", "discard")), counts


def test_a_reading_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    module = example("replay_rtcp")
    monkeypatch.setattr(module, "PAIR", 3)
    assert module.replay(2000)[2]


def test_numbers_come_from_a_callable_or_an_iterable_and_run_out() -> None:
    stream, same_stream = Stream(1, "a", "b"), Stream(1, "a", "b")
    first = Schedule("avpf", session_bandwidth=Rate("1Mbps"), uniform=stream.uniform, rr_interval=Duration("1s"))
    second = Schedule(
        "avpf", session_bandwidth=1_000_000, uniform=[same_stream.uniform() for _ in range(2)], rr_interval=SECOND
    )
    for schedule in (first, second):
        schedule.join(0, members=2)
        assert schedule.tn is not None
        assert schedule.expire(schedule.tn) in {"nothing", "regular"}
    assert (first.tp, first.tn, first.t_rr) == (second.tp, second.tn, second.t_rr)
    before = (second.tp, second.tn, second.t_rr, second.average_size, second.allow_early)
    with pytest.raises(ValueError, match=r"^uniform: found no more numbers; expected one more$"):
        second.sent(SECOND, 100)
    assert (second.tp, second.tn, second.t_rr, second.average_size, second.allow_early) == before, (
        "nothing has happened"
    )


def test_what_the_caller_raises_comes_back() -> None:
    def fails() -> float:
        raise KeyError("mine")

    schedule = Schedule(session_bandwidth=64_000, uniform=fails)
    with pytest.raises(KeyError, match="mine"):
        schedule.join(0, 2)
    assert schedule.tn is None


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"profile": "savp"}, r'profile: found "savp"; expected "avp" or "avpf"'),
        ({"session_bandwidth": 0}, r"session_bandwidth: found 0; expected bit/s, more than 0"),
        ({"first_size": 0}, r"first_size: found 0; expected bytes, more than 0"),
        ({"minimum": -1}, r"minimum: found -1; expected nanoseconds from 0 to 2305843009213693951"),
        ({"rr_interval": -1}, r"rr_interval: found -1; expected nanoseconds from 0 to 2305843009213693951"),
        ({"l": float("nan")}, r"l: found NaN; expected a number of at least 0 and at most 1000000"),
    ],
)
def test_bad_settings_are_named(keys: dict[str, object], message: str) -> None:
    right: dict[str, object] = {"profile": "avpf", "session_bandwidth": 64_000, "uniform": [0.5]}
    with pytest.raises(ValueError, match=f"^{message}$"):
        Schedule(**{**right, **keys})  # type: ignore[arg-type]


def test_bad_numbers_are_named() -> None:
    schedule = Schedule(session_bandwidth=64_000, uniform=[1.5])
    with pytest.raises(ValueError, match=r"^uniform: found 1.5; expected a number of at least 0 and at most 1$"):
        schedule.join(0, 2)
    with pytest.raises(ValueError, match=r"^now_ns: found -1; expected nanoseconds from 0 to"):
        schedule.join(-1, 2)


def test_extremes_do_no_harm() -> None:
    schedule = Schedule("avpf", session_bandwidth=1, uniform=lambda: 1.0, first_size=2**32 - 1)
    schedule.join(2**60, 2**32 - 1)
    schedule.set_senders(2**32 - 1, True)
    schedule.received(2**32 - 1)
    assert schedule.deterministic > 0
    assert schedule.member_timeout > 0
    schedule.feedback(2**60, rtt_ns=2**60)
    schedule.sent_early(2**32 - 1)
    schedule.set_members(2**60, 1)
    schedule.expire(2**61 - 1, waiting=True)
    schedule.goodbye(2**61 - 1, 2**32 - 1)
    assert schedule.sender_timeout > 0
