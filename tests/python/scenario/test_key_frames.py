"""Key frames of a scenario: their size, at an interval, and on requests from outside."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from support import PLAIN
from tidegate import Run, Scenario, ScenarioError, run


def scenario(duration: str = "20s", **video: Any) -> Scenario:
    """A call at 1 Mbit/s over 2 Mbit/s with this video."""
    plain = Scenario.parse(PLAIN).to_dict()
    media = {"controller": {"name": "fixed", "rate": "1Mbps"}, "video": video}
    return Scenario.from_dict(
        {**plain, "duration": duration, "warmup": "0s", "flows": [{**plain["flows"][0], "media": media}]}
    )


def frames(run: Run) -> list[tuple[float, int, bool]]:
    """Time of capture in s, size in bytes, and whether it is a key frame, of each frame of video."""
    table = run.table("frames")
    return list(zip(*(table[name].tolist() for name in ("captured_s", "size", "key")), strict=True))


def test_a_key_frame_costs_its_factor_and_the_rate_stays() -> None:
    runs = {
        factor: frames(run(scenario(key_factor=factor, requests="1/s", source="statistical"), record="packets"))
        for factor in (1.0, 3.0, 9.0)
    }
    for factor, sent in runs.items():
        sizes = [size for _, size, key in sent if key]
        mean = sum(size for _, size, _ in sent[8:]) / len(sent[8:])
        # headers take 3 % of the target: 30 frames a second of nearly 4 kB
        assert 3900 < mean < 4100
        expected = max(13_500, factor * mean)
        assert max(sizes) == pytest.approx(expected, rel=0.05), factor
    assert len(runs[1.0]) == len(runs[9.0]), "frames come at the same times"
    total = {factor: sum(size for _, size, _ in sent) for factor, sent in runs.items()}
    assert total[9.0] == pytest.approx(total[3.0], rel=0.02)


def test_key_frames_come_at_an_interval() -> None:
    sent = frames(run(scenario(source="ideal", key_interval="2s"), record="packets"))
    times = [time for time, _, key in sent if key]
    assert times == pytest.approx([2.0 * number for number in range(11)], abs=0.04)
    assert sum(key for *_, key in frames(run(scenario(source="ideal"), record="packets"))) == 1


def test_requests_do_not_depend_on_the_controller() -> None:
    def times(controller: str) -> list[float]:
        changed = scenario("60s", source="ideal", requests="2/s").with_changes(
            {"flows.call.media.controller": controller}
        )
        return [time for time, _, key in frames(run(changed, record="packets")) if key]

    under_gcc = times("gcc")
    assert under_gcc == times("tfrc")
    # 60 s over 300 ms and a mean of half a second, plus or minus three standard deviations (docs/repair.md)
    assert len(under_gcc) == pytest.approx(75, abs=3 * (60 * 0.25 / 0.8**3) ** 0.5)
    assert min(later - earlier for earlier, later in pairwise(under_gcc[1:])) > 0.26


@pytest.mark.parametrize(
    ("video", "said"),
    [
        ({"key_factor": 0.5}, "key_factor: .*at least 1"),
        ({"source": "ideal", "key_interval": "0s"}, r'key_interval: found "0s"; expected more than zero'),
        ({"source": "ideal", "requests": "2000/s"}, r'requests: found "2000/s"; expected at most 1000/s'),
        ({"source": "greedy", "requests": "2/s"}, "requests"),
        ({"source": "ideal", "key_factor": 3.0}, "key_factor"),
        (
            {"source": "frames", "ladder": "x_*.txt", "group": 12, "requests": "2/s"},
            r'requests: found "2/s"; a recording with group \(12\) has key frames of its own',
        ),
    ],
)
def test_what_makes_no_sense_is_refused(video: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario(**video)
