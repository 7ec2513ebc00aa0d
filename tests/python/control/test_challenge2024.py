"""Observations in the challenge of MMSys 2024: each feature against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from tidegate import Arrived
from tidegate.control.learned._receiving import SendTimes
from tidegate.control.learned._session import Floats
from tidegate.control.learned.challenge2024 import COUNT, FEATURES, INTERVAL_NS, Observer

MS = 10**6
NAMES = [name for name, _, _ in FEATURES]
EMPTY = [0.0] * len(FEATURES)


def stamp(ms: int) -> int:
    """Abs-send-time; 125 ms are 32768 ticks, so that multiples of 125 ms are exact."""
    return ms * 2**18 // 1000 % 2**24


def slot(observation: Floats, number: int) -> dict[str, float]:
    """The features of one MI: 0 to 4 are short, 5 to 9 long, the most recent first."""
    return {name: float(observation[10 * position + number]) for position, name in enumerate(NAMES)}


def test_each_feature_of_a_short_interval_is_what_its_definition_says() -> None:
    observer = Observer()
    # the first interval: one packet of video, which has 200 ms by definition
    observer.hear(0, Arrived(0, 1000, stamp(0), ssrc=1))
    first = observer.close()
    # the second: video with 4 lost before it, audio, padding; at 70, 80, 110 ms. Sent at 0 (2^-18 s), so that
    # delays are 200 + 70, 80 and 110 ms
    observer.hear(70 * MS, Arrived(5, 1200, stamp(0), ssrc=1))
    observer.hear(80 * MS, Arrived(1, 100, stamp(0), ssrc=2, payload_type=111))
    observer.hear(110 * MS, Arrived(1, 200, stamp(0), ssrc=3, payload_type=127))
    second = observer.close()
    assert slot(first, 0) == {
        **dict(zip(NAMES, EMPTY, strict=True)),
        "receiving rate": pytest.approx(1000 * 8 / 0.060),
        "received packets": 1.0,
        "received bytes": 1000.0,
        "minimum seen delay": 200.0,
        "delay ratio": 1.0,
        "video packets probability": 1.0,
    }
    mean = (270 + 280 + 310) / 3
    assert slot(second, 0) == pytest.approx(
        {
            "receiving rate": 1500 * 8 / 0.060,
            "received packets": 3.0,
            "received bytes": 1500.0,
            "queuing delay": mean - 200,
            "delay": mean - 200,
            "minimum seen delay": 200.0,
            "delay ratio": mean / 270,
            "delay average minimum difference": mean - 270,
            "interarrival time": 20.0,  # 10 and 30
            "jitter": 10.0,
            "packet loss ratio": 4 / 7,
            "average number of lost packets": 4.0,
            "video packets probability": 1 / 3,
            "audio packets probability": 1 / 3,
            "probing packets probability": 1 / 3,
        },
        rel=1e-6,
    )
    # and the first has moved on by one
    assert slot(second, 1) == slot(first, 0)
    # the long interval has both: the time between them counts, and rates are over 600 ms
    features = slot(second, 5)
    assert features["receiving rate"] == pytest.approx(2500 * 8 / 0.600)
    assert features["received packets"] == 4.0
    assert features["interarrival time"] == pytest.approx(110 / 3, rel=1e-6)
    deviation = math.sqrt(sum((gap - 110 / 3) ** 2 for gap in (70, 10, 30)) / 3)
    assert features["jitter"] == pytest.approx(deviation, rel=1e-6)
    assert features["delay average minimum difference"] == pytest.approx((200 + 270 + 280 + 310) / 4 - 200, rel=1e-6)
    assert features["packet loss ratio"] == pytest.approx(4 / 8)


def test_an_observation_has_ten_intervals_of_each_feature_and_the_most_recent_first() -> None:
    observer = Observer()
    # in interval n there are n packets, all in its middle
    for number in range(51):
        now_ns = number * INTERVAL_NS + INTERVAL_NS // 2
        for index in range(number):
            observer.hear(now_ns, Arrived(None, 100, stamp(0), rtp_sequence=100 * number + index))
        observation = observer.close()
    assert observation.shape == (COUNT,) == (150,)
    assert observation.dtype == "float32"
    assert list(observation[10:15]) == [50, 49, 48, 47, 46]
    longs = [sum(range(51 - 10 * (n + 1), 51 - 10 * n)) for n in range(5)]
    assert list(observation[15:20]) == longs
    # the same place in the next feature is that many bytes
    assert list(observation[20:30]) == [100 * packets for packets in [50, 49, 48, 47, 46, *longs]]


def test_the_least_delay_so_far_is_that_at_the_end_of_each_interval() -> None:
    observer = Observer()
    observer.hear(100 * MS, Arrived(0, 100, stamp(0)))
    observer.close()
    # 125 ms later by the sender's clock, 100 by ours: 25 ms less on its way
    observer.hear(200 * MS, Arrived(1, 100, stamp(125)))
    observation = observer.close()
    assert list(observation[50:53]) == [175.0, 200.0, 0.0]
    assert observation[55] == 175.0
    assert slot(observation, 0)["queuing delay"] == 0.0
    assert slot(observation, 0)["delay"] == -25.0
    # an interval without packets has nothing but this
    observation = observer.close()
    assert slot(observation, 0) == {**dict(zip(NAMES, EMPTY, strict=True)), "minimum seen delay": 175.0}


def test_losses_are_counted_in_each_stream_when_they_are_noticed_and_no_late_packet_makes_one() -> None:
    observer = Observer()
    for sequence in (10, 13, 11, 14, 20):  # two lost, one of which comes late; then five
        observer.hear(sequence, Arrived(None, 100, stamp(0), ssrc=1, rtp_sequence=sequence))
    observer.hear(21, Arrived(None, 100, stamp(0), ssrc=2, rtp_sequence=1000))
    features = slot(observer.close(), 0)
    assert features["packet loss ratio"] == pytest.approx(7 / 13)
    assert features["average number of lost packets"] == 3.5


def test_times_of_sending_go_on_where_24_bits_wrap() -> None:
    observer = Observer()
    # 63.875 s and 125 ms later, which is 0 of the next 64 s; on the way for 200 and 205 ms
    observer.hear(0, Arrived(0, 100, stamp(63_875)))
    observer.hear(130 * MS, Arrived(1, 100, stamp(64_000)))
    observation = observer.close()
    assert stamp(64_000) == 0
    assert slot(observation, 0)["delay"] == 2.5
    assert SendTimes.ns(2**18) == 10**9
    assert [SendTimes.ms(ticks) for ticks in (131, 132, 262_144, 262_013)] == [0, 1, 1000, 1000]
    assert [SendTimes.ns(ticks) for ticks in (1, 2)] == [3815, 7629]  # 3814.7, 7629.4


def test_a_packet_that_came_much_faster_than_the_first_one_makes_no_infinite_ratio() -> None:
    observer = Observer()
    observer.hear(0, Arrived(0, 100, stamp(0)))
    observer.hear(1, Arrived(1, 100, stamp(250)))  # -50 ms
    observation = observer.close()
    assert all(math.isfinite(value) for value in observation)
    assert slot(observation, 0)["delay ratio"] == 0.0
